//! `bsd44-lite`: the TCP of 4.4BSD-Lite.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{Profile, rfc::rfc};
use crate::{
    policy::DelayedAckTable,
    settings::{DelayedAck, Recovery, Settings, Timers},
};

const REASONS: &[(&str, &str)] = &[
    (
        "mss",
        "512 to hosts that are not on the same network (Volume 2, ch. 27); studies set 536",
    ),
    ("initial_cwnd", "one segment (Volume 2, ch. 24)"),
    ("sack", "not yet known (RFC 2018 is of 1996)"),
    (
        "timestamps",
        "off, so that headers have 40 bytes; the system supports them (RFC 1323), with a clock of 500 ms",
    ),
    (
        "window_scaling",
        "off with timestamps; no buffer of its time needs it",
    ),
    (
        "recovery",
        "ends with the first acknowledgment of new data; further losses wait for the timer (Volume 2, ch. 29)",
    ),
    ("limited_transmit", "of 2001 (RFC 3042)"),
    (
        "delayed_ack",
        "every second segment at once; every 200 ms a timer acknowledges the waiting segments of all connections \
         (Volume 2, ch. 25)",
    ),
    (
        "timers",
        "one timer of 500 ms counts retransmission timeouts and round-trip times (Volume 2, ch. 25)",
    ),
    ("min_rto", "two ticks (Volume 2, ch. 25)"),
    ("max_rto", "64 s (Volume 2, ch. 25)"),
    ("initial_rto", "6 s: twelve ticks (Volume 2, ch. 25)"),
    ("retries", "twelve (Volume 2, ch. 25)"),
    (
        "syn_retries",
        "the number that fits into 75 s (Volume 2, ch. 25)",
    ),
    ("send_buffer", "8 KiB, as shipped"),
    (
        "receive_window",
        "8 KiB, as shipped; studies of fast paths set more",
    ),
    ("nagle", "on (Volume 2, ch. 26)"),
    (
        "reduce_from",
        "half of the window, or of the peer's if that is smaller (Volume 2, ch. 29): the data in flight while there is \
         enough to send",
    ),
    ("cwnd_validation", "the window grows even if it is not used"),
    ("time_wait", "one minute: twice 30 s (Volume 2, ch. 25)"),
];

pub(super) fn bsd44_lite() -> Profile {
    Profile {
        meta: Meta {
            name: "bsd44-lite",
            title: "4.4BSD-Lite",
            summary: "The TCP of 1994 that studies of its time built on: Reno, timers that tick every 500 ms, one 200 ms timer for all delayed acknowledgments.",
            sources: &[
                Source {
                    id: "Wright and Stevens, TCP/IP Illustrated, Volume 2 (1995)",
                    items: &["ch. 24 to 29"],
                },
                Source {
                    id: "Stevens, TCP/IP Illustrated, Volume 1 (1994)",
                    items: &["ch. 19 to 21"],
                },
                Source {
                    id: "RFC 2525",
                    items: &["§2.6"],
                },
            ],
        },
        aliases: &[],
        cc: "reno",
        reasons: REASONS,
        not_modelled: &[
            "growth in congestion avoidance with each acknowledgment, and an eighth of a segment too much (RFC 2525 \
             §2.6); available as `cc = { kind = \"reno\", avoidance = \"acks\", extra_eighth = true }`",
            "one round-trip time measured at a time: here each acknowledgment is a sample",
            "ticks counted from the host's start: here those of all hosts begin with the run",
            "the congestion window's limit of 65,535 bytes; the peer's window limits the sender anyway",
            "the persist timer's ticks, and the second SYN's timeout of 24 s",
        ],
        settings: Settings {
            mss: 512,
            initial_cwnd: 1,
            sack: false,
            dsack: false,
            timestamps: false,
            window_scaling: false,
            recovery: Recovery::Reno,
            limited_transmit: false,
            delayed_ack: DelayedAck::On(DelayedAckTable {
                segments: 2,
                timeout: Duration::from_millis(200),
                max_timeout: None,
                quick_segments: 0,
                quick_again: false,
                push: false,
                ticking: true,
            }),
            timers: Timers::Bsd,
            clock_tick: Duration::from_millis(500),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(64),
            initial_rto: Duration::from_secs(6),
            retries: 12,
            syn_retries: 2,
            syn_ack_retries: 2,
            send_buffer: Limit::Bytes(Bytes::new(8 << 10)),
            receive_window: Limit::Bytes(Bytes::new(8 << 10)),
            nagle: true,
            cwnd_validation: false,
            time_wait: Duration::from_secs(60),
            ..rfc().settings
        },
    }
}
