//! What an acknowledgment does to the sender (RFC 9293 §3.10.7.4 fifth, RFC 5681 §3.2, RFC 6582,
//! RFC 6675).

use anabranch_core::{
    body::Body,
    units::{Bytes, Duration, Instant},
};

use super::{Sender, timers::Timer};
use crate::{
    recovery::{Phase, dupthresh::Duplicate, tlp::Probing},
    scoreboard::{Delivered, Plain},
    segment::{Flags, Options, Segment},
    send_limit::SendLimit,
    seq::Seq,
};
use anabranch_congestion::{Ack, CongestionControl};

/// What an acknowledgment means for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Usual,
    /// All is acknowledged, our FIN included.
    FinAcknowledged,
    /// A timeout that the acknowledgment found was the last.
    GaveUp,
}

/// What one acknowledgment has told so far.
pub(super) struct News {
    pub(super) delivered: Delivered,
    /// Octets newly acknowledged cumulatively; SYN and FIN count here.
    pub(super) acked: u64,
    /// Octets newly marked lost.
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
    pub(super) prior_in_flight: u64,
    /// Round-trip time by timestamp, where retransmissions leave no other.
    pub(super) rtt_by_timestamp: Option<Duration>,
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
            self.on_acknowledgment_in_trouble(now, segment, ack, same_window)
        } else {
            Outcome::Usual
        }
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
        self.peer.acknowledge(ack);
        self.after_release(now);
        self.buffer.release(ack);
        self.retries.on_progress();
        self.recovery.limited = 0;
        let ce_marked = self.tells_of_marks(segment);
        if !plain.complete || ce_marked {
            return self.on_odd_progress(now, segment, &plain, (una, prior_in_flight, ce_marked));
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
            rtt_by_timestamp: None,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.round,
            cwnd_limited,
            app_limited: self.limit == SendLimit::Application,
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
        (una, prior_in_flight, ce_marked): (Seq, u64, bool),
    ) -> Outcome {
        let mut news = News {
            delivered: plain.delivered(una, self.peer.una()),
            acked: self.peer.una().since(una),
            lost: 0,
            new_sack: false,
            duplicate: None,
            is_duplicate: false,
            prior_dup_acks: 0,
            prior_phase: Phase::Open,
            prior_una: una,
            prior_in_flight,
            rtt_by_timestamp: None,
        };
        self.board.acknowledge(self.peer.una(), &mut news.delivered);
        news.rtt_by_timestamp = self.sample_rtt(now, segment, &news.delivered);
        self.after_progress_always(now, true);
        if ce_marked {
            self.on_echo(now, &news);
        }
        self.tell_control(now, &news, false, ce_marked);
        self.outcome(&news.delivered)
    }

    /// Tells the control of every segment newly marked lost, if it wants to know; how much that
    /// is.
    #[inline(never)]
    pub(crate) fn report_losses(&mut self, now: Instant) -> Bytes {
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

    /// As [`Self::on_plain_progress`], with losses or reordering about.
    #[inline(never)]
    fn on_acknowledgment_in_trouble(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        ack: Seq,
        same_window: bool,
    ) -> Outcome {
        let mut news = News {
            delivered: Delivered::NOTHING,
            acked: ack.since(self.peer.una()),
            lost: 0,
            new_sack: false,
            duplicate: None,
            is_duplicate: false,
            prior_dup_acks: self.recovery.dup_acks,
            prior_phase: self.recovery.phase,
            prior_una: self.peer.una(),
            prior_in_flight: self.board.in_flight(),
            rtt_by_timestamp: None,
        };
        if self.agreed.guided {
            self.take_sack(segment, ack, &mut news);
        }
        let was_recovering = self.recovery.phase.reduces();
        let undone = self.stats.undone;
        if news.acked > 0 {
            self.board.acknowledge(ack, &mut news.delivered);
            self.peer.acknowledge(ack);
            self.after_release(now);
            self.buffer.release(ack);
            self.retries.on_progress();
            news.rtt_by_timestamp = self.sample_rtt(now, segment, &news.delivered);
            if self.cold.watch.is_some() {
                self.tell_remedy_of_progress(now, &news);
            }
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
            if news.new_sack && self.settings.timers.sample_sacked() {
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
                return Outcome::Usual;
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
            self.on_echo(now, &news);
        }
        if news.acked > 0 || news.new_sack || news.lost > 0 {
            // After a recovery that proves spurious the window grows as if there had been none.
            let was_recovering = was_recovering
                && !self.settings.window_rules.grow_at_recovery_end()
                && self.stats.undone == undone;
            self.tell_control(now, &news, was_recovering, ce_marked);
        } else if self.rated {
            self.report_losses(now);
        }
        self.outcome(&news.delivered)
    }

    /// Takes the window (RFC 9293 §3.10.7.4 fifth); whether it is the same as before.
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

    /// New data is acknowledged, whatever the phase.
    #[inline]
    fn after_progress_always(&mut self, now: Instant, restart: bool) {
        self.forget_train();
        if self.rated {
            self.note_write_after_block();
        }
        if self.peer.una() > self.round_end {
            self.round += 1;
            self.round_end = self.nxt;
            if self.settings.mtu_discovery.suspects() {
                self.search_mtu(now);
            }
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

    /// A SYN or FIN may be among what is acknowledged.
    fn outcome(&self, delivered: &Delivered) -> Outcome {
        if self.retries.are_exhausted() {
            Outcome::GaveUp
        } else if delivered.control_bits > 0 && self.stream.is_over() && self.board.is_empty() {
            Outcome::FinAcknowledged
        } else {
            Outcome::Usual
        }
    }
}
