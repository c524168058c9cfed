//! What a gateway's tunnel says of a packet, as the packet carries it. The octets of it are the business of
//! the elements.

/// What is behind the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    /// A packet that the gateway carries.
    #[default]
    Packet,
    /// Nothing: the header was sent for its report, and needs no answer.
    Report,
    /// Nothing: the other end is to report its arrival.
    Probe,
    /// Nothing: the sender has given up the route whose number stands in [`Header::flow`]. What it sent there and has not
    /// retransmitted until now it will not.
    GivenUp,
}

/// What stands in the header of the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Which of the gateway's routes the packet takes, from 0.
    pub route: u8,
    /// Whose it is: packets of one flow keep their order among themselves.
    pub flow: u16,
    /// Its number within the flow, in the order in which packets came to the gateway, from 0, modulo 2^32.
    pub number: u32,
    /// Its number on its route, from 0, modulo 2^16.
    pub route_number: u16,
    /// When it left, by the sender's own clock: microseconds, modulo 2^32.
    pub sent: u32,
    /// The sender keeps what it sends on the route just now, and sends it again where it is asked to.
    pub kept: bool,
    /// What is behind it.
    pub content: Content,
    /// What the sender has seen of a route that leads to it.
    pub report: Option<Report>,
}

/// What the end of a route has seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Which route, from 0.
    pub route: u8,
    /// Share of its packets lost lately, in units of 2^-16.
    pub loss: u16,
    /// [`Header::route_number`] of the packet that arrived last.
    pub route_number: u16,
    /// How many numbers just before that one have not arrived and are asked for again.
    pub missing: u8,
    /// How long that packet took: the time of its arrival by the clock of the one end less [`Header::sent`] by
    /// that of the other, in microseconds, modulo 2^32. The clocks' offset is in it, the same for all routes.
    pub delay: u32,
}
