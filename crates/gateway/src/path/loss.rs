//! Loss of a path without congestion: the frequency and the length of loss bursts.
//!
//! A burst of losses begins with probability λ per packet and has b packets on average. The number
//! lost of N packets is then a Poisson number of geometric bursts: the Pólya-Aeppli distribution
//! (Johnson, Kemp and Kotz, Univariate Discrete Distributions §9.7), as in
//! `anabranch_fec::redundancy::loss_adaptive`.

use anabranch_core::math::exp;

/// The largest number of packets that the estimate remembers.
const MEMORY: f64 = 4_000.0;
/// The smallest number of packets for an estimate.
const LEAST: f64 = 100.0;
/// A congested round whose loss exceeds this multiple of the usual loss plus this share loses by
/// congestion.
const UNUSUAL: f64 = 2.0;
const UNUSUAL_SHARE: f64 = 0.01;
/// It must also exceed the usual loss by this multiple of the standard deviation of a round's loss:
/// in a short round a few bursts without congestion are a large share.
const DEVIATIONS: f64 = 2.0;

/// Counts of one or several rounds.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    packets: f64,
    losses: f64,
    bursts: f64,
}

impl Counts {
    fn share(&self) -> f64 {
        if self.packets < 1.0 {
            0.0
        } else {
            self.losses / self.packets
        }
    }
}

/// The loss pattern: λ and b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pattern {
    /// Bursts per packet (λ).
    pub begins: f64,
    /// Packets per burst (b).
    pub burst: f64,
}

impl Pattern {
    /// The share of lost packets.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.begins * self.burst
    }

    /// The standard deviation of the share of `packets` that is lost.
    fn deviation(&self, packets: f64) -> f64 {
        (self.begins * self.burst * (2.0 * self.burst - 1.0) / packets.max(1.0)).sqrt()
    }

    /// The share of packets that stay lost if a block of `total` packets is restored whenever at
    /// most `most` are lost.
    #[must_use]
    pub fn residual(&self, total: usize, most: usize) -> f64 {
        let total = total as f64;
        let (mean, r) = (self.begins * total, 1.0 - 1.0 / self.burst.max(1.0));
        let (mut before, mut now) = (0.0, exp(-mean));
        let mut repaired = 0.0;
        for k in 1..=most {
            let k = k as f64;
            let next =
                ((mean * (1.0 - r) + 2.0 * r * (k - 1.0)) * now - r * r * (k - 2.0) * before) / k;
            (before, now) = (now, next);
            repaired += k * next;
        }
        (self.share() - repaired / total).max(0.0)
    }
}

/// The estimate.
#[derive(Debug, Clone, Default)]
pub struct Loss {
    counts: Counts,
    round: Counts,
    last_lost: Option<u64>,
    is_by_congestion: bool,
}

impl Loss {
    /// Records arrivals.
    pub fn on_arrived(&mut self, packets: usize) {
        self.round.packets += packets as f64;
    }

    /// Records a loss. Numbers ascend.
    pub fn on_lost(&mut self, number: u64) {
        let goes_on = number
            .checked_sub(1)
            .is_some_and(|before| self.last_lost == Some(before));
        self.last_lost = Some(number);
        self.round.packets += 1.0;
        self.round.losses += 1.0;
        self.round.bursts += f64::from(u8::from(!goes_on));
    }

    /// Ends a round of the rate control.
    pub fn on_round(&mut self, is_congested: bool) {
        let round = std::mem::take(&mut self.round);
        let deviation = self
            .pattern()
            .map_or(0.0, |pattern| pattern.deviation(round.packets));
        let share = self.counts.share();
        let usual = (UNUSUAL * share + UNUSUAL_SHARE).max(share + DEVIATIONS * deviation);
        self.is_by_congestion = is_congested && round.share() > usual;
        if self.is_by_congestion {
            return;
        }
        let counts = &mut self.counts;
        counts.packets += round.packets;
        counts.losses += round.losses;
        counts.bursts += round.bursts;
        if counts.packets > MEMORY {
            let scale = MEMORY / counts.packets;
            counts.packets *= scale;
            counts.losses *= scale;
            counts.bursts *= scale;
        }
    }

    /// Whether the last round lost packets by congestion, which the inner sender must notice (RFC
    /// 9265 §3).
    #[must_use]
    pub const fn is_by_congestion(&self) -> bool {
        self.is_by_congestion
    }

    /// The loss pattern; `None` without losses.
    #[must_use]
    pub fn pattern(&self) -> Option<Pattern> {
        let counts = &self.counts;
        (counts.packets >= LEAST && counts.bursts > 0.0).then(|| Pattern {
            begins: counts.bursts / counts.packets,
            burst: (counts.losses / counts.bursts).max(1.0),
        })
    }
}
