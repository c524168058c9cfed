//! The content of a packet.

use anabranch_core::{body::Body, packet::ConnectionId};

use crate::{Redundant, Segment};

/// The transport header and content of a packet.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport<B> {
    /// A TCP segment.
    Tcp(Segment<B>),
    /// Redundancy of a TCP connection.
    Redundant(Redundant<B>),
    /// Anything else, opaque to the network: a UDP datagram, a QUIC packet.
    Datagram(B),
}

impl<B: Body> Transport<B> {
    /// See [`Body::connection`].
    #[must_use]
    #[inline]
    pub fn connection(&self) -> Option<ConnectionId> {
        match self {
            Self::Tcp(segment) => segment.body.connection(),
            Self::Redundant(redundant) => redundant.body.connection(),
            Self::Datagram(body) => body.connection(),
        }
    }
    /// Octets of application data or of the datagram's content.
    #[must_use]
    pub fn payload_len(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.body.len(),
            Self::Redundant(redundant) => redundant.body.len(),
            Self::Datagram(body) => body.len(),
        }
    }
}
