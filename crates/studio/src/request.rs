//! The requests.

use serde::Deserialize;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "request", deny_unknown_fields)]
pub enum Request {
    /// Makes a run.
    Run(Run),
    /// Tables of the last run.
    Tables(Tables),
    /// Every component with its parameters.
    Registry,
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
    /// Number of samples.
    #[serde(default)]
    pub samples: Option<u64>,
    /// Whether each packet is recorded.
    #[serde(default)]
    pub packets: bool,
    /// Whether the digest is computed.
    #[serde(default)]
    pub digest: bool,
    /// Names of tables to add to the answer.
    #[serde(default)]
    pub tables: Vec<String>,
}

/// Tables of the last run.
#[derive(Debug, Deserialize)]
pub struct Tables {
    /// Their names.
    pub tables: Vec<String>,
}
