//! Other simulators: the plain case, in the same run on the same machine.
//!
//! Each simulator has a script under `peers/` that builds the same dumbbell and reads its processor
//! time at two simulated moments. Building is excluded, as in our timings.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::{
    process::{self, CALLGRIND, Error},
    report::PeerRow,
};

/// A simulator that may be installed.
#[derive(Debug, Clone)]
pub struct Peer {
    name: &'static str,
    /// Programs that may run the script; the first working one is used.
    programs: Vec<PathBuf>,
    script: &'static str,
    /// Measured span in simulated seconds.
    measured_s: [f64; 2],
    /// Measured span and numbers of flows for counting instructions, which is a hundred times
    /// slower; `None` if the program cannot run under callgrind.
    counted: Option<([f64; 2], u32)>,
    flows: &'static [u32],
    /// Command that installs it.
    install: &'static str,
}

/// The last line of a script's output.
#[derive(Debug, Deserialize)]
struct Printed {
    version: String,
    packets: u64,
    cpu_s: f64,
    peak_rss_bytes: Option<u64>,
}

/// Supported simulators.
pub fn peers() -> [Peer; 2] {
    [
        Peer {
            name: "ns-2",
            programs: vec!["ns".into()],
            script: "ns2_dumbbell.tcl",
            measured_s: [5.0, 15.0],
            counted: Some(([1.5, 1.7], 10)),
            flows: &[1, 10, 100, 1000],
            install: "apt-get install ns2",
        },
        Peer {
            name: "ns-3",
            programs: vec![folder().join(".venv/bin/python"), "python3".into()],
            script: "ns3_dumbbell.py",
            measured_s: [2.0, 3.0],
            // Python and its C++ compiler are loaded too.
            counted: None,
            // With fewer flows the windows are larger, and its list of unacknowledged segments
            // makes a run take too long.
            flows: &[100],
            install: "python3 -m venv bench/peers/.venv && bench/peers/.venv/bin/pip install ns3 cppyy",
        },
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

impl Peer {
    /// Measures it for these numbers of flows (none: its default numbers). Reports missing programs
    /// to `complain`.
    pub fn measure(
        &self,
        flows: &[u32],
        instructions: bool,
        timings: u32,
        mut complain: impl FnMut(String),
    ) -> Vec<PeerRow> {
        let mut rows = Vec::new();
        let Some(program) = self.program() else {
            complain(format!(
                "{} is not installed; to have it beside: {}",
                self.name, self.install
            ));
            return rows;
        };
        for &n in self
            .flows
            .iter()
            .filter(|n| flows.is_empty() || flows.contains(n))
        {
            match self.row(program, n, instructions, timings) {
                Ok(row) => rows.push(row),
                Err(error) => complain(format!("{} with {n} flows: {error}", self.name)),
            }
        }
        rows
    }

    fn program(&self) -> Option<&Path> {
        let works = |program: &&PathBuf| {
            let probe = process::run::<Printed>(
                Command::new(program)
                    .arg(folder().join(self.script))
                    .args(["1", "0.01", "0.02"]),
            );
            probe.is_ok()
        };
        self.programs.iter().find(works).map(PathBuf::as_path)
    }

    fn row(
        &self,
        program: &Path,
        flows: u32,
        instructions: bool,
        timings: u32,
    ) -> Result<PeerRow, Error> {
        let command = |before: &[&str], [from, to]: [f64; 2]| {
            let mut words: Vec<String> = before.iter().map(|&word| word.to_owned()).collect();
            words.push(program.display().to_string());
            let mut command = Command::new(&words[0]);
            command
                .args(&words[1..])
                .arg(folder().join(self.script))
                .args([flows.to_string(), from.to_string(), to.to_string()]);
            command
        };
        let (mut printed, _) = process::run::<Printed>(&mut command(&[], self.measured_s))?;
        let rate = |printed: &Printed| printed.packets as f64 / printed.cpu_s;
        let mut best = rate(&printed);
        // A timing takes a peer seconds to minutes: one repetition at most.
        if timings > 1 && printed.cpu_s < 10.0 {
            (printed, _) = process::run::<Printed>(&mut command(&[], self.measured_s))?;
            best = best.max(rate(&printed));
        }
        let instructions_per_packet = match self
            .counted
            .filter(|&(_, counted)| instructions && counted == flows)
        {
            Some(([from, to], _)) => {
                // The packets are those after `from`; the short run ends before it.
                let (_, fewer) =
                    process::counted::<Printed>(&mut command(&CALLGRIND, [from, from]))?;
                let (long, more) =
                    process::counted::<Printed>(&mut command(&CALLGRIND, [from, to]))?;
                Some((more - fewer) as f64 / long.packets as f64)
            }
            None => None,
        };
        Ok(PeerRow {
            simulator: self.name.to_owned(),
            version: printed.version,
            case: "plain",
            flows,
            measured_s: self.measured_s,
            packets_per_cpu_s: best,
            instructions_per_packet,
            peak_rss_bytes: printed.peak_rss_bytes,
        })
    }
}
