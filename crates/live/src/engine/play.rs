//! The execution of a run: preparation of all threads, start of the clock, movement of packets, end
//! of all threads.

use std::{
    collections::BTreeMap,
    io,
    num::NonZeroU64,
    os::fd::OwnedFd,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration as Pause,
};

use anabranch_core::{packet::FlowId, units::Instant};
use anabranch_engine::{Progress, network::Network};
use anabranch_scenario::{Resolved, workload::Config};

use crate::{
    apps::{
        application::{Application, Outcome},
        program::{Ended, Program},
        sampler::{self, Sample},
        stage::{Side, Stage},
    },
    engine::{
        audit::Recorder,
        connections::Connections,
        driver::{Driver, Moved, PathSampler},
        end::Inbox,
        endpoint::Own,
    },
    kernel::{clock::Clock, exchange::Exchange, host::LiveHost, namespace::Namespace},
    plan::{
        controls::Controls,
        directory::Directory,
        error::{Error, failed},
        frame::{self, Frame, LARGEST},
        hops::Hops,
        settings::is_carried,
        sharing::Sharing,
        times,
    },
};

/// Time from the readiness of all threads to the start of the clock.
const LEAD: Pause = Pause::from_millis(20);
/// A run in virtual time starts at a multiple of this: 64 ticks of 4 ms, to which the kernel rounds
/// timers of up to 16 s. The rounding is then the same in each run, and as in the simulator.
const PHASE: Pause = Pause::from_millis(64 * 4);
/// Interval of progress reports.
const REPORT: Pause = Pause::from_millis(50);

/// Applications, programs, sampler and driver of one run.
pub struct Play<'a> {
    pub resolved: &'a Resolved,
    /// By node.
    pub hosts: &'a [Option<LiveHost>],
    pub programs: Vec<Program>,
    /// The congestion controls of the flows.
    pub controls: &'a Controls,
    /// Whether the flows send.
    pub flows_send: bool,
    pub recorder: &'a Recorder,
    /// The hidden flows to routers.
    pub hops: &'a Hops,
    /// Of each flow, hidden ones included: forward and reverse.
    pub inboxes: Vec<[Inbox; 2]>,
    /// The ends of each flow that use our own TCP.
    pub own: &'a [[Option<Own>; 2]],
    /// The sampler of links and groups.
    pub path: PathSampler,
    /// The filter on packets that senders receive.
    pub filter: Option<OwnedFd>,
    /// The path of packets in virtual time.
    pub exchange: Option<Exchange>,
}

/// The observations of a run.
pub struct Done {
    pub samples: Vec<Sample>,
    pub outcomes: Vec<[Outcome; 2]>,
    pub moved: Moved,
    pub programs: Vec<Ended>,
    /// By node: the kernel's TCP counters.
    pub counters: Vec<Option<BTreeMap<String, u64>>>,
    /// The start of the run on `CLOCK_MONOTONIC`, in nanoseconds.
    pub start_ns: u64,
    /// Packets that were taken from hosts and never entered the network.
    pub waiting: u64,
}

/// Threads with sockets.
struct Crew<'scope> {
    /// Each with its flow and its end of the flow.
    applications: Vec<(usize, Side, ScopedJoinHandle<'scope, io::Result<Outcome>>)>,
    programs: Vec<ScopedJoinHandle<'scope, io::Result<Option<Ended>>>>,
    /// Whether none failed before the start.
    is_ready: bool,
}

impl Play<'_> {
    /// Runs from start to end.
    ///
    /// # Errors
    /// The error of the driver, or else of the first application or program that failed.
    pub fn run(
        mut self,
        network: &mut Network<Frame>,
        report: &mut dyn FnMut(f64) -> Progress,
    ) -> Result<Done, Error> {
        let programs = self.programs.iter().filter(|one| !one.is_shell);
        let stage = Stage::of(self.recorder.marks(), programs.count());
        let directory = Directory::of(self.resolved);
        if let Some(filter) = self.filter.take() {
            stage.sockets.watch_with(filter);
        }
        if self.exchange.is_some() {
            // Threads and programs inherit the timer slack: sleeps end on time
            // (PR_SET_TIMERSLACK(2)).
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
                .map_err(|source| failed("setting the timer slack", source.into()))?;
        }
        thread::scope(|scope| {
            let _release = Release(&stage);
            let crew = self.gather(scope, &stage);
            let moved = if crew.is_ready {
                self.drive(&stage, &directory, network, report)
            } else {
                stage.line.go(None);
                Ok((Vec::new(), Moved::default()))
            };
            stage.over.store(true, Ordering::Relaxed);
            // All threads end before an error is returned.
            let seen = self.dismiss(crew);
            let (samples, moved) = match moved {
                // The error of the application or program explains that of the driver.
                Err(Error::Failed { .. }) if seen.is_err() => (Vec::new(), Moved::default()),
                moved => moved?,
            };
            let (mut outcomes, programs) = seen?;
            self.count_left(&directory)
                .map_err(|source| failed("reading the remaining packets of the devices", source))?;
            for (outcomes, own) in outcomes.iter_mut().zip(self.own) {
                for (outcome, own) in outcomes.iter_mut().zip(own) {
                    if let Some(own) = own {
                        *outcome = own.outcome();
                    }
                }
            }
            Ok(Done {
                // The sockets are still open, so that the effects of closing them are not counted.
                counters: self.counters()?,
                samples,
                outcomes,
                moved,
                programs,
                start_ns: self.recorder.start_ns(),
                waiting: self.waiting(),
            })
        })
    }

    /// Starts all threads, and waits until peers can connect.
    fn gather<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stage: &'scope Stage,
    ) -> Crew<'scope> {
        let (ready, readied) = mpsc::channel();
        let mut applications = Vec::new();
        for (index, flow) in self.resolved.flows.iter().enumerate() {
            if !self.flows_send || is_carried(flow, self.resolved) {
                continue;
            }
            for side in [Side::Sender, Side::Receiver] {
                if let Some(own) = &self.own[index][side as usize] {
                    stage.sockets.add_own(index, side, Arc::new(own.clone()));
                }
            }
            for application in Application::of(
                self.resolved,
                index,
                self.controls,
                &self.recorder.stamps(index),
            ) {
                if self.own[index][application.side() as usize].is_some() {
                    continue;
                }
                let ready = ready.clone();
                let side = application.side();
                let namespace = self.namespace(application.host(self.resolved));
                let thread = scope.spawn(move || {
                    // After a failure no thread receives this any more.
                    let ended = application.run(namespace, stage, move || {
                        let _ = ready.send(());
                    });
                    // If it failed, this is not the requested run.
                    if ended.is_err() {
                        stage.left.store(true, Ordering::Relaxed);
                    }
                    ended
                });
                applications.push((index, side, thread));
            }
        }
        drop(ready);
        let start = |program: &'scope Program| {
            let name = &self.resolved.nodes[program.host];
            let namespace = self.namespace(program.host);
            scope.spawn(move || {
                let ended = program.run(namespace, stage, name);
                self.note_end(program, &ended, stage);
                ended
            })
        };
        let programs = self.programs.iter().map(start).collect();
        let expected = applications.len();
        Crew {
            applications,
            programs,
            is_ready: readied.iter().take(expected).count() == expected,
        }
    }

    /// Handles the end of a program.
    fn note_end(&self, program: &Program, ended: &io::Result<Option<Ended>>, stage: &Stage) {
        let beside_a_shell = self.programs.iter().any(|one| one.is_shell);
        match ended {
            Ok(Some(end)) if end.stopped || program.is_shell => {}
            Ok(Some(end)) if beside_a_shell || !end.failed() => {
                for (index, flow) in self.resolved.flows.iter().enumerate() {
                    if flow.ends.contains(&program.host) && is_carried(flow, self.resolved) {
                        stage.marks.add(index);
                    }
                }
                stage.ended.fetch_add(1, Ordering::Relaxed);
            }
            // If a program failed, this is not the requested run.
            _ => stage.left.store(true, Ordering::Relaxed),
        }
    }

    /// Whether all programs have ended, and no flow of an application has yet to begin, to stop or
    /// to complete its file.
    fn is_over(&self, stage: &Stage, now: Instant) -> bool {
        let has_ended = stage.ended.load(Ordering::Relaxed) == stage.programs;
        if stage.programs == 0 || !has_ended || !self.flows_send {
            return false;
        }
        let mut flows = self.resolved.flows.iter().enumerate();
        !flows.any(|(index, flow)| {
            let is_ahead = flow.start > now || flow.stop.is_some_and(|stop| stop > now);
            let is_file = matches!(flow.workload, Config::File(_));
            !is_carried(flow, self.resolved) && (is_ahead || is_file && !stage.marks.has(index))
        })
    }

    /// Moves packets until the end. Returns the samples and the result.
    fn drive(
        &self,
        stage: &Stage,
        directory: &Directory,
        network: &mut Network<Frame>,
        report: &mut dyn FnMut(f64) -> Progress,
    ) -> Result<(Vec<Sample>, Moved), Error> {
        let end = network.end();
        let stop = AtomicBool::new(false);
        let clock = match self.exchange {
            Some(_) => Clock::starting_at_multiple(PHASE, LEAD),
            None => Clock::starting_in(LEAD),
        };
        self.recorder.begin(clock);
        let devices = self.hosts.iter().enumerate().filter_map(|(node, host)| {
            let device = &host.as_ref()?.device;
            Some((node, Arc::clone(device)))
        });
        let flows = 0..network.flow_count();
        let flows = flows.map(|flow| FlowId(u32::try_from(flow).expect("counted in 32 bits")));
        let first = flows.map(|flow| network.first_connection(flow));
        let driver = Driver {
            connections: Connections::new(first.collect()),
            sharing: Sharing::default(),
            marks: &stage.marks,
            network,
            devices: devices.collect(),
            inboxes: self.inboxes.clone(),
            directory,
            hops: self.hops,
            recorder: self.recorder,
            clock,
            stop: &stop,
            samples: self.path.clone(),
            exchange: self.exchange.as_ref(),
            now: Instant::START,
        };
        thread::scope(|scope| {
            // Ends the other threads if `report` panics.
            let _stop = Stop(&stop, stage);
            let edges = times::edges(self.resolved);
            let samples = scope.spawn(move || sampler::run(clock, end, edges, stage));
            let moving = scope.spawn(|| driver.run());
            stage.line.go(Some(clock));
            let mut stopped = false;
            while !moving.is_finished() {
                thread::sleep(REPORT.min(clock.until(end) + Pause::from_millis(1)));
                let share = clock.now().as_secs_f64() / end.as_secs_f64();
                stopped |= report(share.min(1.0)) == Progress::Stop;
                let left = stage.left.load(Ordering::Relaxed);
                if stopped || left || self.is_over(stage, clock.now()) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let moved = moving.join();
            // Set before a panic continues, because all other threads wait for it.
            stage.over.store(true, Ordering::Relaxed);
            let moved = joined(moved);
            let mut samples = joined(samples.join());
            if stopped {
                return Err(Error::Stopped);
            }
            // These samples were taken at other times by other threads.
            samples.extend(stage.take_noted());
            samples.sort_by_key(|sample| sample.at);
            match moved {
                Ok(moved) => Ok((samples, moved)),
                Err(source) => Err(failed("moving packets", source)),
            }
        })
    }

    /// Waits for all threads to end.
    fn dismiss(&self, crew: Crew<'_>) -> Result<(Vec<[Outcome; 2]>, Vec<Ended>), Error> {
        let mut outcomes =
            vec![[Outcome::default(), Outcome::default()]; self.resolved.flows.len()];
        let mut trouble = None;
        for (flow, side, thread) in crew.applications {
            match joined(thread.join()) {
                Ok(seen) => outcomes[flow][side as usize] = seen,
                Err(error) => {
                    let what = format!("the application of `{}`", self.resolved.flows[flow].name);
                    trouble.get_or_insert(failed(&what, error));
                }
            }
        }
        let mut ended = Vec::new();
        for (program, thread) in self.programs.iter().zip(crew.programs) {
            match joined(thread.join()) {
                Ok(end) => ended.extend(end),
                Err(error) => {
                    let what = format!("the program of `{}`", self.resolved.nodes[program.host]);
                    trouble.get_or_insert(failed(&what, error));
                }
            }
        }
        trouble.map_or(Ok((outcomes, ended)), Err)
    }

    fn counters(&self) -> Result<Vec<Option<BTreeMap<String, u64>>>, Error> {
        let of_host = |host: &Option<LiveHost>| {
            let namespace = host.as_ref()?.namespace.as_ref()?;
            Some(namespace.tcp_counters())
        };
        let hosts = self.hosts.iter();
        hosts
            .map(|host| of_host(host).transpose())
            .collect::<io::Result<_>>()
            .map_err(|source| failed("reading the kernel's counters", source))
    }

    /// Counts the packets that hosts sent and the engine did not take before the end. All
    /// applications have ended.
    fn count_left(&self, directory: &Directory) -> io::Result<()> {
        let mut buffer = vec![0; LARGEST];
        for (device, host) in self.hosts.iter().enumerate() {
            let Some(host) = host else { continue };
            if host.namespace.is_none() {
                continue;
            }
            while let Some(len) = host.device.receive(&mut buffer)? {
                let label = frame::read(&buffer[..len]).map(|(label, _)| label);
                // For these counts it does not matter which of several flows between the same hosts
                // is chosen.
                let mut sharing = Sharing::default();
                let place =
                    label.and_then(|label| directory.find(device, &label, &mut sharing, || None));
                match place {
                    Some(place) => self.recorder.left(place),
                    None => self.recorder.stranger_left(),
                }
            }
        }
        Ok(())
    }

    fn waiting(&self) -> u64 {
        let inboxes = self.inboxes.iter().flatten();
        let waiting =
            inboxes.map(|inbox| inbox.lock().unwrap_or_else(PoisonError::into_inner).len());
        waiting.sum::<usize>() as u64
    }

    fn namespace(&self, node: usize) -> &Namespace {
        let host = self.hosts[node].as_ref().expect("every end has a host");
        let namespace = host.namespace.as_ref();
        namespace.expect("nothing runs behind an interface")
    }
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Releases all threads on a panic: the scope waits for them before the panic continues.
struct Release<'a>(&'a Stage);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.over.store(true, Ordering::Relaxed);
            self.0.line.go(None);
        }
    }
}

/// Stops the engine and the sampler on a panic: the scope waits for them before the panic
/// continues.
struct Stop<'a>(&'a AtomicBool, &'a Stage);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
            self.1.over.store(true, Ordering::Relaxed);
        }
    }
}
