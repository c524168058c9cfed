//! Scenario files from Python: parse, set, resolve.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anabranch::{Extensions, Resolved, Scenario, scenario::Error};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::{Text, error::raise};

/// A scenario as Python hands it over: the text of a file, its name, what is set over it, and a
/// seed instead of the file's.
pub struct Job {
    pub text: Text,
    pub file: String,
    pub sets: Vec<String>,
    pub seed: Option<u64>,
}

/// The largest file that a scenario may name, in bytes: what is recorded is held in memory.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Reads a file that a scenario names.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(format!(
            "it has {bytes} bytes; at most {MAX_FILE_BYTES} are read"
        ));
    }
    fs::read(path).map_err(|error| error.to_string())
}

impl Job {
    pub fn parse(&self) -> Result<Scenario, Error> {
        self.parse_for(false)
    }
    /// For one of the two engines.
    pub fn parse_for(&self, live: bool) -> Result<Scenario, Error> {
        self.parse_with(live, read)
    }
    /// The same, with what reads the files that the scenario names.
    fn parse_with(
        &self,
        live: bool,
        read: impl Fn(&Path) -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Result<Scenario, Error> {
        let folder = self.folder();
        let extensions = Extensions::default()
            .files(read)
            .live(live)
            .congestion_control("bpf", anabranch_bpf::extension(folder.to_owned()));
        let mut scenario = match &self.text {
            Text::Str(text) => Scenario::parse(text, &self.file, &extensions)?,
            Text::Bytes(bytes) => Scenario::parse_bytes(bytes, &self.file, &extensions)?,
        };
        for set in &self.sets {
            scenario.set(set)?;
        }
        Ok(scenario)
    }
    /// Where the scenario's file stands: what it names is beside it.
    pub fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }
    pub fn resolve(&self) -> Result<Resolved, Error> {
        self.parse()?.resolve(self.seed)
    }
}

/// The files of eBPF controls that flows have.
fn programs(resolved: &Resolved, folder: &Path) -> BTreeSet<PathBuf> {
    let controls = resolved
        .flows
        .iter()
        .map(|flow| &resolved.json["flow"][&flow.table]["cc"]);
    controls
        .filter(|control| control["kind"] == "bpf")
        .filter_map(|control| Some(folder.join(control["file"].as_str()?)))
        .collect()
}

/// Checks a scenario and says what it is, as JSON: title, seed, times, names, sweep, the files whose content it stands for, and the
/// scenario with every default written out. `live`: for the live engine, which knows more keys. Raises `ScenarioError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, seed = None, live = false))]
pub fn resolve(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
    seed: Option<u64>,
    live: bool,
) -> PyResult<String> {
    let job = Job {
        text,
        file,
        sets,
        seed,
    };
    let described = py.detach(|| {
        let named = Arc::new(Mutex::new(BTreeSet::new()));
        let scenario = job.parse_with(live, {
            let named = Arc::clone(&named);
            move |path| {
                let mut named = named.lock().unwrap_or_else(PoisonError::into_inner);
                named.insert(path.to_owned());
                read(path)
            }
        })?;
        let resolved = scenario.resolve(job.seed)?;
        let mut files = named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        files.append(&mut programs(&resolved, job.folder()));
        let sweep = scenario.sweep()?;
        let grid: Map<String, Value> = sweep
            .grid
            .into_iter()
            .map(|(path, values)| (path, Value::Array(values)))
            .collect();
        Ok(json!({
            "title": resolved.title,
            "seed": resolved.seed,
            "duration_s": resolved.duration.as_secs_f64(),
            "warmup_s": resolved.warmup.as_secs_f64(),
            "flows": resolved.flows.iter().map(|flow| &flow.name).collect::<Vec<_>>(),
            "links": resolved.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
            "files": files,
            "sweep": { "repeat": sweep.repeat, "grid": grid },
            "resolved_scenario": resolved.json,
        })
        .to_string())
    });
    described.map_err(|error: Error| raise(py, &error))
}
