//! Every switch of an endpoint, and what a scenario may set over a profile's.

use anabranch_core::units::{Bytes, Duration, text::Limit};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::cc::{
    Init, StackHabits,
    params::{ReductionBase, RenoFriendly, Share, WindowCount},
};

pub use crate::cc::{IdleRestart, hystart::Kind as HyStart};

use super::{
    ack::DelayedAckTable,
    rtt::Bounds,
    segment::{HEADERS, TIMESTAMPS_SIZE},
};

/// How losses are repaired without waiting for the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast recovery ends at the first acknowledgment of new data (RFC 5681 §3.2).
    Reno,
    /// Partial acknowledgments repair one loss each (RFC 6582).
    NewReno,
    /// Selective acknowledgments tell what to repair (RFC 6675). Needs SACK; with a peer that does
    /// not permit it the endpoint falls back to NewReno.
    Rfc6675,
    /// As `rfc6675`, but losses are found by the time that segments left (RFC 8985). Needs SACK,
    /// with the same fallback.
    Rack,
}

impl Recovery {
    /// Whether selective acknowledgments guide it.
    #[must_use]
    #[inline]
    pub const fn needs_sack(self) -> bool {
        matches!(self, Self::Rfc6675 | Self::Rack)
    }
}

/// The window with which NewReno leaves fast recovery (RFC 6582 §3.2 step 3, full acknowledgments).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FullAck {
    /// ssthresh, the second option. Much may leave at once where little is in flight.
    Ssthresh,
    /// What is in flight and one segment more, ssthresh at most, the first option: no burst, and
    /// slow start back to ssthresh.
    FlightSize,
}

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EcnMode {
    /// Not used.
    Off,
    /// One bit each way, one reaction per round trip (RFC 3168).
    Rfc3168,
    /// A counter of marks in every acknowledgment (RFC 9768); falls back to RFC 3168 with a peer
    /// that knows only that.
    Accecn,
    /// The handshake of RFC 3168, and an echo that tells exactly which segments were marked (RFC
    /// 8257 §3.2). Both ends must have it.
    Dctcp,
}

/// When the receiver may hold an acknowledgment back (RFC 5681 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DelayedAck {
    /// Every segment is acknowledged: `"off"`.
    #[serde(serialize_with = "off")]
    #[schemars(with = "OffWord")]
    Off,
    /// An acknowledgment for every so many segments, or after some time.
    On(DelayedAckTable),
}

/// The word that stands for no delay.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "stands for the word in the schema")]
enum OffWord {
    Off,
}

fn off<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("off")
}

impl<'de> Deserialize<'de> for DelayedAck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrTable;
        impl<'de> Visitor<'de> for WordOrTable {
            type Value = DelayedAck;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"off\" or a table such as { segments = 2, timeout = \"200 ms\" }")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<DelayedAck, E> {
                if word == "off" {
                    Ok(DelayedAck::Off)
                } else {
                    Err(E::invalid_value(serde::de::Unexpected::Str(word), &self))
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DelayedAck, A::Error> {
                DelayedAckTable::deserialize(MapAccessDeserializer::new(map)).map(DelayedAck::On)
            }
        }
        deserializer.deserialize_any(WordOrTable)
    }
}

/// Every switch of a resolved stack.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Settings {
    /// Payload bytes of a full segment; headers come on top.
    pub mss: u32,
    /// Initial congestion window in segments (RFC 6928; RFC 5681 §3.1).
    pub initial_cwnd: u32,
    /// Selective acknowledgments are offered and used (RFC 2018).
    pub sack: bool,
    /// Duplicate segments are reported (RFC 2883). Needs SACK.
    pub dsack: bool,
    /// Timestamps are offered and used (RFC 7323 §3).
    pub timestamps: bool,
    /// Window scaling is offered and used (RFC 7323 §2).
    pub window_scaling: bool,
    /// Repair of losses.
    pub recovery: Recovery,
    /// Duplicate acknowledgments that stand for a loss (RFC 5681 §3.2).
    pub dupthresh: u32,
    /// `dupthresh` rises to the reordering seen; where RACK finds the losses it has a window of its
    /// own instead.
    pub adaptive_dupthresh: bool,
    /// The most that `adaptive_dupthresh` raises it to.
    pub max_dupthresh: u32,
    /// A probe asks for acknowledgments when the tail of a flight may be lost (RFC 8985 §7). Needs
    /// `recovery = "rack"`.
    pub tlp: bool,
    /// How long a receiver may hold an acknowledgment back (TLP.max_ack_delay, RFC 8985 §7.2).
    pub max_ack_delay: Duration,
    /// What a recovery sends is clocked by what is delivered (RFC 9937). Needs a recovery guided by
    /// SACK.
    pub prr: bool,
    /// After a timeout new data tells whether it was needed (RFC 5682).
    pub frto: bool,
    /// Retransmissions that timestamps show to be needless are noticed (RFC 3522). Needs
    /// timestamps.
    pub eifel: bool,
    /// Reductions that prove needless are taken back (RFC 4015), told by duplicates reported
    /// (RFC 2883), `frto` and `eifel`.
    pub undo: bool,
    /// New data leaves on the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// A fast retransmit may follow another directly, at the very acknowledgment that ended it;
    /// RFC 6582 §3.2 step 2 asks for more than that to be acknowledged. `reno` always may.
    pub recover_inclusive: bool,
    /// Each partial acknowledgment restarts the retransmission timer ("slow but steady"), not only
    /// the first ("impatient", RFC 6582 §4).
    pub partial_ack_restarts_timer: bool,
    /// The window after a fast recovery without SACK. Only `new-reno` asks.
    pub full_ack: FullAck,
    /// Acknowledgments held back.
    pub delayed_ack: DelayedAck,
    /// Lower bound of the retransmission timeout (RFC 6298 (2.4)).
    pub min_rto: Duration,
    /// `min_rto` bounds the variance term of the timeout, which then exceeds the smoothed round-trip
    /// time by that much, instead of the whole.
    pub min_rto_over_srtt: bool,
    /// Upper bound of the retransmission timeout (RFC 6298 (2.5)).
    pub max_rto: Duration,
    /// Timeout before the first round-trip time is known (RFC 6298 (2.1)).
    pub initial_rto: Duration,
    /// Clock granularity G of RFC 6298 (2.3).
    pub clock_granularity: Duration,
    /// Timeouts without progress before the connection is given up (R2 of RFC 9293 §3.8.3).
    pub retries: u32,
    /// The same for a SYN.
    pub syn_retries: u32,
    /// Bytes accepted from the application and not yet acknowledged, at most.
    pub send_buffer: Limit,
    /// Bytes received in order and not yet read, at most: the largest window offered.
    pub receive_window: Limit,
    /// Small segments wait while data is outstanding (Nagle, RFC 9293 §3.7.4).
    pub nagle: bool,
    /// The congestion window grows only while it is what limits the sender (RFC 7661 §4.2;
    /// RFC 9438 §5.8).
    pub cwnd_validation: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// Time in TIME-WAIT: twice the maximum segment lifetime (RFC 9293 §3.4.2).
    pub time_wait: Duration,
    /// Early end of slow start, in the controls that have it and leave it to the stack.
    pub hystart: HyStart,
    /// What one acknowledgment adds in slow start at most: `L` of RFC 3465 §2.3, for the controls
    /// that leave it to the stack.
    pub slow_start_limit: Limit,
    /// What a reduction is taken from, in the controls that leave it to the stack.
    pub reduce_from: ReductionBase,
    /// In what windows are counted, in the controls that leave it to the stack.
    pub window_count: WindowCount,
    /// Growth per round trip in CUBIC until the first loss at least, as a share of the window.
    pub first_epoch_growth: Share,
    /// Growth in CUBIC's Reno-friendly region, where the control leaves it to the stack.
    pub reno_friendly: RenoFriendly,
    /// CUBIC counted in whole segments looks its function up only so often while the window stands.
    pub cubic_interval: Duration,
    /// Windows grow by what an acknowledgment delivers, not by what it acknowledges: segments that
    /// SACK or duplicates have told of before count no more, unless the path is known to reorder.
    pub grow_by_delivered: bool,
    /// The window after a pause (RFC 5681 §4.1).
    pub idle_restart: IdleRestart,
    /// Data leaves spread over the round trip, also where the control gives no rate of its own.
    /// Controls that do (`bbr`) are paced in any case.
    pub pacing: bool,
    /// Pacing in slow start, in percent of cwnd ÷ srtt (Linux: `tcp_pacing_ss_ratio`).
    pub pacing_ss_ratio: u32,
    /// Pacing in congestion avoidance, in percent of cwnd ÷ srtt (Linux: `tcp_pacing_ca_ratio`).
    pub pacing_ca_ratio: u32,
    /// Paced segments leave in bursts of so much time at the pacing rate, two segments at least
    /// and 64 KiB at most; zero for one by one.
    pub pacing_burst: Duration,
    /// The send buffer grows with the window, to `send_buffer` at most.
    pub send_autotuning: bool,
    /// The window offered begins at 64 KiB and grows with what the application takes per round
    /// trip, to `receive_window` at most (Fisk and Feng 2001).
    pub receive_autotuning: bool,
}

/// The window offered at first where it is tuned: half of the 128 KiB of Linux's `tcp_rmem`.
const FIRST_WINDOW: u64 = 65_536;

/// The largest window that can be offered: 65,535 shifted by 14 (RFC 7323 §2.3).
pub const MAX_WINDOW: u64 = 65_535 << 14;

impl Settings {
    /// Bytes of the send buffer; `u64::MAX` without limit.
    #[must_use]
    pub fn send_buffer_bytes(&self) -> u64 {
        self.bytes(self.send_buffer).unwrap_or(u64::MAX)
    }
    /// Bytes of the receive buffer, never more than can be offered.
    #[must_use]
    pub fn receive_window_bytes(&self) -> u64 {
        let most = if self.window_scaling {
            MAX_WINDOW
        } else {
            65_535
        };
        self.bytes(self.receive_window).unwrap_or(most).min(most)
    }
    /// Bytes of the window offered at first.
    #[must_use]
    pub fn first_receive_window(&self) -> u64 {
        let most = self.receive_window_bytes();
        if self.receive_autotuning {
            most.min(FIRST_WINDOW)
        } else {
            most
        }
    }
    /// Shift that lets 16 bits hold the receive window (RFC 7323 §2.3).
    #[must_use]
    pub fn window_shift(&self) -> u8 {
        let window = self.receive_window_bytes();
        (0..14)
            .find(|shift| window >> shift <= 65_535)
            .unwrap_or(14)
    }
    /// Payload of the largest segment in IP bytes, less the fixed headers: the value of the MSS
    /// option (RFC 6691).
    #[must_use]
    pub fn mss_option(&self) -> u16 {
        let options = if self.timestamps { TIMESTAMPS_SIZE } else { 0 };
        u16::try_from(self.mss + options).unwrap_or(u16::MAX)
    }
    /// The initial window in bytes.
    #[must_use]
    pub fn initial_cwnd_bytes(&self) -> Bytes {
        Bytes::new(u64::from(self.initial_cwnd) * u64::from(self.mss))
    }
    /// What a lone flow's congestion control is made from.
    #[must_use]
    pub fn init(&self) -> Init {
        let mss = Bytes::new(u64::from(self.mss));
        let limit = self.bytes(self.slow_start_limit).map(Bytes::new);
        Init {
            stack: StackHabits {
                hystart: self.hystart,
                slow_start_limit: limit.map_or(f64::INFINITY, |limit| limit.segments(mss)),
                reduce_from: self.reduce_from,
                paced: self.pacing,
                window_count: self.window_count,
                first_epoch_growth: self.first_epoch_growth,
                reno_friendly: self.reno_friendly,
                cubic_interval: self.cubic_interval,
            },
            ..Init::new(mss, self.initial_cwnd_bytes())
        }
    }
    /// Bounds of the retransmission timeout.
    #[must_use]
    #[inline]
    pub const fn rto_bounds(&self) -> Bounds {
        Bounds {
            min_rto: self.min_rto,
            over_srtt: self.min_rto_over_srtt,
            max_rto: self.max_rto,
            granularity: self.clock_granularity,
        }
    }
    fn bytes(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Unlimited | Limit::Bdp(_) => None,
            Limit::Packets(n) => Some(n.saturating_mul(u64::from(self.mss))),
            Limit::Bytes(bytes) => Some(bytes.get()),
        }
    }

    /// These switches with a scenario's over them.
    ///
    /// # Errors
    /// If a value is out of range, contradicts another, or asks for what is not modelled.
    pub fn with(&self, over: &Overrides) -> Result<Self, Problem> {
        let mut s = self.clone();
        if let Some(mss) = over.mss {
            s.mss = u32::try_from(mss.get()).unwrap_or(u32::MAX);
        }
        macro_rules! set {
            ($($field:ident)*) => { $(if let Some(value) = over.$field { s.$field = value; })* };
        }
        set! {
            initial_cwnd sack dsack timestamps window_scaling recovery dupthresh adaptive_dupthresh
            max_dupthresh tlp max_ack_delay prr frto eifel undo limited_transmit recover_inclusive
            partial_ack_restarts_timer full_ack delayed_ack min_rto min_rto_over_srtt max_rto initial_rto
            clock_granularity retries syn_retries send_buffer receive_window nagle cwnd_validation
            ecn time_wait hystart slow_start_limit reduce_from window_count
            first_epoch_growth reno_friendly cubic_interval
            grow_by_delivered idle_restart pacing
            pacing_ss_ratio pacing_ca_ratio pacing_burst send_autotuning receive_autotuning
        }
        match (over.rack, over.recovery) {
            (Some(true), None) => s.recovery = Recovery::Rack,
            (Some(false), None) if s.recovery == Recovery::Rack => s.recovery = Recovery::Rfc6675,
            (Some(rack), Some(recovery)) if rack != (recovery == Recovery::Rack) => {
                return Err(Problem {
                    field: "rack",
                    message: "contradicts recovery, which says how losses are found".to_owned(),
                });
            }
            _ => {}
        }
        // What needs something that was turned off goes with it, unless it was asked for by name.
        if over.sack == Some(false) {
            if over.recovery.is_none() && over.rack != Some(true) && s.recovery.needs_sack() {
                s.recovery = Recovery::NewReno;
            }
            s.dsack = over.dsack.unwrap_or(false);
        }
        if over.timestamps == Some(false) {
            s.eifel = over.eifel.unwrap_or(false);
        }
        if s.recovery != Recovery::Rack {
            s.tlp = over.tlp.unwrap_or(false);
        }
        if !s.recovery.needs_sack() {
            s.prr = over.prr.unwrap_or(false);
        }
        if over.max_dupthresh.is_none() {
            s.max_dupthresh = s.max_dupthresh.max(s.dupthresh);
        }
        s.check().map_err(|problem| match problem.field {
            // Named as the scenario has it.
            "recovery" if over.recovery.is_none() && over.rack.is_some() => Problem {
                field: "rack",
                ..problem
            },
            _ => problem,
        })?;
        Ok(s)
    }

    fn check_pacing(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        for (field, ratio) in [
            ("pacing_ss_ratio", self.pacing_ss_ratio),
            ("pacing_ca_ratio", self.pacing_ca_ratio),
        ] {
            if !(1..=1000).contains(&ratio) {
                return problem(field, format!("{ratio} % is outside 1 to 1000 %"));
            }
        }
        if self.pacing_burst > Duration::from_secs(1) {
            return problem(
                "pacing_burst",
                format!("{} is outside 0 to 1 s", self.pacing_burst),
            );
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        let most = u32::from(u16::MAX) - HEADERS - TIMESTAMPS_SIZE;
        if !(64..=most).contains(&self.mss) {
            return problem(
                "mss",
                format!("{} bytes is outside 64 to {most} bytes", self.mss),
            );
        }
        if !(1..=1_000_000).contains(&self.initial_cwnd) {
            return problem(
                "initial_cwnd",
                format!("{} is outside 1 to 1000000 segments", self.initial_cwnd),
            );
        }
        self.check_recovery()?;
        if let DelayedAck::On(delayed) = self.delayed_ack {
            if !(1..=1000).contains(&delayed.segments) {
                return problem(
                    "delayed_ack",
                    format!("{} segments is outside 1 to 1000", delayed.segments),
                );
            }
            if delayed.timeout.is_zero() || delayed.timeout > Duration::from_secs(10) {
                return problem(
                    "delayed_ack",
                    "the timeout must lie in 1 ps to 10 s".to_owned(),
                );
            }
            if delayed
                .max_timeout
                .is_some_and(|max| max < delayed.timeout || max > Duration::from_secs(10))
            {
                return problem(
                    "delayed_ack",
                    format!(
                        "max_timeout must lie in timeout, {}, to 10 s",
                        delayed.timeout
                    ),
                );
            }
            if delayed.quick_segments > 1000 {
                return problem(
                    "delayed_ack",
                    format!(
                        "{} quick segments is outside 0 to 1000",
                        delayed.quick_segments
                    ),
                );
            }
        }
        self.check_pacing()?;
        if self.min_rto.is_zero() || self.min_rto > self.max_rto {
            return problem(
                "min_rto",
                format!(
                    "{} is outside 1 ps to max_rto, {}",
                    self.min_rto, self.max_rto
                ),
            );
        }
        if self.initial_rto.is_zero() || self.initial_rto > self.max_rto {
            return problem(
                "initial_rto",
                format!(
                    "{} is outside 1 ps to max_rto, {}",
                    self.initial_rto, self.max_rto
                ),
            );
        }
        for (field, limit) in [
            ("send_buffer", self.send_buffer),
            ("receive_window", self.receive_window),
            ("slow_start_limit", self.slow_start_limit),
        ] {
            if matches!(limit, Limit::Bdp(_)) {
                return problem(field, "a multiple of the bandwidth-delay product is a queue's; expected bytes, packets or \"unlimited\"".to_owned());
            }
            if self
                .bytes(limit)
                .is_some_and(|bytes| bytes < u64::from(self.mss))
            {
                return problem(
                    field,
                    format!("{limit} is less than one segment of {} bytes", self.mss),
                );
            }
        }
        Ok(())
    }

    /// What losses are found and repaired by.
    fn check_recovery(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        if !(1..=1_000_000).contains(&self.dupthresh) {
            return problem(
                "dupthresh",
                format!("{} is outside 1 to 1000000", self.dupthresh),
            );
        }
        if !(self.dupthresh..=1_000_000).contains(&self.max_dupthresh) {
            return problem(
                "max_dupthresh",
                format!(
                    "{} is outside dupthresh, {}, to 1000000",
                    self.max_dupthresh, self.dupthresh
                ),
            );
        }
        let needs = [
            (
                "recovery",
                self.recovery == Recovery::Rfc6675 && !self.sack,
                "\"rfc6675\" needs sack = true",
            ),
            (
                "recovery",
                self.recovery == Recovery::Rack && !self.sack,
                "\"rack\" needs sack = true",
            ),
            (
                "tlp",
                self.tlp && self.recovery != Recovery::Rack,
                "needs recovery = \"rack\"",
            ),
            (
                "prr",
                self.prr && !self.recovery.needs_sack(),
                "needs recovery = \"rfc6675\" or \"rack\"",
            ),
            (
                "eifel",
                self.eifel && !self.timestamps,
                "needs timestamps = true",
            ),
        ];
        if let Some((field, _, message)) = needs.into_iter().find(|(_, broken, _)| *broken) {
            return problem(field, message.to_owned());
        }
        if self.dsack && !self.sack {
            return problem("dsack", "needs sack = true".to_owned());
        }
        Ok(())
    }
}

/// A switch that cannot be as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Problem {
    /// The key of [`Overrides`].
    pub field: &'static str,
    /// What is wrong with it and what was expected.
    pub message: String,
}

/// What a scenario's `transport` sets over the stack profile; the meaning of each key is that of
/// the field of [`Settings`] with its name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Payload bytes of a full segment; headers come on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<Bytes>,
    /// Initial congestion window in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_cwnd: Option<u32>,
    /// Selective acknowledgments (RFC 2018). Off takes `recovery` from `rfc6675` and `rack` to
    /// `new-reno`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Duplicate segments are reported (RFC 2883).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsack: Option<bool>,
    /// Timestamps (RFC 7323).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Window scaling (RFC 7323).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Repair of losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Duplicate acknowledgments that stand for a loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dupthresh: Option<u32>,
    /// The threshold rises to the reordering seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_dupthresh: Option<bool>,
    /// The most that it rises to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dupthresh: Option<u32>,
    /// Loss detection by time (RFC 8985): short for `recovery = "rack"`; off takes `rack` back to
    /// `rfc6675`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<bool>,
    /// Tail loss probes (RFC 8985 §7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlp: Option<bool>,
    /// How long a receiver may hold an acknowledgment back, as probes assume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ack_delay: Option<Duration>,
    /// Proportional rate reduction (RFC 9937).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// Forward RTO recovery (RFC 5682).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frto: Option<bool>,
    /// Detection of needless retransmissions by timestamps (RFC 3522).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eifel: Option<bool>,
    /// Reductions that prove needless are taken back (RFC 4015).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<bool>,
    /// New data on the first two duplicate acknowledgments (RFC 3042).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// A fast retransmit may follow another at the acknowledgment that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recover_inclusive: Option<bool>,
    /// Each partial acknowledgment restarts the retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_ack_restarts_timer: Option<bool>,
    /// The window with which NewReno leaves fast recovery (RFC 6582 §3.2 step 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_ack: Option<FullAck>,
    /// `"off"`, or how many segments and how long an acknowledgment may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<DelayedAck>,
    /// Lower bound of the retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Duration>,
    /// `min_rto` bounds what the timeout exceeds the smoothed round-trip time by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto_over_srtt: Option<bool>,
    /// Upper bound of the retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rto: Option<Duration>,
    /// Timeout before the first round-trip time is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Duration>,
    /// Clock granularity of the timeout's arithmetic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_granularity: Option<Duration>,
    /// Timeouts without progress before the connection is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The same for a SYN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_retries: Option<u32>,
    /// Data not yet acknowledged, at most: a size, packets or `"unlimited"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Limit>,
    /// Data received and not yet read, at most: a size, packets or `"unlimited"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<Limit>,
    /// Small segments wait while data is outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// The congestion window grows only while it is what limits the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_validation: Option<bool>,
    /// Explicit congestion notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnMode>,
    /// Time in TIME-WAIT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_wait: Option<Duration>,
    /// Early end of slow start; a control's own parameter wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hystart: Option<HyStart>,
    /// What one acknowledgment adds in slow start at most (RFC 3465 §2.3): packets, a size or
    /// `"unlimited"`; a control's own parameter wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_start_limit: Option<Limit>,
    /// What a reduction is taken from; a control's own parameter wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_from: Option<ReductionBase>,
    /// In what windows are counted; a control's own parameter wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_count: Option<WindowCount>,
    /// Growth per round trip in CUBIC until the first loss at least, as a share of the window; the
    /// control's own parameter wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_epoch_growth: Option<Share>,
    /// Growth in CUBIC's Reno-friendly region; the control's own parameter wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reno_friendly: Option<RenoFriendly>,
    /// How often CUBIC in whole segments looks its function up while the window stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cubic_interval: Option<Duration>,
    /// Windows grow by what an acknowledgment delivers, not by what it acknowledges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grow_by_delivered: Option<bool>,
    /// The window after a pause (RFC 5681 §4.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_restart: Option<IdleRestart>,
    /// Pacing of controls that give no rate of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Its rate in slow start, in percent of cwnd ÷ srtt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_ss_ratio: Option<u32>,
    /// Its rate in congestion avoidance, in percent of cwnd ÷ srtt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_ca_ratio: Option<u32>,
    /// Paced segments leave in bursts of so much time at the pacing rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_burst: Option<Duration>,
    /// The send buffer grows with the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_autotuning: Option<bool>,
    /// The window offered grows with what the application takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_autotuning: Option<bool>,
}
