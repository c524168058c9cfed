//! Record of a segment, and the result of an acknowledgment.

use anabranch_core::units::Instant;

use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

/// Marks of a segment that is not in flight.
pub(super) const SETTLED: Marks = Marks(Marks::SACKED.0 | Marks::LOST.0);

/// Status of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// SACKed.
    pub(super) const SACKED: Self = Self(1);
    /// Marked lost, and not retransmitted since.
    pub(super) const LOST: Self = Self(1 << 1);
    /// Sent more than once.
    pub(super) const RETRANSMITTED: Self = Self(1 << 2);
    /// Two copies count as in flight: it was retransmitted without being marked lost.
    pub(super) const TWICE: Self = Self(1 << 3);
    /// Carries SYN.
    pub const SYN: Self = Self(1 << 4);
    /// Carries FIN after its payload.
    pub const FIN: Self = Self(1 << 5);

    #[inline]
    pub(super) const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    #[inline]
    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    #[inline]
    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A segment sent and not acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Its first sequence number.
    pub start: Seq,
    /// Time of its last transmission.
    pub sent_at: Instant,
    /// Its length in sequence numbers: octets, SYN, FIN.
    pub len: u32,
    pub(super) marks: Marks,
    /// Cause of the last loss mark; valid while it is marked lost.
    pub lost_by: RetransmitCause,
}

impl Record {
    /// One past its last number.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Seq {
        self.start + u64::from(self.len)
    }
    /// Whether it was sent more than once.
    #[must_use]
    #[inline]
    pub const fn is_retransmitted(&self) -> bool {
        self.marks.any(Marks::RETRANSMITTED)
    }
    /// Whether it is SACKed.
    #[must_use]
    pub const fn is_sacked(&self) -> bool {
        self.marks.any(Marks::SACKED)
    }
    /// Whether it carries SYN.
    #[must_use]
    pub const fn is_syn(&self) -> bool {
        self.marks.any(Marks::SYN)
    }
    /// Whether it carries FIN.
    #[must_use]
    pub const fn is_fin(&self) -> bool {
        self.marks.any(Marks::FIN)
    }
    /// Octets of payload.
    #[must_use]
    pub const fn payload(&self) -> u32 {
        self.len - self.is_syn() as u32 - self.is_fin() as u32
    }
    /// Its sequence numbers in the pipe.
    #[inline]
    pub(super) const fn in_flight(&self) -> u64 {
        if self.marks.any(SETTLED) {
            0
        } else if self.marks.any(Marks::TWICE) {
            2 * self.len as u64
        } else {
            self.len as u64
        }
    }
}

/// Segments that an acknowledgment delivered, cumulatively or selectively.
#[derive(Debug, Clone, Copy)]
pub struct Delivered {
    /// The segments sent only once.
    pub once: Option<Once>,
    /// The retransmitted segment that was sent latest.
    pub again: Option<Again>,
    /// One past the highest number; [`Seq::START`] before all.
    pub highest: Seq,
    /// Sequence numbers delivered, each counted once.
    pub fresh: u64,
    /// The number of the record sent latest (see [`gone`](super::Scoreboard::gone)).
    pub latest: Option<u64>,
    /// Octets SACKed for the first time.
    pub sacked: u64,
    /// SYN and FIN among the numbers acknowledged cumulatively.
    pub control_bits: u64,
}

/// Delivered segments that were sent only once, so that their round-trip time is known (Karn's
/// algorithm, RFC 6298 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once {
    /// Time at which the earliest of them was sent.
    pub first_sent_at: Instant,
    /// Time at which the latest of them was sent.
    pub last_sent_at: Instant,
    /// One past the number of the latest sent.
    pub last_end: Seq,
    /// The lowest number among them.
    pub lowest: Seq,
}

/// A segment delivered that was sent more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Time of its last transmission.
    pub sent_at: Instant,
    /// One past its last number.
    pub end: Seq,
}

impl Delivered {
    /// No segment.
    pub const NOTHING: Self = Self {
        once: None,
        again: None,
        highest: Seq::START,
        fresh: 0,
        latest: None,
        sacked: 0,
        control_bits: 0,
    };

    #[inline]
    pub(super) fn note(&mut self, record: &Record, number: u64) {
        let sent_at = record.sent_at;
        // Of segments sent at the same time the last counts, because SACK blocks come in any order
        // (RFC 8985 §6.2 step 2).
        let this = (sent_at, record.end());
        let once = self
            .once
            .is_none_or(|once| this >= (once.last_sent_at, once.last_end));
        let again = self
            .again
            .is_none_or(|again| this >= (again.sent_at, again.end));
        if once && again {
            self.latest = Some(number);
        }
        self.fresh += u64::from(record.len);
        self.highest = self.highest.max(record.end());
        if record.is_retransmitted() {
            if again {
                self.again = Some(Again {
                    sent_at,
                    end: record.end(),
                });
            }
            return;
        }
        let known = self.once.get_or_insert(Once {
            first_sent_at: sent_at,
            last_sent_at: sent_at,
            last_end: record.end(),
            lowest: record.start,
        });
        known.first_sent_at = known.first_sent_at.min(sent_at);
        if once {
            known.last_sent_at = sent_at;
            known.last_end = record.end();
        }
        known.lowest = known.lowest.min(record.start);
    }

    /// The lowest number of a segment sent only once.
    #[must_use]
    pub fn lowest_once(&self) -> Option<Seq> {
        self.once.map(|once| once.lowest)
    }

    /// The segments sent only once, if none was retransmitted: a round-trip sample without
    /// ambiguity.
    #[must_use]
    #[inline]
    pub fn timed(&self) -> Option<Once> {
        self.once.filter(|_| self.again.is_none())
    }
}

/// Segments that [`acknowledge_plain`](super::Scoreboard::acknowledge_plain) delivered.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// Time at which the earliest segment was sent, if any was delivered.
    pub first_sent_at: Instant,
    /// Time at which the latest segment was sent.
    pub last_sent_at: Instant,
    /// Sequence numbers delivered; zero for no segment.
    pub octets: u64,
    /// The number of the latest record.
    pub latest: u64,
    /// No record is left for [`acknowledge`](super::Scoreboard::acknowledge).
    pub complete: bool,
}

impl Plain {
    /// Converts to [`Delivered`]; the segments are in `una..ack`.
    #[must_use]
    pub fn delivered(&self, una: Seq, ack: Seq) -> Delivered {
        if self.octets == 0 {
            return Delivered::NOTHING;
        }
        Delivered {
            once: Some(Once {
                first_sent_at: self.first_sent_at,
                last_sent_at: self.last_sent_at,
                last_end: ack,
                lowest: una,
            }),
            highest: ack,
            fresh: self.octets,
            latest: Some(self.latest),
            ..Delivered::NOTHING
        }
    }
}
