//! The variation of a load: a periodic curve, and short bursts on top.
//!
//! The level is a factor with a long-term mean of 1, so that a workload's `rate` stays its mean. It
//! is the product of the curve, 1 − depth to 1 + depth, and of bursts of `length` at random times:
//! the pause after each is exponential. The points of a Poisson process whose rate follows the
//! level are found by thinning (P. A. W. Lewis and G. S. Shedler, "Simulation of nonhomogeneous
//! Poisson processes by thinning", Naval Research Logistics Quarterly 26(3), 1979).

use anabranch_core::{
    math,
    rng::{Draw, Stream},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variation of a load over time, as a factor of its mean. The curve counts from the start of
/// the run, so all flows share it; bursts are drawn per flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The form of the curve.
    #[serde(default)]
    pub shape: Shape,
    /// The period of the curve, 1 ms to a day.
    #[schemars(extend("x-minimum" = "1 ms", "x-maximum" = "86400 s"))]
    pub period: Duration,
    /// The amplitude of the curve as a share of the mean: the load is between 1 − depth and 1 +
    /// depth.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub depth: f64,
    /// Short bursts on top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
}

/// The form of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A sine with its minimum at the start of each period, like a day at midnight.
    #[default]
    Sine,
    /// Low in the first half of each period, high in the second: two jumps.
    Square,
}

/// Bursts at random times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// The mean time from the start of a burst to the start of the next; longer than `length`.
    pub every: Duration,
    /// The length of each, 1 ms or more.
    #[schemars(extend("x-minimum" = "1 ms"))]
    pub length: Duration,
    /// The load in a burst relative to the load between bursts, above 1 and up to 1000.
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub factor: f64,
}

/// An invalid value: (keys, message, expectation).
pub type Wrong = (&'static [&'static str], String, &'static str);

impl Profile {
    /// Checks the bounds of its values.
    ///
    /// # Errors
    /// For the first key that is out of bounds.
    pub fn check(&self) -> Result<(), Wrong> {
        let least = Duration::from_millis(1);
        if self.period < least || self.period > Duration::from_secs(86_400) {
            let message = format!("a period of {} is out of range", self.period);
            return Err((&["period"], message, "1 ms to 86400 s"));
        }
        if !(0.0..=1.0).contains(&self.depth) {
            let message = format!("a depth of {} is out of range", self.depth);
            return Err((&["depth"], message, "a number from 0 to 1"));
        }
        let Some(bursts) = self.bursts else {
            return Ok(());
        };
        if bursts.length < least {
            let message = format!("a burst of {} is too short", bursts.length);
            return Err((&["bursts", "length"], message, "1 ms or more"));
        }
        if bursts.every <= bursts.length {
            let message = format!(
                "bursts of {} cannot begin every {}",
                bursts.length, bursts.every
            );
            return Err((&["bursts", "every"], message, "longer than `length`"));
        }
        if !(bursts.factor > 1.0 && bursts.factor <= 1000.0) {
            let message = format!("a factor of {} is out of range", bursts.factor);
            let expected = "a number above 1 and up to 1000";
            return Err((&["bursts", "factor"], message, expected));
        }
        Ok(())
    }

    fn curve(&self, now: Instant) -> f64 {
        let into = now.as_picos() % self.period.as_picos();
        let share = into as f64 / self.period.as_picos() as f64;
        let form = match self.shape {
            Shape::Sine => -math::cos(std::f64::consts::TAU * share),
            Shape::Square if share < 0.5 => -1.0,
            Shape::Square => 1.0,
        };
        1.0 + self.depth * form
    }

    /// The integral of the curve from the start of the period to `at`, in periods.
    fn sum(&self, at: Instant) -> f64 {
        let into = at.as_picos() % self.period.as_picos();
        let share = into as f64 / self.period.as_picos() as f64;
        let form = match self.shape {
            Shape::Sine => -math::sin(std::f64::consts::TAU * share) / std::f64::consts::TAU,
            Shape::Square => (share - 0.5).abs() - 0.5,
        };
        share + self.depth * form
    }
    /// The integral between two instants, in periods.
    fn between(&self, from: Instant, to: Instant) -> f64 {
        let periods = |at: Instant| at.as_picos() / self.period.as_picos();
        (periods(to) - periods(from)) as f64 + self.sum(to) - self.sum(from)
    }
}

impl Bursts {
    /// The mean load relative to the load between bursts.
    fn mean(&self) -> f64 {
        1.0 + (self.factor - 1.0) * self.length.as_secs_f64() / self.every.as_secs_f64()
    }
}

/// The state of a profile, for queries in order of time.
#[derive(Debug, Clone)]
pub struct Level {
    profile: Profile,
    stream: Stream,
    /// The number of bursts drawn, including the current or next one.
    drawn: u64,
    /// Start and end of the current or next burst.
    burst: (Instant, Instant),
}

impl Level {
    /// Starts at the start of the run; `stream` draws the bursts.
    #[must_use]
    pub fn new(profile: Profile, stream: Stream) -> Self {
        let mut level = Self {
            profile,
            stream,
            drawn: 0,
            burst: (Instant::NEVER, Instant::NEVER),
        };
        if let Some(bursts) = profile.bursts {
            level.draw_burst(&bursts, Instant::START);
        }
        level
    }

    /// The level of a flow in a run with this seed, if it has a profile.
    #[must_use]
    pub fn of_flow(profile: Option<Profile>, seed: u64, flow: &str) -> Option<Self> {
        let name = format!("flow.{flow}.workload.profile");
        profile.map(|profile| Self::new(profile, Stream::new(seed, &name)))
    }

    fn draw_burst(&mut self, bursts: &Bursts, after: Instant) {
        let mean = (bursts.every - bursts.length).as_secs_f64();
        let pause = self.stream.at(self.drawn).exponential(mean);
        self.drawn += 1;
        let start = after.saturating_add(Duration::from_secs_f64(pause));
        self.burst = (start, start.saturating_add(bursts.length));
    }

    /// Returns the level at `now`.
    pub fn at(&mut self, now: Instant) -> f64 {
        let curve = self.profile.curve(now);
        let Some(bursts) = self.profile.bursts else {
            return curve;
        };
        curve * self.factor(&bursts, now).0 / bursts.mean()
    }

    /// Returns the load relative to the load between bursts, and the time until which it holds.
    fn factor(&mut self, bursts: &Bursts, now: Instant) -> (f64, Instant) {
        while self.burst.1 <= now {
            self.draw_burst(bursts, self.burst.1);
        }
        if self.burst.0 <= now {
            (bursts.factor, self.burst.1)
        } else {
            (1.0, self.burst.0)
        }
    }

    /// The highest possible level.
    fn most(&self) -> f64 {
        let bursts = self.profile.bursts;
        (1.0 + self.profile.depth) * bursts.map_or(1.0, |bursts| bursts.factor / bursts.mean())
    }

    /// Returns the next point after `now` of a Poisson process with a mean of `rate` points per
    /// second.
    pub fn next_point(&mut self, now: Instant, rate: f64, draw: &mut Draw) -> Instant {
        let most = self.most();
        let mut at = now;
        loop {
            let pause = draw.exponential(1.0 / (rate * most));
            at = at.saturating_add(Duration::from_secs_f64(pause));
            if at == Instant::NEVER || draw.uniform() * most < self.at(at) {
                return at;
            }
        }
    }

    /// Returns the time at which the integral of `rate` (mean per second) since `now` reaches
    /// `amount`. The level is constant within a step, a thousandth of the period or a tenth of a
    /// burst. Whole periods are skipped in one step.
    pub fn when_added_up(&mut self, now: Instant, rate: f64, amount: f64) -> Instant {
        let period = self.profile.period;
        let mut step = Duration::from_picos(period.as_picos() / 1000);
        if let Some(bursts) = self.profile.bursts {
            step = step.min(Duration::from_picos(bursts.length.as_picos() / 10));
        }
        let (mut at, mut left) = (now, amount);
        while at < Instant::NEVER {
            let (factor, until) = match self.profile.bursts {
                None => (1.0, Instant::NEVER),
                Some(bursts) => {
                    let (factor, until) = self.factor(&bursts, at);
                    (factor / bursts.mean(), until)
                }
            };
            let of_period = rate * factor * period.as_secs_f64();
            if left >= of_period {
                let periods = whole(left / of_period);
                let end = at.saturating_add(period.saturating_mul(periods)).min(until);
                let passed = if end < until {
                    periods as f64
                } else {
                    self.profile.between(at, until)
                };
                left = (left - of_period * passed).max(0.0);
                at = end;
                continue;
            }
            let per_s = rate * self.at(at);
            let adds = per_s * step.as_secs_f64();
            if adds >= left {
                return at.saturating_add(Duration::from_secs_f64(left / per_s));
            }
            left -= adds;
            at = at.saturating_add(step);
        }
        at
    }
}

/// Rounds down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: Bursts = Bursts {
        every: Duration::from_millis(200),
        length: Duration::from_millis(20),
        factor: 6.0,
    };

    fn profile(shape: Shape, bursts: Option<Bursts>) -> Profile {
        Profile {
            shape,
            period: Duration::from_secs(2),
            depth: 0.5,
            bursts,
        }
    }

    /// Detects a curve or bursts that are added to the mean instead of around it.
    #[test]
    fn the_mean_of_a_level_is_one() {
        for shape in [Shape::Sine, Shape::Square] {
            for bursts in [None, Some(BURSTS)] {
                let mut level = Level::new(profile(shape, bursts), Stream::new(1, "level"));
                let steps = 2_000_000;
                let sum: f64 = (0..steps)
                    .map(|step| level.at(Instant::START + Duration::from_micros(500) * step))
                    .sum();
                // 1000 s have 5,000 bursts. The share of time in them has a relative deviation
                // below 1/sqrt(5000), and it moves the mean by a third of itself: 5 deviations are
                // 0.024.
                assert!((sum / steps as f64 - 1.0).abs() < 0.024, "{shape:?}");
            }
        }
    }

    /// 0.75 s into a period of 2 s the sine is at 1 + 0.5 sin 45°, and the square still low.
    #[test]
    fn curves_have_their_closed_form() {
        let at = |shape, ms| {
            Level::new(profile(shape, None), Stream::new(1, "x")).at(Instant::from_millis(ms))
        };
        assert!((at(Shape::Sine, 0) - 0.5).abs() < 1e-12);
        assert!((at(Shape::Sine, 750) - (1.0 + 0.5 * 0.5_f64.sqrt())).abs() < 1e-12);
        assert!((at(Shape::Sine, 3_000) - 1.5).abs() < 1e-12);
        for (ms, level) in [(999, 0.5), (1_000, 1.5), (1_999, 1.5), (2_000, 0.5)] {
            assert!((at(Shape::Square, ms) - level).abs() < 1e-12);
        }
    }

    /// The number of points in each half of a square is proportional to its level. Detects pauses
    /// drawn with the level at their start.
    #[test]
    fn points_follow_the_level() {
        let mut level = Level::new(profile(Shape::Square, None), Stream::new(1, "x"));
        let stream = Stream::new(2, "points");
        let mut counts = [0_u32; 2];
        let (mut now, mut index) = (Instant::START, 0);
        while now < Instant::from_millis(400_000) {
            now = level.next_point(now, 2.0, &mut stream.at(index));
            index += 1;
            counts[usize::from(now.as_picos() % 2_000_000_000_000 >= 1_000_000_000_000)] += 1;
        }
        // 200 and 600 are expected; five deviations are 71 and 122.
        assert!(
            counts[0].abs_diff(200) < 71 && counts[1].abs_diff(600) < 122,
            "{counts:?}"
        );
    }

    /// In the low half a unit takes 2 s at a rate of 1 (0.5 per second), in the high half 2/3 s.
    #[test]
    fn amounts_add_up_over_a_jump() {
        let mut level = Level::new(profile(Shape::Square, None), Stream::new(1, "x"));
        let end = level.when_added_up(Instant::START, 1.0, 1.0);
        assert!(
            (end.as_secs_f64() - (1.0 + 0.5 / 1.5)).abs() < 0.003,
            "{end:?}"
        );
    }

    /// 524,056 bits at 1 bit/s take six days, which are 5e8 periods of a millisecond. Detects a
    /// search step by step, which would never end.
    #[test]
    fn amounts_of_many_periods_add_up_at_once() {
        let short = |shape, bursts| Profile {
            period: Duration::from_millis(1),
            ..profile(shape, bursts)
        };
        for shape in [Shape::Sine, Shape::Square] {
            let mut level = Level::new(short(shape, None), Stream::new(1, "x"));
            let end = level.when_added_up(Instant::from_millis(7), 1.0, 524_056.25);
            let took = end.as_secs_f64() - 0.007;
            assert!((took - 524_056.25).abs() < 1e-3, "{shape:?}: {took}");
            // 100,000 bursts: their share of the time has a relative deviation of 1/sqrt(100,000),
            // and moves the mean by a third of itself; five deviations are 0.005.
            let mut level = Level::new(short(shape, Some(BURSTS)), Stream::new(1, "x"));
            let end = level
                .when_added_up(Instant::START, 1.0, 20_000.25)
                .as_secs_f64();
            assert!((end / 20_000.25 - 1.0).abs() < 5e-3, "{shape:?}: {end}");
        }
    }

    /// Inside and between bursts, skipping whole periods and parts of them gives the sum of small
    /// steps.
    #[test]
    fn skipped_periods_add_up_like_small_steps() {
        for shape in [Shape::Sine, Shape::Square] {
            let profile = profile(shape, Some(BURSTS));
            let mut level = Level::new(profile, Stream::new(1, "x"));
            // 20.3 periods in the mean.
            let end = level.when_added_up(Instant::from_millis(300), 10.0, 406.0);
            let mut level = Level::new(profile, Stream::new(1, "x"));
            let step = Duration::from_micros(20);
            let (mut at, mut sum) = (Instant::from_millis(300), 0.0);
            while at < end {
                sum += 10.0 * level.at(at) * step.as_secs_f64();
                at = at + step;
            }
            assert!((sum - 406.0).abs() < 1.0, "{shape:?}: {sum}");
        }
    }
}
