//! Time of this end's ports in each state, and their energy by the simulator's model.

use anabranch_core::units::{Duration, Rate};
use anabranch_path::group::energy::{PortTimes, PowerModel};
use serde::{Deserialize, Serialize};

use super::{Time, members::Phase};

/// Times of a port.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Sending.
    pub active: f64,
    /// Awake without sending.
    pub idle: f64,
    /// Set down.
    pub sleeping: f64,
    /// Waking up, and negotiating.
    pub waking: f64,
}

/// Times of all ports of this end.
#[derive(Debug)]
pub struct Ports {
    model: PowerModel,
    rate: Rate,
    times: Vec<Seconds>,
    /// Sum over ports that have left.
    left: Seconds,
}

impl Ports {
    /// Ports without time.
    #[must_use]
    pub fn new(model: PowerModel, rate: Rate, count: usize) -> Self {
        Self {
            model,
            rate,
            times: vec![Seconds::default(); count],
            left: Seconds::default(),
        }
    }

    /// Adds a span in which a port sent `bytes`.
    pub fn add(&mut self, port: usize, phase: &Phase, span: Time, bytes: u64) {
        let Some(times) = self.times.get_mut(port) else {
            return;
        };
        let span = span.as_secs_f64();
        match phase {
            Phase::Off => times.sleeping += span,
            Phase::Joining { .. } => times.waking += span,
            _ => {
                let sending = bytes as f64 * 8.0 / self.rate.bits_per_s() as f64;
                let active = sending.min(span);
                times.active += active;
                times.idle += span - active;
            }
        }
    }

    /// Removes a port; its energy remains in the sums.
    pub fn remove(&mut self, port: usize) {
        if port < self.times.len() {
            let times = self.times.remove(port);
            self.left.active += times.active;
            self.left.idle += times.idle;
            self.left.sleeping += times.sleeping;
            self.left.waking += times.waking;
        }
    }

    /// Ports that are there, and the sum of the others.
    fn all(&self) -> impl Iterator<Item = &Seconds> {
        self.times.iter().chain([&self.left])
    }

    /// Seconds in which ports slept.
    #[must_use]
    pub fn asleep(&self) -> f64 {
        self.all().map(|times| times.sleeping).sum()
    }

    /// The times of each port.
    #[must_use]
    pub fn times(&self) -> &[Seconds] {
        &self.times
    }

    /// Energy of all ports of this end, and the energy if none had slept, in joules.
    #[must_use]
    pub fn joules(&self) -> (f64, f64) {
        let used = self.all().map(|times| self.of(times)).sum();
        let awake = self.all().map(|times| {
            self.of(&Seconds {
                active: times.active,
                idle: times.idle + times.sleeping + times.waking,
                ..Seconds::default()
            })
        });
        (used, awake.sum())
    }

    fn of(&self, times: &Seconds) -> f64 {
        self.model.joules(&PortTimes {
            active: Duration::from_secs_f64(times.active),
            idle: Duration::from_secs_f64(times.idle),
            sleeping: Duration::from_secs_f64(times.sleeping),
            waking: Duration::from_secs_f64(times.waking),
        })
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::units::Rate;
    use anabranch_path::group::energy::PowerModel;

    use super::{Phase, Ports, Time};

    #[test]
    fn a_sleeping_port_draws_a_tenth() {
        let mut ports = Ports::new(PowerModel::default(), Rate::from_mbit_per_s(100), 2);
        let second = Time::from_secs(1);
        ports.add(0, &Phase::On, second, 6_250_000);
        ports.add(1, &Phase::Off, second, 0);
        assert!((ports.times()[0].active - 0.5).abs() < 1e-9);
        let (used, awake) = ports.joules();
        assert!((used - 0.55).abs() < 1e-9, "{used}");
        assert!((awake - 1.0).abs() < 1e-9, "{awake}");
        ports.remove(1);
        let (used, _) = ports.joules();
        assert!((used - 0.55).abs() < 1e-9, "{used}");
        assert!((ports.asleep() - 1.0).abs() < 1e-9);
    }
}
