//! `linux-6.18`: Linux 6.18, as far as its switches exist.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, rfc::rfc};
use crate::{
    ack::DelayedAckTable,
    settings::{DelayedAck, HyStart, IdleRestart, Recovery, Settings},
};
use anabranch_congestion::params::{ReductionBase, RenoFriendly, Share, WindowCount};

#[expect(clippy::too_many_lines, reason = "one table")]
pub(super) fn linux_6_18() -> Profile {
    Profile {
        meta: Meta {
            name: "linux-6.18",
            title: "Linux 6.18",
            summary: "Today's Linux TCP, as far as it is modelled.",
            sources: &[
                Source {
                    id: "Linux 6.18",
                    items: &["Documentation/networking/ip-sysctl.rst"],
                },
                Source {
                    id: "RFC 8985",
                    items: &["§6", "§7"],
                },
                Source {
                    id: "RFC 9937",
                    items: &["§6"],
                },
                Source {
                    id: "RFC 5682",
                    items: &["§2", "§3"],
                },
                Source {
                    id: "RFC 3522",
                    items: &["§3"],
                },
                Source {
                    id: "RFC 4015",
                    items: &["§3"],
                },
                Source {
                    id: "RFC 2883",
                    items: &["§4", "§5"],
                },
            ],
        },
        aliases: &["linux"],
        cc: "cubic",
        reasons: &[
            ("min_rto", "TCP_RTO_MIN"),
            ("max_rto", "TCP_RTO_MAX"),
            (
                "delayed_ack",
                "two segments; 40 ms to 200 ms, as far apart as segments come (TCP_DELACK_MIN, TCP_DELACK_MAX); the first 16 one by one; measured: as many after a duplicate and a pause, two where a mark begins to be echoed; one with PSH, or not full, as soon as it is read, unless the application answers",
            ),
            ("send_buffer", "tcp_wmem: 4 MB, grown into from 16 KiB"),
            (
                "autotuning_start",
                "tcp_rmem: 131,072 bytes at first, of which full segments fill five eighths with payload; measured",
            ),
            (
                "receive_window",
                "tcp_rmem: 32 MB since 6.16, half of it counted as overhead, grown into from 64 KiB",
            ),
            ("hystart", "on in CUBIC by default"),
            (
                "slow_start_limit",
                "all that is acknowledged counts (RFC 3465 with L without bound)",
            ),
            ("reduce_from", "from the window, not from what is in flight"),
            ("window_count", "whole segments"),
            (
                "first_epoch_growth",
                "CUBIC grows by one segment for twenty acknowledged at least until the first loss",
            ),
            (
                "reno_friendly",
                "at 1 % loss CUBIC stays behind Reno: as RFC 8312 has it",
            ),
            (
                "cubic_interval",
                "a 32nd of a second: at a round-trip time of 10 ms a small window stands for three to five of them, then grows by two",
            ),
            (
                "cubic_count_outlives",
                "measured: of a window of eight five segments are counted where hundreds bring one; after a reduction to five that bring one each, five more make it six, not seven",
            ),
            (
                "undo_restores_w_max",
                "after a needless recovery in slow start CUBIC does not grow by one segment for twenty any more",
            ),
            (
                "paws_tolerance",
                "segments made by hand: a timestamp one behind the last is taken, two behind is refused",
            ),
            (
                "disordered_acks",
                "measured: an old timestamp does not matter in an acknowledgment without data that repeats number and window of the last, up to 1.2 RTO",
            ),
            (
                "limit_answers",
                "tcp_invalid_ratelimit: segments without data whose numbers or timestamps are out of range are answered every 500 ms at most",
            ),
            (
                "sack_compression",
                "tcp_comp_sack_nr: 44; measured: the first three reports since RCV.NXT moved leave at once",
            ),
            (
                "sack_compression_delay",
                "tcp_comp_sack_delay_ns: 1 ms, and no more than 5 % of the round-trip time",
            ),
            (
                "sack_compression_slack",
                "tcp_comp_sack_slack_ns: 100 us; measured: where a segment takes 120 us, 10 are reported by one acknowledgment",
            ),
            (
                "push_bursts",
                "measured: what is handed over for segmentation as one ends with PSH (tcp_min_tso_segs, tcp_tso_rtt_log); what an application writes is kept in pieces of 45 full segments, the first of 58; of 22 behind an initial window where the send buffer is large at first; the last segment of a piece takes the next along or has PSH, as far as half of the window of a SYN, or a write, ended in the piece",
            ),
            (
                "slow_start_half_full",
                "measured: of a window of 20 segments 11 let it grow, up to 22, and 10 do not",
            ),
            (
                "lone_handshake_ack",
                "measured: 52 octets before the first data",
            ),
            (
                "lazy_window_updates",
                "measured: reading 16,000 octets where the sender knows of 49,000 brings no segment; that as much as it knows of has to come is a guess",
            ),
            (
                "grow_by_delivered",
                "a filled gap does not bring the growth of what was reported before it",
            ),
            (
                "recovery_end_grows",
                "measured: where ssthresh is five and the last acknowledgment of a recovery delivers eight segments, the window is six, and three of them count on",
            ),
            (
                "recovery_again",
                "measured: where what left after a recovery began was lost and is on its way again when that ends, the next one begins with the same acknowledgment",
            ),
            (
                "occupied_buffer",
                "measured: with ten segments beyond a gap 67,584 octets are offered, 80,512 before; 16 segments read while three wait count as 13",
            ),
            (
                "acks_wait_for_read",
                "measured: once the whole buffer is offered, acknowledgments leave 21 to 64 us after the data has come, before it after 10 to 49",
            ),
            (
                "clock_tick",
                "a clock of 250 Hz, as distributions build it; measured: a reordering timer of 2.5 ms ends after 9 to 15 ms, a probe of 40 ms leaves after 44 to 48",
            ),
            ("idle_restart", "tcp_slow_start_after_idle: RFC 2861"),
            (
                "pacing",
                "off without the fq queueing discipline; controls with a rate of their own are paced",
            ),
            ("pacing_ss_ratio", "tcp_pacing_ss_ratio"),
            ("pacing_ca_ratio", "tcp_pacing_ca_ratio"),
            (
                "pacing_burst",
                "about a millisecond of data, two segments at least",
            ),
            (
                "pacing_catches_up",
                "measured: the second pair of BBR's second round trip leaves after half of the time that lies between the others",
            ),
            ("recovery", "tcp_recovery: RACK is on by default"),
            ("tlp", "tcp_early_retrans: 3 by default"),
            ("max_ack_delay", "RFC 8985 §7.2: 200 ms"),
            (
                "prr",
                "every window-based control but those with a law of their own",
            ),
            (
                "prr_at_marks",
                "measured: of ten segments five are in flight a round trip after the mark, one having left for every second that was delivered, and the window is five",
            ),
            ("frto", "tcp_frto: 2 by default"),
            (
                "undo",
                "by duplicates reported (tcp_dsack) and by timestamps (tcp_timestamps)",
            ),
            (
                "timeout_reduces_again",
                "measured: a timeout during fast recovery leaves ssthresh as it is, also after a partial acknowledgment",
            ),
            (
                "rtt_from_sack",
                "measured, with timestamps and without: each report is a sample, of the earliest sent of the segments that it is the first to report",
            ),
            (
                "adaptive_dupthresh",
                "tcp_reordering: 3 at first; where RACK is on, it opens the reordering window only",
            ),
            ("max_dupthresh", "tcp_max_reordering: 300"),
            (
                "min_rto_over_srtt",
                "the least timeout comes on top of the smoothed round-trip time",
            ),
            (
                "partial_ack_restarts_timer",
                "each acknowledgment of new data restarts the timer",
            ),
            ("time_wait", "TCP_TIMEWAIT_LEN"),
            ("retries", "tcp_retries2: 15"),
            (
                "retries_base_rto",
                "TCP_RTO_MIN, whatever the route's: tcp_retries2 stands for 924.6 s; measured",
            ),
            (
                "syn_retries",
                "tcp_syn_retries: 6; a connect() that nobody answers fails after 131 s",
            ),
            (
                "syn_linear_timeouts",
                "tcp_syn_linear_timeouts: 4; measured: SYNs at 0, 1, 2, 3, 4, 5, 7, 11, 19, 35 and 67 s",
            ),
            (
                "syn_ack_retries",
                "tcp_synack_retries: 5; measured: after 63 s an acknowledgment is answered by a reset",
            ),
            (
                "rtt_after_syn_timeout",
                "measured: where the second SYN is answered after 100 ms, the timeout is 300 ms with timestamps and 3 s without; there a probe leaves after 1 s",
            ),
            (
                "accecn_option",
                "tcp_ecn_option: 2 by default; 6.18 has that setting but takes no tcp_ecn above 2, so that ecn = \"accecn\" is what later kernels speak",
            ),
            (
                "challenge_ack_interval",
                "tcp_invalid_ratelimit: 500 ms by default",
            ),
        ],
        not_modelled: &[
            "what a host does below TCP: segmentation offload, the limit on what waits in its own queue, interrupts",
            "SYN cookies, and the bound on challenge acknowledgments for a whole host",
        ],
        settings: Settings {
            recovery: Recovery::Rack,
            tlp: true,
            prr: true,
            prr_at_marks: true,
            frto: true,
            eifel: true,
            undo: true,
            timeout_reduces_again: false,
            rtt_from_sack: true,
            adaptive_dupthresh: true,
            min_rto: Duration::from_millis(200),
            min_rto_over_srtt: true,
            max_rto: Duration::from_secs(120),
            delayed_ack: DelayedAck::On(DelayedAckTable {
                segments: 2,
                timeout: Duration::from_millis(40),
                max_timeout: Some(Duration::from_millis(200)),
                quick_segments: 16,
                quick_again: true,
                push: true,
                ticking: false,
            }),
            hystart: HyStart::Linux,
            slow_start_limit: Limit::Unlimited,
            reduce_from: ReductionBase::Cwnd,
            window_count: WindowCount::Segments,
            first_epoch_growth: Share::new(0.05),
            reno_friendly: RenoFriendly::Rfc8312,
            cubic_interval: Duration::from_micros(31_250),
            cubic_count_outlives: false,
            undo_restores_w_max: false,
            paws_tolerance: 1,
            disordered_acks: true,
            limit_answers: true,
            sack_compression: 44,
            sack_compression_delay: Duration::from_millis(1),
            sack_compression_slack: Duration::from_micros(100),
            push_bursts: true,
            defer_small_bursts: true,
            clock_tick: Duration::from_millis(4),
            lazy_window_updates: true,
            lone_handshake_ack: true,
            slow_start_half_full: true,
            grow_by_delivered: true,
            recovery_end_grows: true,
            recovery_again: true,
            occupied_buffer: true,
            acks_wait_for_read: true,
            pacing_catches_up: true,
            idle_restart: IdleRestart::Rfc2861,
            send_autotuning: true,
            receive_autotuning: true,
            autotuning_start: Bytes::new(80 << 10),
            partial_ack_restarts_timer: true,
            send_buffer: Limit::Bytes(Bytes::new(4 << 20)),
            receive_window: Limit::Bytes(Bytes::new(16 << 20)),
            time_wait: Duration::from_secs(60),
            retries_base_rto: Duration::from_millis(200),
            syn_linear_timeouts: 4,
            syn_ack_retries: 5,
            rtt_after_syn_timeout: true,
            ..rfc().settings
        },
    }
}
