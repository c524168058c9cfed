//! Reports of links.

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};
use anabranch_path::link::Statistics;

use super::{
    LinkId, Network,
    fabric::{LinkKind, Target},
};

/// The counters of one direction of a link.
#[derive(Debug, Clone)]
pub struct LinkReport {
    /// Its counters.
    pub statistics: Statistics,
    /// The bits that it could have sent in the measured time; `None` without a rate.
    pub capacity_bits: Option<f64>,
    /// The measured time.
    pub measured: Duration,
    /// Packets in the queue now.
    pub queue_packets: usize,
    /// Packets in the measured time that exceeded its MTU; `None` without one.
    pub too_big_packets: Option<u64>,
}

/// One direction of a link at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Packets in the queue.
    pub queue_packets: usize,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Packets sent in the measured time until now.
    pub sent_packets: u64,
    /// Packets dropped in the measured time until now.
    pub dropped_packets: u64,
}

impl<B: Body> Network<B> {
    /// Returns the statistics of a link's direction until now. Before the end of the run they
    /// include packets computed ahead, which [`Self::link_state`] excludes.
    pub fn link_statistics(&mut self, link: LinkId) -> LinkReport {
        let now = self.fabric.now;
        let measured = self.fabric.window.overlap(Instant::START, now);
        let rate = self.rates[link.0 as usize];
        let too_big_packets = self.mtus.too_big_packets(link);
        match &mut self.fabric.links[link.0 as usize].kind {
            LinkKind::Plain(plain) => LinkReport {
                statistics: plain.statistics_by(self.fabric.window, now),
                capacity_bits: rate.map(|rate| rate.get() as f64 * measured.as_secs_f64()),
                measured,
                queue_packets: plain.queue(now).0,
                too_big_packets,
            },
            LinkKind::Served(slot) => {
                let capacity = slot.link.capacity_bits(now);
                LinkReport {
                    statistics: slot.link.statistics(now).clone(),
                    capacity_bits: (capacity > 0.0).then_some(capacity),
                    measured,
                    queue_packets: slot.link.queue_packets(),
                    too_big_packets,
                }
            }
        }
    }
    /// Returns the state of a link's direction before the events of this instant; for a folded link
    /// (see [`Builder::fold`]) the computed state.
    #[must_use]
    pub fn link_state(&self, link: LinkId) -> LinkState {
        match &self.fabric.links[link.0 as usize].kind {
            LinkKind::Plain(plain) => {
                let (queue_packets, queue_bytes) = plain.queue_before(self.fabric.now);
                LinkState {
                    queue_packets,
                    queue_bytes,
                    sent_packets: plain.sent_by(self.fabric.window, self.fabric.now),
                    dropped_packets: plain.dropped_packets(),
                }
            }
            LinkKind::Served(slot) => LinkState {
                queue_packets: slot.link.queue_packets(),
                queue_bytes: slot.link.queue_bytes(),
                sent_packets: slot.link.sent_by(self.fabric.now),
                dropped_packets: slot.link.counters().dropped_packets,
            },
        }
    }
    /// The number of links computed ahead of time.
    #[must_use]
    pub fn folded_links(&self) -> usize {
        let mut folded: Vec<u32> = self
            .fabric
            .routes
            .iter()
            .filter_map(|target| {
                if let Target::Folded(index) = target {
                    Some(*index)
                } else {
                    None
                }
            })
            .collect();
        folded.sort_unstable();
        folded.dedup();
        folded.len()
    }
}
