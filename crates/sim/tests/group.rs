//! Link groups: members that are switched, through all layers.

mod common;

use anabranch_elements::body::Length;
use anabranch_model::scenario::{Extensions, Scenario};
use anabranch_sim::{Finished, Simulation};

const CONTRACT: &str = include_str!("../../../scenarios/link-aggregation.toml");

fn run(text: &str, sets: &[&str]) -> Finished {
    let mut scenario = Scenario::parse(text, "group.toml", &Extensions::default()).expect("TOML");
    for set in sets {
        scenario.set(set).expect("a path and a value");
    }
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved).run().expect("no hosts")
}

#[test]
fn the_example_of_the_contract_runs() {
    for sets in [&["duration='5 s'"][..], &["duration='5 s'", "flow.main.cc=cubic"], &["duration='5 s'", "group.core.control=always-on"],
      &["duration='5 s'", "group.core.control=lpi"],&["duration='5 s'", "group.core.spread=per-flow"],&["duration='5 s'", "group.core.control=ewma-hysteresis", "group.core.wake_time='2 ms'", "group.core.delay='1 ms'"]] {
        let t = std::time::Instant::now();
        let f = run(CONTRACT, sets);
        println!("{sets:?} {:?}", t.elapsed());
        println!("{}", serde_json::to_string(&f.summary.groups).unwrap());
        println!("{}", serde_json::to_string(&f.summary.links["core"]).unwrap());
        println!("{} {} {}", f.summary.flows["main"]["throughput_mbit_s"], f.summary.flows["main"]["retransmitted_packets"], f.summary.flows["main"]["reordered_ratio"]);
    }
}
