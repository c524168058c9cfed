//! `rfc`: What the RFCs say, where they say it.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, delayed_ack};
use crate::{
    cc::params::{ReductionBase, RenoFriendly, Share, WindowCount},
    tcp::settings::{EcnMode, FullAck, HyStart, IdleRestart, Recovery, Settings},
};

#[expect(clippy::too_many_lines, reason = "one table")]
pub(super) fn rfc() -> Profile {
    Profile {
        meta: Meta {
            name: "rfc",
            title: "RFC TCP",
            summary: "TCP as the RFCs on the standards track have it, with buffers that never limit it.",
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
                "RFC 5681 §4.2 asks for every second segment and less than 500 ms; 200 ms is what most stacks took",
            ),
            ("min_rto", "RFC 6298 (2.4)"),
            ("initial_rto", "RFC 6298 (2.1)"),
            (
                "clock_granularity",
                "RFC 6298 §4: finer than 100 ms serves; 1 ms is the timestamp clock's",
            ),
            (
                "retries",
                "RFC 9293 §3.8.3 asks for at least 100 s; fifteen backed-off timeouts exceed that",
            ),
            (
                "time_wait",
                "RFC 9293 §3.4.2: twice a maximum segment lifetime of 2 minutes",
            ),
            ("limited_transmit", "RFC 3042"),
            (
                "timeout_reduces_again",
                "RFC 5681 §4.3: the loss of a retransmission is a second sign of congestion",
            ),
            (
                "rtt_from_sack",
                "RFC 7323 §4.1: only what advances SND.UNA is a sample",
            ),
            (
                "cwnd_validation",
                "RFC 5681 leaves it open, RFC 7661 §4.2 and RFC 9438 §5.8 ask for it",
            ),
            (
                "ecn",
                "off unless both ends and the path are known to want it",
            ),
            (
                "accecn_option",
                "off with ECN; on where AccECN is turned on, as RFC 9768 §3.2.3 recommends to send and to read it",
            ),
            (
                "challenge_ack_interval",
                "RFC 5961 §7: no more than ten in five seconds, its example",
            ),
        ],
        not_modelled: &[],
        settings: Settings {
            mss: 1448,
            initial_cwnd: 10,
            sack: true,
            dsack: true,
            timestamps: true,
            window_scaling: true,
            recovery: Recovery::Rfc6675,
            dupthresh: 3,
            adaptive_dupthresh: false,
            max_dupthresh: 300,
            reordering: None,
            tlp: false,
            max_ack_delay: Duration::from_millis(200),
            prr: false,
            prr_at_marks: false,
            rate_halving: false,
            counted_pipe: false,
            frto: false,
            eifel: false,
            undo: false,
            adapt_rto: false,
            timeout_reduces_again: true,
            limited_transmit: true,
            recover_inclusive: false,
            partial_ack_restarts_timer: false,
            retransmission_restarts_timer: false,
            full_ack: FullAck::Ssthresh,
            rtt_from_sack: false,
            delayed_ack: delayed_ack(2, 200),
            min_rto: Duration::from_secs(1),
            min_rto_over_srtt: false,
            max_rto: Duration::from_secs(60),
            initial_rto: Duration::from_secs(1),
            clock_granularity: Duration::from_millis(1),
            timer_tick: Duration::ZERO,
            clock_tick: Duration::ZERO,
            retries: 15,
            syn_retries: 6,
            send_buffer: Limit::Unlimited,
            receive_window: Limit::Unlimited,
            nagle: false,
            cwnd_validation: true,
            slow_start_half_full: false,
            ecn: EcnMode::Off,
            accecn_option: false,
            challenge_ack_interval: Duration::from_millis(500),
            time_wait: Duration::from_secs(240),
            hystart: HyStart::Off,
            slow_start_limit: Limit::Packets(1),
            reduce_from: ReductionBase::FlightSize,
            window_count: WindowCount::Bytes,
            first_epoch_growth: Share::new(0.0),
            reno_friendly: RenoFriendly::Rfc9438,
            cubic_interval: Duration::ZERO,
            cubic_count_outlives: true,
            undo_restores_w_max: true,
            paws_tolerance: 0,
            disordered_acks: false,
            limit_answers: false,
            sack_compression: 0,
            sack_compression_delay: Duration::ZERO,
            push_bursts: false,
            defer_small_bursts: false,
            lazy_window_updates: false,
            lone_handshake_ack: false,
            grow_by_delivered: false,
            recovery_end_grows: false,
            idle_restart: IdleRestart::Rfc5681,
            pacing: false,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 120,
            pacing_burst: Duration::from_millis(1),
            send_autotuning: false,
            receive_autotuning: false,
            autotuning_start: Bytes::new(64 << 10),
        },
    }
}
