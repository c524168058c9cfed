//! The AccECN option (RFC 9768 §3.2.3): counters of payload octets received per ECN field.

use std::num::NonZeroU8;

/// The three counters (RFC 9768 §3.2.1), in the order of `AccECN0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// `e0b`: octets under ECT(0).
    Ect0,
    /// `ceb`: octets under Congestion Experienced.
    Ce,
    /// `e1b`: octets under ECT(1).
    Ect1,
}

/// Order of the counters in the option (RFC 9768 figure 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `AccECN0`: ECT(0), CE, ECT(1).
    Ect0First,
    /// `AccECN1`: ECT(1), CE, ECT(0).
    Ect1First,
}

impl Order {
    /// Returns the counters in this order.
    #[must_use]
    pub const fn counters(self) -> [Counter; 3] {
        match self {
            Self::Ect0First => [Counter::Ect0, Counter::Ce, Counter::Ect1],
            Self::Ect1First => [Counter::Ect1, Counter::Ce, Counter::Ect0],
        }
    }
}

/// The option: an order and up to three fields of 24 bits. Trailing fields may be omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccEcn {
    /// 1 + number of fields, + 4 with ECT(1) first. The encoding is compact because a segment has
    /// to fit a cache line.
    shape: NonZeroU8,
    octets: [u8; 9],
}

impl AccEcn {
    /// Mask of the 24 bits of a counter that the option carries.
    pub const MASK: u32 = (1 << 24) - 1;

    /// Creates an option with these fields in its order. Takes at most three fields, and the low 24
    /// bits of each.
    #[must_use]
    pub fn new(order: Order, fields: &[u32]) -> Self {
        let mut octets = [0; 9];
        let mut count = 0;
        for (place, field) in octets.chunks_exact_mut(3).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes()[1..]);
            count += 1;
        }
        let order = match order {
            Order::Ect0First => 0,
            Order::Ect1First => 4,
        };
        Self {
            shape: NonZeroU8::MIN.saturating_add(order + count),
            octets,
        }
    }
    /// Order of the counters.
    #[must_use]
    pub const fn order(&self) -> Order {
        if self.shape.get() > 4 {
            Order::Ect1First
        } else {
            Order::Ect0First
        }
    }
    /// Number of fields.
    #[must_use]
    pub const fn count(&self) -> u8 {
        (self.shape.get() - 1) % 4
    }
    /// Returns the field of a counter, if the option has it.
    #[must_use]
    pub fn field(&self, counter: Counter) -> Option<u32> {
        let mut fields = self
            .order()
            .counters()
            .into_iter()
            .zip(self.octets.chunks_exact(3))
            .take(usize::from(self.count()));
        let (_, octets) = fields.find(|(stands, _)| *stands == counter)?;
        Some(u32::from_be_bytes([0, octets[0], octets[1], octets[2]]))
    }
    /// The fields in wire format.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets[..3 * usize::from(self.count())]
    }
    /// Size in the header in bytes, padded to words.
    #[must_use]
    pub const fn size(&self) -> u32 {
        (2 + 3 * self.count() as u32).next_multiple_of(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_counter_whatever_the_order() {
        let first = AccEcn::new(Order::Ect0First, &[1, 2, 3]);
        let last = AccEcn::new(Order::Ect1First, &[3, 2, 1]);
        for option in [first, last] {
            assert_eq!(option.field(Counter::Ect0), Some(1));
            assert_eq!(option.field(Counter::Ce), Some(2));
            assert_eq!(option.field(Counter::Ect1), Some(3));
        }
        assert_eq!(first.octets(), [0, 0, 1, 0, 0, 2, 0, 0, 3]);
        assert_eq!(last.octets(), [0, 0, 3, 0, 0, 2, 0, 0, 1]);
        assert_ne!(first.order(), last.order());
    }

    #[test]
    fn rfc_9768_table_5_omitted_fields() {
        let full = [0x0001_0203, 0xff04_0506, 7];
        for (count, size) in [(0, 4), (1, 8), (2, 8), (3, 12)] {
            for order in [Order::Ect0First, Order::Ect1First] {
                let option = AccEcn::new(order, &full[..count]);
                assert_eq!(usize::from(option.count()), count);
                assert_eq!((option.order(), option.size()), (order, size));
                for (place, counter) in order.counters().into_iter().enumerate() {
                    let expected = (place < count).then(|| full[place] & AccEcn::MASK);
                    assert_eq!(option.field(counter), expected, "{counter:?} of {count}");
                }
            }
        }
    }
}
