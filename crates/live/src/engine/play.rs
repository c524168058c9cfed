//! The run itself: everybody gets ready, the clock starts, packets move, everybody ends.

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

/// From "everybody is ready" to the start of the clock.
const LEAD: Pause = Pause::from_millis(20);
/// In virtual time a run starts at a multiple of this: 64 ticks of 4 ms, to which the kernel rounds timers of up to 16 s. So
/// timers are rounded alike in each run, and as in the simulator.
const PHASE: Pause = Pause::from_millis(64 * 4);
/// So often the progress is told.
const REPORT: Pause = Pause::from_millis(50);

/// Applications, programs, sampler and driver of one run.
pub struct Play<'a> {
    pub resolved: &'a Resolved,
    /// By node.
    pub hosts: &'a [Option<LiveHost>],
    pub programs: Vec<Program>,
    /// Of the flows.
    pub controls: &'a Controls,
    /// Whether the flows send.
    pub flows_send: bool,
    pub recorder: &'a Recorder,
    /// The hidden flows to routers.
    pub hops: &'a Hops,
    /// Of each flow, the hidden ones too, forward and reverse.
    pub inboxes: Vec<[Inbox; 2]>,
    /// Of each flow, the ends that are our own TCP.
    pub own: &'a [[Option<Own>; 2]],
    /// Looks at links and groups.
    pub path: PathSampler,
    /// Watches what senders receive.
    pub filter: Option<OwnedFd>,
    /// Through which packets go in virtual time.
    pub exchange: Option<Exchange>,
}

/// What they have seen.
pub struct Done {
    pub samples: Vec<Sample>,
    pub outcomes: Vec<[Outcome; 2]>,
    pub moved: Moved,
    pub programs: Vec<Ended>,
    /// By node: what the kernel's TCP has counted while it ran.
    pub counters: Vec<Option<BTreeMap<String, u64>>>,
    /// When the run began, as `CLOCK_MONOTONIC` has it, in nanoseconds.
    pub start_ns: u64,
    /// Packets that were taken from hosts and are not in the network.
    pub waiting: u64,
}

/// Threads with sockets.
struct Crew<'scope> {
    /// Each with its flow and its end of that.
    applications: Vec<(usize, Side, ScopedJoinHandle<'scope, io::Result<Outcome>>)>,
    programs: Vec<ScopedJoinHandle<'scope, io::Result<Option<Ended>>>>,
    /// Whether none has failed before the start.
    is_ready: bool,
}

impl Play<'_> {
    /// From start to end.
    ///
    /// # Errors
    /// What the driver, or else the first application or program, met with.
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
            // Threads and programs inherit it: a sleep ends when it is to (PR_SET_TIMERSLACK(2)).
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
            // Everybody ends before anything is said of it.
            let seen = self.dismiss(crew);
            let (samples, moved) = match moved {
                // What failed with it says why.
                Err(Error::Failed { .. }) if seen.is_err() => (Vec::new(), Moved::default()),
                moved => moved?,
            };
            let (mut outcomes, programs) = seen?;
            self.count_left(&directory)
                .map_err(|source| failed("reading what was left in the devices", source))?;
            for (outcomes, own) in outcomes.iter_mut().zip(self.own) {
                for (outcome, own) in outcomes.iter_mut().zip(own) {
                    if let Some(own) = own {
                        *outcome = own.outcome();
                    }
                }
            }
            Ok(Done {
                // The sockets are still open: what closing them does is not counted.
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

    /// Starts everybody, and waits until peers may come.
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
                    // Nobody listens any more once one has failed.
                    let ended = application.run(namespace, stage, move || {
                        let _ = ready.send(());
                    });
                    // Without it the run is not the one that was asked for.
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

    /// A program has ended.
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
            // Without it the run is not the one that was asked for.
            _ => stage.left.store(true, Ordering::Relaxed),
        }
    }

    /// Whether all programs have ended, and no flow of ours has yet to begin, to stop or to be whole.
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

    /// Moves packets until the end. What was sampled, and how it went.
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
            // Nobody waits for the run's end where the report panics.
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
            // Before a panic goes on: everybody else waits for this.
            stage.over.store(true, Ordering::Relaxed);
            let moved = joined(moved);
            let mut samples = joined(samples.join());
            if stopped {
                return Err(Error::Stopped);
            }
            // Taken at other times, by others.
            samples.extend(stage.take_noted());
            samples.sort_by_key(|sample| sample.at);
            match moved {
                Ok(moved) => Ok((samples, moved)),
                Err(source) => Err(failed("moving packets", source)),
            }
        })
    }

    /// Waits for everybody to end.
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

    /// Counts the packets that hosts had sent and the engine did not take before the end. All applications have ended.
    fn count_left(&self, directory: &Directory) -> io::Result<()> {
        let mut buffer = vec![0; LARGEST];
        for (device, host) in self.hosts.iter().enumerate() {
            let Some(host) = host else { continue };
            if host.namespace.is_none() {
                continue;
            }
            while let Some(len) = host.device.receive(&mut buffer)? {
                let label = frame::read(&buffer[..len]).map(|(label, _)| label);
                // Which of several flows between the same hosts is all the same to who counts packets.
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

/// Lets everybody go where something panics: the scope waits for them before the panic goes on.
struct Release<'a>(&'a Stage);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.over.store(true, Ordering::Relaxed);
            self.0.line.go(None);
        }
    }
}

/// Stops the engine and who samples where something panics: the scope waits for them before the panic goes on.
struct Stop<'a>(&'a AtomicBool, &'a Stage);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
            self.1.over.store(true, Ordering::Relaxed);
        }
    }
}
