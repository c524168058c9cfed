//! The model of a path in results: estimates with intervals.

use serde::Serialize;

use super::{Estimate, Series};
use crate::{control::Control, segment::DirectionName};

/// The path of one direction of data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// The direction with more data: `a_to_b` or `b_to_a`.
    pub direction: DirectionName,
    /// The side of the capture point on which the queue is.
    pub bottleneck: &'static str,
    /// The round-trip time of a packet without queueing and without transmission time at the
    /// bottleneck.
    pub base_rtt_ms: Estimate,
    /// The rate at which the bottleneck serves this connection, in octets of IP packets.
    pub rate_mbit_s: Estimate,
    /// Times in seconds from the first packet, and rates, if one rate does not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rate_trace: Vec<[f64; 2]>,
    /// The buffer of the bottleneck.
    pub buffer_bytes: Estimate,
    /// The longest wait there.
    pub buffer_ms: Estimate,
    /// Losses that the full buffer does not explain.
    pub loss: Loss,
    /// A token bucket that explains the losses.
    pub policer: Option<Policer>,
    /// Late packets (RFC 4737).
    pub reordering: Reordering,
    /// The standard deviation of delays that the queue does not explain.
    pub jitter_ms: Estimate,
    /// Properties of the reverse direction.
    pub reverse: Reverse,
    /// Acknowledged octets over time.
    pub goodput: Series,
    /// The quality of the fit.
    pub fit: Fit,
    /// Properties of the connection that a simulation needs.
    pub flow: Flow,
}

/// A policer, in octets of data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policed {
    /// Octets per second.
    pub(crate) rate: f64,
    /// The lowest and the highest rate that is near.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Octets that the bucket holds.
    pub(crate) burst: f64,
}

/// A token bucket that drops traffic above its rate, without a queue (RFC 2475 §2.3.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Policer {
    /// The rate, in octets of IP packets.
    pub rate_mbit_s: Estimate,
    /// The bucket size: octets that pass at once.
    pub burst_bytes: Estimate,
}

/// Losses that the full buffer does not explain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// `none`, `bernoulli` or `gilbert-elliott`.
    pub kind: LossKind,
    /// The share of packets lost.
    pub rate: Estimate,
    /// The mean number of packets lost in a row.
    pub mean_burst: Estimate,
    /// Segments that were lost because the buffer was full.
    pub at_full_buffer: u64,
}

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// No loss.
    None,
    /// Independent losses.
    Bernoulli,
    /// Bursts.
    GilbertElliott,
}

/// Late packets (RFC 4737).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reordering {
    /// The share of late packets.
    pub ratio: Estimate,
    /// The number of later packets that arrived earlier, 95th percentile.
    pub extent_p95_packets: Option<u64>,
    /// The median lateness.
    pub late_ms: Option<f64>,
}

/// The direction of acknowledgments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reverse {
    /// The rate of its bottleneck, if it carried data.
    pub rate_mbit_s: Estimate,
    /// The round-trip time between the capture point and the sender of the data.
    pub to_sender_ms: Option<f64>,
    /// The round-trip time between the capture point and the receiver.
    pub to_receiver_ms: Option<f64>,
}

/// The quality of the fit: deviations as shares of the value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Deviation of the rates of batches from one rate.
    pub rate_deviation: Option<f64>,
    /// Time during which the bottleneck was observed to be busy.
    pub busy_s: f64,
    /// Pairs of packets from which the rate was estimated.
    pub rate_samples: u64,
    /// Deviation of the waits at losses from the full buffer.
    pub buffer_deviation: Option<f64>,
    /// Runs of losses from which the buffer was estimated.
    pub buffer_samples: usize,
}

/// The connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the connection"
)]
pub struct Flow {
    /// Octets of payload of a full segment.
    pub mss_bytes: i64,
    /// Octets of data.
    pub bytes: u64,
    /// The sender closed the connection.
    pub is_closed: bool,
    /// The beginning of the connection was captured.
    pub is_from_start: bool,
    /// The verdict about the congestion control.
    pub control: Control,
    /// The control for a simulation: the named one, or the nearest that the simulator has.
    pub congestion_control: &'static str,
    /// The evidence for it.
    pub congestion_control_evidence: &'static str,
    /// The median of the amount in flight after a recovery ÷ before it.
    pub reduction: Option<f64>,
    /// The largest window that the receiver announced.
    pub receive_window_bytes: Option<i64>,
    /// The amount in flight while the send buffer was the limit.
    pub send_buffer_bytes: Option<i64>,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Segments per acknowledgment, outside recoveries.
    pub segments_per_ack: Option<f64>,
    /// Segments of the first window.
    pub initial_window_packets: Option<i64>,
}
