//! One live run: set-up, the run itself, tear-down, and the summary.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration as Pause,
};

use anabranch_elements::host::Host;
use anabranch_model::{
    network::{GroupId, LinkId, Network},
    record::{Summary, summary::About},
    scenario::Resolved,
    topology::{Compiled, Engine, Hosts, compile},
};
use serde_json::json;

use crate::{
    application::{Application, Outcome, Stage},
    audit::{Audit, Limits, Recorder},
    clock::Clock,
    directory::Directory,
    driver::Driver,
    end::{Inbox, KernelEnd},
    frame::Frame,
    namespace::Namespace,
    refusal::{self, Refusal},
    report, sampler, settings,
    tun::{Device, Tun},
};

/// Whether to go on, as a progress report answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Go on.
    Continue,
    /// Stop here; the run has no result.
    Stop,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario asks for what cannot run live.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machine does not let us.
    #[error("{what}: {source}")]
    Missing {
        /// What was tried, and what it needs.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something failed in mid-run.
    #[error("{what}: {source}")]
    Failed {
        /// What.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The progress report asked to stop.
    #[error("the run was stopped")]
    Stopped,
}

/// A live run about to be made.
#[derive(Debug)]
pub struct Live<'a> {
    resolved: &'a Resolved,
    limits: Limits,
    packet_log: bool,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Finished {
    /// The summary, as in the contract.
    pub summary: Summary,
    /// The network in its last state.
    pub network: Network<Frame>,
    /// Links by name; forward, then reverse.
    pub links: Vec<(String, [LinkId; 2])>,
    /// Groups by name.
    pub groups: Vec<(String, GroupId)>,
    /// What the engine says of itself.
    pub audit: Audit,
}

/// From "everybody is ready" to the start of the clock.
const LEAD: Pause = Pause::from_millis(20);
/// So often the progress is told.
const REPORT: Pause = Pause::from_millis(50);

impl<'a> Live<'a> {
    /// A run of this scenario.
    #[must_use]
    pub fn new(resolved: &'a Resolved) -> Self {
        Self {
            resolved,
            limits: Limits::default(),
            packet_log: false,
        }
    }
    /// Past these the run is tainted.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
    /// Whether a row per packet is kept (default: no).
    #[must_use]
    pub fn packet_log(mut self, on: bool) -> Self {
        self.packet_log = on;
        self
    }
    /// Makes the run.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(self) -> Result<Finished, Error> {
        self.run_with(&mut |_| Progress::Continue)
    }

    /// Makes the run and reports the share that is done, 0 to 1, now and then.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run_with(self, report: &mut dyn FnMut(f64) -> Progress) -> Result<Finished, Error> {
        let resolved = self.resolved;
        refusal::check(resolved)?;
        let applied = settings::of_namespaces(resolved);
        let hosts = hosts(resolved, &applied)?;
        let recorder = Arc::new(Recorder::default());
        let (inboxes, ends) = ends(resolved, &hosts, &recorder);
        let engine = Engine {
            digest: false,
            packet_log: self.packet_log,
            ..Engine::default()
        };
        let Compiled {
            mut network,
            links,
            groups,
            gateways,
        } = compile(resolved, engine, ends).expect("hosts are made from the scenario's flows");
        let devices = hosts.iter().flatten();
        let devices = devices.map(|host| Arc::new(host.device.clone()) as Arc<dyn Device>);
        let play = Play {
            resolved,
            hosts: &hosts,
            recorder: &recorder,
            devices: devices.collect(),
            inboxes,
        };
        let done = play.run(&mut network, report)?;
        let drops = hosts
            .iter()
            .flatten()
            .map(|host| host.namespace.device_drops())
            .sum::<io::Result<u64>>()
            .map_err(|source| failed("reading the devices' counters", source))?;
        let audit = Audit::of(&recorder, self.limits, drops, done.cpu_share);

        let about = About {
            scenario: resolved.title.clone(),
            seed: resolved.seed,
            resolved_scenario: resolved.json.clone(),
            platform: format!("linux {}", std::env::consts::ARCH),
        };
        let mut summary = Summary::of(&mut network, about, &links, &groups, &gateways);
        summary.engine = "live";
        summary.fairness.jain_index =
            report::fill_in(&mut summary.flows, resolved, &done.samples, &done.outcomes);
        let first = hosts.iter().flatten().next();
        summary.live = Some(json!({
            "audit": audit,
            "machine": report::machine(first.map(|host| &host.namespace), &applied),
        }));
        Ok(Finished {
            summary,
            network,
            links,
            groups,
            audit,
        })
    }
}

/// A node where flows begin or end.
#[derive(Debug)]
struct LiveHost {
    namespace: Namespace,
    device: Tun,
}

fn failed(what: &str, source: io::Error) -> Error {
    Error::Failed {
        what: what.to_owned(),
        source,
    }
}

/// By node; none where no flow begins or ends.
fn hosts(
    resolved: &Resolved,
    applied: &[(&str, String)],
) -> Result<Vec<Option<LiveHost>>, Error> {
    let mtu = settings::mtu(resolved);
    let is_end = |node: usize| resolved.flows.iter().any(|flow| flow.ends.contains(&node));
    let make = |node: usize| {
        let namespace = Namespace::new().map_err(|source| Error::Missing {
            what: "making a network namespace (CAP_SYS_ADMIN, or user namespaces for everybody)"
                .to_owned(),
            source,
        })?;
        let missing = |what: &str| {
            let what = what.to_owned();
            move |source| Error::Missing { what, source }
        };
        namespace
            .set(applied)
            .map_err(missing("setting a namespace up below /proc/sys"))?;
        let device = namespace
            .device(node, mtu)
            .map_err(missing("making a TUN device (/dev/net/tun, CAP_NET_ADMIN)"))?;
        Ok(LiveHost { namespace, device })
    };
    (0..resolved.nodes.len())
        .map(|node| is_end(node).then(|| make(node)).transpose())
        .collect()
}

/// The ends of all flows as the model sees them, and where what they send is put in.
fn ends(
    resolved: &Resolved,
    hosts: &[Option<LiveHost>],
    recorder: &Arc<Recorder>,
) -> (Vec<[Inbox; 2]>, Hosts<Frame>) {
    let mut inboxes = Vec::with_capacity(resolved.flows.len());
    let mut ends: Hosts<Frame> = Vec::with_capacity(resolved.flows.len());
    for flow in &resolved.flows {
        let pair = [(); 2].map(|()| Inbox::new(VecDeque::new().into()));
        let boxed = |side: usize| -> Box<dyn Host<Frame>> {
            let host = hosts[flow.ends[side]].as_ref().expect("every end has a host");
            Box::new(KernelEnd {
                device: Arc::new(host.device.clone()),
                inbox: Arc::clone(&pair[side]),
                recorder: Arc::clone(recorder),
            })
        };
        ends.push((flow.name.clone(), [boxed(0), boxed(1)]));
        inboxes.push(pair);
    }
    (inboxes, ends)
}

/// Applications, sampler and driver of one run.
struct Play<'a> {
    resolved: &'a Resolved,
    hosts: &'a [Option<LiveHost>],
    recorder: &'a Recorder,
    devices: Vec<Arc<dyn Device>>,
    inboxes: Vec<[Inbox; 2]>,
}

struct Done {
    samples: Vec<sampler::Sample>,
    outcomes: Vec<[Outcome; 2]>,
    cpu_share: f64,
}

impl Play<'_> {
    fn run(
        self,
        network: &mut Network<Frame>,
        report: &mut dyn FnMut(f64) -> Progress,
    ) -> Result<Done, Error> {
        let stage = Stage::default();
        let stop = AtomicBool::new(false);
        let directory = Directory::of(self.resolved);
        let (devices, inboxes) = (self.devices, self.inboxes);
        let end = network.end();
        thread::scope(|scope| {
            let (ready, readied) = mpsc::channel();
            let mut applications = Vec::new();
            for index in 0..self.resolved.flows.len() {
                applications.push(Application::of(self.resolved, index).map(|application| {
                    let (ready, stage) = (ready.clone(), &stage);
                    let host = application.host(self.resolved);
                    let namespace = &self.hosts[host].as_ref().expect("every end has a host").namespace;
                    scope.spawn(move || {
                        // Nobody listens any more once one has failed.
                        application.run(namespace, stage, move || {
                            let _ = ready.send(());
                        })
                    })
                }));
            }
            drop(ready);
            let expected = 2 * applications.len();
            let are_ready = readied.iter().take(expected).count() == expected;
            let clock = Clock::starting_in(LEAD);
            let mut outcome = Ok((Vec::new(), 0.0));
            if are_ready {
                self.recorder.begin(clock);
                let (stage, stop) = (&stage, &stop);
                let sampling = scope.spawn(move || sampler::run(clock, end, stage));
                let driver = Driver {
                    network,
                    devices,
                    inboxes,
                    directory: &directory,
                    recorder: self.recorder,
                    clock,
                    stop,
                };
                let driving = scope.spawn(|| driver.run());
                stage.line.go(Some(clock));
                let mut stopped = false;
                while !driving.is_finished() {
                    thread::sleep(REPORT.min(clock.until(end) + Pause::from_millis(1)));
                    let share = clock.now().as_secs_f64() / end.as_secs_f64();
                    if !stopped && report(share.min(1.0)) == Progress::Stop {
                        stopped = true;
                        stop.store(true, Ordering::Relaxed);
                        stage.over.store(true, Ordering::Relaxed);
                    }
                }
                let driven = joined(driving.join());
                stage.over.store(true, Ordering::Relaxed);
                let samples = joined(sampling.join());
                outcome = match driven {
                    _ if stopped => Err(Error::Stopped),
                    Ok(cpu_share) => Ok((samples, cpu_share)),
                    Err(source) => Err(failed("moving packets", source)),
                };
            } else {
                stage.line.go(None);
            }
            stage.over.store(true, Ordering::Relaxed);
            let mut outcomes = Vec::new();
            for (flow, pair) in self.resolved.flows.iter().zip(applications) {
                let pair = pair.map(|thread| joined(thread.join()));
                for result in &pair {
                    if let (Err(error), Ok(_)) = (result, &outcome) {
                        let source = io::Error::new(error.kind(), error.to_string());
                        outcome = Err(failed(&format!("the application of `{}`", flow.name), source));
                    }
                }
                outcomes.push(pair.map(Result::unwrap_or_default));
            }
            let (samples, cpu_share) = outcome?;
            Ok(Done {
                samples,
                outcomes,
                cpu_share,
            })
        })
    }
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

