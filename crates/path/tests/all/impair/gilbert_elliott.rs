//! Gilbert-Elliott loss: burst lengths, gaps, rates and initial state, each compared with a wrong
//! channel that the same check rejects.

use crate::impair::support;

use anabranch_path::impair::Config;
use serde_json::json;
use support::{are_geometric, config, fits, is_near, losses, runs};

const PACKETS: usize = 400_000;

fn bursts(loss_rate: f64, mean_burst: f64) -> Config {
    config(
        "gilbert-elliott",
        json!({ "loss_rate": loss_rate, "mean_burst": mean_burst }),
    )
}

#[test]
fn bursts_and_gaps_are_geometric() {
    for (seed, loss_rate, mean_burst) in [(1, 0.02, 4.0), (2, 0.1, 1.5), (3, 0.4, 10.0)] {
        let r = 1.0 / mean_burst;
        let p = r * loss_rate / (1.0 - loss_rate);
        let [lost, passed] = runs(&losses(&bursts(loss_rate, mean_burst), seed, PACKETS));
        assert!(are_geometric(&lost, r), "bursts at {loss_rate}");
        assert!(are_geometric(&passed, p), "gaps at {loss_rate}");

        // The same number of losses, independent of each other.
        let bernoulli = config("bernoulli-loss", json!({ "rate": loss_rate }));
        let [lost, passed] = runs(&losses(&bernoulli, seed, PACKETS));
        assert!(!are_geometric(&lost, r) && !are_geometric(&passed, p));
    }
}

#[test]
fn the_loss_share_equals_the_loss_rate() {
    let share_is = |config: &Config, seed, rate: f64, correlation: f64| {
        let lost = losses(config, seed, PACKETS)
            .iter()
            .filter(|lost| **lost)
            .count();
        let n = PACKETS as f64;
        // The variance of a two-state chain's mean: consecutive states are correlated by 1 - p - r.
        let variance = n * rate * (1.0 - rate) * (1.0 + correlation) / (1.0 - correlation);
        is_near(lost as f64, n * rate, variance)
    };
    for (seed, rate, mean_burst) in [(1, 0.02, 4.0), (2, 0.3, 5.0)] {
        let r = 1.0 / mean_burst;
        let correlation = 1.0 - r - r * rate / (1.0 - rate);
        assert!(share_is(&bursts(rate, mean_burst), seed, rate, correlation));
        // A channel that uses `loss_rate` as `p`.
        let mistaken = config("gilbert-elliott", json!({ "p": rate, "r": r }));
        assert!(!share_is(&mistaken, seed, rate, correlation));
    }
}

/// The first two packets of many runs; the first is drawn from the stationary distribution.
fn first_two(config: &Config, runs: u64) -> [usize; 4] {
    let mut cells = [0; 4];
    for seed in 0..runs {
        let lost = losses(config, seed, 2);
        cells[usize::from(lost[0]) * 2 + usize::from(lost[1])] += 1;
    }
    cells
}

#[test]
fn the_general_form_from_the_first_packet_on() {
    let (p, r, h, k) = (0.1, 0.3, 0.25, 0.95);
    let general = |p, r, h, k| config("gilbert-elliott", json!({ "p": p, "r": r, "h": h, "k": k }));
    let bad = p / (p + r);
    // P(lost) in either state, and for two packets in a row, summed over the states of both.
    let lost = [1.0 - k, 1.0 - h];
    let next = [[1.0 - p, p], [r, 1.0 - r]];
    let of = |state: usize, is_lost: bool| {
        if is_lost {
            lost[state]
        } else {
            1.0 - lost[state]
        }
    };
    let expected: [f64; 4] = std::array::from_fn(|cell| {
        let states = [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter();
        let start = [1.0 - bad, bad];
        states
            .map(|(from, to)| {
                start[from] * of(from, cell >= 2) * next[from][to] * of(to, cell % 2 == 1)
            })
            .sum()
    });
    let runs = 60_000;
    assert!(fits(&first_two(&general(p, r, h, k), runs), &expected));
    // `h` and `k` as probabilities of loss; `p` and `r` exchanged; no loss in the good state.
    for wrong in [
        general(p, r, 1.0 - h, 1.0 - k),
        general(r, p, h, k),
        general(p, r, h, 1.0),
    ] {
        assert!(!fits(&first_two(&wrong, runs), &expected), "{wrong:?}");
    }
}

#[test]
fn no_loss_and_all_that_bursts_allow() {
    assert!(!losses(&bursts(0.0, 3.0), 1, 10_000).contains(&true));
    // One packet gets through after each burst.
    let [_, passed] = runs(&losses(&bursts(0.75, 3.0), 1, 10_000));
    assert!(passed.iter().all(|&gap| gap == 1));
    let all = config("gilbert-elliott", json!({ "p": 0.5, "r": 0.0 }));
    assert!(
        !losses(&all, 1, 1_000).contains(&false),
        "a bad state without end"
    );
}

#[test]
fn contradictory_parameters_are_rejected() {
    for (params, key) in [
        (json!({}), ""),
        (json!({ "loss_rate": 0.1 }), "loss_rate"),
        (json!({ "mean_burst": 2.0 }), "mean_burst"),
        (json!({ "p": 0.1 }), "p"),
        (json!({ "r": 0.1 }), "r"),
        (json!({ "p": 0.0, "r": 0.0 }), "r"),
        (
            json!({ "loss_rate": 0.1, "mean_burst": 2.0, "p": 0.1 }),
            "p",
        ),
        (json!({ "loss_rate": 0.1, "r": 0.1 }), "r"),
        (
            json!({ "loss_rate": 0.1, "mean_burst": 2.0, "h": 0.5 }),
            "h",
        ),
        (
            json!({ "loss_rate": 0.1, "mean_burst": 2.0, "k": 0.5 }),
            "k",
        ),
        (json!({ "loss_rate": 0.76, "mean_burst": 3.0 }), "loss_rate"),
        (json!({ "loss_rate": 1.0, "mean_burst": 3.0 }), "loss_rate"),
    ] {
        let wrong = config("gilbert-elliott", params.clone()).check();
        let wrong = wrong.expect_err(&params.to_string());
        assert_eq!(wrong.key.concat(), key, "{params}");
    }
}
