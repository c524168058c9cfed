//! The addresses of hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Prefix of the network that all hosts share: part of 10.0.0.0/8 (RFC 1918).
const V4: [u8; 2] = [10, 113];
/// Length of the IPv4 prefix.
pub const V4_PREFIX: u32 = 16;
/// A unique local prefix (RFC 4193).
const V6: [u8; 14] = [0xfd, 0x71, 0x61, 0x6e, 0x61, 0x62, 0, 0, 0, 0, 0, 0, 0, 0];
/// Length of the IPv6 prefix.
pub const V6_PREFIX: u32 = 64;

/// The host number in an address that [`number`] made; `None` for any other address.
pub fn number_in(address: IpAddr) -> Option<u16> {
    match address {
        IpAddr::V4(v4) => after(&v4.octets(), &V4),
        IpAddr::V6(v6) => after(&v6.octets(), &V6),
    }
}

fn after(octets: &[u8], network: &[u8]) -> Option<u16> {
    let rest = octets.strip_prefix(network)?;
    Some(u16::from_be_bytes(rest.try_into().ok()?))
}

/// The IPv4 address of a host.
pub fn v4_of(host: usize) -> Ipv4Addr {
    let [a, b] = number(host).to_be_bytes();
    Ipv4Addr::new(V4[0], V4[1], a, b)
}

/// The IPv6 address of a host.
pub fn v6_of(host: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets[..14].copy_from_slice(&V6);
    octets[14..].copy_from_slice(&number(host).to_be_bytes());
    octets.into()
}

/// The IPv4 or IPv6 address of a host.
pub fn address_of(host: usize, is_v6: bool) -> IpAddr {
    if is_v6 {
        v6_of(host).into()
    } else {
        v4_of(host).into()
    }
}

/// The number of a host; 0 is the network's own address.
pub fn number(host: usize) -> u16 {
    u16::try_from(host + 1).expect("hosts are counted in 16 bits")
}
