//! One path between A and B, its flows, and a run of them.

use std::fmt::Write;

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// Begins a scenario of 20 s; `name` appears in messages.
pub fn simulate(name: &str) -> Simulate {
    Simulate {
        name: name.to_owned(),
        text: "duration = \"20 s\"\nwarmup = \"2 s\"\n".to_owned(),
        flows: 0,
    }
}

/// A scenario under construction.
#[derive(Debug, Clone)]
pub struct Simulate {
    name: String,
    text: String,
    flows: u32,
}

impl Simulate {
    /// The link between A and B: keys as in a scenario file, separated by `;`.
    pub fn path(self, keys: &str) -> Self {
        self.table("link.path", "between = [\"A\", \"B\"]", keys)
    }
    /// Adds a flow from A to B with these keys; the default profile is `rfc`.
    pub fn flow(mut self, keys: &str) -> Self {
        let name = format!("flow.f{}", self.flows);
        self.flows += 1;
        let stack = if keys.contains("stack =") {
            ""
        } else {
            "stack = \"rfc\""
        };
        self.table(&name, &format!("from = \"A\"\nto = \"B\"\n{stack}"), keys)
    }
    fn table(mut self, name: &str, first: &str, keys: &str) -> Self {
        let lines: Vec<&str> = keys.split(';').map(str::trim).collect();
        let _ = writeln!(self.text, "[{name}]\n{first}\n{}", lines.join("\n"));
        self
    }
    /// Runs the scenario.
    pub fn run(&self) -> Finished {
        let scenario = Scenario::parse(&self.text, &self.name, &Extensions::default());
        let resolved = scenario
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Simulation::<Length>::new(&resolved)
            .run()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
    /// Runs the scenario and returns the first flow's goodput, in Mbit/s.
    pub fn goodput(&self) -> f64 {
        let finished = self.run();
        let goodput = &finished.summary.flows["f0"]["goodput_mbit_s"];
        goodput.as_f64().expect("a rate")
    }
}
