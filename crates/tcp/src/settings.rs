//! Switches of an endpoint, and the overrides of a scenario.

use anabranch_core::units::{Bytes, Duration, text::Limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use anabranch_congestion::{Arithmetic, Init, StackHabits, params::ReductionBase};

mod check;
mod removed;
mod reordering;
mod turned;

pub use self::{check::Problem, removed::REMOVED};
pub use super::policy::{
    DelayedAck, EcnMode, MtuDiscovery, Receiver, Recovery, RecoveryPace, Segmentation, Timers,
    WindowRules,
};
pub use anabranch_congestion::{IdleRestart, hystart::Kind as HyStart};

use super::rtt::Bounds;
use crate::remedy;
use anabranch_wire::segment::TIMESTAMPS_SIZE;

/// Declares each switch once: documentation, name, type and bounds. [`Settings`] has the values of
/// a profile, [`Overrides`] the values that a scenario's `transport` sets. `special` switches have
/// another type in the overrides, and `shorthands` have no separate value; `turned.rs` reads both.
macro_rules! switches {
    (
        special { $($(#[doc = $special_doc:literal])+ $special:ident: $value:ty, $given:ty $(, skipped if $skip:literal)?;)+ }
        switches { $($(#[doc = $doc:literal])+ $name:ident: $type:ty $(, $least:expr => $most:expr)?;)+ }
        shorthands { $($(#[doc = $short_doc:literal])+ $short:ident: $short_type:ty;)+ }
    ) => {
        /// Every switch of a resolved stack.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct Settings {
            $($(#[doc = $special_doc])+ $(#[serde(skip_serializing_if = $skip)])? pub $special: $value,)+
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        /// Switches that a scenario's `transport` sets over the stack profile.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Overrides {
            $($(#[doc = $special_doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $special: Option<$given>,)+
            $($(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
            $($(#[doc = $short_doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $short: Option<$short_type>,)+
        }

        impl Settings {
            /// The name of every switch.
            pub const SWITCHES: &[&str] = &[$(stringify!($special),)+ $(stringify!($name),)+];
            /// Names that set a switch together with others.
            pub const SHORTHANDS: &[&str] = &[$(stringify!($short),)+];

            /// Sets the switches that a scenario has set, except special ones.
            fn set(&mut self, over: &Overrides) {
                $(if let Some(value) = over.$name { self.$name = value; })+
            }

            /// Checks that each number is within its bounds.
            fn check_bounds(&self) -> Result<(), Problem> {
                $($(
                    if !($least..=$most).contains(&self.$name) {
                        return Err(Problem {
                            field: stringify!($name),
                            message: format!("{} is outside {} to {}", self.$name, $least, $most),
                        });
                    }
                )?)+
                Ok(())
            }
        }
    };
}

switches! {
special {
    /// Payload octets of a full segment, without headers.
    mss: u32, Bytes;
    /// A reordering remedy, which decides by more than `dupthresh` whether duplicate
    /// acknowledgments indicate a loss. RACK, which marks segments lost by time, has none.
    reordering: Option<remedy::Choice>, remedy::Choice, skipped if "Option::is_none";
}
switches {
    /// Initial congestion window in segments (RFC 6928; RFC 5681 §3.1).
    initial_cwnd: u32, 1 => 1_000_000;
    /// SACK is offered and used (RFC 2018). Off changes `recovery` from `rfc6675` and `rack` to
    /// `new-reno`.
    sack: bool;
    /// Duplicate segments are reported (RFC 2883). Needs SACK.
    dsack: bool;
    /// Timestamps are offered and used (RFC 7323 §3).
    timestamps: bool;
    /// Window scaling is offered and used (RFC 7323 §2).
    window_scaling: bool;
    /// Repair of losses.
    recovery: Recovery;
    /// Data that a recovery may send with each acknowledgment.
    recovery_pace: RecoveryPace;
    /// Duplicate acknowledgments after which a segment is marked lost (RFC 5681 §3.2).
    dupthresh: u32, 1 => 1_000_000;
    /// Upper bound of `dupthresh`, which rises with the reordering seen (Linux:
    /// `tcp_max_reordering`); equal to `dupthresh`: it never rises. RACK has a reordering window
    /// instead. Without SACK and with `recovery_pace = "prr"`, more duplicates than segments
    /// outstanding set `dupthresh` to their number, which may be less than before.
    max_dupthresh: u32, 1 => 1_000_000;
    /// Tail loss probes (RFC 8985 §7). Need `recovery = "rack"`.
    tlp: bool;
    /// After a timeout new data shows whether it was spurious (RFC 5682).
    frto: bool;
    /// Timestamps show whether a retransmission was spurious (RFC 3522). Needs timestamps.
    eifel: bool;
    /// Spurious reductions, found by DSACK (RFC 2883), `frto` or `eifel`, are undone (RFC 4015).
    undo: bool;
    /// New data leaves on the first two duplicate acknowledgments (RFC 3042).
    limited_transmit: bool;
    /// A fast retransmit may follow at the very acknowledgment that ended the last recovery; RFC
    /// 6582 §3.2 step 2 asks for more to be acknowledged. `recovery = "reno"` always permits it.
    recover_inclusive: bool;
    /// Each partial acknowledgment restarts the retransmission timer ("slow but steady"), not only
    /// the first ("impatient", RFC 6582 §4).
    partial_ack_restarts_timer: bool;
    /// Delayed acknowledgments (RFC 5681 §4.2).
    delayed_ack: DelayedAck;
    /// Acknowledgments sent at once, windows offered, and segments answered.
    receiver: Receiver;
    /// Least time between two challenge ACKs (RFC 5961 §7; Linux: `tcp_invalid_ratelimit`); zero
    /// for no bound.
    challenge_ack_interval: Duration, Duration::ZERO => Duration::from_secs(60);
    /// How round-trip times are measured and timers set.
    timers: Timers;
    /// Lower bound of the retransmission timeout (RFC 6298 (2.4)).
    min_rto: Duration;
    /// Upper bound of the retransmission timeout (RFC 6298 (2.5)).
    max_rto: Duration;
    /// Timeout before the first round-trip time is known (RFC 6298 (2.1)).
    initial_rto: Duration;
    /// Granularity G of the clock (RFC 6298 (2.3); Linux: `CONFIG_HZ`). `timers` says which timers
    /// end with its ticks.
    clock_tick: Duration, Duration::ZERO => Duration::from_secs(10);
    /// Timeouts without progress before the connection is given up (R2 of RFC 9293 §3.8.3; Linux:
    /// `tcp_retries2`), and probes of a closed window without answer.
    retries: u32;
    /// Retransmissions of a SYN before the connection is given up (Linux: `tcp_syn_retries`).
    syn_retries: u32;
    /// Retransmissions of a SYN/ACK before the listener discards the connection (Linux:
    /// `tcp_synack_retries`).
    syn_ack_retries: u32;
    /// Limit of octets accepted from the application and not yet acknowledged.
    send_buffer: Limit;
    /// Initial send buffer, which grows with cwnd up to `send_buffer` (Linux: `tcp_wmem`); zero: it
    /// does not grow.
    send_autotuning_start: Bytes;
    /// Limit of octets received in order and not yet read: the largest window offered.
    receive_window: Limit;
    /// The window offered begins with 64 KiB and grows with the data that the application reads per
    /// round trip, up to `receive_window` (Fisk and Feng 2001).
    receive_autotuning: bool;
    /// Small segments wait while data is outstanding (Nagle, RFC 9293 §3.7.4).
    nagle: bool;
    /// Unit that the sender hands to the host: segments or TSO bursts.
    segmentation: Segmentation;
    /// cwnd grows only while it limits the sender (RFC 7661 §4.4; RFC 9438 §5.8). With
    /// `idle_restart = "rfc7661"` this binds windows that are not validated.
    cwnd_validation: bool;
    /// When cwnd grows, and which events reduce it.
    window_rules: WindowRules;
    /// cwnd after a pause (RFC 5681 §4.1, RFC 7661).
    idle_restart: IdleRestart;
    /// Explicit congestion notification.
    ecn: EcnMode;
    /// How the size of segments follows the path MTU (RFC 1191, RFC 4821).
    mtu_discovery: MtuDiscovery;
    /// Time in TIME-WAIT: twice the maximum segment lifetime (RFC 9293 §3.4.2).
    time_wait: Duration;
    /// Early end of slow start, in controls that leave it to the stack.
    hystart: HyStart;
    /// Limit of the growth by one acknowledgment in slow start: `L` of RFC 3465 §2.3, in controls
    /// that leave it to the stack.
    slow_start_limit: Limit;
    /// Base of a reduction: cwnd or FlightSize, in controls that leave it to the stack.
    reduce_from: ReductionBase;
    /// Unit of windows and arithmetic of CUBIC's function, in controls that leave them to the
    /// stack.
    arithmetic: Arithmetic;
    /// Data is sent spread over the round trip: at 2 cwnd ÷ srtt in slow start, then 1.2 cwnd ÷
    /// srtt, in bursts of a millisecond (Linux: `fq`, `tcp_pacing_ss_ratio`,
    /// `tcp_pacing_ca_ratio`). Controls that set a pacing rate are always paced.
    pacing: bool;
}
shorthands {
    /// Short for `recovery = "rack"` (RFC 8985); off takes `rack` back to `rfc6675`.
    rack: bool;
    /// Short for `recovery_pace = "prr"` (RFC 9937); off takes `prr` back to `pipe`.
    prr: bool;
}
}

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
            most.min(Receiver::first_window())
        } else {
            most
        }
    }
    /// Window that a SYN or SYN/ACK offers, in octets, for segments of `segment` octets: 65,535 at
    /// most (RFC 7323 §2.2).
    #[must_use]
    pub fn receive_window_of_syn(&self, segment: u64) -> u64 {
        let most = self.first_receive_window().min(65_535);
        if self.receive_autotuning && self.receiver.offers_whole_segments() && segment <= most {
            most - most % segment
        } else {
            most
        }
    }
    /// Window scale with which 16 bits can express the receive window (RFC 7323 §2.3), or the
    /// memory of its buffer.
    #[must_use]
    pub fn window_shift(&self) -> u8 {
        let window = self.receive_window_bytes();
        let told = if self.receive_autotuning && self.receiver.scales_memory() {
            2 * window
        } else {
            window
        };
        (0..14).find(|shift| told >> shift <= 65_535).unwrap_or(14)
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
    /// Initial values for the congestion control of a lone flow.
    #[must_use]
    pub fn init(&self) -> Init {
        let mss = Bytes::new(u64::from(self.mss));
        let limit = self.bytes(self.slow_start_limit).map(Bytes::new);
        Init {
            stack: self.arithmetic.in_habits(StackHabits {
                hystart: self.hystart,
                slow_start_limit: limit.map_or(f64::INFINITY, |limit| limit.segments(mss)),
                reduce_from: self.reduce_from,
                paced: self.pacing,
                clock_tick: self.timer_tick(),
                ..StackHabits::default()
            }),
            ..Init::new(mss, self.initial_cwnd_bytes())
        }
    }
    /// Tick at which timers of RACK and TLP end; zero for none.
    #[must_use]
    #[inline]
    pub const fn timer_tick(&self) -> Duration {
        if self.timers.end_with_ticks() {
            self.clock_tick
        } else {
            Duration::ZERO
        }
    }
    /// Whether `dupthresh` rises with the reordering seen.
    #[must_use]
    #[inline]
    pub const fn adapts_dupthresh(&self) -> bool {
        self.max_dupthresh > self.dupthresh
    }
    /// Changes `dupthresh`; a fixed one stays fixed.
    pub fn set_dupthresh(&mut self, dupthresh: u32) {
        let most = if self.adapts_dupthresh() {
            self.max_dupthresh
        } else {
            0
        };
        self.dupthresh = dupthresh;
        self.max_dupthresh = most.max(dupthresh);
    }
    /// Bounds of the retransmission timeout.
    #[must_use]
    #[inline]
    pub const fn rto_bounds(&self) -> Bounds {
        Bounds {
            min_rto: self.min_rto,
            by_round: self.timers.keep_variance(),
            max_rto: self.max_rto,
            granularity: self.clock_tick,
            whole_ticks: self.timers.end_with_ticks(),
        }
    }
    fn bytes(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Unlimited | Limit::Bdp(_) => None,
            Limit::Packets(n) => Some(n.saturating_mul(u64::from(self.mss))),
            Limit::Bytes(bytes) => Some(bytes.get()),
        }
    }
}
