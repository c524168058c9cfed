//! Addresses, routes and rules of the kernel, by netlink (rtnetlink(7)).

pub mod selector;

use std::{collections::BTreeSet, io, net::IpAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressHeaderFlags, AddressMessage},
    route::{
        RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
        RouteProtocol, RouteScope, RouteType,
    },
    rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::io::Errno;

/// The mark of the tunnel's datagrams, and the number of the first of the routing tables that they
/// do not use. There is one table for each prefix length, so that longer prefixes of the main table
/// go before it: see [`table`].
pub const MARK: u32 = 51_900;
/// The priority of the last two rules. They are before the kernel's rule for the main table, 32766.
const LAST: u32 = 32_764;
/// The greatest prefix length.
const LONGEST: u8 = 128;
/// The protocol number of routes that outlive the daemon.
const PROTOCOL: RouteProtocol = RouteProtocol::Other(171);

/// The number of the table for prefixes of a length.
pub fn table(length: u8) -> u32 {
    MARK + u32::from(length)
}

/// The number of the main table.
pub const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// A route that refuses packets where no better one exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Barrier {
    pub net: IpNet,
    /// The metric, above the metrics of usable routes.
    pub metric: u32,
}

/// The way out of a socket's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// The index of the interface that the socket is bound to.
    pub interface: Option<u32>,
    /// The address that the socket is bound to.
    pub source: Option<IpAddr>,
    /// Whether the datagrams have the mark of the tunnel's datagrams.
    pub is_marked: bool,
}

/// A socket for requests.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Older kernels list the routes of all tables.
        let _ = socket.set_netlink_get_strict_chk(true);
        let sequence = 0;
        Ok(Self { socket, sequence })
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, NLM_F_ACK | flags).map(drop)
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut octets = vec![0; request.buffer_len()];
        request.serialize(&mut octets);
        self.socket.send(&octets, 0).map(drop)
    }

    /// Sends a request and returns the kernel's first answer.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        self.send(message, flags)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(io::Error::other)?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
                payload => Ok(payload),
            };
        }
    }

    /// Looks up the route of datagrams to an address, and returns the index of its interface. If a
    /// socket is bound to an interface without a route, the kernel takes the address for a
    /// neighbour; this is an error here.
    ///
    /// # Errors
    /// The error of the lookup, for example if there is no route.
    pub fn find_route(&mut self, to: IpAddr, output: Output) -> io::Result<Option<u32>> {
        let mut message = RouteMessage::default();
        let length = if to.is_ipv4() { 32 } else { 128 };
        message.header.address_family = family_of(to);
        message.header.destination_prefix_length = length;
        message.header.flags = RouteFlags::FibMatch;
        message.attributes = vec![RouteAttribute::Destination(address(to))];
        if output.is_marked {
            message.attributes.push(RouteAttribute::Mark(MARK));
        }
        if let Some(source) = output.source.filter(|from| from.is_ipv4() == to.is_ipv4()) {
            message.header.source_prefix_length = length;
            message
                .attributes
                .push(RouteAttribute::Source(address(source)));
        }
        let interface = output.interface.map(RouteAttribute::Oif);
        message.attributes.extend(interface);
        let answer = self.exchange(RouteNetlinkMessage::GetRoute(message), 0)?;
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) = answer else {
            return Ok(None);
        };
        Ok(route
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            }))
    }

    /// Adds an address to the interface. The kernel adds a route to its network.
    pub fn add_address(&mut self, own: IpNet, interface: u32) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(&own);
        message.header.prefix_len = own.prefix_len();
        // Duplicate address detection does not apply to the interface (RFC 4862 §5.4).
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = interface;
        message.attributes = vec![
            AddressAttribute::Local(own.addr()),
            AddressAttribute::Address(own.addr()),
        ];
        let message = RouteNetlinkMessage::NewAddress(message);
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request for a list and returns its items.
    fn list(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_DUMP)?;
        let mut items = Vec::new();
        loop {
            let (octets, _) = self.socket.recv_from_full()?;
            let mut rest = octets.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(io::Error::other)?;
                let length = usize::try_from(answer.header.length).unwrap_or(rest.len());
                rest = rest
                    .get(length.next_multiple_of(4).max(16)..)
                    .unwrap_or(&[]);
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(item) => items.push(item),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(error.to_io());
                    }
                    NetlinkPayload::Done(_) => return Ok(items),
                    _ => {}
                }
            }
        }
    }

    /// Adds a route into an interface to a table. Without an MTU the interface's applies.
    pub fn add_route(&mut self, net: IpNet, at: (u32, u32), mtu: Option<u16>) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewRoute(with_mtu(route(net, at), mtu));
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Changes the MTU of a route into the interface.
    pub fn change_route(&mut self, net: IpNet, at: (u32, u32), mtu: u16) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewRoute(with_mtu(route(net, at), Some(mtu)));
        self.request(message, NLM_F_REPLACE)
    }

    /// Deletes a route.
    pub fn delete_route(&mut self, net: IpNet, at: (u32, u32)) -> io::Result<()> {
        let message = RouteNetlinkMessage::DelRoute(route(net, at));
        self.request(message, 0)
    }

    /// Adds a barrier to the table of its length, unless it is there.
    pub fn add_barrier(&mut self, barrier: Barrier) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewRoute(unreachable(barrier));
        unless_there(self.request(message, NLM_F_CREATE | NLM_F_EXCL))
    }

    /// Deletes a barrier.
    pub fn delete_barrier(&mut self, barrier: Barrier) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelRoute(unreachable(barrier)), 0)
    }

    /// All barriers, also of other programs.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn barriers(&mut self) -> io::Result<Vec<Barrier>> {
        let mut barriers = Vec::new();
        for family in FAMILIES {
            for length in self.lengths(family)? {
                let routes = self.routes(family, table(length))?;
                barriers.extend(routes.iter().filter_map(barrier_of));
            }
        }
        Ok(barriers)
    }

    /// The prefix lengths for which there are rules.
    fn lengths(&mut self, family: AddressFamily) -> io::Result<BTreeSet<u8>> {
        let mut message = RuleMessage::default();
        message.header.family = family;
        let rules = match self.list(RouteNetlinkMessage::GetRule(message)) {
            Ok(rules) => rules,
            // A kernel without rules, or without this family.
            Err(error) if is_unsupported(&error) => return Ok(BTreeSet::new()),
            Err(error) => return Err(error),
        };
        let numbers = rules.iter().filter_map(|rule| {
            let RouteNetlinkMessage::NewRule(rule) = rule else {
                return None;
            };
            let mut tables = rule
                .attributes
                .iter()
                .filter_map(|attribute| match attribute {
                    RuleAttribute::Table(table) => Some(*table),
                    _ => None,
                });
            let length = tables.next_back()?.checked_sub(MARK)?;
            u8::try_from(length)
                .ok()
                .filter(|length| *length <= LONGEST)
        });
        Ok(numbers.collect())
    }

    /// The routes of a table.
    fn routes(&mut self, family: AddressFamily, table: u32) -> io::Result<Vec<RouteMessage>> {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        message.attributes.push(RouteAttribute::Table(table));
        let items = match self.list(RouteNetlinkMessage::GetRoute(message)) {
            Ok(items) => items,
            Err(error) if is_unsupported(&error) => Vec::new(),
            // A table without routes does not exist.
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Vec::new(),
            Err(error) => return Err(error),
        };
        let routes = items.into_iter().filter_map(|item| match item {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        let is_of_table =
            |route: &RouteMessage| route.attributes.contains(&RouteAttribute::Table(table));
        Ok(routes.filter(is_of_table).collect())
    }

    /// Adds the rules by which all packets except the tunnel's datagrams use the table of prefixes
    /// of a length, after longer prefixes of the main table.
    pub fn add_rules(&mut self, family: AddressFamily, length: u8) -> io::Result<()> {
        for rule in rules(family, length) {
            let message = RouteNetlinkMessage::NewRule(rule);
            unless_there(self.request(message, NLM_F_CREATE | NLM_F_EXCL))?;
        }
        Ok(())
    }

    /// Deletes the rules of [`Self::add_rules`] if the table has no routes.
    pub fn delete_unused_rules(&mut self, family: AddressFamily, length: u8) {
        if self
            .routes(family, table(length))
            .is_ok_and(|routes| routes.is_empty())
        {
            for rule in rules(family, length) {
                let _ = self.request(RouteNetlinkMessage::DelRule(rule), 0);
            }
        }
    }

    /// Deletes the rules of all tables without routes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn delete_all_unused_rules(&mut self) -> io::Result<()> {
        for family in FAMILIES {
            for length in self.lengths(family)? {
                self.delete_unused_rules(family, length);
            }
        }
        Ok(())
    }
}

const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

fn unless_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => Ok(()),
        done => done,
    }
}

/// Whether the kernel has no such family, or no rules.
pub fn is_unsupported(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    code.is_some_and(|code| [Errno::OPNOTSUPP, Errno::AFNOSUPPORT].contains(&code))
}

/// The family of a prefix.
pub fn family(net: &IpNet) -> AddressFamily {
    family_of(net.addr())
}

fn family_of(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

/// A route into an interface, in a table.
fn route(net: IpNet, (interface, table): (u32, u32)) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family(&net),
        destination_prefix_length: net.prefix_len(),
        table: RouteHeader::RT_TABLE_UNSPEC,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![
        RouteAttribute::Destination(address(net.network())),
        RouteAttribute::Oif(interface),
        RouteAttribute::Table(table),
    ];
    message
}

fn with_mtu(mut message: RouteMessage, mtu: Option<u16>) -> RouteMessage {
    let metric = |mtu: u16| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu.into())]);
    message.attributes.extend(mtu.map(metric));
    message
}

fn unreachable(barrier: Barrier) -> RouteMessage {
    let net = barrier.net;
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family(&net),
        destination_prefix_length: net.prefix_len(),
        protocol: PROTOCOL,
        kind: RouteType::Unreachable,
        ..RouteHeader::default()
    };
    message.attributes = vec![
        RouteAttribute::Destination(address(net.network())),
        RouteAttribute::Priority(barrier.metric),
        RouteAttribute::Table(table(net.prefix_len())),
    ];
    message
}

/// The barrier of a message about a route.
fn barrier_of(route: &RouteMessage) -> Option<Barrier> {
    let header = &route.header;
    if header.protocol != PROTOCOL || header.kind != RouteType::Unreachable {
        return None;
    }
    let mut barrier = Barrier {
        net: match header.address_family {
            AddressFamily::Inet6 => Ipv6Net::default().into(),
            _ => Ipv4Net::default().into(),
        },
        metric: 0,
    };
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(to)) => {
                let net = Ipv4Net::new(*to, header.destination_prefix_length);
                barrier.net = net.ok()?.into();
            }
            RouteAttribute::Destination(RouteAddress::Inet6(to)) => {
                let net = Ipv6Net::new(*to, header.destination_prefix_length);
                barrier.net = net.ok()?.into();
            }
            RouteAttribute::Priority(metric) => barrier.metric = *metric,
            _ => {}
        }
    }
    Some(barrier)
}

fn rules(family: AddressFamily, length: u8) -> [RuleMessage; 2] {
    let first = LAST - 2 * u32::from(length);
    let mut main = RuleMessage::default();
    main.header.family = family;
    main.header.action = RuleAction::ToTable;
    main.header.table = RouteHeader::RT_TABLE_MAIN;
    main.attributes = vec![
        RuleAttribute::Priority(first),
        RuleAttribute::SuppressPrefixLen(length.into()),
        RuleAttribute::Table(MAIN),
    ];
    let mut own = RuleMessage::default();
    own.header.family = family;
    own.header.action = RuleAction::ToTable;
    own.header.flags = RuleFlags::Invert;
    own.attributes = vec![
        RuleAttribute::Priority(first + 1),
        RuleAttribute::FwMark(MARK),
        RuleAttribute::FwMask(u32::MAX),
        RuleAttribute::Table(table(length)),
    ];
    [main, own]
}

#[cfg(test)]
mod tests {
    use super::{Barrier, LONGEST, barrier_of, rules, unreachable};
    use netlink_packet_route::{AddressFamily, rule::RuleAttribute};

    #[test]
    fn a_barrier_is_recognised_by_its_message() {
        for net in ["0.0.0.0/0", "10.9.0.0/24", "::/0", "fd00::1/128"] {
            let barrier = Barrier {
                net: net.parse().expect("a prefix"),
                metric: 4_000_000_001,
            };
            assert_eq!(barrier_of(&unreachable(barrier)), Some(barrier));
        }
    }

    #[test]
    fn rules_of_longer_prefixes_come_first_and_all_before_the_main_table() {
        let mut before = 32_766;
        for length in 0..=LONGEST {
            for rule in rules(AddressFamily::Inet6, length).iter().rev() {
                let priority = rule
                    .attributes
                    .iter()
                    .find_map(|attribute| match attribute {
                        RuleAttribute::Priority(priority) => Some(*priority),
                        _ => None,
                    });
                let priority = priority.expect("it has one");
                assert!(priority < before, "{length}: {priority}");
                before = priority;
            }
        }
        assert!(before > 32_000);
    }
}
