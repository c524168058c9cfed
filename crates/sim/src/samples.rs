//! What is looked at every so often while a run goes on.

use anabranch_core::{packet::FlowId, units::Instant};
use anabranch_elements::{body::Body, tcp::Snapshot};
use anabranch_model::network::{GroupId, LinkId, Network};
pub use anabranch_model::record::{GroupSample, LinkSample};

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
        self.groups.extend(GroupSample::of_all(network, groups));
        self.links.extend(LinkSample::of_all(network, links));
    }
}
