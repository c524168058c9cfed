//! Live runs from Python. Raises an error in a build without the live engine, or for another system
//! than Linux.

use anabranch::units::Duration;
use pyo3::{create_exception, exceptions::PyRuntimeError, prelude::*};

use crate::{
    Text,
    python_control::PythonControls,
    run::{Captures, Run, interval},
    scenario::{Job, Source},
};

create_exception!(
    anabranch._engine,
    LiveUnavailableError,
    PyRuntimeError,
    "This machine does not permit live runs. The arguments are the missing part and its remedy."
);

create_exception!(
    anabranch._engine,
    UntraceableError,
    LiveUnavailableError,
    "The kernel's TCP cannot be traced, and was to be: a run without a trace could be made."
);

/// A host, and a program with its arguments.
type Shell = (String, Vec<String>);

/// The records of a run.
struct Recording {
    packets: bool,
    /// Sampling interval of links and groups.
    samples: Option<Duration>,
    captures: Option<Captures>,
    /// Trace of the kernel's TCP: `acks`, `events` or `off`, and whether it is required.
    trace: Option<(String, bool)>,
    /// The machine's time is virtual.
    virtual_time: bool,
}

/// Ensures that this process may create network namespaces, if need be in a new user namespace.
/// That is possible only while the process has one thread. Raises `LiveUnavailableError`.
#[pyfunction]
pub fn prepare_live() -> PyResult<()> {
    engine::prepare()
}

/// Executes one live run. `limits` are the thresholds above which the run is tainted: the 99th
/// percentile and the maximum of lateness in milliseconds, and the number of packets lost between
/// kernel and engine. `samples_ms`, for links and groups, and `captures` are as in `run`. `shell`
/// is a host and a program that has the terminal there and replaces the applications of all flows.
/// `trace` is the trace of the kernel's TCP, "acks", "events" or "off", and whether the run
/// requires it (by default events, if the machine permits them). `virtual_time` states that the
/// machine's time is virtual. `progress` is as in `run`. Raises `ScenarioError`,
/// `LiveUnavailableError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, *, seed = None, packets = false, samples_ms = None, captures = None, limits = None,
    shell = None, trace = None, untrusted = false, virtual_time = false, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn run_live(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
    seed: Option<u64>,
    packets: bool,
    samples_ms: Option<f64>,
    captures: Option<Captures>,
    limits: Option<(f64, f64, u64)>,
    shell: Option<Shell>,
    trace: Option<(String, bool)>,
    untrusted: bool,
    virtual_time: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let job = Job::new(
        Source::new(text, file),
        sets,
        seed,
        untrusted,
        PythonControls::default(),
    );
    let recording = Recording {
        packets,
        samples: interval(samples_ms)?,
        captures,
        trace,
        virtual_time,
    };
    engine::run(py, job, recording, limits, shell, progress.as_ref())
}

/// Checks that a live run supports a scenario, and returns its duration in seconds. With `machine`
/// it also checks that this kernel has or accepts its congestion controls. With `guest` it also
/// checks that a kernel in virtual time can run it, which has no eBPF and no interfaces of the
/// host. Raises `ScenarioError`, `LiveUnavailableError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, seed = None, *, machine = false, guest = false))]
pub fn check_live(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
    seed: Option<u64>,
    machine: bool,
    guest: bool,
) -> PyResult<f64> {
    let job = Job::new(
        Source::new(text, file),
        sets,
        seed,
        false,
        PythonControls::default(),
    );
    engine::check(py, job, machine, guest)
}

/// A host's name, its IPv4 address, its IPv6 address, and its program.
type HostAddress = (String, String, String, Option<Vec<String>>);

/// The hosts of a scenario that have an address, in the scenario's order. Raises `ScenarioError`,
/// `LiveUnavailableError`.
#[pyfunction]
pub fn live_hosts(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
) -> PyResult<Vec<HostAddress>> {
    let job = Job::new(
        Source::new(text, file),
        sets,
        None,
        false,
        PythonControls::default(),
    );
    engine::hosts(py, job)
}

/// The reason why a program with this name and these arguments cannot be started, and advice;
/// `None` if no reason is known.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn live_program_hindrance(words: Vec<String>) -> Option<(String, String)> {
    engine::program_hindrance(&words)
}

/// Initial send buffer of the engine's applications in a live run, in octets. Raises
/// `ScenarioError`, `LiveUnavailableError`.
#[pyfunction]
#[pyo3(signature = (text, file, sets, seed = None))]
pub fn live_send_buffer(
    py: Python<'_>,
    text: Text,
    file: String,
    sets: Vec<String>,
    seed: Option<u64>,
) -> PyResult<u64> {
    let job = Job::new(
        Source::new(text, file),
        sets,
        seed,
        false,
        PythonControls::default(),
    );
    engine::send_buffer(py, job)
}

#[cfg(not(all(feature = "live", target_os = "linux")))]
mod engine {
    use super::{
        Job, LiveUnavailableError, Py, PyAny, PyErr, PyResult, Python, Recording, Run, Shell,
    };

    fn without() -> PyErr {
        LiveUnavailableError::new_err((
            "this build has no live engine: it needs Linux, and the feature `live`",
            "",
        ))
    }
    pub fn prepare() -> PyResult<()> {
        Err(without())
    }
    pub fn check(_py: Python<'_>, _job: Job, _machine: bool, _guest: bool) -> PyResult<f64> {
        Err(without())
    }
    pub fn send_buffer(_py: Python<'_>, _job: Job) -> PyResult<u64> {
        Err(without())
    }
    pub fn program_hindrance(_words: &[String]) -> Option<(String, String)> {
        None
    }
    pub fn hosts(_py: Python<'_>, _job: Job) -> PyResult<Vec<super::HostAddress>> {
        Err(without())
    }
    pub fn run(
        _py: Python<'_>,
        _job: Job,
        _recording: Recording,
        _limits: Option<(f64, f64, u64)>,
        _shell: Option<Shell>,
        _progress: Option<&Py<PyAny>>,
    ) -> PyResult<Run> {
        Err(without())
    }
}

#[cfg(all(feature = "live", target_os = "linux"))]
mod engine {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    };

    use anabranch::{
        AckSample, Finished, FlowSample, Interrupt, Resolved, Samples, Scenario,
        packet::FlowId,
        scenario,
        tcp::Snapshot,
        units::{Bytes, Duration, Instant, Rate},
    };
    use anabranch_live::{
        Detail, Error, Frame, Limits, Live, Progress, Sample, Side, TcpInfo, Traced, Tracing,
    };
    use pyo3::exceptions::PyValueError;

    use super::{
        LiveUnavailableError, Py, PyAny, PyErr, PyResult, PyRuntimeError, Python, Recording, Run,
        Shell, UntraceableError,
    };
    use crate::{
        depends::Depends,
        error::raise,
        interruptible::{awaited, quietly, report},
        run::tapping,
        scenario::Job,
        stopwatch::{Stopwatch, peak_rss_bytes},
    };

    /// The engine's names of the controls in a guest's kernel.
    const OF_LINUX: &[&str] = &[
        "reno",
        "new-reno",
        "cubic",
        "bbr",
        "dctcp",
        "westwood-plus",
        "vegas",
        "bic",
        "htcp",
    ];

    pub fn prepare() -> PyResult<()> {
        anabranch_live::prepare().map_err(told)
    }

    /// A scenario that has been read.
    struct Read {
        job: Job,
        scenario: Scenario,
        resolved: Resolved,
    }

    impl Read {
        fn of(job: Job, interrupt: &Interrupt) -> Result<Self, Failure> {
            let scenario = job
                .parse_for(true, &Depends::default(), interrupt)
                .map_err(Failure::Scenario)?;
            let resolved = scenario.resolve(job.seed).map_err(Failure::Scenario)?;
            Ok(Self {
                job,
                scenario,
                resolved,
            })
        }
        fn live(&self, interrupt: &Interrupt, plays: &Arc<AtomicBool>) -> Live<'_> {
            let folder = self.job.folder().to_owned();
            Live::new(&self.resolved)
                .folder(folder, self.job.files(interrupt))
                .interrupt(interrupt.clone(), Arc::clone(plays))
        }
        /// Checks that a guest can run it: User-Mode Linux has no BTF, and has only its own
        /// devices.
        fn check_guest(&self) -> Result<(), scenario::Error> {
            let refuse = |path: &[&str], message: &str, help: &str| {
                Err(self.scenario.refusal(path, message, help))
            };
            let resolved = &self.resolved;
            let mut hosts = resolved.nodes.iter().zip(&resolved.attached);
            if let Some((host, _)) = hosts.find(|(_, attached)| attached.interface.is_some()) {
                return refuse(
                    &["host", host, "attach"],
                    "a kernel in virtual time has no interface of this machine",
                    "expected \"namespace\", or `--engine live`",
                );
            }
            let by_kernel = |flow: &&scenario::ResolvedFlow| {
                flow.protocol == scenario::Protocol::Tcp
                    && !resolved.attached[flow.ends[0]].has_own_tcp
            };
            let mut flows = resolved.flows.iter().filter(by_kernel);
            if let Some(flow) = flows.find(|flow| !OF_LINUX.contains(&flow.cc.name())) {
                return refuse(
                    &["flow", &flow.table, "cc"],
                    "an eBPF control does not run in virtual time: this kernel has no types for BPF",
                    &format!(
                        "expected one of `{}`, or `--engine sim` or `live`",
                        OF_LINUX.join("`, `")
                    ),
                );
            }
            Ok(())
        }
        /// Adds the position in the scenario's text to a rejection.
        fn placed(&self, error: Error) -> Failure {
            match error {
                Error::Refused(refusal) => {
                    let path: Vec<&str> = refusal.path.iter().map(String::as_str).collect();
                    let (message, help) = (&refusal.message, &refusal.help);
                    Failure::Scenario(self.scenario.refusal(&path, message, help))
                }
                other => Failure::Live(other),
            }
        }
    }

    /// Reads a scenario in a thread, which has ended when this returns.
    fn read<T: Send + 'static>(
        py: Python<'_>,
        job: Job,
        then: impl FnOnce(Read) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        quietly(py, move |interrupt| then(Read::of(job, interrupt)?))?
            .map_err(|failure| raise_failure(py, failure))
    }

    pub fn check(py: Python<'_>, job: Job, machine: bool, guest: bool) -> PyResult<f64> {
        let read = read(py, job, move |read| {
            if guest {
                read.check_guest().map_err(Failure::Scenario)?;
            }
            let live = Live::new(&read.resolved);
            live.check()
                .map_err(|refusal| read.placed(refusal.into()))?;
            Ok(read)
        })?;
        let duration = read.resolved.duration.as_secs_f64();
        if machine {
            prepare()?;
            quietly(py, move |interrupt| {
                let live = read.live(interrupt, &Arc::default());
                live.check_machine().map_err(|error| read.placed(error))
            })?
            .map_err(|failure| raise_failure(py, failure))?;
        }
        Ok(duration)
    }

    pub fn send_buffer(py: Python<'_>, job: Job) -> PyResult<u64> {
        read(py, job, |read| {
            Ok(Live::new(&read.resolved).first_send_buffer())
        })
    }

    pub fn hosts(py: Python<'_>, job: Job) -> PyResult<Vec<super::HostAddress>> {
        let hosts = read(py, job, |read| Ok(anabranch_live::hosts(&read.resolved)))?.into_iter();
        Ok(hosts
            .map(|host| {
                (
                    host.name,
                    host.v4.to_string(),
                    host.v6.to_string(),
                    host.exec,
                )
            })
            .collect())
    }

    pub fn program_hindrance(words: &[String]) -> Option<(String, String)> {
        anabranch_live::program_hindrance(words)
    }

    fn raise_failure(py: Python<'_>, failure: Failure) -> PyErr {
        match failure {
            Failure::Scenario(error) => raise(py, &error),
            Failure::Live(error) => told(error),
            Failure::Other(message) => PyRuntimeError::new_err(message),
        }
    }

    fn told(error: Error) -> PyErr {
        match error {
            Error::Missing { ref help, .. } => {
                LiveUnavailableError::new_err((error.to_string(), help.clone()))
            }
            Error::Untraceable(_) => {
                // The text after the first semicolon is advice.
                let text = error.to_string();
                let (message, help) = text.split_once("; ").unwrap_or((&text, ""));
                UntraceableError::new_err((message.to_owned(), help.to_owned()))
            }
            other => PyRuntimeError::new_err(other.to_string()),
        }
    }

    enum Failure {
        Scenario(scenario::Error),
        Live(Error),
        Other(String),
    }

    pub fn run(
        py: Python<'_>,
        job: Job,
        recording: Recording,
        limits: Option<(f64, f64, u64)>,
        shell: Option<Shell>,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<Run> {
        let stopwatch = Stopwatch::start();
        let tracing = tracing(recording.trace.as_ref())?;
        let is_shell = shell.is_some();
        let read = read(py, job, move |read| {
            if !is_shell {
                let live = Live::new(&read.resolved);
                live.check()
                    .map_err(|refusal| read.placed(refusal.into()))?;
            }
            Ok(read)
        })?;
        // Here and not in the work, because only a process with one thread can move into a user
        // namespace.
        prepare()?;
        let (share, plays) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (reached, playing) = (Arc::clone(&share), Arc::clone(&plays));
        let mut pulse = |py: Python<'_>| {
            let share = f64::from_bits(share.load(Ordering::Relaxed));
            report(py, progress, share)
        };
        let is_needed = || plays.load(Ordering::Relaxed);
        let made = awaited(py, &mut pulse, &is_needed, move |interrupt| {
            let live = read
                .live(interrupt, &playing)
                .packet_log(recording.packets)
                .samples(recording.samples)
                .trace(tracing)
                .virtual_time(recording.virtual_time);
            make(&read, live, &recording, limits, shell, &reached)
        })?;
        let mut finished = made.map_err(|failure| raise_failure(py, failure))?;
        finished.summary.engine_stats.wall_s = Some(stopwatch.wall_s());
        finished.summary.engine_stats.peak_rss_bytes = peak_rss_bytes();
        Run::new(finished).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    fn make(
        read: &Read,
        mut live: Live<'_>,
        recording: &Recording,
        limits: Option<(f64, f64, u64)>,
        shell: Option<Shell>,
        reached: &AtomicU64,
    ) -> Result<Finished<Frame>, Failure> {
        let captures = recording.captures.as_ref();
        let captures = captures
            .map(|captures| tapping(&read.resolved, captures))
            .transpose()
            .map_err(Failure::Other)?;
        live = live.tap(captures);
        if let Some((p99_lateness_ms, max_lateness_ms, io_drops)) = limits {
            live = live.limits(Limits {
                p99_lateness_ms,
                max_lateness_ms,
                io_drops,
            });
        }
        if let Some((host, words)) = shell {
            let nodes = &read.resolved.nodes;
            let node = nodes.iter().position(|name| *name == host);
            let node = node.ok_or_else(|| {
                let message = format!("there is no host `{host}`");
                let help = format!("expected one of `{}`", nodes.join("`, `"));
                Failure::Scenario(read.scenario.refusal(&[], &message, &help))
            })?;
            live = live.shell(node, words);
        }
        let done = live.run_with(&mut |share| {
            reached.store(share.to_bits(), Ordering::Relaxed);
            Progress::Continue
        });
        done.map(|done| finished(done, &read.resolved))
            .map_err(|error| read.placed(error))
    }

    /// Converts the result to that of a simulator run, so that tables are built from both alike.
    fn finished(done: anabranch_live::Finished, resolved: &Resolved) -> Finished<Frame> {
        let mut delivered = vec![0; resolved.flows.len()];
        let mut flows = Vec::new();
        let mut recoveries: Vec<_> = (0..resolved.flows.len())
            .map(|flow| Recoveries::of(&done.traced, flow))
            .collect();
        for sample in &done.samples {
            match sample.side {
                Side::Sender => flows.push(FlowSample {
                    fast_recoveries: recoveries[sample.flow].until(sample.at),
                    ..flow_sample(sample, delivered[sample.flow])
                }),
                Side::Receiver => delivered[sample.flow] = sample.info.bytes_received,
            }
        }
        let (acks, controls) = ack_samples(&done.traced);
        Finished {
            summary: done.summary,
            network: done.network,
            links: done.links,
            groups: done.groups,
            samples: Samples {
                flows,
                acks,
                controls,
                links: done.path_samples.links,
                groups: done.path_samples.groups,
            },
        }
    }

    fn tracing(asked: Option<&(String, bool)>) -> PyResult<Tracing> {
        let Some((detail, is_required)) = asked else {
            return Ok(Tracing::IfPossible(Detail::Events));
        };
        let detail = match detail.as_str() {
            "acks" => Detail::Segments,
            "events" => Detail::Events,
            "off" => return Ok(Tracing::Off),
            other => {
                return Err(PyValueError::new_err(format!(
                    "there is no trace {other:?}; expected acks, events or off"
                )));
            }
        };
        Ok(if *is_required {
            Tracing::Required(detail)
        } else {
            Tracing::IfPossible(detail)
        })
    }

    /// Counts the fast recoveries of a flow over time.
    struct Recoveries {
        begun: Vec<Instant>,
        counted: usize,
        is_known: bool,
    }

    impl Recoveries {
        fn of(traced: &Traced, flow: usize) -> Self {
            Self {
                begun: traced.recoveries(flow).collect(),
                counted: 0,
                is_known: traced.tells_of(flow),
            }
        }
        fn until(&mut self, at: Instant) -> Option<u64> {
            let more = self.begun[self.counted..].iter();
            self.counted += more.take_while(|begun| **begun <= at).count();
            self.is_known.then_some(self.counted as u64)
        }
    }

    /// Converts the trace to samples, with the names of congestion controls.
    fn ack_samples(traced: &Traced) -> (Vec<AckSample>, Vec<String>) {
        let mut controls: Vec<String> = Vec::new();
        let mut last = ([0; 16], 0);
        let acks = traced.acknowledged().into_iter().map(|ack| {
            let record = &ack.record;
            if controls.is_empty() || last.0 != record.control {
                let name = record.control();
                let place = controls.iter().position(|control| *control == name);
                last = (record.control, place.unwrap_or(controls.len()));
                if place.is_none() {
                    controls.push(name);
                }
            }
            let info = TcpInfo {
                ca_state: record.ca_state as u8,
                snd_cwnd: record.cwnd,
                snd_ssthresh: record.ssthresh,
                ..TcpInfo::default()
            };
            AckSample {
                at: ack.at,
                flow: FlowId(record.flow),
                connection: ack.connection,
                acknowledged_bytes: ack.acknowledged_bytes,
                cwnd: record.cwnd,
                ssthresh: record.ssthresh(),
                in_flight: record.in_flight(),
                srtt: Duration::from_micros(record.srtt_us.into()),
                fast_recoveries: ack.fast_recoveries,
                timeouts: ack.timeouts,
                retransmitted_packets: record.total_retrans,
                state: info.congestion_state(),
                control: last.1,
            }
        });
        (acks.collect(), controls)
    }

    /// Windows are in segments: the segment size of an external host is unknown to the model, which
    /// counts by 1.
    fn flow_sample(sample: &Sample, delivered_bytes: u64) -> FlowSample {
        let info = &sample.info;
        let micros = |us: u32| Duration::from_micros(us.into());
        FlowSample {
            at: sample.at,
            flow: FlowId(u32::try_from(sample.flow).unwrap_or(u32::MAX)),
            snapshot: Snapshot {
                cwnd: Bytes::new(info.snd_cwnd.into()),
                ssthresh: (info.snd_ssthresh < 1 << 30)
                    .then(|| Bytes::new(info.snd_ssthresh.into())),
                in_flight: Bytes::new(info.in_flight().into()),
                srtt: micros(info.rtt_us),
                rttvar: micros(info.rttvar_us),
                min_rtt: micros(info.min_rtt_us.checked_add(1).map_or(0, |us| us - 1)),
                rto: micros(info.rto_us),
                state: info.congestion_state(),
                pacing_rate: (info.pacing_rate != u64::MAX)
                    .then(|| Rate::new(info.pacing_rate.saturating_mul(8)))
                    .flatten(),
                bandwidth_estimate: None,
            },
            delivered_bytes,
            fast_recoveries: None,
            timeouts: info.total_rto.into(),
            retransmitted_packets: info.total_retrans.into(),
        }
    }
}
