//! Error correction through all layers: from the scenario file to the figures of its flows.

use anabranch_core::body::{Length, Octets};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};
use serde_json::Value;

const CONTRACT: &str = include_str!("../../../../scenarios/fec.toml");

fn run_on<B: anabranch_core::body::Body>(sets: &[&str]) -> Finished<B> {
    let mut scenario = Scenario::parse(CONTRACT, "fec.toml", &Extensions::default()).expect("TOML");
    for set in sets {
        scenario.set(set).expect("a path and a value");
    }
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<B>::new(&resolved).run().expect("no hosts")
}

fn run(sets: &[&str]) -> Value {
    run_on::<Length>(sets).summary.flows["main"].clone()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Sato et al. §5: one packet in fmax + 1 is redundant, most losses are recovered, and the flow is
/// faster than without.
#[test]
fn the_example_of_the_contract_runs() {
    let with = run(&[]);
    let without = run(&["flow.main.fec='off'"]);
    assert_eq!(without["fec"], Value::Null);
    let fec = &with["fec"];
    let rate = number(&fec["redundancy_rate"]);
    assert!((rate - 1.0 / 11.0).abs() < 0.002, "{fec}");
    let useful = number(&fec["recovered_packets"]) / number(&fec["redundant_packets"]);
    assert!((useful - number(&fec["effective_recovery_rate"])).abs() < 1e-12);
    let sent = number(&with["sent_packets"]) + number(&fec["redundant_packets"]);
    assert!((number(&fec["redundant_packets"]) / sent - rate).abs() < 1e-12);
    let goodput = |flow: &Value| number(&flow["goodput_mbit_s"]);
    assert!(goodput(&with) > 2.0 * goodput(&without));
    let ends = [
        "repaired",
        "retransmitted",
        "second_gap",
        "group_over",
        "timeout",
    ];
    let ended: f64 = ends.iter().map(|end| number(&fec["releases"][end])).sum();
    // The last hold may be in progress.
    assert!(
        (0.0..=1.0).contains(&(number(&fec["holds"]) - ended)),
        "{fec}"
    );
}

/// Counters of redundancy start at the end of the warm-up, like all counters.
#[test]
fn redundancy_counters_exclude_the_warm_up() {
    let all = run(&["duration='60 s'"]);
    let half = run(&["duration='60 s'", "warmup='30 s'"]);
    let count = |flow: &Value| number(&flow["fec"]["redundant_packets"]);
    assert!(count(&half) < count(&all));
    let share = count(&half) / (count(&half) + number(&half["sent_packets"]));
    assert!((share - number(&half["fec"]["redundancy_rate"])).abs() < 1e-12);
}

/// Runs with lengths and runs with octets are equal, for every code.
#[test]
fn runs_with_lengths_and_octets_are_equal() {
    for fec in [
        "{ kind = 'xor', fmax = 10 }",
        "{ kind = 'reed-solomon', fmax = 40, redundant = 3 }",
        "{ kind = 'sliding-rlc', fmax = 10 }",
        "{ kind = 'reed-solomon', redundancy = 'loss-adaptive', recovered_is_loss = true }",
    ] {
        let sets = [
            &format!("flow.main.fec={fec}"),
            "duration='10 s'",
            "link.middle.forward.impair.0.rate=0.02",
            "link.middle.delay='10 ms'",
        ];
        let lengths = run_on::<Length>(&sets).summary;
        let octets = run_on::<Octets>(&sets).summary;
        assert_eq!(lengths.flows, octets.flows, "{fec}");
        assert_eq!(lengths.digest, octets.digest, "{fec}");
        let recovered = &lengths.flows["main"]["fec"]["recovered_packets"];
        assert!(number(recovered) > 0.0, "{fec}");
        assert_eq!(lengths.flows["main"]["fec"]["refused_packets"], 0, "{fec}");
    }
}

/// RFC 9265: if recovered packets count as losses, random losses limit the window as without error
/// correction; otherwise they do not.
#[test]
fn hidden_losses_limit_the_window_if_they_count() {
    let cwnd = |fec: &str| {
        let flow = run(&[
            &format!("flow.main.fec={fec}"),
            "link.middle.delay='30 ms'",
            "link.middle.forward.impair.0.rate=0.001",
        ]);
        number(&flow["mean_cwnd_packets"])
    };
    let plain = cwnd("'off'");
    let hidden = cwnd("{ kind = 'xor', fmax = 10 }");
    let heard = cwnd("{ kind = 'xor', fmax = 10, recovered_is_loss = true }");
    assert!(hidden > 2.0 * plain, "{hidden} {plain}");
    assert!((0.7..1.4).contains(&(heard / plain)), "{heard} {plain}");
}

/// The counters of several connections are summed, and files are complete.
#[test]
fn counters_of_transfers_add_up() {
    let flow = run(&[
        "duration='20 s'",
        "link.middle.delay='10 ms'",
        "link.middle.forward.impair.0.rate=0.01",
        "flow.main.workload={ kind = 'poisson', rate = '2 Mbit/s', sizes = { kind = 'fixed', size = '50 kB' } }",
    ]);
    assert!(number(&flow["fec"]["recovered_packets"]) > 5.0, "{flow}");
    assert!(number(&flow["transfers"]["completed"]) > 50.0, "{flow}");
}
