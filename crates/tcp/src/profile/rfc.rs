//! `rfc`: the values that the RFCs specify.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, delayed_ack};
use crate::settings::{
    EcnMode, HyStart, IdleRestart, MtuDiscovery, Receiver, Recovery, RecoveryPace, Segmentation,
    Settings, Timers, WindowRules,
};
use anabranch_congestion::{Arithmetic, params::ReductionBase};

#[expect(clippy::too_many_lines, reason = "one table")]
pub(super) fn rfc() -> Profile {
    Profile {
        meta: Meta {
            name: "rfc",
            title: "RFC TCP",
            summary: "TCP as in the RFCs on the standards track, with buffers that never limit it.",
            sources: &[
                Source {
                    id: "RFC 9293",
                    items: &[],
                },
                Source {
                    id: "RFC 5681",
                    items: &["§3", "§4.2"],
                },
                Source {
                    id: "RFC 6298",
                    items: &["§2", "§5"],
                },
                Source {
                    id: "RFC 6675",
                    items: &["§4", "§5"],
                },
                Source {
                    id: "RFC 6928",
                    items: &["§2"],
                },
                Source {
                    id: "RFC 7323",
                    items: &["§2", "§3", "§5"],
                },
            ],
        },
        aliases: &[],
        cc: "cubic",
        reasons: &[
            (
                "mss",
                "1,500-byte IPv4 packets less 40 bytes of headers and 12 of timestamps",
            ),
            ("initial_cwnd", "RFC 6928 §2: ten segments"),
            (
                "delayed_ack",
                "RFC 5681 §4.2 requires every second segment and less than 500 ms; most stacks used 200 ms",
            ),
            ("min_rto", "RFC 6298 (2.4)"),
            ("initial_rto", "RFC 6298 (2.1)"),
            (
                "clock_tick",
                "RFC 6298 §4: finer than 100 ms suffices; 1 ms is the tick of the timestamp clock",
            ),
            (
                "retries",
                "RFC 9293 §3.8.3 requires at least 100 s; fifteen backed-off timeouts exceed that",
            ),
            (
                "time_wait",
                "RFC 9293 §3.4.2: twice a maximum segment lifetime of 2 minutes",
            ),
            ("limited_transmit", "RFC 3042"),
            (
                "window_rules",
                "RFC 5681 §4.3: the loss of a retransmission is a second sign of congestion",
            ),
            (
                "timers",
                "RFC 6298; RFC 7323 §4.1: only an acknowledgment that advances SND.UNA is a sample",
            ),
            (
                "cwnd_validation",
                "RFC 5681 does not require it; RFC 7661 §4.2 and RFC 9438 §5.8 do",
            ),
            (
                "ecn",
                "off unless both ends and the path are known to support it; `accecn` sends and reads the AccECN \
                 option, as RFC 9768 §3.2.3 recommends",
            ),
            (
                "challenge_ack_interval",
                "RFC 5961 §7, its example: at most ten in five seconds",
            ),
        ],
        not_modelled: &[],
        settings: Settings {
            mss: 1448,
            mtu_discovery: MtuDiscovery::Icmp,
            initial_cwnd: 10,
            sack: true,
            dsack: true,
            timestamps: true,
            window_scaling: true,
            recovery: Recovery::Rfc6675,
            dupthresh: 3,
            max_dupthresh: 3,
            reordering: None,
            tlp: false,
            recovery_pace: RecoveryPace::Pipe,
            frto: false,
            eifel: false,
            undo: false,
            limited_transmit: true,
            recover_inclusive: false,
            partial_ack_restarts_timer: false,
            delayed_ack: delayed_ack(2, 200),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(60),
            initial_rto: Duration::from_secs(1),
            timers: Timers::Rfc6298,
            clock_tick: Duration::from_millis(1),
            retries: 15,
            syn_retries: 6,
            syn_ack_retries: 6,
            send_buffer: Limit::Unlimited,
            receive_window: Limit::Unlimited,
            nagle: false,
            cwnd_validation: true,
            window_rules: WindowRules::Rfc5681,
            ecn: EcnMode::Off,
            challenge_ack_interval: Duration::from_millis(500),
            time_wait: Duration::from_secs(240),
            hystart: HyStart::Off,
            slow_start_limit: Limit::Packets(1),
            reduce_from: ReductionBase::FlightSize,
            arithmetic: Arithmetic::Rfc,
            receiver: Receiver::Rfc,
            segmentation: Segmentation::None,
            idle_restart: IdleRestart::Rfc5681,
            pacing: false,
            send_autotuning_start: Bytes::ZERO,
            receive_autotuning: false,
        },
    }
}
