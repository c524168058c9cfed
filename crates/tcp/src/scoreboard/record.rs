//! Record of a segment, and the result of an acknowledgment.

use anabranch_core::units::Instant;

use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

/// Lowest bit of the cause of a loss mark in a record's word; the marks are below it.
const CAUSE_FROM: u32 = 6;
/// Lowest bit of the length, which has 22 bits: far more than the 64 KiB of an IP packet.
const LEN_FROM: u32 = 10;
const MARKS: u32 = (1 << CAUSE_FROM) - 1;
const CAUSE: u32 = (1 << LEN_FROM) - 1 - MARKS;

/// Marks of a segment that is not in flight.
pub(super) const SETTLED: Marks = Marks(Marks::SACKED.0 | Marks::LOST.0);

/// Status of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks(u32);

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
    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    #[inline]
    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A segment sent and not acknowledged, in 16 octets.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Time of its last transmission.
    pub sent_at: Instant,
    /// The low 32 bits of its first sequence number. No window has 2^31 octets, so any number of
    /// the same window restores the others.
    start: u32,
    /// Its length, the cause of its last loss mark, and its marks, from the highest bit to the
    /// lowest. The low bits of a segment sent once, without SYN or FIN, are zero.
    word: u32,
}

impl Default for Record {
    fn default() -> Self {
        Self::new(Seq::START, 0, Marks::NONE, Instant::START)
    }
}

impl Record {
    /// A segment of `len` sequence numbers: octets, SYN, FIN.
    #[inline]
    pub(super) const fn new(start: Seq, len: u32, marks: Marks, sent_at: Instant) -> Self {
        debug_assert!(
            len < 1 << (32 - LEN_FROM),
            "a segment fits into an IP packet"
        );
        Self {
            sent_at,
            start: start.wire(),
            word: len << LEN_FROM | marks.0,
        }
    }
    /// Its first sequence number; `near` is a number of the same window.
    #[must_use]
    #[inline]
    pub const fn start(&self, near: Seq) -> Seq {
        near.near(self.start)
    }
    /// One past its last number; `near` is a number of the same window.
    #[must_use]
    #[inline]
    pub fn end(&self, near: Seq) -> Seq {
        self.start(near) + self.numbers()
    }
    /// Its length in sequence numbers: octets, SYN, FIN.
    #[expect(clippy::len_without_is_empty, reason = "no segment is empty")]
    #[must_use]
    #[inline]
    pub const fn len(&self) -> u32 {
        self.word >> LEN_FROM
    }
    /// As [`Self::len`].
    #[inline]
    pub(super) const fn numbers(&self) -> u64 {
        self.len() as u64
    }
    #[inline]
    pub(super) const fn marks(&self) -> Marks {
        Marks(self.word & MARKS)
    }
    /// Whether it has one of these marks.
    #[inline]
    pub(super) const fn any(&self, marks: Marks) -> bool {
        self.word & marks.0 != 0
    }
    #[inline]
    pub(super) const fn mark(&mut self, marks: Marks) {
        self.word |= marks.0;
    }
    #[inline]
    pub(super) const fn unmark(&mut self, marks: Marks) {
        self.word &= !marks.0;
    }
    /// Marks it lost.
    pub(super) const fn lose(&mut self, cause: RetransmitCause) {
        self.word = self.word & !CAUSE | (cause as u32) << CAUSE_FROM | Marks::LOST.0;
    }
    /// Cause of the last loss mark; valid while it is marked lost.
    #[must_use]
    pub const fn lost_by(&self) -> RetransmitCause {
        RetransmitCause::ALL[((self.word & CAUSE) >> CAUSE_FROM) as usize]
    }
    /// Removes the first `cut` sequence numbers, fewer than there are.
    pub(super) const fn trim(&mut self, cut: u32) {
        self.start = self.start.wrapping_add(cut);
        self.word -= cut << LEN_FROM;
    }
    /// Whether it was sent once, without SYN or FIN, and has this length.
    #[inline]
    pub(super) fn is_plain_of(&self, octets: u64) -> bool {
        u64::from(self.word) == octets << LEN_FROM
    }
    /// Whether it was sent more than once.
    #[must_use]
    #[inline]
    pub const fn is_retransmitted(&self) -> bool {
        self.any(Marks::RETRANSMITTED)
    }
    /// Whether it is SACKed.
    #[must_use]
    pub const fn is_sacked(&self) -> bool {
        self.any(Marks::SACKED)
    }
    /// Whether it carries SYN.
    #[must_use]
    pub const fn is_syn(&self) -> bool {
        self.any(Marks::SYN)
    }
    /// Whether it carries FIN.
    #[must_use]
    pub const fn is_fin(&self) -> bool {
        self.any(Marks::FIN)
    }
    /// Octets of payload.
    #[must_use]
    pub const fn payload(&self) -> u32 {
        self.len() - self.is_syn() as u32 - self.is_fin() as u32
    }
    /// Its sequence numbers in the pipe.
    #[inline]
    pub(super) const fn in_flight(&self) -> u64 {
        if self.any(SETTLED) {
            0
        } else if self.any(Marks::TWICE) {
            2 * self.numbers()
        } else {
            self.numbers()
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
    pub(super) fn note(&mut self, record: &Record, number: u64, near: Seq) {
        let (sent_at, start, end) = (record.sent_at, record.start(near), record.end(near));
        // Of segments sent at the same time the last counts, because SACK blocks come in any order
        // (RFC 8985 §6.2 step 2).
        let this = (sent_at, end);
        let once = self
            .once
            .is_none_or(|once| this >= (once.last_sent_at, once.last_end));
        let again = self
            .again
            .is_none_or(|again| this >= (again.sent_at, again.end));
        if once && again {
            self.latest = Some(number);
        }
        self.fresh += record.numbers();
        self.highest = self.highest.max(end);
        if record.is_retransmitted() {
            if again {
                self.again = Some(Again { sent_at, end });
            }
            return;
        }
        let known = self.once.get_or_insert(Once {
            first_sent_at: sent_at,
            last_sent_at: sent_at,
            last_end: end,
            lowest: start,
        });
        known.first_sent_at = known.first_sent_at.min(sent_at);
        if once {
            known.last_sent_at = sent_at;
            known.last_end = end;
        }
        known.lowest = known.lowest.min(start);
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

/// Segments that [`acknowledge_whole`](super::Scoreboard::acknowledge_whole) delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// Time at which the earliest segment was sent.
    pub first_sent_at: Instant,
    /// Time at which the latest segment was sent.
    pub last_sent_at: Instant,
    /// Sequence numbers delivered.
    pub octets: u64,
    /// The number of the latest record.
    pub latest: u64,
}

impl Plain {
    /// Converts to [`Delivered`]; the segments are in `una..ack`.
    #[must_use]
    pub fn delivered(&self, una: Seq, ack: Seq) -> Delivered {
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
