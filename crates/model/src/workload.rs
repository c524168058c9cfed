//! What applications send.

use anabranch_core::{math, rng::Draw};

/// How large the transfers of a workload of many are, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sizes {
    /// All the same.
    Fixed(u64),
    /// Exponential with this mean; one byte at least.
    Exponential {
        /// Mean, in bytes.
        mean: f64,
    },
    /// Log-normal with this median and standard deviation of the logarithm.
    LogNormal {
        /// Median, in bytes.
        median: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
}

impl Sizes {
    /// One transfer's size.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub fn draw(self, draw: &mut Draw) -> u64 {
        let bytes = match self {
            Self::Fixed(bytes) => return bytes.max(1),
            Self::Exponential { mean } => draw.exponential(mean),
            Self::LogNormal { median, sigma } => {
                // Box and Muller: one normal from two uniforms, of which the first is never 0.
                let radius = (-2.0 * math::ln(1.0 - draw.uniform())).sqrt();
                let angle = std::f64::consts::TAU * draw.uniform();
                median * math::exp(sigma * radius * math::cos(angle))
            }
        };
        (bytes as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::rng::Stream;

    #[test]
    fn sizes_have_their_mean_or_median() {
        let stream = Stream::new(3, "flow.web");
        let mut drawn: Vec<u64> = (0..20_001)
            .map(|i| {
                Sizes::LogNormal {
                    median: 10_000.0,
                    sigma: 1.0,
                }
                .draw(&mut stream.at(i))
            })
            .collect();
        drawn.sort_unstable();
        let median = drawn[10_000] as f64;
        // Standard error of the median's logarithm: 1.2533 / sqrt(n) = 0.0089.
        assert!((math::ln(median / 10_000.0)).abs() < 0.045, "{median}");
        let mean = (0..20_000)
            .map(|i| Sizes::Exponential { mean: 5e4 }.draw(&mut stream.at(i)) as f64)
            .sum::<f64>()
            / 2e4;
        assert!((mean / 5e4 - 1.0).abs() < 0.035, "{mean}");
    }
}
