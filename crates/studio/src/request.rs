//! The requests.

use serde::Deserialize;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "request", deny_unknown_fields)]
pub enum Request {
    /// Makes a run.
    Run(Run),
    /// A scenario with every default, without a run.
    Resolve(Run),
    /// Tables of the last run.
    Tables(Tables),
    /// Diagnoses the page's capture, as `anabranch diagnose --json` does.
    Diagnose(Diagnose),
}

/// A run.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// The scenario (TOML).
    pub scenario: String,
    /// Values in place of the scenario's, each as `PATH=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// A seed in place of the scenario's.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Number of samples; 0: none.
    #[serde(default)]
    pub samples: Option<u64>,
    /// Time between samples in milliseconds, in place of their number.
    #[serde(default)]
    pub samples_ms: Option<f64>,
    /// Whether each packet is recorded.
    #[serde(default)]
    pub packets: bool,
    /// Whether the digest is computed.
    #[serde(default)]
    pub digest: bool,
    /// Tables to add to the answer.
    #[serde(default)]
    pub tables: Vec<Wanted>,
}

/// Tables of the last run.
#[derive(Debug, Deserialize)]
pub struct Tables {
    /// The tables.
    pub tables: Vec<Wanted>,
}

/// A table to add to an answer.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// All of it.
    Whole(String),
    /// Columns of the packets of one flow, in order of sending in each direction.
    Packets {
        /// The flow's name.
        flow: String,
        /// The columns.
        columns: Vec<String>,
    },
}

/// A diagnosis of the page's capture.
#[derive(Debug, Deserialize)]
pub struct Diagnose {
    /// The capture's name.
    pub name: String,
    /// Connections of the report to trace for charts.
    #[serde(default)]
    pub connections: Vec<u64>,
    /// Most points of each line of a trace.
    #[serde(default)]
    pub points: Option<usize>,
}
