//! QUIC in captures ([`packets`]), and the properties of a connection of a qlog ([`QuicLog`]).

pub(crate) mod packets;

use serde::Serialize;

pub use packets::{QuicDirections, QuicFlow, QuicHandshake, QuicOneWay, Spin};

/// Properties of a QUIC connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuicLog {
    /// The end that wrote the qlog: `client` or `server`.
    pub vantage: &'static str,
    /// The version of QUIC, as in the file.
    pub version: Option<String>,
    /// The server sent a Retry packet (RFC 9000 §8.1.2).
    pub retry: bool,
    /// The file lists the frames of packets. Without them, acknowledgments are inferred from the
    /// octets in flight, and retransmissions from lost packets.
    pub frames: bool,
}
