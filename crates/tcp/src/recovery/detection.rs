//! Loss detection, and fast recovery from its beginning to its end (RFC 5681 §3.2, RFC 6582, RFC
//! 6675, RFC 8985, the study's timer rule); reductions for ECN marks (RFC 3168 §6.1.2).

use anabranch_congestion::{
    CongestionControl, Recovered, Signal, TimerLoss, params::ReductionBase,
};
use anabranch_core::units::{Bytes, Instant};

use super::{
    AckSummary, Detection, Pending, Phase, Recovery, Scope,
    counted_pipe::CountedPipe,
    dsack,
    dupthresh::{self, Waiting},
    pace::{Pace, RecoveryAck},
    prr::{Progress, Prr},
    rack::Circumstances,
    rate_halving::RateHalving,
    timers::with_tick,
};
use crate::{
    cause::RetransmitCause,
    policy::{self, RecoveryPace},
    refusal::Refusal,
    scoreboard::{Limit, Record},
    window_log::WindowChange,
};
use anabranch_wire::{segment::SackBlock, seq::Seq};

/// The flight size from which the reduction at the beginning of a recovery starts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base {
    /// FlightSize.
    Flight,
    /// FlightSize, with this upper bound.
    AtMost(u64),
    /// This window instead of FlightSize; cwnd should not exceed it.
    Window(u64),
}

/// Events of an acknowledgment, in their order.
impl Recovery {
    /// Updates the scoreboard by SACK blocks and by the cumulative acknowledgment of `ack`. `first`
    /// is the first number of the stream.
    pub(crate) fn on_ack(
        &mut self,
        scope: &mut Scope<'_>,
        blocks: &[SackBlock],
        ack: Seq,
        first: Seq,
        summary: &mut AckSummary,
    ) {
        if self.reports.is_sack() {
            self.take_sack(scope, blocks, ack, first, summary);
        }
        if summary.acked > 0 {
            self.board.acknowledge(ack, &mut summary.delivered);
        }
    }

    /// Processes the blocks of a SACK option (RFC 2018) and the duplicate that the first may
    /// report.
    fn take_sack(
        &mut self,
        scope: &mut Scope<'_>,
        blocks: &[SackBlock],
        ack: Seq,
        first: Seq,
        summary: &mut AckSummary,
    ) {
        if self.extensions.is_some() {
            summary.dsack = dsack::reported(blocks, ack).map(|(left, right)| left..right);
        }
        if overlap(blocks) {
            self.refuse_sack(scope);
        }
        for block in blocks {
            let left = ack.near(block.left);
            let right = ack.near(block.right);
            let across = left < ack && right > ack;
            if left >= right || right > scope.nxt || left < first || across {
                self.refuse_sack(scope);
                summary.dsack = None;
            } else if left >= ack {
                // Other blocks are duplicates (RFC 2883), or older than the cumulative
                // acknowledgment.
                summary.new_sack |= self.board.sack(left, right, &mut summary.delivered);
            }
        }
    }

    #[cold]
    fn refuse_sack(&mut self, scope: &mut Scope<'_>) {
        let reason = Refusal::SackBlock;
        scope.stats.malformed += u64::from(reason.is_malformed());
        self.refused.get_or_insert_default().count(reason);
    }

    /// Handles an acknowledgment of new data. Returns whether the retransmission timer restarts.
    pub(crate) fn on_progress(&mut self, scope: &mut Scope<'_>, summary: &mut AckSummary) -> bool {
        self.remedy_on_progress(scope, summary);
        if self.reports.is_counted() {
            self.count_progress(scope, summary);
        }
        let restarts = self.advance(scope, summary);
        self.note_counted(scope);
        restarts
    }

    /// Moves on in the phase, or to the next.
    fn advance(&mut self, scope: &mut Scope<'_>, summary: &mut AckSummary) -> bool {
        let complete = scope.una >= self.state.recover;
        match self.state.phase {
            Phase::Open | Phase::Reduction => {
                self.state.dup_acks = 0;
                self.state.limited = 0;
                if scope.una > self.state.reduced {
                    self.state.phase = Phase::Open;
                }
                if summary.new_sack {
                    // RFC 6675 §5: the acknowledgment is also a duplicate, and may show further
                    // losses.
                    self.state.dup_acks = 1;
                    summary.lost += self.detect_by_sack(scope, summary.delivered.fresh);
                }
                true
            }
            Phase::Loss => {
                self.state.dup_acks = 0;
                if complete {
                    self.state.open();
                    self.board.give_back();
                    scope.window.on_recovered(scope.now, None);
                }
                true
            }
            Phase::Recovery if self.reports.is_counted() && scope.una <= self.state.recover => {
                self.advance_counted(scope, summary)
            }
            Phase::Recovery if complete || scope.settings.recovery == policy::Recovery::Reno => {
                self.state.open();
                self.board.give_back();
                let least = u64::from(scope.smss);
                let left = self.pace().and_then(Pace::left);
                let recovered = Recovered {
                    now: scope.now,
                    in_flight: Bytes::new(self.board.in_flight()),
                    cwnd_limit: left.map(|left| Bytes::new(left.max(least))),
                };
                scope.window.on_recovered(scope.now, Some(&recovered));
                true
            }
            Phase::Recovery if self.reports.is_sack() => true,
            Phase::Recovery => {
                // RFC 6582 §3.2 step 3: a partial acknowledgment.
                self.state.dup_acks = 0;
                self.state.deflate(summary.acked, scope.smss);
                self.board.log_loss(0);
                // A timer rule may have retransmitted it already.
                if self
                    .board
                    .front()
                    .is_some_and(|front| !front.is_retransmitted())
                {
                    self.pending = Pending::First(RetransmitCause::PartialAck);
                }
                self.state.partial_acks == 1 || scope.settings.partial_ack_restarts_timer
            }
        }
    }

    /// Handles a duplicate acknowledgment, as the active recovery defines it.
    pub(crate) fn on_duplicate(&mut self, scope: &mut Scope<'_>, summary: &mut AckSummary) {
        self.state.dup_acks = self.state.dup_acks.saturating_add(1);
        if self.reports.is_counted() {
            self.count_duplicate(scope, summary);
        }
        if self.reports.is_sack() {
            if self.state.phase.repairs_nothing() {
                summary.lost += self.detect_by_sack(scope, summary.delivered.fresh);
            }
            return;
        }
        if self.state.phase == Phase::Recovery {
            if !self.reports.is_counted() {
                self.state.inflate(scope.smss);
            }
            return;
        }
        let waiting = Waiting {
            una: scope.una,
            dupthresh: self.dupthresh(scope.settings),
            timer_rule: self.timer_rule.is_some(),
        };
        if dupthresh::reached(&self.state, &waiting, scope.settings) {
            // RFC 5681 §3.2 steps 2 and 3.
            self.enter(
                scope,
                RetransmitCause::DupThresh,
                summary.counted,
                Base::Flight,
            );
            if self.reports.is_counted() {
                self.lose_first(RetransmitCause::DupThresh, summary);
            } else {
                self.state.inflate_at_entry(scope.smss);
            }
            self.pending = Pending::First(RetransmitCause::DupThresh);
        }
    }

    /// Detects losses and spurious retransmissions, after SND.UNA, round-trip times and timers are
    /// up to date.
    pub(crate) fn detect_losses(&mut self, scope: &mut Scope<'_>, summary: &mut AckSummary) {
        if summary.new_sack && self.state.phase == Phase::Recovery {
            summary.lost += self.update_lost(scope);
        }
        if self.extensions.is_some() {
            self.run_extensions(scope, summary);
        }
        if self.timer_rule.is_some() {
            self.apply_timer_rule(scope, summary);
        }
    }

    /// The algorithms beyond RFC 6675.
    fn run_extensions(&mut self, scope: &mut Scope<'_>, summary: &mut AckSummary) {
        if let Some(extensions) = &mut self.extensions {
            extensions.undo.doubt(false);
        }
        self.on_delivered(scope, summary);
        self.on_dsack(scope, summary);
        self.on_probe_ack(scope, summary);
        let was_spurious = self.on_frto_ack(scope, summary);
        if summary.acked > 0 {
            self.detect_by_timestamps(scope, summary);
            self.check_reneging(scope);
        }
        let ended = !summary.prior.phase.repairs_nothing() && self.state.phase.repairs_nothing();
        let again = ended
            && scope.settings.window_rules.recover_again()
            && (self.board.lost() > 0 || (self.board.has_resent() && !was_spurious));
        // While the reduction may be spurious, segments marked lost may only be late.
        if !self.is_in_doubt() {
            summary.lost += match self.detection {
                Detection::Duplicates => 0,
                Detection::Rack => self.detect_by_time(scope, summary.delivered.fresh, again),
                Detection::Age => self.detect_by_age(scope, summary.delivered.fresh),
            };
        }
        let (reduces, in_flight) = (self.state.phase.reduces(), self.board.in_flight());
        let counts = self.reports.is_counted();
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        if ended && (again || self.state.phase == Phase::Open) {
            extensions.rack.on_recovered();
        }
        if !reduces {
            extensions.pace = None;
        } else if let Some(pace) = extensions.pace.as_mut().filter(|_| !summary.is_late) {
            pace.on_ack(&RecoveryAck {
                progress: progress(summary, in_flight, counts),
                advances: summary.acked > 0,
                begins: summary.prior.phase != Phase::Recovery || ended,
            });
        }
    }

    /// Handles an echoed CE mark (RFC 3168 §6.1.2): one reduction per round trip. Returns whether
    /// this mark reduces the window.
    pub(crate) fn on_mark(&mut self, scope: &mut Scope<'_>, summary: &AckSummary) -> bool {
        // The segment with CWR is the first after `reduced`.
        if scope.una <= self.state.reduced || self.state.phase != Phase::Open {
            return false;
        }
        scope.stats.ecn_reductions += 1;
        let flight = self.flight_size(scope);
        self.reduce(scope, Signal::EcnCe, flight, WindowChange::Mark);
        self.state.reduced = scope.nxt;
        self.begin_reduction(scope, summary);
        true
    }

    /// Handles a report that a segment was lost and repaired by the path (RFC 9265 §3). The window
    /// is reduced as for any loss, once per round trip, and not during a recovery. Returns whether
    /// it was reduced.
    pub(crate) fn on_hidden_loss(&mut self, scope: &mut Scope<'_>) -> bool {
        if scope.una <= self.state.reduced || self.state.phase != Phase::Open {
            return false;
        }
        let flight = self.flight_size(scope);
        self.reduce(scope, Signal::Loss, flight, WindowChange::Repaired);
        self.state.reduced = scope.nxt;
        true
    }

    /// Reduces the window for an event outside of any recovery. The undo state is discarded,
    /// because the control would undo the wrong reduction.
    pub(super) fn reduce(
        &mut self,
        scope: &mut Scope<'_>,
        signal: Signal,
        flight: u64,
        change: WindowChange,
    ) {
        let srtt = scope.rtt.srtt();
        scope.window.reduce(scope.now, signal, flight, srtt, change);
        if let Some(extensions) = &mut self.extensions {
            extensions.undo.take();
        }
    }
}

/// Loss detection.
impl Recovery {
    /// RFC 6675 §5 (1), (2) and (4): begins a recovery if SACK shows a loss or DupThresh
    /// duplicates have arrived. `delivered` is the
    /// number of octets the acknowledgment delivered. Returns the octets newly marked lost.
    fn detect_by_sack(&mut self, scope: &mut Scope<'_>, delivered: u64) -> u64 {
        self.remedy_on_duplicate(scope);
        // RACK detects losses by time instead.
        if !self.reports.is_sack()
            || self.detection == Detection::Rack
            || scope.una < self.state.recover
        {
            return 0;
        }
        let dupthresh = self.dupthresh(scope.settings);
        let edge = self.board.lost_below(dupthresh, scope.smss);
        let lost = edge.is_some_and(|edge| edge > scope.una);
        if !lost && self.state.dup_acks < dupthresh {
            return 0;
        }
        let cause = RetransmitCause::DupThresh;
        let base = self.remedy_on_loss();
        self.enter(scope, cause, delivered, base);
        let before = self.board.lost();
        self.board.mark_lost(0, cause);
        self.update_lost(scope);
        // (4.3): the first segment is sent regardless of the pipe.
        self.pending = Pending::First(cause);
        self.board.lost() - before
    }

    /// Update (RFC 6675 §4): marks lost the segments that SACK blocks show to be lost.
    fn update_lost(&mut self, scope: &Scope<'_>) -> u64 {
        if !self.reports.is_sack() || self.detection == Detection::Rack {
            return 0;
        }
        let dupthresh = self.dupthresh(scope.settings);
        match self.board.lost_below(dupthresh, scope.smss) {
            Some(edge) => self.board.mark_lost_below(edge),
            None => 0,
        }
    }

    /// RFC 8985 §6.2 steps 4 and 5: marks lost the segments overtaken long enough ago, and returns
    /// their octets. `delivered` is the number of octets the acknowledgment delivered. With
    /// `again`, a recovery has just ended and the next begins even if no loss is found.
    pub(super) fn detect_by_time(
        &mut self,
        scope: &mut Scope<'_>,
        delivered: u64,
        again: bool,
    ) -> u64 {
        let Some(limit) = self.rack_limit(scope) else {
            return 0;
        };
        let now = scope.now;
        let found = self.board.detect(now, &limit);
        if (found.lost > 0 || again) && self.state.phase.repairs_nothing() {
            self.enter(scope, RetransmitCause::Rack, delivered, Base::Flight);
            self.pending = Pending::FirstLost;
        }
        let at = limit.latest.0.saturating_add(limit.age);
        let ends = with_tick(now, at.saturating_since(now), scope.settings);
        self.start_reordering_timer(found.waits.then_some(ends));
        found.lost
    }

    pub(super) fn rack_limit(&self, scope: &Scope<'_>) -> Option<Limit> {
        self.extensions.as_ref()?.rack.limit(&Circumstances {
            recovering: !self.state.phase.repairs_nothing(),
            many_sacked: self.board.sacked_segments() >= self.dupthresh(scope.settings),
            srtt: scope.rtt.srtt(),
        })
    }

    /// Marks lost the segments that RACK selects at a timeout (RFC 8985 §6.3): the first segment,
    /// and all sent long enough ago. Returns `false` if RACK does not decide: it is not in use,
    /// nothing has been delivered yet, or the peer has reneged, so that none of its SACK
    /// information counts.
    pub(super) fn lose_by_time(&mut self, scope: &Scope<'_>) -> bool {
        if self.detection != Detection::Rack || self.board.front().is_some_and(Record::is_sacked) {
            return false;
        }
        let limit = self.rack_limit(scope);
        if let Some(limit) = &limit {
            self.board.time_out(scope.now, limit.age);
        }
        limit.is_some()
    }

    /// Marks lost the segments older than the remedy's lifetime, and returns their octets.
    /// `delivered` is the number of octets the acknowledgment delivered.
    pub(super) fn detect_by_age(&mut self, scope: &mut Scope<'_>, delivered: u64) -> u64 {
        let Some(lifetime) = self.lifetime() else {
            return 0;
        };
        // A segment is lost one lifetime after it was sent, which is when the timer ends.
        let age = lifetime.as_picos().saturating_sub(1);
        let before = Instant::from_picos(scope.now.as_picos().saturating_sub(age));
        let expired = self.board.expire(before, before);
        let next = expired
            .next
            .map(|sent| sent.saturating_add(lifetime).max(scope.now));
        if expired.lost == 0 {
            self.start_reordering_timer(next);
            return 0;
        }
        let memorized = expired
            .latest
            .is_none_or(|start| start < self.state.recover);
        if self.state.phase == Phase::Open || !memorized {
            if self.state.phase != Phase::Loss {
                let window = expired
                    .latest
                    .and_then(|start| self.remedy_window_of(start));
                let base = window.map_or(Base::Flight, Base::AtMost);
                self.enter(scope, RetransmitCause::TimerRule, delivered, base);
            }
            self.remedy_on_recovery();
        } else if self.remedy_on_overdue(scope, expired.segments)
            && self.state.phase == Phase::Recovery
        {
            self.on_timeout(scope);
            return expired.lost;
        }
        self.pending = Pending::FirstLost;
        self.start_reordering_timer(next);
        expired.lost
    }

    /// Applies the study's timer rule; see [`timer_rule`](super::timer_rule).
    fn apply_timer_rule(&mut self, scope: &mut Scope<'_>, summary: &mut AckSummary) {
        let Some(rule) = &mut self.timer_rule else {
            return;
        };
        if summary.acked > 0 || summary.new_sack {
            let duplicates =
                !self.reports.is_sack() && summary.prior.dup_acks > 0 && summary.acked > 0;
            rule.on_delivered(scope.now, &summary.delivered, duplicates);
        }
        let Some((once, again)) = rule.limits(scope.now) else {
            return;
        };
        let expired = self.board.expire(once, again);
        if expired.lost == 0 {
            return;
        }
        if expired.retransmissions {
            rule.back_off();
        }
        summary.lost += expired.lost;
        let in_flight = self.flight_size(scope);
        match self.state.phase {
            Phase::Open | Phase::Reduction => {
                let dup_acks = self.state.dup_acks;
                let delivered = summary.delivered.fresh;
                self.enter(scope, RetransmitCause::TimerRule, delivered, Base::Flight);
                if !self.reports.is_sack() {
                    self.state.dup_acks = dup_acks;
                    if !self.reports.is_counted() {
                        self.state.inflate_at_entry(scope.smss);
                    }
                }
                self.pending = Pending::FirstLost;
            }
            Phase::Recovery => {
                scope.stats.timer_losses += 1;
                scope.window.on_timer_loss(&TimerLoss {
                    now: scope.now,
                    in_flight: Bytes::new(in_flight),
                });
                self.state.restart(scope.nxt);
                self.note_counted(scope);
                self.pending = Pending::FirstLost;
            }
            Phase::Loss => {}
        }
    }
}

/// The beginning of a recovery.
impl Recovery {
    /// Begins fast recovery, after an acknowledgment of `delivered` octets. cwnd is reduced, unless
    /// a mark or a hidden loss has reduced it in the same round trip (RFC 3168 §6.1.2), or only an
    /// MTU probe is lost.
    fn enter(&mut self, scope: &mut Scope<'_>, cause: RetransmitCause, delivered: u64, base: Base) {
        let now = scope.now;
        scope.stats.fast_recoveries += 1;
        let before = scope.window.state();
        let cwnd = scope.window.cwnd().get();
        let continues = self.state.phase == Phase::Reduction;
        let probe_lost = self.on_lost_mtu_probe(scope);
        let reduces = scope.una > self.state.reduced && !probe_lost;
        if reduces {
            let (flight, srtt) = (self.flight_size(scope), scope.rtt.srtt());
            let flight = scope.window.validated_flight(now, srtt, flight, true);
            let flight = match base {
                Base::Flight => flight,
                Base::AtMost(most) => flight.min(most),
                Base::Window(window) => {
                    scope.window.bound(now, window, self.board.in_flight());
                    window
                }
            };
            scope.window.on_congestion(now, Signal::Loss, flight);
        }
        if !self.reports.is_sack() && !self.reports.is_counted() {
            self.board.log_loss(0);
        }
        self.state.enter(scope.nxt);
        self.board.begin_recovery();
        let change = WindowChange::Recovery(cause);
        scope.window.note_change(now, change, before);
        self.begin_undo(scope, reduces);
        if reduces || !continues {
            self.begin_pace(scope, delivered, cwnd);
        }
    }

    /// Begins the undo state of this recovery. `reduces`: the window was reduced for it.
    fn begin_undo(&mut self, scope: &Scope<'_>, reduces: bool) {
        // Segments in flight that an earlier recovery has retransmitted.
        let resent = if scope.settings.window_rules.recover_again() {
            self.board.resent_segments()
        } else {
            0
        };
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        extensions.tlp.cancel();
        self.probing = extensions.tlp.probing();
        if reduces {
            match resent {
                0 => extensions.undo.begin(scope.una, scope.nxt, false),
                _ => extensions.undo.begin_again(scope.una, scope.nxt, resent),
            }
        }
    }

    /// Sets the limit on transmission during the recovery, after an acknowledgment of `delivered`
    /// octets. `prior` is cwnd before the reduction.
    fn begin_pace(&mut self, scope: &Scope<'_>, delivered: u64, prior: u64) {
        let dupthresh = self.dupthresh(scope.settings);
        let outstanding = scope.nxt.since(scope.una);
        let in_flight = self.board.in_flight();
        let (cwnd, smss) = (scope.window.cwnd().get(), scope.smss);
        let recover_fs = if scope.settings.reduce_from == ReductionBase::Cwnd {
            // Measured of Linux 6.12: the recovery keeps the share of the delivered data that the
            // reduction keeps of cwnd, whatever the data in flight. With a cwnd of 20 segments,
            // ssthresh 9 and 251 in flight, Westwood+ sends about one for two delivered.
            prior
        } else {
            let reported = self.board.sacked() + self.board.unnamed();
            outstanding.saturating_sub(reported) + delivered
        };
        let paced = (self.reports.is_sack() || self.reports.is_counted())
            && scope.window.ssthresh().is_some();
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        extensions.pace = match scope.settings.recovery_pace {
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

    /// Begins a gradual reduction after a mark, with
    /// [`WindowRules::pace_at_marks`](crate::policy::WindowRules::pace_at_marks). The first step
    /// uses the data that this acknowledgment delivered.
    fn begin_reduction(&mut self, scope: &Scope<'_>, summary: &AckSummary) {
        let settings = scope.settings;
        let paced = settings.window_rules.pace_at_marks()
            && !scope.window.control().wants().grows_under_marks
            && settings.recovery_pace == RecoveryPace::Prr
            && (self.reports.is_sack() || self.reports.is_counted())
            && scope.window.ssthresh().is_some();
        let in_flight = self.board.in_flight();
        let (cwnd, smss) = (scope.window.cwnd().get(), scope.smss);
        let Some(extensions) = self.extensions.as_mut().filter(|_| paced) else {
            return;
        };
        let progress = progress(summary, in_flight, self.reports.is_counted());
        let mut prr = Prr::new(in_flight + progress.delivered, cwnd, in_flight, smss);
        prr.on_ack(&progress);
        extensions.pace = Some(Pace::Prr(prr));
        self.state.phase = Phase::Reduction;
    }

    /// Handles a lost probe of the path MTU at the beginning of a recovery. Returns whether only
    /// the probe is missing, whose loss does not indicate congestion (RFC 4821 §7.6).
    pub(super) fn on_lost_mtu_probe(&mut self, scope: &mut Scope<'_>) -> bool {
        let Some(probe) = scope.mtu.take_lost_probe() else {
            return false;
        };
        let lost = self.board.lost();
        self.split_segments(scope);
        scope.una == probe.start && lost <= probe.end.since(probe.start)
    }

    /// Splits outstanding segments larger than a full segment and marks the pieces lost; cwnd stays
    /// (RFC 1191 §6.4). Returns whether there are any.
    pub(crate) fn split_segments(&mut self, scope: &mut Scope<'_>) -> bool {
        let cut = self.board.refuse_above(scope.smss);
        if cut.is_empty() {
            return false;
        }
        for (number, pieces) in cut {
            scope.window.split(number, pieces);
        }
        self.restart_timer(scope.now, scope.rtt, scope.settings);
        true
    }

    pub(super) fn pace(&self) -> Option<&Pace> {
        self.extensions.as_ref()?.pace.as_ref()
    }

    pub(super) fn pace_mut(&mut self) -> Option<&mut Pace> {
        self.extensions.as_mut()?.pace.as_mut()
    }
}

/// Progress of the recovery by this acknowledgment.
fn progress(summary: &AckSummary, in_flight: u64, counts: bool) -> Progress {
    Progress {
        delivered: if counts {
            summary.counted
        } else {
            summary.delivered.fresh
        },
        in_flight,
        safe: summary.acked > 0 && summary.lost == 0,
    }
}

/// Whether blocks of one option overlap, except a first block that reports a duplicate within the
/// second (RFC 2883 §4). The blocks are processed all the same, because each may be right.
fn overlap(blocks: &[SackBlock]) -> bool {
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
