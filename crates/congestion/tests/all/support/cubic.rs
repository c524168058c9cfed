//! Shared support of the tests of CUBIC.

use anabranch_congestion::{Config, cubic};
use anabranch_core::units::Duration;

use super::Path;

/// The scaling constant of RFC 9438 §5.
pub const C: f64 = 0.4;

/// CUBIC without the Reno-friendly region.
pub fn cubic_only() -> Config {
    Config::Cubic(cubic::Params {
        tcp_friendly: false,
        ..Default::default()
    })
}

pub fn cubed(x: f64) -> f64 {
    x * x * x
}

/// A path whose control has just been reduced at a window of `w_max`.
pub fn reduced_at(config: &Config, w_max: u64, rtt: Duration) -> Path {
    let mut path = Path::new(config, w_max, rtt);
    path.lose();
    path
}
