//! The first estimate of a path's rate, and the trials of a path that is used for throughput.

use anabranch_core::units::Duration;
use anabranch_gateway::path::{Train, Worth};
use anabranch_gateway::time::Instant;

const MS: Duration = Duration::from_millis(1);
const ENOUGH: f64 = 2e6;
const DELAY_S: f64 = 0.02;
const LENGTH: u64 = 10;

/// A path without traffic: small probes, and trains.
struct Idle {
    train: Train,
    now: Instant,
    number: u64,
}

impl Idle {
    fn new() -> Self {
        Self {
            train: Train::default(),
            now: Instant::START,
            number: 0,
        }
    }

    fn probe(&mut self, jitter_s: f64) {
        self.now = self.now + MS * 250;
        let seen = self
            .train
            .on_delay(self.number, self.now, 40, DELAY_S + jitter_s);
        assert_eq!(seen, None);
        self.number += 1;
    }

    /// Sends a train over a path with this rate in octets per second, of which the first `arrive`
    /// datagrams arrive. Returns the estimate.
    fn train(&mut self, rate: f64, jitter_s: f64, arrive: u64) -> Option<f64> {
        assert!(self.train.is_due(ENOUGH, self.now));
        self.train.begin(self.now);
        let first = self.number;
        while self.train.is_under_way() {
            self.train.on_sent(self.number);
            self.number += 1;
        }
        assert_eq!(self.number - first, LENGTH);
        let queue_s = arrive as f64 * Train::OCTETS as f64 / rate;
        let delay_s = DELAY_S + jitter_s + queue_s;
        let last = first + arrive - 1;
        self.train.on_delay(last, self.now, Train::OCTETS, delay_s)
    }
}

#[test]
fn a_train_estimates_the_rate_also_if_its_end_is_lost() {
    for rate in [1.25e5, 1.25e6, 3.75e7] {
        for arrive in [2, 5, LENGTH] {
            let mut idle = Idle::new();
            idle.probe(0.0);
            let seen = idle.train(rate, 0.0, arrive).expect("an estimate");
            assert!((seen / rate - 1.0).abs() < 1e-6, "{seen} for {rate}");
        }
    }
}

/// Trains follow a low estimate, three at most, and the highest counts.
#[test]
fn jitter_hardly_lowers_the_estimate() {
    let mut idle = Idle::new();
    let rate = 1.25e6;
    idle.probe(0.0);
    // The delay rises by jitter between the probe and the train.
    let low = idle.train(rate, 0.03, LENGTH).expect("an estimate");
    assert!(low < 0.5 * rate, "{low}");
    assert!(!idle.train.is_due(ENOUGH, idle.now), "the queue may last");
    idle.probe(0.0);
    let seen = idle.train(rate, 0.0, LENGTH).expect("an estimate");
    assert!((seen / rate - 1.0).abs() < 1e-6, "{seen}");
    // Jitter that was seen is subtracted.
    for jitter_s in [0.01, 0.0, 0.012, 0.002] {
        idle.probe(jitter_s);
    }
    let high = idle.train(rate, 0.01, LENGTH).expect("an estimate");
    assert!(high >= rate, "{high}");
    idle.probe(0.0);
    assert!(!idle.train.is_due(ENOUGH, idle.now), "three trains at most");
}

/// Uses the path for up to two seconds, in which all paths deliver this number of octets per
/// millisecond, and the faster ones could deliver 1,000. Returns the end.
fn trial(worth: &mut Worth, begin: Instant, octets: u64) -> Instant {
    for ms in 0..2_000 {
        let now = begin + MS * ms;
        if !worth.may_try(now) {
            return now;
        }
        worth.on_used(now);
        worth.judge(octets * ms, 1e6, MS * 100, now);
    }
    begin + MS * 2_000
}

#[test]
fn a_path_that_lowers_the_throughput_is_left_out_for_longer_each_time() {
    let mut worth = Worth::default();
    let mut now = Instant::START;
    for pause in [1, 2, 4, 8, 16, 32, 32] {
        let end = trial(&mut worth, now, 900);
        // One round trip to settle, and three of measurement.
        let took = end.saturating_since(now);
        assert!(took >= MS * 400 && took <= MS * 410, "{took:?}");
        assert!(!worth.may_try(end + MS * (1_000 * pause - 10)));
        now = end + MS * (1_000 * pause + 10);
        assert!(worth.may_try(now));
    }
    let end = trial(&mut worth, now, 1_200);
    assert!(end.saturating_since(now) >= MS * 2_000);
    let next = trial(&mut worth, end, 900);
    assert!(
        worth.may_try(next + MS * 1_010),
        "a success ends the doubling"
    );
}
