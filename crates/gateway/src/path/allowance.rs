//! The initiations that a path may carry while paths of better roles have a route.
//!
//! Without a session nothing shows which path delivers, so every path carries initiations. The other
//! end may be absent for weeks, and a path that is held back must not cost more than its rare probes do.

use anabranch_core::units::Duration;

use crate::time::Instant;

/// Interval of initiations in the long run. In a month they are 17 MB with IPv6 headers, and an
/// answer of the same size to each, such as an ICMP message, doubles that.
const INTERVAL: Duration = Duration::from_secs(30);
/// Initiations that may follow one another: ten seconds of them.
const BURST: u64 = 40;
/// Initiations that a change of the interface adds.
const RENEWED: u64 = 3;

/// A token bucket (the generic cell rate algorithm of ITU-T I.371).
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// The time at which the bucket will be full.
    full: Instant,
}

impl Allowance {
    /// Takes one, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let full = self.full.max(now) + INTERVAL;
        let is_open = full.saturating_since(now) <= INTERVAL * BURST;
        if is_open {
            self.full = full;
        }
        is_open
    }

    /// Adds some after a change of the interface.
    pub fn renew(&mut self) {
        self.full = self.full.saturating_sub(INTERVAL * RENEWED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_each_interval() {
        let mut allowance = Allowance::default();
        let mut now = Instant::START;
        let mut taken = |allowance: &mut Allowance, seconds: u64| {
            let mut count = 0;
            for _ in 0..seconds * 4 {
                count += u64::from(allowance.take(now));
                now = now + Duration::from_millis(250);
            }
            count
        };
        assert_eq!(taken(&mut allowance, 10), BURST);
        assert_eq!(taken(&mut allowance, 3_000), 100);
        allowance.renew();
        assert_eq!(taken(&mut allowance, 1), RENEWED);
        assert_eq!(taken(&mut allowance, 300), 10);
    }
}
