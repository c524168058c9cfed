//! Runs from Python: one with a progress report, or many on all cores.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    mpsc,
};

use anabranch::{
    Body, Finished, Length, Progress, Resolved, Simulation, packet::Direction, record::Tapping,
    units::Duration,
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
};
use rayon::prelude::*;

use crate::{
    Text,
    error::raise,
    scenario::Job,
    stopwatch::{Stopwatch, peak_rss_bytes},
    table::ArrowTable,
    tables,
};

/// The result of one run.
#[pyclass(frozen, module = "anabranch._engine")]
pub struct Run {
    finished: Mutex<Box<dyn Left>>,
    summary_json: String,
}

/// What a run of either engine left behind.
trait Left: Send {
    fn table(&self, name: &str) -> PyResult<ArrowTable>;
    /// A capture, if it was asked for.
    fn pcapng(&self, link: &str, which: &[Direction]) -> Option<Vec<u8>>;
}

impl<B: Body> Left for Finished<B> {
    fn table(&self, name: &str) -> PyResult<ArrowTable> {
        tables::build(self, name)
    }
    fn pcapng(&self, link: &str, which: &[Direction]) -> Option<Vec<u8>> {
        let place = self.links.iter().position(|(name, _)| name == link)?;
        let taps = self.network.probe().taps()?;
        taps.pcapng(place, which, self.network.element_names())
    }
}

impl Run {
    pub fn new<B: Body>(finished: Finished<B>) -> serde_json::Result<Self> {
        Ok(Self {
            summary_json: serde_json::to_string(&finished.summary)?,
            finished: Mutex::new(Box::new(finished)),
        })
    }
}

#[pymethods]
impl Run {
    /// The summary, as JSON.
    #[getter]
    fn summary_json(&self) -> &str {
        &self.summary_json
    }
    /// One of the tables `flows`, `links`, `samples`, `link_samples`, `group_samples`, `packets`,
    /// `window_events`.
    fn table(&self, name: &str) -> PyResult<ArrowTable> {
        self.finished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .table(name)
    }
    /// The capture of a link (both directions, or one) as a pcapng file's content. Raises
    /// `ValueError` if it was not asked for.
    #[pyo3(signature = (link, direction = None))]
    fn pcapng(&self, link: &str, direction: Option<&str>) -> PyResult<Vec<u8>> {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let which = directions(direction)?;
        finished
            .pcapng(link, &which)
            .ok_or_else(|| PyValueError::new_err(format!("the link {link:?} was not captured")))
    }
}

fn directions(name: Option<&str>) -> PyResult<Vec<Direction>> {
    let all = Direction::BOTH.into_iter();
    let which: Vec<Direction> = all
        .filter(|direction| name.is_none_or(|name| name == direction.name()))
        .collect();
    if which.is_empty() {
        let name = name.unwrap_or_default();
        return Err(PyValueError::new_err(format!(
            "there is no direction {name:?}; expected forward or reverse"
        )));
    }
    Ok(which)
}

/// The links to capture, by name and direction (both if none), and octets kept of each packet.
pub type Captures = (Vec<(String, Option<String>)>, u32);

pub fn tapping(resolved: &Resolved, (places, snap_length): &Captures) -> Result<Tapping, String> {
    let mut tapping = Tapping {
        places: Vec::new(),
        snap_length: *snap_length,
        addresses: None,
    };
    for (name, direction) in places {
        let found = resolved.links.iter().position(|link| link.name == *name);
        let Some(link) = found else {
            return Err(format!("there is no link {name:?}"));
        };
        let which = directions(direction.as_deref()).map_err(|error| error.to_string())?;
        for direction in which {
            if !tapping.holds(link, direction) {
                tapping.places.push((link, direction));
            }
        }
    }
    Ok(tapping)
}

/// What is recorded of a run.
#[derive(Clone, Copy)]
struct Recording {
    digest: bool,
    samples: Option<Duration>,
    packets: bool,
    fast_path: bool,
}

/// Why a job has no result.
enum Failure {
    Scenario(anabranch::scenario::Error),
    Stopped,
    Other(String),
}

impl Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Scenario(error) => raise(py, &error),
            Self::Stopped => PyRuntimeError::new_err("the run was stopped"),
            Self::Other(message) => PyRuntimeError::new_err(message),
        }
    }
}

pub fn interval(samples_ms: Option<f64>) -> PyResult<Option<Duration>> {
    match samples_ms {
        None => Ok(None),
        Some(ms) if ms.is_finite() && ms > 0.0 => Ok(Some(Duration::from_secs_f64(ms / 1e3))),
        Some(ms) => Err(PyValueError::new_err(format!(
            "samples_ms is {ms}; expected milliseconds above 0"
        ))),
    }
}

fn make(
    job: &Job,
    recording: Recording,
    captures: Option<&Captures>,
    report: &mut dyn FnMut(f64) -> Progress,
) -> Result<Run, Failure> {
    let stopwatch = Stopwatch::start();
    let resolved = job.resolve().map_err(Failure::Scenario)?;
    let simulation = Simulation::<Length>::new(&resolved)
        .digest(recording.digest)
        .fast_path(recording.fast_path)
        .samples(recording.samples)
        .packet_log(recording.packets)
        .tap(
            captures
                .map(|captures| tapping(&resolved, captures))
                .transpose()
                .map_err(Failure::Other)?,
        );
    let mut finished = simulation.run_with(report).map_err(|error| match error {
        anabranch::RunError::Stopped => Failure::Stopped,
        other => Failure::Other(other.to_string()),
    })?;
    finished.summary.engine_stats.cpu_s = Some(stopwatch.cpu_s());
    finished.summary.engine_stats.wall_s = Some(stopwatch.wall_s());
    finished.summary.engine_stats.peak_rss_bytes = peak_rss_bytes();
    Run::new(finished).map_err(|error| Failure::Other(error.to_string()))
}

/// Makes one run. `progress` is called with the share that is done, 0 to 1; what it raises, and
/// Ctrl-C, ends the run. Raises `ScenarioError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, *, seed = None, digest = true, samples_ms = None, packets = false,
    fast_path = true, captures = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn run(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
    seed: Option<u64>,
    digest: bool,
    samples_ms: Option<f64>,
    packets: bool,
    fast_path: bool,
    captures: Option<Captures>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let job = Job {
        text,
        file,
        sets,
        seed,
    };
    let recording = Recording {
        digest,
        samples: interval(samples_ms)?,
        packets,
        fast_path,
    };
    let mut raised = None;
    let result = py.detach(|| {
        make(&job, recording, captures.as_ref(), &mut |share| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress
                    .as_ref()
                    .map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
            });
            match told {
                Ok(()) => Progress::Continue,
                Err(error) => {
                    raised = Some(error);
                    Progress::Stop
                }
            }
        })
    });
    match raised {
        Some(error) => Err(error),
        None => result.map_err(|failure| failure.raise(py)),
    }
}

/// Makes many runs on `threads` threads (default: all cores); result `i` belongs to job `i`.
/// `progress` is called with the number of finished jobs. The first job with an error, by number,
/// raises it; Ctrl-C ends all.
#[pyfunction]
#[pyo3(signature = (jobs, *, threads = None, digest = true, samples_ms = None, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn run_many(
    py: Python<'_>,
    jobs: Vec<(Text, String, Vec<String>, Option<u64>)>,
    threads: Option<usize>,
    digest: bool,
    samples_ms: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Run>> {
    let jobs: Vec<Job> = jobs
        .into_iter()
        .map(|(text, file, sets, seed)| Job {
            text,
            file,
            sets,
            seed,
        })
        .collect();
    let recording = Recording {
        digest,
        samples: interval(samples_ms)?,
        packets: false,
        fast_path: true,
    };
    let workers = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let stop = AtomicBool::new(false);
    let finished = AtomicUsize::new(0);
    let (results, raised) = py.detach(|| {
        let (tell, told) = mpsc::channel();
        let work = |job: &Job| {
            let result = make(job, recording, None, &mut |_| {
                if stop.load(Ordering::Relaxed) {
                    Progress::Stop
                } else {
                    Progress::Continue
                }
            });
            finished.fetch_add(1, Ordering::Relaxed);
            result
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let results: Vec<Result<Run, Failure>> =
                    workers.install(|| jobs.par_iter().map(work).collect());
                // The receiver lives until it has this.
                drop(tell.send(results));
            });
            let mut raised = None;
            loop {
                match told.recv_timeout(std::time::Duration::from_millis(100)) {
                    Ok(results) => return (results, raised),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return (Vec::new(), raised),
                    Err(mpsc::RecvTimeoutError::Timeout) if raised.is_none() => {
                        let answer = Python::attach(|py| {
                            py.check_signals()?;
                            let done = finished.load(Ordering::Relaxed);
                            progress
                                .as_ref()
                                .map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
                        });
                        if let Err(error) = answer {
                            stop.store(true, Ordering::Relaxed);
                            raised = Some(error);
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    if let Some(progress) = progress.as_ref() {
        progress.call1(py, (results.len(),))?;
    }
    results
        .into_iter()
        .map(|result| result.map_err(|failure| failure.raise(py)))
        .collect()
}
