//! What a router writes to the sender of a packet that is too big: ICMP "fragmentation needed" (RFC 792, RFC 1191 §4), ICMPv6
//! "packet too big" (RFC 4443 §3.2).

use anabranch_tcp::wire::Checksum;

use super::Header;

/// Octets of an IPv4 message (RFC 1812 §4.3.2.3), and of one over IPv6, which is its least MTU.
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const HOPS: u8 = 64;

/// The message about `packet`, whole; `None` if that is no IP. Routers here have no addresses, so it comes from the packet's
/// destination.
pub(super) fn too_big(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let header = Header::of(packet)?;
    let [from, to] = header.addresses;
    Some(if from.len() == 4 {
        message_v4(packet, mtu, (to, from))
    } else {
        message_v6(packet, mtu, (to, from))
    })
}

fn message_v4(packet: &[u8], mtu: u32, (from, to): (&[u8], &[u8])) -> Vec<u8> {
    const IP: usize = 20;
    const HEADERS: usize = IP + 8;
    let quoted = &packet[..packet.len().min(MOST_V4 - HEADERS)];
    let mut message = vec![0; IP];
    message[0] = 0x45;
    message[2..4].copy_from_slice(&length(HEADERS + quoted.len()));
    message[8] = HOPS;
    message[9] = ICMP;
    message[12..16].copy_from_slice(from);
    message[16..20].copy_from_slice(to);
    let sum = checksum(&[&message]);
    message[10..12].copy_from_slice(&sum.to_be_bytes());
    // Type 3, code 4.
    message.extend([3, 4, 0, 0, 0, 0]);
    message.extend(u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
    message.extend_from_slice(quoted);
    let sum = checksum(&[&message[IP..]]);
    message[IP + 2..IP + 4].copy_from_slice(&sum.to_be_bytes());
    message
}

fn message_v6(packet: &[u8], mtu: u32, (from, to): (&[u8], &[u8])) -> Vec<u8> {
    const IP: usize = 40;
    const HEADERS: usize = IP + 8;
    let quoted = &packet[..packet.len().min(MOST_V6 - HEADERS)];
    let payload = length(8 + quoted.len());
    let mut message = vec![0; IP];
    message[0] = 0x60;
    message[4..6].copy_from_slice(&payload);
    message[6] = ICMPV6;
    message[7] = HOPS;
    message[8..24].copy_from_slice(from);
    message[24..40].copy_from_slice(to);
    // Type 2, code 0.
    message.extend([2, 0, 0, 0]);
    message.extend(mtu.to_be_bytes());
    message.extend_from_slice(quoted);
    // With the pseudo-header (RFC 8200 §8.1).
    let upper = [0, 0, payload[0], payload[1], 0, 0, 0, ICMPV6];
    let sum = checksum(&[from, to, &upper, &message[IP..]]);
    message[IP + 2..IP + 4].copy_from_slice(&sum.to_be_bytes());
    message
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = Checksum::default();
    for part in parts {
        sum.add(part);
    }
    sum.finish()
}

fn length(octets: usize) -> [u8; 2] {
    u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes()
}
