//! `ns2-sack1`: ns-2's Agent/TCP/Sack1 with Agent/TCPSink/Sack1.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, text::Limit},
};

use super::{Profile, rfc::rfc};
use crate::settings::{DelayedAck, Recovery, RecoveryPace, Settings};
use anabranch_congestion::params::ReductionBase;

pub(super) fn ns2_sack1() -> Profile {
    Profile {
        meta: Meta {
            name: "ns2-sack1",
            title: "ns-2's TCP with SACK",
            summary: "The simulated sender and receiver of many papers: Reno with the first SACK recovery, an acknowledgment for every packet.",
            sources: &[
                Source {
                    id: "The ns Manual (2011)",
                    items: &["ch. 35"],
                },
                Source {
                    id: "Fall and Floyd, Simulation-based comparisons of Tahoe, Reno, and SACK TCP, CCR 26 (3), 1996",
                    items: &["§3.4"],
                },
                Source {
                    id: "ns-2.35, measured",
                    items: &[],
                },
            ],
        },
        aliases: &[],
        cc: "reno",
        reasons: &[
            (
                "mss",
                "papers set packetSize_ (1,000 by default); with the 40 bytes of headers that ns-2 adds 1,460 makes packets of 1,500",
            ),
            ("initial_cwnd", "windowInit_: 2"),
            ("dsack", "generateDSacks_: off"),
            ("timestamps", "timestamps_: off"),
            (
                "recovery_pace",
                "measured: a lost packet leaves the pipe when its gap is filled, and a partial acknowledgment makes \
                 room for two packets; the timeout of a lost retransmission is counted from its transmission",
            ),
            ("dupthresh", "numdupacks_: 3"),
            ("limited_transmit", "singledup_: on"),
            (
                "delayed_ack",
                "the sink acknowledges each packet; its DelAck variant waits for two, or 100 ms",
            ),
            ("min_rto", "minrto_: 200 ms"),
            ("max_rto", "maxrto_: 60 s"),
            ("initial_rto", "rtxcur_init_: 3 s"),
            (
                "clock_tick",
                "times are counted in ticks of 10 ms (tcpTick_); measured: at a constant round-trip time the timeout \
                 is 30 to 46 ms longer",
            ),
            ("retries", "it never gives up"),
            ("syn_retries", "it never gives up"),
            ("send_buffer", "an FTP source never runs out"),
            (
                "receive_window",
                "papers set window_ (20 packets by default) so high that it does not limit; set it if it should",
            ),
            (
                "cwnd_validation",
                "measured: cwnd grows beyond window_, which limits the sender",
            ),
            (
                "reduce_from",
                "measured: half of the window, window_ at most",
            ),
            ("ecn", "ecn_: off"),
        ],
        not_modelled: &[
            "packets of 40 bytes for SYNs and acknowledgments with any options",
            "one round-trip time measured at a time, in whole ticks",
            "sequence numbers in packets, and windows in fractions of them",
            "retransmissions of SACKed data after a timeout: here SACKed data is not retransmitted",
        ],
        settings: Settings {
            mss: 1460,
            initial_cwnd: 2,
            dsack: false,
            timestamps: false,
            recovery: Recovery::Rfc6675,
            recovery_pace: RecoveryPace::CountedPipe,
            delayed_ack: DelayedAck::Off,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(3),
            clock_tick: Duration::from_millis(40),
            retries: 1_000_000,
            syn_retries: 1_000_000,
            syn_ack_retries: 1_000_000,
            send_buffer: Limit::Unlimited,
            receive_window: Limit::Unlimited,
            cwnd_validation: false,
            reduce_from: ReductionBase::Cwnd,
            ..rfc().settings
        },
    }
}
