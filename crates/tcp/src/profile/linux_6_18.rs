//! `linux-6.18`: Linux 6.18, as far as its switches exist.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, rfc::rfc};
use crate::{
    policy::DelayedAckTable,
    settings::{
        DelayedAck, HyStart, IdleRestart, Receiver, Recovery, RecoveryPace, Segmentation, Settings,
        Timers, WindowRules,
    },
};
use anabranch_congestion::{Arithmetic, params::ReductionBase};

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
                "every second segment, or after 40 ms to 200 ms, which follow the spacing of segments (TCP_DELACK_MIN, TCP_DELACK_MAX); quickack mode acknowledges the first 16 segments individually; measured: another 16 after a duplicate or a pause, and 2 after the first CE mark; a segment with PSH, or one that is not full, is acknowledged when it has been read, unless the application answers",
            ),
            ("send_buffer", "tcp_wmem: 4 MB"),
            (
                "receive_window",
                "tcp_rmem: 32 MB since 6.16, half of which is overhead; the window grows from 64 KiB",
            ),
            ("hystart", "on in CUBIC by default"),
            (
                "slow_start_limit",
                "every acknowledged octet counts (RFC 3465 without the limit L)",
            ),
            (
                "reduce_from",
                "a reduction is computed from cwnd, not from FlightSize",
            ),
            ("send_autotuning_start", "tcp_wmem: 16 KiB"),
            (
                "receiver",
                "tcp_comp_sack_nr, tcp_comp_sack_delay_ns, tcp_comp_sack_slack_ns, tcp_invalid_ratelimit; measured: \
                 the first three SACKs after RCV.NXT has moved leave at once; reading 16,000 octets sends no window \
                 update if a window of 49,000 is advertised; acknowledgments leave 10 to 49 us after the data, and 21 \
                 to 64 us once the whole buffer is offered; a timestamp 1 ms older than the last one is accepted, one \
                 2 ms older is refused; the window falls from 80,512 to 67,584 octets with ten segments beyond a gap",
            ),
            (
                "segmentation",
                "tcp_min_tso_segs, tcp_tso_rtt_log, tcp_tso_win_divisor; measured: written data is kept in chunks of 45 full segments, and 58 in the first; the handshake ends with a separate acknowledgment of 52 octets; in BBR's second round trip the second pair of segments follows the first after half of the usual gap",
            ),
            (
                "window_rules",
                "measured: in slow start, 11 segments in flight let a cwnd of 20 grow to 22, and 10 do not; an acknowledgment that fills a gap does not grow cwnd for data that SACK had reported before; cwnd is 6 after a recovery with an ssthresh of 5 whose last acknowledgment delivers 8 segments; a timeout during a recovery does not change ssthresh; after a timeout a SACK of data that was not retransmitted restores the window at once; a mark reduces 10 segments in flight to 5 within a round trip",
            ),
            (
                "arithmetic",
                "whole segments; at 1 % loss CUBIC is slower than Reno (RFC 8312); measured: a CUBIC growth count of 5 survives a reduction from 8 to 5 segments, and 5 more acknowledged segments then raise cwnd to 6",
            ),
            (
                "timers",
                "the minimum timeout is added to the smoothed round-trip time; tcp_syn_linear_timeouts, tcp_retries2; measured: each SACK gives a sample, from the earliest sent of the segments that it reports first; a connect() without an answer sends SYNs at 0, 1, 2, 3, 4, 5, 7, 11, 19, 35 and 67 s; if the second SYN is answered after 100 ms, the timeout is 300 ms with timestamps and 3 s without",
            ),
            (
                "clock_tick",
                "a clock of 250 Hz, as in distributions' kernels; measured: a reordering timer of 2.5 ms expires after \
                 9 to 15 ms, a probe due after 40 ms is sent after 44 to 48",
            ),
            ("idle_restart", "tcp_slow_start_after_idle: RFC 2861"),
            (
                "pacing",
                "off without the fq queueing discipline; controls that set a rate are paced",
            ),
            ("mtu_discovery", "ip_no_pmtu_disc: 0; tcp_mtu_probing: 0"),
            ("recovery", "tcp_recovery: RACK is on by default"),
            ("tlp", "tcp_early_retrans: 3 by default"),
            (
                "recovery_pace",
                "used by every control that does not set its window itself during a recovery",
            ),
            ("frto", "tcp_frto: 2 by default"),
            (
                "undo",
                "by duplicates reported (tcp_dsack) and by timestamps (tcp_timestamps)",
            ),
            (
                "max_dupthresh",
                "tcp_reordering: 3 at first; tcp_max_reordering: 300; with RACK it only widens the reordering window; \
                 measured of 6.12 without SACK: more duplicates than segments outstanding set it to their number, even to 2",
            ),
            (
                "partial_ack_restarts_timer",
                "each acknowledgment of new data restarts the timer",
            ),
            ("time_wait", "TCP_TIMEWAIT_LEN"),
            (
                "retries",
                "tcp_retries2: 15, which means 924.6 s at any RTO_MIN of the route; measured",
            ),
            (
                "syn_retries",
                "tcp_syn_retries: 6; a connect() without an answer fails after 131 s",
            ),
            (
                "syn_ack_retries",
                "tcp_synack_retries: 5; measured: after 63 s an acknowledgment is answered by a reset",
            ),
            (
                "challenge_ack_interval",
                "tcp_invalid_ratelimit: 500 ms by default",
            ),
        ],
        not_modelled: &[
            "the host below TCP: segmentation offload, the limit on data in its device queue (TSQ), interrupts",
            "SYN cookies, and the limit on challenge acknowledgments per host",
        ],
        settings: Settings {
            recovery: Recovery::Rack,
            tlp: true,
            recovery_pace: RecoveryPace::Prr,
            frto: true,
            eifel: true,
            undo: true,
            max_dupthresh: 300,
            min_rto: Duration::from_millis(200),
            timers: Timers::Linux,
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
            arithmetic: Arithmetic::Linux,
            receiver: Receiver::Linux,
            segmentation: Segmentation::Tso,
            clock_tick: Duration::from_millis(4),
            window_rules: WindowRules::Linux,
            idle_restart: IdleRestart::Rfc2861,
            send_autotuning_start: Bytes::new(16 << 10),
            receive_autotuning: true,
            partial_ack_restarts_timer: true,
            send_buffer: Limit::Bytes(Bytes::new(4 << 20)),
            receive_window: Limit::Bytes(Bytes::new(16 << 20)),
            time_wait: Duration::from_secs(60),
            syn_ack_retries: 5,
            ..rfc().settings
        },
    }
}
