//! Scenario files from Python: parse, set, resolve.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch::{Extensions, Resolved, Scenario, scenario::Error};
use anabranch_files::Files;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::{Text, error::raise, signals};

/// A scenario as Python hands it over: the text of a file, its name, what is set over it, and a
/// seed instead of the file's.
pub struct Job {
    pub text: Text,
    pub file: String,
    pub sets: Vec<String>,
    pub seed: Option<u64>,
}

impl Job {
    pub fn parse(&self) -> Result<Scenario, Error> {
        self.parse_for(false)
    }
    /// For one of the two engines.
    pub fn parse_for(&self, live: bool) -> Result<Scenario, Error> {
        self.parse_with(live, Self::files())
    }
    /// Reads the files that scenarios name.
    pub fn files() -> Files {
        Files::default().stop(signals::interrupted)
    }
    /// The same, with what reads the files that the scenario names.
    fn parse_with(&self, live: bool, files: Files) -> Result<Scenario, Error> {
        let folder = self.folder().to_owned();
        let read = files.clone();
        let extensions = Extensions::default()
            .files(move |path, most| read.read(path, most).map_err(|error| error.to_string()))
            .stop(signals::interrupted)
            .live(live)
            .congestion_control("bpf", anabranch_bpf::extension(folder, files));
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
        let note = Arc::clone(&named);
        let files = Job::files().guard(move |path| {
            let mut named = note.lock().unwrap_or_else(PoisonError::into_inner);
            named.insert(path.to_owned());
            Ok(())
        });
        let scenario = job.parse_with(live, files)?;
        let resolved = scenario.resolve(job.seed)?;
        let files = named.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
