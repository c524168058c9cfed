//! Conversion between the script's numbers and the numbers in packets.
//!
//! In a script, each side's stream begins at the number of its SYN, mostly 0. A fixed offset is
//! added to the peer's numbers in packets. The target's offset is known after its SYN; before that,
//! its numbers are used unchanged.
//!
//! In a script for Linux, a SYN has any number, and later numbers count from it, as in packetdrill.

use anabranch_core::packet;
use anabranch_wire::{
    self as wire, Carried, Flags, IpHeader, Ports, Prefix, Protocol, SackBlock, TcpHeader,
    TcpOption, TcpPacket, Timestamps, Version, iter_options,
};

use crate::syntax::{Ecn, Fault, Header, Icmp, Item, Options};

/// The stream that the target writes.
pub(super) const WRITTEN: u8 = 1;
/// The stream that is sent to the target.
pub(super) const INJECTED: u8 = 2;

/// The octets of a stream from `start` on. Shifting it by less than 64,256 octets changes them.
pub(super) fn stream(which: u8, start: u64, len: u32) -> Vec<u8> {
    (start..start + u64::from(len))
        .map(|at| {
            let value = at % 251 + at / 251 * 7 + u64::from(which) * 101;
            u8::try_from(value % 256).expect("below 256")
        })
        .collect()
}

pub(super) struct Numbers {
    /// Offset of the peer's numbers.
    peer: u32,
    /// The peer's first octet in the script's numbers, known after its first SYN.
    peer_start: Option<u32>,
    /// Offset of the target's numbers, once known.
    target: Option<u32>,
    /// The target's first octet in the numbers of its SYN.
    target_start: u32,
    /// Numbers of segments other than a SYN count from the SYN of their side.
    are_relative: bool,
    /// Offset of the target's timestamps, once known.
    timestamps: Option<u32>,
}

impl Numbers {
    pub(super) const fn new(peer: u32, are_relative: bool) -> Self {
        Self {
            peer,
            peer_start: None,
            target: None,
            target_start: 1,
            are_relative,
            timestamps: None,
        }
    }

    /// The target's first octet in the numbers of a segment with these flags.
    pub(super) fn target_start(&self, flags: Flags) -> u32 {
        self.target_start.wrapping_sub(self.target_base(flags))
    }

    /// Added to the target's numbers in a segment with these flags.
    fn target_base(&self, flags: Flags) -> u32 {
        let is_relative = self.are_relative && !flags.any(Flags::SYN);
        if is_relative {
            self.target_start.wrapping_sub(1)
        } else {
            0
        }
    }

    /// The same for the peer's numbers.
    fn peer_base(&self, flags: Flags) -> u32 {
        let is_relative = self.are_relative && !flags.any(Flags::SYN);
        if is_relative {
            self.peer_start.map_or(0, |start| start.wrapping_sub(1))
        } else {
            0
        }
    }

    fn blocks(blocks: &[SackBlock], offset: u32, add: bool) -> Vec<SackBlock> {
        let shift = |number: u32| {
            if add {
                number.wrapping_add(offset)
            } else {
                number.wrapping_sub(offset)
            }
        };
        blocks
            .iter()
            .map(|block| SackBlock {
                left: shift(block.left),
                right: shift(block.right),
            })
            .collect()
    }

    /// Builds the packet of a line with `<`.
    pub(super) fn write(
        &mut self,
        header: &Header,
        (version, ports): (Version, Ports),
    ) -> Result<Vec<u8>, String> {
        if header.flags.any(Flags::SYN) {
            self.peer_start.get_or_insert(header.seq.wrapping_add(1));
        }
        let target = self
            .target
            .unwrap_or(0)
            .wrapping_add(self.target_base(header.flags));
        let base = self.peer_base(header.flags);
        let mut options = Vec::new();
        if let Options::List(items) = &header.options {
            for item in items {
                self.write_option(item, target, &mut options);
            }
        }
        let first = header
            .seq
            .wrapping_add(base)
            .wrapping_add(u32::from(header.flags.any(Flags::SYN)));
        // Octets before the first octet of the stream are not part of it and may be arbitrary.
        let place = u64::from(first.wrapping_sub(self.peer_start.unwrap_or(1)));
        let mut payload = stream(INJECTED, place, header.len);
        if header.faults.contains(&Fault::Garbage) {
            for octet in &mut payload {
                *octet = !*octet;
            }
        }
        let ip = IpHeader {
            version,
            dscp: 0,
            ecn: match header.ecn {
                None | Some(Ecn::NotEct) => packet::Ecn::NotEct,
                Some(Ecn::Ect0) => packet::Ecn::Ect0,
                Some(Ecn::Ect1) => packet::Ecn::Ect1,
                Some(Ecn::Ce) => packet::Ecn::Ce,
            },
            hop_limit: 64,
        };
        let tcp = TcpHeader {
            ports,
            seq: header.seq.wrapping_add(base).wrapping_add(self.peer),
            ack: header.ack.map_or(0, |ack| ack.wrapping_add(target)),
            flags: header.flags,
            window: header.window.unwrap_or(0),
            urgent: 0,
        };
        let mut out = Vec::new();
        let packet = TcpPacket {
            ip: &ip,
            header: &tcp,
            options: &options,
            payload: Carried::Octets(&payload),
        };
        wire::encode_tcp(&packet, Prefix::whole(&mut out)).map_err(|error| error.to_string())?;
        // Cuts are applied last: the other faults need a complete packet.
        let (cuts, others): (Vec<Fault>, Vec<Fault>) = header
            .faults
            .iter()
            .copied()
            .partition(|fault| matches!(fault, Fault::Cut(_)));
        for fault in others.into_iter().chain(cuts) {
            spoil(&mut out, &ip, fault)?;
        }
        Ok(out)
    }

    /// Builds an ICMP error about a segment of the target, the oldest outstanding one unless the
    /// script names one.
    pub(super) fn write_icmp(
        &self,
        icmp: Icmp,
        oldest: u32,
        (version, ports): (Version, Ports),
    ) -> Result<Vec<u8>, String> {
        let [source, destination] = version.addresses();
        let version = Version::between(destination, source).ok_or("addresses of two versions")?;
        let ip = IpHeader {
            version,
            dscp: 0,
            ecn: packet::Ecn::NotEct,
            hop_limit: 64,
        };
        let header = TcpHeader {
            ports: ports.swapped(),
            seq: icmp
                .seq
                .unwrap_or(oldest)
                .wrapping_add(self.target_base(Flags::ACK))
                .wrapping_add(self.target.unwrap_or(0)),
            ack: 0,
            flags: Flags::ACK,
            window: 0,
            urgent: 0,
        };
        let mut quoted = Vec::new();
        let packet = TcpPacket {
            ip: &ip,
            header: &header,
            options: &[],
            payload: Carried::Octets(&[]),
        };
        wire::encode_tcp(&packet, Prefix::whole(&mut quoted)).map_err(|error| error.to_string())?;
        let error = match icmp.mtu {
            Some(mtu) => wire::icmp::Error::TooBig { mtu: mtu.into() },
            None => wire::icmp::Error::Unreachable { code: icmp.code },
        };
        error
            .about(&quoted, source)
            .ok_or_else(|| "no error may be sent about this packet".to_owned())
    }

    fn write_option(&self, item: &Item, target: u32, out: &mut Vec<u8>) {
        match item {
            Item::Nop => TcpOption::Nop.write(out),
            Item::End => out.push(0),
            Item::Mss(mss) => TcpOption::Mss(*mss).write(out),
            Item::WindowScale(shift) => TcpOption::WindowScale(*shift).write(out),
            Item::SackPermitted => TcpOption::SackPermitted.write(out),
            Item::Sack(blocks) => {
                let moved = Self::blocks(blocks, target, true);
                let mut four = [SackBlock::default(); 4];
                four[..moved.len()].copy_from_slice(&moved);
                TcpOption::Sack(u8::try_from(moved.len()).expect("four at most"), four).write(out);
            }
            Item::Timestamps(value, echo) => {
                let echo = echo.wrapping_add(self.timestamps.unwrap_or(0));
                TcpOption::Timestamps(Timestamps {
                    value: *value,
                    echo,
                })
                .write(out);
            }
            Item::AccEcn(accecn) => TcpOption::AccEcn(*accecn).write(out),
            Item::FastOpen {
                is_experimental,
                cookie,
            } => {
                // A cookie may have a wrong length.
                let header: &[u8] = if *is_experimental {
                    &[254, 4, 0xf9, 0x89]
                } else {
                    &[34, 2]
                };
                let start = out.len();
                out.extend_from_slice(header);
                out[start + 1] += u8::try_from(cookie.len()).unwrap_or(0);
                out.extend_from_slice(cookie);
            }
            Item::Raw(octets) => out.extend_from_slice(octets),
        }
    }

    /// Reads a packet of the target into the script's numbers. `expected` gives the numbers of its
    /// first SYN.
    pub(super) fn read(
        &mut self,
        octets: &[u8],
        expected: &Header,
        (version, ports): (Version, Ports),
    ) -> Result<Header, String> {
        let packet = take_apart(octets)?;
        if !packet.is_from((version, ports)) {
            return Err("the target has sent a packet to somebody else".to_owned());
        }
        if packet.tcp.flags.any(Flags::SYN) && self.target.is_none() {
            self.target = Some(packet.tcp.seq.wrapping_sub(expected.seq));
            self.target_start = expected.seq.wrapping_add(1);
        }
        if self.timestamps.is_none()
            && let Some(value) = packet.timestamp()
        {
            let says = match &expected.options {
                Options::List(items) => items.iter().find_map(|item| match item {
                    Item::Timestamps(value, _) => Some(*value),
                    _ => None,
                }),
                Options::Any => None,
            };
            // By default, timestamps begin at 0.
            self.timestamps = Some(value.wrapping_sub(says.unwrap_or(0)));
        }
        Ok(self.translate(&packet))
    }

    /// Formats a packet for messages.
    pub(super) fn describe(&self, octets: &[u8]) -> String {
        match take_apart(octets) {
            Ok(packet) => self.translate(&packet).to_string(),
            Err(message) => message,
        }
    }

    fn translate(&self, packet: &Packet<'_>) -> Header {
        let flags = packet.tcp.flags;
        let peer = self.peer.wrapping_add(self.peer_base(flags));
        let target = self
            .target
            .unwrap_or(0)
            .wrapping_add(self.target_base(flags));
        let items = packet.options.iter().map(|option| match option {
            TcpOption::Nop => Item::Nop,
            TcpOption::Mss(mss) => Item::Mss(*mss),
            TcpOption::WindowScale(shift) => Item::WindowScale(*shift),
            TcpOption::SackPermitted => Item::SackPermitted,
            TcpOption::Sack(n, blocks) => {
                Item::Sack(Self::blocks(&blocks[..usize::from(*n)], peer, false))
            }
            TcpOption::Timestamps(timestamps) => Item::Timestamps(
                timestamps.value.wrapping_sub(self.timestamps.unwrap_or(0)),
                timestamps.echo,
            ),
            TcpOption::AccEcn(accecn) => Item::AccEcn(*accecn),
            TcpOption::FastOpen(option) => Item::FastOpen {
                is_experimental: option.is_experimental(),
                cookie: option.cookie().to_vec(),
            },
            TcpOption::Unknown { kind, content } => {
                let mut octets = Vec::new();
                TcpOption::Unknown {
                    kind: *kind,
                    content,
                }
                .write(&mut octets);
                Item::Raw(octets)
            }
        });
        let tcp = &packet.tcp;
        Header {
            flags: tcp.flags,
            seq: tcp.seq.wrapping_sub(target),
            len: u32::try_from(packet.payload.len()).expect("an IP packet"),
            ack: tcp
                .flags
                .any(Flags::ACK)
                .then(|| tcp.ack.wrapping_sub(peer)),
            window: Some(tcp.window),
            options: Options::List(items.collect()),
            ecn: Some(match packet.ip.ecn {
                packet::Ecn::NotEct => Ecn::NotEct,
                packet::Ecn::Ect0 => Ecn::Ect0,
                packet::Ecn::Ect1 => Ecn::Ect1,
                packet::Ecn::Ce => Ecn::Ce,
            }),
            faults: Vec::new(),
        }
    }
}

/// A packet of the target.
pub(super) struct Packet<'a> {
    ip: IpHeader,
    tcp: TcpHeader,
    options: Vec<TcpOption<'a>>,
    pub(super) payload: &'a [u8],
}

impl Packet<'_> {
    /// Whether it belongs to the connection of packets to `version` and `ports`.
    fn is_from(&self, (version, ports): (Version, Ports)) -> bool {
        self.tcp.ports == ports.swapped() && self.ip.version.answers(&version)
    }

    fn timestamp(&self) -> Option<u32> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Timestamps(timestamps) => Some(timestamps.value),
            _ => None,
        })
    }
}

/// Decodes a packet.
pub(super) fn take_apart(octets: &[u8]) -> Result<Packet<'_>, String> {
    let wrong = |error| format!("the target has sent a packet that is wrong: {error}");
    let (ip, protocol, segment) = wire::decode_ip(octets).map_err(wrong)?;
    if protocol != Protocol::Tcp {
        return Err("the target has sent a packet that is not TCP".to_owned());
    }
    let (tcp, options, payload) = wire::decode_tcp(&ip, segment).map_err(wrong)?;
    let options = iter_options(options)
        .collect::<Result<_, _>>()
        .map_err(wrong)?;
    Ok(Packet {
        ip,
        tcp,
        options,
        payload,
    })
}

/// Whether a packet belongs to another connection than packets of `towards`.
pub(super) fn is_foreign(octets: &[u8], towards: (Version, Ports)) -> bool {
    take_apart(octets).is_ok_and(|packet| !packet.is_from(towards))
}

/// The two parts of a divided packet.
type Parts = (Vec<u8>, Vec<u8>);

/// Divides a packet after `len` octets of its payload; `None` if it has no more. FIN and PSH belong
/// to the second part.
pub(super) fn divide(octets: &[u8], len: u32) -> Result<Option<Parts>, String> {
    let wrong = |error| format!("the target has sent a packet that is wrong: {error}");
    let (ip, protocol, segment) = wire::decode_ip(octets).map_err(wrong)?;
    if protocol != Protocol::Tcp {
        return Ok(None);
    }
    let (tcp, options, payload) = wire::decode_tcp(&ip, segment).map_err(wrong)?;
    let Some((first, rest)) = payload.split_at_checked(len as usize) else {
        return Ok(None);
    };
    if rest.is_empty() {
        return Ok(None);
    }
    let part = |header: TcpHeader, payload| {
        let mut out = Vec::new();
        let packet = TcpPacket {
            ip: &ip,
            header: &header,
            options,
            payload: Carried::Octets(payload),
        };
        wire::encode_tcp(&packet, Prefix::whole(&mut out))
            .map(|_| out)
            .map_err(|error| error.to_string())
    };
    let begin = TcpHeader {
        flags: Flags(tcp.flags.0 & !(Flags::FIN.0 | Flags::PSH.0)),
        ..tcp
    };
    let end = TcpHeader {
        seq: tcp.seq.wrapping_add(len),
        ..tcp
    };
    Ok(Some((part(begin, first)?, part(end, rest)?)))
}

/// Applies a fault to a packet.
fn spoil(packet: &mut Vec<u8>, ip: &IpHeader, fault: Fault) -> Result<(), String> {
    let tcp = ip.version.header_len();
    let v4 = matches!(ip.version, Version::V4 { .. });
    match fault {
        Fault::Garbage => {}
        Fault::BadChecksum => packet[tcp + 16] ^= 0x55,
        Fault::Offset(words) => {
            packet[tcp + 12] = words << 4 | packet[tcp + 12] & 15;
            packet[tcp + 16..tcp + 18].fill(0);
            let mut sum = ip.pseudo_header(Protocol::Tcp, packet.len() - tcp);
            sum.add(&packet[tcp..]);
            let sum = sum.finish().to_be_bytes();
            packet[tcp + 16..tcp + 18].copy_from_slice(&sum);
        }
        Fault::Cut(octets) => {
            let left = packet.len().saturating_sub(octets as usize);
            packet.truncate(left);
        }
        Fault::BadIpChecksum if v4 => packet[10] ^= 0x55,
        Fault::Fragment if v4 => {
            packet[6] |= 0x20;
            packet[10..12].fill(0);
            let sum = wire::Checksum::of(&packet[..tcp]);
            let sum = sum.finish().to_be_bytes();
            packet[10..12].copy_from_slice(&sum);
        }
        Fault::BadIpChecksum | Fault::Fragment => {
            return Err("only an IPv4 header has this field".to_owned());
        }
    }
    Ok(())
}
