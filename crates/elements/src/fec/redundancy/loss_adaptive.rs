//! Redundancy that costs least: what the redundant packets take and what the losses left over take, together.
//!
//! It sees packets and the time: what leaves, what leaves again, and the peer's count of losses that only the layer
//! saw. A loss is either of the latter two.
//!
//! # Derivation
//! Let bursts of losses begin with probability λ per packet and end after each lost packet with probability 1/b,
//! so that b packets are lost on average. A group of n packets with m redundant ones stays incomplete when more than
//! m of its N = n + m packets are lost: by one burst longer than m, or by two bursts together,
//!
//! f(n, m) = N λ (1 − 1/b)^m + ½ (N λ)² (1 − 1/b)^(m − 1) (1 + (m − 1)/b).
//!
//! (The second factor is the chance that two geometric lengths exceed m together.) An incomplete group is a
//! congestion signal, and takes w/2 of Reno's window w. Each packet makes the window grow by 1/w otherwise, so that of the
//! growth a share of f w²/(2 n) is lost; redundancy takes a share of m/N of what is sent. The controller picks the n and m
//! for which m/N + f w²/(2 n) is least; for single losses with probability p and m = 1 this is about n = 2/(p w). (Where
//! the path is full and the window only comes back to what it was, w²/8 packets are lost, half of a triangle, and not
//! w²/2: there the groups are half as long as they need be.)
//!
//! λ is the inverse of the mean loss interval as TFRC measures it (RFC 5348 §5.4): eight intervals, the last four
//! of which count less, and the open one if that makes the mean longer. Losses less than a group apart belong to one
//! burst; b is the mean over the same bursts. Until a loss was seen a loss is assumed to come with the next window.
//!
//! # Not implemented
//! - Other congestion controls give up less at a loss than Reno; the group is then smaller than it need be.

use anabranch_core::units::Instant;

use super::{Redundancy, Shape, View};
use crate::fec::params::Params;

/// RFC 5348 §5.4: weights of the loss intervals, the latest first.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The sizes of groups that are tried: each is about a fifth more than the one before.
const SIZES: [u32; 28] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 87, 104, 125, 150, 180,
    210, 230, 254,
];

/// A burst of losses.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Burst {
    /// Packets from the burst before to this one.
    interval: f64,
    losses: f64,
}

/// See the module.
#[derive(Debug)]
pub struct LossAdaptive {
    fmax: u32,
    most: u16,
    /// The latest first.
    bursts: Vec<Burst>,
    /// Packets sent since the last loss.
    since: f64,
    /// Packets of the last group, redundancy included.
    group: f64,
}

impl LossAdaptive {
    /// With nothing seen; it gives a group `most` redundant packets at most.
    #[must_use]
    pub fn new(params: &Params, most: u16) -> Self {
        Self {
            fmax: params.most_sources(),
            most,
            bursts: Vec::new(),
            since: 0.0,
            group: 1.0,
        }
    }

    fn on_loss(&mut self, losses: f64) {
        if let Some(last) = self.bursts.first_mut()
            && self.since <= self.group
        {
            last.losses += losses;
            last.interval += self.since;
        } else {
            self.bursts.truncate(WEIGHTS.len() - 1);
            let burst = Burst {
                interval: self.since.max(1.0),
                losses,
            };
            self.bursts.insert(0, burst);
        }
        self.since = 0.0;
    }

    /// λ and b, with a window of `cwnd` packets.
    fn losses(&self, cwnd: f64) -> (f64, f64) {
        if self.bursts.is_empty() {
            return (1.0 / cwnd.max(self.since).max(1.0), 1.0);
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
        let open = mean(&mut std::iter::once(self.since).chain(intervals()));
        let losses = mean(&mut self.bursts.iter().map(|burst| burst.losses));
        (1.0 / closed.max(open).max(1.0), losses.max(1.0))
    }
}

/// m/N + f w²/(2 n): see the module.
fn cost(n: u32, m: u16, (lambda, b): (f64, f64), cwnd: f64) -> f64 {
    let tail_length = m - 1;
    let (n, m) = (f64::from(n), f64::from(m));
    let total = n + m;
    let begun = total * lambda;
    let longer = 1.0 - 1.0 / b;
    // (1 - 1/b)^(m - 1)
    let tail: f64 = (0..tail_length).map(|_| longer).product();
    let one = begun * tail * longer;
    let two = 0.5 * begun * begun * tail * (1.0 + (m - 1.0) / b);
    let lost = (one + two).min(1.0);
    m / total + lost * cwnd * cwnd / (2.0 * n)
}

impl Redundancy for LossAdaptive {
    fn next_group(&mut self, view: &View) -> Shape {
        let cwnd = f64::from(view.cwnd.max(1));
        let losses = self.losses(cwnd);
        let mut best = (f64::INFINITY, 1, 1);
        for redundant in 1..=self.most.max(1) {
            // More than a window would keep acknowledgments waiting for packets that may not leave.
            let room = view.cwnd.saturating_sub(u32::from(redundant)).max(1);
            for sources in SIZES {
                if sources > 1 && sources > room.min(self.fmax) {
                    break;
                }
                let cost = cost(sources, redundant, losses, cwnd);
                if cost < best.0 {
                    best = (cost, sources, redundant);
                }
            }
        }
        let (_, sources, redundant) = best;
        self.group = f64::from(sources) + f64::from(redundant);
        Shape { sources, redundant }
    }
    fn on_sent(&mut self, _now: Instant, retransmission: bool) {
        self.since += 1.0;
        if retransmission {
            self.on_loss(1.0);
        }
    }
    fn on_hidden_losses(&mut self, _now: Instant, losses: u32) {
        self.on_loss(losses.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(most: u16) -> LossAdaptive {
        LossAdaptive::new(&Params::default(), most)
    }

    fn view(cwnd: u32) -> View {
        View {
            now: Instant::START,
            cwnd,
        }
    }

    /// After losses of `burst` packets every so many.
    fn after(most: u16, interval: u32, burst: u32) -> LossAdaptive {
        let mut controller = controller(most);
        controller.next_group(&view(100));
        for _ in 0..20 {
            for _ in 0..interval {
                controller.on_sent(Instant::START, false);
            }
            controller.on_hidden_losses(Instant::START, burst);
        }
        controller
    }

    #[test]
    fn single_losses_give_the_groups_of_the_derivation() {
        for (interval, cwnd) in [(2_000, 200), (2_000, 400), (500, 100), (10_000, 1_000)] {
            let shape = after(1, interval, 1).next_group(&view(cwnd));
            let expected = 2.0 * f64::from(interval) / f64::from(cwnd);
            let ratio = f64::from(shape.sources) / expected;
            assert!((0.75..1.3).contains(&ratio), "{shape:?} for {expected}");
        }
    }

    #[test]
    fn bursts_get_redundancy_of_their_length() {
        let single = after(8, 1_000, 1).next_group(&view(200));
        let bursts = after(8, 1_000, 3).next_group(&view(200));
        assert!(bursts.redundant > single.redundant, "{single:?} {bursts:?}");
    }

    #[test]
    fn a_group_is_never_more_than_a_window() {
        for cwnd in [0, 1, 2, 3, 10] {
            let shape = after(8, 100_000, 1).next_group(&view(cwnd));
            let room = cwnd.saturating_sub(u32::from(shape.redundant)).max(1);
            assert!(shape.sources <= room, "{shape:?} in {cwnd}");
        }
    }
}
