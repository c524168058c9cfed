//! The results, as JSON and as a table.

use std::fmt;

use serde::Serialize;

/// All results.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Our own rows.
    pub dumbbell: Vec<Row>,
    /// Other simulators' rows for the same scenario.
    pub peers: Vec<PeerRow>,
    /// Cases without a result, or with an implausible one.
    pub failed: Vec<Failure>,
    /// Compiler of the engine, and target.
    pub compiler: &'static str,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// A case without a plausible result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The case: `plain/10`, `ns-2 plain/10`.
    pub case: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FAILED  {}: {}", self.case, self.reason)
    }
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// Columns of the table with their widths. The widths are constant, because each line is printed
/// when its case is finished.
const COLUMNS: [(&str, usize); 10] = [
    ("case", 36),
    ("flows", 6),
    ("M packets/CPU s", 15),
    ("instructions", 12),
    ("events", 8),
    ("B/flow", 10),
    ("built", 9),
    ("in flight", 9),
    ("peak MB", 8),
    ("digest", 12),
];

/// The table's first line.
pub fn header() -> String {
    line(&COLUMNS.map(|(name, _)| name.to_owned()))
}

/// A line of the table. Names are left-aligned, numbers right-aligned.
fn line(cells: &[String; 10]) -> String {
    let last = COLUMNS.len() - 1;
    let cells = cells.iter().zip(COLUMNS).enumerate();
    let cells = cells.map(|(column, (cell, (_, width)))| match column {
        _ if column == 0 || column == last => format!("{cell:<width$}"),
        _ => format!("{cell:>width$}"),
    });
    let text = cells.collect::<Vec<_>>().join("  ");
    text.trim_end().to_owned()
}

const NONE: &str = "-";

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{value:.decimals$}"))
}

fn megabytes(bytes: Option<u64>) -> String {
    number(bytes.map(|bytes| bytes as f64 / 1e6), 1)
}

impl Row {
    /// The case's name at the command line.
    pub fn id(&self) -> String {
        let scenario = self.scenario.as_deref();
        let scenario = scenario.map_or(String::new(), |name| format!("/{name}"));
        format!("{}/{}{scenario}", self.case, self.flows)
    }

    /// Line of the table.
    pub fn line(&self) -> String {
        line(&self.cells())
    }

    /// Reason why the figures cannot be those of a working case.
    pub fn implausible(&self) -> Option<String> {
        let is_rate = |value: f64| value.is_finite() && value > 0.0;
        let figures = [
            ("packets per CPU second", Some(self.packets_per_cpu_s)),
            ("instructions per packet", self.instructions_per_packet),
            ("events per packet", Some(self.events_per_packet)),
            ("bytes per flow", Some(self.bytes_per_flow)),
        ];
        for (name, value) in figures {
            if let Some(value) = value
                && !is_rate(value)
            {
                return Some(format!("{name}: {value}"));
            }
        }
        let is_digest =
            |text: &String| text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        match &self.digest {
            None => Some("no digest".to_owned()),
            Some(digest) if !is_digest(digest) => Some(format!("`{digest}` is no digest")),
            Some(_) => None,
        }
    }

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
    /// Line of the table.
    pub fn line(&self) -> String {
        line(&self.cells())
    }

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

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A plausible row.
    pub fn row(case: &'static str, flows: u32, digest: &str) -> Row {
        Row {
            case,
            scenario: None,
            flows,
            packets_per_cpu_s: 4.5e6,
            instructions_per_packet: Some(3_365.0),
            events_per_packet: 4.0,
            bytes_per_flow: 11_800.0,
            built_bytes_per_flow: None,
            packets_in_flight: None,
            peak_rss_bytes: Some(20_000_000),
            digest: Some(digest.to_owned()),
        }
    }

    const DIGEST: &str = "005241afd941e4be101f3ac6356d58e0";

    #[test]
    fn cells_are_below_their_columns() {
        let (header, line) = (header(), row("plain", 10, DIGEST).line());
        for (name, cell) in [
            ("flows", "10"),
            ("instructions", "3365"),
            ("peak MB", "20.0"),
        ] {
            let end = |text: &str, part: &str| text.find(part).map(|start| start + part.len());
            assert_eq!(end(&header, name), end(&line, cell), "{header}\n{line}");
        }
        assert!(line.ends_with("005241afd941"), "{line}");
    }

    #[test]
    fn detects_figures_of_a_case_that_did_not_work() {
        let good = row("plain", 10, DIGEST);
        assert_eq!(good.implausible(), None);
        let wrong = [
            Row {
                packets_per_cpu_s: f64::NAN,
                ..good.clone()
            },
            Row {
                instructions_per_packet: Some(0.0),
                ..good.clone()
            },
            Row {
                events_per_packet: f64::INFINITY,
                ..good.clone()
            },
            Row {
                digest: None,
                ..good.clone()
            },
            row("plain", 10, "12"),
        ];
        for row in wrong {
            assert!(row.implausible().is_some(), "{row:?}");
        }
    }
}
