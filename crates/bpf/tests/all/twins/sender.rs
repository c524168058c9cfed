//! A sender with random acknowledgments, losses, timeouts and pauses. It sends by the window of the
//! first control; both controls receive the same events.
//!
//! Round-trip times are whole microseconds and smoothed ones are in eighths of them, the kernel's
//! units, so that any difference between two controls is a difference of their arithmetic.

use anabranch_congestion::{
    Ack, Congestion, CongestionControl, Idle, IdleRestart, Recovered, Rto, Sent, Signal, Spurious,
};
use anabranch_core::{
    rng::{Draw, Stream},
    units::{Bytes, Duration, Instant},
};

/// The initial window, in segments (RFC 6928).
pub const INITIAL: u64 = 10;
/// Upper bound of the window, so that a scenario ends in reasonable time.
const LARGEST: u64 = 600;

/// Frequencies of the events in a scenario.
struct Habits {
    /// Losses per acknowledgment.
    loss: f64,
    /// Share of the losses found by a timeout.
    timeout: f64,
    /// Share of both that prove spurious.
    spurious: f64,
    /// Marks per acknowledgment.
    mark: f64,
    /// Pauses of the application per acknowledgment.
    silence: f64,
    /// Largest number of segments covered by an acknowledgment.
    most_per_ack: u64,
    base_rtt_us: u64,
    /// Largest delay of the queue, as a share of the base.
    queue: f64,
}

pub struct Sender {
    controls: [Box<dyn CongestionControl>; 2],
    draw: Draw,
    habits: Habits,
    smss: u64,
    now_us: u64,
    /// In segments.
    una: u64,
    nxt: u64,
    /// Retransmitted after a timeout up to this segment.
    resent: u64,
    lost_until: u64,
    recovery: Option<Recovery>,
    round: u64,
    round_end: u64,
    rtt_us: u64,
    srtt: Duration,
    min_rtt: Duration,
    last_sent_us: u64,
    /// Share of the window that the application uses.
    share: f64,
    /// The last reduction can still prove spurious: whether it was a timeout, and the window before
    /// it.
    doubtful: Option<(bool, Bytes)>,
}

struct Recovery {
    until: u64,
    /// Number of segments SACKed.
    sacked: u64,
}

impl Sender {
    pub fn new(scenario: u64, smss: u64, controls: [Box<dyn CongestionControl>; 2]) -> Self {
        let mut draw = Stream::new(scenario, "twins").at(0);
        let one_of = |draw: &mut Draw, of: &[f64]| of[draw.bits() as usize % of.len()];
        let base = draw.uniform();
        let habits = Habits {
            loss: one_of(&mut draw, &[0.0005, 0.002, 0.005, 0.02]),
            timeout: one_of(&mut draw, &[0.0, 0.1, 0.5]),
            spurious: one_of(&mut draw, &[0.0, 0.2]),
            mark: one_of(&mut draw, &[0.0, 0.001]),
            silence: one_of(&mut draw, &[0.0, 0.005]),
            most_per_ack: 1 + u64::from(draw.bits() % 4),
            base_rtt_us: whole(1_000.0 * 200_f64.powf(base)),
            queue: one_of(&mut draw, &[0.0, 0.05, 0.5]),
        };
        let base = Duration::from_micros(habits.base_rtt_us);
        Self {
            controls,
            draw,
            smss,
            now_us: 1,
            una: 0,
            nxt: 0,
            resent: 0,
            lost_until: 0,
            recovery: None,
            round: 0,
            round_end: 0,
            rtt_us: habits.base_rtt_us,
            srtt: base,
            min_rtt: Duration::from_secs(3600),
            last_sent_us: 0,
            share: 1.0,
            doubtful: None,
            habits,
        }
    }

    /// The controls' windows, in segments.
    pub fn windows(&self) -> (f64, f64) {
        let [first, second] = &self.controls;
        let smss = Bytes::new(self.smss);
        (first.cwnd().segments(smss), second.cwnd().segments(smss))
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_us * 1000)
    }

    fn bytes(&self, segments: u64) -> Bytes {
        Bytes::new(segments * self.smss)
    }

    fn tell(&mut self, mut event: impl FnMut(&mut dyn CongestionControl)) {
        for control in &mut self.controls {
            event(&mut **control);
        }
    }

    fn window(&self) -> u64 {
        (self.controls[0].cwnd().get() / self.smss).clamp(1, LARGEST)
    }

    fn in_flight(&self) -> u64 {
        if self.una < self.lost_until {
            self.resent.max(self.una) - self.una
        } else {
            self.nxt - self.una
        }
    }

    /// Fills the window, or the share of it that the application uses.
    fn fill(&mut self) {
        let most = whole((self.window() as f64 * self.share).ceil()).max(1);
        while self.in_flight() < most {
            let again = self.una < self.lost_until && self.resent.max(self.una) < self.lost_until;
            if self.una < self.lost_until && !again {
                break;
            }
            if again {
                self.resent = self.resent.max(self.una) + 1;
            } else {
                self.nxt += 1;
            }
            self.last_sent_us = self.now_us;
            let sent = Sent {
                now: self.now(),
                bytes: self.bytes(1),
                in_flight: self.bytes(self.in_flight()),
                retransmission: again,
                srtt: self.srtt,
            };
            self.tell(|control| control.on_sent(&sent));
        }
    }

    /// One step: an acknowledgment, a loss or a pause.
    pub fn step(&mut self) {
        self.fill();
        let spacing = (self.rtt_us / self.window()).max(1);
        self.now_us += spacing;
        let queue = self.habits.queue * self.draw.uniform() * self.habits.base_rtt_us as f64;
        self.rtt_us = (3 * self.rtt_us + self.habits.base_rtt_us + whole(queue)) / 4;
        if self.recovery.is_some() {
            self.step_in_recovery();
        } else if self.draw.chance(self.habits.loss) && self.nxt - self.una > 2 {
            if self.draw.chance(self.habits.timeout) {
                self.time_out();
            } else {
                self.lose();
            }
        } else {
            self.progress();
        }
    }

    fn progress(&mut self) {
        if let Some((timeout, before)) = self.doubtful.take()
            && self.draw.chance(self.habits.spurious)
            && self.controls.iter().all(|control| control.cwnd() < before)
        {
            self.regret(timeout);
            return;
        }
        if self.draw.chance(self.habits.mark) && self.window() > 6 && self.una >= self.lost_until {
            let event = Congestion {
                now: self.now(),
                signal: Signal::EcnCe,
                in_flight: self.bytes(self.in_flight()),
            };
            self.tell(|control| control.on_congestion(&event));
        }
        let most = 1 + u64::from(self.draw.bits()) % self.habits.most_per_ack;
        let acked = most.min(self.in_flight()).max(1);
        self.acknowledge(acked, 0, acked, false);
        if self.draw.chance(self.habits.silence) && self.una >= self.lost_until {
            self.fall_silent();
        } else if self.share < 1.0 && self.draw.chance(0.05) {
            self.share = 1.0;
        }
    }

    /// Acknowledges everything and sends nothing for a while; then possibly uses only part of the
    /// window.
    fn fall_silent(&mut self) {
        self.share = 0.01;
        while self.una < self.nxt {
            self.now_us += 10;
            self.acknowledge(1, 0, 1, false);
        }
        let rto = Duration::from_micros(self.rtt_us + 200_000);
        self.now_us += whole(2.0 * self.draw.uniform() * (rto.as_nanos() / 1000) as f64) + 1;
        let event = Idle {
            now: self.now(),
            idle: Duration::from_micros(self.now_us - self.last_sent_us),
            rto,
            rule: IdleRestart::Rfc5681,
        };
        self.tell(|control| control.on_idle(&event));
        self.share = if self.draw.chance(0.5) { 0.5 } else { 1.0 };
    }

    fn lose(&mut self) {
        let event = Congestion {
            now: self.now(),
            signal: Signal::Loss,
            in_flight: self.bytes(self.in_flight()),
        };
        self.doubtful = Some((false, self.controls[0].cwnd()));
        self.tell(|control| control.on_congestion(&event));
        self.recovery = Some(Recovery {
            until: self.nxt,
            sacked: 0,
        });
        self.acknowledge(0, 1, 1, true);
        if let Some(recovery) = &mut self.recovery {
            recovery.sacked += 1;
        }
    }

    fn step_in_recovery(&mut self) {
        let Some(Recovery { until, sacked }) = self.recovery else {
            return;
        };
        if let Some((timeout, before)) = self.doubtful.take()
            && self.draw.chance(self.habits.spurious)
            && self.controls.iter().all(|control| control.cwnd() < before)
        {
            self.recovery = None;
            self.regret(timeout);
            self.acknowledge(until - self.una, 0, until - self.una - sacked, false);
            return;
        }
        if self.una + sacked + 1 < until {
            self.acknowledge(0, 1, 1, true);
            if let Some(recovery) = &mut self.recovery {
                recovery.sacked += 1;
            }
            return;
        }
        self.recovery = None;
        let event = Recovered {
            now: self.now(),
            in_flight: self.bytes(self.nxt - until),
            cwnd_limit: None,
        };
        self.tell(|control| control.on_recovered(&event));
        self.acknowledge(until - self.una, 0, until - self.una - sacked, true);
    }

    fn time_out(&mut self) {
        self.now_us += self.rtt_us + 200_000;
        self.doubtful = Some((true, self.controls[0].cwnd()));
        let consecutive = if self.draw.chance(0.3) { 2 } else { 1 };
        for consecutive in 1..=consecutive {
            let event = Rto {
                now: self.now(),
                in_flight: self.bytes(self.in_flight()),
                consecutive,
            };
            self.tell(|control| control.on_rto(&event));
            self.now_us += 400_000;
        }
        self.lost_until = self.nxt;
        self.resent = self.una;
        self.fill();
    }

    fn regret(&mut self, timeout: bool) {
        let event = Spurious {
            now: self.now(),
            timeout,
        };
        self.tell(|control| control.on_spurious(&event));
        self.lost_until = self.una;
    }

    /// In segments.
    fn acknowledge(&mut self, acked: u64, sacked: u64, delivered: u64, in_recovery: bool) {
        let prior = self.in_flight();
        self.una += acked;
        if self.una > self.round_end {
            self.round += 1;
            self.round_end = self.nxt;
        }
        let rtt = Duration::from_micros(self.rtt_us);
        self.min_rtt = self.min_rtt.min(rtt);
        let smoothed = (7 * self.srtt.as_nanos() + rtt.as_nanos()) / 8;
        self.srtt = Duration::from_nanos(smoothed - smoothed % 125);
        let ack = Ack {
            now: self.now(),
            acked: self.bytes(acked),
            sacked: self.bytes(sacked),
            delivered: self.bytes(delivered),
            lost: Bytes::ZERO,
            ce_marked: Bytes::ZERO,
            prior_in_flight: self.bytes(prior),
            in_flight: self.bytes(self.in_flight()),
            rtt: Some(rtt),
            rtt_by_timestamp: None,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            rate: None,
            round: self.round,
            cwnd_limited: self.share >= 1.0 && self.window() < LARGEST,
            app_limited: self.share < 1.0,
            in_recovery,
        };
        self.tell(|control| control.on_ack(&ack));
    }
}

/// Rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
