//! A queue of small values in a ring buffer.
//!
//! Packets in propagation, in queues and unacknowledged are in such rings, and every packet passes
//! through several. They contain plain values, and their size is a power of two, so that an index
//! is computed with a mask.

/// A first-in, first-out queue.
///
/// It grows by doubling and never shrinks.
#[derive(Debug, Clone)]
pub struct Ring<T> {
    /// Empty, or a power of two of slots.
    slots: Vec<T>,
    /// Number of values removed and inserted so far; both wrap.
    head: u32,
    tail: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            head: 0,
            tail: 0,
        }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// An empty ring without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            head: 0,
            tail: 0,
        }
    }
    /// Number of values.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }
    /// Whether the ring is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }
    #[inline]
    fn place(&self, count: u32) -> usize {
        count as usize & self.slots.len().wrapping_sub(1)
    }
    /// The first value.
    #[must_use]
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() {
            None
        } else {
            self.slots.get(self.place(self.head))
        }
    }
    /// The last value.
    #[must_use]
    #[inline]
    pub fn back(&self) -> Option<&T> {
        if self.is_empty() {
            None
        } else {
            self.slots.get(self.place(self.tail.wrapping_sub(1)))
        }
    }
    /// The `index`-th value from the front.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "less than a 32-bit length")]
        self.slots
            .get(self.place(self.head.wrapping_add(index as u32)))
    }
    /// Appends a value.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call costs as much as the work"
    )]
    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let place = self.place(self.tail);
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = value;
            self.tail = self.tail.wrapping_add(1);
        }
    }
    /// Removes the first value.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.head = self.head.wrapping_add(1);
        Some(first)
    }
    /// All values, from first to last.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// # Panics
    /// If there are 2^31 values.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(4);
        assert!(size <= 1 << 31, "fewer than 2^31 values in one ring");
        let mut slots = Vec::with_capacity(size);
        slots.extend(self.iter());
        slots.resize(size, T::default());
        self.tail = self.tail.wrapping_sub(self.head);
        self.head = 0;
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec(proptest::option::of(any::<u16>()), 0..400)) {
            let mut ring = Ring::new();
            let mut model = VecDeque::new();
            for step in steps {
                if let Some(value) = step {
                    ring.push_back(value);
                    model.push_back(value);
                } else {
                    prop_assert_eq!(ring.pop_front(), model.pop_front());
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!(ring.back(), model.back());
                prop_assert!(ring.iter().eq(model.iter()));
            }
        }
    }

    #[test]
    fn the_counts_wrap() {
        let mut ring = Ring::new();
        for value in 0..3_u8 {
            ring.push_back(value);
        }
        ring.head = ring.head.wrapping_sub(6);
        ring.tail = ring.tail.wrapping_sub(6);
        ring.slots.rotate_left(2);
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), [0, 1, 2]);
        for value in 3..40 {
            ring.push_back(value);
        }
        assert!(ring.iter().copied().eq(0..40));
    }
}
