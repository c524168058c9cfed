//! The census of all packets of a run, not only of the measured time.
//!
//! No figure is derived from another. Outcomes are counted as observed; packets in flight are
//! counted in queues, in transmission and on links. A packet that an element has removed without
//! reporting it is missing.

use std::collections::BinaryHeap;

use anabranch_core::{body::Body, trace::Fate};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Network,
    fabric::{Fabric, LinkKind, Propagating},
};

/// All packets of a run until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Census {
    /// Packets sent by the ends of flows.
    pub sent_packets: u64,
    /// Packets created inside the network: copies, and packets that a middlebox created or rebuilt.
    pub made_packets: u64,
    /// Packets received by the ends of flows.
    pub received_packets: u64,
    /// Packets dropped by queues.
    pub dropped_packets: u64,
    /// Packets larger than the MTU of a link.
    pub too_big_packets: u64,
    /// Packets lost or damaged by impairments.
    pub lost_packets: u64,
    /// Packets discarded by middleboxes: duplicates.
    pub discarded_packets: u64,
    /// Packets still held by middleboxes.
    pub held_packets: u64,
    /// Packets still in queues, in transmission and on links.
    pub in_flight_packets: u64,
}

impl Census {
    /// Packets that are not accounted for; negative if there are too many.
    #[must_use]
    pub fn missing(&self) -> i64 {
        let there = self.received_packets
            + self.dropped_packets
            + self.too_big_packets
            + self.lost_packets
            + self.discarded_packets
            + self.held_packets
            + self.in_flight_packets;
        (self.sent_packets + self.made_packets)
            .wrapping_sub(there)
            .cast_signed()
    }
}

impl<B: Body> Network<B> {
    /// Counts all packets; `None` unless outcomes are counted
    /// ([`Builder::tally`](super::Builder::tally)).
    #[must_use]
    pub fn census(&self) -> Option<Census> {
        let tally = self.fabric.probe.tally()?;
        let mut census = Census {
            sent_packets: tally.of(Fate::Sent),
            made_packets: self.fabric.made,
            received_packets: tally.of(Fate::Received),
            dropped_packets: tally.of(Fate::Dropped),
            too_big_packets: tally.of(Fate::TooBig),
            lost_packets: tally.of(Fate::Lost) + tally.of(Fate::Corrupted),
            in_flight_packets: self.fabric.in_flight(),
            ..Census::default()
        };
        for slot in &self.middleboxes {
            let kept = slot.middlebox.kept();
            census.discarded_packets += kept.discarded;
            census.held_packets += kept.held;
        }
        Some(census)
    }
}

impl<B: Body> Fabric<B> {
    /// The number of packets in queues, in transmission and on links.
    fn in_flight(&self) -> u64 {
        let on_links = self.links.iter().map(|slot| match &slot.kind {
            // All packets of a plain link are in its ring.
            LinkKind::Plain(_) => 0,
            LinkKind::Served(served) => {
                let overtaking = served.unordered.as_ref().map_or(0, BinaryHeap::len);
                served.link.queue_packets() + served.link.packets_in_service() + overtaking
            }
        });
        let in_rings = self.rings.iter().map(Propagating::len);
        let found = on_links.sum::<usize>() + in_rings.sum::<usize>() + self.reached.len();
        found as u64 + self.past_the_end
    }
}
