//! The draft's formulas, computed independently from its numbers, and the steps that only single
//! events show.

#![expect(clippy::float_cmp, reason = "exact by construction")]

use super::{
    state::{Low, Phase},
    *,
};

const SMSS: f64 = 1_000.0;

fn init() -> Init {
    Init::new(Bytes::new(1_000), Bytes::new(10_000))
}

/// A model in `state` on a path of `bw` bytes per second and `rtt_ms`.
fn model(state: State, bw: f64, rtt_ms: u64) -> Box<Model> {
    let mut model = Bbr3::new(&Params::default(), &init()).0;
    model.state = state;
    model.max_bw.update(0, 2, bw);
    model.min_rtt = Some((Duration::from_millis(rtt_ms), Instant::START));
    model.full.reached = true;
    model.cwnd = 1e12;
    model
}

fn lost(number: u64, tx_in_flight: u64, lost: u64) -> Lost {
    Lost {
        now: Instant::from_millis(1_000),
        number,
        bytes: Bytes::new(1_000),
        tx_in_flight: Bytes::new(tx_in_flight),
        lost: Bytes::new(lost),
        app_limited: false,
        delivered: Bytes::new(1_000_000),
        selective: true,
    }
}

fn ack(now: Instant) -> Ack {
    Ack {
        now,
        acked: Bytes::new(1_000),
        sacked: Bytes::ZERO,
        delivered: Bytes::new(1_000),
        lost: Bytes::ZERO,
        ce_marked: Bytes::ZERO,
        prior_in_flight: Bytes::ZERO,
        in_flight: Bytes::ZERO,
        rtt: None,
        rtt_by_timestamp: None,
        srtt: Duration::from_millis(50),
        min_rtt: Duration::from_millis(50),
        rate: None,
        round: 0,
        cwnd_limited: true,
        app_limited: false,
        in_recovery: false,
    }
}

/// Every state with its gains of rate and window (table of §5.6.1).
fn states() -> [(State, f64, f64); 7] {
    let now = Instant::START;
    let holding = Low::Holding {
        until: now,
        round_done: false,
    };
    [
        (State::Startup, 2.77, 2.0),
        (State::Drain { since_round: 0 }, 0.5, 2.0),
        (State::ProbeBw(Phase::Down), 0.9, 2.0),
        (State::ProbeBw(Phase::Cruise), 1.0, 2.0),
        (State::ProbeBw(Phase::Refill), 1.0, 2.0),
        (State::ProbeBw(Phase::Up), 1.25, 2.25),
        (State::ProbeRtt(holding), 1.0, 0.5),
    ]
}

/// Rates in bytes per second and round-trip times in ms, for windows from below a segment to a
/// million.
const PATHS: [(f64, u64); 5] = [
    (8_000.0, 20),
    (1_250_000.0, 40),
    (12_500_000.0, 100),
    (1_250_000_000.0, 1),
    (10_000_000_000.0, 100),
];

#[test]
fn rate_and_window_match_the_draft_in_every_state() {
    let mut points = 0;
    for (state, pacing, window) in states() {
        for (bw, rtt_ms) in PATHS {
            let mut model = model(state, bw, rtt_ms);
            model.pacing_rate = 0.0;
            model.set_pacing_rate(model.state.pacing_gain(&model.params));
            // One percent below the bandwidth (§5.6.2).
            let rate = bw * pacing * 99.0 / 100.0;
            assert!((model.pacing_rate / rate - 1.0).abs() < 1e-12);
            // Three bursts of a millisecond each, of two segments to 64 KB (§5.6.3, §5.5.8.1).
            let quantum = (rate / 1_000.0).clamp(2.0 * SMSS, 65_536.0);
            let bdp = bw * rtt_ms as f64 / 1_000.0;
            let probing = if state == State::ProbeBw(Phase::Up) {
                2.0 * SMSS
            } else {
                0.0
            };
            let volume = |gain: f64| (gain * bdp).max(3.0 * quantum).max(4.0 * SMSS) + probing;
            let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-12;
            assert!(near(model.max_inflight(), volume(window)), "{state:?}");
            assert!(near(model.inflight(bw, 1.0), volume(1.0)), "{state:?}");
            let low = (0.5 * bdp).max(4.0 * SMSS);
            assert!(near(model.probe_rtt_cwnd(), low));
            points += 1;
        }
    }
    assert_eq!(points, 35);
}

#[test]
fn the_window_is_capped_by_the_table_of_the_draft() {
    for (longterm, headroom) in [(100.0, 85.0), (200.0, 170.0), (6.0, 5.0), (4.0, 4.0)] {
        for (state, _, _) in states() {
            let mut model = model(state, 1.25e6, 40);
            assert_eq!(model.volume_cap(), f64::INFINITY);
            model.inflight_longterm = longterm * SMSS;
            let cap = match state {
                State::Startup | State::Drain { .. } => f64::INFINITY,
                State::ProbeBw(Phase::Cruise) | State::ProbeRtt(_) => headroom * SMSS,
                State::ProbeBw(_) => longterm * SMSS,
            };
            assert_eq!(model.volume_cap(), cap, "{state:?}");
            model.short_term.inflight = 50.0 * SMSS;
            assert_eq!(model.volume_cap(), cap.min(50.0 * SMSS));
            model.short_term.inflight = SMSS;
            assert_eq!(model.volume_cap(), 4.0 * SMSS);
        }
    }
}

#[test]
fn the_probe_interval_is_the_least_of_rounds_and_seconds() {
    for (bdp_segments, rounds) in [(5, 5.0), (40, 40.0), (63, 63.0), (1_000, 63.0)] {
        let bw = f64::from(bdp_segments) * SMSS / 0.05;
        let mut model = model(State::ProbeBw(Phase::Cruise), bw, 50);
        assert!((model.reno_rounds() - rounds).abs() < 1e-9);
        // A smaller window, kept low by losses, counts instead.
        model.cwnd = 4.0 * SMSS;
        assert!((model.reno_rounds() - 4.0).abs() < 1e-9);
    }
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for ms in 0..1_000 {
        let mut model = model(State::ProbeBw(Phase::Up), 1e6, 50);
        model.start_probe_bw_down(Instant::from_millis(ms));
        assert!(model.cycle.rounds_since_probe_up <= 1);
        least = least.min(model.cycle.wait.as_secs_f64());
        most = most.max(model.cycle.wait.as_secs_f64());
    }
    assert!((2.0..2.02).contains(&least) && (2.98..3.0).contains(&most));
}

#[test]
fn inflight_at_loss_is_the_point_at_which_losses_pass_two_percent() {
    // In each case the segment after `inflight_prev` is lost. The share of losses reaches 2 %
    // within that segment.
    for (inflight_prev, lost_prev) in [(100.0, 1.0), (150.0, 2.0), (1e6, 19_999.0), (49.0, 0.0)] {
        let model = model(State::ProbeBw(Phase::Up), 1e6, 50);
        let found = model.inflight_at_loss(inflight_prev * SMSS, lost_prev * SMSS) / SMSS;
        let prefix = found - inflight_prev;
        let share = (lost_prev + prefix) / (inflight_prev + prefix);
        assert!((share - 0.02).abs() < 1e-9, "{share}");
    }
}

#[test]
fn a_probe_that_loses_more_than_two_percent_bounds_the_flight() {
    // The BDP is 100 segments; the probe has 125 in flight at the losses.
    for (tx, lost_bytes, expected) in [
        // 2 of 125 are below the threshold.
        (125_000, 2_000, None),
        // 3 of 125 are above it: at 124 + (0.02 · 124 − 2) ÷ 0.98 the share exceeded 2 %.
        (125_000, 3_000, Some(124_000.0 + (2_480.0 - 2_000.0) / 0.98)),
        // Never below 0.7 BDP.
        (20_000, 3_000, Some(70_000.0)),
    ] {
        let mut model = model(State::ProbeBw(Phase::Up), 2e6, 50);
        model.cycle.is_probe_sample = true;
        // The start of a recovery.
        model.save_state_upon_loss();
        model.repair = Repair::Fast {
            began: 0.0,
            noted: true,
        };
        model.handle_lost_packet(&lost(7, tx, lost_bytes));
        match expected {
            None => {
                assert_eq!(model.inflight_longterm, f64::INFINITY);
                assert_eq!(model.state, State::ProbeBw(Phase::Up));
            }
            Some(expected) => {
                assert!((model.inflight_longterm - expected).abs() < 1e-6);
                assert_eq!(model.state, State::ProbeBw(Phase::Down));
                assert!(model.cycle.too_high);
                // Only once per probe.
                model.handle_lost_packet(&lost(9, 10_000, 5_000));
                assert!((model.inflight_longterm - expected).abs() < 1e-6);
                // The losses prove spurious.
                model.handle_spurious_loss_detection();
                assert_eq!(model.inflight_longterm, f64::INFINITY);
                assert_eq!(model.state, State::ProbeBw(Phase::Refill));
            }
        }
    }
}

#[test]
fn a_round_with_losses_between_probes_bounds_rate_and_flight() {
    for (delivered, bw, inflight) in [(60_000, 1.4e6, 70_000.0), (90_000, 1.8e6, 90_000.0)] {
        let mut model = model(State::ProbeBw(Phase::Cruise), 2e6, 50);
        model.cwnd = 100_000.0;
        model.handle_lost_packet(&lost(7, 100_000, 1_000));
        assert_eq!(model.inflight_longterm, f64::INFINITY);
        let mut ack = ack(Instant::from_millis(1_100));
        ack.rate = Some(crate::RateSample {
            delivered: Bytes::new(delivered),
            interval: Duration::from_millis(50),
            is_reliable: true,
            prior_delivered: Bytes::new(1_000_000),
            app_limited: false,
            tx_in_flight: Bytes::new(100_000),
            lost: Bytes::new(1_000),
        });
        model.update_delivered(&ack);
        let rs = Sample::new(&ack, -1.0);
        model.update_latest_delivery_signals(&rs);
        model.update_congestion_signals(&rs);
        assert!((model.short_term.bw - bw).abs() < 1.0);
        assert!((model.short_term.inflight - inflight).abs() < 1.0);
        assert_eq!(model.bw(), model.short_term.bw);
        // The next probe resets both.
        model.start_probe_bw_refill();
        assert_eq!(model.bw(), 2e6);
        assert_eq!(model.short_term.inflight, f64::INFINITY);
    }
}

#[test]
fn marks_end_a_probe_and_bound_the_cruise() {
    let mut model = model(State::ProbeBw(Phase::Up), 2e6, 50);
    model.cycle.is_probe_sample = true;
    model.handle_mark(Instant::from_millis(5), 110_000.0);
    assert_eq!(model.state, State::ProbeBw(Phase::Down));
    assert_eq!(model.inflight_longterm, 110_000.0);
    let mut startup = Bbr3::new(&Params::default(), &init());
    startup.on_congestion(&Congestion {
        now: Instant::from_millis(5),
        signal: Signal::EcnCe,
        in_flight: Bytes::new(10_000),
    });
    startup.on_ack(&ack(Instant::from_millis(6)));
    assert_ne!(startup.0.state, State::Startup);
}
