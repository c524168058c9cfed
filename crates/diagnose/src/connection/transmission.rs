//! A segment that takes sequence numbers, its relation to earlier segments, and the trigger of a
//! retransmission.

use super::{acknowledgments::Late, sender_view::View};
use crate::{
    retransmission::{Phase, Trigger, ledger::Parts, piece::Copy},
    segment::{FIN, Segment},
    time::{MILLISECOND, Nanos},
};

/// A segment that takes a range of sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmission<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

impl Transmission<'_> {
    pub(super) fn copy(&self) -> Copy {
        copy_of(self.segment)
    }
}

/// The copy record of a segment.
pub(super) fn copy_of(segment: &Segment) -> Copy {
    Copy {
        time: segment.time,
        number: segment.number,
        stamp: segment.stamps.map(|stamps| stamps.0),
        id: segment.id,
        ack: segment.ack,
        retransmission: None,
    }
}

/// The relation of a segment to earlier ones.
#[derive(Debug)]
pub(crate) enum Entry {
    /// No octet of it had been sent before.
    New,
    /// Original data that passed after later data.
    Late(Late),
    /// Part of it had been sent before.
    Retransmission(Repeated),
}

/// The data that a retransmission repeats.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// The range that had been sent before and is not acknowledged.
    pub(super) old: (i64, i64),
    /// The parts of it that were not captured.
    pub(super) holes: Vec<(i64, i64)>,
    /// One past the highest octet sent before.
    pub(super) known: i64,
    pub(crate) is_acknowledged: bool,
    /// It ends a tail of which no copy was captured.
    pub(crate) ends_tail: bool,
}

impl Repeated {
    /// Whether part of it is in no earlier captured copy.
    pub(crate) fn is_unseen(&self) -> bool {
        !self.holes.is_empty()
    }
}

/// An original that is retransmitted for the first time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// When the original passed, if it was captured.
    pub(crate) first: Option<Nanos>,
    /// When the packet after its gap passed.
    pub(crate) gap: Option<Nanos>,
}

/// The position of a retransmission on the scoreboard.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) parts: Parts,
    /// The frame of the previous copy.
    pub(crate) earlier: Option<u64>,
    pub(crate) suspects: Vec<Suspect>,
}

/// The scoreboard's state of a segment's data before the segment is entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    pub(crate) next: i64,
    /// When the previous copy passed, and whether it was a retransmission.
    pub(crate) latest: Option<Nanos>,
    pub(crate) is_repeated: bool,
    /// Octets SACKed above it.
    pub(crate) sacked_above: i64,
    pub(crate) has_sack: bool,
}

/// A retransmission and the sender's state.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) sent: &'a Transmission<'a>,
    pub(super) history: History,
    pub(super) view: &'a View,
    pub(super) phase: Phase,
    pub(super) mss: i64,
    /// When the last segment was sent.
    pub(super) last_sent: Option<Nanos>,
    /// The smoothed round-trip time and its variation.
    pub(super) rtt: Option<(Nanos, Nanos)>,
    /// Time after its earliest arrival within which an acknowledgment may release a retransmission.
    pub(super) tolerance: Nanos,
}

/// The shortest default retransmission timeout of any implementation (Linux).
const LEAST_RTO: Nanos = 200 * MILLISECOND;
/// The longest delay of the acknowledgment of a single segment that Linux's probe assumes.
const DELAYED_ACK: Nanos = 200 * MILLISECOND;

/// The earlier of two optional times.
fn earliest(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Scene<'_> {
    fn since(&self, time: Option<Nanos>) -> Option<Nanos> {
        time.map(|time| (self.sent.segment.time - time).max(0))
    }

    fn since_ack(&self) -> Option<Nanos> {
        self.since(self.view.last.map(|last| last.time))
    }

    /// Octets SACKed above it, as the sender knows.
    fn sacked_above(&self) -> i64 {
        self.history.sacked_above.min(self.view.sacked)
    }

    /// The retransmission's trigger.
    pub(super) fn trigger(&self) -> Trigger {
        if self.sent.start < 0 {
            return Trigger::Rto;
        }
        if !self.sent.segment.has(FIN)
            && self.sent.end <= self.view.una
            && self.sent.end > 0
            && self.sent.end - self.sent.start <= 1
            && self.sent.end == self.history.next
        {
            return Trigger::Keepalive;
        }
        if self.is_window_probe() {
            return Trigger::WindowProbe;
        }
        if self
            .since_ack()
            .is_some_and(|since| since <= self.tolerance)
        {
            self.released()
        } else {
            self.timed()
        }
    }

    fn is_window_probe(&self) -> bool {
        let is_closed = self.view.window.is_some_and(|window| window < self.mss)
            && self
                .view
                .room_from(self.history.next)
                .is_some_and(|room| room <= 0);
        is_closed
            && self.sent.end >= self.history.next
            && self.sent.end - self.sent.start < self.mss.max(2)
    }

    /// Whether the data acknowledged above a gap makes it a loss (`IsLost` of RFC 6675).
    fn is_lost(&self) -> bool {
        self.view.duplicates >= 3 || self.sacked_above() > 2 * self.mss
    }

    /// The trigger of a retransmission that an acknowledgment released.
    fn released(&self) -> Trigger {
        match self.phase {
            Phase::Loss(high) if self.sent.start < high => Trigger::GoBackN,
            Phase::Recovery(_) if self.history.is_repeated => Trigger::Rack,
            // NewReno retransmits on partial acknowledgments alone (RFC 6582 §3.2).
            Phase::Recovery(_) if !self.history.has_sack => {
                let is_partial = self
                    .since(self.view.advanced)
                    .is_some_and(|since| since <= self.tolerance);
                if is_partial {
                    Trigger::FastRetransmit
                } else {
                    self.timed()
                }
            }
            Phase::Recovery(_) if self.sacked_above() > 2 * self.mss => Trigger::Sack,
            Phase::Recovery(_) => Trigger::Rack,
            _ if self.is_lost() => Trigger::FastRetransmit,
            _ if self.sacked_above() > 0 || self.view.duplicates > 0 => Trigger::Rack,
            _ => self.timed(),
        }
    }

    /// The trigger of a retransmission that no acknowledgment released: a timer, or a recovery's
    /// own pace.
    fn timed(&self) -> Trigger {
        // The timer runs from the transmission of the copy and restarts at each acknowledgment of
        // new data (RFC 6298 §5.3).
        let armed = earliest(
            self.since(self.history.latest.or(self.last_sent)),
            self.since(self.view.advanced),
        );
        let silence = earliest(self.since_ack(), self.since(self.last_sent));
        let (Some(armed), Some(silence)) = (armed, silence) else {
            return Trigger::Unknown;
        };
        let (srtt, var) = self.rtt.unwrap_or((0, 0));
        let rto = srtt + (4 * var).max(LEAST_RTO);
        let is_first = self.sent.start <= self.view.una.max(0);
        let is_expired = armed >= rto - rto / 8;
        // Only an acknowledgment starts anything faster than a round trip.
        let is_soon = silence < srtt / 2;
        if is_first && self.history.is_repeated && silence >= srtt.max(LEAST_RTO / 2) {
            return Trigger::Rto;
        }
        match self.phase {
            Phase::Loss(high) if self.sent.start < high && !is_expired => return Trigger::GoBackN,
            Phase::Recovery(_) if is_soon => {
                return if !self.history.has_sack {
                    Trigger::FastRetransmit
                } else if !self.history.is_repeated && self.sacked_above() > 2 * self.mss {
                    Trigger::Sack
                } else {
                    Trigger::Rack
                };
            }
            _ => {}
        }
        if self.sacked_above() > 0 && is_soon {
            return Trigger::Rack;
        }
        if self.sent.end >= self.history.next
            && !self.history.is_repeated
            && self.phase == Phase::Open
            && self.is_probe(armed, srtt, rto)
        {
            return Trigger::Tlp;
        }
        if is_first && armed >= srtt.max(LEAST_RTO / 2) {
            return Trigger::Rto;
        }
        match self.phase {
            Phase::Loss(high) if self.sent.start < high => Trigger::GoBackN,
            _ if self.history.has_sack && self.sacked_above() > 0 => Trigger::Rack,
            Phase::Recovery(_) if !self.history.has_sack => Trigger::FastRetransmit,
            _ => Trigger::Unknown,
        }
    }

    /// Whether the time fits a tail loss probe better than the retransmission timer (RFC 8985
    /// §7.2).
    fn is_probe(&self, silence: Nanos, srtt: Nanos, rto: Nanos) -> bool {
        let is_alone = self.history.next - self.view.una <= self.mss;
        let probe = 2 * srtt
            + if is_alone {
                DELAYED_ACK
            } else {
                2 * MILLISECOND
            };
        let probe = probe.min(rto);
        (silence - probe).abs() < (silence - rto).abs() || (!is_alone && silence < rto - rto / 8)
    }
}
