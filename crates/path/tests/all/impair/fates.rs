//! Random, chain and list losses, copies and damage: rates and patterns, each compared with a wrong
//! system that the same check rejects.

use crate::impair::support;

use anabranch_core::units::{Duration, Instant};
use anabranch_path::impair::{Config, Verdict};
use serde_json::{Value, json};
use support::{Bench, are_geometric, config, fits, losses, runs, verdicts};

const PACKETS: usize = 200_000;
const MS: Duration = Duration::from_millis(1);

/// Whether each packet has `verdict` at `rate`.
fn chosen(kind: &str, rate: f64, verdict: Verdict) -> Vec<bool> {
    let all = verdicts(&config(kind, json!({ "rate": rate })), 1, PACKETS);
    assert!(
        all.iter()
            .all(|one| *one == verdict || *one == Verdict::Pass)
    );
    all.into_iter().map(|one| one == verdict).collect()
}

#[test]
fn losses_copies_and_damage_are_independent() {
    for (kind, verdict) in [
        ("bernoulli-loss", Verdict::Lose),
        ("duplicate", Verdict::Duplicate),
        ("corrupt", Verdict::Corrupt),
    ] {
        for rate in [0.01, 0.3] {
            let is_right = |chosen: &[bool]| {
                let count = chosen.iter().filter(|one| **one).count();
                let [hit, missed] = runs(chosen);
                fits(&[count, PACKETS - count], &[rate, 1.0 - rate])
                    && are_geometric(&hit, 1.0 - rate)
                    && are_geometric(&missed, rate)
            };
            assert!(is_right(&chosen(kind, rate, verdict)), "{kind} at {rate}");
            // A rate a fifth too high; the right rate in bursts.
            assert!(!is_right(&chosen(kind, rate * 1.2, verdict)));
            let bursts = json!({ "loss_rate": rate, "mean_burst": 2.0 });
            assert!(!is_right(&losses(
                &config("gilbert-elliott", bursts),
                1,
                PACKETS
            )));
        }
        assert!(!chosen(kind, 0.0, verdict).contains(&true));
        assert!(!chosen(kind, 1.0, verdict).contains(&false));
    }
}

#[test]
fn long_packets_are_damaged_more_often() {
    let damaged = |ber: f64, size: u32| {
        let mut bench = Bench::new(&config("corrupt", json!({ "bit_error_rate": ber })), 2);
        let verdicts = (0..PACKETS).map(|_| bench.sized(Instant::START, size));
        verdicts
            .filter(|verdict| *verdict == Verdict::Corrupt)
            .count()
    };
    let is_right = |count: usize, ber: f64, size: u32| {
        let right = (0..size * 8).fold(1.0, |right, _| right * (1.0 - ber));
        fits(&[count, PACKETS - count], &[1.0 - right, right])
    };
    for (ber, size) in [(1e-5, 1_500), (1e-5, 40), (1e-4, 1_500)] {
        assert!(is_right(damaged(ber, size), ber, size), "{ber} {size}");
    }
    // An impairment that treats each packet as 1,500 bytes.
    assert!(!is_right(damaged(1e-5, 1_500), 1e-5, 40));
    assert_eq!(damaged(1.0, 40), PACKETS);
    assert_eq!(damaged(0.0, 1_500), 0);
}

/// Transition matrix in the paper's order: gap, pass within a burst, loss within a burst, single
/// loss.
fn transitions(p13: f64, p31: f64, p32: f64, p23: f64, p14: f64) -> [[f64; 4]; 4] {
    [
        [1.0 - p13 - p14, 0.0, p13, p14],
        [0.0, 1.0 - p23, p23, 0.0],
        [p31, p32, 1.0 - p31 - p32, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ]
}

fn step(from: [f64; 4], rows: &[[f64; 4]; 4]) -> [f64; 4] {
    let mut to = [0.0; 4];
    for (p, row) in from.iter().zip(rows) {
        for (to, q) in to.iter_mut().zip(row) {
            *to += p * q;
        }
    }
    to
}

/// Probabilities of each loss pattern of the first three packets, if the first state has the
/// distribution `start`.
fn patterns(start: [f64; 4], rows: &[[f64; 4]; 4]) -> [f64; 8] {
    let keep = |of: [f64; 4], lost: bool| -> [f64; 4] {
        std::array::from_fn(|state| if (state >= 2) == lost { of[state] } else { 0.0 })
    };
    std::array::from_fn(|pattern| {
        let lost = [pattern & 4 != 0, pattern & 2 != 0, pattern & 1 != 0];
        let mut at = keep(start, lost[0]);
        for lost in &lost[1..] {
            at = keep(step(at, rows), *lost);
        }
        at.iter().sum()
    })
}

#[test]
fn the_four_states_follow_the_paper() {
    let chain = |p13: f64, p31: f64, p32: f64, p23: f64, p14: f64| {
        config(
            "four-state-loss",
            json!({ "p13": p13, "p31": p31, "p32": p32, "p23": p23, "p14": p14 }),
        )
    };
    let seen = |config: &Config| {
        let mut cells = [0; 8];
        for seed in 0..60_000 {
            let lost = losses(config, seed, 3);
            cells[lost
                .iter()
                .fold(0, |cell, lost| cell * 2 + usize::from(*lost))] += 1;
        }
        cells
    };
    let rows = transitions(0.1, 0.25, 0.35, 0.6, 0.05);
    // Iterated until it converges; the chain is aperiodic.
    let stationary = (0..2_000).fold([1.0, 0.0, 0.0, 0.0], |at, _| step(at, &rows));
    let expected = patterns(stationary, &rows);
    let right = seen(&chain(0.1, 0.25, 0.35, 0.6, 0.05));
    assert!(fits(&right, &expected), "{right:?}");
    // A chain that was in a gap before the first packet has another distribution, and so do other
    // parameters.
    assert!(!fits(&right, &patterns(rows[0], &rows)));
    for wrong in [
        chain(0.1, 0.35, 0.25, 0.6, 0.05),
        chain(0.1, 0.25, 0.35, 0.8, 0.05),
        chain(0.15, 0.25, 0.35, 0.6, 0.0),
    ] {
        assert!(!fits(&seen(&wrong), &expected), "{wrong:?}");
    }
}

#[test]
fn four_state_loss_reduces_to_the_simpler_models() {
    // One probability: independent loss (tc-netem(8)).
    let bernoulli = losses(
        &config("four-state-loss", json!({ "p13": 0.1 })),
        1,
        PACKETS,
    );
    let count = bernoulli.iter().filter(|lost| **lost).count();
    assert!(fits(&[count, PACKETS - count], &[0.1, 0.9]));
    assert!(are_geometric(&runs(&bernoulli)[0], 0.9));
    // Two: Gilbert's channel.
    let gilbert = json!({ "p13": 0.05, "p31": 0.4 });
    let [lost, passed] = runs(&losses(&config("four-state-loss", gilbert), 1, PACKETS));
    assert!(are_geometric(&lost, 0.4) && are_geometric(&passed, 0.05));
    assert!(!are_geometric(&lost, 0.45) && !are_geometric(&passed, 0.055));
    // Only single losses.
    let single = json!({ "p14": 0.1 });
    let [lost, passed] = runs(&losses(&config("four-state-loss", single), 1, PACKETS));
    assert!(lost.iter().all(|run| *run == 1) && are_geometric(&passed, 0.1));
}

#[test]
fn a_list_loses_the_listed_packets() {
    let lost = |params: Value, times_ms: &[u64]| -> Vec<usize> {
        let mut bench = Bench::new(&config("loss-list", params), 1);
        let verdicts: Vec<_> = times_ms
            .iter()
            .map(|ms| bench.packet(Instant::START + MS * *ms))
            .collect();
        (0..verdicts.len())
            .filter(|k| verdicts[*k] == Verdict::Lose)
            .collect()
    };
    let every_10_ms: Vec<u64> = (0..20).map(|k| k * 10).collect();
    assert_eq!(
        lost(json!({ "packets": [7, 0, 19] }), &every_10_ms),
        [0, 7, 19]
    );
    assert!(lost(json!({ "packets": [25] }), &every_10_ms).is_empty());
    // The next packet at or after each time.
    assert_eq!(
        lost(json!({ "times": ["50 ms", "0 s", "101 ms"] }), &every_10_ms),
        [0, 5, 11]
    );
    assert_eq!(
        lost(json!({ "times": ["0 s", "0 s"] }), &every_10_ms),
        [0, 1]
    );
    // A packet that matches a number and a time is lost once; the time applies to the next.
    assert_eq!(
        lost(json!({ "packets": [5], "times": ["50 ms"] }), &every_10_ms),
        [5, 6]
    );
    // After a silence all overdue times apply, packet by packet.
    assert_eq!(
        lost(
            json!({ "times": ["1 ms", "2 ms", "3 ms"] }),
            &[0, 500, 501, 502, 503]
        ),
        [1, 2, 3]
    );
}

/// Pure acknowledgments and SYNs do not change the count of packets with data.
#[test]
fn a_list_counts_packets_with_data_separately() {
    let lost = |params: Value, has_data: &[bool]| -> Vec<usize> {
        let mut bench = Bench::new(&config("loss-list", params), 1);
        let verdicts: Vec<_> = has_data
            .iter()
            .map(|has_data| bench.with_data(*has_data))
            .collect();
        (0..verdicts.len())
            .filter(|k| verdicts[*k] == Verdict::Lose)
            .collect()
    };
    // SYN, acknowledgment, data; SYN, data.
    let [linux, rfc] = [
        &[false, false, true, true, true][..],
        &[false, true, true, true],
    ];
    assert_eq!(lost(json!({ "data_packets": [0, 2] }), linux), [2, 4]);
    assert_eq!(lost(json!({ "data_packets": [0, 2] }), rfc), [1, 3]);
    assert_eq!(lost(json!({ "packets": [1] }), linux), [1]);
    // Both counts continue if a packet matches both.
    assert_eq!(
        lost(json!({ "packets": [2, 3], "data_packets": [0, 2] }), linux),
        [2, 3, 4]
    );
}

/// Lists in files: numbers and times, comments and blank lines.
#[test]
fn lists_are_read_from_files() {
    let read = |kind: &str, params: Value, text: &str| {
        let mut config = config(kind, params);
        assert_eq!((config.file(), config.check()), (Some("list.txt"), Ok(())));
        config
            .take_file(text)
            .map(|()| config)
            .map_err(|wrong| text[wrong.at].to_owned())
    };
    let list = json!({ "file": "list.txt", "packets": [3] });
    assert_eq!(
        read("loss-list", list.clone(), "# lost\n10\n\n 2.5 s # later\n"),
        Ok(config(
            "loss-list",
            json!({ "packets": [3, 10], "times": ["2.5 s"] })
        ))
    );
    assert_eq!(read("loss-list", list, "10\n2.5\n"), Err("2.5".to_owned()));
    let table = json!({ "distribution": "table", "file": "list.txt" });
    assert_eq!(
        read("jitter", table.clone(), "1 ms\n20 us\n"),
        Ok(config(
            "jitter",
            json!({ "distribution": "table", "table": ["1 ms", "20 us"] })
        ))
    );
    assert_eq!(
        read("jitter", table.clone(), "1 ms\n20\n"),
        Err("20".to_owned())
    );
    assert_eq!(read("jitter", table, "# none\n"), Err(String::new()));
}

#[test]
fn contradictory_parameters_are_rejected() {
    for (kind, params, key) in [
        ("loss-list", json!({}), ""),
        ("loss-list", json!({ "packets": [3, 1, 3] }), "packets"),
        (
            "loss-list",
            json!({ "data_packets": [3, 3] }),
            "data_packets",
        ),
        (
            "corrupt",
            json!({ "rate": 0.1, "bit_error_rate": 1e-6 }),
            "bit_error_rate",
        ),
        ("four-state-loss", json!({ "p13": 0.6, "p14": 0.6 }), "p14"),
        ("four-state-loss", json!({ "p13": 0.1, "p32": 0.2 }), "p32"),
        (
            "four-state-loss",
            json!({ "p13": 0.1, "p31": 0.6, "p32": 0.6 }),
            "p32",
        ),
        ("four-state-loss", json!({ "p13": 0.1, "p31": 0.0 }), "p31"),
        ("four-state-loss", json!({ "p13": 1.0 }), "p13"),
        (
            "four-state-loss",
            json!({ "p13": 0.1, "p31": 0.5, "p32": 0.5, "p23": 0.0 }),
            "p23",
        ),
    ] {
        let wrong = config(kind, params.clone()).check();
        let wrong = wrong.expect_err(&params.to_string());
        assert_eq!(wrong.key.concat(), key, "{params}");
    }
}
