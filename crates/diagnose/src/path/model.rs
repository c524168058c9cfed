//! The model of a path, as results have it: estimates with intervals.

use serde::Serialize;

use super::{Estimate, Policer, Series};

/// The path of one direction of data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// `a_to_b` or `b_to_a`: the one with more data.
    pub direction: &'static str,
    /// Which side of the capture point has the queue.
    pub bottleneck: &'static str,
    /// The round trip of a packet that takes no time on the bottleneck and does not wait.
    pub base_rtt_ms: Estimate,
    /// The rate at which the bottleneck serves this connection, in octets of IP packets.
    pub rate_mbit_s: Estimate,
    /// Seconds from the first packet and rates, where one rate does not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rate_trace: Vec<[f64; 2]>,
    /// What may wait at the bottleneck.
    pub buffer_bytes: Estimate,
    /// The longest that a packet waits there.
    pub buffer_ms: Estimate,
    /// Losses that the full buffer does not explain.
    pub loss: Loss,
    /// A token bucket that explains the losses.
    pub policer: Option<Policer>,
    /// Packets that come late (RFC 4737).
    pub reordering: Reordering,
    /// The standard deviation of delays that the queue does not explain.
    pub jitter_ms: Estimate,
    /// What differs between the directions.
    pub reverse: Reverse,
    /// Octets that were acknowledged, by time.
    pub goodput: Series,
    /// How well the model describes the observations.
    pub fit: Fit,
    /// The connection itself, as far as a simulation needs it.
    pub flow: Flow,
}

/// Losses that the full buffer does not explain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// `none`, `bernoulli` or `gilbert-elliott`.
    pub kind: &'static str,
    /// The share of the packets.
    pub rate: Estimate,
    /// Packets that are lost in a row.
    pub mean_burst: Estimate,
    /// Segments that were lost because the buffer was full.
    pub at_full_buffer: u64,
}

/// Packets that come late (RFC 4737).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reordering {
    /// The share of the packets.
    pub ratio: Estimate,
    /// Later packets that had come before, for 95 % of them.
    pub extent_p95_packets: Option<u64>,
    /// How late half of them were.
    pub late_ms: Option<f64>,
}

/// The direction of acknowledgments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reverse {
    /// The rate of its bottleneck, if it has carried data.
    pub rate_mbit_s: Estimate,
    /// The round trip from the capture point to the sender of the data and back.
    pub to_sender_ms: Option<f64>,
    /// The same to the receiver.
    pub to_receiver_ms: Option<f64>,
}

/// How well the model describes the observations: deviations as shares of the value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Of the rates of parts of the time, from one rate.
    pub rate_deviation: Option<f64>,
    /// Time during which the bottleneck was seen to be busy.
    pub busy_s: f64,
    /// Pairs of packets that the rate rests on.
    pub rate_samples: u64,
    /// Of waits at losses, from the full buffer.
    pub buffer_deviation: Option<f64>,
    /// Losses in a row that the buffer rests on.
    pub buffer_samples: usize,
}

/// The connection itself.
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
    /// The capture has its beginning.
    pub is_from_start: bool,
    /// `cubic`, `reno` or `bbr`.
    pub congestion_control: &'static str,
    /// What that rests on.
    pub congestion_control_evidence: &'static str,
    /// The median of what is in flight behind a recovery ÷ before it.
    pub reduction: Option<f64>,
    /// The largest window that the receiver announced.
    pub receive_window_bytes: Option<i64>,
    /// What was in flight where the send buffer was the limit.
    pub send_buffer_bytes: Option<i64>,
    /// RFC 7323.
    pub timestamps: bool,
    /// RFC 2018.
    pub sack: bool,
    /// Segments for each acknowledgment, outside of recoveries.
    pub segments_per_ack: Option<f64>,
    /// Segments of the first window.
    pub initial_window_packets: Option<i64>,
}
