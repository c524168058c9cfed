//! Redundancy that costs least: what the redundant packets take and what the losses left over take, together.
//!
//! It sees packets in their order: what leaves, what is retransmitted, and the peer's count of losses that only the layer
//! saw; and the congestion window when a group begins. A loss is either of the second and the third.
//!
//! # Derivation
//! Let bursts of losses begin with probability λ per packet and end after each lost packet with probability 1/b,
//! so that b packets are lost on average. Of N packets as many are lost as a Poisson number of mean λN of geometric
//! bursts has: the Pólya-Aeppli distribution (Johnson, Kemp and Kotz, Univariate Discrete Distributions §9.7), whose
//! probabilities follow from each other,
//!
//! k P(k) = (λN (1 − r) + 2 r (k − 1)) P(k − 1) − r² (k − 2) P(k − 2), r = 1 − 1/b, P(0) = exp(−λN).
//!
//! A group of n packets with m redundant ones stays incomplete when more than m of its N = n + m are lost: f(n, m). In a
//! round trip, with a window of w packets, that happens to f w/n groups, and once at most does the window notice.
//!
//! Redundancy takes ρ = m/N of what is sent, and of Reno's growth, a packet per round trip, as much: what is not
//! acknowledged makes no window grow. A packet of window is worth what it carries until the window falls, which in a
//! sawtooth from w/2 to w and back is of the order of w round trips; so ρ counts for both, 2ρ. A failure takes w/2 of
//! that growth, and where the window is small, a timeout and the round trips of a slow start besides, R. The controller picks
//! the n and m with the least
//!
//! 2ρ + min(1, f w/n) (w/2 + R).
//!
//! What a repair lets go leaves at once: the longer the group, the longer the burst that the sender's own queue must
//! take. A group therefore has no more than 40 packets, the largest limit of the study of Sato, Koga and Ikenaga,
//! whose hosts' queues have 50 places, unless `fmax` says otherwise; 60 where what is let go is paced; and no more than the window lets leave.
//!
//! # What the channel loses
//! Redundancy does not help against a full queue: what it repairs there is lost again a round trip later, and it
//! fills the queue itself. So only losses count, and only packets between them, that the window is unlikely to have
//! caused:
//! - not the first event, which ends slow start and says how long the queue is (RFC 5348 §6.3.1 sets the interval before it
//!   aside for the same reason);
//! - none while the window is about as large as the largest at which one of the latest eight events began.
//!
//! An event is the losses within a window of packets (RFC 5348 §5.2). A flow whose losses are all repaired stays at its
//! crest and learns nothing more; one that fails drops below and does.
//!
//! λ is the inverse of the mean loss interval as TFRC measures it (RFC 5348 §5.4): eight intervals, the last four
//! of which count less, and the open one if that makes the mean longer. Losses less than a group apart belong to one
//! burst; b is the mean of the last 32, and of one packet, which stands for what is believed beforehand. Bursts
//! of more than twice what a group can repair leave b alone: no redundancy would bring them back. Until a burst was seen
//! one is assumed to come with the next window, or as late as none has come.
//!
//! # Not implemented
//! - Other congestion controls give up less at a loss than Reno; there is then more redundancy than there need be.

use std::collections::VecDeque;

use anabranch_core::{math::exp, units::Instant};

use super::{Redundancy, Shape, View};
use crate::params::{Params, Release};

/// RFC 5348 §5.4: weights of the loss intervals, the latest first.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Bursts remembered for their length.
const LENGTHS: usize = 32;

/// Events remembered for the window at which they began.
const WINDOWS: usize = 8;

/// Data packets of a group at most, where nobody has set a limit: see the module.
const MOST_SOURCES: u32 = 40;

/// The same where the acknowledgments that a repair lets go leave apart.
const MOST_PACED: u32 = 60;

/// R: round trips without growth that a timeout and the slow start behind it take, about. A timeout is of the order of
/// the round trip or some of them (RFC 6298), and doubling takes 5 to 8 to a window of 32 to 256 packets.
const TIMEOUT: f64 = 10.0;

/// Windows from this share of the largest at which losses began of late, to that one, are its crest.
const CREST: (f64, f64) = (0.8, 1.1);

/// A burst of losses.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Burst {
    /// Packets from the burst before to this one, of those that count.
    interval: f64,
    losses: f64,
}

/// Losses that follow each other within a window (RFC 5348 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Event {
    /// Packets until it is over.
    left: f64,
    /// Whether its losses are the channel's, as far as can be told.
    counts: bool,
}

/// See the module.
#[derive(Debug)]
pub struct LossAdaptive {
    fmax: u32,
    most: u16,
    /// The latest first.
    bursts: VecDeque<Burst>,
    /// Packets that count since the last loss that did.
    exposed: f64,
    /// Packets sent since the last loss.
    since: f64,
    /// Packets of the last group, redundancy included.
    group: f64,
    cwnd: f64,
    event: Event,
    /// The windows at which the latest events began, the latest first.
    windows: VecDeque<f64>,
}

impl LossAdaptive {
    /// With nothing seen; it gives a group `most` redundant packets at most.
    #[must_use]
    pub fn new(params: &Params, most: u16) -> Self {
        let fmax = match params.fmax {
            0 if params.release == Release::Paced => MOST_PACED,
            0 => MOST_SOURCES,
            fmax => fmax,
        };
        Self {
            fmax,
            most: most.max(1),
            bursts: VecDeque::with_capacity(LENGTHS),
            exposed: 0.0,
            since: 0.0,
            group: 1.0,
            cwnd: 1.0,
            event: Event::default(),
            windows: VecDeque::with_capacity(WINDOWS),
        }
    }

    /// Whether the window is as large as where losses began of late: there they may be the queue's.
    fn at_crest(&self) -> bool {
        let crest = self.windows.iter().copied().fold(0.0, f64::max);
        (CREST.0 * crest..=CREST.1 * crest).contains(&self.cwnd)
    }

    fn on_loss(&mut self, losses: f64) {
        if self.event.left <= 0.0 {
            let first = self.windows.is_empty();
            self.event = Event {
                left: self.cwnd * if first { 4.0 } else { 1.0 },
                counts: !first && !self.at_crest(),
            };
            self.windows.truncate(WINDOWS - 1);
            self.windows.push_front(self.cwnd);
            if first {
                self.exposed = 0.0;
            }
        }
        let apart = std::mem::take(&mut self.since);
        if !self.event.counts {
            return;
        }
        let interval = std::mem::take(&mut self.exposed);
        if let Some(last) = self.bursts.front_mut()
            && apart <= self.group
        {
            last.losses += losses;
            last.interval += interval;
        } else {
            self.bursts.truncate(LENGTHS - 1);
            let interval = interval.max(1.0);
            self.bursts.push_front(Burst { interval, losses });
        }
    }

    /// λ and b, with a window of `cwnd` packets.
    fn losses(&self, cwnd: f64) -> (f64, f64) {
        if self.bursts.is_empty() {
            return (1.0 / cwnd.max(self.exposed).max(1.0), 1.0);
        }
        let mean = |of: &mut dyn Iterator<Item = f64>| {
            let (mut sum, mut weights) = (0.0, 0.0);
            for (value, weight) in of.zip(WEIGHTS) {
                sum += value * weight;
                weights += weight;
            }
            sum / weights
        };
        let intervals = || self.bursts.iter().map(|burst| burst.interval);
        let closed = mean(&mut intervals());
        let open = mean(&mut std::iter::once(self.exposed).chain(intervals()));
        let most = 2.0 * f64::from(self.most);
        let (mut sum, mut count) = (1.0, 1.0);
        for burst in self.bursts.iter().filter(|burst| burst.losses <= most) {
            sum += burst.losses;
            count += 1.0;
        }
        (1.0 / closed.max(open).max(1.0), sum / count)
    }
}

/// f: the probability that more than `m` of `total` packets are lost.
fn incomplete(total: f64, m: u16, (lambda, b): (f64, f64)) -> f64 {
    let mean = total * lambda;
    let r = 1.0 - 1.0 / b;
    let mut before = 0.0;
    let mut last = exp(-mean);
    let mut sum = last;
    let mut k = 0.0;
    for _ in 0..m {
        k += 1.0;
        let next =
            ((mean * (1.0 - r) + 2.0 * r * (k - 1.0)) * last - r * r * (k - 2.0) * before) / k;
        before = last;
        last = next;
        sum += next;
    }
    (1.0 - sum).clamp(0.0, 1.0)
}

/// 2ρ + min(1, f w/n) (w/2 + R): see the module.
fn cost(n: u32, m: u16, losses: (f64, f64), cwnd: f64) -> f64 {
    let n = f64::from(n);
    let total = n + f64::from(m);
    let failures = (incomplete(total, m, losses) * cwnd / n).min(1.0);
    2.0 * f64::from(m) / total + failures * (cwnd / 2.0 + TIMEOUT)
}

impl Redundancy for LossAdaptive {
    fn next_group(&mut self, view: &View) -> Shape {
        self.cwnd = f64::from(view.cwnd.max(1));
        let losses = self.losses(self.cwnd);
        let mut best = (f64::INFINITY, 1, 1);
        for redundant in 1..=self.most {
            // More than a window would keep acknowledgments waiting for packets that may not leave.
            let room = view.cwnd.saturating_sub(redundant.into());
            let room = room.min(self.fmax).max(1);
            let mut sources = 1;
            loop {
                let cost = cost(sources, redundant, losses, self.cwnd);
                if cost < best.0 {
                    best = (cost, sources, redundant);
                }
                if sources == room {
                    break;
                }
                // Each size that is tried is about a sixth more than the one before.
                sources = (sources + 1 + sources / 6).min(room);
            }
        }
        let (_, sources, redundant) = best;
        self.group = f64::from(sources) + f64::from(redundant);
        Shape { sources, redundant }
    }
    fn on_sent(&mut self, _now: Instant, retransmission: bool) {
        self.since += 1.0;
        self.exposed += if self.event.left > 0.0 {
            self.event.left -= 1.0;
            f64::from(self.event.counts)
        } else {
            f64::from(!self.at_crest())
        };
        if retransmission {
            self.on_loss(1.0);
        }
    }
    fn on_hidden_losses(&mut self, _now: Instant, losses: u32) {
        self.on_loss(losses.into());
    }
}

#[cfg(test)]
mod tests;
