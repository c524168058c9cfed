//! TCP-NCR under persistent reordering: packets alternate between two paths of unequal delay.

use anabranch_core::body::Length;
use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

const TWO_PATHS: &str = include_str!("../../../../studies/reordering/two-paths.toml");

/// The ratio of the largest to the smallest throughput for initial windows of 10, 20 and 40
/// segments.
fn spread(remedy: &str) -> f64 {
    let throughput = |initial_cwnd: u32| {
        let mut scenario = Scenario::parse(TWO_PATHS, "two-paths.toml", &Extensions::default())
            .expect("the study's own");
        scenario
            .set("link.far.delay=\"45 ms\"")
            .expect("a delay of a link");
        scenario
            .set(&format!(
                "flow.main.transport={{ send_buffer = \"unlimited\", receive_window = \"158 packets\", \
                 initial_cwnd = {initial_cwnd}, reordering = {remedy} }}"
            ))
            .expect("settings of a flow");
        let resolved = scenario
            .resolve(None)
            .unwrap_or_else(|error| panic!("{error}"));
        let run = Simulation::<Length>::new(&resolved).run();
        run.expect("no hosts").summary.flows["main"]["throughput_mbit_s"]
            .as_f64()
            .expect("a figure")
    };
    let all = [10, 20, 40].map(throughput);
    all.into_iter().fold(0.0, f64::max) / all.into_iter().fold(f64::INFINITY, f64::min)
}

/// RFC 4653 §3.2 (T.4) keeps the flight size from the beginning of the reordering, so that
/// throughput depends on the initial window. With a restart it does not, within a tenth. Each
/// variant is the other's wrong system.
#[test]
fn only_a_kept_flight_size_depends_on_the_initial_window() {
    for variant in ["careful", "aggressive"] {
        let of = |restart: &str| {
            spread(&format!(
                "{{ kind = \"ncr\", variant = \"{variant}\", restart = \"{restart}\" }}"
            ))
        };
        let (keep, anew) = (of("keep"), of("anew"));
        assert!(keep > 1.1, "{variant}: {keep}");
        assert!(anew < 1.1, "{variant}: {anew}");
    }
}
