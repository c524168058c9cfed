//! A queue of small values in a ring buffer.
//!
//! Packets in propagation, in queues and unacknowledged are in such rings, and every packet passes
//! through several. They contain plain values, and their size is a power of two, so that an index
//! is computed with a mask.

/// A first-in, first-out queue.
///
/// It grows by doubling, and shrinks only by [`Ring::shrink_to`].
#[derive(Debug, Clone)]
pub struct Ring<T> {
    /// Empty, or a power of two of slots. The value with the permanent number `n` is in slot `n`
    /// modulo their number.
    slots: Vec<T>,
    /// Permanent number of the first value: the number of values removed at the front so far.
    head: u64,
    /// One past the permanent number of the last value.
    tail: u64,
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
    #[expect(clippy::cast_possible_truncation, reason = "at most the slots")]
    pub const fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }
    /// Whether the ring is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head == self.tail
    }
    /// Whether the next value makes the ring grow.
    #[must_use]
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.len() == self.slots.len()
    }
    /// Number of values for which there is memory.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slots.len()
    }
    /// Number of values removed at the front so far.
    #[must_use]
    #[inline]
    pub const fn removed(&self) -> u64 {
        self.head
    }
    #[inline]
    const fn place(&self, number: u64) -> usize {
        place(number, self.slots.len())
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
    /// The first value.
    #[must_use]
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.get_mut(0)
    }
    /// The last value.
    #[must_use]
    #[inline]
    pub fn back(&self) -> Option<&T> {
        if self.is_empty() {
            None
        } else {
            self.slots.get(self.place(self.tail - 1))
        }
    }
    /// The `index`-th value from the front.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        self.slots.get(self.place(self.head + index as u64))
    }
    /// The `index`-th value from the front.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        let place = self.place(self.head + index as u64);
        self.slots.get_mut(place)
    }
    /// Appends a value.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call costs as much as the work"
    )]
    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        if self.is_full() {
            self.grow();
        }
        let place = self.place(self.tail);
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = value;
            self.tail += 1;
        }
    }
    /// Removes the first value.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.head += 1;
        Some(first)
    }
    /// Removes the first `count` values, or all if there are fewer.
    #[inline]
    pub fn drop_front(&mut self, count: usize) {
        self.head = self.tail.min(self.head + count as u64);
    }
    /// Removes the last values, so that at most `len` are left.
    pub fn truncate(&mut self, len: usize) {
        self.tail = self.tail.min(self.head + len as u64);
    }
    /// All values, from first to last.
    #[must_use]
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (first, second) = self.as_slices();
        first.iter().chain(second)
    }
    /// The values from the `index`-th on, which may be changed.
    #[must_use]
    #[inline]
    pub fn iter_mut_from(&mut self, index: usize) -> impl DoubleEndedIterator<Item = &mut T> {
        let len = self.len();
        let left = len - index.min(len);
        let start = self.place(self.tail - left as u64);
        let (before, from) = self.slots.split_at_mut(start);
        let within = left.min(from.len());
        from[..within]
            .iter_mut()
            .chain(&mut before[..left - within])
    }
    /// Index of the first value for which `holds` is false; it is true for all before and for none
    /// after.
    #[must_use]
    pub fn partition_point(&self, mut holds: impl FnMut(&T) -> bool) -> usize {
        let (first, second) = self.as_slices();
        if second.first().is_some_and(&mut holds) {
            first.len() + second.partition_point(holds)
        } else {
            first.partition_point(holds)
        }
    }
    /// Releases memory, but keeps enough for `least` values and for one.
    pub fn shrink_to(&mut self, least: usize) {
        let size = least.max(self.len()).max(1).next_power_of_two();
        if size < self.slots.len() {
            let mut slots = vec![T::default(); size];
            for (number, value) in (self.head..).zip(self.iter()) {
                slots[place(number, size)] = *value;
            }
            self.slots = slots;
        }
    }

    /// All values, in two parts.
    #[inline]
    fn as_slices(&self) -> (&[T], &[T]) {
        let (before, from) = self.slots.split_at(self.place(self.head));
        let first = self.len().min(from.len());
        (&from[..first], &before[..self.len() - first])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let old = self.slots.len();
        let size = (old * 2).max(4);
        self.slots.reserve_exact(size - old);
        self.slots.resize(size, T::default());
        // A value stays in its slot or moves up by the old size.
        for number in self.head..self.tail {
            self.slots[place(number, size)] = self.slots[place(number, old)];
        }
    }
}

/// The slot, of `size`, for the value with this permanent number.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the mask is smaller")]
const fn place(number: u64, size: usize) -> usize {
    number as usize & size.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u16),
        Pop,
        DropFront(usize),
        Truncate(usize),
        Set(usize, u16),
        SetFrom(usize, u16),
        Shrink(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => any::<u16>().prop_map(Step::Push),
            4 => Just(Step::Pop),
            1 => (0_usize..8).prop_map(Step::DropFront),
            1 => (0_usize..60).prop_map(Step::Truncate),
            2 => (0_usize..40, any::<u16>()).prop_map(|(index, value)| Step::Set(index, value)),
            1 => (0_usize..40, any::<u16>()).prop_map(|(index, value)| Step::SetFrom(index, value)),
            1 => (0_usize..40).prop_map(Step::Shrink),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec(step(), 0..400)) {
            let mut ring = Ring::new();
            let mut model = VecDeque::new();
            let mut removed = 0;
            for step in steps {
                match step {
                    Step::Push(value) => {
                        let grows = ring.is_full();
                        let capacity = ring.capacity();
                        ring.push_back(value);
                        prop_assert_eq!(ring.capacity() > capacity, grows);
                        model.push_back(value);
                    }
                    Step::Pop => {
                        let first = ring.pop_front();
                        removed += u64::from(first.is_some());
                        prop_assert_eq!(first, model.pop_front());
                    }
                    Step::DropFront(count) => {
                        ring.drop_front(count);
                        removed += model.drain(..count.min(model.len())).count() as u64;
                    }
                    Step::Truncate(len) => {
                        ring.truncate(len);
                        model.truncate(len);
                    }
                    Step::Set(index, value) => {
                        let slots = (ring.get_mut(index), model.get_mut(index));
                        prop_assert_eq!(&slots.0, &slots.1);
                        if let (Some(one), Some(other)) = slots {
                            (*one, *other) = (value, value);
                        }
                        if let (Some(one), Some(other)) = (ring.front_mut(), model.front_mut()) {
                            *one = one.wrapping_add(1);
                            *other = other.wrapping_add(1);
                        }
                    }
                    Step::SetFrom(index, value) => {
                        for (n, slot) in (0..).zip(ring.iter_mut_from(index)) {
                            *slot = value.wrapping_add(n);
                        }
                        for (n, slot) in (0..).zip(model.iter_mut().skip(index)) {
                            *slot = value.wrapping_add(n);
                        }
                    }
                    Step::Shrink(least) => {
                        let before = ring.capacity();
                        ring.shrink_to(least);
                        let needed = least.max(model.len());
                        prop_assert!(ring.capacity() <= before);
                        prop_assert!(ring.capacity() >= needed.min(before));
                        prop_assert!(ring.capacity() <= 2 * needed.max(1));
                    }
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.is_empty(), model.is_empty());
                prop_assert_eq!(ring.removed(), removed);
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!(ring.back(), model.back());
                prop_assert!(ring.iter().eq(model.iter()));
                prop_assert!(ring.iter().rev().eq(model.iter().rev()));
                prop_assert!((0..=model.len()).all(|index| ring.get(index) == model.get(index)));
            }
        }

        #[test]
        fn partition_points_are_those_of_a_queue(popped in 0_u16..12, pushed in 0_u16..40, limit in 0_u16..50) {
            let mut ring: Ring<u16> = Ring::new();
            (0..popped).for_each(|value| ring.push_back(value));
            ring.drop_front(usize::from(popped));
            (0..pushed).for_each(|value| ring.push_back(value));
            let model: VecDeque<u16> = (0..pushed).collect();
            prop_assert_eq!(
                ring.partition_point(|value| *value < limit),
                model.partition_point(|value| *value < limit)
            );
        }
    }
}
