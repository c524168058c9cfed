//! The minimum of many samples, and its uncertainty.

use crate::time::Nanos;

/// Samples that are stored.
const KEPT: usize = 8;
/// The distance of the true minimum below the smallest sample at 95 % probability, as a multiple of
/// the distance from the smallest to the largest stored sample: 0.05^(-1 / (KEPT - 1)) - 1, if
/// samples are spread evenly near their minimum.
const BELOW: f64 = 0.534;

/// The smallest samples, in ascending order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Least {
    kept: [Nanos; KEPT],
    count: usize,
}

impl Least {
    pub(crate) fn see(&mut self, sample: Nanos) {
        if self.count == KEPT && sample >= self.kept[KEPT - 1] {
            return;
        }
        let end = self.count.min(KEPT - 1);
        let mut at = end;
        while at > 0 && self.kept[at - 1] > sample {
            self.kept[at] = self.kept[at - 1];
            at -= 1;
        }
        self.kept[at] = sample;
        self.count = end + 1;
    }

    pub(super) fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(self.kept[0])
    }

    /// The distance by which the true minimum may lie below the smallest sample; a quarter of that
    /// sample if there are few.
    pub(super) fn below(&self) -> f64 {
        let (least, most) = (self.kept[0], self.kept[KEPT - 1]);
        if self.count < KEPT {
            return least as f64 / 4.0;
        }
        (most - least) as f64 * BELOW
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_least_samples_are_kept_in_order(samples in prop::collection::vec(0_i64..1000, 1..50)) {
            let mut least = Least::default();
            for sample in &samples {
                least.see(*sample);
            }
            let mut sorted = samples;
            sorted.sort_unstable();
            sorted.truncate(KEPT);
            prop_assert_eq!(&least.kept[..least.count], &sorted[..]);
        }
    }
}
