//! One segment on the scoreboard, and what an acknowledgment tells of segments.

use anabranch_core::units::Instant;

use crate::tcp::{recovery::cause::RetransmitCause, seq::Seq};

/// Marks of what is not in flight.
pub(super) const SETTLED: Marks = Marks(Marks::SACKED.0 | Marks::LOST.0);

/// What is known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Reported by SACK.
    pub(super) const SACKED: Self = Self(1);
    /// Taken for lost, and not sent again since.
    pub(super) const LOST: Self = Self(1 << 1);
    /// Sent more than once.
    pub(super) const RETRANSMITTED: Self = Self(1 << 2);
    /// Two copies count as in flight: it was sent again without being taken for lost.
    pub(super) const TWICE: Self = Self(1 << 3);
    /// Carries SYN.
    pub const SYN: Self = Self(1 << 4);
    /// Carries FIN behind its payload.
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
    /// When it was sent last.
    pub sent_at: Instant,
    /// Sequence numbers it takes: octets, SYN, FIN.
    pub len: u32,
    pub(super) marks: Marks,
    /// By what it was last taken for lost; counts while it is.
    pub lost_by: RetransmitCause,
}

impl Record {
    /// The number behind its last.
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
    /// Whether SACK reported it.
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
    /// What it counts in the pipe.
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

/// What an acknowledgment delivered, cumulatively or selectively.
#[derive(Debug, Clone, Copy)]
pub struct Delivered {
    /// When the earliest sent of the segments sent only once was sent; never if there is none.
    pub first_sent_at: Instant,
    /// When the latest sent of the segments sent only once was sent.
    pub last_sent_at: Instant,
    /// The number behind that segment.
    pub last_end: Seq,
    /// When the latest sent of the segments sent again was sent.
    pub last_resent_at: Instant,
    /// The number behind that segment.
    pub last_resent_end: Seq,
    /// The lowest number of a segment sent only once.
    pub lowest_once: Seq,
    /// The number behind the highest.
    pub highest: Seq,
    /// Sequence numbers delivered, each counted when it was first known.
    pub fresh: u64,
    /// The number of the record that was sent latest (see [`gone`](super::Scoreboard::gone)).
    pub latest: u64,
    /// Octets reported by SACK for the first time.
    pub sacked: u64,
    /// SYN and FIN among what was acknowledged cumulatively.
    pub control_bits: u64,
}

impl Delivered {
    /// Nothing yet.
    pub const NOTHING: Self = Self {
        first_sent_at: Instant::NEVER,
        last_sent_at: Instant::START,
        last_end: Seq::START,
        last_resent_at: Instant::START,
        last_resent_end: Seq::START,
        lowest_once: Seq::END,
        highest: Seq::START,
        fresh: 0,
        latest: u64::MAX,
        sacked: 0,
        control_bits: 0,
    };

    #[inline]
    pub(super) fn note(&mut self, record: &Record, number: u64) {
        if record.sent_at >= self.last_sent_at.max(self.last_resent_at) {
            self.latest = number;
        }
        self.fresh += u64::from(record.len);
        if record.is_retransmitted() {
            if record.sent_at >= self.last_resent_at {
                self.last_resent_at = record.sent_at;
                self.last_resent_end = record.end();
            }
        } else {
            self.first_sent_at = self.first_sent_at.min(record.sent_at);
            if record.sent_at >= self.last_sent_at {
                self.last_sent_at = record.sent_at;
                self.last_end = record.end();
            }
            self.lowest_once = self.lowest_once.min(record.start);
        }
        self.highest = self.highest.max(record.end());
    }
}

/// What [`acknowledge_plain`](super::Scoreboard::acknowledge_plain) delivered.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// When the earliest of the segments was sent; never if there is none.
    pub first_sent_at: Instant,
    /// When the latest was.
    pub last_sent_at: Instant,
    /// Sequence numbers delivered.
    pub octets: u64,
    /// The number of the latest record.
    pub latest: u64,
    /// Nothing is left for [`acknowledge`](super::Scoreboard::acknowledge).
    pub complete: bool,
}

impl Plain {
    /// The same as [`Delivered`]; the segments lie in `una..ack`.
    #[must_use]
    pub fn delivered(&self, una: Seq, ack: Seq) -> Delivered {
        if self.first_sent_at == Instant::NEVER {
            return Delivered::NOTHING;
        }
        Delivered {
            first_sent_at: self.first_sent_at,
            last_sent_at: self.last_sent_at,
            last_end: ack,
            lowest_once: una,
            highest: ack,
            fresh: self.octets,
            latest: self.latest,
            ..Delivered::NOTHING
        }
    }
}
