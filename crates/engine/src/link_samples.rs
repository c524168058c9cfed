//! What links and groups are like every so often while a run goes on.

use anabranch_core::{body::Body, units::Instant};

use crate::network::{GroupId, GroupState, LinkId, Network};

/// One direction of a link at one moment.
#[derive(Debug, Clone, Copy)]
pub struct LinkSample {
    /// When.
    pub at: Instant,
    /// Which link, as an index into the scenario's links.
    pub link: usize,
    /// 0 forward, 1 reverse.
    pub direction: usize,
    /// Packets that wait.
    pub queue_packets: usize,
    /// Bytes that wait.
    pub queue_bytes: u64,
    /// Packets sent so far.
    pub sent_packets: u64,
    /// Packets dropped so far.
    pub dropped_packets: u64,
}

/// A link group at one moment.
#[derive(Debug, Clone, Copy)]
pub struct GroupSample {
    /// When.
    pub at: Instant,
    /// Which group, as an index into the run's groups.
    pub group: usize,
    /// How it was.
    pub state: GroupState,
}

impl LinkSample {
    /// All links now.
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
    /// All groups now.
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
