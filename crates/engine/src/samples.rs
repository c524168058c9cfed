//! What is looked at every so often while a run goes on.

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
    /// When.
    pub at: Instant,
    /// Which flow.
    pub flow: FlowId,
    /// Its sending end.
    pub snapshot: Snapshot,
    /// Bytes delivered in order so far.
    pub delivered_bytes: u64,
    /// Fast recoveries so far, where somebody counts them.
    pub fast_recoveries: Option<u64>,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Packets retransmitted so far.
    pub retransmitted_packets: u64,
}

/// A flow's sending end when a segment came to it, before it was handled. Windows are in segments.
#[derive(Debug, Clone, Copy)]
pub struct AckSample {
    /// When.
    pub at: Instant,
    /// Which flow.
    pub flow: FlowId,
    /// Which of its connections, from 0.
    pub connection: u32,
    /// Octets of the stream that the segment acknowledges.
    pub acknowledged_bytes: u64,
    /// cwnd.
    pub cwnd: u32,
    /// ssthresh; none before the first reduction.
    pub ssthresh: Option<u32>,
    /// In flight, as a recovery reckons it.
    pub in_flight: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Fast recoveries of the connection so far.
    pub fast_recoveries: u32,
    /// Expiries of its retransmission timer so far.
    pub timeouts: u32,
    /// Segments that it has retransmitted so far.
    pub retransmitted_packets: u32,
    /// As of [`Snapshot`].
    pub state: CongestionState,
    /// The congestion control's name, as an index into [`Samples::controls`].
    pub control: usize,
}

/// All that was sampled in a run.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Flows, in order of time, then of the scenario.
    pub flows: Vec<FlowSample>,
    /// Flows at each segment that came to their sending ends, where these are traced.
    pub acks: Vec<AckSample>,
    /// Names of congestion controls.
    pub controls: Vec<String>,
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
