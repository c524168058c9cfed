//! RED, Random Early Detection (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993): packets are dropped or marked at
//! random, the more the longer the queue has been on average.
//!
//! At each arrival the average moves by `weight` towards the number (or the bytes) of packets that wait; what the
//! link is sending does not count, nor the arriving packet. Below `min_threshold` nothing is done; from there the
//! probability rises in a line, to `max_probability` at `max_threshold`, and beyond every packet is
//! dropped. While the link was idle, the average has fallen as if empty samples had come, one for each small
//! packet that could have been sent meanwhile (§4 of the paper); a link without a rate forgets at once.
//! Probabilities are spread over the packets so that drops come neither in runs nor
//! after long pauses (§7: method 2). What finds the queue full is dropped and counts as a drop.
//!
//! Whether the queue is measured in packets or in bytes follows from the unit of the thresholds; multiples of the
//! bandwidth-delay product are bytes. In bytes the probability is proportional to the packet's size (§8)
//! unless `scale_by_size` is off, as RFC 7141 §2.2 wants it.
//!
//! `gentle` is Floyd's "Recommendation on using the gentle variant of RED" (2000), `adaptive` the maximum probability of
//! Adaptive RED (Floyd, Gummadi and Shenker 2001), `ecn` marks where the transport knows ECN (RFC 3168 §5).
//!
//! # Differs from the source
//! - Figure 2 of the paper counts the arriving packet itself where one has been dropped before, so that the gap
//!   between two drops is one packet shorter at most than §7 has it. We follow §7: gaps are uniform in
//!   1..1/p.
//!
//! # Differs from ns-2 and ns-3
//! - They wait 1/p packets after a drop by default (`wait_`, `Wait`): `spacing = "waiting"`. There the average
//!   takes one empty sample more after an idle time, of whole packets.
//! - They scale by a mean packet size, the paper by the largest: `reference_packet`.
//!
//! # Differs from Linux
//! - Linux measures in bytes only, takes weight and slope as powers of two, and drops where the average exceeds the maximum only if
//!   `harddrop` is set; otherwise it marks (tc-red(8)). After an idle time it takes a table for the
//!   power.
//!
//! # Not implemented
//! - Adaptive RED's choice of weight and thresholds from the link's rate: write them.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Rate, text::Limit},
};

mod adaptive;
mod average;
mod early;
mod params;

pub(super) use self::{
    early::{Early, Factor},
    params::red_params,
};
pub use self::{
    adaptive::{Adaptive, AdaptiveTable},
    params::{Common, PacketSize, Probability, Spacing},
};
use super::{
    Contradiction, Init, Item, QueueContext, QueueDiscipline, QueueParams, drop_tail::DropTail,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "red",
    title: "RED",
    summary: "Drops or marks at random, the more the longer the queue has been on average, so that senders slow down before it is full.",
    sources: &[
        Source {
            id: "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993",
            items: &["§4", "§7", "§8"],
        },
        Source {
            id: "Floyd, Recommendation on using the gentle variant of RED, 2000",
            items: &["gentle"],
        },
        Source {
            id: "Floyd, Gummadi and Shenker, Adaptive RED, 2001",
            items: &["§4"],
        },
        Source {
            id: "RFC 3168",
            items: &["§5", "§7"],
        },
    ],
};

red_params! {
    /// Parameters of RED.
    pub struct Params {}
}

impl QueueParams for Params {
    fn needs_bdp(&self) -> bool {
        self.common().in_bdp().is_some()
    }
    fn in_bdp(&self) -> Option<&'static [&'static str]> {
        self.common().in_bdp()
    }
    fn set_bdp(&mut self, bdp: Bytes) {
        self.put_bdp(bdp);
    }
    fn limit(&self) -> Limit {
        self.limit
    }
    fn check(&self) -> Result<(), Contradiction> {
        self.common().check()
    }
}

/// A RED queue.
#[derive(Debug)]
pub struct Red {
    early: Early,
    store: DropTail,
}

impl Red {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let common = params.common();
        Self {
            early: Early::new(&common, init),
            store: common.store(init),
        }
    }
    /// The average length, in packets or in bytes as the thresholds are.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.early.average()
    }
}

impl QueueDiscipline for Red {
    #[inline]
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        if self.early.admit(&mut item, &self.store, Factor::NONE, cx) {
            self.store.enqueue(item, cx);
        }
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.early.admit(item, &self.store, Factor::NONE, cx)
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.store.dequeue(cx)
    }
    fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        self.early.ran_out(cx.now);
    }
    #[inline]
    fn len(&self) -> usize {
        self.store.len()
    }
    fn bytes(&self) -> u64 {
        self.store.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.store.set_limit(limit)
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        self.early.set_rate(rate);
    }
}
