//! Packets in flight: a small header that queues and links look at, and a payload that they
//! do not.

use crate::{trail::Trail, tunnel::Header};

/// A flow of the scenario: one copy of one `[flow.NAME]`, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A connection: most flows have one; a flow of short transfers has one for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// Of packets that belong to no connection: those that a gateway sends for itself.
    pub const NONE: Self = Self(u32::MAX);
}

/// Where the log of packets counts the time that one copy of a packet waits in queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitAccount(pub u32);

impl WaitAccount {
    /// That of packets whose waiting time is not counted.
    pub const NONE: Self = Self(u32::MAX);
}

/// Which way along a link (first to second name of `between`) or a flow (`from` to `to`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// As written.
    Forward,
    /// The other way.
    Reverse,
}

impl Direction {
    /// Both, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];
    /// The other one.
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

/// What travels in a packet besides the header: lengths in the simulator, bytes in the live engine
/// and the gateway. Elements in the middle never look at it, except those that code over it.
pub trait Payload: Clone + std::fmt::Debug + 'static {}
impl<T: Clone + std::fmt::Debug + 'static> Payload for T {}

/// A packet of the network under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<P> {
    /// Whose it is.
    pub connection: ConnectionId,
    /// Its number within the connection and direction, in order of sending, from 0.
    pub index: u32,
    /// Size of the IP packet in bytes, headers included.
    pub size: u32,
    /// Where it stands on its route: an index into the network's table of routes.
    pub hop: u32,
    /// Which way along its flow.
    pub direction: Direction,
    /// Whether its payload was sent before. Known to the sender alone; no element acts on it.
    pub retransmission: bool,
    /// ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// What was observed of it; read where a digest is kept.
    pub trail: Trail,
    /// Its waiting time in queues; read where a log is kept.
    pub waits: WaitAccount,
    /// What a gateway's tunnel says of it; means something between the two ends of a gateway alone, and
    /// elsewhere is what an earlier packet left.
    pub tunnel: Header,
    /// What it carries.
    pub payload: P,
}

/// A packet's place in the [`Pool`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u32);

/// The packets in flight. A handle is 32 bits; a freed place is used again at once, so the steady
/// state allocates nothing.
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
    /// Packets now in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Puts a packet in.
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
            self.slots.push(packet);
            id
        }
    }
    /// A place for a packet that the caller writes there: what was in it last, or what `make` makes.
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
    /// Takes a packet out whole; `left` stays in its payload's stead until the place is used again.
    #[inline]
    pub fn take(&mut self, id: PacketId, left: P) -> Packet<P> {
        let slot = &mut self.slots[id.0 as usize];
        let payload = std::mem::replace(&mut slot.payload, left);
        let packet = Packet { payload, ..*slot };
        self.free(id);
        packet
    }
    /// Gives a place back. The payload stays until the place is used again.
    #[inline]
    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }
    /// All places, those of packets in flight and those that are free.
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
