//! Reasons why a frame yields no IP packet.

use std::fmt;

/// Reason why a frame yields no IP packet. Reports list them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// ARP and RARP.
    Arp,
    /// PPPoE discovery (RFC 2516 §5).
    PppoeDiscovery,
    /// PPP's own protocols: LCP, IPCP, authentication (RFC 1661).
    PppControl,
    /// IEEE 802.2 without IP: spanning tree, IS-IS, `NetBIOS`.
    Llc,
    /// IEEE 802.1AB.
    Lldp,
    /// IEEE 802.3 slow protocols: LACP, OAM.
    SlowProtocol,
    /// Another network protocol.
    OtherProtocol,
    /// MPLS that carries neither IP nor Ethernet.
    MplsPayload,
    /// A link type that is not read.
    LinkType(u16),
    /// Too little was captured to decide whether it is IP.
    CutShort,
    /// IP with an impossible length or header.
    MalformedIp,
    /// A packet without a time (simple packet block).
    NoTime,
}

impl Skip {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Arp => "arp".to_owned(),
            Self::PppoeDiscovery => "pppoe-discovery".to_owned(),
            Self::PppControl => "ppp-control".to_owned(),
            Self::Llc => "llc".to_owned(),
            Self::Lldp => "lldp".to_owned(),
            Self::SlowProtocol => "slow-protocol".to_owned(),
            Self::OtherProtocol => "other-protocol".to_owned(),
            Self::MplsPayload => "mpls-payload".to_owned(),
            Self::LinkType(number) => format!("link-type-{number}"),
            Self::CutShort => "cut-short".to_owned(),
            Self::MalformedIp => "malformed-ip".to_owned(),
            Self::NoTime => "no-time".to_owned(),
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arp => f.write_str("ARP"),
            Self::PppoeDiscovery => f.write_str("PPPoE discovery"),
            Self::PppControl => f.write_str("PPP control"),
            Self::Llc => f.write_str("LLC without IP"),
            Self::Lldp => f.write_str("LLDP"),
            Self::SlowProtocol => f.write_str("LACP and other slow protocols"),
            Self::OtherProtocol => f.write_str("another network protocol"),
            Self::MplsPayload => f.write_str("MPLS without IP"),
            Self::LinkType(number) => write!(f, "link type {number}, which is not read"),
            Self::CutShort => f.write_str("captured too short"),
            Self::MalformedIp => f.write_str("malformed IP"),
            Self::NoTime => f.write_str("without a time"),
        }
    }
}
