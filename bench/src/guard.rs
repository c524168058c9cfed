//! The guard compares instructions per packet and digests with the record.
//!
//! Time is never compared. Instruction counts are compared per compiler and target; digests are the
//! same for all.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    case::{Case, Kind, Span},
    measure, process,
};

/// An increase by more than this share is a failure.
const TOLERANCE: f64 = 0.02;

/// Cases of the guard.
fn cases() -> [Case; 2] {
    [Case::new(Kind::Plain, 10), Case::new(Kind::General, 10)]
}

/// The record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Digests by case.
    pub digests: BTreeMap<String, String>,
    /// Instructions per packet by compiler and target, then by case.
    pub instructions_per_packet: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The new measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Digests by case.
    pub digests: BTreeMap<String, String>,
    /// Instructions per packet by case; empty where callgrind is missing.
    pub instructions_per_packet: BTreeMap<String, f64>,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Equal to the record.
    Good(String),
    /// Not on record yet; it will be recorded.
    Unknown(String),
    /// Worse than the record.
    Bad(String),
}

/// Reasons why the guard has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A child failed.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The file has an unknown format.
    #[error("{file}: {source}")]
    Format {
        /// The file.
        file: String,
        /// The error in its format.
        source: serde_json::Error,
    },
}

/// Measures the cases of the guard.
pub fn measure() -> Result<Measured, Error> {
    let mut measured = Measured::default();
    for case in cases() {
        let span = Span::GUARDED;
        if let Some(digest) = measure::digest(&case, span.end)? {
            measured.digests.insert(case.id(), digest);
        }
        match measure::instructions_per_packet(&case, span) {
            Ok(count) => {
                // The comparison is far coarser than a hundredth of an instruction.
                let count = (count * 100.0).round() / 100.0;
                measured.instructions_per_packet.insert(case.id(), count);
            }
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(measured)
}

/// Compares, case by case.
pub fn compare(baseline: &Baseline, measured: &Measured, compiler: &str) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (case, digest) in &measured.digests {
        verdicts.push(match baseline.digests.get(case) {
            Some(known) if known == digest => Verdict::Good(format!("{case}: digest as on record")),
            Some(known) => Verdict::Bad(format!("{case}: digest {digest}, on record {known}")),
            None => Verdict::Unknown(format!("{case}: no digest on record")),
        });
    }
    let digests: Vec<&String> = measured.digests.values().collect();
    if digests.windows(2).any(|pair| pair[0] != pair[1]) {
        verdicts.push(Verdict::Bad("the fast path changes the digest".to_owned()));
    }
    let known = baseline.instructions_per_packet.get(compiler);
    for (case, &count) in &measured.instructions_per_packet {
        let Some(&before) = known.and_then(|known| known.get(case)) else {
            verdicts.push(Verdict::Unknown(format!(
                "{case}: nothing on record for {compiler}"
            )));
            continue;
        };
        let change = count / before - 1.0;
        let text = format!(
            "{case}: {count:.0} instructions per packet, on record {before:.0} ({:+.1} %)",
            change * 100.0
        );
        verdicts.push(if change > TOLERANCE {
            Verdict::Bad(text)
        } else {
            Verdict::Good(text)
        });
    }
    verdicts
}

impl Baseline {
    /// Reads the file; an absent one is an empty record.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let name = || file.display().to_string();
        match fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text).map_err(|source| Error::Format {
                file: name(),
                source,
            }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(Error::File {
                file: name(),
                source,
            }),
        }
    }
    /// Writes the file by way of a temporary file.
    pub fn write(&self, file: &Path) -> Result<(), Error> {
        let error = |source| Error::File {
            file: file.display().to_string(),
            source,
        };
        let aside = file.with_extension("json.new");
        fs::write(&aside, self.text()).map_err(error)?;
        fs::rename(&aside, file).map_err(error)
    }
    /// Contents of the file.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("maps of strings and numbers");
        format!("{text}\n")
    }
    /// Records a measurement: all of it, or only entries that are not on record yet.
    pub fn take(&mut self, measured: &Measured, compiler: &str, replace: bool) {
        for (case, digest) in &measured.digests {
            put(&mut self.digests, case, digest.clone(), replace);
        }
        if measured.instructions_per_packet.is_empty() {
            return;
        }
        let known = self
            .instructions_per_packet
            .entry(compiler.to_owned())
            .or_default();
        for (case, &count) in &measured.instructions_per_packet {
            put(known, case, count, replace);
        }
    }
}

fn put<T>(map: &mut BTreeMap<String, T>, key: &str, value: T, replace: bool) {
    if replace || !map.contains_key(key) {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILER: &str = "rustc 1.88.0 x86_64-unknown-linux-gnu";

    fn measured(digests: [&str; 2], counts: [f64; 2]) -> Measured {
        let ids = cases().map(|case| case.id());
        Measured {
            digests: ids
                .iter()
                .cloned()
                .zip(digests.map(str::to_owned))
                .collect(),
            instructions_per_packet: ids.iter().cloned().zip(counts).collect(),
        }
    }

    fn bad(verdicts: &[Verdict]) -> usize {
        verdicts
            .iter()
            .filter(|verdict| matches!(verdict, Verdict::Bad(_)))
            .count()
    }

    #[test]
    fn a_rise_above_the_tolerance_is_bad_and_a_fall_is_not() {
        let mut baseline = Baseline::default();
        baseline.take(&measured(["a", "a"], [1000.0, 2000.0]), COMPILER, false);
        for (counts, failures) in [
            ([1000.0, 2000.0], 0),
            ([1019.0, 2039.0], 0),
            ([1021.0, 2000.0], 1),
            ([500.0, 2100.0], 1),
        ] {
            let verdicts = compare(&baseline, &measured(["a", "a"], counts), COMPILER);
            assert_eq!(bad(&verdicts), failures, "{counts:?}: {verdicts:?}");
        }
    }

    #[test]
    fn a_changed_digest_is_bad_with_any_compiler() {
        let mut baseline = Baseline::default();
        baseline.take(&measured(["a", "a"], [1000.0, 2000.0]), COMPILER, false);
        let verdicts = compare(
            &baseline,
            &measured(["b", "b"], [1000.0, 2000.0]),
            "another",
        );
        assert_eq!(bad(&verdicts), 2, "{verdicts:?}");
        let verdicts = compare(
            &Baseline::default(),
            &measured(["a", "b"], [1.0, 1.0]),
            COMPILER,
        );
        assert_eq!(bad(&verdicts), 1, "the two paths must agree: {verdicts:?}");
    }

    #[test]
    fn an_unknown_compiler_is_recorded_and_nothing_else_changes() {
        let mut baseline = Baseline::default();
        baseline.take(&measured(["a", "a"], [1000.0, 2000.0]), COMPILER, false);
        let now = measured(["b", "b"], [1100.0, 2100.0]);
        let verdicts = compare(&baseline, &now, "another");
        assert!(
            verdicts
                .iter()
                .any(|verdict| matches!(verdict, Verdict::Unknown(_)))
        );
        let before = baseline.clone();
        baseline.take(&now, "another", false);
        assert_eq!(baseline.digests, before.digests);
        assert_eq!(
            baseline.instructions_per_packet[COMPILER],
            before.instructions_per_packet[COMPILER]
        );
        assert_eq!(
            baseline.instructions_per_packet["another"],
            now.instructions_per_packet
        );
        baseline.take(&now, COMPILER, true);
        assert_eq!(baseline.digests, now.digests);
        assert_eq!(
            serde_json::from_str::<Baseline>(&baseline.text()).ok(),
            Some(baseline)
        );
    }
}
