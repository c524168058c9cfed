//! Other simulators: the plain case, in the same run on the same machine.
//!
//! Each simulator has a script or program under `peers/` that builds the same dumbbell and reads its
//! processor time at two simulated moments. Building is excluded, as in our timings.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::{
    measure::Effort,
    process::{self, CALLGRIND, Error},
    report::PeerRow,
};

/// A simulator that may be installed.
#[derive(Debug, Clone)]
pub struct Peer {
    name: &'static str,
    /// Programs that may run the script; the first working one is used.
    programs: Vec<PathBuf>,
    /// `None` if the program is the dumbbell.
    script: Option<&'static str>,
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
pub fn peers() -> [Peer; 3] {
    [
        Peer {
            name: "htsim",
            programs: vec![folder().join("bin/htsim_dumbbell")],
            script: None,
            measured_s: [5.0, 25.0],
            counted: Some(([2.0, 3.0], 10)),
            flows: &[1, 10, 100, 1000],
            install: "git clone https://github.com/Broadcom/csg-htsim bench/peers/csg-htsim && bench/peers/build_htsim",
        },
        Peer {
            name: "ns-2",
            programs: vec!["ns".into()],
            script: Some("ns2_dumbbell.tcl"),
            measured_s: [5.0, 15.0],
            counted: Some(([1.5, 1.7], 10)),
            flows: &[1, 10, 100, 1000],
            install: "apt-get install ns2",
        },
        Peer {
            name: "ns-3",
            programs: vec![folder().join(".venv/bin/python"), "python3".into()],
            script: Some("ns3_dumbbell.py"),
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
    /// Whether it is measured with this number of flows.
    pub fn has(&self, flows: u32) -> bool {
        self.flows.contains(&flows)
    }

    /// Name of a case in it.
    pub fn id(&self, flows: u32) -> String {
        format!("{} plain/{flows}", self.name)
    }

    /// Note for readers if it is not installed.
    pub fn skipped(&self) -> String {
        format!(
            "skipped: {}, which is not installed: {}",
            self.name, self.install
        )
    }

    /// The first program that works.
    pub fn program(&self) -> Option<&Path> {
        let works = |program: &&PathBuf| {
            process::run::<Printed>(&mut self.command(&[], program, 1, [0.01, 0.02])).is_ok()
        };
        self.programs.iter().find(works).map(PathBuf::as_path)
    }

    fn command(
        &self,
        before: &[&str],
        program: &Path,
        flows: u32,
        [from, to]: [f64; 2],
    ) -> Command {
        let mut words: Vec<PathBuf> = before.iter().map(PathBuf::from).collect();
        words.push(program.to_owned());
        words.extend(self.script.map(|script| folder().join(script)));
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args([flows.to_string(), from.to_string(), to.to_string()]);
        command
    }

    /// Measures it.
    pub fn row(&self, program: &Path, flows: u32, effort: Effort) -> Result<PeerRow, Error> {
        let command = |before: &[&str], span: [f64; 2]| self.command(before, program, flows, span);
        let rate = |printed: &Printed| printed.packets as f64 / printed.cpu_s;
        let (mut printed, _) = process::run::<Printed>(&mut command(&[], self.measured_s))?;
        let mut best = rate(&printed);
        // A timing may take minutes: slow simulators have one, or two.
        let timings = if printed.cpu_s < 2.0 {
            effort.timings
        } else {
            effort.timings.min(if printed.cpu_s < 10.0 { 2 } else { 1 })
        };
        for _ in 1..timings {
            (printed, _) = process::run::<Printed>(&mut command(&[], self.measured_s))?;
            best = best.max(rate(&printed));
        }
        let counted = self
            .counted
            .filter(|&(_, counted)| effort.instructions && counted == flows);
        let instructions_per_packet = match counted {
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
