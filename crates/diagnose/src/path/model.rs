//! The model of a path: estimates with intervals, made from what an [`Observer`] has collected.

use serde::Serialize;

use super::{
    Estimate, Observer, Seen,
    estimate::{mean, poisson},
    lost::{Place, Run},
    side::Side,
};
use crate::time::{MILLISECOND, Nanos, millis, seconds};

/// Fewer segments say nothing of a path.
pub(crate) const LEAST_SEGMENTS: u64 = 10;
/// Times in captures are rounded to microseconds at worst.
const RESOLUTION: f64 = 1_000.0;
/// Fewer pairs of acknowledgments are no measurement of a rate.
const LEAST_PAIRS: u64 = 8;
/// A rate whose batches deviate by more is no constant.
const CONSTANT: f64 = 0.05;
/// Losses with at least this share of the longest wait happen at the same fill of the queue.
const FULL: f64 = 0.85;
/// By how many deviations losses at the longest wait must exceed those of independent losses.
const DEVIATIONS: f64 = 3.0;
/// Fewer runs of losses at the longest wait are chance.
const LEAST_RUNS: u64 = 3;
/// Losses far from a full buffer tell the rate of random loss if at least this share of the segments was sent then.
const CLEAR_SHARE: f64 = 0.05;
/// Headers of the packets of a handshake, in octets.
const HANDSHAKE: f64 = 60.0;
/// By how many deviations runs of losses must be longer than those of independent losses.
const BURSTY: f64 = 2.5;

/// The path of one direction of data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// `a_to_b` or `b_to_a`: the one with more data.
    pub direction: &'static str,
    /// Which side of the capture point has the queue.
    pub bottleneck: &'static str,
    /// The round trip of a packet that takes no time on the bottleneck and does not wait.
    pub base_rtt_ms: Estimate,
    /// The rate at which the bottleneck serves this connection, in octets of IP packets.
    pub rate_mbit_s: Estimate,
    /// Seconds from the first packet and rates, where one rate does not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rate_trace: Vec<[f64; 2]>,
    /// What may wait at the bottleneck.
    pub buffer_bytes: Estimate,
    /// The longest that a packet waits there.
    pub buffer_ms: Estimate,
    /// Losses that the full buffer does not explain.
    pub loss: Loss,
    /// Packets that come late (RFC 4737).
    pub reordering: Reordering,
    /// The standard deviation of delays that the queue does not explain.
    pub jitter_ms: Estimate,
    /// What differs between the directions.
    pub reverse: Reverse,
    /// How well the model describes the observations.
    pub fit: Fit,
    /// The connection itself, as far as a simulation needs it.
    pub flow: Flow,
}

/// Losses that the full buffer does not explain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// `none`, `bernoulli` or `gilbert-elliott`.
    pub kind: &'static str,
    /// The share of the packets.
    pub rate: Estimate,
    /// Packets that are lost in a row.
    pub mean_burst: Estimate,
    /// Segments that were lost because the buffer was full.
    pub at_full_buffer: u64,
}

/// Packets that come late (RFC 4737).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reordering {
    /// The share of the packets.
    pub ratio: Estimate,
    /// Later packets that had come before, for 95 % of them.
    pub extent_p95_packets: Option<u64>,
    /// How late half of them were.
    pub late_ms: Option<f64>,
}

/// The direction of acknowledgments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reverse {
    /// The rate of its bottleneck, if it has carried data.
    pub rate_mbit_s: Estimate,
    /// The round trip from the capture point to the sender of the data and back.
    pub to_sender_ms: Option<f64>,
    /// The same to the receiver.
    pub to_receiver_ms: Option<f64>,
}

/// How well the model describes the observations: deviations as shares of the value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Of the rates of parts of the time, from one rate.
    pub rate_deviation: Option<f64>,
    /// Time during which the bottleneck was seen to be busy.
    pub busy_s: f64,
    /// Pairs of packets that the rate rests on.
    pub rate_samples: u64,
    /// Of waits at losses, from the full buffer.
    pub buffer_deviation: Option<f64>,
    /// Losses in a row that the buffer rests on.
    pub buffer_samples: usize,
}

/// The connection itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// Octets of payload of a full segment.
    pub mss_bytes: i64,
    /// Octets of data.
    pub bytes: u64,
    /// The sender closed the connection.
    pub is_closed: bool,
    /// The capture has its beginning.
    pub is_from_start: bool,
    /// `cubic`, `reno` or `bbr`.
    pub congestion_control: &'static str,
    /// What that rests on.
    pub congestion_control_evidence: &'static str,
    /// The median of what is in flight behind a recovery ÷ before it.
    pub reduction: Option<f64>,
    /// The largest window that the receiver announced.
    pub receive_window_bytes: Option<i64>,
    /// What was in flight where the send buffer was the limit.
    pub send_buffer_bytes: Option<i64>,
    /// RFC 7323.
    pub timestamps: bool,
    /// RFC 2018.
    pub sack: bool,
    /// Segments for each acknowledgment, outside of recoveries.
    pub segments_per_ack: Option<f64>,
    /// Segments of the first window.
    pub initial_window_packets: Option<i64>,
}

/// What the connection knows beside its observer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) direction: &'static str,
    pub(crate) start: Nanos,
    pub(crate) duration: Nanos,
    pub(crate) octets: u64,
    pub(crate) is_closed: bool,
    pub(crate) is_from_start: bool,
    pub(crate) sack: bool,
    pub(crate) to_sender: Option<Nanos>,
    pub(crate) to_receiver: Option<Nanos>,
    /// Shares of the time.
    pub(crate) paced: f64,
    pub(crate) window_limited: f64,
    pub(crate) buffer_limited: f64,
    /// The most in flight.
    pub(crate) highest_flight: i64,
    pub(crate) median_rtt: Option<Nanos>,
}

impl Observer {
    /// The model, if there is enough data; `other` has the data of the other direction.
    pub(crate) fn model(&self, facts: &Facts, other: &Self) -> Option<Model> {
        let segments = facts.octets.div_ceil(self.mss().max(1).unsigned_abs());
        if segments < LEAST_SEGMENTS {
            return None;
        }
        let side = self.bottleneck();
        let place = self.place();
        let rate = self.rate(facts);
        let service = self.service(side);
        let reverse = other.measured_rate();
        let base = self.base(facts, service, reverse.value.map(|rate| rate / 8e3));
        let queue = Queue::of(self, place, facts.is_from_start, service);
        let length = (8 * facts.median_rtt.unwrap_or(0)).max(100 * MILLISECOND);
        let deviation = side.busy().deviation(length);
        let is_constant = deviation.is_none_or(|share| share <= CONSTANT);
        let bytes = queue.bytes(self, side.busy().rate());
        Some(Model {
            direction: facts.direction,
            bottleneck: match (rate.seen, place) {
                (Seen::Measured, Place::Before) => "before the capture point",
                (Seen::Measured, Place::After) => "behind the capture point",
                _ => "not seen",
            },
            base_rtt_ms: base,
            rate_mbit_s: rate,
            rate_trace: if is_constant {
                Vec::new()
            } else {
                side.busy().trace(facts.start, length)
            },
            buffer_bytes: bytes,
            buffer_ms: side.busy().rate().map_or(Estimate::NOT_SEEN, |rate| {
                bytes.scaled(1.0 / rate / MILLISECOND as f64)
            }),
            loss: self.loss(&queue, segments),
            reordering: self.reordering(segments),
            jitter_ms: jitter(side),
            reverse: Reverse {
                rate_mbit_s: reverse,
                to_sender_ms: facts.to_sender.map(millis),
                to_receiver_ms: facts.to_receiver.map(millis),
            },
            fit: Fit {
                rate_deviation: deviation,
                busy_s: seconds(side.busy().busy()),
                rate_samples: side.busy().pairs(),
                buffer_deviation: queue.deviation,
                buffer_samples: queue.full.len(),
            },
            flow: self.flow(facts),
        })
    }

    fn place(&self) -> Place {
        let (before, after) = (&self.before, &self.after);
        let by_busy = before.busy().busy().cmp(&after.busy().busy());
        if by_busy.then(before.swing().cmp(&after.swing())).is_gt() {
            Place::Before
        } else {
            Place::After
        }
    }

    fn bottleneck(&self) -> &Side {
        match self.place() {
            Place::Before => &self.before,
            Place::After => &self.after,
        }
    }

    fn measured_rate(&self) -> Estimate {
        let side = self.bottleneck();
        if side.busy().pairs() < LEAST_PAIRS {
            return Estimate::NOT_SEEN;
        }
        side.busy().estimate(RESOLUTION).scaled(8e3)
    }

    /// Without a queue the connection's own rate is a bound.
    fn rate(&self, facts: &Facts) -> Estimate {
        let measured = self.measured_rate();
        if measured.seen == Seen::Measured || facts.duration <= 0 {
            return measured;
        }
        Estimate::at_least(facts.octets as f64 * 8e3 / facts.duration as f64)
    }

    /// How long a full segment takes on the bottleneck.
    fn service(&self, side: &Side) -> f64 {
        let octets = (self.mss() + self.headers()) as f64;
        side.busy().rate().map_or(0.0, |rate| octets / rate)
    }

    fn base(&self, facts: &Facts, service: f64, reverse: Option<f64>) -> Estimate {
        // The reverse path is as fast as the forward one, unless the capture shows otherwise.
        let octet = service / (self.mss() + self.headers()) as f64;
        let back = reverse.map_or(octet, |rate| 1.0 / rate);
        let sides = [&self.before, &self.after];
        let sum = |of: fn(&Side) -> Option<Nanos>| {
            let known = sides.iter().filter_map(|side| of(side));
            let (count, time) = known.fold((0, 0), |(count, sum), one| (count + 1, sum + one));
            (count > 0).then_some(time as f64)
        };
        let by_data = sum(|side| side.full.min().or(side.least.min()))
            .map(|time| time - service - self.headers() as f64 * back);
        let by_handshake = sum(|side| side.least.min())
            .filter(|_| facts.is_from_start)
            .map(|time| time - HANDSHAKE * (octet + back));
        let below: f64 = sides.iter().map(|side| side.full.below()).sum();
        let (value, below) = match (by_data, by_handshake) {
            (Some(data), Some(handshake)) => {
                // Two samples that agree: 0.95 ÷ 0.05 of their distance, if both are draws near the minimum.
                let apart = (data - handshake).abs();
                (data.min(handshake), below.min(19.0 * apart))
            }
            (Some(one), None) | (None, Some(one)) => (one, below),
            (None, None) => return Estimate::NOT_SEEN,
        };
        let unknown = RESOLUTION + HANDSHAKE * (octet + back) / 2.0;
        let scale = 1.0 / MILLISECOND as f64;
        Estimate::measured(
            value.max(0.0),
            (value - below - unknown).max(0.0),
            value + unknown,
        )
        .scaled(scale)
    }

    fn loss(&self, queue: &Queue, segments: u64) -> Loss {
        let random = queue.random as f64;
        let trials = segments as f64 * queue.share;
        let rate = if trials < 1.0 {
            Estimate::NOT_SEEN
        } else if queue.random == 0 {
            Estimate {
                value: Some(0.0),
                low: Some(0.0),
                high: Some((poisson(0.0).1 / trials).min(1.0)),
                seen: Seen::AtMost,
            }
        } else {
            let burst = random / queue.runs.max(1) as f64;
            // Runs are independent, and their lengths are geometric: so many independent losses say as much.
            let worth = queue.runs as f64 * burst / (2.0 * burst - 1.0);
            let (low, high) = poisson(worth);
            let value = random / trials;
            Estimate::measured(value, value * low / worth, (value * high / worth).min(1.0))
        };
        let mean_burst = if queue.runs == 0 {
            Estimate::NOT_SEEN
        } else {
            let runs = queue.runs as f64;
            let burst = random / runs;
            let half = super::estimate::Z * (burst * (burst - 1.0) / runs).sqrt();
            Estimate::measured(burst, (burst - half).max(1.0), burst + half)
        };
        let independent = 1.0 / (1.0 - rate.value.unwrap_or(0.0).min(0.5));
        let is_bursty = mean_burst.value.is_some_and(|burst| {
            let error = (independent * (independent - 1.0) / queue.runs as f64).sqrt();
            burst > independent + BURSTY * error + 0.1 && queue.runs >= 5
        });
        Loss {
            kind: match (queue.random, is_bursty) {
                (0, _) => "none",
                (_, true) => "gilbert-elliott",
                (_, false) => "bernoulli",
            },
            rate,
            mean_burst,
            at_full_buffer: queue.at_full,
        }
    }

    fn reordering(&self, segments: u64) -> Reordering {
        let (late, all) = (self.late as f64, segments as f64);
        let (low, high) = poisson(late);
        let ratio = if self.late == 0 {
            Estimate {
                value: Some(0.0),
                low: Some(0.0),
                high: Some((high / all).min(1.0)),
                seen: Seen::AtMost,
            }
        } else {
            Estimate::measured(late / all, low / all, (high / all).min(1.0))
        };
        Reordering {
            ratio,
            extent_p95_packets: self.extents.percentile(95.0),
            late_ms: self
                .lateness
                .percentile(50.0)
                .map(|micros| micros as f64 / 1e3),
        }
    }

    fn flow(&self, facts: &Facts) -> Flow {
        let mss = self.mss();
        let (congestion_control, congestion_control_evidence) = self.control(facts);
        Flow {
            mss_bytes: mss,
            bytes: facts.octets,
            is_closed: facts.is_closed,
            is_from_start: facts.is_from_start,
            congestion_control,
            congestion_control_evidence,
            reduction: self.reductions.median().map(|(ratio, _)| ratio),
            receive_window_bytes: (self.largest_window > 0).then_some(self.largest_window),
            send_buffer_bytes: (facts.buffer_limited > 0.1).then_some(facts.highest_flight),
            timestamps: self.has_stamps(),
            sack: facts.sack,
            segments_per_ack: (self.acks > 0)
                .then(|| self.acked as f64 / self.acks as f64 / mss as f64),
            initial_window_packets: (facts.is_from_start && self.initial_flight > 0)
                .then(|| (self.initial_flight + mss - 1) / mss),
        }
    }

    /// The family of the congestion control, and what shows it.
    fn control(&self, facts: &Facts) -> (&'static str, &'static str) {
        match self.reductions.median() {
            Some((ratio, count)) if count >= 3 && facts.window_limited < 0.5 => match ratio {
                ..0.6 => ("reno", "the window was halved at losses"),
                0.6..0.85 => ("cubic", "the window was reduced to 0.7 at losses"),
                _ => ("bbr", "losses did not reduce the window"),
            },
            _ if facts.paced > 0.3 => ("bbr", "segments were paced"),
            _ => ("cubic", "assumed: the capture does not show it"),
        }
    }
}

/// Delays vary from packet to packet where the times between them do not follow their lengths.
fn jitter(side: &Side) -> Estimate {
    let pairs = side.busy().pairs();
    let Some(noise) = side.busy().noise().filter(|_| pairs >= 4 * LEAST_PAIRS) else {
        return Estimate::NOT_SEEN;
    };
    // Both ends of a pair vary.
    let value = noise / std::f64::consts::SQRT_2;
    let scale = 1.0 / MILLISECOND as f64;
    if value <= RESOLUTION {
        return Estimate::at_most(RESOLUTION).scaled(scale);
    }
    let half = value * super::estimate::Z / (2.0 * pairs as f64).sqrt();
    Estimate::measured(value, value - half, value + half).scaled(scale)
}

/// What losses say of the queue.
struct Queue {
    /// Waits at runs of losses in the full buffer, in nanoseconds.
    full: Vec<f64>,
    deviation: Option<f64>,
    /// Segments that were lost there.
    at_full: u64,
    /// Segments that were lost far from a full buffer, their runs, and the share of all segments that were sent then.
    random: u64,
    runs: u64,
    share: f64,
    /// The longest wait.
    longest: f64,
}

impl Queue {
    fn of(observer: &Observer, place: Place, is_from_start: bool, service: f64) -> Self {
        let side = observer.bottleneck();
        let (runs, every) = observer.lost.runs();
        let floor = floor(side, observer, is_from_start, service);
        let wait = |run: &Run| {
            let around = run.around.filter(|_| run.place == place)?;
            Some((around as f64 - floor).max(0.0))
        };
        let longest_loss = runs.iter().filter_map(wait).fold(0.0, f64::max);
        // Senders that pace hold data back now and then.
        let longest = match place {
            Place::Before => side.bins.high(),
            Place::After => side.longest,
        };
        let longest = (longest as f64 - floor).max(0.0);
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
        // The longest wait is at a loss in any case.
        let is_often = top_runs as f64 - 1.0 > by_chance + DEVIATIONS * by_chance.sqrt();
        if top_runs < LEAST_RUNS || !is_often || longest_loss < FULL * longest {
            return Self {
                full: Vec::new(),
                deviation: None,
                at_full: 0,
                random: lost,
                runs: all_runs,
                share: 1.0,
                longest,
            };
        }
        // Bursts fill a queue that the sample before them did not find full: what is far below is not doubtful.
        let half = longest_loss / 2.0;
        let clear = if 1.0 - beyond(half) >= CLEAR_SHARE {
            half
        } else {
            threshold
        };
        let is_below = |run: &&Run| wait(run).map_or(run.place != place, |wait| wait < clear);
        let (random, random_runs) = sum(runs.iter().filter(is_below), every);
        let full: Vec<f64> = runs.iter().filter(is_top).filter_map(wait).collect();
        let deviation = mean(full.iter().copied()).map(|(mean, _)| {
            let squares = full.iter().map(|one| (one / mean - 1.0).powi(2));
            (squares.sum::<f64>() / full.len() as f64).sqrt()
        });
        Self {
            full,
            deviation,
            at_full: top,
            random,
            runs: random_runs,
            share: 1.0 - beyond(clear),
            longest,
        }
    }

    /// Octets that wait when the buffer is full, the one being sent not counted.
    fn bytes(&self, observer: &Observer, rate: Option<f64>) -> Estimate {
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
        // A packet that found the last place waited for the others there, and for half a packet in service on average.
        let value = median * rate + packet / 2.0;
        let spread = mean(sorted.iter().copied()).map_or(0.0, |(_, half)| half * rate);
        let half = packet.max(if spread.is_finite() {
            spread
        } else {
            2.0 * packet
        });
        Estimate::measured(value, (value - half).max(0.0), value + half)
    }
}

/// Segments and runs, of which one in `every` is kept.
fn sum<'a>(runs: impl Iterator<Item = &'a Run>, every: u32) -> (u64, u64) {
    let every = u64::from(every);
    runs.fold((0, 0), |(segments, count), run| {
        (segments + u64::from(run.segments) * every, count + every)
    })
}

/// The round trip of a full segment that does not wait.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn nothing_is_modelled_from_a_handful_of_segments() {
        let facts = Facts {
            direction: "a_to_b",
            start: 0,
            duration: SECOND,
            octets: 5 * 1448,
            is_closed: true,
            is_from_start: true,
            sack: true,
            to_sender: None,
            to_receiver: None,
            paced: 0.0,
            window_limited: 0.0,
            buffer_limited: 0.0,
            highest_flight: 0,
            median_rtt: None,
        };
        let observer = Observer::default();
        assert!(observer.model(&facts, &Observer::default()).is_none());
    }
}
