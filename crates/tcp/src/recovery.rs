//! Loss recovery: loss detection, the choice of the next retransmission, and the limit on
//! transmission during a recovery.
//!
//! [`Recovery`] owns the scoreboard, the timers and the algorithms: NewReno and SACK-based
//! recovery, RACK-TLP, PRR, F-RTO, Eifel detection, and the remedies for reordering. The congestion
//! control owns cwnd. Recovery changes cwnd only by the events of [`CongestionWindow`], and
//! inflates or limits it during a recovery ([`Recovery::window`]).

pub mod counted_deliveries;
pub mod counted_pipe;
mod detection;
pub mod dsack;
pub mod dupthresh;
mod extensions;
pub mod frto;
pub mod limited_transmit;
pub mod new_reno;
pub mod pace;
pub mod prr;
pub mod rack;
pub mod rate_halving;
mod remedied;
pub mod reordering;
mod retransmission;
pub mod sack;
mod spurious;
pub mod state;
pub mod timer_rule;
mod timers;
pub mod tlp;
pub mod undo;

use std::ops::Range;

use anabranch_congestion::TimerRule;
use anabranch_core::units::{Bytes, Duration, Instant};

pub use self::state::{Phase, RecoveryState};
use self::{extensions::Extensions, timer_rule::TimerRuleState, tlp::Probing};
pub(crate) use self::{
    retransmission::{Allowance, NewSegment, Pending, Repair, Retransmission},
    timers::Timer,
};
use crate::{
    congestion_state::CongestionState,
    congestion_window::CongestionWindow,
    mtu_search::MtuSearch,
    policy,
    refusal::Refusals,
    retries::Retries,
    rtt::RttEstimator,
    scoreboard::{Delivered, Marks, Scoreboard},
    settings::Settings,
    stats::SenderStats,
};
use anabranch_wire::{segment::SackBlock, seq::Seq};

/// State of the sender before an acknowledgment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prior {
    pub(crate) phase: Phase,
    /// Duplicates since the last acknowledgment of new data.
    pub(crate) dup_acks: u32,
    pub(crate) una: Seq,
    pub(crate) in_flight: u64,
}

/// Summary of an acknowledgment.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct AckSummary {
    pub(crate) prior: Prior,
    pub(crate) delivered: Delivered,
    /// Octets newly acknowledged cumulatively; SYN and FIN count here.
    pub(crate) acked: u64,
    /// Octets newly marked lost.
    pub(crate) lost: u64,
    /// Octets that it delivers, if deliveries are counted without SACK.
    pub(crate) counted: u64,
    /// A SACK block covers data not SACKed before.
    pub(crate) new_sack: bool,
    /// The octets that its first block reports as a duplicate (RFC 2883).
    pub(crate) dsack: Option<Range<Seq>>,
    /// It is a duplicate acknowledgment (RFC 5681 §2).
    pub(crate) is_duplicate: bool,
    /// It has neither payload nor SACK blocks.
    pub(crate) is_bare: bool,
    /// A later acknowledgment has overtaken it.
    pub(crate) is_late: bool,
    /// New data could be sent.
    pub(crate) new_data: bool,
    /// The echoed timestamp, if timestamps are in use.
    pub(crate) echo: Option<u32>,
    /// Round-trip time by timestamp, if retransmissions prevent any other measurement.
    pub(crate) rtt_by_timestamp: Option<Duration>,
}

impl AckSummary {
    /// An acknowledgment of `acked` octets.
    pub(crate) const fn new(acked: u64, prior: Prior) -> Self {
        Self {
            prior,
            delivered: Delivered::NOTHING,
            acked,
            lost: 0,
            counted: 0,
            new_sack: false,
            dsack: None,
            is_duplicate: false,
            is_bare: false,
            is_late: false,
            new_data: false,
            echo: None,
            rtt_by_timestamp: None,
        }
    }
}

/// State of the sender that loss recovery reads, and the parts that it changes.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) now: Instant,
    pub(crate) una: Seq,
    pub(crate) nxt: Seq,
    /// Octets of a full segment; fewer once timeouts indicate a black hole.
    pub(crate) smss: u32,
    pub(crate) settings: &'a Settings,
    pub(crate) rtt: &'a mut RttEstimator,
    pub(crate) window: &'a mut CongestionWindow,
    pub(crate) mtu: &'a mut MtuSearch,
    pub(crate) stats: &'a mut SenderStats,
    /// Set by a timeout of the retransmission timer.
    pub(crate) timed_out: bool,
}

/// Algorithm that marks segments lost before a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detection {
    /// Duplicate acknowledgments, with or without SACK (RFC 5681, RFC 6675).
    Duplicates,
    /// RACK (RFC 8985).
    Rack,
    /// The age of segments, with a limit set by a remedy.
    Age,
}

/// What the peer reports of data beyond a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reports {
    /// SACK guides the recovery (RFC 6675).
    Sack,
    /// Duplicate acknowledgments count as deliveries ([`counted_deliveries`]).
    Counted,
    /// Nothing is concluded from their number but a loss.
    Cumulative,
}

impl Reports {
    const fn is_sack(self) -> bool {
        matches!(self, Self::Sack)
    }

    const fn is_counted(self) -> bool {
        matches!(self, Self::Counted)
    }
}

/// Loss recovery of a connection.
#[derive(Debug)]
pub(crate) struct Recovery {
    state: RecoveryState,
    board: Scoreboard,
    /// A transmission that is due regardless of the window.
    pending: Pending,
    detection: Detection,
    reports: Reports,
    /// Tail loss probes are in use (RFC 8985 §7).
    tlp: bool,
    /// A remedy for reordering needs every acknowledgment and every segment, or timers count ticks.
    /// Both disable the fast path.
    needs_all: bool,
    /// State of the last probe (RFC 8985 §7.3, §7.4).
    probing: Probing,
    timer: Timer,
    timer_at: Instant,
    /// When the retransmission timer expires; another timer may run before it.
    rto_at: Instant,
    pub(crate) retries: Retries,
    timer_rule: Option<Box<TimerRuleState>>,
    extensions: Option<Box<Extensions>>,
    /// Counts of SACK blocks that were refused.
    refused: Option<Box<Refusals>>,
}

impl Recovery {
    /// Creates the state before any transmission; `iss` is the initial sequence number.
    pub(crate) fn new(settings: &Settings, iss: Seq) -> Self {
        Self {
            state: RecoveryState::new(iss),
            board: Scoreboard::default(),
            pending: Pending::Nothing,
            detection: Detection::Duplicates,
            reports: Reports::Cumulative,
            tlp: false,
            needs_all: settings.timers.count_ticks(),
            probing: Probing::Free,
            timer: Timer::Off,
            timer_at: Instant::NEVER,
            rto_at: Instant::NEVER,
            retries: Retries::new(),
            timer_rule: None,
            extensions: None,
            refused: None,
        }
    }

    /// Keeps every loss for [`Self::report_losses`].
    pub(crate) fn keep_loss_log(&mut self) {
        self.board.keep_loss_log();
    }

    /// Detects losses by `rule` as well
    /// ([`Config::timer_rule`](anabranch_congestion::Config::timer_rule)).
    pub(crate) fn find_losses_by(&mut self, rule: Option<TimerRule>, una: Seq) {
        self.timer_rule = rule.map(|rule| Box::new(TimerRuleState::new(rule, una)));
    }

    /// Applies the result of the SACK negotiation.
    pub(crate) fn agree(&mut self, settings: &Settings, sack: bool, first_octet: Seq) {
        self.reports = if sack && settings.recovery.needs_sack() {
            Reports::Sack
        } else if settings.recovery_pace == policy::RecoveryPace::Prr {
            Reports::Counted
        } else {
            Reports::Cumulative
        };
        let rack = self.reports.is_sack() && settings.recovery == policy::Recovery::Rack;
        if rack {
            self.detection = Detection::Rack;
        }
        self.tlp = rack && settings.tlp;
        self.extensions = Extensions::new(settings, first_octet);
        self.begin_remedy();
    }

    /// Suspends tail loss probes, or permits them as agreed: before the peer's address is
    /// confirmed, a timeout repeats the SYN-ACK and nothing else.
    pub(crate) fn hold_probes(&mut self, on: bool, settings: &Settings) {
        let rack = self.reports.is_sack() && settings.recovery == policy::Recovery::Rack;
        self.tlp = rack && settings.tlp && !on;
    }

    /// Records the first or a repeated transmission of a SYN or SYN-ACK.
    pub(crate) fn on_syn_sent(&mut self, now: Instant, nxt: Seq) {
        if self.board.is_empty() {
            self.board.sent(nxt, 1, Marks::SYN, now);
        } else {
            self.board.resent(0, now, false, false);
        }
    }

    /// Processes the acknowledgment `ack` of the SYN.
    pub(crate) fn open(&mut self, ack: Seq) -> Delivered {
        let mut delivered = Delivered::NOTHING;
        self.board.acknowledge(ack, &mut delivered);
        self.retries.on_progress();
        self.stop_timer();
        self.state.recover = ack - 1;
        self.state.rescue = ack;
        self.state.reduced = ack - 1;
        delivered
    }

    /// Discards all records, because the connection has ended or listens again.
    pub(crate) fn discard(&mut self) {
        self.board = Scoreboard::default();
    }

    /// Stops the timer and cancels pending transmissions.
    pub(crate) fn stop(&mut self) {
        self.stop_timer();
        self.pending = Pending::Nothing;
    }

    #[inline]
    pub(crate) const fn board(&self) -> &Scoreboard {
        &self.board
    }

    /// Octets in flight.
    #[inline]
    pub(crate) const fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Whether everything is acknowledged.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.board.is_empty()
    }

    /// Whether SACK guides the recovery.
    #[inline]
    pub(crate) const fn uses_sack(&self) -> bool {
        self.reports.is_sack()
    }

    #[inline]
    pub(crate) const fn phase(&self) -> Phase {
        self.state.phase
    }

    pub(crate) const fn refused(&self) -> Option<&Refusals> {
        match &self.refused {
            Some(refused) => Some(refused),
            None => None,
        }
    }

    /// Whether no loss and no duplicate is known.
    #[inline]
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.state.phase == Phase::Open && self.board.is_plain() && self.state.dup_acks == 0
    }

    /// Whether nothing is lost, reordered or possibly late, and no algorithm needs more of an
    /// acknowledgment than its time.
    #[inline]
    pub(crate) fn permits_ack_fast_path(&self) -> bool {
        self.is_undisturbed()
            && self.timer_rule.is_none()
            && self.probing == Probing::Free
            && !self.needs_all
    }

    /// Whether only the congestion window limits new data.
    #[inline]
    pub(crate) fn permits_send_fast_path(&self) -> bool {
        self.is_undisturbed() && self.pending == Pending::Nothing && !self.needs_all
    }

    /// Whether only acknowledgments and one timer can change the state.
    pub(crate) fn permits_hot(&self) -> bool {
        self.timer_rule.is_none()
            && self.probing == Probing::Free
            && self.pending == Pending::Nothing
            && !self.needs_all
    }

    /// The state before an acknowledgment.
    pub(crate) const fn prior(&self, una: Seq) -> Prior {
        Prior {
            phase: self.state.phase,
            dup_acks: self.state.dup_acks,
            una,
            in_flight: self.board.in_flight(),
        }
    }

    /// Whether an acknowledgment with these blocks is processed although no data is outstanding.
    #[cold]
    pub(crate) fn takes_ack_when_idle(&self, blocks: &[SackBlock]) -> bool {
        self.extensions.is_some() && (self.probing != Probing::Free || !blocks.is_empty())
    }

    /// Reports every segment newly marked lost to the control, if the control takes rate samples.
    pub(crate) fn report_losses(&mut self, now: Instant, window: &mut CongestionWindow) -> Bytes {
        window.report_losses(now, &mut self.board, self.reports.is_sack())
    }

    /// The state of the sender for statistics.
    pub(crate) const fn congestion_state(&self, slow_start: bool) -> CongestionState {
        match self.state.phase {
            Phase::Reduction => CongestionState::Reduction,
            Phase::Recovery => CongestionState::Recovery,
            Phase::Loss => CongestionState::Loss,
            Phase::Open if self.state.dup_acks > 0 => CongestionState::Disorder,
            Phase::Open if slow_start => CongestionState::SlowStart,
            Phase::Open => CongestionState::Open,
        }
    }

    /// FlightSize (RFC 5681 §2), less the data that limited transmit sent (RFC 5681 §3.2 step 2).
    fn flight_size(&self, scope: &Scope<'_>) -> u64 {
        let outstanding = scope.nxt.since(scope.una);
        outstanding.saturating_sub(u64::from(self.state.limited))
    }

    /// Octets of an acknowledgment by which a window may grow
    /// ([`WindowRules::grow_by_delivered`](crate::policy::WindowRules::grow_by_delivered)).
    pub(crate) fn growth(&self, summary: &AckSummary, smss: u32, settings: &Settings) -> u64 {
        let smss = u64::from(smss);
        let fresh = summary.delivered.fresh - summary.delivered.control_bits;
        if !self.reports.is_sack() {
            // Each earlier duplicate indicates one delivered segment; at least one segment fills
            // the gap.
            let reported = u64::from(summary.prior.dup_acks) * smss;
            return fresh.saturating_sub(reported).max(fresh.min(smss));
        }
        let reorders = self.dupthresh(settings) > settings.dupthresh;
        if !reorders {
            return if summary.acked > 0 { fresh } else { 0 };
        }
        // Originals that arrived after their retransmission have been delivered as well.
        let again = summary.dsack.as_ref();
        fresh + again.map_or(0, |range| range.end.since(range.start).min(smss))
    }

    /// Duplicates that indicate a loss.
    fn dupthresh(&self, settings: &Settings) -> u32 {
        match &self.extensions {
            Some(extensions) => extensions.dupthresh(settings),
            None => settings.dupthresh,
        }
    }
}
