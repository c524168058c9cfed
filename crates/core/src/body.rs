//! What a packet carries: a length in the simulator, bytes in the live engine and the gateway.

use std::{borrow::Cow, fmt};

use crate::packet::{ConnectionId, Ecn};

/// The content of a segment or datagram.
///
/// TCP, splitters, resequencers and FEC are written once over this trait and run on both kinds.
pub trait Body: Clone + Default + PartialEq + fmt::Debug + Send + 'static {
    /// Two bodies of one length are always equal, so that any of that length will do.
    const LENGTH_IS_ALL: bool = false;
    /// Octets carried.
    fn len(&self) -> u32;
    /// Whether nothing is carried.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The part from `start` on, `len` octets long.
    ///
    /// # Panics
    /// If the part is not inside.
    #[must_use]
    fn slice(&self, start: u32, len: u32) -> Self;
    /// Content for an application that does not care which: `len` octets.
    #[must_use]
    fn filler(len: u32) -> Self;
    /// Content with these octets; `len` of whatever where content is only a length.
    #[must_use]
    fn from_octets(octets: &[u8], len: u32) -> Self;
    /// Puts `next` behind `self`.
    fn append(&mut self, next: &Self);
    /// The octets themselves; `None` where only their number is known.
    fn octets(&self) -> Option<&[u8]> {
        None
    }
    /// Which connection the packet is of, where its place in the network does not say so: packets from outside of several
    /// connections of one flow.
    #[inline]
    fn connection(&self) -> Option<ConnectionId> {
        None
    }
    /// The whole IP packet, with `ecn` in its header, where the body has come as one: nothing, if it was something else
    /// than IP. `None` where a packet has still to be made of it.
    fn ip_packet(&self, _ecn: Ecn) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// A body of which only the length matters.
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

/// A body of real octets.
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
        // A period that is no power of two, so that a shifted copy does not look right.
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
