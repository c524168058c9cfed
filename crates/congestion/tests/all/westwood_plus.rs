//! Westwood+ against the equations of Grieco and Mascolo, CCR 34-2 (2004), §2.

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Init,
    params::{OrStack, Share},
    westwood_plus::{Counting, Form, META, Params},
};
use anabranch_core::units::{Bytes, Duration, Instant};
use serde_json::json;
use support::{Path, SMSS, assert_near};

const RTT: Duration = Duration::from_millis(100);

fn path(window: u64) -> Path {
    Path::new(&Config::WestwoodPlus(Params::default()), window, RTT)
}

/// The form of Linux's module.
fn linux_path(window: u64) -> Path {
    let params = Params {
        form: OrStack::Own(Form::Linux),
        ..Params::default()
    };
    Path::new(&Config::WestwoodPlus(params), window, RTT)
}

/// A round trip of `window` segments that takes `rtt`, with evenly spaced ACKs.
fn round_of(path: &mut Path, window: u64, rtt: Duration) {
    path.round += 1;
    for _ in 0..window {
        path.pause(rtt / window);
        path.ack_as(|ack| {
            ack.rtt = Some(rtt);
            // Growth is not under test.
            ack.cwnd_limited = false;
        });
    }
}

/// Segments per second.
fn estimate(path: &Path) -> f64 {
    path.state("bwe").expect("there was a sample") * 1e6 / 8.0 / SMSS.get() as f64
}

#[test]
fn the_estimate_follows_the_filter() {
    // b_k in segments per second, and the round trips in which they are measured.
    let rounds: Vec<(u64, Duration)> = (0..40_u64)
        .map(|k| (10 + (k * 37) % 90, RTT + Duration::from_millis(k % 7 * 10)))
        .collect();
    let mut path = path(4);
    // The first ACK begins the measurement.
    path.ack();
    // An ACK that opens a round ends the previous one, so it is the last of that round.
    let (mut expected, mut points) = (None::<f64>, 0);
    let mut before: Option<(u64, Duration)> = None;
    for (window, rtt) in rounds {
        round_of(&mut path, window, rtt);
        let first_gap = (rtt / window).as_secs_f64();
        // From the first ACK of the previous round to the first of this one.
        if let Some((n, r)) = before {
            let time = r.as_secs_f64() * (n - 1) as f64 / n as f64 + first_gap;
            let b = n as f64 / time;
            expected = Some(expected.map_or(b, |e| 7.0 / 8.0 * e + b / 8.0));
        } else {
            expected = Some(1.0 / first_gap);
        }
        assert_near(estimate(&path), expected.expect("a sample per round"), 1e-6);
        before = Some((window, rtt));
        points += 1;
    }
    assert!(points >= 20);
}

#[test]
fn a_loss_leaves_the_bandwidth_times_the_smallest_rtt() {
    let mut points = 0;
    for carried in [5, 10, 40, 100, 1_000] {
        for queued_ms in [0, 10, 50, 100, 400] {
            let rtt = RTT + Duration::from_millis(queued_ms);
            let mut path = path(2_000);
            // The path delivers `carried` segments in the smallest RTT, independent of the queue.
            let in_flight = carried * (100 + queued_ms) / 100;
            for _ in 0..200 {
                round_of(&mut path, in_flight, rtt);
            }
            let before = path.cwnd();
            path.lose();
            let expected = in_flight as f64 / rtt.as_secs_f64() * RTT.as_secs_f64();
            assert_near(path.ssthresh(), expected.max(2.0), 1e-6);
            assert_near(path.cwnd(), expected.max(2.0).min(before), 1e-6);
            points += 1;
        }
    }
    assert!(points >= 20);
}

#[test]
fn a_timeout_leaves_one_segment_and_the_same_threshold() {
    let mut path = path(50);
    for _ in 0..100 {
        round_of(&mut path, 40, RTT);
    }
    path.rto(1);
    assert_eq!(path.control.cwnd(), SMSS);
    assert_near(path.ssthresh(), 40.0, 1e-6);
    path.rto(2);
    assert_near(path.ssthresh(), 40.0, 1e-6);
}

#[test]
fn a_window_below_the_pipe_is_kept_and_grows_by_slow_start() {
    let mut path = path(20);
    for _ in 0..100 {
        round_of(&mut path, 40, RTT);
    }
    path.lose();
    assert_near(path.cwnd(), 20.0, 1e-6);
    assert_near(path.ssthresh(), 40.0, 1e-6);
    path.recovered();
    path.round_trip();
    assert_near(path.cwnd(), 40.0, 1e-6);
}

#[test]
fn random_loss_costs_less_than_it_costs_reno() {
    let mean = |config: &Config| Path::new(config, 10, RTT).mean_window_with_loss_every(400, 40);
    let reno = mean(&Config::Reno(anabranch_congestion::reno::Params::default()));
    let mut westwood = path(10);
    let (mut area, mut rounds) = (0.0, 0);
    // A path without a queue: the RTT never grows, so a loss carries no information about it.
    for loss in 0..40 {
        let mut acked = 0;
        while acked < 400 {
            acked += westwood.round_trip();
            if loss >= 20 {
                area += westwood.cwnd();
                rounds += 1;
            }
        }
        westwood.lose();
        westwood.recovered();
    }
    assert!(area / f64::from(rounds) > 1.5 * reno);
}

#[test]
fn a_pause_yields_no_sample() {
    let mut path = path(20);
    for _ in 0..20 {
        round_of(&mut path, 20, RTT);
    }
    let before = estimate(&path);
    path.idle(Duration::from_secs(60));
    path.round += 1;
    path.ack();
    assert_near(estimate(&path), before, 0.0);
    // Without the rule, an estimate of one segment per minute would have entered.
    round_of(&mut path, 20, RTT);
    round_of(&mut path, 20, RTT);
    assert!(estimate(&path) > 0.9 * before);
}

#[test]
fn sacked_data_counts_once_or_twice() {
    for (counting, expected) in [(Counting::Once, 200.0), (Counting::Twice, 400.0)] {
        let config = Config::WestwoodPlus(Params {
            counting,
            filter: Share::new(0.0),
            ..Params::default()
        });
        let mut path = Path::new(&config, 4, RTT);
        path.ack();
        // Twenty segments in 100 ms are SACKed, then the first of them fills the gap.
        for _ in 0..20 {
            path.pause(RTT / 20);
            path.ack_as(|ack| {
                ack.acked = Bytes::ZERO;
                ack.sacked = SMSS;
            });
        }
        path.round += 1;
        path.ack_as(|ack| {
            ack.acked = SMSS * 20;
            ack.delivered = Bytes::ZERO;
        });
        assert_near(estimate(&path), expected, 1e-6);
    }
}

#[test]
fn a_filter_of_zero_takes_the_last_sample_and_of_one_the_first() {
    for (filter, expected) in [(0.0, 400.0), (1.0, 200.0)] {
        let config = Config::WestwoodPlus(Params {
            filter: Share::new(filter),
            ..Params::default()
        });
        let mut path = Path::new(&config, 4, RTT);
        for window in [20, 20, 20, 40, 40, 40] {
            round_of(&mut path, window, RTT);
        }
        assert_near(estimate(&path), expected, 0.06);
    }
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for (name, value, expected) in [
        ("filter", json!(1.5), "0 to 1"),
        ("filter", json!(-0.1), "0 to 1"),
        ("slow_start_limit", json!("0 packets"), "from 1 to 1000000"),
        ("avoidance", json!("segments"), "`acks`"),
    ] {
        let file = json!({ META.name: { name: value } });
        let message = serde_json::from_value::<Config>(file)
            .expect_err("wrong")
            .to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn linux_halves_at_the_loss_and_applies_bwe_at_the_end() {
    let mut path = linux_path(2_000);
    for _ in 0..200 {
        round_of(&mut path, 40, RTT);
    }
    path.lose();
    assert_near(path.cwnd(), 1_000.0, 1e-6);
    path.recovered();
    assert_near(path.cwnd(), 40.0, 0.03);
    assert_near(path.ssthresh(), 40.0, 0.03);
}

#[test]
fn linux_raises_the_window_to_bwe_after_a_recovery() {
    let mut path = linux_path(20);
    for _ in 0..200 {
        round_of(&mut path, 40, RTT);
    }
    path.lose();
    assert_near(path.cwnd(), 10.0, 1e-6);
    path.recovered();
    assert_near(path.cwnd(), 40.0, 0.03);
}

#[test]
fn linux_keeps_the_window_after_a_spurious_recovery() {
    let mut path = linux_path(2_000);
    for _ in 0..200 {
        round_of(&mut path, 40, RTT);
    }
    path.lose();
    path.spurious(false);
    path.recovered();
    assert_near(path.cwnd(), 2_000.0, 1e-6);
}

#[test]
fn linux_samples_last_50_ms_at_least() {
    // Ten segments in each round trip of 10 ms: a sample of one round trip would measure only the
    // burst.
    let config = Config::WestwoodPlus(Params {
        form: OrStack::Own(Form::Linux),
        filter: Share::new(0.0),
        ..Params::default()
    });
    let mut path = Path::new(&config, 10, RTT);
    path.ack();
    for round in 0..60 {
        path.round += 1;
        let burst = if round % 5 == 0 { 50 } else { 0 };
        for _ in 0..burst {
            path.ack_as(|ack| {
                ack.rtt = Some(Duration::from_millis(10));
                ack.cwnd_limited = false;
            });
        }
        path.pause(Duration::from_millis(10));
    }
    // 50 segments in 50 ms.
    let seen = estimate(&path);
    assert!((500.0..1_100.0).contains(&seen), "{seen}");
}

#[test]
fn linux_filters_twice() {
    let mut path = linux_path(40);
    path.ack();
    // From 20 to 40 segments per round trip: after n samples two stages have covered less than one
    // would.
    for _ in 0..100 {
        round_of(&mut path, 20, RTT);
    }
    let before = estimate(&path);
    for _ in 0..4 {
        round_of(&mut path, 40, RTT);
    }
    let covered = (estimate(&path) - before) / before;
    let one_stage = 1.0 - 0.875_f64 * 0.875 * 0.875 * 0.875;
    assert!(covered > 0.0 && covered < 0.7 * one_stage, "{covered}");
}

/// The data of the first acknowledgment is the first sample, from its transmission until the second
/// acknowledgment.
#[test]
fn linux_begins_with_the_data_of_the_first_acknowledgment() {
    let mut path = linux_path(10);
    path.ack();
    path.pause(Duration::from_millis(1));
    path.ack();
    assert_near(estimate(&path), 1.0 / 0.101, 1e-6);
}

#[test]
fn linux_counts_times_in_ticks() {
    let mut init = Init::new(SMSS, SMSS * 10);
    init.stack.form = Form::Linux;
    init.stack.clock_tick = Duration::from_millis(10);
    // 40.6 ms are five ticks; a sample ends with the sixth.
    for (rtt_us, min_rtt, after_ms, sampled) in [
        (40_600, 50.0, 59, false),
        (40_600, 50.0, 60, true),
        (40_000, 40.0, 60, true),
    ] {
        let rtt = Duration::from_micros(rtt_us);
        let config = Config::WestwoodPlus(Params::default());
        let mut path = Path::from_init(&config, &init, rtt);
        path.ack();
        // The sample began when the data was sent, in an earlier tick.
        let began = path.now.as_picos() - rtt.as_picos();
        path.now = Instant::from_picos(began / 10_000_000_000 * 10_000_000_000);
        path.pause(Duration::from_millis(after_ms));
        path.ack();
        assert_near(path.state("min_rtt").expect("a state"), min_rtt, 0.0);
        assert_eq!(path.state("bwe").is_some(), sampled, "{rtt_us} {after_ms}");
    }
}

/// Each duplicate acknowledgment counts as a segment, however many it reports; the rest counts with
/// the next cumulative acknowledgment.
#[test]
fn linux_counts_a_segment_for_a_duplicate_acknowledgment() {
    let config = Config::WestwoodPlus(Params {
        form: OrStack::Own(Form::Linux),
        filter: Share::new(0.0),
        ..Params::default()
    });
    let mut path = Path::new(&config, 4, RTT);
    path.ack();
    path.pause(Duration::from_millis(1));
    path.ack();
    let sacks = |path: &mut Path, acked| {
        path.pause(Duration::from_millis(101));
        path.ack_as(|ack| {
            ack.acked = acked;
            ack.sacked = SMSS * 8;
            ack.delivered = SMSS * 8;
        });
        estimate(path) * 0.101
    };
    let found = [Bytes::ZERO, Bytes::ZERO, SMSS, SMSS].map(|acked| sacks(&mut path, acked));
    // A sample contains the data counted before the acknowledgment that ends it.
    for (found, expected) in found.into_iter().zip([1.0, 1.0, 1.0, 8.0 + 14.0]) {
        assert_near(found, expected, 1e-6);
    }
}
