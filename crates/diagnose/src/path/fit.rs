//! Fits the model of a path to the data of an [`Observer`].

use super::{
    Estimate, Observer, Policer, Seen,
    estimate::{Z, poisson},
    lost::Place,
    model::{Fit, Flow, Model, Policed, Reordering, Reverse},
    queue::{HANDSHAKE, Queue},
    side::Side,
};
use crate::{
    control::{Control, Held},
    segment::DirectionName,
    time::{MILLISECOND, Nanos, millis, seconds},
};

/// Minimum number of segments for a model.
pub(crate) const LEAST_SEGMENTS: u64 = 10;
/// Times in captures are rounded to microseconds at worst.
const RESOLUTION: f64 = 1_000.0;
/// The bottleneck must be busy for more than 1/`SELDOM` of the time.
const SELDOM: Nanos = 100;
/// Typical response time of hosts, which is not part of the path's delay.
const HOSTS: f64 = 50_000.0;
/// Minimum number of pairs of acknowledgments for a rate.
const LEAST_PAIRS: u64 = 8;
/// Maximum deviation of batches from a constant rate.
const CONSTANT: f64 = 0.05;

/// Share of paced time above which a sender is considered paced.
const PACED: f64 = 0.3;
/// Minimum number of reductions that identify a congestion control.
const LEAST_REDUCTIONS: usize = 3;
/// The ratio of CUBIC's window after a loss to that before. It identifies CUBIC in spite of pacing:
/// BBR's ratio varies.
const CUBIC: std::ops::Range<f64> = 0.66..0.73;

/// Properties of the connection that its observer lacks.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) direction: DirectionName,
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
    /// Shares of the time that hide the congestion window.
    pub(crate) held: Held,
    /// The largest amount in flight.
    pub(crate) highest_flight: i64,
    pub(crate) median_rtt: Option<Nanos>,
    pub(crate) policed: Option<Policed>,
}

impl Observer {
    /// The model, if there is enough data. `other` has the data of the other direction.
    pub(crate) fn model(&self, facts: &Facts, other: &Self) -> Option<Model> {
        let segments = facts.octets.div_ceil(self.mss().max(1).unsigned_abs());
        if segments < LEAST_SEGMENTS {
            return None;
        }
        let side = self.bottleneck();
        let place = self.place();
        let rate = self.rate(facts);
        let served = self.served(facts.duration);
        let service = self.service(served);
        let reverse = other.measured_rate(facts.duration);
        let base = self.base(facts, service, reverse.value.map(|rate| rate / 8e3));
        let queue = Queue::of(self, place, facts.is_from_start, service);
        let length = (8 * facts.median_rtt.unwrap_or(0)).max(100 * MILLISECOND);
        let deviation = side.busy().deviation(length);
        let is_constant = served.is_none() || deviation.is_none_or(|share| share <= CONSTANT);
        let bytes = queue.bytes(self, served);
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
            buffer_ms: served.map_or(Estimate::NOT_SEEN, |rate| {
                bytes.scaled(1.0 / rate / MILLISECOND as f64)
            }),
            loss: queue.loss(segments),
            policer: facts.policed.map(|found| self.policer(found, facts)),
            reordering: self.reordering(segments),
            jitter_ms: jitter(side),
            reverse: Reverse {
                rate_mbit_s: reverse,
                to_sender_ms: facts.to_sender.map(millis),
                to_receiver_ms: facts.to_receiver.map(millis),
            },
            goodput: self.goodput.series(facts.start),
            fit: Fit {
                rate_deviation: deviation,
                busy_s: seconds(side.busy().busy()),
                rate_samples: side.busy().pairs,
                buffer_deviation: queue.deviation,
                buffer_samples: queue.full.len(),
            },
            flow: self.flow(facts),
        })
    }

    fn policer(&self, found: Policed, facts: &Facts) -> Policer {
        let mss = self.mss() as f64;
        let scale = 1.0 + self.headers() as f64 / mss;
        let burst = found.burst.max(2.0 * mss);
        let burst = if facts.is_from_start {
            Estimate::measured(burst, burst - mss, burst + mss)
        } else {
            Estimate::at_least(burst)
        };
        Policer {
            rate_mbit_s: Estimate::measured(found.rate, found.low, found.high).scaled(scale * 8e-6),
            burst_bytes: burst.scaled(scale),
        }
    }

    fn place(&self) -> Place {
        let (before, after) = (&self.before, &self.after);
        let by_busy = before.busy_time().cmp(&after.busy_time());
        if by_busy.then(before.swing().cmp(&after.swing())).is_gt() {
            Place::Before
        } else {
            Place::After
        }
    }

    pub(super) fn bottleneck(&self) -> &Side {
        match self.place() {
            Place::Before => &self.before,
            Place::After => &self.after,
        }
    }

    /// The bottleneck's rate in octets per nanosecond, if it was busy often enough. An application
    /// that sends at its own pace sometimes looks like a queue before the capture point.
    fn served(&self, duration: Nanos) -> Option<f64> {
        let side = self.bottleneck();
        let is_often = self.place() == Place::After || side.busy_time() > duration / SELDOM;
        let rate = side.busy().rate()?;
        (side.busy().pairs >= LEAST_PAIRS && is_often).then_some(rate)
    }

    fn measured_rate(&self, duration: Nanos) -> Estimate {
        if self.served(duration).is_none() {
            return Estimate::NOT_SEEN;
        }
        let busy = self.bottleneck().busy();
        busy.estimate(RESOLUTION).scaled(8e3)
    }

    /// The bottleneck's rate. If no queue was seen, the connection's rate is a lower bound.
    fn rate(&self, facts: &Facts) -> Estimate {
        let measured = self.measured_rate(facts.duration);
        if measured.seen == Seen::Measured || facts.duration <= 0 {
            return measured;
        }
        Estimate::at_least(facts.octets as f64 * 8e3 / facts.duration as f64)
    }

    /// The transmission time of a full segment at the bottleneck.
    fn service(&self, served: Option<f64>) -> f64 {
        let octets = (self.mss() + self.headers()) as f64;
        served.map_or(0.0, |rate| octets / rate)
    }

    fn base(&self, facts: &Facts, service: f64, reverse: Option<f64>) -> Estimate {
        // The reverse path is assumed to be as fast as the forward one, unless the capture shows
        // its rate.
        let octet = service / (self.mss() + self.headers()) as f64;
        let back = reverse.map_or(octet, |rate| 1.0 / rate);
        let sides = [&self.before, &self.after];
        // Without timestamps, only the handshake shows the delay to the sender.
        let otherwise = [facts.to_sender, None];
        let sum = |of: fn(&Side) -> Option<Nanos>| {
            let known = sides.iter().zip(otherwise);
            let known = known.filter_map(|(side, otherwise)| of(side).or(otherwise));
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
                // Two samples that agree: the minimum is within 0.95 ÷ 0.05 times their distance
                // below them, if both are draws near it.
                let apart = (data - handshake).abs();
                (data.min(handshake), below.min(19.0 * apart))
            }
            (Some(one), None) | (None, Some(one)) => (one, below),
            (None, None) => return Estimate::NOT_SEEN,
        };
        let unknown = HOSTS + HANDSHAKE * (octet + back) / 2.0;
        let scale = 1.0 / MILLISECOND as f64;
        if value <= 0.0 {
            // The path's delay is below the clock's resolution.
            return Estimate::at_most(unknown).scaled(scale);
        }
        Estimate::measured(value, (value - below - unknown).max(0.0), value + unknown).scaled(scale)
    }

    fn reordering(&self, segments: u64) -> Reordering {
        // A segment that is late at the capture point may be late again after it.
        let all = segments.max(1) as f64;
        let late = (self.late as f64).min(all);
        let (low, high) = poisson(late);
        let ratio = if self.late == 0 {
            Estimate::none_up_to((high / all).min(1.0))
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
        let control = self.rounds.control(
            facts.to_sender.unwrap_or(0),
            facts.to_receiver.unwrap_or(0),
            facts.held,
        );
        let (congestion_control, congestion_control_evidence) =
            simulated(&control).unwrap_or_else(|| among(&control.candidates, self.control(facts)));
        Flow {
            mss_bytes: mss,
            bytes: facts.octets,
            is_closed: facts.is_closed,
            is_from_start: facts.is_from_start,
            control,
            congestion_control,
            congestion_control_evidence,
            reduction: self.reductions.median().map(|(ratio, _)| ratio),
            receive_window_bytes: (self.largest_window > 0).then_some(self.largest_window),
            send_buffer_bytes: (facts.buffer_limited > 0.1).then_some(facts.highest_flight),
            timestamps: self.has_stamps,
            sack: facts.sack,
            segments_per_ack: (self.acks > 0)
                .then(|| self.acked as f64 / self.acks as f64 / mss as f64),
            initial_window_packets: (facts.is_from_start && self.initial_flight > 0)
                .then(|| (self.initial_flight + mss - 1) / mss),
        }
    }

    /// The family of the congestion control, and the evidence.
    fn control(&self, facts: &Facts) -> (&'static str, &'static str) {
        // If the queue is before the capture point, queued data is not known to be in flight.
        let reduction = self
            .reductions
            .median()
            .filter(|_| self.place() == Place::After);
        let is_paced = facts.paced > PACED;
        let (ratio, count) = reduction.unwrap_or_default();
        let is_certain = count >= LEAST_REDUCTIONS && facts.window_limited < 0.5;
        match ratio {
            _ if is_paced && !(is_certain && CUBIC.contains(&ratio)) => {
                ("bbr", "segments were paced")
            }
            0.45..0.6 if is_certain || count > 0 => ("reno", "the window was halved at losses"),
            ..0.6 if is_certain => ("reno", "the window was halved at losses"),
            0.6..0.76 if is_certain => ("cubic", "the window was reduced to 0.7 at losses"),
            _ if is_certain => ("bbr", "losses did not reduce the window"),
            _ => ("cubic", "assumed: the capture does not show it"),
        }
    }
}

/// The control of the simulator that stands for a named one, and the evidence.
fn simulated(control: &Control) -> Option<(&'static str, &'static str)> {
    let law = "its window law explains the capture";
    Some(match control.name? {
        // The simulator has neither. YeAH grows as Reno while data waits in the queue; Illinois does so
        // only below 15 segments.
        "illinois" => ("reno", "assumed: it is Illinois, which the simulator lacks"),
        "yeah" => ("reno", "assumed: it is YeAH, which the simulator lacks"),
        name @ ("bbr" | "bbr3") => (name, "its probing cycle appears in the capture"),
        name => (name, law),
    })
}

/// A control that explains the windows, if several do: `family` by its reductions, or CUBIC, which
/// most systems have.
fn among(
    candidates: &[&'static str],
    family: (&'static str, &'static str),
) -> (&'static str, &'static str) {
    if candidates.is_empty() || candidates.contains(&family.0) {
        return family;
    }
    let simulated = |name: &&&'static str| !matches!(**name, "illinois" | "yeah");
    let first = candidates.iter().find(simulated).copied();
    let cubic = candidates.contains(&"cubic").then_some("cubic");
    cubic.or(first).map_or(family, |name| {
        (name, "assumed: several window laws explain the capture")
    })
}

/// The jitter: the deviation of the times between packets from their transmission times.
fn jitter(side: &Side) -> Estimate {
    let pairs = side.busy().pairs;
    let Some(noise) = side.busy().noise().filter(|_| pairs >= 4 * LEAST_PAIRS) else {
        return Estimate::NOT_SEEN;
    };
    // Both ends of a pair vary.
    let value = noise / std::f64::consts::SQRT_2;
    let scale = 1.0 / MILLISECOND as f64;
    if value <= RESOLUTION {
        return Estimate::at_most(RESOLUTION).scaled(scale);
    }
    let half = value * Z / (2.0 * pairs as f64).sqrt();
    Estimate::measured(value, value - half, value + half).scaled(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_a_control_that_explains_the_windows() {
        let halved = ("reno", "the window was halved at losses");
        assert_eq!(among(&[], halved), halved);
        assert_eq!(among(&["vegas", "reno"], halved), halved);
        assert_eq!(among(&["htcp", "cubic"], halved).0, "cubic");
        assert_eq!(
            among(&["illinois", "westwood-plus"], halved).0,
            "westwood-plus"
        );
        assert_eq!(among(&["illinois", "yeah"], halved), halved);
    }

    #[test]
    fn a_handful_of_segments_yields_no_model() {
        let facts = Facts {
            octets: 5 * 1448,
            ..Facts::default()
        };
        let observer = Observer::default();
        assert!(observer.model(&facts, &Observer::default()).is_none());
    }
}
