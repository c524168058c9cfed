//! The trigger of a retransmission, from the sender's state when it was sent.

use serde::Serialize;

use crate::{
    segment::{LostBy, Quic},
    time::{MILLISECOND, Nanos},
};

/// The trigger of a retransmission, in the order of results: by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Three duplicate acknowledgments, or a later partial acknowledgment (RFC 5681, RFC 6582).
    FastRetransmit,
    /// Retransmission of later data after a timeout.
    GoBackN,
    /// A keepalive with an old octet (RFC 1122 §4.2.3.6).
    Keepalive,
    /// Elapsed time, by RACK or early retransmit (RFC 8985, RFC 5827).
    Rack,
    /// The retransmission timer (RFC 6298).
    Rto,
    /// SACKed data above it during a recovery (RFC 6675).
    Sack,
    /// A tail loss probe (RFC 8985 §7).
    Tlp,
    /// Unknown.
    Unknown,
    /// A probe of a closed window (RFC 1122 §4.2.2.17).
    WindowProbe,
}

impl Trigger {
    /// The trigger by the record of a QUIC sender. QUIC has one timer, and it sends probes.
    pub(crate) const fn recorded(self, quic: Quic) -> Self {
        match (quic.lost, self) {
            (Some(LostBy::Time), _) => Self::Rack,
            (Some(LostBy::Reordering), Self::FastRetransmit | Self::Sack) => self,
            (Some(LostBy::Reordering), _) => Self::FastRetransmit,
            (Some(LostBy::Probe), _) | (None, Self::Rto | Self::GoBackN) => Self::Tlp,
            (None, _) => self,
        }
    }
}

/// The sender's recovery state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// Fast recovery, until this octet is acknowledged.
    Recovery(i64),
    /// After a timeout, until this octet is acknowledged.
    Loss(i64),
}

impl Phase {
    /// The phase after everything below `una` is acknowledged.
    pub(crate) fn at(self, una: i64) -> Self {
        match self {
            Self::Recovery(high) | Self::Loss(high) if una >= high => Self::Open,
            same => same,
        }
    }
}

/// A retransmission and the sender's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) is_fin: bool,
    pub(crate) una: i64,
    pub(crate) next: i64,
    pub(crate) phase: Phase,
    pub(crate) mss: i64,
    /// Duplicate acknowledgments.
    pub(crate) duplicates: u32,
    /// Octets SACKed above it.
    pub(crate) sacked_above: i64,
    pub(crate) has_sack: bool,
    /// Room in the receiver's window beyond the sent data.
    pub(crate) room: Option<i64>,
    pub(crate) window: Option<i64>,
    /// Time since the last acknowledgment arrived.
    pub(crate) since_ack: Option<Nanos>,
    /// Time since the last segment was sent.
    pub(crate) since_send: Option<Nanos>,
    /// Time since an acknowledgment of new data arrived.
    pub(crate) since_advance: Option<Nanos>,
    /// Time since the previous copy was sent.
    pub(crate) since_copy: Option<Nanos>,
    /// The previous copy was a retransmission.
    pub(crate) is_repeated: bool,
    /// The smoothed round-trip time and its variation.
    pub(crate) rtt: Option<(Nanos, Nanos)>,
    /// Time after its earliest arrival within which an acknowledgment may release a retransmission.
    pub(crate) tolerance: Nanos,
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

impl Scene {
    /// The retransmission's trigger.
    pub(crate) fn trigger(&self) -> Trigger {
        if self.start < 0 {
            return Trigger::Rto;
        }
        if !self.is_fin
            && self.end <= self.una
            && self.end > 0
            && self.end - self.start <= 1
            && self.end == self.next
        {
            return Trigger::Keepalive;
        }
        if self.is_window_probe() {
            return Trigger::WindowProbe;
        }
        if self.since_ack.is_some_and(|since| since <= self.tolerance) {
            self.released()
        } else {
            self.timed()
        }
    }

    fn is_window_probe(&self) -> bool {
        let is_closed = self.window.is_some_and(|window| window < self.mss)
            && self.room.is_some_and(|room| room <= 0);
        is_closed && self.end >= self.next && self.end - self.start < self.mss.max(2)
    }

    /// Whether the data acknowledged above a gap makes it a loss (`IsLost` of RFC 6675).
    fn is_lost(&self) -> bool {
        self.duplicates >= 3 || self.sacked_above > 2 * self.mss
    }

    /// The trigger of a retransmission that an acknowledgment released.
    fn released(&self) -> Trigger {
        match self.phase {
            Phase::Loss(high) if self.start < high => Trigger::GoBackN,
            Phase::Recovery(_) if self.is_repeated => Trigger::Rack,
            // NewReno retransmits on partial acknowledgments alone (RFC 6582 §3.2).
            Phase::Recovery(_) if !self.has_sack => {
                let is_partial = self
                    .since_advance
                    .is_some_and(|since| since <= self.tolerance);
                if is_partial {
                    Trigger::FastRetransmit
                } else {
                    self.timed()
                }
            }
            Phase::Recovery(_) if self.sacked_above > 2 * self.mss => Trigger::Sack,
            Phase::Recovery(_) => Trigger::Rack,
            _ if self.is_lost() => Trigger::FastRetransmit,
            _ if self.sacked_above > 0 || self.duplicates > 0 => Trigger::Rack,
            _ => self.timed(),
        }
    }

    /// The trigger of a retransmission that no acknowledgment released: a timer, or a recovery's
    /// own pace.
    fn timed(&self) -> Trigger {
        // The timer runs from the transmission of the copy and restarts at each acknowledgment of
        // new data (RFC 6298 §5.3).
        let armed = earliest(self.since_copy.or(self.since_send), self.since_advance);
        let silence = earliest(self.since_ack, self.since_send);
        let (Some(armed), Some(silence)) = (armed, silence) else {
            return Trigger::Unknown;
        };
        let (srtt, var) = self.rtt.unwrap_or((0, 0));
        let rto = srtt + (4 * var).max(LEAST_RTO);
        let is_first = self.start <= self.una.max(0);
        let is_expired = armed >= rto - rto / 8;
        // Only an acknowledgment starts anything faster than a round trip.
        let is_soon = silence < srtt / 2;
        if is_first && self.is_repeated && silence >= srtt.max(LEAST_RTO / 2) {
            return Trigger::Rto;
        }
        match self.phase {
            Phase::Loss(high) if self.start < high && !is_expired => return Trigger::GoBackN,
            Phase::Recovery(_) if is_soon => {
                return if !self.has_sack {
                    Trigger::FastRetransmit
                } else if !self.is_repeated && self.sacked_above > 2 * self.mss {
                    Trigger::Sack
                } else {
                    Trigger::Rack
                };
            }
            _ => {}
        }
        if self.sacked_above > 0 && is_soon {
            return Trigger::Rack;
        }
        if self.end >= self.next
            && !self.is_repeated
            && self.phase == Phase::Open
            && self.is_probe(armed, srtt, rto)
        {
            return Trigger::Tlp;
        }
        if is_first && armed >= srtt.max(LEAST_RTO / 2) {
            return Trigger::Rto;
        }
        match self.phase {
            Phase::Loss(high) if self.start < high => Trigger::GoBackN,
            _ if self.has_sack && self.sacked_above > 0 => Trigger::Rack,
            Phase::Recovery(_) if !self.has_sack => Trigger::FastRetransmit,
            _ => Trigger::Unknown,
        }
    }

    /// Whether the time fits a tail loss probe better than the retransmission timer (RFC 8985
    /// §7.2).
    fn is_probe(&self, silence: Nanos, srtt: Nanos, rto: Nanos) -> bool {
        let is_alone = self.next - self.una <= self.mss;
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
