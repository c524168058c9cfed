//! Tunnel header of a gateway, as part of a packet. The elements define its encoding.

/// Content after the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    /// A packet that the gateway forwards.
    #[default]
    Packet,
    /// Empty: the header carries only its report, and requires no answer.
    Report,
    /// Empty: the other end is to report its arrival.
    Probe,
    /// Empty: the sender has abandoned the route whose number is in [`Header::flow`]. It will not
    /// retransmit any more packets of that route.
    GivenUp,
}

/// Fields of the tunnel header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Route of the gateway that the packet takes, from 0.
    pub route: u8,
    /// Flow of the packet; packets of one flow keep their order.
    pub flow: u16,
    /// Packet number within the flow, in the order of arrival at the gateway, from 0, modulo 2^32.
    pub number: u32,
    /// Packet number on its route, from 0, modulo 2^16.
    pub route_number: u16,
    /// Transmission time on the sender's clock: microseconds, modulo 2^32.
    pub sent: u32,
    /// The sender currently stores the packets that it sends on the route, and retransmits them
    /// when a report requests it.
    pub kept: bool,
    /// Content after the header.
    pub content: Content,
    /// The sender's observations of a route in the opposite direction.
    pub report: Option<Report>,
}

/// Observations of a route by its receiving end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// The route, from 0.
    pub route: u8,
    /// Recent loss rate of the route, in units of 2^-16.
    pub loss: u16,
    /// [`Header::route_number`] of the packet that arrived last.
    pub route_number: u16,
    /// Number of missing packets just before that one whose retransmission is requested.
    pub missing: u8,
    /// Delay of that packet: its arrival time on the receiver's clock minus [`Header::sent`] on the
    /// sender's clock, in microseconds, modulo 2^32. It contains the clocks' offset, which is the
    /// same for all routes.
    pub delay: u32,
}
