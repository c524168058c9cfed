//! Processing of acknowledgments (RFC 9293 §3.10.7.4 fifth, RFC 5681 §3.2, RFC 6582, RFC 6675): the
//! window, round-trip times, and the events of the congestion control.

use anabranch_congestion::{Ack, RateSample, rate::Delivery};
use anabranch_core::{
    body::Body,
    units::{Bytes, Duration, Instant},
};

use super::Sender;
use crate::{
    clock::timestamp,
    recovery::{AckSummary, Phase, Prior, Timer, dupthresh::Duplicate},
    rtt::Flight,
    scoreboard::{Delivered, Plain},
    send_limit::SendLimit,
};
use anabranch_wire::{
    segment::{Flags, Options, Segment},
    seq::Seq,
};

/// Result of an acknowledgment for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Usual,
    /// All is acknowledged, our FIN included.
    FinAcknowledged,
    /// A timeout that the acknowledgment found was the last.
    GaveUp,
}

impl<B: Body> Sender<B> {
    /// Processes the acknowledgment `ack`, which is at or after SND.UNA and acknowledges only data
    /// sent, and the window of a segment with the number `seq`.
    #[inline]
    pub(crate) fn on_acknowledgment(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        seq: Seq,
        ack: Seq,
    ) -> Outcome {
        let update = self.peer.update(segment.window, seq, ack);
        if update.taken && self.recovery.timer() == Timer::Persist {
            self.peer.on_probe_answered();
            if self.peer.edge() > self.nxt {
                self.peer.on_opened();
                self.recovery.stop_timer();
            }
        }
        if ack > self.peer.una()
            && self.recovery.permits_ack_fast_path()
            && matches!(segment.options, Options::None | Options::AccEcn(_))
        {
            self.on_plain_progress(now, segment, ack)
        } else if !self.recovery.is_idle()
            || self
                .recovery
                .takes_ack_when_idle(segment.options.sack_blocks())
        {
            self.on_any_acknowledgment(now, segment, ack, update.same)
        } else {
            Outcome::Usual
        }
    }

    /// Processes the SACK blocks of an acknowledgment below SND.UNA, which later ones have overtaken. A
    /// block that begins at or below SND.UNA may be a duplicate's (RFC 2883 §4), and says nothing else. As in
    /// Linux (measured: `tests/scripts/recovery/late_acknowledgment.pkt`) the data reported leaves the
    /// flight, and neither the congestion control nor the pace of a recovery count it.
    pub(crate) fn on_late_acknowledgment(&mut self, now: Instant, segment: &Segment<B>) -> Outcome {
        let una = self.peer.una();
        let blocks = segment.options.sack_blocks();
        if blocks.is_empty()
            || self.recovery.is_idle()
            || !self.recovery.uses_sack()
            || blocks.iter().any(|block| una.near(block.left) <= una)
        {
            return Outcome::Usual;
        }
        self.on_any_acknowledgment(now, segment, una, false)
    }

    /// The peer's ACE field and AccECN option, read before the acknowledgment is taken.
    pub(crate) fn read_ace(&mut self, segment: &Segment<B>, ack: Seq) {
        if self.peer.una() <= ack && ack <= self.nxt {
            let acked = ack.since(self.peer.una());
            let sacked = self.recovery.board().sacked();
            self.ecn
                .read_ace(segment, acked, sacked, u64::from(self.smss));
        }
    }

    /// SND.UNA moves to `ack`: the application may write into the room.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, ack: Seq) {
        self.peer.acknowledge(ack);
        if self.queue.is_refill_due(ack) {
            self.refill(now);
        }
        self.queue.release(ack);
        self.recovery.retries.on_progress();
    }

    /// Processes an acknowledgment of new data in the steady state.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is called in one place, for most acknowledgments"
    )]
    #[inline(always)]
    fn on_plain_progress(&mut self, now: Instant, segment: &Segment<B>, ack: Seq) -> Outcome {
        let una = self.peer.una();
        let prior_in_flight = self.recovery.in_flight();
        let plain = self.recovery.on_plain_ack(ack);
        self.advance(now, ack);
        let plain = match plain {
            Some(plain) if !self.ecn.has_marks(segment) => plain,
            _ => {
                let prior = Prior {
                    phase: Phase::Open,
                    dup_acks: 0,
                    una,
                    in_flight: prior_in_flight,
                };
                return self.on_odd_progress(now, segment, plain, prior);
            }
        };
        let rtt = now.saturating_since(plain.last_sent_at);
        self.rtt.note_min(rtt);
        let flight = self.flight();
        self.rtt.sample(
            now.saturating_since(plain.first_sent_at),
            &flight,
            &self.settings.rto_bounds(),
        );
        self.after_progress(now, true);
        let acked = Bytes::new(ack.since(una));
        let rate = if self.window.is_rated() {
            self.rate_sample(now, plain.octets, Some(plain.latest))
        } else {
            None
        };
        let srtt = self.rtt.srtt();
        let cwnd_limited = self.window.is_limiting(now, ack, acked.get(), srtt);
        self.window.on_ack(&Ack {
            now,
            acked,
            sacked: Bytes::ZERO,
            delivered: acked,
            lost: Bytes::ZERO,
            ce_marked: Bytes::ZERO,
            prior_in_flight: Bytes::new(prior_in_flight),
            in_flight: Bytes::new(self.recovery.in_flight()),
            rtt: Some(rtt),
            rtt_by_timestamp: None,
            srtt,
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.window.round(),
            cwnd_limited,
            app_limited: self.limits.limit() == SendLimit::Application,
            in_recovery: false,
        });
        Outcome::Usual
    }

    /// As [`Self::on_plain_progress`], with a FIN, a part of a segment or a mark.
    #[inline(never)]
    fn on_odd_progress(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        plain: Option<Plain>,
        prior: Prior,
    ) -> Outcome {
        let una = self.peer.una();
        let mut summary = AckSummary {
            delivered: plain.map_or(Delivered::NOTHING, |plain| plain.delivered(prior.una, una)),
            ..AckSummary::new(una.since(prior.una), prior)
        };
        let first = self.queue.first_octet();
        self.with_recovery(now, |recovery, scope| {
            recovery.on_ack(scope, &[], una, first, &mut summary);
        });
        summary.rtt_by_timestamp = self.sample_rtt(now, segment, &summary.delivered);
        self.after_progress(now, true);
        if self.ecn.has_marks(segment)
            && self.with_recovery(now, |recovery, scope| recovery.on_mark(scope, &summary))
        {
            self.ecn.on_reduction();
        }
        self.report_to_control(now, segment, &summary, false);
        self.outcome(&summary.delivered)
    }

    /// As [`Self::on_plain_progress`], with losses or reordering.
    #[inline(never)]
    fn on_any_acknowledgment(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        ack: Seq,
        same_window: bool,
    ) -> Outcome {
        let prior = self.recovery.prior(self.peer.una());
        let mut summary = AckSummary::new(ack.since(prior.una), prior);
        summary.echo = segment
            .timestamps
            .filter(|_| self.timestamps)
            .map(|timestamps| timestamps.echo);
        summary.is_late = self.peer.una().near(segment.ack) < self.peer.una();
        summary.is_bare = segment.body.is_empty() && segment.options.sack_blocks().is_empty();
        let (blocks, first) = (segment.options.sack_blocks(), self.queue.first_octet());
        self.with_recovery(now, |recovery, scope| {
            recovery.on_ack(scope, blocks, ack, first, &mut summary);
        });
        let undone = self.stats.undone;
        if summary.acked > 0 {
            self.advance(now, ack);
            summary.rtt_by_timestamp = self.sample_rtt(now, segment, &summary.delivered);
            let restart = self.with_recovery(now, |recovery, scope| {
                recovery.on_progress(scope, &mut summary)
            });
            self.after_progress(now, restart);
        } else {
            let duplicate = Duplicate {
                outstanding: !self.recovery.is_idle(),
                no_data: segment.body.is_empty(),
                no_control_bits: !segment.flags.any(Flags::SYN | Flags::FIN),
                same_number: true,
                same_window,
            };
            summary.is_duplicate = duplicate.is();
            if duplicate.is() {
                self.stats.duplicate_acks += 1;
            }
            if summary.new_sack && self.settings.timers.sample_sacked() {
                self.sample_sacked(now, &summary.delivered);
            }
            // RFC 6675 §2: with SACK, an acknowledgment with new SACKed data is a duplicate.
            let counts = if self.recovery.uses_sack() {
                summary.new_sack
            } else {
                duplicate.is()
            };
            if counts {
                self.with_recovery(now, |recovery, scope| {
                    recovery.on_duplicate(scope, &mut summary);
                });
            } else if !duplicate.is() && summary.dsack.is_none() {
                return Outcome::Usual;
            }
        }
        summary.new_data = self.sendable().is_some();
        self.with_recovery(now, |recovery, scope| {
            recovery.detect_losses(scope, &mut summary);
        });
        if self.ecn.has_marks(segment)
            && self.with_recovery(now, |recovery, scope| recovery.on_mark(scope, &summary))
        {
            self.ecn.on_reduction();
        }
        let is_news = summary.acked > 0 || summary.new_sack || summary.lost > 0;
        if is_news && !summary.is_late {
            // After a spurious recovery the window grows as if there had been no recovery.
            let was_recovering = prior.phase.reduces()
                && !self.settings.window_rules.grow_at_recovery_end()
                && self.stats.undone == undone;
            self.report_to_control(now, segment, &summary, was_recovering);
        } else {
            self.report_losses(now);
        }
        self.outcome(&summary.delivered)
    }

    /// New data is acknowledged, whatever the phase: ends round trips, and stops or restarts the
    /// timer.
    #[inline]
    fn after_progress(&mut self, now: Instant, restart: bool) {
        self.pacer.on_rate_change();
        // Samples count the wait until a third is free, although free room is filled at once here.
        if self.window.is_rated()
            && !self.pacer.sends_bursts()
            && self.queue.has_third_free(self.peer.una())
        {
            self.on_write();
        }
        if self.window.ends_round(self.peer.una(), self.nxt) {
            if self.mtu.suspects() {
                self.search_mtu(now);
            }
            self.validate_round(now);
        }
        if self.recovery.is_idle() {
            self.validate_round(now);
            self.recovery.stop_loss_timers();
        } else if restart {
            self.recovery.restart_timers(now, &self.rtt, &self.settings);
        }
    }

    #[inline]
    fn validate_round(&mut self, now: Instant) {
        if self.window.is_validated() {
            let first = self.queue.first_octet();
            let acked = self.peer.una().max(first).since(first);
            self.window.validate_round(now, acked, self.rtt.srtt());
        }
    }

    /// Ends a round trip: a probe of the path MTU has arrived, or the next one may be sent.
    #[cold]
    fn search_mtu(&mut self, now: Instant) {
        let round = self.mtu.on_round(now, self.peer.una());
        if let Some(size) = round.size {
            self.resize_segments(size);
        }
        if round.probes {
            self.recovery.request_mtu_probe();
        }
    }

    /// A SYN or FIN may be among the data acknowledged.
    fn outcome(&self, delivered: &Delivered) -> Outcome {
        if self.recovery.retries.are_exhausted() {
            Outcome::GaveUp
        } else if delivered.control_bits > 0 && self.queue.is_over() && self.recovery.is_idle() {
            Outcome::FinAcknowledged
        } else {
            Outcome::Usual
        }
    }
}

/// Round-trip times (RFC 6298 §3, RFC 7323 §4).
impl<B: Body> Sender<B> {
    /// Takes samples from segments sent once, or by timestamp. Returns the sample by timestamp.
    pub(crate) fn sample_rtt(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        delivered: &Delivered,
    ) -> Option<Duration> {
        if self.sample_rtt_once(now, delivered) {
            return None;
        }
        let timestamps = segment.timestamps.filter(|_| self.timestamps)?;
        let ticks = timestamp(now).wrapping_sub(timestamps.echo);
        if ticks.cast_signed() <= 0 {
            return None;
        }
        let rtt = Duration::from_millis(u64::from(ticks));
        self.take_rtt(rtt);
        Some(rtt)
    }

    /// Takes a sample from segments sent once. Returns `false` if some of the segments delivered
    /// were retransmitted.
    fn sample_rtt_once(&mut self, now: Instant, delivered: &Delivered) -> bool {
        let Some(once) = delivered.timed() else {
            return false;
        };
        self.rtt.note_min(now.saturating_since(once.last_sent_at));
        if self.settings.timers.count_ticks() {
            let tick = self.settings.clock_tick;
            let at = |time: Instant| time.as_picos() / tick.as_picos();
            let crossed = at(now) - at(once.first_sent_at);
            self.rtt
                .sample_ticks(crossed, tick, &self.settings.rto_bounds());
        } else {
            self.take_rtt(now.saturating_since(once.first_sent_at));
        }
        true
    }

    /// Takes a sample from segments SACKed for the first time. It restarts the timers if the oldest
    /// segment was sent after them. Later segments arrive in every round trip of a recovery, and
    /// would put its timeout off for good (Linux, "tcp: use RTT from SACK for RTO"; measured of
    /// 6.12).
    fn sample_sacked(&mut self, now: Instant, delivered: &Delivered) {
        if !self.sample_rtt_once(now, delivered) {
            return;
        }
        let is_earlier = delivered
            .timed()
            .zip(self.recovery.board().front())
            .is_some_and(|(once, oldest)| once.first_sent_at < oldest.sent_at);
        if is_earlier {
            self.recovery
                .restart_timeout(now, &self.rtt, &self.settings);
        }
    }

    pub(crate) fn take_rtt(&mut self, sample: Duration) {
        if !sample.is_zero() {
            let flight = self.flight();
            self.rtt
                .sample(sample, &flight, &self.settings.rto_bounds());
            self.recovery.on_rtt_sample();
        }
    }

    /// SND.UNA and SND.NXT.
    #[inline]
    pub(crate) const fn flight(&self) -> Flight {
        Flight {
            una: self.peer.una(),
            nxt: self.nxt,
        }
    }
}

/// Reports to the congestion control.
impl<B: Body> Sender<B> {
    fn report_to_control(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        summary: &AckSummary,
        was_recovering: bool,
    ) {
        self.pacer.on_rate_change();
        let delivered = summary.delivered;
        let rtt = delivered
            .timed()
            .map(|once| now.saturating_since(once.last_sent_at));
        let mut rate = if self.window.is_rated() {
            self.rate_sample(now, delivered.fresh, delivered.latest)
        } else {
            None
        };
        let lost = self.report_losses(now);
        if let Some(rate) = &mut rate {
            rate.lost += lost;
        }
        let acked = if self.settings.window_rules.grow_by_delivered() {
            self.recovery.growth(summary, self.smss, &self.settings)
        } else {
            summary.acked - delivered.control_bits
        };
        let ce_marked = self.ecn.has_marks(segment);
        let marked = if ce_marked {
            self.ecn.take_marked(acked + delivered.sacked)
        } else {
            0
        };
        let srtt = self.rtt.srtt();
        let limiting = self
            .window
            .is_limiting(now, self.peer.una(), summary.acked, srtt);
        self.window.on_ack(&Ack {
            now,
            acked: Bytes::new(acked),
            sacked: Bytes::new(delivered.sacked),
            delivered: Bytes::new(delivered.fresh.saturating_sub(delivered.control_bits)),
            lost: Bytes::new(summary.lost),
            ce_marked: Bytes::new(marked),
            prior_in_flight: Bytes::new(summary.prior.in_flight),
            in_flight: Bytes::new(self.recovery.in_flight()),
            rtt,
            rtt_by_timestamp: summary.rtt_by_timestamp,
            srtt,
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.window.round(),
            // RFC 3168 §6.1.2: an acknowledgment with ECE does not grow the window.
            cwnd_limited: limiting && (!ce_marked || self.ecn.is_exact()),
            app_limited: self.limits.limit() == SendLimit::Application,
            in_recovery: was_recovering || self.recovery.phase().reduces(),
        });
    }

    /// A delivery-rate sample from the data that an acknowledgment delivered.
    fn rate_sample(
        &mut self,
        now: Instant,
        octets: u64,
        latest: Option<u64>,
    ) -> Option<RateSample> {
        self.window.rate_sample(&Delivery {
            now,
            octets,
            latest,
            gone: self.recovery.board().gone(),
            min_rtt: self.rtt.min_rtt(),
        })
    }

    /// Reports every segment newly marked lost to the control, if it takes samples.
    pub(crate) fn report_losses(&mut self, now: Instant) -> Bytes {
        self.recovery.report_losses(now, &mut self.window)
    }
}
