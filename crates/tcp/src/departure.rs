//! Outgoing segments.

use anabranch_core::packet::Ecn;

use crate::cause::RetransmitCause;
use anabranch_wire::segment::Segment;

/// An outgoing segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing<B> {
    /// The segment.
    pub segment: Segment<B>,
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Cause of the retransmission of its payload, SYN or FIN; `None` if it was not sent before.
    pub retransmission: Option<RetransmitCause>,
}

/// Properties of an outgoing segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Cause of the retransmission of its payload, SYN or FIN; `None` if it was not sent before.
    pub retransmission: Option<RetransmitCause>,
}
