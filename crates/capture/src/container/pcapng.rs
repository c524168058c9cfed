//! pcapng (draft-ietf-opsawg-pcapng): blocks, grouped in sections with a byte order and interfaces
//! each.

use std::ops::Range;

use super::{Frame, Link, MAX_RECORD, Next, Order, PICOS, Wrong, beginning};
use crate::bytes::{Bytes, LONGEST};

pub(crate) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
/// The packet block of old files (draft-ietf-opsawg-pcapng appendix).
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Maximum number of interfaces per section: more than any capture has, at little memory.
const MAX_INTERFACES: usize = 1 << 16;

/// Interface description of the current section.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: Link,
    snap_length: u32,
    /// Picoseconds of `units` time stamps.
    picos: i128,
    /// 1 for every usual resolution.
    units: i128,
    /// Picoseconds.
    offset: i128,
}

/// A pcapng file.
#[derive(Default)]
pub(crate) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Unread bytes of a block that is longer than the buffer.
    left: u64,
}

impl Pcapng {
    pub(crate) fn next(&mut self, bytes: &mut Bytes<'_>) -> Result<Next, Wrong> {
        loop {
            if !bytes.skip(std::mem::take(&mut self.left))? {
                return Ok(Next::CutOff);
            }
            let head = bytes.peek(12)?;
            if head.is_empty() {
                return Ok(if bytes.is_cut_off {
                    Next::CutOff
                } else {
                    Next::End
                });
            }
            if head.iter().all(|octet| *octet == 0) {
                return zeros(bytes);
            }
            if head.len() < 12 {
                return Ok(Next::CutOff);
            }
            if head.starts_with(&SECTION_HEADER) {
                self.order = match head[8..] {
                    [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
                    [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
                    _ => return Err(Wrong::Broken("the byte order of a section")),
                };
                self.interfaces.clear();
            }
            let (kind, length) = (self.order.u32(head, 0), self.order.u32(head, 4));
            if !(12..=MAX_RECORD).contains(&length) || !length.is_multiple_of(4) {
                return Err(Wrong::Broken("the length of a block"));
            }
            if !matches!(kind, INTERFACE | PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
                if !bytes.skip(length.into())? {
                    return Ok(Next::CutOff);
                }
                continue;
            }
            let Some((block, left)) = beginning(bytes, length.into())? else {
                return Ok(Next::CutOff);
            };
            self.left = left;
            // The body lies between the type and length fields and the repeated length.
            let body = block.start + 8..block.end - if left == 0 { 4 } else { 0 };
            if kind == INTERFACE {
                self.interface(bytes.at(body))?;
                continue;
            }
            let frame = self.packet(kind, bytes.at(body.clone()))?;
            let octets = body.start + frame.octets.start..body.start + frame.octets.end;
            return Ok(Next::Frame(Frame { octets, ..frame }));
        }
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), Wrong> {
        if body.len() < 8 || self.interfaces.len() == MAX_INTERFACES {
            return Err(Wrong::Broken("an interface"));
        }
        let mut interface = Interface {
            link: Link {
                link_type: self.order.u16(body, 0),
                fcs: 0,
            },
            snap_length: self.order.u32(body, 4),
            picos: PICOS / 1_000_000,
            units: 1,
            offset: 0,
        };
        let mut options = &body[8..];
        while options.len() >= 4 {
            let code = self.order.u16(options, 0);
            let length = usize::from(self.order.u16(options, 2));
            let Some(value) = options.get(4..4 + length) else {
                break;
            };
            match (code, value) {
                (0, _) => break,
                // if_tsresol: a power of 10, or of 2 if its first bit is set.
                (9, [resolution, ..]) => {
                    (interface.picos, interface.units) = units(*resolution)?;
                }
                // if_fcslen, in bits.
                (13, [bits, ..]) => interface.link.fcs = u32::from(*bits) / 8,
                // if_tsoffset, in seconds.
                (14, value) => {
                    if let Some(eight) = value.first_chunk() {
                        let seconds = match self.order {
                            Order::Little => i64::from_le_bytes(*eight),
                            Order::Big => i64::from_be_bytes(*eight),
                        };
                        interface.offset = i128::from(seconds) * PICOS;
                    }
                }
                _ => {}
            }
            let padded = 4 + length.next_multiple_of(4);
            options = options.get(padded..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Returns the frame of a packet block. Byte positions are relative to the body.
    fn packet(&self, kind: u32, body: &[u8]) -> Result<Frame, Wrong> {
        let field = |at| self.order.u32(body, at);
        let (index, header) = match kind {
            ENHANCED_PACKET => (field(0) as usize, 20),
            PACKET => (usize::from(self.order.u16(body, 0)), 20),
            _ => (0, 4),
        };
        let Some(interface) = self.interfaces.get(index) else {
            return Err(Wrong::Broken(
                "a packet of an interface that is not described",
            ));
        };
        if body.len() < header {
            return Err(Wrong::Broken("the length of a packet's block"));
        }
        let (time, captured, length) = if kind == SIMPLE_PACKET {
            let length = field(0);
            let most = match interface.snap_length {
                0 => u32::MAX,
                most => most,
            };
            (None, length.min(most), length)
        } else {
            let ticks = i128::from(field(4)) << 32 | i128::from(field(8));
            let picos = ticks * interface.picos;
            let picos = match interface.units {
                1 => picos,
                units => picos / units,
            };
            (Some(picos + interface.offset), field(12), field(16))
        };
        let end = header + captured as usize;
        // Only the beginning of a block longer than the buffer is present.
        if end > body.len() && body.len() + 12 < LONGEST {
            return Err(Wrong::Broken("the length of a packet's data"));
        }
        let octets: Range<usize> = header..end.min(body.len());
        Ok(Frame {
            link: interface.link,
            time,
            length: length.max(captured),
            octets,
        })
    }
}

/// Counts the trailing zero bytes as padding. No block begins with zeros, so data after them is an
/// error.
fn zeros(bytes: &mut Bytes<'_>) -> Result<Next, Wrong> {
    let mut count = 0;
    loop {
        let part = bytes.peek(LONGEST)?;
        if part.is_empty() {
            return Ok(Next::Trailing(count));
        }
        if part.iter().any(|octet| *octet != 0) {
            return Err(Wrong::Broken("the length of a block"));
        }
        let part = part.len() as u64;
        count += part;
        bytes.skip(part)?;
    }
}

/// Returns (`p`, `u`) such that `u` time stamp units are `p` picoseconds.
fn units(resolution: u8) -> Result<(i128, i128), Wrong> {
    let exponent = u32::from(resolution & 0x7f);
    // Differences below a picosecond are lost. Time stamps have 64 bits, so their product with
    // PICOS fits into `i128`.
    let base: i128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    let units = base.checked_pow(exponent);
    let units = units.ok_or(Wrong::Broken("the resolution of an interface's time"))?;
    if PICOS % units == 0 {
        return Ok((PICOS / units, 1));
    }
    Ok((PICOS, units))
}
