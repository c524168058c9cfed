//! A run of a scenario.

use std::sync::Arc;

use crate::{
    Progress,
    network::{GroupId, LinkId, Network},
    record::Tapping,
    summary::{About, Summary},
    topology::{Compiled, Engine, Hosts, compile_tapped},
};
use anabranch_core::{
    body::{Body, Length},
    interrupt::Interrupt,
    units::{Duration, Instant},
};
use anabranch_path::host::Host;
use anabranch_scenario::{Resolved, ResolvedLink};

use crate::samples::Samples;

/// The reason why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Hosts were supplied for a flow that the scenario does not have.
    #[error("hosts were given for the flow `{0}`, which the scenario does not have")]
    NoSuchFlow(String),
    /// A controller requires the arrivals in advance, but hosts supplied by the caller can make
    /// only one run.
    #[error(
        "a group's `oracle` needs the arrivals beforehand, and the hosts of the flow `{0}` can make one run only"
    )]
    Unforeseeable(String),
    /// The progress report or the interrupt stopped the run.
    #[error("the run was stopped")]
    Stopped,
}

/// A run to be made. `B` is the content of packets: lengths unless hosts need bytes.
#[derive(Debug)]
pub struct Simulation<'a, B: Body = Length> {
    resolved: &'a Resolved,
    engine: Engine,
    sample_every: Option<Duration>,
    hosts: Hosts<B>,
    tapping: Option<Tapping>,
    interrupt: Interrupt,
}

/// The results of a run.
#[derive(Debug)]
pub struct Finished<B: Body = Length> {
    /// The summary, as in the contract.
    pub summary: Summary,
    /// The network in its last state: reports, packet log.
    pub network: Network<B>,
    /// Links by name; forward, then reverse.
    pub links: Vec<(String, [LinkId; 2])>,
    /// Groups by name.
    pub groups: Vec<(String, GroupId)>,
    /// The samples.
    pub samples: Samples,
}

/// The state of a run under way, for a report.
#[derive(Debug)]
pub struct Underway<'a, B: Body = Length> {
    /// The completed share of the run, 0 to 1.
    pub share: f64,
    /// The network. It may have computed packets ahead of the time of the report.
    pub network: &'a Network<B>,
    /// Links by name; forward, then reverse.
    pub links: &'a [(String, [LinkId; 2])],
    /// Groups by name.
    pub groups: &'a [(String, GroupId)],
    /// The samples until now, with which the finished run's samples begin.
    pub samples: &'a Samples,
}

/// The operating system and processor of this build.
const PLATFORM: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    "linux x86_64"
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    "linux aarch64"
} else if cfg!(target_os = "macos") {
    "macos"
} else {
    "other"
};

/// The number of progress reports per run.
const REPORTS: u64 = 200;

impl<'a, B: Body> Simulation<'a, B> {
    /// A run of this scenario, with the default engine and no recording.
    #[must_use]
    pub fn new(resolved: &'a Resolved) -> Self {
        Self {
            resolved,
            engine: Engine::default(),
            sample_every: None,
            hosts: Vec::new(),
            tapping: None,
            interrupt: Interrupt::default(),
        }
    }
    /// Lets another thread end the run by raising `interrupt`. The run checks it every few thousand
    /// events, so it stops within milliseconds of real time, independent of the progress of
    /// simulated time.
    #[must_use]
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }
    /// Computes plain links by arithmetic, or passes every packet through every step. Results are
    /// the same.
    #[must_use]
    pub fn fast_path(mut self, on: bool) -> Self {
        self.engine.fast_path = on;
        self
    }
    /// Keeps a digest (default: yes).
    #[must_use]
    pub fn digest(mut self, on: bool) -> Self {
        self.engine.digest = on;
        self
    }
    /// Keeps a row per packet (default: no).
    #[must_use]
    pub fn packet_log(mut self, on: bool) -> Self {
        self.engine.packet_log = on;
        self
    }
    /// The interval of samples of flows and links (default: none). Zero means none.
    #[must_use]
    pub fn samples(mut self, every: Option<Duration>) -> Self {
        self.sample_every = every.filter(|every| !every.is_zero());
        // A sample shows the current state of a link, without packets computed ahead.
        self.engine.fold = self.sample_every.is_none();
        self
    }
    /// Replaces a flow's TCP by a pair of hosts (sender, receiver).
    #[must_use]
    pub fn hosts(mut self, flow: impl Into<String>, pair: [Box<dyn Host<B>>; 2]) -> Self {
        self.hosts.push((flow.into(), pair));
        self
    }
    /// Captures the packets that enter these links. The captures are in the probe of
    /// [`Finished::network`].
    #[must_use]
    pub fn tap(mut self, tapping: Option<Tapping>) -> Self {
        self.tapping = tapping;
        self
    }
    /// Records the arrivals for a controller that requires them in advance: a preliminary run with
    /// all members of its group on.
    fn forecast(
        &self,
        report: &mut dyn FnMut(&Underway<'_, B>) -> Progress,
    ) -> Result<Option<Resolved>, Error> {
        let wants = |link: &ResolvedLink| {
            let group = link.group.as_ref();
            group.is_some_and(|group| group.control.needs_arrivals() && group.arrivals.is_none())
        };
        let Some(place) = self.resolved.links.iter().position(wants) else {
            return Ok(None);
        };
        if let Some((flow, _)) = self.hosts.first() {
            return Err(Error::Unforeseeable(flow.clone()));
        }
        let engine = Engine {
            digest: false,
            packet_log: false,
            ..self.engine
        };
        let Compiled {
            mut network,
            groups,
            ..
        } = compile_tapped::<B>(self.resolved, engine, Vec::new(), None)
            .map_err(Error::NoSuchFlow)?;
        network.interrupt_by(self.interrupt.clone());
        let end = network.end();
        for step in 1..=REPORTS {
            let until = end.as_picos() / REPORTS * step;
            network.run_before(Instant::from_picos(until));
            let underway = Underway {
                share: 0.0,
                network: &network,
                links: &[],
                groups: &[],
                samples: &Samples::default(),
            };
            if report(&underway) == Progress::Stop || network.is_interrupted() {
                return Err(Error::Stopped);
            }
        }
        network.run_through(end);
        if network.is_interrupted() {
            return Err(Error::Stopped);
        }
        let mut known = self.resolved.clone();
        let link = &mut known.links[place];
        let id = groups.iter().find(|(name, _)| *name == link.name);
        if let (Some((_, id)), Some(group)) = (id, &mut link.group) {
            group.arrivals = network.group_arrivals(*id).map(Arc::new);
        }
        Ok(Some(known))
    }
    /// Compiles the network, for a custom driver. A controller that requires the arrivals in
    /// advance records them in this run unless
    /// [`ResolvedGroup::arrivals`](anabranch_scenario::ResolvedGroup) contains them.
    ///
    /// # Errors
    /// [`Error::NoSuchFlow`].
    pub fn compile(self) -> Result<Compiled<B>, Error> {
        compile_tapped(
            self.resolved,
            self.engine,
            self.hosts,
            self.tapping.as_ref(),
        )
        .map_err(Error::NoSuchFlow)
    }
    /// Makes the run.
    ///
    /// # Errors
    /// [`Error::NoSuchFlow`].
    pub fn run(self) -> Result<Finished<B>, Error> {
        self.run_with(&mut |_| Progress::Continue)
    }
    /// Makes the run, and reports the completed share, 0 to 1, at intervals.
    ///
    /// # Errors
    /// [`Error::NoSuchFlow`]; [`Error::Stopped`] if a report is answered with [`Progress::Stop`].
    pub fn run_with(self, report: &mut dyn FnMut(f64) -> Progress) -> Result<Finished<B>, Error> {
        self.run_watched(&mut |underway| report(underway.share))
    }
    /// Makes the run with the results of [`Self::run`], and shows its state at intervals.
    ///
    /// # Errors
    /// As [`Self::run_with`].
    pub fn run_watched(
        self,
        report: &mut dyn FnMut(&Underway<'_, B>) -> Progress,
    ) -> Result<Finished<B>, Error> {
        let (resolved, every) = (self.resolved, self.sample_every);
        let interrupt = self.interrupt.clone();
        let known = self.forecast(report)?;
        let simulation = Simulation {
            resolved: known.as_ref().unwrap_or(resolved),
            ..self
        };
        let Compiled {
            mut network,
            links,
            groups,
            gateways,
        } = simulation.compile()?;
        network.interrupt_by(interrupt);
        let end = network.end();
        let mut samples = Samples::default();
        let mut next_sample = every.map_or(Instant::NEVER, |_| Instant::START);
        let after_end = end.saturating_add(Duration::from_picos(1));
        let pause = Duration::from_picos((end.as_picos() / REPORTS).max(1));
        let mut next_report = Instant::START + pause;
        while network.now() < end {
            let until = next_sample.min(next_report);
            if until > end {
                break;
            }
            // A report reads nothing.
            network.run_on(until, next_sample.min(after_end));
            if network.is_interrupted() {
                return Err(Error::Stopped);
            }
            if until == next_sample
                && until < end
                && let Some(every) = every
            {
                samples.take(&mut network, &links, &groups);
                next_sample = next_sample + every;
            }
            if until == next_report {
                next_report = next_report + pause;
                let underway = Underway {
                    share: until.as_secs_f64() / end.as_secs_f64(),
                    network: &network,
                    links: &links,
                    groups: &groups,
                    samples: &samples,
                };
                if report(&underway) == Progress::Stop {
                    return Err(Error::Stopped);
                }
            }
        }
        network.run_through(end);
        if network.is_interrupted() {
            return Err(Error::Stopped);
        }
        if every.is_some() {
            // The last state, regardless of the interval.
            samples.take(&mut network, &links, &groups);
        }
        network.note_windows();
        network.note_lost_inside();
        let about = About {
            scenario: resolved.title.clone(),
            seed: resolved.seed,
            resolved_scenario: resolved.json.clone(),
            platform: PLATFORM.to_owned(),
            captures: resolved.captures(),
        };
        let summary = Summary::of(
            &mut network,
            about,
            &links,
            &groups,
            &gateways,
            |_, flow| Some(flow),
        );
        Ok(Finished {
            summary,
            network,
            links,
            groups,
            samples,
        })
    }
}
