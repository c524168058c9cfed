//! `linux-2.6.35`: Linux of August 2010, before an initial window of ten, PRR and RACK.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, rfc::rfc};
use crate::{
    policy::DelayedAckTable,
    settings::{
        DelayedAck, HyStart, IdleRestart, Recovery, RecoveryPace, Settings, Timers, WindowRules,
    },
};
use anabranch_congestion::{Arithmetic, params::ReductionBase};

#[expect(clippy::too_many_lines, reason = "one table")]
pub(super) fn linux_2_6_35() -> Profile {
    Profile {
        meta: Meta {
            name: "linux-2.6.35",
            title: "Linux 2.6.35",
            summary: "Linux TCP of 2010: an initial window of three segments, rate halving, buffers of up to 4 MB.",
            sources: &[
                Source {
                    id: "Linux 2.6.35",
                    items: &["Documentation/networking/ip-sysctl.txt"],
                },
                Source {
                    id: "tcp(7), Linux man-pages 3.25 (2010)",
                    items: &[],
                },
                Source {
                    id: "RFC 3390",
                    items: &["§1"],
                },
                Source {
                    id: "RFC 2988",
                    items: &["§2"],
                },
                Source {
                    id: "RFC 2861",
                    items: &[],
                },
                Source {
                    id: "RFC 3517",
                    items: &["§4", "§5"],
                },
                Source {
                    id: "RFC 4138",
                    items: &["§2", "§3"],
                },
                Source {
                    id: "RFC 6937",
                    items: &["§1"],
                },
                Source {
                    id: "Ha, Rhee and Xu, CUBIC: a new TCP-friendly high-speed TCP variant, SIGOPS OSR 42 (5), 2008",
                    items: &[],
                },
                Source {
                    id: "Linux, messages of commits ae27e98a (2008), b5ccd073 and a262f0cd (2011), dca145ff (2014)",
                    items: &[],
                },
            ],
        },
        aliases: &[],
        cc: "cubic",
        reasons: &[
            (
                "initial_cwnd",
                "RFC 3390: 4,380 bytes, three segments; ten came with 2.6.39",
            ),
            (
                "initial_rto",
                "RFC 2988 (2.1): 3 s, with which the five SYNs of tcp_syn_retries last the 180 s that its documentation gives",
            ),
            ("syn_retries", "tcp_syn_retries: 5"),
            ("syn_ack_retries", "tcp_synack_retries: 5"),
            ("retries", "tcp_retries2: 15"),
            ("min_rto", "as later versions: TCP_RTO_MIN"),
            ("max_rto", "as later versions: TCP_RTO_MAX"),
            (
                "delayed_ack",
                "as later versions: 40 to 200 ms; the first segments are acknowledged individually",
            ),
            (
                "recovery",
                "SACK and the number of duplicates (tcp_sack, tcp_reordering); RACK came with 4.4",
            ),
            (
                "recovery_pace",
                "PRR replaced it in 3.2; the window was never more than a segment above the data in flight",
            ),
            ("tlp", "came with 3.10"),
            ("frto", "tcp_frto: 2 by default"),
            (
                "undo",
                "by duplicates reported (tcp_dsack) and by timestamps (tcp_timestamps)",
            ),
            (
                "max_dupthresh",
                "tcp_reordering: 3 at first; 127 until 3.18",
            ),
            (
                "send_buffer",
                "tcp_wmem: 16 KiB, grown to 4 MB if the host has enough memory (2 GB)",
            ),
            (
                "receive_window",
                "tcp_rmem: 4 MB if the host has enough memory, a quarter of it counted as overhead (tcp_adv_win_scale: \
                 2); 87,380 bytes at first, hence a window of 64 KiB",
            ),
            ("receive_autotuning", "tcp_moderate_rcvbuf: on"),
            (
                "slow_start_limit",
                "tcp_abc: off, so one segment for each acknowledgment",
            ),
            ("hystart", "in CUBIC since 2.6.29, in its published form"),
            ("reduce_from", "as later versions: from the window"),
            (
                "arithmetic",
                "whole segments; CUBIC as published and as in RFC 8312, without the minimum growth before the first \
                 loss, which came with 2.6.39",
            ),
            ("idle_restart", "tcp_slow_start_after_idle: RFC 2861"),
            ("pacing", "came with 3.12"),
            ("ecn", "tcp_ecn: 2, only if the peer requests it"),
            ("time_wait", "TCP_TIMEWAIT_LEN"),
        ],
        not_modelled: &[
            "forward acknowledgments (tcp_fack): a segment is marked lost if the third one after it, or a later one, is \
             SACKed",
            "HyStart's thresholds before 2.6.39: a 16th of the smallest round-trip time, and 2 ms at least",
            "the initial offered window: four segments, grown with each segment that arrives",
            "timers that tick every 1 to 10 ms (HZ)",
            "the host below TCP: segmentation offload, its queue of 1,000 packets, and TCP's reaction when that queue \
             is full",
            "memory: buffers count payload, not the memory of a packet",
        ],
        settings: Settings {
            initial_cwnd: 3,
            recovery: Recovery::Rfc6675,
            recovery_pace: RecoveryPace::RateHalving,
            frto: true,
            eifel: true,
            undo: true,
            max_dupthresh: 127,
            partial_ack_restarts_timer: true,
            min_rto: Duration::from_millis(200),
            timers: Timers::Linux26,
            max_rto: Duration::from_secs(120),
            initial_rto: Duration::from_secs(3),
            syn_retries: 5,
            syn_ack_retries: 5,
            delayed_ack: DelayedAck::On(DelayedAckTable {
                segments: 2,
                timeout: Duration::from_millis(40),
                max_timeout: Some(Duration::from_millis(200)),
                quick_segments: 16,
                quick_again: false,
                push: false,
                ticking: false,
            }),
            hystart: HyStart::HaRhee,
            slow_start_limit: Limit::Packets(1),
            reduce_from: ReductionBase::Cwnd,
            arithmetic: Arithmetic::Linux26,
            window_rules: WindowRules::Linux26,
            idle_restart: IdleRestart::Rfc2861,
            send_autotuning_start: Bytes::new(16 << 10),
            receive_autotuning: true,
            send_buffer: Limit::Bytes(Bytes::new(4 << 20)),
            receive_window: Limit::Bytes(Bytes::new(3 << 20)),
            time_wait: Duration::from_secs(60),
            ..rfc().settings
        },
    }
}
