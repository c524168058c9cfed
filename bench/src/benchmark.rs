//! The benchmark: every case, and the other simulators, each result printed at once.

use std::{fmt::Display, io};

use crate::{
    case::{Case, Kind},
    measure::{self, Effort},
    peers,
    report::{self, Failure, PeerRow, Report, Row},
};

/// Choice of what is measured.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The cases.
    pub kinds: &'a [Kind],
    /// Only these numbers of flows; empty for each case's own.
    pub flows: &'a [u32],
    /// Amount of work per case.
    pub effort: Effort,
    /// Whether the other simulators are measured.
    pub peers: bool,
}

/// Collects results and prints each at once, to standard error if the report is one document.
#[derive(Debug)]
pub struct Session<W> {
    report: Report,
    lines: W,
}

impl<W: io::Write> Session<W> {
    /// A report without results.
    pub fn new(lines: W, compiler: &'static str) -> Self {
        let report = Report {
            compiler,
            ..Report::default()
        };
        Self { report, lines }
    }

    /// Prints a line. A reader that has gone is no reason to lose the other results.
    fn print(&mut self, line: impl Display) {
        let _ = writeln!(self.lines, "{line}").and_then(|()| self.lines.flush());
    }

    /// Adds a note for readers.
    pub fn note(&mut self, note: String) {
        self.print(format_args!("note: {note}"));
        self.report.notes.push(note);
    }

    fn failure(&mut self, case: String, reason: String) {
        let failure = Failure { case, reason };
        self.print(&failure);
        self.report.failed.push(failure);
    }

    /// Measures the cases. A failed one is named, and the others stay.
    pub fn cases<E: Display>(
        &mut self,
        cases: &[Case],
        mut measure: impl FnMut(&Case) -> Result<Row, E>,
    ) {
        for case in cases {
            match measure(case) {
                Ok(row) => self.row(row),
                Err(error) => self.failure(case.id(), error.to_string()),
            }
        }
    }

    fn row(&mut self, row: Row) {
        self.print(row.line());
        if let Some(reason) = row.implausible() {
            self.failure(row.id(), reason);
        }
        // Neither the digest itself nor the fast path may change results.
        let same = ["plain", "digest", "general"];
        let other = same.contains(&row.case).then(|| {
            self.report.dumbbell.iter().find(|other| {
                same.contains(&other.case) && other.flows == row.flows && other.digest != row.digest
            })
        });
        if let Some(other) = other.flatten().map(Row::id) {
            self.failure(row.id(), format!("its digest is not that of {other}"));
        }
        self.report.dumbbell.push(row);
    }

    /// Adds the result of another simulator.
    pub fn peer(&mut self, case: String, result: Result<PeerRow, impl Display>) {
        match result {
            Ok(row) => {
                self.print(row.line());
                self.report.peers.push(row);
            }
            Err(error) => self.failure(case, error.to_string()),
        }
    }

    /// The report; prints the failed cases again, which are lines above.
    pub fn finish(mut self) -> Report {
        if !self.report.failed.is_empty() {
            let failed = self.report.failed.clone();
            self.print(format_args!("\n{} failed:", failed.len()));
            for failure in &failed {
                self.print(failure);
            }
        }
        self.report
    }
}

/// Measures, and prints each result on `lines` at once.
pub fn run(choice: &Choice, compiler: &'static str, lines: impl io::Write) -> Report {
    let mut session = Session::new(lines, compiler);
    session.print(format_args!("{compiler}\n\n{}", report::header()));
    let mut effort = choice.effort;
    if effort.instructions && !valgrind_works() {
        effort.instructions = false;
        session.note(
            "skipped: instruction counts, because valgrind is not installed: apt-get install valgrind"
                .to_owned(),
        );
    }
    let cases = Case::all(choice.kinds, choice.flows, |note| {
        session.note(format!("skipped: {note}"));
    });
    let peers = if choice.peers && choice.kinds.contains(&Kind::Plain) {
        peers::peers().to_vec()
    } else {
        Vec::new()
    };
    let peers: Vec<_> = peers
        .iter()
        .filter_map(|peer| {
            let program = peer.program();
            if program.is_none() {
                session.note(peer.skipped());
            }
            Some((peer, program?))
        })
        .collect();
    for case in &cases {
        session.cases(std::slice::from_ref(case), |case| {
            measure::measure(case, effort)
        });
        // One after another with the same number of flows, so that a slower machine slows all.
        for (peer, program) in &peers {
            if case.kind == Kind::Plain && peer.has(case.flows) {
                let row = peer.row(program, case.flows, effort);
                session.peer(peer.id(case.flows), row);
            }
        }
    }
    for kind in choice.kinds {
        if let Some(note) = kind.note()
            && cases.iter().any(|case| case.kind == *kind)
        {
            session.note(note.to_owned());
        }
    }
    session.finish()
}

/// Whether instructions can be counted.
pub fn valgrind_works() -> bool {
    let version = std::process::Command::new("valgrind")
        .arg("--version")
        .output();
    version.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::report::tests::row;

    const DIGEST: &str = "005241afd941e4be101f3ac6356d58e0";

    fn measured(digests: &[(Kind, &str)], broken: Option<Kind>) -> (Report, String) {
        let cases: Vec<Case> = digests
            .iter()
            .map(|&(kind, _)| Case::new(kind, 10))
            .collect();
        let mut lines = Vec::new();
        let mut session = Session::new(&mut lines, "rustc");
        session.cases(&cases, |case| {
            if broken == Some(case.kind) {
                return Err("valgrind failed: SIGSEGV");
            }
            let digest = digests.iter().find(|(kind, _)| *kind == case.kind);
            Ok(row(
                case.kind.name(),
                case.flows,
                digest.map_or("", |d| d.1),
            ))
        });
        let report = session.finish();
        (report, String::from_utf8(lines).expect("text"))
    }

    #[test]
    fn a_failed_case_is_named_and_the_others_stay() {
        let kinds = [
            (Kind::Plain, DIGEST),
            (Kind::Contract, DIGEST),
            (Kind::Linux, DIGEST),
        ];
        let (report, lines) = measured(&kinds, Some(Kind::Contract));
        let rows: Vec<&str> = report.dumbbell.iter().map(|row| row.case).collect();
        assert_eq!(rows, ["plain", "linux"]);
        assert_eq!(
            report.failed,
            [Failure {
                case: "contract/10".to_owned(),
                reason: "valgrind failed: SIGSEGV".to_owned(),
            }]
        );
        let text = serde_json::to_string(&report).expect("JSON");
        assert!(
            text.contains(r#""failed":[{"case":"contract/10""#),
            "{text}"
        );
        // The failure is printed in its place, and again at the end.
        let found: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(
            found,
            ["plain", "FAILED", "linux", "1", "FAILED"],
            "{lines}"
        );
    }

    /// Lines that the test reads between two cases.
    struct Shared<'a>(&'a RefCell<String>);

    impl io::Write for Shared<'_> {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().push_str(&String::from_utf8_lossy(text));
            Ok(text.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_printed_before_the_next_case_is_measured() {
        let cases = [Kind::Plain, Kind::Linux].map(|kind| Case::new(kind, 10));
        let lines = RefCell::new(String::new());
        let mut seen = Vec::new();
        Session::new(Shared(&lines), "rustc").cases(&cases, |case| {
            seen.push(lines.borrow().contains("plain"));
            Ok::<_, String>(row(case.kind.name(), 10, DIGEST))
        });
        assert_eq!(seen, [false, true]);
    }

    #[test]
    fn detects_a_fast_path_that_changes_results() {
        let other = "105241afd941e4be101f3ac6356d58e0";
        let (report, _) = measured(&[(Kind::Plain, DIGEST), (Kind::General, other)], None);
        assert_eq!(report.failed[0].case, "general/10");
        assert_eq!(report.dumbbell.len(), 2);
        // Another profile has other results.
        let (report, _) = measured(&[(Kind::Plain, DIGEST), (Kind::Linux, other)], None);
        assert_eq!(report.failed, []);
    }
}
