//! One run from Python, with a progress report.

use std::{
    ffi::CString,
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anabranch::{
    Body, Finished, Interrupt, Length, Progress, Resolved, Simulation, packet::Direction,
    record::Tapping, units::Duration,
};
use anabranch_results::{self as results, Cursor, Packets};
use pyo3::{
    exceptions::{PyKeyError, PyRuntimeError, PyValueError},
    prelude::*,
    types::PyType,
};

use crate::{
    Text,
    depends::Depends,
    error::raise,
    interruptible::{interruptible, quietly, report},
    memory,
    python_control::PythonControls,
    scenario::{Job, Source},
    stopwatch::{Stopwatch, peak_rss_bytes},
    table::ArrowTable,
};

/// The result of one run.
#[pyclass(frozen, module = "anabranch._engine")]
pub struct Run {
    finished: Arc<Mutex<Box<dyn Left>>>,
    summary_json: String,
    depends: Vec<(String, String)>,
}

/// Result of a run of either engine.
trait Left: Send {
    fn table(&self, name: &str) -> PyResult<ArrowTable>;
    /// The next rows of the table `packets`, at most `most`.
    fn packets(
        &self,
        cursor: &mut Cursor,
        most: usize,
        columns: &[&'static str],
    ) -> PyResult<ArrowTable>;
    /// Number of packets sent after the packet log was full.
    fn left_out(&self) -> u64;
    /// A capture, if it was requested.
    fn pcapng(&self, link: &str, which: &[Direction]) -> Option<Vec<u8>>;
}

/// A finished run, whose packets are packed.
struct Packed<B: Body> {
    run: Finished<B>,
    packets: Packets,
}

impl<B: Body> Left for Packed<B> {
    fn table(&self, name: &str) -> PyResult<ArrowTable> {
        ArrowTable::of(results::build(&self.run, &self.packets, name))
    }
    fn packets(
        &self,
        cursor: &mut Cursor,
        most: usize,
        columns: &[&'static str],
    ) -> PyResult<ArrowTable> {
        let rows = cursor.take(&self.packets, most);
        ArrowTable::of(results::packet_table(&self.run, &rows, columns))
    }
    fn left_out(&self) -> u64 {
        self.packets.left_out
    }
    fn pcapng(&self, link: &str, which: &[Direction]) -> Option<Vec<u8>> {
        let place = self.run.links.iter().position(|(name, _)| name == link)?;
        let taps = self.run.network.probe().taps()?;
        taps.pcapng(place, which, self.run.network.element_names())
    }
}

impl Run {
    pub fn new<B: Body>(mut run: Finished<B>) -> serde_json::Result<Self> {
        // The log is large, and no longer changes.
        let log = run.network.log_mut().map(mem::take);
        let packets = log.as_ref().map(Packets::of).unwrap_or_default();
        Ok(Self {
            summary_json: serde_json::to_string(&run.summary)?,
            finished: Arc::new(Mutex::new(Box::new(Packed { run, packets }))),
            depends: Vec::new(),
        })
    }
    /// The summary, as JSON, and the files that the run has read.
    pub fn into_summary(self) -> (String, Vec<(String, String)>) {
        (self.summary_json, self.depends)
    }
    fn depending(mut self, depends: &Depends) -> Self {
        self.depends = depends.list();
        self
    }
}

#[pymethods]
impl Run {
    /// The summary, as JSON.
    #[getter]
    fn summary_json(&self) -> &str {
        &self.summary_json
    }
    /// The files that the run has read, with a hash of their content (see `file_hash`).
    #[getter]
    fn depends(&self) -> Vec<(String, String)> {
        self.depends.clone()
    }
    /// One of the tables `flows`, `links`, `samples`, `link_samples`, `group_samples`, `packets`,
    /// `window_events`.
    fn table(&self, py: Python<'_>, name: String) -> PyResult<ArrowTable> {
        let finished = Arc::clone(&self.finished);
        quietly(py, move |_| {
            let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.table(&name)
        })?
    }
    /// The table `packets` in parts of `rows` rows, with the given columns or all; an empty table
    /// is one part.
    #[pyo3(signature = (rows, columns = None))]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
    fn packet_batches(&self, rows: usize, columns: Option<Vec<String>>) -> PyResult<PacketBatches> {
        let column = |name: &String| {
            results::packet_column(name)
                .ok_or_else(|| PyKeyError::new_err(format!("packets have no column {name:?}")))
        };
        let columns: Vec<_> = match &columns {
            Some(names) => names.iter().map(column).collect::<PyResult<_>>()?,
            None => results::packet_columns().collect(),
        };
        Ok(PacketBatches {
            finished: Arc::clone(&self.finished),
            rows: rows.max(1),
            columns: columns.into(),
            position: Arc::default(),
        })
    }
    /// Number of packets sent after the packet log was full, which are in no table.
    fn left_out_packets(&self) -> u64 {
        let finished = self.finished.lock();
        finished.unwrap_or_else(PoisonError::into_inner).left_out()
    }
    /// The capture of a link (both directions, or one) as the content of a pcapng file. Raises
    /// `ValueError` if it was not requested.
    #[pyo3(signature = (link, direction = None))]
    fn pcapng(&self, py: Python<'_>, link: String, direction: Option<&str>) -> PyResult<Vec<u8>> {
        let finished = Arc::clone(&self.finished);
        let which = directions(direction)?;
        quietly(py, move |_| {
            let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished
                .pcapng(&link, &which)
                .ok_or_else(|| PyValueError::new_err(format!("the link {link:?} was not captured")))
        })?
    }
}

/// Parts of the table `packets`, built separately.
#[pyclass(frozen, module = "anabranch._engine")]
pub struct PacketBatches {
    finished: Arc<Mutex<Box<dyn Left>>>,
    rows: usize,
    columns: Arc<[&'static str]>,
    /// `None` before the first part.
    position: Arc<Mutex<Option<Cursor>>>,
}

#[pymethods]
impl PacketBatches {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowTable>> {
        let (finished, at) = (Arc::clone(&self.finished), Arc::clone(&self.position));
        let (rows, columns) = (self.rows, Arc::clone(&self.columns));
        quietly(py, move |_| {
            let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = at.is_none();
            let part = finished.packets(at.get_or_insert_default(), rows, &columns)?;
            Ok((is_first || !part.is_empty()).then_some(part))
        })?
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

/// The links to capture, by name and direction (both if `None`), and the snap length in octets.
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

/// The records of a run.
#[derive(Clone, Copy)]
pub struct Recording {
    pub digest: bool,
    pub samples: Option<Duration>,
    pub packets: bool,
    pub fast_path: bool,
}

/// The reason why a job has no result.
pub enum Failure {
    Scenario(anabranch::scenario::Error),
    Stopped,
    /// More data is requested than fits into memory.
    TooMuch(String),
    Other(String),
}

impl Failure {
    pub fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Scenario(error) => raise(py, &error),
            Self::Stopped => PyRuntimeError::new_err("the run was stopped"),
            Self::TooMuch(message) => PyValueError::new_err(message),
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

/// Largest number of samples of a run, which are held in memory: some 10 GB.
const MAX_SAMPLES: u64 = 100_000_000;

/// Checks the number of samples: one per interval for each flow and each direction of each link.
fn check_samples(resolved: &Resolved, every: Option<Duration>) -> Result<(), Failure> {
    let Some(every) = every else {
        return Ok(());
    };
    let each = (resolved.flows.len() + 2 * resolved.links.len()) as u64;
    let count = (resolved.duration.as_picos() / every.as_picos().max(1)).saturating_mul(each);
    if count <= MAX_SAMPLES {
        return Ok(());
    }
    let least = resolved.duration.as_millis_f64() * each as f64 / MAX_SAMPLES as f64;
    Err(Failure::TooMuch(format!(
        "a sample every {every} makes {count} in {}, one for each flow and each direction of a link; at most \
         {MAX_SAMPLES} were expected: --samples {}",
        resolved.duration,
        least.ceil()
    )))
}

/// Options of one run in addition to its job.
pub struct Order<'a> {
    pub recording: Recording,
    pub captures: Option<&'a Captures>,
    pub interrupt: &'a Interrupt,
    /// Warnings before the run; `None` if there are many runs.
    pub remarks: Option<&'a Mutex<Vec<String>>>,
}

pub fn make(job: &Job, order: &Order<'_>, report: &mut dyn FnMut(f64)) -> Result<Run, Failure> {
    let stopwatch = Stopwatch::start();
    let (depends, recording) = (Depends::default(), order.recording);
    let resolved = job
        .resolve(&depends, order.interrupt)
        .map_err(Failure::Scenario)?;
    check_samples(&resolved, recording.samples)?;
    if let (Some(remarks), Some(remark)) = (order.remarks, memory::remark(&resolved)) {
        remarks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(remark);
    }
    let simulation = Simulation::<Length>::new(&resolved)
        .digest(recording.digest)
        .fast_path(recording.fast_path)
        .samples(recording.samples)
        .packet_log(recording.packets)
        .interrupt(order.interrupt.clone())
        .tap(
            order
                .captures
                .map(|captures| tapping(&resolved, captures))
                .transpose()
                .map_err(Failure::Other)?,
        );
    let done = simulation.run_with(&mut |share| {
        report(share);
        Progress::Continue
    });
    let mut finished = done.map_err(|error| match error {
        anabranch::RunError::Stopped => Failure::Stopped,
        other => Failure::Other(other.to_string()),
    })?;
    finished.summary.engine_stats.cpu_s = Some(stopwatch.cpu_s());
    finished.summary.engine_stats.wall_s = Some(stopwatch.wall_s());
    finished.summary.engine_stats.peak_rss_bytes = peak_rss_bytes();
    let run = Run::new(finished).map_err(|error| Failure::Other(error.to_string()))?;
    Ok(run.depending(&depends))
}

/// Issues a warning in the package's own category.
fn warn(py: Python<'_>, remark: &str) -> PyResult<()> {
    let kind = py.import("anabranch.errors")?.getattr("MemoryWarning")?;
    PyErr::warn(py, &kind, &CString::new(remark)?, 2)
}

/// Executes one run. `progress` is called many times per second with the share that is done, from 0
/// to 1; its exceptions, and signals, end the run. `untrusted` is as in `resolve`. Raises
/// `ScenarioError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, *, seed = None, digest = true, samples_ms = None, packets = false,
    fast_path = true, captures = None, untrusted = false, controls = Vec::new(), progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
#[expect(
    clippy::fn_params_excessive_bools,
    reason = "keywords of a Python function"
)]
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
    untrusted: bool,
    controls: Vec<(String, Py<PyType>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let controls = PythonControls::new(controls);
    let job = Job::new(
        Source::new(text, file),
        sets,
        seed,
        untrusted,
        controls.clone(),
    );
    let recording = Recording {
        digest,
        samples: interval(samples_ms)?,
        packets,
        fast_path,
    };
    let share = Arc::new(AtomicU64::new(0));
    let reached = Arc::clone(&share);
    let remarks = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&remarks);
    let mut pulse = |py: Python<'_>| {
        let told = mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
        told.iter()
            .try_for_each(|remark: &String| warn(py, remark))?;
        let share = f64::from_bits(share.load(Ordering::Relaxed));
        report(py, progress.as_ref(), share)
    };
    let made = interruptible(py, &mut pulse, move |interrupt| {
        let order = Order {
            recording,
            captures: captures.as_ref(),
            interrupt,
            remarks: Some(&remarks),
        };
        make(&job, &order, &mut |share| {
            reached.store(share.to_bits(), Ordering::Relaxed);
        })
    })?;
    let run = made.map_err(|failure| controls.raised().unwrap_or_else(|| failure.raise(py)))?;
    pulse(py)?;
    Ok(run)
}
