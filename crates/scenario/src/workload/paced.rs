//! An application that sends by a clock: a fixed number of bytes, evenly spaced.

use std::sync::Arc;

use anabranch_core::units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Profile;

/// Parameters of an application that sends at its own rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paced {
    /// Application bytes per time, without headers.
    pub rate: Rate,
    /// Bytes sent at once, at even intervals. Over UDP, the payload of a datagram, 1 to 65,507
    /// bytes; if omitted, 1,472 bytes, which fill an IPv4 packet of 1,500 bytes. Over TCP, the size
    /// of each write, up to 4,294,967,295 bytes; if omitted, the flow's `mss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes", extend("x-minimum" = "1 bytes", "x-maximum" = "4294967295 bytes"))]
    pub payload: Option<Bytes>,
    /// The sizes of writes, or of the payloads of datagrams, used in rotation; in place of
    /// `payload`. The time from a write to the next is the time of its bytes at `rate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Bytes>,
    /// The variation of the rate around its mean, over UDP; constant if omitted. The first datagram
    /// is then sent at a random time up to an interval after the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// The times of writes: each follows when the bytes before it have taken their time at the rate.
/// Each time is rounded separately, so that rounding errors do not accumulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// Bits per second.
    rate: u64,
    /// The sum of bytes up to the end of each write of a round.
    ends: Arc<[u64]>,
}

/// The shortest interval; with shorter ones a run would make little progress.
const SHORTEST: Duration = Duration::from_nanos(1);

impl Pace {
    /// `None` if writes would be less than one nanosecond apart, or empty.
    #[must_use]
    pub fn new(rate: Rate, payload: u32) -> Option<Self> {
        Self::of_writes(rate, &[payload])
    }
    /// Writes of these sizes in rotation. `None` as for [`Self::new`].
    #[must_use]
    pub fn of_writes(rate: Rate, sizes: &[u32]) -> Option<Self> {
        let ends = sizes.iter().scan(0, |end, size| {
            *end += u64::from(*size);
            Some(*end)
        });
        let pace = Self {
            rate: rate.bits_per_s(),
            ends: ends.collect(),
        };
        let least = u64::from(*sizes.iter().min()?);
        (least > 0 && pace.time_of(least.into()) >= SHORTEST).then_some(pace)
    }
    /// Bytes of write `n`, from 0.
    ///
    /// # Panics
    /// Never: sizes have 32 bits.
    #[must_use]
    pub fn payload(&self, n: u64) -> u32 {
        let (_, place) = self.place(n);
        let before = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        u32::try_from(self.ends[place] - before).expect("a write has 32 bits")
    }
    /// Time from the first write to the `n`-th after it, saturated at the longest duration.
    #[must_use]
    pub fn after(&self, n: u64) -> Duration {
        let (rounds, place) = self.place(n);
        let before = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        let round = u128::from(self.ends[self.ends.len() - 1]);
        self.time_of(u128::from(rounds) * round + u128::from(before))
    }
    /// The round of write `n`, and its index in the round.
    fn place(&self, n: u64) -> (u64, usize) {
        let writes = self.ends.len() as u64;
        let place = usize::try_from(n % writes).expect("a list is as long as memory permits");
        (n / writes, place)
    }
    fn time_of(&self, bytes: u128) -> Duration {
        const PICOS: u128 = 1_000_000_000_000;
        let picos = (bytes * 8).saturating_mul(PICOS) / u128::from(self.rate);
        Duration::from_picos(u64::try_from(picos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detects a sum of rounded intervals: 1,000 bytes at 3 bits per nanosecond take 2,666.67 ns.
    #[test]
    fn rounding_errors_of_intervals_do_not_accumulate() {
        let pace =
            Pace::new(Rate::new(3_000_000_000).expect("positive"), 1000).expect("slow enough");
        assert_eq!(pace.after(0), Duration::ZERO);
        assert_eq!(pace.after(1), Duration::from_picos(2_666_666));
        assert_eq!(pace.after(3), Duration::from_nanos(8_000));
        assert_eq!(pace.after(3_000_000), Duration::from_secs(8));
    }

    /// 100, 50 and 250 bytes at 8 bits per nanosecond, in rotation.
    #[test]
    fn writes_of_several_sizes_keep_the_rate() {
        let rate = Rate::new(8_000_000_000).expect("positive");
        let pace = Pace::of_writes(rate, &[100, 50, 250]).expect("slow enough");
        let sizes: Vec<u32> = (0..5).map(|n| pace.payload(n)).collect();
        assert_eq!(sizes, [100, 50, 250, 100, 50]);
        let times: Vec<u64> = (0..5).map(|n| pace.after(n).as_nanos()).collect();
        assert_eq!(times, [0, 100, 150, 400, 500]);
        assert_eq!(pace.after(3_000), Duration::from_nanos(400_000));
        assert_eq!(Pace::of_writes(rate, &[100, 0]), None);
        assert_eq!(Pace::of_writes(rate, &[]), None);
    }

    #[test]
    fn the_fastest_and_the_slowest_pace() {
        let rate = |bits| Rate::new(bits).expect("positive");
        assert_eq!(Pace::new(rate(8_000_000_001), 1), None);
        let fastest = Pace::new(rate(8_000_000_000), 1).expect("one nanosecond");
        assert_eq!(fastest.after(1), Duration::from_nanos(1));
        assert_eq!(Pace::new(rate(1), 0), None);
        let slowest = Pace::new(rate(1), u32::MAX).expect("slow");
        assert_eq!(slowest.after(u64::MAX), Duration::from_picos(u64::MAX));
    }
}
