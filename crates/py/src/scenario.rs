//! Scenario files from Python: parse, set, resolve.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use anabranch::{
    Extensions, Interrupt, Resolved, Scenario, cc,
    scenario::{Error, ResolvedText},
    system,
};
use anabranch_files::Files;
use pyo3::{prelude::*, types::PyType};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    Text, depends::Depends, error::raise, interruptible::quietly, python_control::PythonControls,
    signals,
};

/// The text of a scenario's file, which is parsed once for all jobs.
pub struct Source {
    text: Text,
    file: String,
    parsed: OnceLock<Result<Scenario, Error>>,
}

impl Source {
    pub fn new(text: Text, file: String) -> Arc<Self> {
        Arc::new(Self {
            text,
            file,
            parsed: OnceLock::new(),
        })
    }
    /// The scenario without overrides and extensions.
    fn parsed(&self) -> Result<&Scenario, Error> {
        let parse = || match &self.text {
            Text::Str(text) => Scenario::parse(text, &self.file, &Extensions::default()),
            Text::Bytes(bytes) => Scenario::parse_bytes(bytes, &self.file, &Extensions::default()),
        };
        self.parsed
            .get_or_init(parse)
            .as_ref()
            .map_err(Error::clone)
    }
}

/// A scenario as passed from Python: a file, overrides, a seed in place of the file's, and whether
/// its author is untrusted.
pub struct Job {
    pub source: Arc<Source>,
    pub sets: Vec<String>,
    pub seed: Option<u64>,
    pub untrusted: bool,
    /// Congestion controls in Python.
    pub controls: PythonControls,
}

/// Rejects a file outside `folder`, after resolving symbolic links.
fn check_inside(folder: &Path, path: &Path) -> Result<(), String> {
    let folder = if folder == Path::new("") {
        Path::new(".")
    } else {
        folder
    };
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| system::words(&error));
    if real(path)?.starts_with(real(folder)?) {
        return Ok(());
    }
    Err("it is outside the scenario's folder, which --untrusted refuses".to_owned())
}

/// The reason why `--untrusted` runs no eBPF control. The text after the `"; "` is help.
const NO_PROGRAM: &str = "an eBPF control is compiled and runs as a part of this program, which --untrusted refuses; \
                          name a built-in control, or read the file and leave --untrusted out";

impl Job {
    pub fn new(
        source: Arc<Source>,
        sets: Vec<String>,
        seed: Option<u64>,
        untrusted: bool,
        controls: PythonControls,
    ) -> Self {
        Self {
            source,
            sets,
            seed,
            untrusted,
            controls,
        }
    }
    pub fn parse(&self, depends: &Depends, interrupt: &Interrupt) -> Result<Scenario, Error> {
        self.parse_for(false, depends, interrupt)
    }
    /// Returns the reader of the files that the scenario names.
    pub fn files(&self, interrupt: &Interrupt) -> Files {
        let interrupt = interrupt.clone();
        let files = Files::default().stop(move || interrupt.is_raised() || signals::interrupted());
        if self.untrusted {
            let folder = self.folder().to_owned();
            files.guard(move |path| check_inside(&folder, path))
        } else {
            files
        }
    }
    /// Parses for one of the two engines. The files that the scenario names are recorded as they
    /// are read.
    pub fn parse_for(
        &self,
        live: bool,
        depends: &Depends,
        interrupt: &Interrupt,
    ) -> Result<Scenario, Error> {
        let files = self.files(interrupt);
        let (read, noted, stop) = (files.clone(), depends.clone(), interrupt.clone());
        let extensions = Extensions::default()
            .files(move |path, most| {
                let content = read.read(path, most).map_err(|error| error.to_string())?;
                noted.note(path, &content);
                Ok(content)
            })
            .stop(move || stop.is_raised() || signals::interrupted())
            .live(live)
            .untrusted(self.untrusted);
        let extensions = if self.untrusted {
            let refuse = |_: &Value| -> Result<cc::Factory, String> { Err(NO_PROGRAM.to_owned()) };
            extensions.congestion_control("bpf", refuse)
        } else {
            let folder = self.folder().to_owned();
            let controls = anabranch_bpf::extension(folder, files, interrupt.clone());
            extensions.congestion_control("bpf", controls)
        };
        let extensions = self.controls.extend(extensions, interrupt);
        let mut scenario = self.source.parsed()?.with_extensions(extensions);
        for set in &self.sets {
            scenario.set(set)?;
        }
        Ok(scenario)
    }
    /// The folder of the scenario's file, to which its paths are relative.
    pub fn folder(&self) -> &Path {
        Path::new(&self.source.file)
            .parent()
            .unwrap_or(Path::new(""))
    }
    /// Resolves the scenario for the engine, and records the files that it depends on.
    pub fn resolve(&self, depends: &Depends, interrupt: &Interrupt) -> Result<Resolved, Error> {
        let resolved = self.parse(depends, interrupt)?.resolve(self.seed)?;
        for program in programs(&resolved, self.folder()) {
            depends.note_program(&program);
        }
        Ok(resolved)
    }
}

/// The eBPF control files of the flows.
fn programs(resolved: &Resolved, folder: &Path) -> BTreeSet<PathBuf> {
    let controls = resolved
        .flows
        .iter()
        .map(|flow| &resolved.flow_tables[&flow.table]["cc"]);
    controls
        .filter(|control| control["kind"] == "bpf")
        .filter_map(|control| Some(folder.join(control["file"].as_str()?)))
        .collect()
}

/// Checks a scenario and describes it as JSON: title, seed, times, names, sweep, the files whose
/// content it depends on, and the scenario with all defaults. `live`: for the live engine, which
/// has more keys. `untrusted`: rejects everything that an untrusted scenario may not do. Raises
/// `ScenarioError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, seed = None, live = false, *, untrusted = false,
    controls = Vec::new()))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn resolve(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
    seed: Option<u64>,
    live: bool,
    untrusted: bool,
    controls: Vec<(String, Py<PyType>)>,
) -> PyResult<String> {
    let controls = PythonControls::new(controls);
    let job = Job::new(Source::new(text, file), sets, seed, untrusted, controls);
    quietly(py, move |interrupt| described(&job, live, interrupt))?
        .map_err(|error| raise(py, &error))
}

/// A scenario after parsing, before a run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Resolved")]
pub struct Description<'a> {
    /// Title of the scenario, or the name of its file.
    title: &'a str,
    /// Seed of the run.
    seed: u64,
    /// Length of the run.
    duration_s: f64,
    /// Time before the measurement begins.
    warmup_s: f64,
    /// Names of the flows.
    flows: Vec<&'a str>,
    /// Names of the links.
    links: Vec<&'a str>,
    /// Files whose content the scenario depends on.
    files: Vec<String>,
    /// Repetitions and grid of the sweep.
    #[schemars(with = "BTreeMap<String, Value>")]
    sweep: Value,
    /// The scenario with every default written out.
    #[schemars(with = "BTreeMap<String, Value>")]
    resolved_scenario: &'a ResolvedText,
}

fn described(job: &Job, live: bool, interrupt: &Interrupt) -> Result<String, Error> {
    let depends = Depends::default();
    let scenario = job.parse_for(live, &depends, interrupt)?;
    let resolved = scenario.resolve(job.seed)?;
    for program in programs(&resolved, job.folder()) {
        depends.note_program(&program);
    }
    let files: Vec<String> = depends.list().into_iter().map(|(path, _)| path).collect();
    let sweep = scenario.sweep()?;
    let grid: Map<String, Value> = sweep
        .grid
        .into_iter()
        .map(|(path, values)| (path, Value::Array(values)))
        .collect();
    let description = Description {
        title: &resolved.title,
        seed: resolved.seed,
        duration_s: resolved.duration.as_secs_f64(),
        warmup_s: resolved.warmup.as_secs_f64(),
        flows: resolved.flows.iter().map(|flow| &*flow.name).collect(),
        links: resolved.links.iter().map(|link| &*link.name).collect(),
        files,
        sweep: json!({ "repeat": sweep.repeat, "grid": grid }),
        resolved_scenario: &resolved.json,
    };
    Ok(serde_json::to_string(&description).expect("names are texts, and times are finite"))
}
