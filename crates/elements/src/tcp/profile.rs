//! Stack profiles: named sets of switches. A released profile never changes.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, text::Limit},
};

use super::{
    ack::DelayedAckTable,
    settings::{DelayedAck, EcnMode, FullAck, HyStart, IdleRestart, Recovery, Settings},
};
use crate::cc::params::{ReductionBase, RenoFriendly, Share, WindowCount};

/// A profile.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Description for registry, docs and command line.
    pub meta: Meta,
    /// Other names it goes by.
    pub aliases: &'static [&'static str],
    /// The congestion control it uses unless a scenario names another.
    pub cc: &'static str,
    /// Why each switch that a reader would ask about stands as it does.
    pub reasons: &'static [(&'static str, &'static str)],
    /// What the real stack does and this version does not.
    pub not_modelled: &'static [&'static str],
    /// The switches.
    pub settings: Settings,
}

impl Profile {
    /// The profile called `name`, or with that alias.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        profiles()
            .into_iter()
            .find(|profile| profile.meta.name == name || profile.aliases.contains(&name))
    }
}

/// Every profile, in registry order.
#[must_use]
pub fn profiles() -> Vec<Profile> {
    vec![linux_6_18(), rfc(), ns3_2018()]
}

const fn delayed_ack(segments: u32, timeout_ms: u64) -> DelayedAck {
    DelayedAck::On(DelayedAckTable {
        segments,
        timeout: Duration::from_millis(timeout_ms),
        max_timeout: None,
        quick_segments: 0,
    })
}

/// What the RFCs say, where they say it.
#[expect(clippy::too_many_lines, reason = "one table")]
fn rfc() -> Profile {
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
                "cwnd_validation",
                "RFC 5681 leaves it open, RFC 7661 §4.2 and RFC 9438 §5.8 ask for it",
            ),
            (
                "ecn",
                "off unless both ends and the path are known to want it",
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
            tlp: false,
            max_ack_delay: Duration::from_millis(200),
            prr: false,
            frto: false,
            eifel: false,
            undo: false,
            limited_transmit: true,
            recover_inclusive: false,
            partial_ack_restarts_timer: false,
            full_ack: FullAck::Ssthresh,
            delayed_ack: delayed_ack(2, 200),
            min_rto: Duration::from_secs(1),
            min_rto_over_srtt: false,
            max_rto: Duration::from_secs(60),
            initial_rto: Duration::from_secs(1),
            clock_granularity: Duration::from_millis(1),
            retries: 15,
            syn_retries: 6,
            send_buffer: Limit::Unlimited,
            receive_window: Limit::Unlimited,
            nagle: false,
            cwnd_validation: true,
            ecn: EcnMode::Off,
            time_wait: Duration::from_secs(240),
            hystart: HyStart::Off,
            slow_start_limit: Limit::Packets(1),
            reduce_from: ReductionBase::FlightSize,
            window_count: WindowCount::Bytes,
            first_epoch_growth: Share::new(0.0),
            reno_friendly: RenoFriendly::Rfc9438,
            cubic_interval: Duration::ZERO,
            grow_by_delivered: false,
            idle_restart: IdleRestart::Rfc5681,
            pacing: false,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 120,
            pacing_burst: Duration::from_millis(1),
            send_autotuning: false,
            receive_autotuning: false,
        },
    }
}

/// ns-3 as published studies before 2018 used it.
fn ns3_2018() -> Profile {
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
            ("sack", "ns-3 had none before 2018"),
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
            ("cwnd_validation", "cwnd grew whatever limited the sender"),
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

/// Linux 6.18, as far as its switches exist.
#[expect(clippy::too_many_lines, reason = "one table")]
fn linux_6_18() -> Profile {
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
                "two segments; 40 ms to 200 ms, as far apart as segments come (TCP_DELACK_MIN, TCP_DELACK_MAX); the first 16 one by one",
            ),
            ("send_buffer", "tcp_wmem: 4 MB, grown into"),
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
                "grow_by_delivered",
                "a filled gap does not bring the growth of what was reported before it",
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
            ("recovery", "tcp_recovery: RACK is on by default"),
            ("tlp", "tcp_early_retrans: 3 by default"),
            ("max_ack_delay", "RFC 8985 §7.2: 200 ms"),
            (
                "prr",
                "every window-based control but those with a law of their own",
            ),
            ("frto", "tcp_frto: 2 by default"),
            (
                "undo",
                "by duplicates reported (tcp_dsack) and by timestamps (tcp_timestamps)",
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
        ],
        not_modelled: &[
            "what a host does below TCP: segmentation offload, the limit on what waits in its own queue, interrupts",
            "the wait of a writer until a third of a full send buffer is free",
            "smoothed round-trip times from acknowledgments that only report (SACK)",
            "one reduction only where a timeout falls into a recovery",
            "the AccECN option, throttled challenge acknowledgments, SYN cookies",
        ],
        settings: Settings {
            recovery: Recovery::Rack,
            tlp: true,
            prr: true,
            frto: true,
            eifel: true,
            undo: true,
            adaptive_dupthresh: true,
            min_rto: Duration::from_millis(200),
            min_rto_over_srtt: true,
            max_rto: Duration::from_secs(120),
            delayed_ack: DelayedAck::On(DelayedAckTable {
                segments: 2,
                timeout: Duration::from_millis(40),
                max_timeout: Some(Duration::from_millis(200)),
                quick_segments: 16,
            }),
            hystart: HyStart::Linux,
            slow_start_limit: Limit::Unlimited,
            reduce_from: ReductionBase::Cwnd,
            window_count: WindowCount::Segments,
            first_epoch_growth: Share::new(0.05),
            reno_friendly: RenoFriendly::Rfc8312,
            cubic_interval: Duration::from_micros(31_250),
            grow_by_delivered: true,
            idle_restart: IdleRestart::Rfc2861,
            send_autotuning: true,
            receive_autotuning: true,
            partial_ack_restarts_timer: true,
            send_buffer: Limit::Bytes(Bytes::new(4 << 20)),
            receive_window: Limit::Bytes(Bytes::new(16 << 20)),
            time_wait: Duration::from_secs(60),
            ..rfc().settings
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::settings::Overrides;

    #[test]
    fn every_profile_stands_by_itself() {
        for profile in profiles() {
            let settings = profile.settings.with(&Overrides::default());
            assert_eq!(
                settings.as_ref(),
                Ok(&profile.settings),
                "{}",
                profile.meta.name
            );
            assert!(!profile.meta.sources.is_empty());
        }
        assert_eq!(
            Profile::named("linux").map(|p| p.meta.name),
            Some("linux-6.18")
        );
        assert!(Profile::named("linux-7").is_none());
    }
}
