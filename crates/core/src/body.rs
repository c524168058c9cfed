//! Content of a packet: a length in the simulator, bytes in the live engine and the gateway.

use std::{borrow::Cow, fmt};

use crate::packet::{ConnectionId, Ecn};

/// The content of a segment or datagram.
///
/// TCP, splitters, resequencers and FEC are generic over this trait and run on both kinds.
pub trait Body: Clone + Default + PartialEq + fmt::Debug + Send + 'static {
    /// Two bodies of equal length are always equal, so that any body of that length is equivalent.
    const LENGTH_IS_ALL: bool = false;
    /// Octets carried.
    fn len(&self) -> u32;
    /// Whether nothing is carried.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The part that starts at `start` and is `len` octets long.
    ///
    /// # Panics
    /// If the part is not inside the body.
    #[must_use]
    fn slice(&self, start: u32, len: u32) -> Self;
    /// Arbitrary content of `len` octets, for an application.
    #[must_use]
    fn filler(len: u32) -> Self;
    /// Content with these octets; arbitrary content of `len` octets if the body is only a length.
    #[must_use]
    fn from_octets(octets: &[u8], len: u32) -> Self;
    /// Appends `next` to `self`.
    fn append(&mut self, next: &Self);
    /// The octets; `None` if only their number is known.
    fn octets(&self) -> Option<&[u8]> {
        None
    }
    /// The connection of the packet, for a packet from outside in a flow with several connections.
    /// `None` if the position in the network determines it.
    #[inline]
    fn connection(&self) -> Option<ConnectionId> {
        None
    }
    /// The whole IP packet, with `ecn` in its header, if the body arrived as a packet; empty if
    /// that packet was not IP. `None` if a packet must still be built from the body.
    fn ip_packet(&self, _ecn: Ecn) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// A body that is only a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Length(pub u32);

impl Body for Length {
    const LENGTH_IS_ALL: bool = true;

    #[inline]
    fn len(&self) -> u32 {
        self.0
    }
    #[inline]
    fn slice(&self, start: u32, len: u32) -> Self {
        assert!(start + len <= self.0, "a part lies inside the whole");
        Self(len)
    }
    #[inline]
    fn filler(len: u32) -> Self {
        Self(len)
    }
    fn from_octets(_octets: &[u8], len: u32) -> Self {
        Self(len)
    }
    #[inline]
    fn append(&mut self, next: &Self) {
        self.0 += next.0;
    }
}

/// A body of octets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Octets(pub Vec<u8>);

impl Body for Octets {
    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).expect("a body is far below 4 GiB")
    }
    fn slice(&self, start: u32, len: u32) -> Self {
        Self(self.0[start as usize..][..len as usize].to_vec())
    }
    fn filler(len: u32) -> Self {
        // The period is not a power of two, so that a shifted copy differs.
        Self((0..=250).cycle().take(len as usize).collect())
    }
    fn from_octets(octets: &[u8], _len: u32) -> Self {
        Self(octets.to_vec())
    }
    fn append(&mut self, next: &Self) {
        self.0.extend_from_slice(&next.0);
    }
    fn octets(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
}
