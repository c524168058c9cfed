//! An application that goes by a clock: so many bytes at a time, evenly spaced.

use anabranch_core::units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Profile;

/// Parameters of an application that sends at a rate of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paced {
    /// Application bytes per time, headers not counted.
    pub rate: Rate,
    /// How much leaves at once, evenly spaced. Over UDP the payload of a datagram, 1 to 65,507 bytes;
    /// left out, 1,472 bytes, which fill an IPv4 packet of 1,500 bytes. Over TCP what the application
    /// writes at once, up to 4,294,967,295 bytes; left out, the flow's `mss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes", extend("x-minimum" = "1 bytes", "x-maximum" = "4294967295 bytes"))]
    pub payload: Option<Bytes>,
    /// How the rate varies around its mean, over UDP; steady without one. The first datagram then leaves up to
    /// an interval after the start, at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// The times of its writes: the n-th comes n intervals after the first. Each time is rounded by itself,
/// so that they do not drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Bits per second.
    rate: u64,
    /// Bytes of each write.
    payload: u32,
}

/// The shortest interval: below it a run would hardly get on.
const SHORTEST: Duration = Duration::from_nanos(1);

impl Pace {
    /// `None` if the writes would come closer together than one nanosecond, or write nothing.
    #[must_use]
    pub fn new(rate: Rate, payload: u32) -> Option<Self> {
        let pace = Self {
            rate: rate.bits_per_s(),
            payload,
        };
        (payload > 0 && pace.after(1) >= SHORTEST).then_some(pace)
    }
    /// Bytes of each write.
    #[must_use]
    pub const fn payload(self) -> u32 {
        self.payload
    }
    /// From the first write to the `n`-th after it; the longest time there is, if that is shorter.
    #[must_use]
    pub fn after(self, n: u64) -> Duration {
        const PICOS: u128 = 1_000_000_000_000;
        let bits = u128::from(n) * u128::from(self.payload) * 8;
        let picos = bits.saturating_mul(PICOS) / u128::from(self.rate);
        Duration::from_picos(u64::try_from(picos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails for intervals that are rounded and then added up: 1,000 bytes at 3 bits a nanosecond
    /// take 2,666.67 ns.
    #[test]
    fn rounded_intervals_do_not_add_up() {
        let pace =
            Pace::new(Rate::new(3_000_000_000).expect("positive"), 1000).expect("slow enough");
        assert_eq!(pace.after(0), Duration::ZERO);
        assert_eq!(pace.after(1), Duration::from_picos(2_666_666));
        assert_eq!(pace.after(3), Duration::from_nanos(8_000));
        assert_eq!(pace.after(3_000_000), Duration::from_secs(8));
    }

    #[test]
    fn extremes() {
        let rate = |bits| Rate::new(bits).expect("positive");
        assert_eq!(Pace::new(rate(8_000_000_001), 1), None);
        let fastest = Pace::new(rate(8_000_000_000), 1).expect("one nanosecond");
        assert_eq!(fastest.after(1), Duration::from_nanos(1));
        assert_eq!(Pace::new(rate(1), 0), None);
        let slowest = Pace::new(rate(1), u32::MAX).expect("slow");
        assert_eq!(slowest.after(u64::MAX), Duration::from_picos(u64::MAX));
    }
}
