//! Processing of acknowledgments (RFC 9293 §3.10.7.4 fifth, RFC 5681 §3.2, RFC 6582, RFC 6675): the window, round-trip
//! times, and what the congestion control receives.

use anabranch_congestion::{Ack, RateSample, rate::Delivery};
use anabranch_core::{
    body::Body,
    units::{Bytes, Duration, Instant},
};

use super::{Retransmit, Sender, timers::Timer};
use crate::{
    clock::timestamp,
    ecn::sender::Covered,
    recovery::{AckSummary, Phase, Prior, dupthresh::Duplicate, tlp::Probing},
    scoreboard::{Delivered, Plain},
    segment::{Flags, Options, Segment},
    send_limit::SendLimit,
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
    /// Takes the acknowledgment `ack`, which is no older than SND.UNA and acknowledges nothing that was never sent, and the
    /// window of a segment whose number is `seq`.
    #[inline]
    pub(crate) fn on_acknowledgment(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        seq: Seq,
        ack: Seq,
    ) -> Outcome {
        let same_window = self.take_window(segment, seq, ack);
        if ack > self.peer.una()
            && self.recovery.phase == Phase::Open
            && self.recovery.dup_acks == 0
            && self.board.is_plain()
            && !self.timed
            && self.probing == Probing::Free
            && !self.agreed.attended()
            && matches!(segment.options, Options::None | Options::AccEcn(_))
        {
            self.on_plain_progress(now, segment, ack)
        } else if !self.board.is_empty() || self.tells_of_the_past(segment) {
            self.on_any_acknowledgment(now, segment, ack, same_window)
        } else {
            Outcome::Usual
        }
    }

    /// Takes the window (RFC 9293 §3.10.7.4 fifth). Returns whether it is the same as before.
    #[inline]
    fn take_window(&mut self, segment: &Segment<B>, seq: Seq, ack: Seq) -> bool {
        let update = self.peer.update(segment.window, seq, ack);
        if update.taken && self.timer == Timer::Persist {
            self.peer.on_probe_answered();
            if self.peer.edge() > self.nxt {
                self.peer.on_opened();
                self.stop_timer();
            }
        }
        update.same
    }

    /// The peer's ACE field and AccECN option, read before the acknowledgment is taken.
    pub(crate) fn read_ace(&mut self, segment: &Segment<B>, ack: Seq) {
        if self.peer.una() <= ack && ack <= self.nxt {
            let covered = Covered {
                acked: ack.since(self.peer.una()),
                sacked: self.board.sacked(),
                smss: self.smss,
            };
            self.ecn.read_ace(segment, covered);
        }
    }

    /// SND.UNA moves to `ack`: the application may write into the room.
    #[inline]
    fn advance(&mut self, now: Instant, ack: Seq) {
        self.peer.acknowledge(ack);
        if self.queue.is_refill_due(ack) {
            self.refill(now);
        }
        self.queue.release(ack);
        self.retries.on_progress();
    }

    /// New data is acknowledged and nothing else: the steady state.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is called in one place, for most acknowledgments"
    )]
    #[inline(always)]
    fn on_plain_progress(&mut self, now: Instant, segment: &Segment<B>, ack: Seq) -> Outcome {
        let una = self.peer.una();
        let prior_in_flight = self.board.in_flight();
        let plain = self.board.acknowledge_plain(ack);
        self.advance(now, ack);
        self.recovery.limited = 0;
        let ce_marked = self.ecn.has_marks(segment);
        if !plain.complete || ce_marked {
            let prior = Prior {
                phase: Phase::Open,
                dup_acks: 0,
                una,
                in_flight: prior_in_flight,
            };
            return self.on_odd_progress(now, segment, &plain, prior);
        }
        let rtt = now.saturating_since(plain.last_sent_at);
        self.rtt.note_min(rtt);
        self.rtt.sample(
            now.saturating_since(plain.first_sent_at),
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
            in_flight: Bytes::new(self.board.in_flight()),
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
        plain: &Plain,
        prior: Prior,
    ) -> Outcome {
        let una = self.peer.una();
        let mut summary = AckSummary {
            delivered: plain.delivered(prior.una, una),
            ..AckSummary::new(una.since(prior.una), prior)
        };
        self.board.acknowledge(una, &mut summary.delivered);
        summary.rtt_by_timestamp = self.sample_rtt(now, segment, &summary.delivered);
        self.after_progress(now, true);
        if self.ecn.has_marks(segment) {
            self.on_echo(now, &summary);
        }
        self.report_to_control(now, segment, &summary, false);
        self.outcome(&summary.delivered)
    }

    /// As [`Self::on_plain_progress`], with losses or reordering about.
    #[inline(never)]
    fn on_any_acknowledgment(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        ack: Seq,
        same_window: bool,
    ) -> Outcome {
        let prior = Prior {
            phase: self.recovery.phase,
            dup_acks: self.recovery.dup_acks,
            una: self.peer.una(),
            in_flight: self.board.in_flight(),
        };
        let mut summary = AckSummary::new(ack.since(prior.una), prior);
        summary.echo = segment
            .timestamps
            .filter(|_| self.agreed.timestamps)
            .map(|timestamps| timestamps.echo);
        summary.is_bare = segment.body.is_empty() && segment.options.sack_blocks().is_empty();
        if self.agreed.guided {
            self.take_sack(segment.options.sack_blocks(), ack, &mut summary);
        }
        let undone = self.stats.undone;
        if summary.acked > 0 {
            self.board.acknowledge(ack, &mut summary.delivered);
            self.advance(now, ack);
            summary.rtt_by_timestamp = self.sample_rtt(now, segment, &summary.delivered);
            if self.cold.watch.is_some() {
                self.tell_remedy_of_progress(now, &summary);
            }
            let restart = self.after_progress_in_trouble(now, &mut summary);
            self.after_progress(now, restart);
        } else {
            let duplicate = Duplicate {
                outstanding: !self.board.is_empty(),
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
                self.sample_rtt_once(now, &summary.delivered);
            }
            // RFC 6675 §2: with SACK, a duplicate is what reports something new.
            let counts = if self.agreed.guided {
                summary.new_sack
            } else {
                duplicate.is()
            };
            if counts {
                self.after_duplicate(now, &mut summary);
            } else if !duplicate.is() && summary.duplicate.is_none() {
                return Outcome::Usual;
            }
        }
        if summary.new_sack && self.recovery.phase == Phase::Recovery {
            summary.lost += self.update_lost();
        }
        if self.cold.watch.is_some() {
            self.look(now, &mut summary);
        }
        if self.timed {
            self.apply_timer_rule(now, &mut summary);
        }
        if self.ecn.has_marks(segment) {
            self.on_echo(now, &summary);
        }
        if summary.acked > 0 || summary.new_sack || summary.lost > 0 {
            // After a recovery that proves spurious the window grows as if there had been none.
            let was_recovering = prior.phase.reduces()
                && !self.settings.window_rules.grow_at_recovery_end()
                && self.stats.undone == undone;
            self.report_to_control(now, segment, &summary, was_recovering);
        } else {
            self.report_losses(now);
        }
        self.outcome(&summary.delivered)
    }

    /// New data is acknowledged, whatever the phase: ends round trips, and stops or restarts the timer.
    #[inline]
    fn after_progress(&mut self, now: Instant, restart: bool) {
        self.pacer.on_rate_change();
        if self.window.is_rated() {
            self.on_write_after_block();
        }
        if self.window.ends_round(self.peer.una(), self.nxt) {
            if self.mtu.suspects() {
                self.search_mtu(now);
            }
            self.validate_round(now);
        }
        if self.board.is_empty() {
            self.validate_round(now);
            // RFC 6298 (5.2)
            if matches!(
                self.timer,
                Timer::Retransmit | Timer::Reorder | Timer::Probe
            ) {
                self.stop_timer();
            }
        } else if restart {
            // RFC 6298 (5.3)
            self.restart_retransmission_timer(now);
            if self.agreed.tlp {
                self.start_probe_timer(now);
            }
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

    /// A round trip is over: a probe of the path MTU has arrived, or the next may leave.
    #[cold]
    fn search_mtu(&mut self, now: Instant) {
        let round = self.mtu.on_round(now, self.peer.una());
        if let Some(size) = round.size {
            self.resize_segments(size);
        }
        if round.probes && self.retransmit == Retransmit::Nothing {
            self.retransmit = Retransmit::MtuProbe;
        }
    }

    /// A SYN or FIN may be among the data acknowledged.
    fn outcome(&self, delivered: &Delivered) -> Outcome {
        if self.retries.are_exhausted() {
            Outcome::GaveUp
        } else if delivered.control_bits > 0 && self.queue.is_over() && self.board.is_empty() {
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
        let timestamps = segment.timestamps.filter(|_| self.agreed.timestamps)?;
        let ticks = timestamp(now).wrapping_sub(timestamps.echo);
        if ticks.cast_signed() <= 0 {
            return None;
        }
        let rtt = Duration::from_millis(u64::from(ticks));
        self.take_rtt(rtt);
        Some(rtt)
    }

    /// Takes a sample from segments sent once. Returns `false` if some of the segments delivered were retransmitted.
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

    pub(crate) fn take_rtt(&mut self, sample: Duration) {
        if !sample.is_zero() {
            self.rtt.sample(sample, &self.settings.rto_bounds());
            if self.probing != Probing::Free {
                self.note_measured();
            }
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
            self.growth(summary)
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
            in_flight: Bytes::new(self.board.in_flight()),
            rtt,
            rtt_by_timestamp: summary.rtt_by_timestamp,
            srtt,
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.window.round(),
            // RFC 3168 §6.1.2: an echo lets nothing grow.
            cwnd_limited: limiting && (!ce_marked || self.ecn.is_exact()),
            app_limited: self.limits.limit() == SendLimit::Application,
            in_recovery: was_recovering || self.recovery.phase.reduces(),
        });
    }

    /// Octets of an acknowledgment by which a window may grow
    /// ([`WindowRules::grow_by_delivered`](crate::policy::WindowRules::grow_by_delivered)).
    fn growth(&self, summary: &AckSummary) -> u64 {
        let smss = u64::from(self.smss);
        let fresh = summary.delivered.fresh - summary.delivered.control_bits;
        if !self.agreed.guided {
            // Each earlier duplicate reported a segment; at least one fills the gap.
            let reported = u64::from(summary.prior.dup_acks) * smss;
            return fresh.saturating_sub(reported).max(fresh.min(smss));
        }
        let reorders = self.dupthresh() > self.settings.dupthresh;
        // Data that arrived although it was retransmitted has been delivered as well.
        let again = summary
            .duplicate
            .as_ref()
            .filter(|_| reorders)
            .map_or(0, |range| range.end.since(range.start).min(smss));
        if summary.acked > 0 || reorders {
            fresh + again
        } else {
            0
        }
    }

    /// A delivery-rate sample from the data that an acknowledgment delivered.
    fn rate_sample(&mut self, now: Instant, octets: u64, latest: Option<u64>) -> Option<RateSample> {
        self.window.rate_sample(&Delivery {
            now,
            octets,
            latest,
            gone: self.board.gone(),
            min_rtt: self.rtt.min_rtt(),
        })
    }

    /// Reports every segment newly marked lost to the control, if it takes samples.
    pub(crate) fn report_losses(&mut self, now: Instant) -> Bytes {
        let sack = self.agreed.guided;
        self.window.report_losses(now, &mut self.board, sack)
    }
}
