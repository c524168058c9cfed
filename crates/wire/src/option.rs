//! TCP options: RFC 9293 §3.2 (end, no-operation, MSS), RFC 7323 (window scale, timestamps),
//! RFC 2018 (SACK-permitted, SACK), RFC 7413 (Fast Open), RFC 9768 (AccECN).

use super::{DecodeError, EncodeError};
use crate::{AccEcn, FastOpen, Flags, Options, SackBlock, Segment, Timestamps, accecn::Order};
use anabranch_core::body::Body;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;
const ACCECN0: u8 = 172;
const ACCECN1: u8 = 174;
/// Shared by experiments (RFC 6994), each with an identifier of two octets.
const EXPERIMENT: u8 = 254;
/// The identifier of Fast Open.
const FAST_OPEN_ID: [u8; 2] = [0xf9, 0x89];
/// Maximum octets of options (RFC 9293 §3.1).
pub(super) const MOST: usize = 40;

/// A TCP option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// No-operation.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK-permitted.
    SackPermitted,
    /// SACK: the number of blocks, and the blocks.
    Sack(u8, [SackBlock; 4]),
    /// Timestamps.
    Timestamps(Timestamps),
    /// AccECN in either order.
    AccEcn(AccEcn),
    /// A cookie of TCP Fast Open, or a request for one.
    FastOpen(FastOpen),
    /// Another kind, and its content.
    Unknown {
        /// Its number.
        kind: u8,
        /// The octets after the length.
        content: &'a [u8],
    },
}

impl TcpOption<'_> {
    /// Appends the option without padding.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nop => out.push(NOP),
            Self::Mss(mss) => {
                out.extend_from_slice(&[MSS, 4]);
                out.extend_from_slice(&mss.to_be_bytes());
            }
            Self::WindowScale(shift) => out.extend_from_slice(&[WINDOW_SCALE, 3, *shift]),
            Self::SackPermitted => out.extend_from_slice(&[SACK_PERMITTED, 2]),
            Self::Sack(n, blocks) => {
                let n = (*n).min(4);
                out.extend_from_slice(&[SACK, 2 + 8 * n]);
                for block in &blocks[..usize::from(n)] {
                    out.extend_from_slice(&block.left.to_be_bytes());
                    out.extend_from_slice(&block.right.to_be_bytes());
                }
            }
            Self::Timestamps(timestamps) => {
                out.extend_from_slice(&[TIMESTAMPS, 10]);
                out.extend_from_slice(&timestamps.value.to_be_bytes());
                out.extend_from_slice(&timestamps.echo.to_be_bytes());
            }
            Self::AccEcn(accecn) => {
                let kind = match accecn.order() {
                    Order::Ect0First => ACCECN0,
                    Order::Ect1First => ACCECN1,
                };
                out.extend_from_slice(&[kind, 2 + 3 * accecn.count()]);
                out.extend_from_slice(accecn.octets());
            }
            Self::FastOpen(option) => {
                let cookie = option.cookie();
                let len = u8::try_from(cookie.len()).unwrap_or(0);
                if option.is_experimental() {
                    out.extend_from_slice(&[EXPERIMENT, 4 + len]);
                    out.extend_from_slice(&FAST_OPEN_ID);
                } else {
                    out.extend_from_slice(&[FAST_OPEN, 2 + len]);
                }
                out.extend_from_slice(cookie);
            }
            Self::Unknown { kind, content } => {
                let len = u8::try_from(content.len() + 2).unwrap_or(u8::MAX);
                out.extend_from_slice(&[*kind, len]);
                out.extend_from_slice(content);
            }
        }
    }
}

/// Returns the options of a header in order, up to the end of the list or the first option whose
/// length is impossible. An option whose length is wrong for its kind is an error, after which
/// further options follow.
#[must_use]
pub const fn iter_options(octets: &[u8]) -> OptionIter<'_> {
    OptionIter { rest: octets }
}

/// See [`iter_options`].
#[derive(Debug, Clone)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> OptionIter<'a> {
    /// Octets of options that are not read yet.
    pub(crate) const fn octets_left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn read(&mut self, kind: u8) -> Result<TcpOption<'a>, DecodeError> {
        // An option that does not say where the next one begins is the last.
        let rest = core::mem::take(&mut self.rest);
        let length = usize::from(*rest.get(1).ok_or(DecodeError::OptionPastEnd)?);
        if length < 2 {
            return Err(DecodeError::OptionLength);
        }
        let (option, behind) = rest
            .split_at_checked(length)
            .ok_or(DecodeError::OptionPastEnd)?;
        self.rest = behind;
        let content = &option[2..];
        Ok(match (kind, content) {
            (MSS, &[high, low]) => TcpOption::Mss(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
            (SACK_PERMITTED, []) => TcpOption::SackPermitted,
            (SACK, _) if matches!(content.len(), 8 | 16 | 24 | 32) => {
                let mut blocks = [SackBlock::default(); 4];
                for (block, octets) in blocks.iter_mut().zip(content.chunks_exact(8)) {
                    *block = SackBlock {
                        left: be32(octets),
                        right: be32(&octets[4..]),
                    };
                }
                let n = u8::try_from(content.len() / 8).expect("four at most");
                TcpOption::Sack(n, blocks)
            }
            (TIMESTAMPS, _) if content.len() == 8 => TcpOption::Timestamps(Timestamps {
                value: be32(content),
                echo: be32(&content[4..]),
            }),
            (ACCECN0, _) => TcpOption::AccEcn(read_accecn(Order::Ect0First, content)),
            (ACCECN1, _) => TcpOption::AccEcn(read_accecn(Order::Ect1First, content)),
            (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) => {
                return Err(DecodeError::OptionLength);
            }
            // A cookie of another length is no cookie: the option is ignored (RFC 7413 §4.1.1).
            (FAST_OPEN, cookie) => FastOpen::new(cookie)
                .map_or(TcpOption::Unknown { kind, content }, TcpOption::FastOpen),
            (EXPERIMENT, [high, low, cookie @ ..]) if [*high, *low] == FAST_OPEN_ID => {
                FastOpen::new(cookie).map_or(TcpOption::Unknown { kind, content }, |option| {
                    TcpOption::FastOpen(option.experimental(true))
                })
            }
            _ => TcpOption::Unknown { kind, content },
        })
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = Result<TcpOption<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let option = match *self.rest.first()? {
            END => {
                self.rest = &[];
                return None;
            }
            NOP => {
                self.rest = &self.rest[1..];
                Ok(TcpOption::Nop)
            }
            kind => self.read(kind),
        };
        Some(option)
    }
}

#[inline]
fn be32(octets: &[u8]) -> u32 {
    u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]])
}

/// Reads an option of any length: its complete fields, at most three (RFC 9768 §3.2.3).
fn read_accecn(order: Order, content: &[u8]) -> AccEcn {
    let mut fields = [0; 3];
    let mut count = 0;
    for (field, octets) in fields.iter_mut().zip(content.chunks_exact(3)) {
        *field = u32::from_be_bytes([0, octets[0], octets[1], octets[2]]);
        count += 1;
    }
    AccEcn::new(order, &fields[..count])
}

/// The options of a segment.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) timestamps: Option<Timestamps>,
    pub(super) options: Options,
    pub(super) skipped: u8,
}

/// Reads the options that a segment with these flags may have; the last of a kind counts. AccECN
/// together with four SACK blocks is skipped because losses have precedence (RFC 9768 §3.2.3.3).
pub(super) fn read_options(
    flags: Flags,
    default_mss: u16,
    octets: &[u8],
) -> Result<Read, DecodeError> {
    let syn = flags.any(Flags::SYN);
    let mut read = Read::default();
    let (mut mss, mut window_scale, mut sack_permitted) = (None, None, false);
    let (mut sack, mut accecn, mut fast_open) = (None, None, None);
    for option in iter_options(octets) {
        match option? {
            TcpOption::Nop => {}
            TcpOption::Mss(value) if syn => mss = Some(value),
            TcpOption::WindowScale(shift) if syn => window_scale = Some(shift),
            TcpOption::SackPermitted if syn => sack_permitted = true,
            TcpOption::Timestamps(timestamps) => read.timestamps = Some(timestamps),
            TcpOption::Sack(n, blocks) if !syn => sack = Some((n, blocks)),
            // RFC 9768 §3.2.3.2.1: in a SYN without ACK it means nothing.
            TcpOption::AccEcn(counts) if !syn || flags.any(Flags::ACK) => accecn = Some(counts),
            TcpOption::FastOpen(option) if syn => fast_open = Some(option),
            _ => read.skipped += 1,
        }
    }
    read.options = match (sack, accecn) {
        (None, None) => Options::None,
        (None, Some(counts)) => Options::AccEcn(counts),
        (Some((n, [a, b, c, _])), Some(counts)) if n < 4 => {
            Options::SackAccEcn(n, [a, b, c], counts)
        }
        (Some((n, blocks)), counts) => {
            read.skipped += u8::from(counts.is_some());
            Options::Sack(n, blocks)
        }
    };
    if mss.is_some() || window_scale.is_some() || sack_permitted || fast_open.is_some() {
        read.options = Options::Syn {
            mss: mss.unwrap_or(default_mss),
            window_scale,
            sack_permitted,
            accecn,
            fast_open,
        };
    }
    Ok(read)
}

/// Writes a segment's options, padded to words. [`Segment::ip_size`] counts the same size.
pub(super) fn write_options<B: Body>(
    segment: &Segment<B>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if let Options::Syn {
        mss,
        window_scale,
        sack_permitted,
        ..
    } = segment.options
    {
        TcpOption::Mss(mss).write(out);
        if sack_permitted {
            TcpOption::SackPermitted.write(out);
        }
        if let Some(shift) = window_scale {
            TcpOption::WindowScale(shift).write(out);
        }
        while !out.len().is_multiple_of(4) {
            TcpOption::Nop.write(out);
        }
    }
    if let Some(timestamps) = segment.timestamps {
        // RFC 7323 appendix A: two octets of padding in front put the numbers on word boundaries.
        out.extend_from_slice(&[NOP, NOP]);
        TcpOption::Timestamps(timestamps).write(out);
    }
    match segment.options {
        Options::Sack(..) | Options::SackAccEcn(..) => {
            write_sack(segment.options.sack_blocks(), out);
        }
        Options::None | Options::Syn { .. } | Options::AccEcn(_) => {}
    }
    if let Some(accecn) = segment.options.accecn() {
        TcpOption::AccEcn(accecn).write(out);
        while !out.len().is_multiple_of(4) {
            TcpOption::Nop.write(out);
        }
    }
    if let Some(fast_open) = segment.options.fast_open() {
        TcpOption::FastOpen(fast_open).write(out);
        while !out.len().is_multiple_of(4) {
            TcpOption::Nop.write(out);
        }
    }
    if out.len() > MOST {
        return Err(EncodeError::Options(out.len()));
    }
    Ok(())
}

/// Writes SACK blocks, padded to words.
fn write_sack(blocks: &[SackBlock], out: &mut Vec<u8>) {
    if blocks.is_empty() {
        // An empty list is not an option; the room that it counts is padding.
        out.extend_from_slice(&[NOP; 4]);
        return;
    }
    let mut four = [SackBlock::default(); 4];
    four[..blocks.len()].copy_from_slice(blocks);
    out.extend_from_slice(&[NOP, NOP]);
    let n = u8::try_from(blocks.len()).expect("four at most");
    TcpOption::Sack(n, four).write(out);
}
