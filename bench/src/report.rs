//! The results, as JSON and as a table.

use std::fmt::{self, Write as _};

use serde::Serialize;

/// All results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Our own rows.
    pub dumbbell: Vec<Row>,
    /// Other simulators' rows for the same scenario.
    pub peers: Vec<PeerRow>,
    /// Compiler of the engine, and target.
    pub compiler: &'static str,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the case.
    pub case: &'static str,
    /// Scenario file, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Flows that send from start to end.
    pub flows: u32,
    /// Data packets delivered per second of processor time; the best of several.
    pub packets_per_cpu_s: f64,
    /// Instructions per data packet delivered; `None` where callgrind is missing.
    pub instructions_per_packet: Option<f64>,
    /// Events per data packet delivered.
    pub events_per_packet: f64,
    /// Peak heap of the network divided by the number of flows; includes packets in flight and the
    /// flows' links.
    pub bytes_per_flow: f64,
    /// Heap of the network before its first event divided by the number of flows.
    pub built_bytes_per_flow: Option<f64>,
    /// Maximum number of packets in flight, acknowledgments included.
    pub packets_in_flight: Option<u64>,
    /// Peak memory of the process.
    pub peak_rss_bytes: Option<u64>,
    /// The digest of a separate run with the digest on.
    pub digest: Option<String>,
}

/// The plain case in another simulator.
#[derive(Debug, Clone, Serialize)]
pub struct PeerRow {
    /// Name of the simulator.
    pub simulator: String,
    /// Its version.
    pub version: String,
    /// Name of the case.
    pub case: &'static str,
    /// Number of flows.
    pub flows: u32,
    /// Measured span in simulated seconds.
    pub measured_s: [f64; 2],
    /// Data packets delivered per second of processor time.
    pub packets_per_cpu_s: f64,
    /// Instructions per data packet delivered, if they can be counted.
    pub instructions_per_packet: Option<f64>,
    /// Peak memory of the process.
    pub peak_rss_bytes: Option<u64>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.compiler)?;
        let mut lines = vec![
            [
                "case",
                "flows",
                "M packets/CPU s",
                "instructions",
                "events",
                "B/flow",
                "built",
                "in flight",
                "peak MB",
                "digest",
            ]
            .map(str::to_owned),
        ];
        lines.extend(self.dumbbell.iter().map(Row::cells));
        lines.extend(self.peers.iter().map(PeerRow::cells));
        let widths: Vec<usize> = (0..lines[0].len())
            .map(|column| {
                lines
                    .iter()
                    .map(|line| line[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for line in &lines {
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                // Names are left-aligned, numbers right-aligned.
                if column == 0 || column + 1 == line.len() {
                    write!(text, "{cell:<width$}  ")?;
                } else {
                    write!(text, "{cell:>width$}  ")?;
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        if !self.notes.is_empty() {
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

const NONE: &str = "-";

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{value:.decimals$}"))
}

fn megabytes(bytes: Option<u64>) -> String {
    number(bytes.map(|bytes| bytes as f64 / 1e6), 1)
}

impl Row {
    fn cells(&self) -> [String; 10] {
        let scenario = self.scenario.as_ref();
        [
            scenario.map_or(self.case.to_owned(), |scenario| {
                format!("{} {scenario}", self.case)
            }),
            self.flows.to_string(),
            number(Some(self.packets_per_cpu_s / 1e6), 3),
            number(self.instructions_per_packet, 0),
            number(Some(self.events_per_packet), 2),
            number(Some(self.bytes_per_flow), 0),
            number(self.built_bytes_per_flow, 0),
            self.packets_in_flight
                .map_or(NONE.to_owned(), |n| n.to_string()),
            megabytes(self.peak_rss_bytes),
            self.digest
                .as_ref()
                .map_or(NONE.to_owned(), |digest| digest.chars().take(12).collect()),
        ]
    }
}

impl PeerRow {
    fn cells(&self) -> [String; 10] {
        let none = || NONE.to_owned();
        [
            format!("{} {} {}", self.simulator, self.version, self.case),
            self.flows.to_string(),
            number(Some(self.packets_per_cpu_s / 1e6), 3),
            number(self.instructions_per_packet, 0),
            none(),
            none(),
            none(),
            none(),
            megabytes(self.peak_rss_bytes),
            none(),
        ]
    }
}
