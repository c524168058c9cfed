//! A path for a single control: no queue, no TCP, an ACK per segment, evenly spaced.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod bottleneck;
pub mod cubic;

use anabranch_congestion::{
    Ack, Config, Congestion, CongestionControl, Control, Idle, IdleRestart, Init, RateSample,
    Recovered, Rto, Signal, Spurious, TimerLoss,
};
use anabranch_core::units::{Bytes, Duration, Instant};

/// Large, so that a window in bytes resolves fractions of a segment.
pub const SMSS: Bytes = Bytes::new(1_000_000);

/// Windows in segments, from the smallest to a million.
pub const WINDOWS: [u64; 9] = [1, 2, 3, 4, 10, 100, 3_333, 100_000, 1_000_000];

pub fn segments(n: u64) -> Bytes {
    SMSS * n
}

/// An ACK for one segment of a full window.
pub fn ack(now: Instant, rtt: Duration) -> Ack {
    Ack {
        now,
        acked: SMSS,
        sacked: Bytes::ZERO,
        delivered: SMSS,
        lost: Bytes::ZERO,
        ce_marked: Bytes::ZERO,
        prior_in_flight: Bytes::ZERO,
        in_flight: Bytes::ZERO,
        rtt: Some(rtt),
        rtt_by_timestamp: None,
        srtt: rtt,
        min_rtt: rtt,
        rate: None,
        round: 0,
        cwnd_limited: true,
        app_limited: false,
        in_recovery: false,
    }
}

#[derive(Debug)]
pub struct Path {
    pub control: Control,
    pub now: Instant,
    /// Round-trip time without a queue.
    pub rtt: Duration,
    /// Additional delay by a standing queue.
    pub queued: Duration,
    pub round: u64,
    /// Segments delivered so far.
    pub delivered: u64,
}

/// Largest number of segments that the path delivers per round trip, in the rate samples.
const CAPACITY: u64 = 40;

impl Path {
    pub fn new(config: &Config, initial_segments: u64, rtt: Duration) -> Self {
        Self::from_init(config, &Init::new(SMSS, segments(initial_segments)), rtt)
    }

    pub fn from_init(config: &Config, init: &Init, rtt: Duration) -> Self {
        Self {
            control: config.build(init),
            now: Instant::from_millis(1_000),
            rtt,
            queued: Duration::ZERO,
            round: 0,
            delivered: 0,
        }
    }

    pub fn cwnd(&self) -> f64 {
        self.control.cwnd().segments(SMSS)
    }
    /// Infinite before the first reduction.
    pub fn ssthresh(&self) -> f64 {
        self.control
            .ssthresh()
            .map_or(f64::INFINITY, |s| s.segments(SMSS))
    }
    pub fn state(&self, name: &str) -> Option<f64> {
        self.control
            .state()
            .into_iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value)
    }

    /// Delivers one ACK now.
    pub fn ack(&mut self) {
        self.ack_as(|_| {});
    }
    /// Delivers one ACK now, changed by `alter`.
    pub fn ack_as(&mut self, alter: impl FnOnce(&mut Ack)) {
        let mut ack = Ack {
            round: self.round,
            min_rtt: self.rtt,
            ..ack(self.now, self.rtt + self.queued)
        };
        alter(&mut ack);
        self.control.on_ack(&ack);
    }
    pub fn pause(&mut self, time: Duration) {
        self.now = self.now + time;
    }
    /// Delivers one ACK, and waits until the next one is due.
    pub fn step(&mut self) {
        self.ack();
        self.pause((self.rtt + self.queued).mul_f64(1.0 / self.cwnd()));
    }
    /// Delivers the ACKs of one window. Returns their number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a window of a few segments"
    )]
    pub fn round_trip(&mut self) -> u64 {
        let acks = self.cwnd() as u64;
        let gap = (self.rtt + self.queued).mul_f64(1.0 / acks as f64);
        self.round += 1;
        let rate = Some(RateSample {
            delivered: segments(acks.min(CAPACITY)),
            interval: self.rtt + self.queued,
            is_reliable: true,
            prior_delivered: segments(self.delivered),
            app_limited: false,
            tx_in_flight: segments(acks),
            lost: Bytes::ZERO,
        });
        for _ in 0..acks {
            self.pause(gap);
            self.ack_as(|ack| ack.rate = rate);
        }
        self.delivered += acks.min(CAPACITY);
        acks
    }

    pub fn lose(&mut self) {
        self.congestion(Signal::Loss, self.control.cwnd());
    }
    pub fn mark(&mut self) {
        self.congestion(Signal::EcnCe, self.control.cwnd());
    }
    pub fn congestion(&mut self, signal: Signal, in_flight: Bytes) {
        self.control.on_congestion(&Congestion {
            now: self.now,
            signal,
            in_flight,
        });
    }
    pub fn rto(&mut self, consecutive: u32) {
        let in_flight = self.control.cwnd();
        self.control.on_rto(&Rto {
            now: self.now,
            in_flight,
            consecutive,
        });
    }
    pub fn timer_loss(&mut self) {
        let in_flight = self.control.cwnd();
        self.control.on_timer_loss(&TimerLoss {
            now: self.now,
            in_flight,
        });
    }
    pub fn recovered(&mut self) {
        self.recovered_to(None);
    }
    pub fn recovered_to(&mut self, cwnd_limit: Option<Bytes>) {
        let in_flight = self.control.cwnd();
        self.control.on_recovered(&Recovered {
            now: self.now,
            in_flight,
            cwnd_limit,
        });
    }
    pub fn spurious(&mut self, timeout: bool) {
        self.control.on_spurious(&Spurious {
            now: self.now,
            timeout,
        });
    }
    pub fn idle(&mut self, idle: Duration) {
        self.idle_by(IdleRestart::Rfc5681, idle);
    }

    /// A pause that the stack treats by `rule`.
    pub fn idle_by(&mut self, rule: IdleRestart, idle: Duration) {
        self.pause(idle);
        let rto = Duration::from_secs(1);
        self.control.on_idle(&Idle {
            now: self.now,
            idle,
            rto,
            rule,
        });
    }

    /// The mean window with every `interval`-th segment lost and repaired at once: the model of RFC
    /// 3649 and of RFC 9438 §5.
    pub fn mean_window_with_loss_every(&mut self, interval: u64, losses: u32) -> f64 {
        let (mut area, mut time) = (0.0, 0.0);
        for loss in 0..losses {
            for _ in 0..interval {
                let before = self.now;
                self.step();
                if loss >= losses / 2 {
                    let took = (self.now - before).as_secs_f64();
                    area += self.cwnd() * took;
                    time += took;
                }
            }
            self.lose();
        }
        area / time
    }
}

/// Asserts that two numbers are within `share` of each other.
#[track_caller]
pub fn assert_near(found: f64, expected: f64, share: f64) {
    let difference = (found - expected).abs();
    assert!(
        difference <= share * expected.abs(),
        "{found}, but {expected} ± {} % was expected",
        share * 100.0
    );
}
