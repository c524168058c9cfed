//! Every switch of an endpoint, and what a scenario may set over a profile's.

use anabranch_core::units::{Bytes, Duration, text::Limit};
use serde::Serialize;

use anabranch_congestion::{
    Init, StackHabits,
    params::{ReductionBase, RenoFriendly, Share, WindowCount},
};

mod check;
mod delayed_ack;
mod mode;
mod overrides;
mod reordering;

pub use self::{
    check::Problem,
    delayed_ack::DelayedAck,
    mode::{EcnMode, FullAck, Recovery},
    overrides::Overrides,
};
pub use anabranch_congestion::{IdleRestart, hystart::Kind as HyStart};

use super::{recovery::remedy, rtt::Bounds, segment::TIMESTAMPS_SIZE};

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
    /// A remedy for reordering decides what duplicates stand for, instead of `dupthresh` alone; where
    /// RACK finds the losses there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<remedy::Choice>,
    /// A probe asks for acknowledgments when the tail of a flight may be lost (RFC 8985 §7). Needs
    /// `recovery = "rack"`.
    pub tlp: bool,
    /// How long a receiver may hold an acknowledgment back (TLP.max_ack_delay, RFC 8985 §7.2).
    pub max_ack_delay: Duration,
    /// What a recovery sends is clocked by what is delivered (RFC 9937). Needs a recovery guided by
    /// SACK.
    pub prr: bool,
    /// A reduction that a mark asks for is one as in a recovery: what leaves is clocked by what is delivered, for a round trip
    /// in which the window does not grow. Without it what is in flight has to fall below the window first, which grows
    /// meanwhile (RFC 3168 §6.1.2 leaves both open). Needs `prr`.
    pub prr_at_marks: bool,
    /// A recovery sends a segment for every second acknowledgment, and the window is never more than a
    /// segment above what is in flight (rate halving, RFC 6937 §1): Linux before PRR. Needs a recovery
    /// guided by SACK; excludes `prr`.
    pub rate_halving: bool,
    /// A recovery counts what is in flight by acknowledgments and repairs holes before it sends new
    /// data, as the first TCP with SACK did (Fall and Floyd 1996). Needs `recovery = "rfc6675"`; excludes
    /// `prr` and `rate_halving`.
    pub counted_pipe: bool,
    /// After a timeout new data tells whether it was needed (RFC 5682).
    pub frto: bool,
    /// Retransmissions that timestamps show to be needless are noticed (RFC 3522). Needs
    /// timestamps.
    pub eifel: bool,
    /// Reductions that prove needless are taken back (RFC 4015), told by duplicates reported
    /// (RFC 2883), `frto` and `eifel`.
    pub undo: bool,
    /// A timeout during a fast recovery, which has reduced already, reduces once more: the loss of a
    /// retransmission is a second sign of congestion (RFC 5681 §3.1 equation 4, §4.3). If not,
    /// ssthresh stays where the recovery has set it.
    pub timeout_reduces_again: bool,
    /// After a timeout that proves spurious the next round-trip time begins the estimate anew, no
    /// lower than it was (RFC 4015 §3.3). Needs `undo`.
    pub adapt_rto: bool,
    /// New data leaves on the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// A fast retransmit may follow another directly, at the very acknowledgment that ended it;
    /// RFC 6582 §3.2 step 2 asks for more than that to be acknowledged. `reno` always may.
    pub recover_inclusive: bool,
    /// Each partial acknowledgment restarts the retransmission timer ("slow but steady"), not only
    /// the first ("impatient", RFC 6582 §4).
    pub partial_ack_restarts_timer: bool,
    /// Each retransmission of a recovery restarts the retransmission timer (RFC 6675 §6), not only what
    /// acknowledges new data.
    pub retransmission_restarts_timer: bool,
    /// The window after a fast recovery without SACK. Only `new-reno` asks.
    pub full_ack: FullAck,
    /// Round-trip times are measured from segments that SACK reports for the first time, too, not
    /// only where an acknowledgment acknowledges new data (RFC 7323 §4.1).
    pub rtt_from_sack: bool,
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
    /// The retransmission timer counts ticks of so long, and so do round-trip times: a timeout of n ticks ends with the
    /// n-th tick from when it was set, and a round-trip time is how many ticks it saw, one more at first (Wright and
    /// Stevens, TCP/IP Illustrated, Volume 2, ch. 25). Ticks are counted from the start of the run. Zero: no ticks.
    pub timer_tick: Duration,
    /// What a host's clock ticks at, counted from the start of the run (Linux: `CONFIG_HZ`). The timers of RACK and of tail
    /// loss probes (RFC 8985 §6.3, §7.2) end with a tick: one that is to last for x with the ⌈(x + 2 ms) ÷ tick⌉ + 1st from
    /// when it is set. CUBIC in whole segments reads its time off that clock. Zero: no ticks.
    pub clock_tick: Duration,
    /// Timeouts without progress before the connection is given up (R2 of RFC 9293 §3.8.3); probes of a closed
    /// window that nothing answers count alike.
    pub retries: u32,
    /// With more than zero `retries` stands for a time: a timeout gives the connection up once so much has passed
    /// since the first retransmission as `retries` timeouts take of which the first is this one and each is twice the
    /// last, up to `max_rto` (Linux: `tcp_retries2`). Zero: timeouts are counted.
    pub retries_base_rto: Duration,
    /// Retransmissions of a SYN before the connection is given up, besides `syn_linear_timeouts`.
    pub syn_retries: u32,
    /// So many timeouts of a SYN come at intervals of `initial_rto` before the interval doubles with each (Linux:
    /// `tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Retransmissions of the answer to a SYN before the listener forgets the connection (Linux:
    /// `tcp_synack_retries`).
    pub syn_ack_retries: u32,
    /// After a timeout of a SYN, or of the answer to one, timestamps tell the round-trip time of the handshake; RFC
    /// 6298 (5.7) holds only where they do not, and a probe may leave before the first round-trip time is known. If
    /// not, RFC 6298 (5.7) always holds.
    pub rtt_after_syn_timeout: bool,
    /// Bytes accepted from the application and not yet acknowledged, at most.
    pub send_buffer: Limit,
    /// Bytes received in order and not yet read, at most: the largest window offered.
    pub receive_window: Limit,
    /// Small segments wait while data is outstanding (Nagle, RFC 9293 §3.7.4).
    pub nagle: bool,
    /// The congestion window grows only while it is what limits the sender (RFC 7661 §4.4; RFC 9438
    /// §5.8). With `idle_restart = "rfc7661"` this binds windows that are not validated.
    pub cwnd_validation: bool,
    /// In slow start the congestion window grows up to twice of what has been outstanding at once in
    /// this round trip, although it was not filled. Only with `cwnd_validation` does this say anything.
    pub slow_start_half_full: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// The AccECN option tells of marked octets besides (RFC 9768 §3.2.3; Linux: `tcp_ecn_option`).
    /// On with `ecn = "accecn"` unless turned off; nothing without.
    pub accecn_option: bool,
    /// Least time between two acknowledgments that challenge what a blind attacker may have sent
    /// (RFC 5961 §7; Linux: `tcp_invalid_ratelimit`); zero for no bound.
    pub challenge_ack_interval: Duration,
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
    /// CUBIC counted in whole segments goes on counting after a reduction what was acknowledged before it (Ha, Rhee and Xu 2008,
    /// Algorithm 1, and ns-3). If not, the count begins anew.
    pub cubic_count_outlives: bool,
    /// CUBIC forgets a reduction that proves needless altogether (RFC 9438 §4.9). Else window and
    /// ssthresh come back; W_max stays that of the reduction, and a new stage begins.
    pub undo_restores_w_max: bool,
    /// Milliseconds by which a timestamp may be older than the last one (RFC 7323 §5.3 R1: none).
    pub paws_tolerance: u32,
    /// PAWS lets pass what has been overtaken only: an acknowledgment without data that has number and
    /// window of the last one, with a timestamp not older than 1.2 RTO (RFC 7323 §5.3 R1: nothing).
    pub disordered_acks: bool,
    /// Answers to segments without data whose numbers are outside the window or whose timestamps are too old
    /// leave no more often than challenges, every `challenge_ack_interval` (Linux: `tcp_invalid_ratelimit`). If
    /// not, each is answered (RFC 9293 §3.10.7.4, RFC 7323 §5.3 R1).
    pub limit_answers: bool,
    /// From the fourth segment out of order on, since the last in order, so many are reported by one
    /// acknowledgment, as long as they belong to the two blocks that changed last or to a new one; 0 for each at once
    /// (RFC 5681 §4.2, RFC 2018 §4; Linux: `tcp_comp_sack_nr`). A segment that fills a part of a gap counts as the
    /// first, unless it is acknowledged at once for another reason. Needs SACK.
    pub sack_compression: u32,
    /// How long such a report waits, a twentieth of the round-trip time at most (Linux: `tcp_comp_sack_delay_ns`), if
    /// there are not enough before.
    pub sack_compression_delay: Duration,
    /// It leaves so much after `sack_compression_delay`, whatever the round-trip time. (Linux: `tcp_comp_sack_slack_ns`, by
    /// which a timer may be late; where nothing else wakes the host it is late by all of it.)
    pub sack_compression_slack: Duration,
    /// Where segments leave together the last has PSH, as where a host hands them over for segmentation as one:
    /// what leaves in a 1,024th of a second at the pacing rate, at least two, more if the round-trip time is
    /// short, 64 KiB at most (Linux: `tcp_min_tso_segs`, `tcp_tso_rtt_log`). What the application writes is kept in pieces
    /// of 64 KiB, the first of 83,200 octets, and none of what leaves as one reaches from one into the next. Where a send
    /// buffer holds more at first (`send_autotuning_start`) than half of the window that a SYN can offer, as much is written at once,
    /// in pieces of that half; and there the last segment of a piece, where it would leave by itself, takes the first ones of the next
    /// piece along if there is room for them. If there is none it has PSH, but for pieces of that half: of these one has that ends
    /// more than that half after the last that has, or in which a write of 128 KiB ends.
    /// An application that finds the send buffer full waits until a third of it is free; then it fills it, and more where what
    /// leaves together is shorter than a piece: the congestion window and a piece, without `nagle` a part of one write at most.
    pub push_bursts: bool,
    /// What the window permits waits for the next acknowledgment if it is less than what is handed over for
    /// segmentation as one, less than a third of the window and of what there is to send, if the last data left within a
    /// millisecond, and if that acknowledgment is expected within one as well, and within half a round trip (Linux:
    /// `tcp_tso_win_divisor`). Needs `push_bursts`; not in a recovery.
    pub defer_small_bursts: bool,
    /// What the application reads is told of by a segment of its own only where the window becomes twice what the
    /// sender knows, instead of by two segments or half of the buffer (RFC 9293 §3.8.6.2.2 asks for one
    /// segment at least).
    pub lazy_window_updates: bool,
    /// The acknowledgment that ends the handshake leaves by itself although data could carry it, as
    /// where the application writes once it hears of the connection (RFC 9293 §3.10.7.3 permits both).
    pub lone_handshake_ack: bool,
    /// Windows grow by what an acknowledgment delivers, not by what it acknowledges: segments that
    /// SACK or duplicates have told of before count no more, unless the path is known to reorder.
    pub grow_by_delivered: bool,
    /// The acknowledgment that ends a recovery lets the window grow by what it delivers, from ssthresh on. If not,
    /// growth begins with the next one (RFC 5681 §3.2 and RFC 6675 §5 end the recovery and say no more).
    pub recovery_end_grows: bool,
    /// A recovery that ends while something that it took for lost or retransmitted has yet to come begins anew at once, with another
    /// reduction, and the answers to what is under way tell of no late original (RFC 3522 §3.2). If not, the next one
    /// begins with the next loss that is found (RFC 8985 §6.2, RFC 6675 §5), and only what it sends again itself counts
    /// for that.
    pub recovery_again: bool,
    /// Where windows are tuned: the window offered ends where the buffer does, which holds what is unread or waits beyond a gap as
    /// well; what is unread at the end of a round trip does not count in it; and segments beyond a gap tell the round trip. If
    /// not, only what is unread takes from the window (RFC 9293 §3.8.6).
    pub occupied_buffer: bool,
    /// An acknowledgment that could not offer as much as the last one did, because what it acknowledges has not been read,
    /// leaves once it has been, if no timer ends before. If not, unread data puts off no acknowledgment (RFC 5681 §4.2).
    pub acks_wait_for_read: bool,
    /// The window after a pause (RFC 5681 §4.1, RFC 7661).
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
    /// A burst that leaves later than it might takes as much less time at the rate, half of it at least, so that the next one
    /// leaves sooner. If not, time not used earns nothing.
    pub pacing_catches_up: bool,
    /// The send buffer grows with the window, to `send_buffer` at most.
    pub send_autotuning: bool,
    /// With `send_autotuning`: octets of the send buffer at first (Linux: `tcp_wmem`).
    pub send_autotuning_start: Bytes,
    /// The window offered begins at 64 KiB and grows with what the application takes per round
    /// trip, to `receive_window` at most (Fisk and Feng 2001).
    pub receive_autotuning: bool,
    /// With `receive_autotuning`: what the window grows to before anything has been measured, by
    /// twice what arrives; 64 KiB for not at all. Segments of less than 1,448 octets have it less
    /// in proportion.
    pub autotuning_start: Bytes,
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
                cubic_count_outlives: self.cubic_count_outlives,
                clock_tick: self.clock_tick,
                undo_restores_w_max: self.undo_restores_w_max,
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
}
