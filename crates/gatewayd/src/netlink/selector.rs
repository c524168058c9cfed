//! Rules for packets that do not use the tunnel's tables.

use std::{fmt, io, net::IpAddr};

use ipnet::IpNet;
use netlink_packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, Nla};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange, RuleUidRange},
};

use super::{FAMILIES, Netlink, PROTOCOL, family, is_unsupported, unless_there};

/// The attribute of a DSCP (linux/fib_rules.h). Kernels before 6.13 ignore it. The type of service in
/// the header has only some of the bits in rules of IPv4.
const FRA_DSCP: u16 = 25;

/// The priority of the kernel's rule for the main table, to which these rules go.
const MAIN_RULE: u32 = 32_766;

/// The priority of all rules of bypasses: before those of tunnels.
const PRIORITY: u32 = 32_000;

/// The gateway that made a rule. It is stored as `FRA_SUPPRESS_IFGROUP`, which has no effect on a rule that
/// goes to another one. The kernel compares it when it looks for a rule, so that gateways may have
/// the same rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// The gateway with this number. All bits set would mean no value.
    pub const fn new(number: u32) -> Self {
        Self(number & (u32::MAX >> 1))
    }
}

/// The packets of a rule, which have each given value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    pub is_v6: bool,
    /// The destination.
    pub to: Option<IpNet>,
    /// The source, of the same family.
    pub from: Option<IpNet>,
    /// The number of the protocol over IP.
    pub protocol: Option<u8>,
    pub source_ports: Option<(u16, u16)>,
    pub destination_ports: Option<(u16, u16)>,
    pub dscp: Option<u8>,
    /// The user of the sending process.
    pub uid: Option<u32>,
    /// The mark and its mask.
    pub mark: Option<(u32, u32)>,
}

impl Selector {
    /// All packets of a family.
    pub const fn all(is_v6: bool) -> Self {
        Self {
            is_v6,
            to: None,
            from: None,
            protocol: None,
            source_ports: None,
            destination_ports: None,
            dscp: None,
            uid: None,
            mark: None,
        }
    }

    /// Whether they are packets of IPv6 without regard to addresses.
    pub const fn is_of_all_v6(&self) -> bool {
        self.is_v6 && self.to.is_none() && self.from.is_none()
    }

    /// These packets, if they are of IPv4 and have a DSCP, to one address of no host (RFC 5737).
    pub fn harmless(&self) -> Option<Self> {
        let to = host(IpAddr::from([192, 0, 2, 255]));
        (self.dscp.is_some() && !self.is_v6).then_some(Self {
            to: Some(to),
            ..*self
        })
    }

    fn message(&self, owner: Owner) -> RuleMessage {
        let mut rule = RuleMessage::default();
        rule.header.family = if self.is_v6 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        };
        rule.header.action = RuleAction::Goto;
        rule.attributes = vec![
            RuleAttribute::Priority(PRIORITY),
            RuleAttribute::Goto(MAIN_RULE),
            RuleAttribute::Protocol(PROTOCOL),
            RuleAttribute::SuppressIfGroup(owner.0),
        ];
        if let Some(to) = self.to {
            rule.header.dst_len = to.prefix_len();
            let network = RuleAttribute::Destination(to.network());
            rule.attributes.push(network);
        }
        if let Some(from) = self.from {
            rule.header.src_len = from.prefix_len();
            rule.attributes.push(RuleAttribute::Source(from.network()));
        }
        match self.dscp {
            // The file has no code point 0, which would be that of all packets here.
            Some(dscp) if self.is_v6 => rule.header.tos = dscp << 2,
            Some(dscp) => {
                let dscp = DefaultNla::new(FRA_DSCP, vec![dscp]);
                rule.attributes.push(RuleAttribute::Other(dscp));
            }
            None => {}
        }
        let range = |(start, end)| RulePortRange { start, end };
        let protocol = self
            .protocol
            .map(|number| RuleAttribute::IpProtocol(number.into()));
        let source = self
            .source_ports
            .map(range)
            .map(RuleAttribute::SourcePortRange);
        let destination = self.destination_ports.map(range);
        let destination = destination.map(RuleAttribute::DestinationPortRange);
        let uid = self.uid.map(|uid| {
            RuleAttribute::UidRange(RuleUidRange {
                start: uid,
                end: uid,
            })
        });
        let optional = [protocol, source, destination, uid];
        rule.attributes.extend(optional.into_iter().flatten());
        if let Some((mark, mask)) = self.mark {
            let mark = [RuleAttribute::FwMark(mark), RuleAttribute::FwMask(mask)];
            rule.attributes.extend(mark);
        }
        rule
    }

    /// The packets of a rule of this kind, and the gateway that made it.
    fn of(rule: &RuleMessage) -> Option<(Self, Owner)> {
        if rule.header.action != RuleAction::Goto
            || !rule.attributes.contains(&RuleAttribute::Protocol(PROTOCOL))
        {
            return None;
        }
        let mut owners = rule.attributes.iter();
        let owner = owners.find_map(|attribute| match attribute {
            RuleAttribute::SuppressIfGroup(number) => Some(Owner(*number)),
            _ => None,
        })?;
        let mut selector = Self::all(rule.header.family == AddressFamily::Inet6);
        selector.dscp = (rule.header.tos != 0).then_some(rule.header.tos >> 2);
        let (mut mark, mut bits) = (0, None);
        for attribute in &rule.attributes {
            match attribute {
                RuleAttribute::Destination(to) => {
                    selector.to = IpNet::new(*to, rule.header.dst_len).ok();
                }
                RuleAttribute::Source(from) => {
                    selector.from = IpNet::new(*from, rule.header.src_len).ok();
                }
                RuleAttribute::IpProtocol(number) => selector.protocol = Some((*number).into()),
                RuleAttribute::SourcePortRange(range) => {
                    selector.source_ports = Some((range.start, range.end));
                }
                RuleAttribute::DestinationPortRange(range) => {
                    selector.destination_ports = Some((range.start, range.end));
                }
                // The kernel gives all users if none is given.
                RuleAttribute::UidRange(range) if range.start == range.end => {
                    selector.uid = Some(range.start);
                }
                RuleAttribute::Other(other) if other.kind() == FRA_DSCP => {
                    let mut dscp = [0];
                    if other.value_len() == 1 {
                        other.emit_value(&mut dscp);
                        selector.dscp = Some(dscp[0]);
                    }
                }
                RuleAttribute::FwMark(value) => mark = *value,
                RuleAttribute::FwMask(value) => bits = Some(*value),
                _ => {}
            }
        }
        selector.mark = bits.map(|bits| (mark, bits));
        Some((selector, owner))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_v6 { "IPv6" } else { "IPv4" })?;
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        let numbers = [
            ("protocol", self.protocol.map(u32::from)),
            ("dscp", self.dscp.map(u32::from)),
            ("user", self.uid),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                write!(f, " {name} {number}")?;
            }
        }
        let ports = [
            ("source", self.source_ports),
            ("destination", self.destination_ports),
        ];
        for (name, ports) in ports {
            if let Some((first, last)) = ports {
                write!(f, " {name} port {first}-{last}")?;
            }
        }
        if let Some((mark, mask)) = self.mark {
            write!(f, " mark {mark:#x}/{mask:#x}")?;
        }
        Ok(())
    }
}

impl Netlink {
    /// Has packets skip the rules up to that of the main table.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_bypass(&mut self, selector: &Selector, owner: Owner) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewRule(selector.message(owner));
        unless_there(self.request(message, NLM_F_CREATE | NLM_F_EXCL))
    }

    /// Deletes a rule of [`Self::add_bypass`].
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn delete_bypass(&mut self, selector: &Selector, owner: Owner) -> io::Result<()> {
        let message = RouteNetlinkMessage::DelRule(selector.message(owner));
        self.request(message, NLM_F_ACK)
    }

    /// The rules of [`Self::add_bypass`], of all gateways, and who made each.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn bypasses(&mut self) -> io::Result<Vec<(Selector, Owner)>> {
        let mut found = Vec::new();
        for family in FAMILIES {
            let mut message = RuleMessage::default();
            message.header.family = family;
            let rules = match self.list(RouteNetlinkMessage::GetRule(message)) {
                Ok(rules) => rules,
                Err(error) if is_unsupported(&error) => continue,
                Err(error) => return Err(error),
            };
            found.extend(rules.iter().filter_map(|rule| match rule {
                RouteNetlinkMessage::NewRule(rule) => Selector::of(rule),
                _ => None,
            }));
        }
        Ok(found)
    }
}

/// Whether an address is of IPv6.
pub fn is_v6(net: &IpNet) -> bool {
    family(net) == AddressFamily::Inet6
}

/// The network that consists of one address.
pub fn host(address: IpAddr) -> IpNet {
    IpNet::from(address)
}

#[cfg(test)]
mod tests {
    use super::{Owner, Selector, host};

    #[test]
    fn a_rule_has_its_packets() {
        let to = |text: &str| host(text.parse().expect("an address"));
        let all = [
            Selector::all(false),
            Selector {
                to: Some(to("2001:db8::1")),
                protocol: Some(17),
                source_ports: Some((5_000, 5_010)),
                destination_ports: Some((443, 443)),
                dscp: Some(46),
                uid: Some(0),
                mark: Some((0x10, 0xf0)),
                ..Selector::all(true)
            },
            Selector {
                dscp: Some(46),
                ..Selector::all(false)
            },
            Selector {
                to: Some("10.0.0.0/8".parse().expect("a prefix")),
                from: Some("192.168.7.0/24".parse().expect("a prefix")),
                ..Selector::all(false)
            },
        ];
        for selector in all {
            let owner = Owner::new(7);
            assert_eq!(
                Selector::of(&selector.message(owner)),
                Some((selector, owner))
            );
        }
    }
}
