//! Redundancy of minimal cost: the cost of the redundant packets plus that of the remaining losses.
//!
//! The controller sees, in order, transmissions, retransmissions and the peer's count of losses
//! that only its layer detected, and the congestion window at the beginning of a group.
//! Retransmissions and reported losses both count as losses.
//!
//! # Derivation
//! Bursts of losses begin with probability λ per packet and end after each lost packet with
//! probability 1/b, so that a burst has b packets on average. The number of losses among N packets
//! is then a sum of geometric bursts whose number has a Poisson distribution of mean λN: the
//! Pólya-Aeppli distribution (Johnson, Kemp and Kotz, Univariate Discrete Distributions §9.7), with
//! the recurrence
//!
//! k P(k) = (λN (1 − r) + 2 r (k − 1)) P(k − 1) − r² (k − 2) P(k − 2),
//! r = 1 − 1/b, P(0) = exp(−λN).
//!
//! A group of n packets with m redundant ones remains incomplete if more than m of its N = n + m
//! packets are lost, with probability f(n, m). With a window of w packets, this happens to f w/n
//! groups per round trip, and the window reacts to at most one of them.
//!
//! Redundancy takes the share ρ = m/N of the transmissions, and the same share of Reno's growth of
//! one packet per round trip, because redundant packets are not acknowledged. A packet of window is
//! worth the data that it carries until the window falls; in a sawtooth between w/2 and w this
//! takes of the order of w round trips. ρ therefore counts for both, as 2ρ. A failure costs w/2 of
//! that growth and, if the window is small, R: a timeout and the round trips of a slow start. The
//! controller selects the n and m that minimize
//!
//! 2ρ + min(1, f w/n) (w/2 + R).
//!
//! A repair releases its acknowledgments at once, so that a longer group makes a longer burst for
//! the sender's queue. Unless `fmax` is given, a group therefore has at most 40 packets, the
//! largest limit of the study of Sato, Koga and Ikenaga, whose hosts' queues hold 50 packets; or 60
//! if releases are paced. It also has no more packets than the window permits.
//!
//! # Channel losses
//! Redundancy does not help against a full queue: a packet repaired there is followed by another
//! loss a round trip later, and redundancy fills the queue further. The controller therefore counts
//! only losses, and packets between them, that the window is unlikely to have caused. It excludes:
//! - the first event, which ends slow start and indicates the queue's length (RFC 5348 §6.3.1 sets
//!   the interval before it aside for the same reason);
//! - all events while the window is about as large as the largest one at which one of the latest
//!   eight events began.
//!
//! An event is the losses within a window of packets (RFC 5348 §5.2). A flow whose losses are all
//! repaired remains at its crest and learns no more; a flow with a failure drops below it and does.
//!
//! λ is the inverse of the mean loss interval as measured by TFRC (RFC 5348 §5.4): over eight
//! intervals, the last four of which weigh less, and including the open one if this makes the mean
//! longer. Losses less than a group apart belong to one burst. b is the mean length of the last 32
//! bursts and of one prior burst of one packet. Bursts longer than twice a group's most redundant
//! packets are excluded from b: no redundancy would recover them. Until the first burst, the
//! interval is assumed to be the window or, if larger, the number of counted packets so far.
//!
//! # Not implemented
//! - A hold of a sliding window can last until the sender's timer expires, because cwnd permits no
//!   further packets. The retransmissions that follow, a whole window, count as losses:
//!   `docs/studies/fec-frontier.md`, Short paths with few losses.
//! - Other congestion controls reduce their window less than Reno at a loss; for them there is more
//!   redundancy than necessary.

use std::collections::VecDeque;

use anabranch_core::{math::exp, units::Instant};

use super::{Redundancy, Shape, View};
use crate::params::{Params, Release};

/// Weights of the loss intervals, the latest first (RFC 5348 §5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Bursts whose lengths are stored.
const LENGTHS: usize = 32;

/// Events whose windows are stored.
const WINDOWS: usize = 8;

/// Default maximum of data packets of a group: see the module.
const MOST_SOURCES: u32 = 40;

/// The same if releases are paced.
const MOST_PACED: u32 = 60;

/// R: the approximate number of round trips without growth during a timeout and the following slow
/// start. A timeout is of the order of one or some round trips (RFC 6298), and slow start takes 5
/// to 8 doublings to a window of 32 to 256 packets.
const TIMEOUT: f64 = 10.0;

/// The crest, as a share of the largest recent window at which losses began.
const CREST: (f64, f64) = (0.8, 1.1);

/// A burst of losses.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Burst {
    /// Counted packets from the previous burst to this one.
    interval: f64,
    losses: f64,
}

/// Losses within one window of packets (RFC 5348 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Event {
    /// Packets until its end.
    left: f64,
    /// Whether its losses are attributed to the channel.
    counts: bool,
}

/// See the module.
#[derive(Debug)]
pub struct LossAdaptive {
    fmax: u32,
    most: u16,
    /// Recent bursts, the latest first.
    bursts: VecDeque<Burst>,
    /// Counted packets since the last counted loss.
    exposed: f64,
    /// Packets sent since the last loss.
    since: f64,
    /// Packets of the last group, redundancy included.
    group: f64,
    cwnd: f64,
    event: Event,
    /// The windows at which recent events began, the latest first.
    windows: VecDeque<f64>,
}

impl LossAdaptive {
    /// Creates a controller without observations. A group gets at most `most` redundant packets.
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

    /// Whether the window is near the largest at which losses recently began: there, losses may be
    /// the queue's.
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
            // A group larger than the window would hold acknowledgments for packets that may not be
            // sent.
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
                // Each candidate size exceeds the previous one by about a sixth.
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
