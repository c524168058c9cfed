//! Runs that log every packet, and access to their figures.

use anabranch_core::body::Length;
use anabranch_engine::record::PacketRow;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// Runs a scenario with its packets logged.
pub fn logged(text: &str, extensions: &Extensions) -> Finished {
    let scenario = Scenario::parse(text, "scenario.toml", extensions).expect("TOML");
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .packet_log(true)
        .run()
        .expect("no hosts")
}

/// Returns every packet.
pub fn rows(run: &Finished) -> Vec<PacketRow> {
    let log = run.network.probe().log().expect("it was asked for");
    log.rows().cloned().collect()
}

/// Returns a figure of a flow's summary.
pub fn figure(run: &Finished, flow: &str, name: &str) -> f64 {
    let figure = &run.summary.flows[flow][name];
    figure
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {flow} is {figure}"))
}
