//! The largest value of the last rounds.

use std::collections::VecDeque;

/// A windowed maximum, exact: stores only values that can still become the largest.
#[derive(Debug, Default)]
pub(crate) struct MaxFilter {
    /// Rounds and values, in falling order of the values.
    values: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    /// Takes a value of round `now` and discards values older than `rounds`.
    pub(crate) fn update(&mut self, now: u64, rounds: u64, value: f64) {
        while self.values.back().is_some_and(|(_, old)| *old <= value) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while let Some((round, _)) = self.values.front()
            && now.saturating_sub(*round) >= rounds
        {
            self.values.pop_front();
        }
    }

    /// The largest value; zero if there is none.
    pub(crate) fn max(&self) -> f64 {
        self.values.front().map_or(0.0, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_largest_of_the_window(
            values in proptest::collection::vec((0..3_u64, 0..50_u32), 1..60), rounds in 1..12_u64,
        ) {
            let mut filter = MaxFilter::default();
            let mut seen = Vec::new();
            let mut now = 0;
            for (step, value) in values {
                now += step;
                seen.push((now, f64::from(value)));
                filter.update(now, rounds, f64::from(value));
                let expected = seen
                    .iter()
                    .filter(|(round, _)| now - round < rounds)
                    .fold(0.0_f64, |max, (_, value)| max.max(*value));
                prop_assert!((filter.max() - expected).abs() < 1e-9);
            }
        }
    }
}
