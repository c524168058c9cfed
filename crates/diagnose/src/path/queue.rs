//! Estimates the bottleneck's buffer from losses and waits, and separates losses that it does not
//! explain.

use super::{
    Estimate, Observer,
    estimate::{Z, mean, poisson, square},
    lost::{Place, Run},
    model::{Loss, LossKind},
    side::Side,
};
use crate::time::Nanos;

/// Losses whose wait is at least this share of the longest one occur at the same fill of the queue.
const FULL: f64 = 0.85;
/// Standard deviations by which losses at the longest wait must exceed independent losses.
const DEVIATIONS: f64 = 3.0;
/// Minimum number of runs of losses at the longest wait.
const LEAST_RUNS: u64 = 3;
/// Losses far from a full buffer give the rate of random loss if at least this share of the
/// segments was sent in that state.
const CLEAR_SHARE: f64 = 0.05;
/// Headers of the packets of a handshake, in octets.
pub(super) const HANDSHAKE: f64 = 60.0;
/// Standard deviations by which runs of losses must be longer than runs of independent losses.
const BURSTY: f64 = 2.5;

/// The state of the queue at losses.
pub(super) struct Queue {
    /// Waits at runs of losses in the full buffer, in nanoseconds.
    pub(super) full: Vec<f64>,
    pub(super) deviation: Option<f64>,
    /// Segments lost at the full buffer.
    at_full: u64,
    /// Segments lost far from a full buffer, the number of their runs, and the share of all
    /// segments that were sent in that state.
    random: u64,
    runs: u64,
    share: f64,
    /// The longest wait.
    longest: f64,
    place: Place,
}

impl Queue {
    pub(super) fn of(observer: &Observer, place: Place, is_from_start: bool, service: f64) -> Self {
        let side = observer.bottleneck();
        let (runs, every) = observer.lost.runs();
        let floor = floor(side, observer, is_from_start, service);
        let wait = |run: &Run| {
            let around = run.around.filter(|_| run.place == place)?;
            Some((around as f64 - floor).max(0.0))
        };
        let longest_loss = runs.iter().filter_map(wait).fold(0.0, f64::max);
        // A host that pauses sometimes makes single samples long, so a high quantile is used.
        let longest = (side.bins.high() as f64 - floor).max(0.0);
        let threshold = (FULL * longest_loss).min(longest_loss - 2.0 * service);
        let is_top =
            |run: &&Run| wait(run).is_some_and(|wait| wait >= threshold && threshold > 0.0);
        let (lost, all_runs) = sum(runs.iter(), every);
        let (top, top_runs) = sum(runs.iter().filter(is_top), every);
        let all = side.bins.all().max(1) as f64;
        let beyond = |wait: f64| {
            #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of a capture")]
            let from = side.bins.from((floor + wait) as Nanos);
            from as f64 / all
        };
        let at_top = beyond(threshold);
        let seldom = (all_runs - top_runs + 1) as f64 / (1.0 - at_top + 1.0 / all);
        let by_chance = seldom * at_top;
        // The threshold is relative to the longest wait at a loss, so one run always reaches it.
        let is_often = top_runs as f64 - 1.0 > by_chance + DEVIATIONS * by_chance.sqrt();
        let random = Self {
            full: Vec::new(),
            deviation: None,
            at_full: 0,
            random: lost,
            runs: all_runs,
            share: 1.0,
            longest,
            place,
        };
        if top_runs < LEAST_RUNS || !is_often || longest_loss < FULL * longest {
            return random;
        }
        // Bursts fill a queue that the sample before them did not find full. Only losses at much
        // shorter waits are certainly random.
        let half = longest_loss / 2.0;
        let clear = if 1.0 - beyond(half) >= CLEAR_SHARE {
            half
        } else {
            threshold
        };
        let is_below = |run: &&Run| wait(run).map_or(run.place != place, |wait| wait < clear);
        let (below, below_runs) = sum(runs.iter().filter(is_below), every);
        let full: Vec<f64> = runs.iter().filter(is_top).filter_map(wait).collect();
        let deviation = mean(full.iter().copied()).map(|(mean, _)| {
            let squares = full.iter().map(|one| square(one / mean - 1.0));
            (squares.sum::<f64>() / full.len() as f64).sqrt()
        });
        Self {
            full,
            deviation,
            at_full: top,
            random: below,
            runs: below_runs,
            share: 1.0 - beyond(clear),
            ..random
        }
    }

    /// Octets in the full buffer, excluding the packet in transmission.
    pub(super) fn bytes(&self, observer: &Observer, rate: Option<f64>) -> Estimate {
        let Some(rate) = rate else {
            return Estimate::NOT_SEEN;
        };
        let packet = (observer.mss() + observer.headers()) as f64;
        let mut sorted = self.full.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(median) = sorted.get(sorted.len() / 2) else {
            return if self.longest * rate > packet {
                Estimate::at_least(self.longest * rate)
            } else {
                Estimate::NOT_SEEN
            };
        };
        // A packet that took the last slot waited for the others and, on average, for half a packet
        // in transmission.
        let value = median * rate + packet / 2.0;
        let spread = mean(sorted.iter().copied()).map_or(0.0, |(_, half)| half * rate);
        let half = packet.max(if spread.is_finite() {
            spread
        } else {
            2.0 * packet
        });
        // If the queue is before the capture point, the sample is of a burst's first segment, which
        // waits less than the segments that were dropped. The longest of these waits is therefore
        // closest to the buffer.
        let longest = sorted.last().filter(|_| self.place == Place::Before);
        let high = longest.map_or(0.0, |wait| wait * rate + packet);
        Estimate::measured(value, (value - half).max(0.0), high.max(value + half))
    }

    /// The mean number of losses in a row. A loss is followed by another with one probability,
    /// whose interval is Wilson's.
    fn mean_burst(&self) -> Estimate {
        if self.runs == 0 {
            return Estimate::NOT_SEEN;
        }
        let all = self.random as f64;
        let share = 1.0 - self.runs as f64 / all;
        let weight = Z * Z / all;
        let middle = (share + weight / 2.0) / (1.0 + weight);
        let half = Z / (1.0 + weight) * (share * (1.0 - share) / all + weight / (4.0 * all)).sqrt();
        let burst = |share: f64| 1.0 / (1.0 - share).max(f64::EPSILON);
        Estimate::measured(
            burst(share),
            burst((middle - half).max(0.0)),
            burst((middle + half).min(1.0)),
        )
    }

    /// Losses that the full buffer does not explain, among `segments`.
    pub(super) fn loss(&self, segments: u64) -> Loss {
        let random = self.random as f64;
        let trials = segments as f64 * self.share;
        let rate = if trials < 1.0 {
            Estimate::NOT_SEEN
        } else if self.random == 0 {
            Estimate::none_up_to((poisson(0.0).1 / trials).min(1.0))
        } else {
            let burst = random / self.runs.max(1) as f64;
            // Runs are independent and their lengths geometric: this number of independent losses
            // carries as much information.
            let worth = self.runs as f64 * burst / (2.0 * burst - 1.0);
            let (low, high) = poisson(worth);
            // A segment that is lost twice counts twice.
            let value = (random / trials).min(1.0);
            Estimate::measured(value, value * low / worth, (value * high / worth).min(1.0))
        };
        let mean_burst = self.mean_burst();
        let independent = 1.0 / (1.0 - rate.value.unwrap_or(0.0).min(0.5));
        let is_bursty = mean_burst.value.is_some_and(|burst| {
            let error = (independent * (independent - 1.0) / self.runs as f64).sqrt();
            burst > independent + BURSTY * error + 0.1 && self.runs >= 5
        });
        Loss {
            kind: match (self.random, is_bursty) {
                (0, _) => LossKind::None,
                (_, true) => LossKind::GilbertElliott,
                (_, false) => LossKind::Bernoulli,
            },
            rate,
            mean_burst,
            at_full_buffer: self.at_full,
        }
    }
}

/// Sums segments and runs, of which one in `every` is stored.
fn sum<'a>(runs: impl Iterator<Item = &'a Run>, every: u32) -> (u64, u64) {
    let every = u64::from(every);
    runs.fold((0, 0), |(segments, count), run| {
        (segments + u64::from(run.segments) * every, count + every)
    })
}

/// The round-trip time of a full segment without queueing.
fn floor(side: &Side, observer: &Observer, is_from_start: bool, service: f64) -> f64 {
    let full = side.full.min().map(|full| full as f64);
    let share = HANDSHAKE / (observer.mss() + observer.headers()) as f64;
    let least = side.least.min().map(|least| least as f64);
    let by_handshake = least
        .filter(|_| is_from_start)
        .map(|least| least + service * (1.0 - share));
    match (full, by_handshake) {
        (Some(full), Some(other)) => full.min(other),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => least.unwrap_or(0.0),
    }
}
