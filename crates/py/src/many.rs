//! Many runs from Python, on all cores: of sweeps, studies and comparisons.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anabranch::{Interrupt, scenario::Error};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyType};
use rayon::prelude::*;

use crate::{
    depends::Depends,
    error::raise,
    interruptible::{STACK, interruptible, quietly, report},
    python_control::PythonControls,
    run::{Failure, Order, Recording, Run, interval, make},
    scenario::{Job, Source},
};

/// A job as passed from Python: text, file, overrides, and a seed in place of the file's.
type PythonJob<'py> = (Bound<'py, PyAny>, String, Vec<String>, Option<u64>);

/// Converts jobs. Those with one text object and one file share its parsed form.
fn jobs(
    given: Vec<PythonJob<'_>>,
    untrusted: bool,
    controls: &PythonControls,
) -> PyResult<Vec<Job>> {
    let mut last: Option<(Bound<'_, PyAny>, String, Arc<Source>)> = None;
    let mut made = Vec::with_capacity(given.len());
    for (text, file, sets, seed) in given {
        let source = match &last {
            Some((known, name, source)) if known.is(&text) && *name == file => Arc::clone(source),
            _ => {
                let source = Source::new(text.extract()?, file.clone());
                last = Some((text, file, Arc::clone(&source)));
                source
            }
        };
        made.push(Job::new(source, sets, seed, untrusted, controls.clone()));
    }
    Ok(made)
}

/// The summary of a run, as JSON, and the files that it has read, with a hash of their content.
type Summarized = (String, Vec<(String, String)>);

fn workers(threads: Option<usize>) -> PyResult<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .stack_size(STACK)
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Resolves each job's scenario on `threads` threads (default: all cores). Returns the first job
/// with an error, by number, and its `ScenarioError`. `untrusted` is as in `resolve`.
#[pyfunction]
#[pyo3(signature = (jobs, *, threads = None, untrusted = false, controls = Vec::new()))]
pub fn check_many(
    py: Python<'_>,
    jobs: Vec<PythonJob<'_>>,
    threads: Option<usize>,
    untrusted: bool,
    controls: Vec<(String, Py<PyType>)>,
) -> PyResult<Option<(usize, Py<PyAny>)>> {
    let jobs = self::jobs(jobs, untrusted, &PythonControls::new(controls))?;
    let workers = workers(threads)?;
    let found = quietly(py, move |interrupt| {
        let wrong = |(number, job): (usize, &Job)| {
            let check = || job.resolve(&Depends::default(), interrupt);
            let error = (!interrupt.is_raised()).then(check)?.err()?;
            Some((number, error))
        };
        workers.install(|| jobs.par_iter().enumerate().find_map_first(wrong))
    })?;
    Ok(found.map(|(number, error): (usize, Error)| {
        (number, raise(py, &error).into_value(py).into_any())
    }))
}

/// Executes many runs on `threads` threads (default: all cores); result `i` belongs to job `i`.
/// `progress` is called with the number of finished jobs. The first job with an error, by number,
/// raises it; signals end all. `untrusted` is as in `resolve`.
#[pyfunction]
#[pyo3(signature = (jobs, *, threads = None, digest = true, samples_ms = None, untrusted = false, controls = Vec::new(), progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn run_many(
    py: Python<'_>,
    jobs: Vec<PythonJob<'_>>,
    threads: Option<usize>,
    digest: bool,
    samples_ms: Option<f64>,
    untrusted: bool,
    controls: Vec<(String, Py<PyType>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Run>> {
    let recording = Recording {
        digest,
        samples: interval(samples_ms)?,
        packets: false,
        fast_path: true,
    };
    let batch = Batch::new(jobs, threads, recording, untrusted, controls)?;
    batch.make(py, progress, |run| run)
}

/// Executes many runs as `run_many` does, and frees each run's network when the run ends.
#[pyfunction]
#[pyo3(signature = (jobs, *, threads = None, digest = true, untrusted = false, controls = Vec::new(), progress = None))]
pub fn summarize_many(
    py: Python<'_>,
    jobs: Vec<PythonJob<'_>>,
    threads: Option<usize>,
    digest: bool,
    untrusted: bool,
    controls: Vec<(String, Py<PyType>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Summarized>> {
    let recording = Recording {
        digest,
        samples: None,
        packets: false,
        fast_path: true,
    };
    let batch = Batch::new(jobs, threads, recording, untrusted, controls)?;
    batch.make(py, progress, Run::into_summary)
}

/// Jobs, and how they are run.
struct Batch {
    jobs: Vec<Job>,
    workers: rayon::ThreadPool,
    recording: Recording,
    controls: PythonControls,
}

impl Batch {
    fn new(
        jobs: Vec<PythonJob<'_>>,
        threads: Option<usize>,
        recording: Recording,
        untrusted: bool,
        controls: Vec<(String, Py<PyType>)>,
    ) -> PyResult<Self> {
        let controls = PythonControls::new(controls);
        Ok(Self {
            jobs: self::jobs(jobs, untrusted, &controls)?,
            workers: workers(threads)?,
            recording,
            controls,
        })
    }

    /// Makes the runs, and keeps `kept` of each.
    fn make<T: Send + 'static>(
        self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        kept: impl Fn(Run) -> T + Send + Sync + 'static,
    ) -> PyResult<Vec<T>> {
        let Self {
            jobs,
            workers,
            recording,
            controls,
        } = self;
        let finished = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&finished);
        let mut pulse = move |py: Python<'_>| {
            let done = finished.load(Ordering::Relaxed);
            report(py, progress.as_ref(), done)
        };
        let results = interruptible(py, &mut pulse, move |interrupt: &Interrupt| {
            let order = Order {
                recording,
                captures: None,
                interrupt,
                remarks: None,
            };
            let work = |job: &Job| {
                if interrupt.is_raised() {
                    return Err(Failure::Stopped);
                }
                let result = make(job, &order, &mut |_| {}).map(&kept);
                counted.fetch_add(1, Ordering::Relaxed);
                result
            };
            workers.install(|| jobs.par_iter().map(work).collect::<Vec<_>>())
        })?;
        pulse(py)?;
        if let Some(error) = controls.raised() {
            return Err(error);
        }
        results
            .into_iter()
            .map(|result| result.map_err(|failure| failure.raise(py)))
            .collect()
    }
}
