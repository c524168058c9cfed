//! The reasons why a path does not deliver, as far as this end knows them.

use std::{
    fmt, fs,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use anabranch_core::units::Duration;
use anabranch_gateway::{time::Instant, tunnel::Hindrance};
use rustix::io::Errno;

use crate::{
    failure::Failure,
    links::{Link, Links},
    reach::Reach,
    socket::Bind,
};

/// A path that has been silent for less time has no reason yet if none is known.
const SILENT: Duration = Duration::from_secs(2);

/// A reason why a path does not deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The path's data cap is reached, and it is off.
    CapReached,
    NoInterface(String),
    NoAddress(IpAddr),
    NoCarrier,
    /// The interface is administratively down.
    Down(String),
    /// Answers of the other end arrive and cannot be opened.
    PresharedKey,
    /// No endpoint has an address yet.
    NoEndpoint,
    /// The interface lacks an address of the other end's family.
    Family {
        place: String,
        remote: IpAddr,
    },
    /// The kernel has no route, or `error` of its lookup.
    NoRoute {
        place: String,
        remote: IpAddr,
        error: Errno,
    },
    /// The local firewall refuses the datagrams.
    Firewall,
    /// A router refuses the datagrams.
    Prohibited {
        remote: IpAddr,
        by: IpAddr,
    },
    Unreachable {
        remote: IpAddr,
        by: IpAddr,
    },
    /// The next hop does not answer on the link.
    NoNeighbour {
        remote: IpAddr,
    },
    /// No gateway listens at the other end's address.
    PortClosed {
        remote: SocketAddr,
    },
    /// The kernel drops answers because its route to the other end leads over another interface.
    ReversePath {
        interface: String,
        remote: IpAddr,
        other: Option<String>,
    },
    /// Nothing is known but the silence.
    Silent {
        remote: SocketAddr,
        others_deliver: bool,
    },
}

impl Reason {
    /// The name of the reason, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::CapReached => "cap_reached",
            Self::NoInterface(_) => "no_interface",
            Self::NoAddress(_) => "no_address",
            Self::NoCarrier => "no_carrier",
            Self::Down(_) => "interface_down",
            Self::PresharedKey => Hindrance::PresharedKey.code(),
            Self::NoEndpoint => "no_endpoint",
            Self::Family { .. } => "wrong_family",
            Self::NoRoute { .. } => "no_route",
            Self::Firewall => "firewall",
            Self::Prohibited { .. } => "prohibited",
            Self::Unreachable { .. } => "unreachable",
            Self::NoNeighbour { .. } => "no_neighbour",
            Self::PortClosed { .. } => "port_closed",
            Self::ReversePath { .. } => "reverse_path_filter",
            Self::Silent { .. } => "silent",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CapReached => f.write_str("cap reached"),
            Self::NoInterface(name) => write!(f, "no interface {name}"),
            Self::NoAddress(address) => write!(f, "no address {address}"),
            Self::NoCarrier => f.write_str("no carrier"),
            Self::Down(name) => write!(f, "{name} is set down"),
            Self::PresharedKey => Hindrance::PresharedKey.fmt(f),
            Self::NoEndpoint => f.write_str("no endpoint has an address"),
            Self::Family { place, remote } => {
                let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
                write!(f, "{place} has no {family} address for {remote}")
            }
            Self::NoRoute {
                place,
                remote,
                error,
            } => match *error {
                Errno::NETUNREACH | Errno::HOSTUNREACH => {
                    write!(f, "no route to {remote} by {place}")
                }
                Errno::ACCESS => write!(f, "a route or rule forbids {remote} by {place}"),
                error => write!(f, "no route to {remote} by {place}: {error}"),
            },
            Self::Firewall => f.write_str("this machine's firewall refuses the datagrams"),
            Self::Prohibited { remote, by } => {
                write!(f, "{by} forbids datagrams to {remote}")
            }
            Self::Unreachable { remote, by } => write!(f, "{by} does not reach {remote}"),
            Self::NoNeighbour { remote } => {
                write!(f, "the next hop to {remote} does not answer")
            }
            Self::PortClosed { remote } => write!(f, "no gateway listens at {remote}"),
            Self::ReversePath {
                interface,
                remote,
                other,
            } => {
                write!(
                    f,
                    "the reverse path filter of {interface} drops answers: the route to {remote} "
                )?;
                match other {
                    Some(other) => write!(f, "leads over {other}")?,
                    None => f.write_str("is absent")?,
                }
                write!(f, "; sysctl net.ipv4.conf.{interface}.rp_filter=2")
            }
            Self::Silent {
                remote,
                others_deliver: true,
            } => write!(
                f,
                "no answer from {remote}, although other paths deliver: is UDP blocked on the way?"
            ),
            Self::Silent { remote, .. } => write!(f, "no answer from {remote}"),
        }
    }
}

/// The interface, address or carrier that this machine lacks for a socket.
pub fn lack(bind: &Bind, links: &Links) -> Option<Reason> {
    if bind.is_any() {
        return None;
    }
    match (bind.named_link(links), &bind.interface) {
        (None, Some(name)) => Some(Reason::NoInterface(name.clone())),
        (None, None) => Some(Reason::NoAddress(bind.address.ip())),
        (Some((name, link)), _) if !link.is_up => Some(Reason::Down(name.to_owned())),
        (Some((_, link)), _) => (!link.is_running).then_some(Reason::NoCarrier),
    }
}

/// A silent path.
pub struct SilentPath<'a> {
    pub bind: &'a Bind,
    /// The address that it tries.
    pub remote: Option<SocketAddr>,
    /// The last refusal of its datagrams.
    pub failure: Option<Failure>,
    /// The time since which it has been silent.
    pub since: Instant,
    /// Whether another path to the same peer delivers.
    pub others_deliver: bool,
    /// The reason why no session begins, if one is known.
    pub hindrance: Option<Hindrance>,
}

impl SilentPath<'_> {
    /// The reason, if one is known.
    pub fn reason(&self, links: &Links, reach: &mut Reach, now: Instant) -> Option<Reason> {
        let lack = lack(self.bind, links);
        if lack.is_some() {
            return lack;
        }
        let Some(remote) = self.remote else {
            return Some(Reason::NoEndpoint);
        };
        let before = before_sending(self.bind, remote, links, reach, now);
        let own = |by: IpAddr| links.with(by).is_some();
        let to = remote.ip();
        let failure = self.failure.map(|failure| match failure {
            Failure::Firewall => Reason::Firewall,
            Failure::Prohibited(by) => Reason::Prohibited { remote: to, by },
            // The kernel itself writes the message if the next hop does not answer.
            Failure::Unreachable(by) if own(by) => Reason::NoNeighbour { remote: to },
            Failure::Unreachable(by) => Reason::Unreachable { remote: to, by },
            Failure::PortClosed(_) => Reason::PortClosed { remote },
        });
        let silent = || {
            (now.saturating_since(self.since) >= SILENT).then_some(Reason::Silent {
                remote,
                others_deliver: self.others_deliver,
            })
        };
        let is_unreadable = self.hindrance == Some(Hindrance::PresharedKey);
        before
            .or_else(|| is_unreadable.then_some(Reason::PresharedKey))
            .or(failure)
            .or_else(|| reverse_path(self.bind, remote.ip(), links, reach, now))
            .or_else(silent)
    }
}

/// The reason why the kernel cannot send to an address by a socket.
pub fn before_sending(
    bind: &Bind,
    remote: SocketAddr,
    links: &Links,
    reach: &mut Reach,
    now: Instant,
) -> Option<Reason> {
    let error = reach.error(bind, remote, links, now)?;
    let place = place(bind);
    let remote = remote.ip();
    let link = bind.link(links);
    if link.is_some_and(|link| !has_family(link, remote)) {
        return Some(Reason::Family { place, remote });
    }
    Some(Reason::NoRoute {
        place,
        remote,
        error,
    })
}

fn place(bind: &Bind) -> String {
    if bind.is_any() {
        return "any interface".to_owned();
    }
    let interface = bind.interface.clone();
    interface.unwrap_or_else(|| bind.address.ip().to_string())
}

/// Whether an interface has an address of the family that reaches other networks.
fn has_family(link: &Link, remote: IpAddr) -> bool {
    let is_link_local = |address: &Ipv6Addr| address.is_unicast_link_local();
    link.addresses.iter().any(|own| match (own, remote) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(own), IpAddr::V6(remote)) => !is_link_local(own) || is_link_local(&remote),
        _ => false,
    })
}

/// Whether the kernel drops answers from an address on a socket's interface: it compares them with
/// the route to that address, which knows neither the interface nor the mark of the datagrams
/// (RFC 3704 §2.2).
pub fn reverse_path(
    bind: &Bind,
    remote: IpAddr,
    links: &Links,
    reach: &mut Reach,
    now: Instant,
) -> Option<Reason> {
    if !remote.is_ipv4() || bind.is_any() {
        return None;
    }
    let (interface, link) = bind.named_link(links)?;
    if !is_strict(interface) {
        return None;
    }
    let back = reach.interface_of(remote, now);
    if back == u32::try_from(link.index).ok() {
        return None;
    }
    let named = |(_, link): &(&String, &Link)| u32::try_from(link.index).ok() == back;
    let other = back.and_then(|_| links.0.iter().find(named));
    Some(Reason::ReversePath {
        interface: interface.to_owned(),
        remote,
        other: other.map(|(name, _)| name.clone()),
    })
}

/// Whether the reverse path filter of an interface is strict, and ignores marks.
fn is_strict(interface: &str) -> bool {
    let greatest = |name: &str| {
        let value = |of: &str| {
            let path = format!("/proc/sys/net/ipv4/conf/{of}/{name}");
            let text = fs::read_to_string(path).ok()?;
            text.trim().parse::<u8>().ok()
        };
        value("all").max(value(interface)).unwrap_or(0)
    };
    greatest("rp_filter") == 1 && greatest("src_valid_mark") == 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Link, has_family};

    #[test]
    fn a_link_local_address_reaches_no_other_network() {
        let link = |addresses: &[&str]| Link {
            addresses: addresses
                .iter()
                .map(|address| address.parse().expect("an address"))
                .collect::<BTreeSet<_>>(),
            ..Link::default()
        };
        let remote = |text: &str| text.parse().expect("an address");
        let (v4, v6) = (remote("192.0.2.1"), remote("2001:db8::1"));
        let local = link(&["10.0.0.1", "fe80::1"]);
        assert!(has_family(&local, v4) && !has_family(&local, v6));
        assert!(has_family(&local, remote("fe80::2")));
        let global = link(&["2001:db8::2"]);
        assert!(has_family(&global, v6) && !has_family(&global, v4));
    }
}
