//! What is looked at every so often while a run goes on.

use anabranch_core::{packet::FlowId, units::Instant};
use anabranch_elements::{body::Body, tcp::Snapshot};
use anabranch_model::network::{GroupId, GroupState, LinkId, Network};

/// A flow's sending end at one moment.
#[derive(Debug, Clone)]
pub struct FlowSample {
    /// When.
    pub at: Instant,
    /// Which flow.
    pub flow: FlowId,
    /// Its sending end.
    pub snapshot: Snapshot,
    /// Bytes delivered in order so far.
    pub delivered_bytes: u64,
    /// Fast recoveries so far.
    pub fast_recoveries: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Packets sent again so far.
    pub retransmitted_packets: u64,
}

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
    /// Which group, as an index into [`Finished::groups`](crate::Finished::groups).
    pub group: usize,
    /// How it was.
    pub state: GroupState,
}

/// All that was sampled in a run.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Flows, in order of time, then of the scenario.
    pub flows: Vec<FlowSample>,
    /// Links, in order of time, then of the scenario.
    pub links: Vec<LinkSample>,
    /// Groups, in order of time, then of the scenario.
    pub groups: Vec<GroupSample>,
}

impl Samples {
    /// Looks at everything, now.
    ///
    /// # Panics
    /// Never: flows are counted in 32 bits.
    pub fn take<B: Body>(
        &mut self,
        network: &mut Network<B>,
        links: &[(String, [LinkId; 2])],
        groups: &[(String, GroupId)],
    ) {
        let at = network.now();
        for index in 0..network.flow_count() {
            let flow = FlowId(u32::try_from(index).expect("flows are counted in 32 bits"));
            if let Some((snapshot, stats)) = network.snapshot(flow) {
                self.flows.push(FlowSample {
                    at,
                    flow,
                    snapshot,
                    delivered_bytes: network.delivered_bytes(flow),
                    fast_recoveries: stats.fast_recoveries,
                    timeouts: stats.timeouts,
                    retransmitted_packets: stats.retransmitted_packets,
                });
            }
        }
        for (group, (_, id)) in groups.iter().enumerate() {
            let state = network.group_state(*id);
            self.groups.push(GroupSample { at, group, state });
        }
        for (link, (_, ids)) in links.iter().enumerate() {
            for (direction, id) in ids.iter().enumerate() {
                let state = network.link_state(*id);
                self.links.push(LinkSample {
                    at,
                    link,
                    direction,
                    queue_packets: state.queue_packets,
                    queue_bytes: state.queue_bytes,
                    sent_packets: state.sent_packets,
                    dropped_packets: state.dropped_packets,
                });
            }
        }
    }
}
