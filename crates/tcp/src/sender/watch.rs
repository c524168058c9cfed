//! The recoveries beyond RFC 6675 at work: what acknowledgments and timers do with
//! [`Watch`](crate::recovery::watch).

use std::ops::Range;

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Retransmit, Sender, output::Trouble, timers::Timer};
use crate::{
    cause::RetransmitCause,
    clock::timestamp,
    policy::RecoveryPace,
    receiver::Receiver,
    recovery::{
        AckSummary, Phase,
        counted_pipe::CountedPipe,
        frto::{Frto, Sight, Verdict},
        pace::{Pace, Told},
        prr::{Progress, Prr},
        rack::{Circumstances, Echo},
        rate_halving::RateHalving,
        tlp::{Answer, Probing},
        window_log::WindowChange,
    },
    remedy::Policy,
    scoreboard::{Limit, Record},
    segment::Segment,
};
use anabranch_congestion::{CongestionControl, Signal, Spurious};

/// The least time that a peer suspected of reneging is given.
const RENEGING_DELAY: Duration = Duration::from_millis(10);

impl<B: Body> Sender<B> {
    /// Whether a segment that acknowledges all must be looked at nevertheless.
    #[cold]
    pub(super) fn tells_of_the_past(&self, segment: &Segment<B>) -> bool {
        self.cold.watch.is_some()
            && (self.probing != Probing::Free || !segment.options.sack_blocks().is_empty())
    }

    /// Duplicates that stand for a loss.
    pub(super) fn dupthresh(&self) -> u32 {
        match &self.cold.watch {
            Some(watch) if watch.remedy.is_some() => watch
                .remedy
                .as_ref()
                .map_or(self.settings.dupthresh, |remedy| remedy.policy.dupthresh()),
            Some(watch) if self.settings.adapts_dupthresh() => watch.reordering.dupthresh(),
            _ => self.settings.dupthresh,
        }
    }

    /// What an acknowledgment means for all of them.
    pub(super) fn look(&mut self, now: Instant, summary: &mut AckSummary) {
        if let Some(watch) = &mut self.cold.watch {
            watch.undo.doubt(false);
        }
        self.look_for_reordering(now, summary);
        self.look_for_duplicates(now, summary);
        self.look_at_the_probe(now, summary);
        self.look_at_the_timeout(now, summary);
        if summary.acked > 0 {
            self.look_at_timestamps(now, summary);
            self.look_for_reneging(now);
        }
        let ended = !summary.prior.phase.repairs_nothing() && self.recovery.phase.repairs_nothing();
        let again = ended
            && self.settings.window_rules.recover_again()
            && (self.board.lost() > 0 || self.board.has_resent());
        if self.is_in_doubt() {
            // What has been marked lost may be late as well.
        } else if self.agreed.racked() {
            summary.lost += self.detect_by_time(now, summary.delivered.fresh, again);
        } else if self.agreed.aged() {
            summary.lost += self.detect_by_age(now, summary.delivered.fresh);
        }
        let recovering = self.recovery.phase.reduces();
        let in_flight = self.board.in_flight();
        if let Some(watch) = &mut self.cold.watch {
            if ended && (again || self.recovery.phase == Phase::Open) {
                watch.rack.on_recovered();
            }
            if !recovering {
                watch.pace = None;
            } else if let Some(pace) = &mut watch.pace {
                pace.on_ack(&Told {
                    progress: Progress {
                        delivered: summary.delivered.fresh,
                        in_flight,
                        safe: summary.acked > 0 && summary.lost == 0,
                    },
                    advances: summary.acked > 0,
                    begins: summary.prior.phase != Phase::Recovery || ended,
                });
            }
        }
    }

    fn look_for_reordering(&mut self, now: Instant, summary: &AckSummary) {
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        let delivered = &summary.delivered;
        if delivered.fresh == 0 {
            return;
        }
        let echo = summary.echo.zip(delivered.again).map(|(echoed, again)| Echo {
            echoed,
            resent: timestamp(again.sent_at),
        });
        let known = (summary.prior.una, self.rtt.min_rtt());
        let fack = watch.rack.fack();
        let behind = watch.rack.on_delivered(now, delivered, known, echo);
        if watch.remedy.is_some() {
            self.tell_remedy_of_lateness(now, summary, (fack, behind));
        }
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        if self.agreed.guided {
            if let Some(octets) = behind {
                let segments = octets.div_ceil(u64::from(self.smss));
                watch.reordering.on_reordered(segments);
            }
        } else if summary.prior.phase == Phase::Open && delivered.once.is_some() {
            watch
                .reordering
                .on_reordered(u64::from(summary.prior.dup_acks) + 1);
        }
    }

    fn look_for_duplicates(&mut self, now: Instant, summary: &AckSummary) {
        let Some(Range { start: left, end: right }) = summary.duplicate.clone() else {
            return;
        };
        self.stats.duplicates_reported = self.stats.duplicates_reported.wrapping_add(1);
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        if watch.tlp.resent_end() == Some(right) {
            // The probe's, which shows no reordering.
            return;
        }
        watch.rack.on_duplicate(self.peer.una(), self.nxt);
        if watch.remedy.is_some() {
            self.tell_remedy_of_spurious(now, right);
        }
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        if watch.undo.on_duplicate(left, right, self.smss) && self.board.lost() == 0 {
            self.take_back(now);
        }
    }

    /// RFC 8985 §7.4.2.
    fn look_at_the_probe(&mut self, now: Instant, summary: &AckSummary) {
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        if self.probing != Probing::UnderWay {
            return;
        }
        let repaired = watch.tlp.on_ack(&Answer {
            ack: self.peer.una(),
            duplicate_end: summary.duplicate.as_ref().map(|range| range.end),
            bare_duplicate: summary.acked == 0 && summary.is_bare,
        });
        self.probing = watch.tlp.probing();
        if repaired && self.recovery.phase == Phase::Open {
            let flight = self.flight_size().max(summary.acked);
            self.reduce(now, Signal::Loss, flight, WindowChange::ProbeRepaired);
        }
    }

    /// RFC 5682.
    fn look_at_the_timeout(&mut self, now: Instant, summary: &AckSummary) {
        let new_data = self.sendable().is_some();
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        let verdict = watch.frto.on_ack(&Sight {
            progress: summary.acked > 0,
            complete: self.peer.una() >= self.recovery.recover,
            original: summary
                .delivered
                .lowest_once()
                .is_some_and(|lowest| lowest < self.recovery.recover),
            duplicate: summary.new_sack || summary.is_duplicate,
            sack: self.agreed.guided,
            new_data,
        });
        if verdict == Verdict::Spurious {
            self.resume();
            self.take_back(now);
        }
    }

    /// RFC 3522 §3.2; new data fills a gap.
    fn look_at_timestamps(&mut self, now: Instant, summary: &AckSummary) {
        if !self.settings.eifel {
            return;
        }
        let (Some(watch), Some(echo)) = (&mut self.cold.watch, summary.echo) else {
            return;
        };
        if !watch.undo.on_progress(echo) {
            return;
        }
        if self.agreed.guided {
            // An original that came late, although it was retransmitted meanwhile.
            let behind = watch.rack.behind(summary.prior.una);
            let segments = behind.div_ceil(u64::from(self.smss));
            watch.reordering.on_reordered(segments);
        }
        if self.board.has_resent() {
            watch
                .undo
                .doubt(self.agreed.guided && self.recovery.phase == Phase::Recovery);
            return;
        }
        // What was marked lost before the path was known to reorder may be late as well.
        watch.rack.on_spurious();
        self.board.forgive();
        let found = self
            .limit()
            .filter(|_| !self.agreed.aged())
            .map_or(0, |limit| self.board.detect(now, &limit).lost);
        if found == 0 {
            self.resume();
            self.take_back(now);
        }
    }

    /// RFC 2018 §8: the peer waits for what it has reported. Unless that is a misunderstanding that
    /// the next acknowledgment clears up, the timer sends it again.
    fn look_for_reneging(&mut self, now: Instant) {
        if self.board.front().is_some_and(Record::is_sacked) {
            self.stats.reneged = self.stats.reneged.wrapping_add(1);
            let at = now.saturating_add((self.rtt.srtt() / 2).max(RENEGING_DELAY));
            if at < self.timer_at {
                self.timer = Timer::Retransmit;
                self.timer_at = at;
                self.note_retransmission_timer();
            }
        }
    }

    /// Nothing is lost: sending goes on as before.
    fn resume(&mut self) {
        if !self.agreed.guided
            && let Some(watch) = &mut self.cold.watch
        {
            let segments = u64::from(self.recovery.dup_acks) + 1;
            watch.reordering.on_reordered(segments);
        }
        self.board.forgive();
        self.retransmit = Retransmit::Nothing;
        self.recovery.open();
        self.board.give_back();
        self.window.validate_recovered();
    }

    /// Whether what is marked lost has to wait for the next acknowledgment.
    pub(super) fn is_in_doubt(&self) -> bool {
        let watch = self.cold.watch.as_ref();
        watch.is_some_and(|watch| watch.undo.is_in_doubt())
    }

    /// The last reduction was spurious (RFC 4015 §3).
    fn take_back(&mut self, now: Instant) {
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        let Some(timeout) = watch.undo.take() else {
            return;
        };
        watch.rack.on_spurious();
        watch.frto = Frto::Off;
        if self.settings.undo {
            watch.pace = None;
            self.window.on_spurious(&Spurious { now, timeout });
            self.stats.undone = self.stats.undone.wrapping_add(1);
        }
    }

    /// RFC 8985 §6.2 steps 4 and 5: marks lost what has been overtaken long enough ago, and
    /// returns how much that is. `fresh` is what the acknowledgment delivered; `again`: a recovery has ended
    /// and begins anew whatever is found.
    pub(super) fn detect_by_time(&mut self, now: Instant, fresh: u64, again: bool) -> u64 {
        let Some(limit) = self.limit() else {
            return 0;
        };
        let found = self.board.detect(now, &limit);
        if (found.lost > 0 || again) && self.recovery.phase.repairs_nothing() {
            self.enter_recovery(now, RetransmitCause::Rack, fresh);
            self.retransmit = Retransmit::FirstLost;
        }
        let at = limit.latest.0.saturating_add(limit.age);
        let ends = self.with_tick(now, at.saturating_since(now));
        self.start_reordering_timer(found.waits.then_some(ends));
        found.lost
    }

    fn limit(&self) -> Option<Limit> {
        self.cold.watch.as_ref()?.rack.limit(&Circumstances {
            recovering: !self.recovery.phase.repairs_nothing(),
            many_sacked: self.board.sacked_segments() >= self.dupthresh(),
            srtt: self.rtt.srtt(),
        })
    }

    /// Whether RACK judges what a timeout loses (RFC 8985 §6.3): the first segment, and what was
    /// sent long enough ago. Not if the peer has reneged: then nothing that it reported counts.
    pub(super) fn lose_by_time(&mut self, now: Instant) -> bool {
        if !self.agreed.racked() || self.board.front().is_some_and(Record::is_sacked) {
            return false;
        }
        let Some(limit) = self.limit() else {
            return false;
        };
        self.board.time_out(now, limit.age);
        true
    }

    /// A mark has reduced the window: where the stack has it so it goes down step by step, with what this acknowledgment
    /// delivered as the first.
    pub(super) fn watch_reduction(&mut self, summary: &AckSummary) {
        let paced = self.settings.window_rules.pace_at_marks()
            && !self.window.control().wants().grows_under_marks
            && self.settings.recovery_pace == RecoveryPace::Prr
            && self.agreed.guided
            && self.window.ssthresh().is_some();
        let in_flight = self.board.in_flight();
        let (cwnd, smss) = (self.window.cwnd().get(), self.smss);
        let delivered = summary.delivered.fresh;
        let Some(watch) = self.cold.watch.as_mut().filter(|_| paced) else {
            return;
        };
        let mut prr = Prr::new(in_flight + delivered, cwnd, in_flight, smss);
        prr.on_ack(&Progress {
            delivered,
            in_flight,
            safe: summary.acked > 0 && summary.lost == 0,
        });
        watch.pace = Some(Pace::Prr(prr));
        self.recovery.phase = Phase::Reduction;
    }

    /// A fast recovery has begun; `reduced`: the window was reduced for it. If not, `goes_on`: it is on its way down.
    /// `fresh` is what the acknowledgment delivered.
    pub(super) fn watch_recovery(&mut self, (reduced, goes_on): (bool, bool), fresh: u64) {
        let settings = &self.settings;
        let pace = settings.recovery_pace;
        let paced = self.agreed.guided && self.window.ssthresh().is_some();
        let dupthresh = self.dupthresh();
        // Of those that a recovery before this one has retransmitted.
        let resent = if settings.window_rules.recover_again() {
            self.board.resent_segments()
        } else {
            0
        };
        let outstanding = self.nxt.since(self.peer.una());
        let in_flight = self.board.in_flight();
        let cwnd = self.window.cwnd().get();
        let smss = self.smss;
        let recover_fs = outstanding.saturating_sub(self.board.sacked()) + fresh;
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        watch.tlp.cancel();
        self.probing = watch.tlp.probing();
        if reduced {
            match resent {
                0 => watch.undo.begin(self.peer.una(), self.nxt, false),
                _ => watch.undo.begin_again(self.peer.una(), self.nxt, resent),
            }
        }
        if goes_on && !reduced {
            return;
        }
        watch.pace = match pace {
            _ if !paced => None,
            RecoveryPace::Pipe => None,
            RecoveryPace::Prr => Some(Pace::Prr(Prr::new(recover_fs, cwnd, in_flight, smss))),
            RecoveryPace::RateHalving => {
                Some(Pace::Halving(RateHalving::new(recover_fs, cwnd, smss)))
            }
            RecoveryPace::CountedPipe => Some(Pace::Counted(CountedPipe::new(
                outstanding,
                dupthresh,
                smss,
            ))),
        };
    }

    /// The retransmission timer has expired; before, the sender stood at `prior`.
    pub(super) fn watch_timeout(&mut self, now: Instant, prior: Phase) {
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        watch.tlp.cancel();
        self.probing = watch.tlp.probing();
        watch.pace = None;
        if self.settings.adapts_dupthresh()
            && self.board.sacked_segments() >= self.settings.dupthresh
        {
            watch.reordering.on_timeout();
        }
        if self.retries.expiries() == 1 && watch.remedy.is_some() {
            self.tell_remedy_of_timeout(now);
        }
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        // What a recovery has reduced already stays at stake, with the retransmissions that began it: the
        // answer to one of those does not prove the recovery spurious.
        let reduced = prior.reduces() && !self.settings.window_rules.timeout_reduces_again();
        if self.retries.expiries() == 1 && !reduced {
            watch.undo.begin(self.peer.una(), self.nxt, true);
        }
        // RFC 5682 §2.1 step 1: not within a recovery, which has sent too much again to tell.
        watch.frto = if self.settings.frto && (prior.repairs_nothing() || self.retries.expiries() > 1) {
            Frto::First
        } else {
            Frto::Off
        };
    }

    /// A segment of `len` is retransmitted.
    pub(super) fn note_retransmission(&mut self, now: Instant, len: u32, cause: RetransmitCause) {
        if let Some(watch) = &mut self.cold.watch {
            if cause != RetransmitCause::Tlp {
                watch.undo.on_retransmission(timestamp(now));
            }
            if let Some(pace) = &mut watch.pace {
                pace.on_sent(len);
            }
        }
    }

    /// A new segment of `len` leaves during a recovery.
    #[cold]
    pub(super) fn note_sent_in_recovery(&mut self, len: u32) {
        if let Some(watch) = &mut self.cold.watch
            && let Some(pace) = &mut watch.pace
        {
            pace.on_sent(len);
        }
    }

    /// What may be in flight while something is amiss.
    pub(super) fn window_in_trouble(&self, cwnd: u64) -> u64 {
        match &self.cold.watch {
            Some(watch) if self.recovery.phase.reduces() => watch.pace.as_ref().map_or_else(
                || self.recovery.window(cwnd, self.smss),
                |pace| pace.window(self.board.in_flight(), cwnd),
            ),
            _ => self.recovery.window(cwnd, self.smss),
        }
    }

    /// RFC 5682 §2.1 step 2b: new data leaves, and nothing else, until the next acknowledgment.
    /// `None` unless that step is due.
    pub(super) fn forward(
        &mut self,
        now: Instant,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Trouble> {
        let len = self.sendable();
        let Frto::Second { new } = &mut self.cold.watch.as_mut()?.frto else {
            return None;
        };
        match len.filter(|_| *new > 0) {
            Some(len) => {
                *new -= 1;
                Some(Trouble::Leaves(self.transmit_new(now, len, rcv, place)))
            }
            None => Some(Trouble::Waits),
        }
    }
}
