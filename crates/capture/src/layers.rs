//! Finds the IP packet of a frame: link types, and headers that may occur between the link's header
//! and IP.
//!
//! Link types: BSD loopback (0, 108), Ethernet (1), PPP (9, 50, 51, 166, 204), raw IP (12, 14, 101,
//! 228, 229), Cisco HDLC (104), Linux cooked (113, 276), MPLS (219). Between: IEEE 802.1Q tags,
//! also stacked (QinQ), LLC/SNAP, PPPoE, PPP, MPLS, also pseudowires of Ethernet.

pub(crate) mod ip;
mod link;
mod skip;
mod tunnel;

pub(crate) use link::network_layer;
pub use skip::Skip;

/// Maximum number of headers between the beginning of a frame and its innermost IP packet; no real
/// packet has more.
pub(crate) const DEEPEST: u8 = 16;

/// A number of 16 bits in network byte order.
pub(crate) fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let two = octets.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*two))
}
