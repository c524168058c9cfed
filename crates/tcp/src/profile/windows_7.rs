//! `windows-7`: Windows 7 with Compound TCP turned on, as in the fairness study.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, delayed_ack, rfc::rfc};
use crate::settings::{Recovery, Settings};

#[expect(clippy::too_many_lines, reason = "one table")]
pub(super) fn windows_7() -> Profile {
    Profile {
        meta: Meta {
            name: "windows-7",
            title: "Windows 7",
            summary: "Windows 7 and Server 2008 R2: an initial window of two segments, no timestamps, windows tuned up \
                      to 16 MB. With Compound TCP, which is off by default on clients.",
            sources: &[
                Source {
                    id: "Microsoft KB 2472264 (netsh interface tcp show supplemental)",
                    items: &[],
                },
                Source {
                    id: "Microsoft KB 170359, KB 224829, KB 947239",
                    items: &[],
                },
                Source {
                    id: "Microsoft TechNet, Next Generation TCP/IP Protocols and Networking Components (2008)",
                    items: &[],
                },
                Source {
                    id: "The Cable Guy: TCP receive window auto-tuning, TechNet Magazine, January 2007",
                    items: &[],
                },
                Source {
                    id: "Microsoft, SIO_IDEAL_SEND_BACKLOG_QUERY control code",
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
            ],
        },
        aliases: &[],
        cc: "compound",
        reasons: &[
            (
                "mss",
                "1,500-byte IPv4 packets less 40 bytes of headers: no timestamps",
            ),
            (
                "initial_cwnd",
                "initial congestion window of the internet template: 2",
            ),
            (
                "timestamps",
                "off; by default Tcp1323Opts enables them only if the peer requests them",
            ),
            ("window_scaling", "on since Windows Vista"),
            ("sack", "on; RFC 3517's recovery since Windows Vista"),
            ("dsack", "RFC 2883 since Windows Vista"),
            ("recovery", "RFC 3517, which RFC 6675 replaces"),
            ("frto", "RFC 4138 since Windows Vista"),
            (
                "undo",
                "not documented: any reaction to a spurious timeout beyond the end of retransmissions",
            ),
            (
                "limited_transmit",
                "not documented either way; as RFC 3517 §5 advises",
            ),
            (
                "delayed_ack",
                "every second segment, or after the delayed-ACK timeout of 200 ms",
            ),
            ("min_rto", "minimum RTO of the internet template: 300 ms"),
            ("initial_rto", "TcpInitialRTT: 3 s"),
            ("retries", "TcpMaxDataRetransmissions: 5"),
            ("syn_retries", "TcpMaxConnectRetransmissions: 2"),
            ("syn_ack_retries", "TcpMaxConnectResponseRetransmissions: 2"),
            (
                "max_rto",
                "not documented; five retransmissions seldom reach it",
            ),
            (
                "send_buffer",
                "dynamic send buffering: 8 KiB at first, then the ideal send backlog, of which no limit is documented",
            ),
            ("send_autotuning_start", "on unless SO_SNDBUF is set"),
            (
                "receive_window",
                "auto-tuning level normal: up to 16 MB, the largest window at a scale of 8",
            ),
            ("receive_autotuning", "on, from 64 KiB"),
            ("ecn", "ecncapability: off"),
        ],
        not_modelled: &[
            "dynamic send buffering's ideal backlog: here twice the window",
            "the steps and limits of receive window auto-tuning: here dynamic right-sizing is used",
            "a delayed-ACK timer that ticks for all connections together",
            "dead-gateway and black-hole detection, and the effects of chimney offload",
            "slow start's count of delayed acknowledgments, which is not documented: here one segment for each",
        ],
        settings: Settings {
            mss: 1460,
            initial_cwnd: 2,
            timestamps: false,
            recovery: Recovery::Rfc6675,
            frto: true,
            delayed_ack: delayed_ack(2, 200),
            min_rto: Duration::from_millis(300),
            initial_rto: Duration::from_secs(3),
            retries: 5,
            syn_retries: 2,
            syn_ack_retries: 2,
            send_buffer: Limit::Unlimited,
            receive_window: Limit::Bytes(Bytes::new(65_535 << 8)),
            send_autotuning_start: Bytes::new(16 << 10),
            receive_autotuning: true,
            ..rfc().settings
        },
    }
}
