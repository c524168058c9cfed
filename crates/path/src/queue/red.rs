//! RED, Random Early Detection (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993): packets are dropped
//! or marked at random, with a probability that grows with the average queue length.
//!
//! At each arrival the average moves by `weight` towards the number (or the bytes) of waiting
//! packets, without the packet in transmission and the arriving packet. Below `min_threshold` no
//! packet is dropped. From there the probability rises linearly to `max_probability` at
//! `max_threshold`, and beyond it every packet is dropped. An idle period lowers the average as if
//! empty samples had arrived, one for each small packet that could have been sent meanwhile (§4 of
//! the paper); on a link without a rate it resets the average. Probabilities are spread over the
//! packets so that drops come neither in runs nor after long pauses (§7: method 2). A packet that
//! finds the queue full is dropped and counts as a drop.
//!
//! The unit of the thresholds determines whether the queue is measured in packets or in bytes;
//! multiples of the bandwidth-delay product are bytes. In bytes the probability is proportional to
//! the packet's size (§8), unless `scale_by_size` is off as RFC 7141 §2.2 advises.
//!
//! `gentle` is Floyd's "Recommendation on using the gentle variant of RED" (2000). `adaptive`
//! adapts the maximum probability as Adaptive RED does (Floyd, Gummadi and Shenker 2001). `ecn`
//! marks packets of ECN-capable transports (RFC 3168 §5).
//!
//! # Differs from the source
//! - Figure 2 of the paper counts the arriving packet if a packet was dropped before, so the gap
//!   between two drops is up to one packet shorter than in §7. This queue follows §7: gaps are
//!   uniform in 1..1/p.
//!
//! # Differs from ns-2 and ns-3
//! - They wait 1/p packets after a drop by default (`wait_`, `Wait`), as `spacing = "waiting"`
//!   does. Their average takes one more empty sample after an idle period, in whole packets.
//! - They scale by a mean packet size, the paper by the largest (`reference_packet`).
//!
//! # Differs from FreeBSD's dummynet
//! - It draws a random number for each gap, not for each packet (`spacing = "drawn"`).
//! - Up to FreeBSD 8.0 its slope is a whole number of 1/65,536 per packet, rounded down: a line
//!   from 1 to 9,999 packets that should end at 0.2 ends at 0.153. Its queue counts the packet in
//!   transmission.
//!
//! # Differs from Linux
//! - Linux measures in bytes only and uses powers of two for weight and slope. Above the maximum
//!   threshold it drops only if `harddrop` is set, and marks otherwise (tc-red(8)). After an idle
//!   period it looks the power up in a table.
//! - Linux's average is a fixed-point number whose fractional bits are given by `weight` (measured:
//!   `docs/validation/kernel-queues.md`).
//!
//! # Not implemented
//! - Adaptive RED's choice of weight and thresholds from the link's rate: set them explicitly.

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
    summary: "Drops or marks at random, with a probability that grows with the average queue length, so that senders \
              slow down before it is full.",
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

/// Weighs all packets alike.
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
    /// Creates an empty queue.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        Self::with(&params.common(), Alike, init)
    }
}
