//! Westwood+ (Grieco and Mascolo, CCR 2004): Reno that measures the rate at which its data is
//! acknowledged, and reduces to what the path carried at that rate without a queue.
//!
//! Once per round trip it takes a sample of the rate, `d / Δ`: the bytes acknowledged in the round
//! trip and the time that took. A low-pass filter makes the estimate `BWE` of the samples. A loss
//! leaves `BWE · RTT_min`, so that random loss on a path that is not full costs little. Growth is
//! [`super::reno`]'s.
//!
//! The paper leaves open what a loss before the first sample leaves: here it is half the window, as
//! in Reno. The first sample is taken for the estimate as it is.
//!
//! # Differs from Linux
//! - A round trip ends when data is acknowledged that was sent after it began, however short it is;
//!   no smallest time between samples is kept.
//! - See [`super::reno`] for the window between losses.
//!
//! # Differs from the paper
//! - What selective acknowledgments report is counted when it is reported. The paper, without them,
//!   counts a segment for each duplicate ACK.
//! - A round trip with a pause in it gives no sample; nothing was there to be measured.
//!
//! # Not implemented
//! - Nothing of §2; the samples per ACK of the first Westwood (2001), and its filter, are another
//!   control.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Congestion, CongestionControl, ControlParams, Family, HyStartUse, Idle, Init, Recovered,
    Rto, Spurious, Unvalidated,
    params::{OrStack, ReductionBase, Share, SlowStartLimit},
    reno::{self, Avoidance, Reno},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "westwood-plus",
    title: "Westwood+",
    summary: "Reno that reduces to the rate it has measured times the smallest round-trip time. \
              For paths with random loss.",
    sources: &[Source {
        id: "Grieco and Mascolo, ACM CCR 34-2 (2004)",
        items: &["§2"],
    }],
};

/// What of the acknowledged data a sample counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Counting {
    /// Each byte once, when it is first reported (§2).
    #[default]
    Once,
    /// What was reported selectively is counted again when it is acknowledged cumulatively, so that
    /// every loss raises the estimate. ns-3's figures under random loss are met so, and only so; that
    /// it counts in this way is inferred from them.
    Twice,
}

/// Parameters of Westwood+.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of the old estimate in the new one: the low-pass filter's coefficient (§2: 7/8).
    pub filter: Share,
    /// What of the acknowledged data a sample counts.
    pub counting: Counting,
    /// What one ACK adds in slow start at most (`L` of RFC 3465 §2.3).
    pub slow_start_limit: SlowStartLimit,
    /// How congestion avoidance counts what is acknowledged.
    pub avoidance: Avoidance,
    /// What a loss before the first sample is taken from.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            filter: Share::new(0.875),
            counting: Counting::Once,
            slow_start_limit: SlowStartLimit::default(),
            avoidance: Avoidance::Bytes,
            reduce_from: OrStack::Stack,
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn hystart(&self) -> HyStartUse {
        HyStartUse::Rfc9406
    }
}

/// Westwood+ at work.
#[derive(Debug)]
pub struct WestwoodPlus {
    reno: Reno,
    reduce_from: ReductionBase,
    filter: f64,
    counting: Counting,
    /// BWE, in bytes per second; `None` before the first sample.
    estimate: Option<f64>,
    min_rtt: Duration,
    /// The round trip under way: its number, its beginning and what was acknowledged in it.
    round: u64,
    began: Option<Instant>,
    delivered: Bytes,
}

impl WestwoodPlus {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let reno = reno::Params {
            extra_eighth: false,
            slow_start_limit: params.slow_start_limit,
            avoidance: params.avoidance,
            reduce_from: params.reduce_from,
        };
        Self {
            reno: Reno::new(&reno, init),
            reduce_from: params.reduce_from.or(init.stack.reduce_from),
            filter: params.filter.get(),
            counting: params.counting,
            estimate: None,
            min_rtt: Duration::ZERO,
            round: 0,
            began: None,
            delivered: Bytes::ZERO,
        }
    }

    /// A sample at the end of each round trip.
    #[inline]
    fn measure(&mut self, ack: &Ack) {
        self.min_rtt = ack.min_rtt;
        self.delivered += match self.counting {
            Counting::Once => ack.delivered,
            Counting::Twice => ack.acked + ack.sacked,
        };
        if ack.round == self.round && self.began.is_some() {
            return;
        }
        self.round = ack.round;
        let began = self.began.replace(ack.now);
        let delivered = std::mem::replace(&mut self.delivered, Bytes::ZERO);
        let Some(began) = began else {
            return;
        };
        let interval = ack.now.saturating_since(began);
        if !interval.is_zero() {
            let sample = delivered.get() as f64 / interval.as_secs_f64();
            // §2 equation 1.
            self.estimate = Some(self.estimate.map_or(sample, |estimate| {
                self.filter * estimate + (1.0 - self.filter) * sample
            }));
        }
    }

    /// `BWE · RTT_min`.
    fn pipe(&self) -> Option<Bytes> {
        let bytes = self.estimate? * self.min_rtt.as_secs_f64();
        Some(self.reno.counted(whole(bytes)))
    }
}

/// Whole bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
const fn whole(bytes: f64) -> Bytes {
    Bytes::new(bytes as u64)
}

impl CongestionControl for WestwoodPlus {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.measure(ack);
        self.reno.on_ack(ack);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let cwnd = self.reno.cwnd();
        if let Some(ssthresh) = self.pipe() {
            // §2: a window below what the path carried stays, and slow start takes it there.
            self.reno.reduce(cwnd.min(ssthresh), ssthresh);
        } else {
            let flight = self.reduce_from.on_congestion(event.in_flight, cwnd);
            self.reno.reduce_to(self.reno.half(flight));
        }
    }

    fn on_rto(&mut self, event: &Rto) {
        // RFC 5681 §3.1: ssthresh is held when the timer expires again for the same segment.
        let ssthresh = (event.consecutive <= 1).then(|| {
            self.pipe().unwrap_or_else(|| {
                let cwnd = self.reno.cwnd();
                self.reno
                    .half(self.reduce_from.on_rto(event.in_flight, cwnd))
            })
        });
        self.reno.collapse(ssthresh);
    }

    fn on_recovered(&mut self, event: &Recovered) {
        self.reno.on_recovered(event);
    }
    fn on_spurious(&mut self, event: &Spurious) {
        self.reno.on_spurious(event);
    }
    fn on_lost_syns(&mut self) {
        self.reno.on_lost_syns();
    }
    fn on_idle(&mut self, event: &Idle) {
        self.began = None;
        self.delivered = Bytes::ZERO;
        self.reno.on_idle(event);
    }
    fn on_unvalidated(&mut self, event: &Unvalidated) {
        self.reno.on_unvalidated(event);
    }
    #[inline]
    fn cwnd(&self) -> Bytes {
        self.reno.cwnd()
    }
    fn ssthresh(&self) -> Option<Bytes> {
        self.reno.ssthresh()
    }
    /// `bwe` in Mbit/s, once there is one, and `min_rtt` in milliseconds.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let estimate = self.estimate.map(|bwe| ("bwe", bwe * 8.0 / 1e6));
        estimate
            .into_iter()
            .chain([("min_rtt", self.min_rtt.as_millis_f64())])
            .collect()
    }
}
