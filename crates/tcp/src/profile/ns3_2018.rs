//! `ns3-2018`: ns-3 as published studies before 2018 used it.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, text::Limit},
};

use super::{Profile, rfc::rfc};
use crate::settings::{Recovery, Settings};

pub(super) fn ns3_2018() -> Profile {
    Profile {
        meta: Meta {
            name: "ns3-2018",
            title: "ns-3 before 2018",
            summary: "The simulated stack of many papers: NewReno recovery without SACK, an initial window of one segment.",
            sources: &[
                Source {
                    id: "RFC 6582",
                    items: &["§3.2"],
                },
                Source {
                    id: "RFC 6298",
                    items: &["§2"],
                },
                Source {
                    id: "Casoni et al., Next generation TCP support in ns-3, WNS3 2015",
                    items: &[],
                },
            ],
        },
        aliases: &[],
        cc: "reno",
        reasons: &[
            (
                "mss",
                "papers set it; 1,448 bytes with timestamps fills a 1,500-byte packet (the simulator's own default is 536)",
            ),
            ("initial_cwnd", "one segment was the default until 2020"),
            ("sack", "ns-3 had none before 3.27 (October 2017)"),
            ("timestamps", "on by default since ns-3.20"),
            ("window_scaling", "on by default since ns-3.20"),
            ("recovery", "NewReno was the only recovery"),
            ("limited_transmit", "on by default"),
            (
                "recover_inclusive",
                "its test for a new fast retransmit admits the acknowledgment that ended the last one",
            ),
            (
                "partial_ack_restarts_timer",
                "only the first partial acknowledgment restarted the timer, from 2016 on",
            ),
            ("delayed_ack", "two segments and 200 ms by default"),
            ("min_rto", "one second by default"),
            ("send_buffer", "131,072 bytes by default"),
            ("receive_window", "131,072 bytes by default"),
            (
                "cwnd_validation",
                "cwnd grew even if it did not limit the sender",
            ),
            (
                "time_wait",
                "a maximum segment lifetime of 120 s by default",
            ),
        ],
        not_modelled: &[],
        settings: Settings {
            initial_cwnd: 1,
            sack: false,
            dsack: false,
            recovery: Recovery::NewReno,
            recover_inclusive: true,
            partial_ack_restarts_timer: false,
            retries: 6,
            send_buffer: Limit::Bytes(Bytes::new(131_072)),
            receive_window: Limit::Bytes(Bytes::new(131_072)),
            cwnd_validation: false,
            ..rfc().settings
        },
    }
}
