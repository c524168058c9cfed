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
//! # Differs from FreeBSD's dummynet
//! - It draws a random number for each gap, not for each packet: `spacing = "drawn"`.
//! - Up to FreeBSD 8.0 its slope is a whole number of 1/65,536 per packet, rounded down: a line from 1 to 9,999 packets that should end at 0.2
//!   ends at 0.153. Its queue counts the packet being sent.
//!
//! # Differs from Linux
//! - Linux measures in bytes only, takes weight and slope as powers of two, and drops where the average exceeds the maximum only if
//!   `harddrop` is set; otherwise it marks (tc-red(8)). After an idle time it takes a table for the
//!   power.
//! - Linux's average is a whole number with as many bits of fraction as `weight` has (measured:
//!   `docs/validation/kernel-queues.md`).
//!
//! # Not implemented
//! - Adaptive RED's choice of weight and thresholds from the link's rate: write them.

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};

mod adaptive;
mod average;
mod early;
mod params;
mod weighed;

pub(super) use self::params::{CHANGEABLE, red_params};
pub use self::{
    adaptive::{Adaptive, AdaptiveTable},
    early::Factor,
    params::{Common, PacketSize, Probability, RedParams, Spacing},
    weighed::{Weigh, Weighed},
};
use super::{Init, Item};

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

impl RedParams for Params {}

/// Weighs all alike.
#[derive(Debug)]
pub struct Alike;

impl Weigh for Alike {
    #[inline]
    fn factor(&mut self, _item: &Item, _plain: f64, _now: Instant) -> Factor {
        Factor::NONE
    }
}

/// A RED queue.
pub type Red = Weighed<Alike>;

impl Red {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        Self::with(&params.common(), Alike, init)
    }
}
