//! Packets in flight: a small header that queues and links read, and a payload that they do not.

use crate::{trail::Trail, tunnel::Header};

/// A flow of the scenario: one instance of one `[flow.NAME]`, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A connection. Most flows have one; a flow of short transfers has one per transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// The connection of packets without one, which a gateway generates.
    pub const NONE: Self = Self(u32::MAX);
}

/// Entry of the packet log that accumulates the queueing time of one copy of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitAccount(pub u32);

impl WaitAccount {
    /// The account of packets whose queueing time is not logged.
    pub const NONE: Self = Self(u32::MAX);
}

/// Direction along a link (first to second name of `between`) or a flow (`from` to `to`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// As written in the scenario.
    Forward,
    /// The opposite direction.
    Reverse,
}

impl Direction {
    /// Both directions, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];
    /// The opposite direction.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
    /// `forward` or `reverse`, as in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Whether a queue may mark instead of dropping.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
    /// From the two low bits of the traffic class octet.
    #[must_use]
    pub const fn from_bits(octet: u8) -> Self {
        match octet & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Content of a packet after its header: lengths in the simulator, bytes in the live engine and the
/// gateway. Only FEC elements on the path read it.
pub trait Payload: Clone + std::fmt::Debug + 'static {}
impl<T: Clone + std::fmt::Debug + 'static> Payload for T {}

/// A packet of the network under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<P> {
    /// The connection of the packet.
    pub connection: ConnectionId,
    /// Packet number within the connection and direction, in order of transmission, from 0.
    pub index: u32,
    /// Size of the IP packet in bytes, headers included.
    pub size: u32,
    /// Position on the route: an index into the network's table of routes.
    pub hop: u32,
    /// Direction along the flow.
    pub direction: Direction,
    /// Retransmission of an earlier payload. Only the sender uses this; no element acts on it.
    pub retransmission: bool,
    /// ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// Observations of the packet, for the digest.
    pub trail: Trail,
    /// Queueing time of the packet, for the log.
    pub waits: WaitAccount,
    /// Tunnel header of a gateway. Valid only between the two ends of a gateway; elsewhere it
    /// contains data of an earlier packet.
    pub tunnel: Header,
    /// Content of the packet.
    pub payload: P,
}

/// Index of a packet in the [`Pool`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u32);

/// The packets in flight. A handle is 32 bits. A freed slot is reused at once, so the steady state
/// allocates nothing.
#[derive(Debug, Clone)]
pub struct Pool<P> {
    slots: Vec<Packet<P>>,
    free: Vec<PacketId>,
}

impl<P> Default for Pool<P> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<P> Pool<P> {
    /// Number of packets in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Inserts a packet.
    ///
    /// # Panics
    /// If 2^32 packets are in flight.
    #[inline]
    pub fn insert(&mut self, packet: Packet<P>) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.slots[id.0 as usize] = packet;
            id
        } else {
            let id = PacketId(
                u32::try_from(self.slots.len()).expect("fewer than 2^32 packets in flight"),
            );
            if self.slots.len() == self.slots.capacity() {
                self.grow();
            }
            self.slots.push(packet);
            id
        }
    }
    /// By a quarter: with half of the slots unused, packets would be the largest part of a network.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.slots.reserve_exact(16.max(self.slots.len() / 4));
    }
    /// Reserves a slot for a packet that the caller writes. It contains the previous packet, or the
    /// result of `make`.
    ///
    /// # Panics
    /// If 2^32 packets are in flight.
    #[inline]
    pub fn reserve(&mut self, make: impl FnOnce() -> Packet<P>) -> PacketId {
        match self.free.pop() {
            Some(id) => id,
            None => self.insert(make()),
        }
    }
    /// Removes and returns a packet. `left` replaces its payload until the slot is reused.
    #[inline]
    pub fn take(&mut self, id: PacketId, left: P) -> Packet<P> {
        let slot = &mut self.slots[id.0 as usize];
        let payload = std::mem::replace(&mut slot.payload, left);
        let packet = Packet { payload, ..*slot };
        self.free(id);
        packet
    }
    /// Frees a slot. The payload remains until the slot is reused.
    #[inline]
    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }
    /// All slots, of packets in flight and free.
    #[must_use]
    pub fn places(&self) -> &[Packet<P>] {
        &self.slots
    }
}

impl<P> std::ops::Index<PacketId> for Pool<P> {
    type Output = Packet<P>;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet<P> {
        &self.slots[id.0 as usize]
    }
}
impl<P> std::ops::IndexMut<PacketId> for Pool<P> {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet<P> {
        &mut self.slots[id.0 as usize]
    }
}
