//! Addresses, routes and rules of the kernel, by netlink (rtnetlink(7)).

use std::{io, net::IpAddr};

use ipnet::IpNet;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressHeaderFlags, AddressMessage},
    route::{
        RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
        RouteScope, RouteType,
    },
    rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// The mark of the tunnel's datagrams, and the number of the routing table that they do not use.
pub const MARK: u32 = 51_900;
/// Rule priorities before the kernel's rule for the main table, 32766.
const MAIN_WITHOUT_DEFAULT: u32 = 32_764;
const OWN_TABLE: u32 = 32_765;

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
        let sequence = 0;
        Ok(Self { socket, sequence })
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut octets = vec![0; request.buffer_len()];
        request.serialize(&mut octets);
        self.socket.send(&octets, 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(io::Error::other)?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
                _ => Ok(()),
            };
        }
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

    /// Adds a route into the interface. A default route is added to a separate table. Without an
    /// MTU the interface's applies.
    pub fn add_route(&mut self, net: IpNet, interface: u32, mtu: Option<u16>) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewRoute(with_mtu(route(net, interface), mtu));
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Changes the MTU of a route into the interface.
    pub fn change_route(&mut self, net: IpNet, interface: u32, mtu: u16) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewRoute(with_mtu(route(net, interface), Some(mtu)));
        self.request(message, NLM_F_REPLACE)
    }

    /// Deletes a route.
    pub fn delete_route(&mut self, net: IpNet, interface: u32) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelRoute(route(net, interface)), 0)
    }

    /// Adds the rules by which all packets except the tunnel's datagrams use the table of default
    /// routes, after the other routes of the main table.
    pub fn add_rules(&mut self, family: AddressFamily) -> io::Result<()> {
        // Rules that a killed daemon left.
        self.delete_rules(family);
        for rule in rules(family) {
            self.request(
                RouteNetlinkMessage::NewRule(rule),
                NLM_F_CREATE | NLM_F_EXCL,
            )?;
        }
        Ok(())
    }

    /// Deletes the rules of [`Self::add_rules`].
    pub fn delete_rules(&mut self, family: AddressFamily) {
        for rule in rules(family) {
            let _ = self.request(RouteNetlinkMessage::DelRule(rule), 0);
        }
    }
}

/// The family of a prefix.
pub fn family(net: &IpNet) -> AddressFamily {
    match net {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    }
}

fn route(net: IpNet, interface: u32) -> RouteMessage {
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
    let table = if net.prefix_len() == 0 {
        MARK
    } else {
        RouteHeader::RT_TABLE_MAIN.into()
    };
    let destination = match net.network() {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    };
    message.attributes = vec![
        RouteAttribute::Destination(destination),
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

fn rules(family: AddressFamily) -> [RuleMessage; 2] {
    let mut main = RuleMessage::default();
    main.header.family = family;
    main.header.action = RuleAction::ToTable;
    main.header.table = RouteHeader::RT_TABLE_MAIN;
    main.attributes = vec![
        RuleAttribute::Priority(MAIN_WITHOUT_DEFAULT),
        RuleAttribute::SuppressPrefixLen(0),
        RuleAttribute::Table(RouteHeader::RT_TABLE_MAIN.into()),
    ];
    let mut own = RuleMessage::default();
    own.header.family = family;
    own.header.action = RuleAction::ToTable;
    own.header.flags = RuleFlags::Invert;
    own.attributes = vec![
        RuleAttribute::Priority(OWN_TABLE),
        RuleAttribute::FwMark(MARK),
        RuleAttribute::FwMask(u32::MAX),
        RuleAttribute::Table(MARK),
    ];
    [main, own]
}
