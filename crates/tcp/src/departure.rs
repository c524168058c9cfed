//! Segments on their way out.

use anabranch_core::packet::Ecn;

use crate::cause::RetransmitCause;
use anabranch_wire::segment::Segment;

/// A segment on its way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing<B> {
    /// The segment.
    pub segment: Segment<B>,
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Its payload, or its SYN or FIN, was sent before, and is retransmitted for this.
    pub retransmission: Option<RetransmitCause>,
}

/// What goes with a segment on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Why its payload, or its SYN or FIN, is retransmitted; `None` if it was not sent before.
    pub retransmission: Option<RetransmitCause>,
}
