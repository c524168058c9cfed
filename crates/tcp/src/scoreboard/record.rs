//! One segment on the scoreboard, and what an acknowledgment tells of segments.

use anabranch_core::units::Instant;

use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

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
    /// Taken for lost, and not retransmitted since.
    pub(super) const LOST: Self = Self(1 << 1);
    /// Sent more than once.
    pub(super) const RETRANSMITTED: Self = Self(1 << 2);
    /// Two copies count as in flight: it was retransmitted without being marked lost.
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
    /// By what it was last marked lost; counts while it is.
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
    /// The segments that were sent only once.
    pub once: Option<Once>,
    /// The latest sent of the segments that were retransmitted.
    pub again: Option<Again>,
    /// The number behind the highest; [`Seq::START`] before all.
    pub highest: Seq,
    /// Sequence numbers delivered, each counted when it was first known.
    pub fresh: u64,
    /// The number of the record that was sent latest (see [`gone`](super::Scoreboard::gone)).
    pub latest: Option<u64>,
    /// Octets reported by SACK for the first time.
    pub sacked: u64,
    /// SYN and FIN among what was acknowledged cumulatively.
    pub control_bits: u64,
}

/// Segments delivered that were sent only once, so that the time they took is known (Karn's
/// algorithm, RFC 6298 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once {
    /// When the earliest sent of them left.
    pub first_sent_at: Instant,
    /// When the latest sent of them left.
    pub last_sent_at: Instant,
    /// The number behind the latest sent.
    pub last_end: Seq,
    /// The lowest number among them.
    pub lowest: Seq,
}

/// A segment delivered that was sent more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// When it left last.
    pub sent_at: Instant,
    /// The number behind it.
    pub end: Seq,
}

impl Delivered {
    /// Nothing yet.
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
        // Of what left at the same time the last: reports come in any order (RFC 8985 §6.2 step 2).
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

    /// Those that were sent only once, if none was retransmitted: what may be timed without any doubt.
    #[must_use]
    #[inline]
    pub fn timed(&self) -> Option<Once> {
        self.once.filter(|_| self.again.is_none())
    }
}

/// What [`acknowledge_plain`](super::Scoreboard::acknowledge_plain) delivered.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// When the earliest of the segments was sent, if any was delivered.
    pub first_sent_at: Instant,
    /// When the latest was.
    pub last_sent_at: Instant,
    /// Sequence numbers delivered; zero for no segment.
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
