//! Messages to senders inside whose packets no path carries: "fragmentation needed" (RFC 1191 §4) and "packet too big" (RFC 4443
//! §3.2).
//!
//! The interface's MTU follows the tunnel's, so the kernel sends nearly all of them. These are for packets that pass just after the MTU has
//! shrunk, and below IPv6's least MTU.

use anabranch_core::units::Duration;
use anabranch_gateway::time::Instant;
use anabranch_wire::{IpPacket, icmp::Error};

/// Messages within [`PERIOD`], at most (RFC 4443 §2.4 (f)).
const MOST: u32 = 100;
const PERIOD: Duration = Duration::from_secs(1);
/// An IPv6 sender need not go below it (RFC 8201 §4).
const LEAST_V6: usize = 1280;

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
        let ip = IpPacket::read(packet).ok()?;
        if !ip.dont_fragment() || (ip.is_v6() && mtu < LEAST_V6) {
            return None;
        }
        let mtu = u32::try_from(mtu).ok()?;
        // From the packet's destination, which the kernel knows behind the interface. It would refuse an address of its own.
        let message = Error::TooBig { mtu }.about(packet, ip.destination())?;
        self.written += 1;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::packet::Ecn;
    use anabranch_wire::{Carried, IpHeader, Ports, Prefix, Version, encode_datagram};

    fn packet(version: Version) -> Vec<u8> {
        let ip = IpHeader {
            version,
            dscp: 0,
            ecn: Ecn::NotEct,
            hop_limit: 64,
        };
        let ports = Ports {
            source: 5_000,
            destination: 6_000,
        };
        let mut packet = Vec::new();
        let to = Prefix::whole(&mut packet);
        encode_datagram(&ip, ports, Carried::Zeros(1_400), to).expect("it fits");
        packet
    }

    fn v4() -> Vec<u8> {
        let [source, destination] = [[192, 168, 7, 2], [10, 9, 0, 1]].map(Into::into);
        packet(Version::between(source, destination).expect("both are of IPv4"))
    }

    fn message(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
        TooBig::default().message(packet, mtu, Instant::START)
    }

    #[test]
    fn messages_come_from_the_destination() {
        let message = message(&v4(), 1_192).expect("a message");
        let ip = IpPacket::read(&message).expect("IP");
        assert_eq!(ip.addresses(), [10, 9, 0, 1, 192, 168, 7, 2]);
    }

    #[test]
    fn no_message_is_about_a_packet_that_may_be_fragmented() {
        let mut packet = v4();
        packet[6] = 0;
        assert_eq!(message(&packet, 1_192), None);
    }

    #[test]
    fn ipv6_has_no_message_below_its_least_mtu() {
        let [source, destination] = [[1; 16], [2; 16]].map(Into::into);
        let packet = packet(Version::between(source, destination).expect("both are of IPv6"));
        assert!(message(&packet, 1_280).is_some());
        assert_eq!(message(&packet, 1_279), None);
    }

    #[test]
    fn messages_are_limited_and_begin_again() {
        let mut limited = TooBig::default();
        let packet = v4();
        let mut count = |now| {
            let all = (0..3 * MOST).filter_map(|_| limited.message(&packet, 1_192, now));
            all.count()
        };
        assert_eq!(count(Instant::START), MOST as usize);
        assert_eq!(count(Instant::START + PERIOD), MOST as usize);
    }
}
