//! Periodic samples of links and groups during a run.

use anabranch_core::{body::Body, units::Instant};

use crate::network::{GroupId, GroupState, LinkId, Network};

/// One direction of a link at one moment.
#[derive(Debug, Clone, Copy)]
pub struct LinkSample {
    /// The time of the sample.
    pub at: Instant,
    /// The link, as an index into the scenario's links.
    pub link: usize,
    /// 0 forward, 1 reverse.
    pub direction: usize,
    /// Packets in the queue.
    pub queue_packets: usize,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Packets sent until now.
    pub sent_packets: u64,
    /// Packets dropped until now.
    pub dropped_packets: u64,
}

/// A link group at one moment.
#[derive(Debug, Clone, Copy)]
pub struct GroupSample {
    /// The time of the sample.
    pub at: Instant,
    /// The group, as an index into the run's groups.
    pub group: usize,
    /// Its state.
    pub state: GroupState,
}

impl LinkSample {
    /// Samples all links now.
    pub fn of_all<B: Body>(
        network: &Network<B>,
        links: &[(String, [LinkId; 2])],
    ) -> impl Iterator<Item = Self> {
        let at = network.now();
        links.iter().enumerate().flat_map(move |(link, (_, ids))| {
            ids.iter().enumerate().map(move |(direction, id)| {
                let state = network.link_state(*id);
                Self {
                    at,
                    link,
                    direction,
                    queue_packets: state.queue_packets,
                    queue_bytes: state.queue_bytes,
                    sent_packets: state.sent_packets,
                    dropped_packets: state.dropped_packets,
                }
            })
        })
    }
}

impl GroupSample {
    /// Samples all groups now.
    pub fn of_all<B: Body>(
        network: &mut Network<B>,
        groups: &[(String, GroupId)],
    ) -> impl Iterator<Item = Self> {
        let at = network.now();
        groups.iter().enumerate().map(move |(group, (_, id))| Self {
            at,
            group,
            state: network.group_state(*id),
        })
    }
}
