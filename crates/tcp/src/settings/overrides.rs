//! What a scenario may set over a profile's switches.

use anabranch_core::units::{Bytes, Duration, text::Limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    super::recovery::remedy, DelayedAck, EcnMode, FullAck, HyStart, IdleRestart, Problem, Recovery,
    ReductionBase, RenoFriendly, Settings, Share, WindowCount,
};

impl Settings {
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
            max_dupthresh tlp max_ack_delay prr prr_at_marks frto eifel undo adapt_rto timeout_reduces_again limited_transmit
            recover_inclusive partial_ack_restarts_timer full_ack rtt_from_sack delayed_ack min_rto min_rto_over_srtt max_rto initial_rto rate_halving counted_pipe retransmission_restarts_timer
            clock_granularity timer_tick clock_tick retries retries_base_rto syn_retries syn_linear_timeouts syn_ack_retries rtt_after_syn_timeout send_buffer receive_window nagle cwnd_validation slow_start_half_full
            ecn time_wait hystart slow_start_limit reduce_from window_count
            first_epoch_growth reno_friendly cubic_interval cubic_count_outlives undo_restores_w_max
            paws_tolerance disordered_acks limit_answers sack_compression sack_compression_delay sack_compression_slack push_bursts defer_small_bursts lazy_window_updates lone_handshake_ack accecn_option challenge_ack_interval
            grow_by_delivered recovery_end_grows recovery_again occupied_buffer acks_wait_for_read idle_restart pacing
            pacing_ss_ratio pacing_ca_ratio pacing_burst pacing_catches_up send_autotuning send_autotuning_start receive_autotuning autotuning_start
        }
        if let Some(choice) = &over.reordering {
            s.take_remedy(choice, over)?;
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
        if over.accecn_option == Some(true) && s.ecn != EcnMode::Accecn {
            return Err(Problem {
                field: "accecn_option",
                message: "needs ecn = \"accecn\"".to_owned(),
            });
        }
        // What needs something that was turned off goes with it, unless it was asked for by name.
        if over.sack == Some(false) {
            if over.recovery.is_none() && over.rack != Some(true) && s.recovery.needs_sack() {
                s.recovery = Recovery::NewReno;
            }
            s.dsack = over.dsack.unwrap_or(false);
        }
        if over.ecn.is_some() {
            s.accecn_option = over.accecn_option.unwrap_or(s.ecn == EcnMode::Accecn);
        }
        if over.timestamps == Some(false) {
            s.eifel = over.eifel.unwrap_or(false);
        }
        if s.recovery != Recovery::Rack {
            s.tlp = over.tlp.unwrap_or(false);
        }
        if !s.recovery.needs_sack() {
            s.prr = over.prr.unwrap_or(false);
            s.rate_halving = over.rate_halving.unwrap_or(false);
        }
        if s.recovery != Recovery::Rfc6675 {
            s.counted_pipe = over.counted_pipe.unwrap_or(false);
        }
        // Of those that exclude each other the one asked for stays.
        if over.prr == Some(true) || over.counted_pipe == Some(true) {
            s.rate_halving = over.rate_halving.unwrap_or(false);
        }
        if over.prr == Some(true) || over.rate_halving == Some(true) {
            s.counted_pipe = over.counted_pipe.unwrap_or(false);
        }
        if over.rate_halving == Some(true) || over.counted_pipe == Some(true) {
            s.prr = over.prr.unwrap_or(false);
        }
        if !s.prr {
            s.prr_at_marks = over.prr_at_marks.unwrap_or(false);
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
    /// A remedy for reordering: what duplicate acknowledgments stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<remedy::Choice>,
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
    /// A reduction that a mark asks for is one as in a recovery, step by step over a round trip. Off without `prr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prr_at_marks: Option<bool>,
    /// A recovery sends a segment for every second acknowledgment (rate halving, RFC 6937 §1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_halving: Option<bool>,
    /// A recovery counts what is in flight by acknowledgments (Fall and Floyd 1996).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_pipe: Option<bool>,
    /// Forward RTO recovery (RFC 5682).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frto: Option<bool>,
    /// Detection of needless retransmissions by timestamps (RFC 3522).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eifel: Option<bool>,
    /// Reductions that prove needless are taken back (RFC 4015).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<bool>,
    /// A timeout during a fast recovery reduces once more (RFC 5681 §4.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_reduces_again: Option<bool>,
    /// After a spurious timeout the estimate of the round-trip time begins anew (RFC 4015 §3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapt_rto: Option<bool>,
    /// New data on the first two duplicate acknowledgments (RFC 3042).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// A fast retransmit may follow another at the acknowledgment that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recover_inclusive: Option<bool>,
    /// Each partial acknowledgment restarts the retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_ack_restarts_timer: Option<bool>,
    /// Each retransmission of a recovery restarts the retransmission timer (RFC 6675 §6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmission_restarts_timer: Option<bool>,
    /// The window with which NewReno leaves fast recovery (RFC 6582 §3.2 step 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_ack: Option<FullAck>,
    /// Round-trip times are measured from what SACK reports, too (RFC 7323 §4.1 does not).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_from_sack: Option<bool>,
    /// `"off"`, or how many segments and how long an acknowledgment may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<DelayedAck>,
    /// The retransmission timer and round-trip times count ticks of so long; 0 s: no ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_tick: Option<Duration>,
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
    /// The timers of RACK and of tail loss probes, and CUBIC in whole segments, count ticks of so long; 0 s: no ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_tick: Option<Duration>,
    /// Timeouts without progress before the connection is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The first of `retries` timeouts that stand for a time instead of a count; 0 s: a count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_base_rto: Option<Duration>,
    /// Retransmissions of a SYN before the connection is given up, besides `syn_linear_timeouts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_retries: Option<u32>,
    /// Timeouts of a SYN before the interval between them doubles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_linear_timeouts: Option<u32>,
    /// Retransmissions of the answer to a SYN before the listener forgets the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_ack_retries: Option<u32>,
    /// Timestamps tell the round-trip time of a handshake whose SYN was retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_after_syn_timeout: Option<bool>,
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
    /// In slow start the congestion window grows up to twice of what was outstanding, filled or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_start_half_full: Option<bool>,
    /// Explicit congestion notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnMode>,
    /// The AccECN option (RFC 9768 §3.2.3): on with `ecn = "accecn"` unless turned off here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accecn_option: Option<bool>,
    /// Least time between two challenge acknowledgments of a connection (RFC 5961 §7), 1 min at
    /// most; zero for no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge_ack_interval: Option<Duration>,
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
    /// CUBIC in whole segments goes on counting after a reduction what was acknowledged before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cubic_count_outlives: Option<bool>,
    /// CUBIC forgets a reduction that proves needless altogether (RFC 9438 §4.9). Else window and
    /// ssthresh come back; W_max stays that of the reduction, and a new stage begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_restores_w_max: Option<bool>,
    /// Milliseconds by which a segment's timestamp may be older than the last one; what is older still is
    /// dropped (PAWS, RFC 7323 §5.3 R1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paws_tolerance: Option<u32>,
    /// What repeats the last acknowledgment and was overtaken passes PAWS (RFC 7323 §5.3 R1: no).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disordered_acks: Option<bool>,
    /// Answers to segments without data that are out of range leave no more often than challenges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_answers: Option<bool>,
    /// From the fourth segment out of order on one acknowledgment reports so many; 0 for each at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack_compression: Option<u32>,
    /// How long a report waits for `sack_compression`, a twentieth of the round-trip time at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack_compression_delay: Option<Duration>,
    /// A report that waits for `sack_compression` leaves so much after `sack_compression_delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack_compression_slack: Option<Duration>,
    /// The last of segments that leave together has PSH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_bursts: Option<bool>,
    /// Less than what is handed over for segmentation as one waits for the next acknowledgment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defer_small_bursts: Option<bool>,
    /// Reading is told of only where the window becomes twice what the sender knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lazy_window_updates: Option<bool>,
    /// The acknowledgment that ends the handshake leaves by itself although data could carry it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lone_handshake_ack: Option<bool>,
    /// Windows grow by what an acknowledgment delivers, not by what it acknowledges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grow_by_delivered: Option<bool>,
    /// The acknowledgment that ends a recovery lets the window grow by what it delivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_end_grows: Option<bool>,
    /// A recovery that ends while something that it retransmitted has yet to come begins anew, with another reduction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_again: Option<bool>,
    /// What is unread, or waits beyond a gap, takes from the window offered where that is tuned, and from what is measured for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupied_buffer: Option<bool>,
    /// An acknowledgment that could not offer as much as the last one did leaves once the data has been read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks_wait_for_read: Option<bool>,
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
    /// A burst that leaves late takes as much less time at the rate, half of it at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_catches_up: Option<bool>,
    /// The send buffer grows with the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_autotuning: Option<bool>,
    /// What a send buffer that grows begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_autotuning_start: Option<Bytes>,
    /// The window offered grows with what the application takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_autotuning: Option<bool>,
    /// What a window that is tuned grows to before anything has been measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autotuning_start: Option<Bytes>,
}
