//! Periodic samples during a run.

pub use crate::link_samples::{GroupSample, LinkSample};
use crate::network::{GroupId, LinkId, Network};
use anabranch_core::{
    body::Body,
    packet::FlowId,
    units::{Duration, Instant},
};
use anabranch_tcp::{CongestionState, Snapshot};

/// A flow's sending end at one moment.
#[derive(Debug, Clone)]
pub struct FlowSample {
    /// The time.
    pub at: Instant,
    /// The flow.
    pub flow: FlowId,
    /// Its sending end.
    pub snapshot: Snapshot,
    /// Bytes delivered in order until now.
    pub delivered_bytes: u64,
    /// Fast recoveries until now, if counted.
    pub fast_recoveries: Option<u64>,
    /// Timeouts until now.
    pub timeouts: u64,
    /// Packets retransmitted until now.
    pub retransmitted_packets: u64,
}

/// A flow's sending end at the arrival of a segment, before it was processed. Windows are in
/// segments.
#[derive(Debug, Clone, Copy)]
pub struct AckSample {
    /// The time.
    pub at: Instant,
    /// The flow.
    pub flow: FlowId,
    /// The number of its connection, from 0.
    pub connection: u32,
    /// Octets of the stream that the segment acknowledges.
    pub acknowledged_bytes: u64,
    /// cwnd.
    pub cwnd: u32,
    /// ssthresh; `None` before the first reduction.
    pub ssthresh: Option<u32>,
    /// Packets in flight, as estimated by loss recovery.
    pub in_flight: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Fast recoveries of the connection until now.
    pub fast_recoveries: u32,
    /// Expiries of its retransmission timer until now.
    pub timeouts: u32,
    /// Segments retransmitted until now.
    pub retransmitted_packets: u32,
    /// See [`Snapshot`].
    pub state: CongestionState,
    /// The congestion control's name, as an index into [`Samples::controls`].
    pub control: usize,
}

/// All samples of a run.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Flows, in order of time, then of the scenario.
    pub flows: Vec<FlowSample>,
    /// Flows at each segment that arrived at their sending ends, if traced.
    pub acks: Vec<AckSample>,
    /// Names of congestion controls.
    pub controls: Vec<String>,
    /// Links, in order of time, then of the scenario.
    pub links: Vec<LinkSample>,
    /// Groups, in order of time, then of the scenario.
    pub groups: Vec<GroupSample>,
}

impl Samples {
    /// Samples everything now.
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
                    fast_recoveries: Some(stats.fast_recoveries),
                    timeouts: stats.timeouts,
                    retransmitted_packets: stats.retransmitted_packets,
                });
            }
        }
        self.groups.extend(GroupSample::of_all(network, groups));
        self.links.extend(LinkSample::of_all(network, links));
    }
}
