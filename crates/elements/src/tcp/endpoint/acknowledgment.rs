//! What an acknowledgment does to the sender (RFC 9293 §3.10.7.4 fifth, RFC 5681 §3.2, RFC 6582,
//! RFC 6675).

use anabranch_core::units::{Bytes, Duration, Instant};

use super::{Endpoint, LimitedBy, Retransmit, timers::Timer};
use crate::{
    body::Body,
    cc::{Ack, Congestion, CongestionControl, RateSample, Recovered, Signal, TimerLoss},
    tcp::{
        rate::Delivery,
        recovery::{
            Phase,
            cause::RetransmitCause,
            dsack,
            dupthresh::{self, Duplicate},
            tlp::Probing,
            window_log::WindowChange,
        },
        refusal::Refusal,
        scoreboard::{Delivered, Plain},
        segment::{Flags, Options, SackBlock, Segment},
        seq::Seq,
        settings::{FullAck, Recovery},
    },
};

/// What one acknowledgment has told so far.
pub(super) struct News {
    pub(super) delivered: Delivered,
    /// Octets newly acknowledged cumulatively; SYN and FIN count here.
    pub(super) acked: u64,
    /// Octets newly taken for lost.
    pub(super) lost: u64,
    /// A SACK block told something new.
    pub(super) new_sack: bool,
    /// It reports a duplicate (RFC 2883).
    pub(super) duplicate: Option<(Seq, Seq)>,
    /// It is a duplicate acknowledgment (RFC 5681 §2).
    pub(super) is_duplicate: bool,
    /// Duplicates that came before this acknowledgment.
    pub(super) prior_dup_acks: u32,
    pub(super) prior_phase: Phase,
    pub(super) prior_una: Seq,
    prior_in_flight: u64,
}

impl<B: Body> Endpoint<B> {
    /// Takes the acknowledgment and the window of a segment. `false` if the segment acknowledges
    /// what was never sent and must be dropped.
    #[inline]
    pub(super) fn on_acknowledgment(&mut self, now: Instant, segment: &Segment<B>) -> bool {
        let ack = self.snd_una.near(segment.ack);
        if ack > self.snd_nxt {
            // RFC 9293 §3.10.7.4: answer and drop.
            self.refuse(Refusal::UnsentAck);
            self.ack.at_once();
            return false;
        }
        if ack < self.snd_una {
            if !self.believes(ack) {
                self.refuse(Refusal::OldAck);
                self.challenge();
                return false;
            }
            return true;
        }
        let same_window = self.take_window(segment, ack);
        if ack > self.snd_una
            && self.recovery.phase == Phase::Open
            && self.recovery.dup_acks == 0
            && self.board.is_plain()
            && !self.timed
            && self.probing == Probing::Free
            && matches!(segment.options, Options::None)
        {
            self.on_plain_progress(now, segment, ack);
        } else if !self.board.is_empty() || self.tells_of_the_past(segment) {
            self.on_acknowledgment_in_trouble(now, segment, ack, same_window);
        }
        true
    }

    /// Whether an honest segment that is still on its way may acknowledge this (RFC 5961 §5.2).
    pub(super) fn believes(&self, ack: Seq) -> bool {
        ack <= self.snd_nxt && ack.saturating_add(u64::from(self.cold.max_snd_wnd)) >= self.snd_una
    }

    /// New data is acknowledged and nothing else: the steady state.
    #[inline]
    fn on_plain_progress(&mut self, now: Instant, segment: &Segment<B>, ack: Seq) {
        let una = self.snd_una;
        let prior_in_flight = self.board.in_flight();
        let plain = self.board.acknowledge_plain(ack);
        self.snd_una = ack;
        self.buffer.release(ack);
        self.expiries = 0;
        self.recovery.limited = 0;
        let ce_marked = self.tells_of_marks(segment);
        if !plain.complete || ce_marked {
            self.on_odd_progress(now, segment, &plain, (una, prior_in_flight, ce_marked));
            return;
        }
        let rtt = now.saturating_since(plain.last_sent_at);
        self.rtt.note_min(rtt);
        self.rtt.sample(
            now.saturating_since(plain.first_sent_at),
            &self.settings.rto_bounds(),
        );
        self.after_progress_always(now, true);
        let acked = Bytes::new(ack.since(una));
        let rate = if self.rated {
            self.rate_sample(now, plain.octets, Some(plain.latest))
        } else {
            None
        };
        let cwnd_limited = self.is_cwnd_limited(now, acked.get());
        self.control.on_ack(&Ack {
            now,
            acked,
            sacked: Bytes::ZERO,
            delivered: acked,
            lost: Bytes::ZERO,
            ce_marked: Bytes::ZERO,
            prior_in_flight: Bytes::new(prior_in_flight),
            in_flight: Bytes::new(self.board.in_flight()),
            rtt: Some(rtt),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.round,
            cwnd_limited,
            app_limited: self.limited_by == LimitedBy::Application,
            in_recovery: false,
        });
    }

    /// As [`Self::on_plain_progress`], with a FIN, a part of a segment or a mark.
    #[inline(never)]
    fn on_odd_progress(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        plain: &Plain,
        (una, prior_in_flight, ce_marked): (Seq, u64, bool),
    ) {
        let mut news = News {
            delivered: plain.delivered(una, self.snd_una),
            acked: self.snd_una.since(una),
            lost: 0,
            new_sack: false,
            duplicate: None,
            is_duplicate: false,
            prior_dup_acks: 0,
            prior_phase: Phase::Open,
            prior_una: una,
            prior_in_flight,
        };
        self.board.acknowledge(self.snd_una, &mut news.delivered);
        self.sample_rtt(now, segment, &news.delivered);
        self.after_progress_always(now, true);
        if ce_marked {
            self.on_echo(now);
        }
        self.tell_control(now, &news, false, ce_marked);
        if news.delivered.control_bits > 0 {
            self.after_control_bits(now);
        }
    }

    /// A delivery-rate sample from what an acknowledgment delivered.
    #[inline(never)]
    fn rate_sample(
        &mut self,
        now: Instant,
        octets: u64,
        latest: Option<u64>,
    ) -> Option<RateSample> {
        let sampler = &mut self.cold.extras.as_mut()?.rate;
        sampler.on_delivered(&Delivery {
            now,
            octets,
            latest,
            gone: self.board.gone(),
            min_rtt: self.rtt.min_rtt(),
        })
    }

    /// Tells the control of every segment newly taken for lost, if it wants to know; how much that
    /// is.
    #[inline(never)]
    pub(super) fn report_losses(&mut self, now: Instant) -> Bytes {
        let mut total = Bytes::ZERO;
        for number in self.board.take_noted() {
            let index = number.checked_sub(self.board.gone()).map(usize::try_from);
            let record = index.and_then(|index| self.board.get(index.ok()?));
            let (Some(record), Some(extras)) = (record, &mut self.cold.extras) else {
                continue;
            };
            total += Bytes::new(u64::from(record.len));
            let segment = (number, u64::from(record.len));
            if let Some(lost) = extras.rate.on_lost(now, segment, self.agreed.guided) {
                self.control.on_lost(&lost);
            }
        }
        total
    }

    /// Something that this acknowledges left before cwnd last held data back.
    #[inline]
    fn is_cwnd_limited(&mut self, now: Instant, acked: u64) -> bool {
        !self.settings.cwnd_validation
            || self.snd_una < self.cwnd_limited_until.saturating_add(acked)
            || (self.validating && self.validate(now))
    }

    /// As [`Self::on_plain_progress`], with losses or reordering about.
    #[inline(never)]
    fn on_acknowledgment_in_trouble(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        ack: Seq,
        same_window: bool,
    ) {
        let mut news = News {
            delivered: Delivered::NOTHING,
            acked: ack.since(self.snd_una),
            lost: 0,
            new_sack: false,
            duplicate: None,
            is_duplicate: false,
            prior_dup_acks: self.recovery.dup_acks,
            prior_phase: self.recovery.phase,
            prior_una: self.snd_una,
            prior_in_flight: self.board.in_flight(),
        };
        if self.agreed.guided {
            self.take_sack(segment, ack, &mut news);
        }
        let was_recovering = self.recovery.phase == Phase::Recovery;
        if news.acked > 0 {
            self.board.acknowledge(ack, &mut news.delivered);
            self.snd_una = ack;
            self.buffer.release(ack);
            self.expiries = 0;
            self.sample_rtt(now, segment, &news.delivered);
            let restart = self.after_progress_in_trouble(now, &mut news);
            self.after_progress_always(now, restart);
        } else {
            let duplicate = Duplicate {
                outstanding: !self.board.is_empty(),
                no_data: segment.body.is_empty(),
                no_control_bits: !segment.flags.any(Flags::SYN | Flags::FIN),
                same_number: true,
                same_window,
            };
            news.is_duplicate = duplicate.is();
            if duplicate.is() {
                self.stats.duplicate_acks += 1;
            }
            if news.new_sack && self.settings.rtt_from_sack {
                self.sample_rtt_once(now, &news.delivered);
            }
            // RFC 6675 §2: with SACK, a duplicate is what reports something new.
            let counts = if self.agreed.guided {
                news.new_sack
            } else {
                duplicate.is()
            };
            if counts {
                self.after_duplicate(now, &mut news);
            } else if !duplicate.is() && news.duplicate.is_none() {
                return;
            }
        }
        if news.new_sack && self.recovery.phase == Phase::Recovery {
            news.lost += self.update_lost();
        }
        if self.cold.watch.is_some() {
            self.look(now, segment, &mut news);
        }
        if self.timed {
            self.apply_timer_rule(now, &mut news);
        }
        let ce_marked = self.tells_of_marks(segment);
        if ce_marked {
            self.on_echo(now);
        }
        if news.acked > 0 || news.new_sack || news.lost > 0 {
            self.tell_control(now, &news, was_recovering, ce_marked);
        } else if self.rated {
            self.report_losses(now);
        }
        if news.delivered.control_bits > 0 {
            self.after_control_bits(now);
        }
    }

    /// Takes the window (RFC 9293 §3.10.7.4 fifth); whether it is the same as before.
    #[inline]
    fn take_window(&mut self, segment: &Segment<B>, ack: Seq) -> bool {
        let window = u32::from(segment.window) << self.agreed.snd_scale;
        let same = window == self.snd_wnd;
        let seq = self.rcv_nxt.near(segment.seq);
        if self.snd_wl1 < seq || (self.snd_wl1 == seq && self.snd_wl2 <= ack) {
            self.snd_wnd = window;
            self.snd_edge = ack + u64::from(window);
            self.snd_wl1 = seq;
            self.snd_wl2 = ack;
            if !same {
                self.cold.max_snd_wnd = self.cold.max_snd_wnd.max(window);
            }
            if self.timer == Timer::Persist && self.snd_edge > self.snd_nxt {
                self.cold.probes = 0;
                self.stop_timer();
            }
        }
        same
    }

    /// Takes the blocks of a SACK option (RFC 2018), and the duplicate that the first may report.
    fn take_sack(&mut self, segment: &Segment<B>, ack: Seq, news: &mut News) {
        let blocks = segment.options.sack_blocks();
        if self.cold.watch.is_some() {
            news.duplicate = dsack::reported(blocks, ack);
        }
        if across_each_other(blocks) {
            self.refuse(Refusal::SackBlock);
        }
        for block in blocks {
            let left = ack.near(block.left);
            let right = ack.near(block.right);
            if left >= right || right > self.snd_nxt || left < self.cold.first_octet {
                self.refuse(Refusal::SackBlock);
                news.duplicate = None;
            } else if left < ack {
                // A duplicate (RFC 2883), or older than what is acknowledged.
            } else {
                news.new_sack |= self.board.sack(left, right, &mut news.delivered);
            }
        }
    }

    /// RFC 6298 §3 and RFC 7323 §4: samples from what was sent once, or by timestamp.
    pub(super) fn sample_rtt(&mut self, now: Instant, segment: &Segment<B>, delivered: &Delivered) {
        if self.sample_rtt_once(now, delivered) {
            return;
        }
        if let Some(timestamps) = segment.timestamps
            && self.agreed.timestamps
        {
            let ticks = super::header::timestamp(now).wrapping_sub(timestamps.echo);
            if ticks.cast_signed() > 0 {
                self.take_rtt(Duration::from_millis(u64::from(ticks)));
            }
        }
    }

    /// A sample from what was sent once; `false` if some of what was delivered was sent again.
    fn sample_rtt_once(&mut self, now: Instant, delivered: &Delivered) -> bool {
        let Some(once) = delivered.timed() else {
            return false;
        };
        self.rtt.note_min(now.saturating_since(once.last_sent_at));
        self.take_rtt(now.saturating_since(once.first_sent_at));
        true
    }

    fn take_rtt(&mut self, sample: Duration) {
        if !sample.is_zero() {
            self.rtt.sample(sample, &self.settings.rto_bounds());
            if self.probing != Probing::Free {
                self.note_measured();
            }
        }
    }

    /// New data is acknowledged, whatever the phase.
    #[inline]
    fn after_progress_always(&mut self, now: Instant, restart: bool) {
        if self.snd_una > self.round_end {
            self.round += 1;
            self.round_end = self.snd_nxt;
            if self.validating {
                self.validate_round(now);
            }
        }
        if self.board.is_empty() {
            if self.validating {
                self.validate_round(now);
            }
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

    /// New data is acknowledged: what it means for the recovery. Whether the retransmission timer
    /// starts anew.
    fn after_progress_in_trouble(&mut self, now: Instant, news: &mut News) -> bool {
        let complete = self.snd_una >= self.recovery.recover;
        match self.recovery.phase {
            Phase::Open => {
                self.recovery.dup_acks = 0;
                self.recovery.limited = 0;
                if news.new_sack {
                    // RFC 6675 §5: it is a duplicate as well, and may show that more is lost.
                    self.recovery.dup_acks = 1;
                    news.lost += self.detect_by_sack(now, news.delivered.fresh);
                }
                true
            }
            Phase::Loss => {
                self.recovery.dup_acks = 0;
                if complete {
                    let window = self.window();
                    self.recovery.open();
                    self.board.give_back();
                    if self.validating {
                        self.validate_recovered();
                    }
                    self.log_window(now, WindowChange::Recovered, window);
                }
                true
            }
            Phase::Recovery if complete || self.settings.recovery == Recovery::Reno => {
                let before = self.window();
                self.recovery.open();
                self.board.give_back();
                let in_flight = self.board.in_flight();
                self.control.on_recovered(&Recovered {
                    now,
                    in_flight: Bytes::new(in_flight),
                    cwnd_limit: self.full_ack_window(in_flight),
                });
                if self.validating {
                    self.validate_recovered();
                }
                self.log_window(now, WindowChange::Recovered, before);
                true
            }
            Phase::Recovery if self.agreed.guided => true,
            Phase::Recovery => {
                // RFC 6582 §3.2 step 3: a partial acknowledgment.
                self.recovery.dup_acks = 0;
                self.recovery.deflate(news.acked, self.smss);
                self.board.note_loss(0);
                // A timer rule may have sent it again already.
                if self
                    .board
                    .front()
                    .is_some_and(|front| !front.is_retransmitted())
                {
                    self.wanted.retransmit = Retransmit::First(RetransmitCause::PartialAck);
                }
                self.recovery.partial_acks == 1 || self.settings.partial_ack_restarts_timer
            }
        }
    }

    /// RFC 6582 §3.2 step 3: the bound on cwnd after a full acknowledgment, if there is one.
    fn full_ack_window(&self, in_flight: u64) -> Option<Bytes> {
        let smss = u64::from(self.smss);
        let bounded = self.settings.full_ack == FullAck::FlightSize
            && self.settings.recovery != Recovery::Reno
            && !self.agreed.guided;
        bounded.then(|| Bytes::new(in_flight.max(smss) + smss))
    }

    /// A duplicate acknowledgment, as the recovery in use defines it.
    fn after_duplicate(&mut self, now: Instant, news: &mut News) {
        self.recovery.dup_acks = self.recovery.dup_acks.saturating_add(1);
        if self.agreed.guided {
            if self.recovery.phase == Phase::Open {
                news.lost += self.detect_by_sack(now, news.delivered.fresh);
            }
        } else if self.recovery.phase == Phase::Recovery {
            self.recovery.inflate(self.smss);
        } else if dupthresh::reached(
            &self.recovery,
            self.snd_una,
            &self.settings,
            (self.dupthresh(), self.timed),
        ) {
            // RFC 5681 §3.2 steps 2 and 3.
            self.enter_recovery(now, RetransmitCause::DupThresh, 0);
            self.recovery.inflate_at_entry(self.smss);
            self.wanted.retransmit = Retransmit::First(RetransmitCause::DupThresh);
        }
    }

    /// RFC 6675 §5 (1), (2) and (4): begins a recovery if what SACK reports says so. Returns what is
    /// newly lost. `fresh` is what the acknowledgment delivered.
    fn detect_by_sack(&mut self, now: Instant, fresh: u64) -> u64 {
        // RACK has its own time for it.
        if !self.agreed.guided || self.agreed.racked || self.snd_una < self.recovery.recover {
            return 0;
        }
        let dupthresh = self.dupthresh();
        let edge = self.board.lost_below(dupthresh, self.smss);
        let lost = edge.is_some_and(|edge| edge > self.snd_una);
        if !lost && self.recovery.dup_acks < dupthresh {
            return 0;
        }
        self.enter_recovery(now, RetransmitCause::DupThresh, fresh);
        let before = self.board.lost();
        self.board.mark_lost(0, RetransmitCause::DupThresh);
        self.update_lost();
        // (4.3): the first segment leaves whatever the pipe.
        self.wanted.retransmit = Retransmit::First(RetransmitCause::DupThresh);
        self.board.lost() - before
    }

    /// Update (RFC 6675 §4): what the reports show to be lost.
    fn update_lost(&mut self) -> u64 {
        if !self.agreed.guided || self.agreed.racked {
            return 0;
        }
        match self.board.lost_below(self.dupthresh(), self.smss) {
            Some(edge) => self.board.mark_lost_below(edge),
            None => 0,
        }
    }

    /// Fast recovery begins: cwnd is reduced, unless it was for a mark in the same round trip
    /// (RFC 3168 §6.1.2). `fresh` is what the acknowledgment delivered that begins it.
    pub(super) fn enter_recovery(&mut self, now: Instant, cause: RetransmitCause, fresh: u64) {
        self.stats.fast_recoveries += 1;
        let before = self.window();
        let reduces = self.snd_una > self.recovery.reduced;
        if reduces {
            let in_flight = self.flight_to_reduce(now, true);
            self.control.on_congestion(&Congestion {
                now,
                signal: Signal::Loss,
                in_flight,
            });
        }
        if !self.agreed.guided {
            self.board.note_loss(0);
        }
        self.recovery.enter(self.snd_nxt);
        self.board.begin_recovery();
        self.log_window(now, WindowChange::Recovery(cause), before);
        self.watch_recovery(reduces, fresh);
    }

    /// What a reduction is taken from. `repairs`: a recovery begins with it.
    fn flight_to_reduce(&mut self, now: Instant, repairs: bool) -> Bytes {
        let flight = self.flight_size();
        Bytes::new(if self.validating {
            self.validated_flight(now, flight, repairs)
        } else {
            flight
        })
    }

    /// The peer echoes a mark (RFC 3168 §6.1.2): one reduction per round trip.
    fn on_echo(&mut self, now: Instant) {
        // The segment that says so (CWR) is the first after `reduced`.
        if self.snd_una <= self.recovery.reduced || self.recovery.phase != Phase::Open {
            return;
        }
        self.stats.ecn_reductions += 1;
        let before = self.window();
        let in_flight = self.flight_to_reduce(now, false);
        self.control.on_congestion(&Congestion {
            now,
            signal: Signal::EcnCe,
            in_flight,
        });
        self.log_window(now, WindowChange::Mark, before);
        self.forget_undo();
        self.recovery.reduced = self.snd_nxt;
        self.cold.extras().ecn.send_cwr = true;
    }

    /// The study's rule; see [`timer_rule`](crate::tcp::recovery::timer_rule).
    fn apply_timer_rule(&mut self, now: Instant, news: &mut News) {
        let Some(rule) = &mut self.cold.timer_rule else {
            return;
        };
        if news.acked > 0 || news.new_sack {
            let duplicates = !self.agreed.guided && news.prior_dup_acks > 0 && news.acked > 0;
            rule.on_delivered(now, &news.delivered, duplicates);
        }
        let Some((once, again)) = rule.limits(now) else {
            return;
        };
        let expired = self.board.expire(once, again);
        if expired.lost == 0 {
            return;
        }
        if expired.retransmissions {
            rule.back_off();
        }
        news.lost += expired.lost;
        let in_flight = self.flight_size();
        match self.recovery.phase {
            Phase::Open => {
                let dup_acks = self.recovery.dup_acks;
                self.enter_recovery(now, RetransmitCause::TimerRule, news.delivered.fresh);
                if !self.agreed.guided {
                    self.recovery.dup_acks = dup_acks;
                    self.recovery.inflate_at_entry(self.smss);
                }
                self.wanted.retransmit = Retransmit::FirstLost;
            }
            Phase::Recovery => {
                self.stats.timer_losses += 1;
                let before = self.window();
                self.control.on_timer_loss(&TimerLoss {
                    now,
                    in_flight: Bytes::new(in_flight),
                });
                self.recovery.restart(self.snd_nxt);
                self.log_window(now, WindowChange::Restart, before);
                self.wanted.retransmit = Retransmit::FirstLost;
            }
            Phase::Loss => {}
        }
    }

    fn tell_control(&mut self, now: Instant, news: &News, was_recovering: bool, ce_marked: bool) {
        let delivered = news.delivered;
        let rtt = delivered
            .timed()
            .map(|once| now.saturating_since(once.last_sent_at));
        let rate = if self.rated {
            let mut rate = self.rate_sample(now, delivered.fresh, delivered.latest);
            let lost = self.report_losses(now);
            if let Some(rate) = &mut rate {
                rate.lost += lost;
            }
            rate
        } else {
            None
        };
        let acked = if self.settings.grow_by_delivered {
            self.growth(news)
        } else {
            news.acked - delivered.control_bits
        };
        let marked = if ce_marked {
            self.take_marked(acked + delivered.sacked)
        } else {
            0
        };
        // RFC 3168 §6.1.2: an echo lets nothing grow.
        let cwnd_limited =
            self.is_cwnd_limited(now, news.acked) && (!ce_marked || self.agreed.exact_ecn);
        self.control.on_ack(&Ack {
            now,
            acked: Bytes::new(acked),
            sacked: Bytes::new(delivered.sacked),
            delivered: Bytes::new(delivered.fresh.saturating_sub(delivered.control_bits)),
            lost: Bytes::new(news.lost),
            ce_marked: Bytes::new(marked),
            prior_in_flight: Bytes::new(news.prior_in_flight),
            in_flight: Bytes::new(self.board.in_flight()),
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.round,
            cwnd_limited,
            app_limited: self.limited_by == LimitedBy::Application,
            in_recovery: was_recovering || self.recovery.phase == Phase::Recovery,
        });
    }

    /// The octets of an acknowledgment by which a window may grow
    /// ([`grow_by_delivered`](crate::tcp::settings::Settings::grow_by_delivered)).
    fn growth(&self, news: &News) -> u64 {
        let fresh = news.delivered.fresh - news.delivered.control_bits;
        if !self.agreed.guided {
            // Duplicates before it told of a segment each; at least one fills the gap.
            let told = u64::from(news.prior_dup_acks) * u64::from(self.smss);
            return fresh
                .saturating_sub(told)
                .max(fresh.min(u64::from(self.smss)));
        }
        let reorders = self.dupthresh() > self.settings.dupthresh;
        if news.acked > 0 || reorders { fresh } else { 0 }
    }

    /// A FIN may be among what is acknowledged.
    #[cold]
    fn after_control_bits(&mut self, now: Instant) {
        if self.send_is_over() && self.board.is_empty() {
            self.on_fin_acknowledged(now);
        }
    }
}

/// Whether blocks of one option share octets, other than the first as a duplicate within the second
/// (RFC 2883 §4). Each may be right by itself, so what they report is taken all the same.
fn across_each_other(blocks: &[SackBlock]) -> bool {
    let reaches = |from: u32, to: u32| to.wrapping_sub(from).cast_signed() > 0;
    let share = |a: &SackBlock, b: &SackBlock| reaches(a.left, b.right) && reaches(b.left, a.right);
    let within =
        |a: &SackBlock, b: &SackBlock| !reaches(a.left, b.left) && !reaches(b.right, a.right);
    blocks.iter().enumerate().any(|(place, later)| {
        blocks[..place].iter().enumerate().any(|(first, earlier)| {
            share(earlier, later) && !((first, place) == (0, 1) && within(earlier, later))
        })
    })
}
