//! BBR on a model bottleneck: its states as the papers and the draft specify them.

use crate::support;

use anabranch_congestion::{
    self as cc, Config, CongestionControl,
    bbr::{Params, Rounds},
    params::Share,
};
use anabranch_core::units::{Duration, Rate};
use support::{
    Path, assert_near,
    bottleneck::{Bottleneck, PACKET},
};

const STARTUP: f64 = 0.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

fn path(params: Params) -> Bottleneck {
    Bottleneck::new(
        &Config::Bbr(params),
        Rate::from_mbit_per_s(20),
        Duration::from_millis(50),
    )
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn startup_doubles_the_rate_until_the_pipe_is_full() {
    // A pipe of 84 packets: from ten, full after four doublings; three round trips to detect it.
    let mut path = path(Params::default());
    path.run(ms(150));
    assert_near(path.state("mode"), STARTUP, 0.0);
    assert_near(path.state("pacing_gain"), 2.885, 1e-9);
    path.run(ms(850));
    assert_near(path.state("mode"), PROBE_BW, 0.0);
}

/// Measured with Linux: pairs are sent every 2.803 ms after a handshake of 40 ms; without a margin
/// it would be 2.777 ms.
#[test]
fn the_rate_of_the_first_round_trip_leaves_the_margin() {
    let rate = |margin| {
        let mut path = path(Params {
            pacing_margin: Share::new(margin),
            ..Params::default()
        });
        path.run(ms(51));
        path.control.pacing_rate().expect("a rate").as_mbit_per_s()
    };
    assert_near(rate(0.01) / rate(0.0), 0.99, 1e-6);
}

#[test]
fn the_cycle_has_one_phase_above_one_below_and_six_at_the_bandwidth() {
    let mut path = path(Params::default());
    path.run(Duration::from_secs(2));
    let (mut up, mut down, mut cruise) = (0, 0, 0);
    for _ in 0..800 {
        path.run(ms(10));
        let gain = path.state("pacing_gain");
        if gain > 1.0 {
            assert_near(gain, 1.25, 1e-9);
            up += 1;
        } else if gain < 1.0 {
            assert_near(gain, 0.75, 1e-9);
            down += 1;
        } else {
            cruise += 1;
        }
    }
    assert!((70..150).contains(&up), "{up}");
    assert!((20..150).contains(&down), "{down}");
    assert!((540..710).contains(&cruise), "{cruise}");
}

#[test]
fn the_pipe_is_emptied_every_ten_seconds_for_200_ms() {
    let mut path = path(Params::default());
    let mut probing = Vec::new();
    for step in 0..2_500_u64 {
        path.run(ms(10));
        if (path.state("mode") - PROBE_RTT).abs() < 0.5 {
            probing.push(step);
            assert!(path.control.cwnd() <= PACKET * 4);
        }
    }
    let first = *probing.first().expect("it probes");
    assert!((1_000..1_200).contains(&first), "after {first} x 10 ms");
    // 200 ms, the previous round trip in which the window drains, and one round trip of tolerance.
    let steps = probing.iter().filter(|step| **step < first + 500).count();
    assert!((20..40).contains(&steps), "{steps} x 10 ms");
    // The bandwidth estimate is unchanged.
    assert_near(path.state("btl_bw"), 20.0, 0.02);
}

#[test]
fn data_sent_while_probing_the_rtt_does_not_count_as_bandwidth() {
    let mut path = path(Params::default());
    let mut least = f64::INFINITY;
    path.run(Duration::from_secs(5));
    for _ in 0..1_000 {
        path.run(ms(10));
        least = least.min(path.state("btl_bw"));
    }
    assert!(least > 19.0, "{least}");
}

#[test]
fn after_a_pause_it_resumes_at_the_bandwidth() {
    let mut path = path(Params::default());
    path.run(Duration::from_secs(3));
    path.idle(Duration::from_secs(2));
    let rate = path.control.pacing_rate().expect("a rate").as_mbit_per_s();
    assert_near(rate, 20.0, 0.03);
    path.run(Duration::from_secs(1));
    assert!(path.share(Duration::from_secs(1)) > 0.9);
}

#[test]
fn losses_keep_the_rate_and_start_packet_conservation() {
    let mut path = Path::new(&Config::Bbr(Params::default()), 10, ms(100));
    for _ in 0..20 {
        path.round_trip();
    }
    let (cwnd, rate) = (path.control.cwnd(), path.control.pacing_rate());
    path.lose();
    path.ack_as(|ack| ack.in_flight = support::segments(30));
    // The data in flight plus the data just delivered.
    assert_eq!(path.control.cwnd(), support::segments(31));
    assert_eq!(path.control.pacing_rate(), rate);
    path.recovered();
    assert_eq!(path.control.cwnd(), cwnd);
    path.mark();
    assert_eq!(
        (path.control.cwnd(), path.control.pacing_rate()),
        (cwnd, rate)
    );
}

/// Detects a window that is restored between the two recoveries, and a second reduction.
#[test]
fn a_recovery_that_begins_as_another_ends_continues_it() {
    let mut path = Path::new(&Config::Bbr(Params::default()), 10, ms(100));
    for _ in 0..20 {
        path.round_trip();
    }
    let cwnd = path.control.cwnd();
    path.lose();
    path.ack_as(|ack| ack.in_flight = support::segments(30));
    path.recovered();
    path.lose();
    path.ack_as(|ack| ack.in_flight = support::segments(20));
    assert_eq!(path.control.cwnd(), support::segments(31));
    path.recovered();
    assert_eq!(path.control.cwnd(), cwnd);
    // A recovery that begins with a later acknowledgment is a separate one.
    path.ack_as(|_| ());
    path.lose();
    path.ack_as(|ack| ack.in_flight = support::segments(20));
    assert_eq!(path.control.cwnd(), support::segments(21));
}

#[test]
fn a_timeout_leaves_one_segment_and_delivery_restores_the_window() {
    let mut path = Path::new(&Config::Bbr(Params::default()), 10, ms(100));
    for _ in 0..20 {
        path.round_trip();
    }
    let cwnd = path.cwnd();
    path.rto(1);
    assert_near(path.cwnd(), 1.0, 1e-9);
    let mut round_trips = 0;
    while path.cwnd() < cwnd {
        path.round_trip();
        round_trips += 1;
        assert!(round_trips < 20);
    }
}

/// The acknowledgments after a spurious timeout: a reliable sample over the timeout, then one per
/// copy that is shorter than the smallest round-trip time.
fn bandwidth_after_copies(rounds: Rounds) -> f64 {
    let params = Params {
        rounds,
        ..Params::default()
    };
    let mut path = Path::new(&Config::Bbr(params), 10, ms(100));
    for _ in 0..20 {
        path.round_trip();
    }
    let before = path.state("btl_bw").expect("a bandwidth");
    path.pause(ms(1000));
    path.rto(1);
    for copy in 0..12 {
        let sample = cc::RateSample {
            delivered: support::segments(2),
            interval: if copy == 0 { ms(1000) } else { ms(2) },
            is_reliable: copy == 0,
            prior_delivered: support::segments(path.delivered),
            app_limited: false,
            tx_in_flight: support::segments(3),
            lost: support::segments(0),
        };
        path.ack_as(|ack| {
            ack.delivered = support::segments(2);
            ack.rate = Some(sample);
        });
        path.delivered += 2;
        path.pause(ms(2));
    }
    path.state("btl_bw").expect("a bandwidth") / before
}

#[test]
fn samples_shorter_than_the_round_trip_do_not_expire_the_bandwidth() {
    assert_near(bandwidth_after_copies(Rounds::ReliableSamples), 1.0, 1e-9);
}

/// Draft 00 §4.1.1 to the letter. Forty segments per 100 ms before, two per second after.
#[test]
fn if_every_acknowledgment_ends_a_round_the_bandwidth_collapses() {
    assert_near(bandwidth_after_copies(Rounds::Acknowledgments), 0.005, 1e-9);
}

#[test]
fn without_the_additions_of_draft_02_the_rate_is_the_bandwidth() {
    let draft_00 = Params {
        pacing_margin: cc::params::Share::new(0.0),
        extra_acked_gain: cc::params::Share::new(0.0),
        ..Params::default()
    };
    for (params, share) in [(draft_00, 1.0), (Params::default(), 0.99)] {
        let mut path = path(params);
        path.run(Duration::from_secs(3));
        while (path.state("pacing_gain") - 1.0).abs() > 1e-9 {
            path.run(ms(1));
        }
        let rate = path.control.pacing_rate().expect("a rate").as_mbit_per_s();
        assert_near(rate, share * path.state("btl_bw"), 1e-3);
    }
}

/// Draft 00 §4.3.1. Detects an RTprop from the first data segment, which has queued after nine
/// others.
#[test]
fn the_handshake_is_the_first_rtt_sample() {
    let mut path = path(Params::default());
    path.control.on_sent(&cc::Sent {
        now: path.now,
        bytes: PACKET,
        in_flight: PACKET,
        retransmission: false,
        srtt: ms(40),
    });
    path.run(Duration::from_secs(1));
    assert_near(path.state("rt_prop"), 40.0, 1e-9);
}

/// The bandwidth-delay product is 84.3 packets here, a burst two. Detects windows of 174.7 and 92.
#[test]
fn the_target_in_flight_is_rounded_to_pairs_of_packets() {
    let mut path = path(Params {
        extra_acked_gain: cc::params::Share::new(0.0),
        ..Params::default()
    });
    path.run(Duration::from_secs(3));
    while (path.state("pacing_gain") - 1.0).abs() > 1e-9 {
        path.run(ms(1));
    }
    path.run(ms(10));
    assert_eq!(path.control.cwnd(), PACKET * 176);
}

/// The bandwidth-delay product is 117.7 packets here. At the pacing rate 1/1024 s is 2.26 packets,
/// two of them whole. Detects 244, the result of a burst of a millisecond, and any window without
/// rounding.
#[test]
fn a_burst_is_the_whole_packets_of_a_1024th_of_a_second() {
    let params = Params {
        extra_acked_gain: cc::params::Share::new(0.0),
        ..Params::default()
    };
    let mut path = Bottleneck::new(&Config::Bbr(params), Rate::from_mbit_per_s(28), ms(50));
    path.run(Duration::from_secs(3));
    while (path.state("pacing_gain") - 1.0).abs() > 1e-9 {
        path.run(ms(1));
    }
    path.run(ms(10));
    assert_eq!(path.control.cwnd(), PACKET * 242);
}

/// The target of the phase is 114 packets, and a burst of two is about to be sent. Detects a phase
/// that waits for 114.
#[test]
fn the_burst_about_to_be_sent_counts_towards_the_target() {
    let mut path = path(Params::default());
    path.run(Duration::from_secs(2));
    for _ in 0..5 {
        while path.state("pacing_gain") <= 1.0 {
            path.run(Duration::from_micros(100));
        }
        while path.state("pacing_gain") > 1.0 {
            path.run(Duration::from_micros(100));
        }
        let found = path.in_flight();
        assert!((110..=112).contains(&found), "{found}");
    }
}
