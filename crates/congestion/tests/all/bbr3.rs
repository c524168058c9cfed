//! BBRv3 on a model bottleneck: its states as draft-ietf-ccwg-bbr-06 specifies them, and several of
//! the test cases of its appendix A.

use crate::support;

use std::fmt::Write as _;

use anabranch_congestion::{Config, CongestionControl, bbr3::Params};
use anabranch_core::units::{Duration, Rate};
use support::{
    Path, assert_near,
    bottleneck::{Bottleneck, PACKET},
};

const STARTUP: u8 = 0;
const DRAIN: u8 = 1;
const DOWN: u8 = 2;
const CRUISE: u8 = 3;
const REFILL: u8 = 4;
const UP: u8 = 5;
const PROBE_RTT: u8 = 6;

fn config() -> Config {
    Config::Bbr3(Params::default())
}

fn path(mbit_s: u64, rtt_ms: u64) -> Bottleneck {
    Bottleneck::new(&config(), Rate::from_mbit_per_s(mbit_s), ms(rtt_ms))
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 6"
)]
fn mode(path: &Bottleneck) -> u8 {
    path.state("mode") as u8
}

fn state(path: &Bottleneck, name: &str) -> Option<f64> {
    let state = path.control.state();
    state.into_iter().find(|(n, _)| *n == name).map(|(_, v)| v)
}

/// Runs until the mode is `wanted`, for at most ten seconds. Returns the elapsed milliseconds.
#[track_caller]
fn run_to(path: &mut Bottleneck, wanted: u8) -> u64 {
    for n in 0..10_000 {
        if mode(path) == wanted {
            return n;
        }
        path.run(ms(1));
    }
    panic!("never in {wanted}, but in {}", mode(path));
}

/// The modes in order, with the time in ms at which each began.
fn modes(path: &mut Bottleneck, time_ms: u64) -> Vec<(u64, u8)> {
    let mut modes = vec![(0, mode(path))];
    for n in 1..=time_ms {
        path.run(ms(1));
        if mode(path) != modes[modes.len() - 1].1 {
            modes.push((n, mode(path)));
        }
    }
    modes
}

// A.1, A.3
#[test]
fn startup_ends_on_a_plateau_and_drain_with_an_empty_queue() {
    // A pipe of 84 packets: from ten, full after four doublings.
    let mut path = path(20, 50);
    path.run(ms(150));
    assert_eq!(mode(&path), STARTUP);
    assert_near(path.state("pacing_gain"), 2.77, 1e-9);
    let to_drain = run_to(&mut path, DRAIN);
    assert!((250..750).contains(&(150 + to_drain)), "{to_drain}");
    assert_near(path.state("btl_bw"), 20.0, 0.02);
    assert_near(path.state("pacing_gain"), 0.5, 1e-9);
    while mode(&path) == DRAIN {
        path.run(ms(1));
    }
    // A BDP is in flight: 84 packets, and the packet being sent.
    assert!(path.in_flight() <= 86, "{}", path.in_flight());
}

#[test]
fn the_cycle_goes_down_cruises_refills_and_goes_up() {
    let mut path = path(20, 50);
    path.run(Duration::from_secs(1));
    let order: Vec<u8> = modes(&mut path, 12_000)
        .into_iter()
        .map(|(_, mode)| mode)
        .filter(|mode| *mode != PROBE_RTT)
        .collect();
    assert!(order.len() > 10, "{order:?}");
    for pair in order.windows(2) {
        let follows = match pair[0] {
            DOWN => [CRUISE, REFILL].contains(&pair[1]),
            // ProbeRTT may have come in between.
            CRUISE => [REFILL, CRUISE].contains(&pair[1]),
            REFILL => [UP, CRUISE].contains(&pair[1]),
            UP => [DOWN, CRUISE].contains(&pair[1]),
            _ => false,
        };
        assert!(follows, "{order:?}");
    }
}

#[test]
fn the_probe_interval_is_the_least_of_window_63_rounds_and_three_seconds() {
    // Path, and the bounds of the wait in ms.
    for (mbit_s, rtt_ms, least, most) in [
        // A round trip of 21 ms and 21 packets: 20 or 21 rounds.
        (12, 20, 20 * 21, 21 * 21),
        // 168 packets: 62 or 63 rounds.
        (100, 20, 62 * 20, 63 * 21),
        // 63 rounds would be 6.3 s.
        (100, 100, 2_000, 3_000),
    ] {
        // Five round trips for the queue that the previous probe has built.
        let most = most + 5 * (rtt_ms + 1);
        let mut path = path(mbit_s, rtt_ms);
        path.run(Duration::from_secs(2));
        let modes = modes(&mut path, 30_000);
        let mut waits = Vec::new();
        let mut began = None;
        for pair in modes.windows(2) {
            // ProbeRTT restarts the wait.
            if [UP, PROBE_RTT].contains(&pair[0].1) {
                began = Some(pair[1].0);
            }
            if pair[1].1 == REFILL {
                waits.extend(began.map(|began| pair[1].0 - began));
            }
        }
        assert!(waits.len() >= 5, "{mbit_s}, {rtt_ms}: {modes:?}");
        let range = least..=most;
        assert!(
            waits.iter().all(|wait| range.contains(wait)),
            "{mbit_s}, {rtt_ms}: {waits:?}"
        );
    }
}

// A.10
#[test]
fn half_the_pipe_is_emptied_every_five_seconds_for_200_ms() {
    let mut path = path(20, 50);
    let modes = modes(&mut path, 22_000);
    let probes: Vec<(u64, u64)> = modes
        .windows(2)
        .filter(|pair| pair[0].1 == PROBE_RTT)
        .map(|pair| (pair[0].0, pair[1].0 - pair[0].0))
        .collect();
    assert_eq!(probes.len(), 4, "{probes:?}");
    for pair in probes.windows(2) {
        // Five seconds from the end of one to the next; the next ACK detects it.
        let apart = pair[1].0 - (pair[0].0 + pair[0].1);
        assert!((5_000..5_010).contains(&apart), "{probes:?}");
    }
    for (_, long) in probes {
        // The data in flight is reduced first, within a round trip and the queueing time.
        assert!((200..=200 + 2 * 120).contains(&long), "{long}");
    }
    // Half a BDP is 42 packets.
    run_to(&mut path, PROBE_RTT);
    path.run(ms(150));
    assert_eq!(mode(&path), PROBE_RTT);
    assert!(path.control.cwnd() <= PACKET * 43 && path.control.cwnd() >= PACKET * 41);
    run_to(&mut path, CRUISE);
    assert_near(path.state("btl_bw"), 20.0, 0.02);
}

// A.11
#[test]
fn after_a_pause_it_resumes_at_the_bandwidth_without_probe_rtt() {
    let mut path = path(20, 50);
    path.run(Duration::from_secs(3));
    path.idle(Duration::from_secs(6));
    let rate = path.control.pacing_rate().expect("a rate").as_mbit_per_s();
    assert_near(rate, 20.0, 0.03);
    let modes = modes(&mut path, 2_000);
    assert!(
        modes.iter().all(|(_, mode)| *mode != PROBE_RTT),
        "{modes:?}"
    );
    path.run(Duration::from_secs(1));
    assert!(path.share(Duration::from_secs(1)) > 0.9);
}

// A.14
#[test]
fn a_pipe_of_less_than_a_packet_keeps_at_least_four_in_flight() {
    // 12 ms per packet.
    let mut path = path(1, 1);
    path.run(Duration::from_secs(3));
    for _ in 0..1_000 {
        path.run(ms(5));
        assert!(path.control.cwnd() >= PACKET * 4);
    }
    path.run(Duration::from_secs(5));
    assert!(path.share(Duration::from_secs(5)) > 0.95);
}

// A.15, A.16
#[test]
fn a_tenfold_rise_and_fall_of_the_bandwidth_is_found() {
    let mut path = path(10, 40);
    path.limit = 100;
    path.run(Duration::from_secs(5));
    path.rate = Rate::from_mbit_per_s(100);
    // A cycle until the next probe, then a factor of 1.25 per round trip: ln 10 ÷ ln 1.24 = 11 of
    // them; two cycles if a precautionary probe comes first.
    path.run(Duration::from_secs(10));
    assert_near(path.state("btl_bw"), 100.0, 0.05);
    path.rate = Rate::from_mbit_per_s(10);
    path.run(ms(500));
    assert!(state(&path, "bw_shortterm").expect("losses") < 75.0);
    path.run(Duration::from_secs(10));
    assert_near(path.state("btl_bw"), 10.0, 0.05);
    path.run(Duration::from_secs(5));
    let lost = path.lost as f64 / (path.lost + path.delivered) as f64;
    assert!(lost < 0.02, "{lost}");
    assert!(path.share(Duration::from_secs(5)) > 0.9);
}

#[test]
fn startup_ends_by_losses_only_above_the_threshold_and_in_enough_places() {
    // A pipe of 8,333 packets: without losses, full after ten doublings.
    for (loses, ends) in [
        // One in 25 is 4 %.
        (Some((25, 1)), true),
        // 1 %.
        (Some((100, 1)), false),
        // 4 %, in one place per 500 packets.
        (Some((500, 20)), false),
        (None, false),
    ] {
        let mut path = path(1_000, 100);
        path.loses = loses;
        path.run(ms(750));
        assert_eq!(mode(&path) != STARTUP, ends, "{loses:?}: {}", mode(&path));
    }
}

// A.21
#[test]
fn a_probe_that_overflows_the_buffer_bounds_the_flight_and_the_cruise() {
    // A pipe of 84 packets, and a buffer of 20.
    let mut path = path(20, 50);
    path.limit = 20;
    path.run(Duration::from_secs(2));
    let mut bounded = 0;
    for _ in 0..6 {
        run_to(&mut path, UP);
        run_to(&mut path, DOWN);
        let bound = state(&path, "inflight_longterm");
        if let Some(bound) = bound {
            // At most the pipe and the buffer, plus two quanta; at least beta of the BDP.
            assert!((0.7 * 83.0..=84.0 + 20.0 + 6.0).contains(&bound), "{bound}");
            run_to(&mut path, CRUISE);
            path.run(ms(10));
            // Data delivered since then without losses may have raised the bound.
            let bound = path.state("inflight_longterm").max(bound);
            let headroom = path.control.cwnd().segments(PACKET) / bound;
            assert!(headroom <= 0.8501, "{headroom}");
            bounded += 1;
        }
    }
    assert!(bounded >= 3, "{bounded}");
    // Two percent of a probe's round trip, in every 62nd round trip.
    path.run(Duration::from_secs(20));
    let lost = path.lost as f64 / (path.lost + path.delivered) as f64;
    assert!(lost < 0.01, "{lost}");
    assert!(path.share(Duration::from_secs(20)) > 0.85);
}

// §3.1: "average packet loss rates of up to 1%".
#[test]
fn one_percent_of_random_losses_costs_little() {
    let mut path = path(50, 40);
    path.loses = Some((100, 1));
    path.run(Duration::from_secs(5));
    path.run(Duration::from_secs(20));
    assert!(
        path.share(Duration::from_secs(20)) > 0.7,
        "{}",
        path.share(Duration::from_secs(20))
    );
}

#[test]
fn a_timeout_leaves_one_segment_and_delivery_restores_the_window() {
    let mut path = Path::new(&config(), 10, ms(100));
    for _ in 0..6 {
        path.round_trip();
    }
    let cwnd = path.cwnd();
    path.rto(1);
    assert_near(path.cwnd(), 1.0, 1e-9);
    path.ack();
    assert_near(path.cwnd(), 4.0, 1e-9);
    let mut round_trips = 0;
    while path.cwnd() < cwnd {
        path.round_trip();
        round_trips += 1;
        assert!(round_trips < 20);
    }
}

#[test]
fn trace_over_a_shallow_buffer() {
    // A pipe of 33 packets, and a buffer of 15.
    let mut path = path(10, 40);
    path.limit = 15;
    let mut trace = String::from("    ms  mode       cwnd    rate  btl_bw  longterm  lost\n");
    let names = [
        "Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT",
    ];
    let (mut before, mut lost) = (u8::MAX, 0);
    for n in 0..9_000 {
        if mode(&path) != before {
            before = mode(&path);
            let rate = path.control.pacing_rate().expect("a rate").as_mbit_per_s();
            let bound = state(&path, "inflight_longterm").map_or("-".into(), |b| format!("{b:.1}"));
            writeln!(
                trace,
                "{n:>6}  {:<8} {:>6.1}  {:>6.2}  {:>6.2}  {bound:>8}  {lost:>4}",
                names[usize::from(before)],
                path.control.cwnd().segments(PACKET),
                if rate > 1e3 { 0.0 } else { rate },
                path.state("btl_bw"),
            )
            .expect("a string takes it");
        }
        path.run(ms(1));
        lost += path.lost;
    }
    insta::assert_snapshot!("course", trace);
}
