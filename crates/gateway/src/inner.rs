//! IP packets inside the tunnel: which flow they belong to and who sent them.

use anabranch_core::packet::Ecn;
use anabranch_wire::{Fragment, IpPacket, Protocol};
use core::net::IpAddr;

/// Flows: senders hash into as many.
pub const FLOWS: u16 = 1_024;

/// The fields of a packet that the tunnel needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The code point (RFC 2474).
    pub dscp: u8,
    /// Source and destination port, if the protocol has them and the packet is not fragmented.
    pub ports: Option<[u16; 2]>,
    /// The flow, below [`FLOWS`].
    pub flow: u16,
    /// Where the TCP header begins, if this packet has one.
    tcp: Option<usize>,
}

/// Whether a packet is one of TCP.
#[must_use]
pub fn is_tcp(packet: &[u8]) -> bool {
    IpPacket::read(packet).is_ok_and(|ip| ip.protocol() == Protocol::Tcp.number())
}

/// Reads a packet. `None` where it is not one whole IPv4 or IPv6 packet.
#[must_use]
pub fn read(packet: &[u8]) -> Option<Summary> {
    let ip = IpPacket::read(packet).ok()?;
    // Extension headers are for the receiver to judge.
    let has_header = ip.is_v6() || ip.header_len() <= packet.len();
    if !has_header || ip.length() != Some(packet.len()) {
        return None;
    }
    // A flow has all fragments of its packets: only the first of them has ports.
    let is_whole = ip.fragment() == Fragment::Whole;
    let ports = ip.ports().filter(|_| is_whole);
    let is_tcp = is_whole && ip.protocol() == Protocol::Tcp.number();
    Some(Summary {
        source: ip.source(),
        destination: ip.destination(),
        dscp: ip.dscp(),
        ports,
        flow: hash(ip.addresses(), ip.next_header(), ports),
        tcp: is_tcp.then_some(ip.header_len()),
    })
}

/// The length of a packet by its header: there may be more behind it.
#[must_use]
pub fn length(packet: &[u8]) -> Option<usize> {
    IpPacket::read(packet).ok()?.length()
}

/// The ECN field.
#[must_use]
pub fn ecn(packet: &[u8]) -> Ecn {
    IpPacket::read(packet).map_or(Ecn::NotEct, |ip| ip.ecn())
}

/// The ECN field of a packet that arrived with `inner` in a datagram with `outer` (RFC 6040 §4.2 figure 4). `None`: it is to be dropped.
#[must_use]
pub const fn decapsulated(inner: Ecn, outer: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => None,
        (Ecn::NotEct, _) => Some(Ecn::NotEct),
        (Ecn::Ce, _) | (_, Ecn::Ce) => Some(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) => Some(Ecn::Ect1),
        (Ecn::Ect0 | Ecn::Ect1, _) => Some(inner),
    }
}

/// FNV-1a, folded to the number of flows.
fn hash(addresses: &[u8], protocol: u8, ports: Option<[u16; 2]>) -> u16 {
    let protocol = [protocol];
    let ports = ports.map(|ports| ports.map(u16::to_be_bytes));
    let octets = addresses
        .iter()
        .chain(&protocol)
        .chain(ports.as_ref().into_iter().flatten().flatten());
    let hash = octets.fold(0x811c_9dc5_u32, |hash, &octet| {
        (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
    });
    u16::try_from((hash ^ (hash >> 16)) % u32::from(FLOWS)).unwrap_or(0)
}

/// Lowers the MSS option of a SYN, so that segments fit into packets of `mtu` octets; whether it did.
pub fn clamp_mss(packet: &mut [u8], summary: &Summary, mtu: usize) -> bool {
    let headers = if summary.source.is_ipv4() { 40 } else { 60 };
    let Ok(limit) = u16::try_from(mtu.saturating_sub(headers)) else {
        return false;
    };
    let tcp = summary.tcp.and_then(|at| packet.get_mut(at..));
    tcp.is_some_and(|tcp| anabranch_wire::clamp_mss(tcp, limit))
}

/// A prefix of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: u128,
    length: u32,
    is_v4: bool,
}

impl Prefix {
    /// `address/length`; `None` where the length is too great, or the address has bits beyond it.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let (bits, width, is_v4) = bits(address);
        let length = u32::from(length);
        let beyond = bits.checked_shl(length).unwrap_or(0);
        (length <= width && beyond == 0).then_some(Self {
            address: bits,
            length,
            is_v4,
        })
    }

    /// Whether it contains `address`.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, _, is_v4) = bits(address);
        is_v4 == self.is_v4
            && (bits ^ self.address)
                .checked_shr(128 - self.length)
                .unwrap_or(0)
                == 0
    }

    /// Its first and last address.
    #[must_use]
    pub fn range(&self) -> [IpAddr; 2] {
        let beyond = u128::MAX.checked_shr(self.length).unwrap_or(0);
        let address = |bits: u128| {
            if self.is_v4 {
                // The high 32 bits are the address.
                IpAddr::from(u32::try_from(bits >> 96).unwrap_or(0).to_be_bytes())
            } else {
                IpAddr::from(bits.to_be_bytes())
            }
        };
        [self.address, self.address | beyond].map(address)
    }
}

/// An address at the high end of 128 bits, and its width.
fn bits(address: IpAddr) -> (u128, u32, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32, true),
        IpAddr::V6(address) => (address.to_bits(), 128, false),
    }
}
