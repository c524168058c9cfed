//! Messages to senders inside whose packets no path carries: "fragmentation needed" (RFC 1191 §4) and "packet too big" (RFC 4443
//! §3.2).
//!
//! The interface's MTU follows the tunnel's, so the kernel sends nearly all of them. These are for what passes just after the MTU has
//! shrunk, and below IPv6's least MTU.

use anabranch_core::units::{Duration, Instant};
use etherparse::{
    Icmpv4Type, Icmpv6Type, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, PacketBuilder,
    icmpv4::DestUnreachableHeader,
};

/// Messages within [`PERIOD`], at most (RFC 4443 §2.4 (f)).
const MOST: u32 = 100;
const PERIOD: Duration = Duration::from_secs(1);
/// Octets of a message at most: RFC 1812 §4.3.2.3, RFC 4443 §2.4 (c).
const LARGEST_V4: usize = 576;
const LARGEST_V6: usize = 1280;
/// A sender need not go below it (RFC 8201 §4).
const LEAST_V6: usize = 1280;
const HOPS: u8 = 64;
/// ICMP types up to this are errors (RFC 4443 §2.1).
const LAST_V6_ERROR: u8 = 127;
/// ICMP types that are no errors (RFC 792): echo, timestamp and information, and the answers.
const V4_QUERIES: [u8; 6] = [0, 8, 13, 14, 15, 16];

/// Writes the messages, and limits their number.
#[derive(Debug, Default)]
pub struct TooBig {
    since: Instant,
    written: u32,
}

impl TooBig {
    /// The message for a packet that is larger than `mtu`, unless its sender must get none.
    pub fn message(&mut self, packet: &[u8], mtu: usize, now: Instant) -> Option<Vec<u8>> {
        if now.saturating_since(self.since) >= PERIOD {
            (self.since, self.written) = (now, 0);
        }
        if self.written == MOST {
            return None;
        }
        let message = match packet.first()? >> 4 {
            4 => of_v4(packet, mtu),
            _ => of_v6(packet, mtu),
        }?;
        self.written += 1;
        Some(message)
    }
}

/// Comes from the packet's destination, which the kernel knows behind the interface. It would refuse an address of its own.
fn of_v4(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
    let header = Ipv4HeaderSlice::from_slice(packet).ok()?;
    let (source, destination) = (header.source_addr(), header.destination_addr());
    let is_host = !source.is_unspecified() && !source.is_multicast() && !source.is_broadcast();
    let to_host = !destination.is_multicast() && !destination.is_broadcast();
    // RFC 1122 §3.2.2: not for errors, nor for fragments after the first.
    let first = packet.get(header.slice().len());
    let is_error =
        header.protocol() == IpNumber::ICMP && first.is_none_or(|kind| !V4_QUERIES.contains(kind));
    let is_first = header.fragments_offset().value() == 0;
    if !header.dont_fragment() || !is_host || !to_host || is_error || !is_first {
        return None;
    }
    let needed = DestUnreachableHeader::FragmentationNeeded {
        next_hop_mtu: u16::try_from(mtu).ok()?,
    };
    let builder = PacketBuilder::ipv4(destination.octets(), source.octets(), HOPS)
        .icmpv4(Icmpv4Type::DestinationUnreachable(needed));
    let quoted = &packet[..packet.len().min(LARGEST_V4 - builder.size(0))];
    let mut message = Vec::with_capacity(builder.size(quoted.len()));
    builder.write(&mut message, quoted).ok()?;
    Some(message)
}

fn of_v6(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
    let header = Ipv6HeaderSlice::from_slice(packet).ok()?;
    let (source, destination) = (header.source_addr(), header.destination_addr());
    let is_host = !source.is_unspecified() && !source.is_multicast();
    let first = packet.get(header.slice().len());
    let is_error = header.next_header() == IpNumber::IPV6_ICMP
        && first.is_none_or(|&kind| kind <= LAST_V6_ERROR);
    if mtu < LEAST_V6 || !is_host || destination.is_multicast() || is_error {
        return None;
    }
    let too_big = Icmpv6Type::PacketTooBig {
        mtu: u32::try_from(mtu).ok()?,
    };
    let builder = PacketBuilder::ipv6(destination.octets(), source.octets(), HOPS).icmpv6(too_big);
    let quoted = &packet[..packet.len().min(LARGEST_V6 - builder.size(0))];
    let mut message = Vec::with_capacity(builder.size(quoted.len()));
    builder.write(&mut message, quoted).ok()?;
    Some(message)
}

#[cfg(test)]
mod tests {
    use anabranch_core::units::Instant;
    use etherparse::{Icmpv6Slice, Icmpv6Type, IpHeaders, PacketBuilder};

    use super::{LARGEST_V6, MOST, PERIOD, TooBig};

    type Change = fn(&mut Vec<u8>);

    const SOURCE: [u8; 4] = [192, 168, 7, 2];
    const DESTINATION: [u8; 4] = [10, 9, 0, 1];

    fn v4(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4(SOURCE, DESTINATION, 64).udp(5_000, 6_000);
        builder.write(&mut packet, &[7; 1_400]).expect("it fits");
        // "Don't fragment".
        packet[6] = 0x40;
        change(&mut packet);
        packet
    }

    fn v6(destination: [u8; 16]) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], destination, 64).udp(5_000, 6_000);
        builder.write(&mut packet, &[7; 1_400]).expect("it fits");
        packet
    }

    fn message(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
        TooBig::default().message(packet, mtu, Instant::START)
    }

    /// The Internet checksum of RFC 1071 over a header that contains it.
    fn sums_to_zero(octets: &[u8]) -> bool {
        let words = octets.chunks(2).map(|pair| {
            let low = pair.get(1).copied().unwrap_or(0);
            u32::from(u16::from_be_bytes([pair[0], low]))
        });
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn the_sender_is_told_the_mtu_and_sees_its_packet() {
        let packet = v4(|_| ());
        let message = message(&packet, 1_192).expect("a message");
        assert_eq!(message.len(), 576);
        assert!(sums_to_zero(&message[..20]) && sums_to_zero(&message[20..]));
        assert_eq!(
            (&message[12..16], &message[16..20]),
            (&DESTINATION[..], &SOURCE[..])
        );
        // Type 3, code 4, and the MTU in the second half of the second word (RFC 1191 §4).
        assert_eq!(message[20..22], [3, 4]);
        assert_eq!(u16::from_be_bytes([message[26], message[27]]), 1_192);
        assert_eq!(message[28..], packet[..548]);
    }

    #[test]
    fn an_ipv6_sender_is_told_no_less_than_1280() {
        let packet = v6([2; 16]);
        let message = message(&packet, 1_352).expect("a message");
        assert_eq!(message.len(), LARGEST_V6);
        let (headers, payload) = IpHeaders::from_slice(&message).expect("it is IPv6");
        let (header, _) = headers.ipv6().expect("it is IPv6");
        let icmp = Icmpv6Slice::from_slice(payload.payload).expect("it is whole");
        assert!(icmp.is_checksum_valid(header.source, header.destination));
        assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1_352 });
        assert_eq!(super::of_v6(&packet, 1_192), None);
    }

    #[test]
    fn who_must_get_no_message_gets_none() {
        let cases: [(&str, Change); 6] = [
            ("a packet that may be fragmented", |packet| packet[6] = 0),
            ("a later fragment", |packet| packet[7] = 9),
            ("an unspecified source", |packet| packet[12..16].fill(0)),
            ("a group", |packet| packet[16] = 224),
            ("an ICMP error", |packet| {
                packet[9] = 1;
                packet[20] = 3;
            }),
            ("half a header", |packet| packet.truncate(19)),
        ];
        for (who, change) in cases {
            assert_eq!(message(&v4(change), 1_192), None, "{who}");
        }
        let mut group = [0; 16];
        group[0] = 0xff;
        assert_eq!(message(&v6(group), 1_352), None);
        assert_eq!(message(&[], 1_192), None);
    }

    #[test]
    fn messages_are_limited_and_begin_again() {
        let mut limited = TooBig::default();
        let packet = v4(|_| ());
        let mut count = |now| {
            let all = (0..3 * MOST).filter_map(|_| limited.message(&packet, 1_192, now));
            all.count()
        };
        assert_eq!(count(Instant::START), MOST as usize);
        assert_eq!(count(Instant::START + PERIOD), MOST as usize);
    }
}
