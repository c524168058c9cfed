//! The contract's scenario files, with samples and a row per packet.

use std::{fs, path::Path};

use anabranch::{
    Extensions, Finished, Resolved, Scenario, Simulation, scenario::Error, units::Duration,
};

/// The five files, by name.
pub const fn scenarios() -> [&'static str; 5] {
    [
        "reordering",
        "fairness",
        "multipath",
        "link-aggregation",
        "fec",
    ]
}

/// A scenario file that this version can run.
#[derive(Debug)]
pub struct Contract {
    resolved: Resolved,
}

impl Contract {
    /// Reads and resolves the file of that name.
    ///
    /// # Errors
    /// If the file is missing or cannot be run; the error is one sentence.
    pub fn open(name: &str) -> Result<Self, String> {
        let file = format!("scenarios/{name}.toml");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&file);
        let text = fs::read_to_string(path).map_err(|_| format!("there is no {file}"))?;
        let refused = |error: Error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("not run by this version: {line}")
        };
        let scenario = Scenario::parse(&text, &file, &Extensions::default()).map_err(refused)?;
        let resolved = scenario.resolve(None).map_err(refused)?;
        Ok(Self { resolved })
    }
    /// Number of flows.
    pub fn flows(&self) -> u32 {
        u32::try_from(self.resolved.flows.len()).expect("flows are counted in 32 bits")
    }
    /// One run.
    pub fn run(&self, digest: bool) -> Finished {
        Simulation::new(&self.resolved)
            .digest(digest)
            .packet_log(true)
            .samples(Some(Duration::from_millis(10)))
            .run()
            .expect("no hosts are given and nothing stops it")
    }
}
