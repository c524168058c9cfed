//! Threshold marking: first in, first out. An ECN-capable packet is marked if it finds a backlog
//! above a threshold.
//!
//! This is the switch of DCTCP: marks follow the instantaneous queue, not its average, so the share
//! of marked packets indicates how far the queue exceeds the threshold `K`. The backlog excludes
//! the packet in transmission and the arriving packet. Packets that are not ECN-capable are never
//! marked and never dropped early; a packet of either kind is dropped if the limit leaves no room.
//!
//! # Differs from the source
//! - Switches that emulate this with RED (both thresholds at `K`, weight 1) drop packets that are
//!   not ECN-capable above `K` (RFC 8257 §3.5). `red` with these parameters and `ecn = true` does
//!   so too.
//!
//! # Differs from Linux
//! - Linux has no queue of this name; `ce_threshold` of `codel` and `fq-codel` marks above a
//!   sojourn time instead.
//!
//! # Not implemented
//! - A threshold on a buffer shared by several ports.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, text::Limit},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Config, Contradiction, Init, Item, QueueContext, QueueDiscipline, QueueParams, fifos::Line,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "threshold-mark",
    title: "Threshold marking",
    summary: "Marks every ECN-capable packet that arrives while more than `threshold` waits, as a switch for DCTCP \
              does; drops only packets that arrive at a full queue.",
    sources: &[
        Source {
            id: "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
            items: &["§3.1"],
        },
        Source {
            id: "RFC 8257",
            items: &["§3.1"],
        },
    ],
};

/// Parameters of threshold marking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets, without the packet in transmission: packets, bytes or
    /// bandwidth-delay products (`"100 packets"`, `"64 KiB"`, `"1 bdp"`). By default there is no
    /// limit.
    pub limit: Limit,
    /// `K`: an ECN-capable packet is marked if the backlog at its arrival exceeds this. Packets,
    /// bytes or bandwidth-delay products. Alizadeh et al. §3.4 use 20 packets at 1 Gbit/s and 65 at
    /// 10 Gbit/s; above a seventh of the bandwidth-delay product (§3.3) the link stays busy.
    pub threshold: Limit,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Unlimited,
            threshold: Limit::Packets(20),
        }
    }
}

impl QueueParams for Params {
    const CHANGEABLE: &'static [&'static str] = &["limit", "threshold"];
    fn limit(&self) -> Limit {
        self.limit
    }
    fn limit_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
    fn in_bdp(&self) -> Option<&'static [&'static str]> {
        match (self.limit, self.threshold) {
            (Limit::Bdp(_), _) => Some(&["limit"]),
            (_, Limit::Bdp(_)) => Some(&["threshold"]),
            _ => None,
        }
    }
    fn set_bdp(&mut self, bdp: Bytes) {
        self.limit = self.limit.with_bdp(bdp);
        self.threshold = self.threshold.with_bdp(bdp);
    }
    fn check(&self) -> Result<(), Contradiction> {
        let wrong = |message: String, expected: &str| {
            Err(Contradiction {
                key: &["threshold"],
                message,
                expected: expected.to_owned(),
            })
        };
        let never = match (self.threshold, self.limit) {
            (Limit::Unlimited, _) => {
                return wrong(
                    "`threshold` is \"unlimited\", so no packet would be marked".to_owned(),
                    "a number of packets or bytes, for example \"20 packets\", or `drop-tail`",
                );
            }
            // A packet that finds a larger backlog must still have room.
            (Limit::Packets(threshold), Limit::Packets(limit)) => {
                threshold.saturating_add(1) >= limit
            }
            (Limit::Bytes(threshold), Limit::Bytes(limit)) => threshold >= limit,
            _ => false,
        };
        if never {
            return wrong(
                format!(
                    "no packet would be marked: one that finds more than `threshold` ({}) waiting is dropped at `limit` ({})",
                    self.threshold, self.limit
                ),
                "a threshold well below the limit",
            );
        }
        Ok(())
    }
}

/// A queue that marks above a threshold.
#[derive(Debug)]
pub struct ThresholdMark {
    limit: Limit,
    threshold: Limit,
    line: Line,
}

impl ThresholdMark {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        Self {
            limit: params.limit,
            threshold: params.threshold,
            line: Line::default(),
        }
    }

    /// Whether the backlog is above the threshold.
    fn is_above(&self, cx: &QueueContext<'_>) -> bool {
        match self.threshold {
            Limit::Packets(threshold) => {
                self.line.len() as u64 + u64::from(cx.held_packets) > threshold
            }
            Limit::Bytes(threshold) => self.line.bytes() + cx.held_bytes > threshold.get(),
            Limit::Unlimited | Limit::Bdp(_) => false,
        }
    }

    /// Marks or drops a packet that arrives; returns whether it may join.
    fn admit(&self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        let admits = self.line.has_room(self.limit, item, cx);
        if !admits {
            cx.drop(*item);
        } else if self.is_above(cx) {
            cx.mark(item);
        }
        admits
    }
}

impl QueueDiscipline for ThresholdMark {
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        if self.admit(&mut item, cx) {
            self.line.push(item);
        }
    }
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.admit(item, cx)
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.line.pop()
    }
    fn len(&self) -> usize {
        self.line.len()
    }
    fn bytes(&self) -> u64 {
        self.line.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }
    fn change(&mut self, to: &Config) {
        if let Config::ThresholdMark(params) = to {
            (self.limit, self.threshold) = (params.limit, params.threshold);
        }
    }
}
