//! TCP segments (RFC 9293 §3.1) with the options of RFC 2018, RFC 7323, RFC 7413 and RFC 9768.

use std::ops::{BitOr, BitOrAssign};

use super::{accecn::AccEcn, fast_open::FastOpen};
use anabranch_core::body::Body;

/// Control bits (RFC 9293 §3.1; `AE` is the bit that AccECN adds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Reset the connection.
    pub const RST: Self = Self(1 << 2);
    /// Push.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgment field is valid.
    pub const ACK: Self = Self(1 << 4);
    /// The urgent field is valid; never sent.
    pub const URG: Self = Self(1 << 5);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 7);
    /// Accurate ECN.
    pub const AE: Self = Self(1 << 8);

    /// Whether every bit of `other` is set.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// These bits without those of `other`.
    #[must_use]
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Whether any bit of `other` is set.
    #[must_use]
    #[inline]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    #[inline]
    fn bitor(self, o: Self) -> Self {
        Self(self.0 | o.0)
    }
}
impl BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, o: Self) {
        self.0 |= o.0;
    }
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub value: u32,
    /// TSecr: the echoed timestamp.
    pub echo: u32,
}

/// A range of received sequence numbers; the right edge is excluded (RFC 2018 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// First number of the block.
    pub left: u32,
    /// One past the last number.
    pub right: u32,
}

/// Options other than timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Options {
    /// None.
    #[default]
    None,
    /// Options of a SYN.
    Syn {
        /// Maximum segment size: IP packet less 40 bytes (RFC 9293 §3.7.1, RFC 6691).
        mss: u16,
        /// Shift of every later window (RFC 7323 §2.2); `None` leaves the option out.
        window_scale: Option<u8>,
        /// SACK-permitted (RFC 2018 §2).
        sack_permitted: bool,
        /// Counters of marked octets; only in a SYN-ACK (RFC 9768 §3.2.3.2.1).
        accecn: Option<AccEcn>,
        /// A cookie of TCP Fast Open, or a request for one (RFC 7413 §4.1.1).
        fast_open: Option<FastOpen>,
    },
    /// Selective acknowledgment: number of valid blocks, and the blocks (RFC 2018 §3).
    Sack(u8, [SackBlock; 4]),
    /// Counters of marked octets (RFC 9768 §3.2.3).
    AccEcn(AccEcn),
    /// Both. More than three blocks leave no room for the counters.
    SackAccEcn(u8, [SackBlock; 3], AccEcn),
}

impl Options {
    /// The blocks of a SACK option; empty for other options.
    #[must_use]
    #[inline]
    pub fn sack_blocks(&self) -> &[SackBlock] {
        match self {
            Self::Sack(n, blocks) => &blocks[..usize::from(*n).min(4)],
            Self::SackAccEcn(n, blocks, _) => &blocks[..usize::from(*n).min(3)],
            _ => &[],
        }
    }
    /// The counters of marked octets, if present.
    #[must_use]
    pub const fn accecn(&self) -> Option<AccEcn> {
        match self {
            Self::Syn { accecn, .. } => *accecn,
            Self::AccEcn(accecn) | Self::SackAccEcn(_, _, accecn) => Some(*accecn),
            Self::None | Self::Sack(..) => None,
        }
    }
    /// The cookie of TCP Fast Open, or the request for one, if present.
    #[must_use]
    pub const fn fast_open(&self) -> Option<FastOpen> {
        match self {
            Self::Syn { fast_open, .. } => *fast_open,
            _ => None,
        }
    }
    /// Size in the header in bytes, padded to words.
    #[must_use]
    #[inline]
    pub fn size(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Syn {
                window_scale,
                sack_permitted,
                accecn,
                fast_open,
                ..
            } => {
                let bytes = 4
                    + if window_scale.is_some() { 3 } else { 0 }
                    + if *sack_permitted { 2 } else { 0 };
                u32::next_multiple_of(bytes, 4)
                    + accecn.as_ref().map_or(0, AccEcn::size)
                    + fast_open.as_ref().map_or(0, FastOpen::size)
            }
            Self::Sack(n, _) => 4 + 8 * u32::from((*n).min(4)),
            Self::AccEcn(accecn) => accecn.size(),
            Self::SackAccEcn(n, _, accecn) => 4 + 8 * u32::from((*n).min(3)) + accecn.size(),
        }
    }
}

/// A TCP segment: sequence numbers of 32 bits, other header fields and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment<B> {
    /// Sequence number of the first octet (of SYN, if set).
    pub seq: u32,
    /// Next sequence number expected; valid with [`Flags::ACK`].
    pub ack: u32,
    /// Window before scaling.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// Other options.
    pub options: Options,
    /// Payload.
    pub body: B,
}

/// Bytes of the IPv4 header and of the TCP header, both without options.
pub const HEADERS: u32 = 40;
/// Bytes of the timestamps option with its usual padding (RFC 7323 appendix A).
pub const TIMESTAMPS_SIZE: u32 = 12;

impl<B: Body> Segment<B> {
    /// Size of the IPv4 packet in bytes.
    #[must_use]
    #[inline]
    pub fn ip_size(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() {
            TIMESTAMPS_SIZE
        } else {
            0
        };
        HEADERS + timestamps + self.options.size() + self.body.len()
    }
    /// Length in sequence numbers: octets, SYN and FIN (SEG.LEN of RFC 9293 §3.3.1).
    #[must_use]
    #[inline]
    pub fn sequence_len(&self) -> u64 {
        u64::from(self.body.len())
            + u64::from(self.flags.any(Flags::SYN))
            + u64::from(self.flags.any(Flags::FIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::body::Length;

    #[test]
    fn a_segment_of_lengths_is_one_cache_line() {
        assert!(
            size_of::<Segment<Length>>() <= 64,
            "{}",
            size_of::<Segment<Length>>()
        );
    }

    #[test]
    fn sizes_count_headers_and_padded_options() {
        let mut segment = Segment {
            seq: 0,
            ack: 0,
            window: 0,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: 0, echo: 0 }),
            options: Options::None,
            body: Length(1448),
        };
        assert_eq!(segment.ip_size(), 1500);
        segment.body = Length(0);
        segment.options = Options::Sack(3, [SackBlock::default(); 4]);
        assert_eq!(segment.ip_size(), 20 + 20 + 12 + 4 + 24);
        segment.options = Options::Syn {
            mss: 1460,
            window_scale: Some(7),
            sack_permitted: true,
            accecn: None,
            fast_open: None,
        };
        assert_eq!(segment.ip_size(), 20 + 20 + 12 + 12);
        if let Options::Syn { fast_open, .. } = &mut segment.options {
            *fast_open = FastOpen::new(&[0; 8]);
        }
        assert_eq!(segment.ip_size(), 20 + 20 + 12 + 12 + 12);
    }
}
