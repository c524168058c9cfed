//! Encoding of the simulator's packets as octets of IP, for captures and for elements that process
//! octets.
//!
//! The ports are derived from the connection's number, so that no two connections share both.

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction},
};
use anabranch_wire::{
    Carried, EncodeError, IpHeader, Ports, Prefix, Transport, encode_datagram, encode_prefix,
};

/// The source ports, used in rotation: the unprivileged ones.
const SOURCE_PORTS: u32 = 65_536 - 1024;
/// The destination port of the first of them.
const FIRST_DESTINATION: u32 = 5001;

/// The ports of a connection's packets in this direction; `to` is the port of the far end, if the
/// scenario gives one.
pub(crate) fn ports(connection: ConnectionId, direction: Direction, to: Option<u16>) -> Ports {
    let number = connection.0;
    let own = FIRST_DESTINATION + number / SOURCE_PORTS;
    let there = Ports {
        source: port(1024 + number % SOURCE_PORTS),
        destination: to.unwrap_or_else(|| port(own)),
    };
    match direction {
        Direction::Forward => there,
        Direction::Reverse => there.swapped(),
    }
}

fn port(number: u32) -> u16 {
    u16::try_from(number).expect("connections are far below 2^31")
}

/// Appends the first octets of a packet; a body known only by its length is encoded as zeros.
/// Returns the length of the whole packet.
///
/// # Errors
/// If the packet does not fit its header.
pub(crate) fn encode<B: Body>(
    ip: &IpHeader,
    ports: Ports,
    payload: &Transport<B>,
    to: Prefix<'_>,
) -> Result<u32, EncodeError> {
    match payload {
        Transport::Tcp(segment) => encode_prefix(ip, ports, segment, to),
        Transport::Redundant(redundant) => {
            anabranch_wire::encode_redundant(ip, ports, redundant, to)
        }
        Transport::Datagram(body) => {
            let carried = match body.octets() {
                Some(octets) => Carried::Octets(octets),
                None => Carried::Zeros(body.len() as usize),
            };
            encode_datagram(ip, ports, carried, to)
        }
    }
}
