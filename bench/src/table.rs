//! The table of the documentation: packets per processor second beside other simulators.

use std::{collections::BTreeSet, fmt::Write as _, fs, io, path::Path};

use crate::report::Report;

/// Comments around the table, which readers of the page do not see.
const MARKS: [&str; 2] = ["<!-- peers: begin -->", "<!-- peers: end -->"];

/// Reason why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The page cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// The page.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The page has no place for the table.
    #[error("{file}: expected a line `{}` and a later line `{}`", MARKS[0], MARKS[1])]
    Marks {
        /// The page.
        file: String,
    },
}

/// Replaces the table of a page.
pub fn write(page: &Path, report: &Report, timings: u32) -> Result<(), Error> {
    let file = || page.display().to_string();
    let error = |source| Error::File {
        file: file(),
        source,
    };
    let text = fs::read_to_string(page).map_err(error)?;
    let made = markdown(report, timings, &processor());
    let text = replaced(&text, &made).ok_or_else(|| Error::Marks { file: file() })?;
    fs::write(page, text).map_err(error)
}

/// The text with another table, if it has the marks.
fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some(format!("{before}{}\n{table}{}{after}", MARKS[0], MARKS[1]))
}

/// Model of the processor, if the system reports it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model
        .map_or("an unknown processor", |(_, name)| name.trim())
        .to_owned()
}

/// One simulator.
struct Line {
    name: String,
    /// Flows, packets per processor second, instructions per packet, peak memory.
    cells: Vec<(u32, f64, Option<f64>, Option<u64>)>,
}

fn markdown(report: &Report, timings: u32, processor: &str) -> String {
    let ours = report.dumbbell.iter().filter(|row| row.case == "plain");
    let mut lines = vec![Line {
        name: "Anabranch, CUBIC".to_owned(),
        cells: ours
            .map(|row| {
                (
                    row.flows,
                    row.packets_per_cpu_s,
                    row.instructions_per_packet,
                    row.peak_rss_bytes,
                )
            })
            .collect(),
    }];
    for row in &report.peers {
        let name = format!("{} {}", row.simulator, row.version);
        let cell = (
            row.flows,
            row.packets_per_cpu_s,
            row.instructions_per_packet,
            row.peak_rss_bytes,
        );
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.cells.push(cell),
            None => lines.push(Line {
                name,
                cells: vec![cell],
            }),
        }
    }
    let flows: BTreeSet<u32> = lines
        .iter()
        .flat_map(|line| line.cells.iter().map(|cell| cell.0))
        .collect();
    let mut text = String::from("\n| M packets per CPU second |");
    for n in &flows {
        write!(text, " {n} |").expect("memory");
    }
    text += " instructions, 10 flows | peak MB, 1,000 flows |\n|";
    text += &" --- |".repeat(flows.len() + 3);
    text.push('\n');
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    for line in &lines {
        write!(text, "| {} |", line.name).expect("memory");
        let cell = |n: u32| line.cells.iter().find(|cell| cell.0 == n);
        for &n in &flows {
            let rate = cell(n).map(|cell| format!("{:.2}", cell.1 / 1e6));
            write!(text, " {} |", or_dash(rate)).expect("memory");
        }
        let instructions = cell(10).and_then(|cell| cell.2);
        let peak = cell(1_000).and_then(|cell| cell.3);
        writeln!(
            text,
            " {} | {} |",
            or_dash(instructions.map(grouped)),
            or_dash(peak.map(|bytes| format!("{:.0}", bytes as f64 / 1e6)))
        )
        .expect("memory");
    }
    writeln!(
        text,
        "\nOne run on {processor}, {}; the best of {timings} timings, of two where a timing takes more than two seconds.",
        report.compiler
    )
    .expect("memory");
    for failure in &report.failed {
        writeln!(text, "\n{} failed: {}.", failure.case, failure.reason).expect("memory");
    }
    text.push('\n');
    text
}

/// A whole number with commas.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{PeerRow, tests::row};

    fn peer(flows: u32, rate: f64) -> PeerRow {
        PeerRow {
            simulator: "ns-2".to_owned(),
            version: "2.35 Sack1".to_owned(),
            case: "plain",
            flows,
            measured_s: [5.0, 15.0],
            packets_per_cpu_s: rate,
            instructions_per_packet: (flows == 10).then_some(1_234_567.0),
            peak_rss_bytes: Some(50_000_000),
        }
    }

    #[test]
    fn a_row_per_simulator_and_a_column_per_number_of_flows() {
        let report = Report {
            dumbbell: vec![
                row("plain", 1, "a"),
                row("plain", 10, "b"),
                row("linux", 10, "c"),
            ],
            peers: vec![peer(10, 0.28e6), peer(1_000, 0.13e6)],
            ..Report::default()
        };
        let text = markdown(&report, 3, "a processor");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            lines,
            [
                "| M packets per CPU second | 1 | 10 | 1000 | instructions, 10 flows | peak MB, 1,000 flows |",
                "| --- | --- | --- | --- | --- | --- |",
                "| Anabranch, CUBIC | 4.50 | 4.50 | – | 3,365 | – |",
                "| ns-2 2.35 Sack1 | – | 0.28 | 0.13 | 1,234,567 | 50 |",
            ]
        );
    }

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let page = format!("before\n{}\nold\n{}\nafter\n", MARKS[0], MARKS[1]);
        let text = replaced(&page, "new\n").expect("marks");
        assert_eq!(text, page.replace("old", "new"));
        assert_eq!(replaced("no place", "new"), None);
    }
}
