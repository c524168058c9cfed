//! Stores of waiting packets: a single FIFO, or many FIFOs in one store.

use std::collections::VecDeque;

use anabranch_core::units::text::Limit;

use super::{Item, QueueContext};

/// A FIFO of packets.
#[derive(Debug, Default)]
pub(super) struct Line {
    items: VecDeque<Item>,
    bytes: u64,
}

impl Line {
    /// Whether `item` may join.
    #[inline]
    pub fn has_room(&self, limit: Limit, item: &Item, cx: &QueueContext<'_>) -> bool {
        let packets = self.items.len() as u64 + u64::from(cx.held_packets);
        let bytes = self.bytes + cx.held_bytes + u64::from(item.size);
        limit.admits(packets, bytes)
    }
    #[inline]
    pub fn push(&mut self, item: Item) {
        self.bytes += u64::from(item.size);
        self.items.push_back(item);
    }
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= u64::from(item.size);
        Some(item)
    }
    /// Next packet to leave.
    #[inline]
    pub fn first(&self) -> Option<&Item> {
        self.items.front()
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The end of a list.
const NONE: u32 = u32::MAX;

/// One of many FIFOs, whose packets are in a [`Store`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Fifo {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

impl Fifo {
    /// An empty FIFO.
    pub const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
        packets: 0,
        bytes: 0,
    };
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
    #[inline]
    pub fn packets(&self) -> u32 {
        self.packets
    }
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Packets of many FIFOs. Free places are reused first: no allocation takes place once the maximum
/// backlog has been reached.
#[derive(Debug)]
pub(super) struct Store {
    places: Vec<(Item, u32)>,
    free: u32,
    packets: usize,
    bytes: u64,
}

impl Store {
    pub fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
            packets: 0,
            bytes: 0,
        }
    }
    /// Appends an item to a FIFO.
    ///
    /// # Panics
    /// If 2^32 - 1 packets wait.
    pub fn push(&mut self, fifo: &mut Fifo, item: Item) {
        let place = self.free;
        let place = if place == NONE {
            self.places.push((item, NONE));
            let last = u32::try_from(self.places.len() - 1).expect("places have 32-bit numbers");
            assert_ne!(last, NONE, "places have 32-bit numbers");
            last
        } else {
            self.free = self.places[place as usize].1;
            self.places[place as usize] = (item, NONE);
            place
        };
        if fifo.head == NONE {
            fifo.head = place;
        } else {
            self.places[fifo.tail as usize].1 = place;
        }
        fifo.tail = place;
        fifo.packets += 1;
        fifo.bytes += u64::from(item.size);
        self.packets += 1;
        self.bytes += u64::from(item.size);
    }
    /// Removes the first item of a FIFO.
    pub fn pop(&mut self, fifo: &mut Fifo) -> Option<Item> {
        let place = fifo.head;
        if place == NONE {
            return None;
        }
        let (item, next) = self.places[place as usize];
        self.places[place as usize].1 = self.free;
        self.free = place;
        fifo.head = next;
        fifo.packets -= 1;
        fifo.bytes -= u64::from(item.size);
        self.packets -= 1;
        self.bytes -= u64::from(item.size);
        Some(item)
    }
    /// First item of a FIFO.
    #[inline]
    pub fn first(&self, fifo: &Fifo) -> Option<&Item> {
        self.places
            .get(fifo.head as usize)
            .filter(|_| !fifo.is_empty())
            .map(|(item, _)| item)
    }
    /// Packets in all FIFOs.
    #[inline]
    pub fn packets(&self) -> usize {
        self.packets
    }
    /// Bytes in all FIFOs.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Whether the backlog, with packets held elsewhere, exceeds `limit`.
    #[inline]
    pub fn exceeds(&self, limit: Limit, cx: &QueueContext<'_>) -> bool {
        let packets = self.packets as u64 + u64::from(cx.held_packets);
        let bytes = self.bytes + cx.held_bytes;
        self.packets > 0 && !limit.admits(packets - 1, bytes)
    }
}

/// A list of FIFOs by number. Each FIFO is in at most one list, so all lists share the links.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };
    /// First number.
    #[inline]
    pub fn first(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }
    #[inline]
    pub fn push(&mut self, links: &mut [u32], number: u32) {
        links[number as usize] = NONE;
        if self.head == NONE {
            self.head = number;
        } else {
            links[self.tail as usize] = number;
        }
        self.tail = number;
    }
    #[inline]
    pub fn pop(&mut self, links: &[u32]) -> Option<u32> {
        let number = self.first()?;
        self.head = links[number as usize];
        Some(number)
    }
}
