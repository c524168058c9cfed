//! Drives a model in real time: one thread sleeps until shortly before an event is due, then polls
//! the clock until it is. In virtual time it sleeps until the event.

use std::{
    io,
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time,
};

use anabranch_core::{
    packet::{Direction, FlowId},
    units::{Duration, Instant},
};
use anabranch_engine::{
    link_samples::{GroupSample, LinkSample},
    network::{GroupId, LinkId, Network},
};
use anabranch_path::host::Departing;
use anabranch_wire::Transport;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    time::{ClockId, clock_gettime},
};

use crate::{
    apps::marks::{Arrived, Marks},
    engine::{audit::Recorder, connections::Connections, end::Inbox},
    kernel::{
        clock::Clock,
        exchange::{Exchange, Ring},
        favour::{Awake, Favour, Vigil},
        sys,
        tun::Device,
    },
    plan::{
        directory::Directory,
        frame::{self, Conversation, Frame, LARGEST, Label},
        hops::Hops,
        sharing::{Place, Sharing},
    },
};

/// The thread stops sleeping this long before an event is due, because the kernel's wake-ups are no
/// more precise.
const SPIN: Duration = Duration::from_micros(50);
/// Packets taken from one device before the next has its turn.
const TURN: usize = 32;
/// The longest sleep, so that a stop takes effect soon.
const PAUSE: Duration = Duration::from_millis(20);

/// A model and its connections to hosts.
pub struct Driver<'a> {
    pub network: &'a mut Network<Frame>,
    /// The devices by number.
    pub devices: Vec<(usize, Arc<dyn Device>)>,
    /// Forward and reverse of each flow.
    pub inboxes: Vec<[Inbox; 2]>,
    pub directory: &'a Directory,
    pub hops: &'a Hops,
    pub recorder: &'a Recorder,
    pub clock: Clock,
    pub stop: &'a AtomicBool,
    pub samples: PathSampler,
    pub connections: Connections,
    pub sharing: Sharing,
    /// Flows whose arrivals are to be recorded.
    pub marks: &'a Marks,
    /// The path of packets in virtual time; `None` in real time.
    pub exchange: Option<&'a Exchange>,
    /// The present time, in virtual time.
    pub now: Instant,
}

/// Packets taken from hosts.
#[derive(Debug, Default, Clone, Copy)]
struct Taken {
    any: bool,
    /// Whether packets of flows were taken, in contrast to other packets at an interface.
    of_the_run: bool,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Moved {
    /// Share of a processor that the engine's thread used.
    pub cpu_share: f64,
    /// Whether the kernel accepted the request that no processor sleeps.
    pub is_awake: bool,
    pub samples: PathSamples,
    /// The end of the run.
    pub end: Instant,
    /// By flow: arrivals until the flow was over.
    pub arrived: Vec<Arrived>,
}

impl Moved {
    /// Arrivals of a flow until it was over.
    pub fn arrived_of(&self, flow: usize) -> Arrived {
        self.arrived.get(flow).copied().unwrap_or_default()
    }
}

/// Samples of links and groups, ordered by time, then as in the scenario.
#[derive(Debug, Clone, Default)]
pub struct PathSamples {
    /// Links.
    pub links: Vec<LinkSample>,
    /// Groups.
    pub groups: Vec<GroupSample>,
}

/// Samples links and groups at a regular interval.
#[derive(Debug, Clone)]
pub struct PathSampler {
    pub links: Vec<(String, [LinkId; 2])>,
    pub groups: Vec<(String, GroupId)>,
    /// `None` if there are no samples.
    pub every: Option<Duration>,
    due: Instant,
    taken: PathSamples,
}

impl PathSampler {
    pub fn new(
        links: &[(String, [LinkId; 2])],
        groups: &[(String, GroupId)],
        every: Option<Duration>,
    ) -> Self {
        Self {
            links: links.to_vec(),
            groups: groups.to_vec(),
            every,
            due: every.map_or(Instant::NEVER, |_| Instant::START),
            taken: PathSamples::default(),
        }
    }

    /// The time of the next sample.
    const fn next(&self) -> Instant {
        self.due
    }
}

impl Driver<'_> {
    /// Runs to the end of the scenario, or until it is stopped.
    pub fn run(mut self) -> io::Result<Moved> {
        let (began, busy) = (time::Instant::now(), thread_cpu_s());
        let mut marked: Vec<Option<Arrived>> = vec![None; self.network.flow_count()];
        let is_awake = match self.exchange {
            None => self.run_in_real_time(&mut marked)?,
            Some(exchange) => {
                self.run_in_virtual_time(exchange, &mut marked)?;
                true
            }
        };
        self.mark(&mut marked);
        let arrived = marked.into_iter().enumerate();
        let arrived = arrived.map(|(flow, marked)| marked.unwrap_or_else(|| self.arrived(flow)));
        Ok(Moved {
            arrived: arrived.collect(),
            end: self.network.now(),
            cpu_share: (thread_cpu_s() - busy) / began.elapsed().as_secs_f64(),
            is_awake,
            samples: self.samples.taken,
        })
    }

    /// Returns whether processors stayed awake.
    fn run_in_real_time(&mut self, marked: &mut [Option<Arrived>]) -> io::Result<bool> {
        // By default a thread's sleep ends up to 50 µs late (PR_SET_TIMERSLACK(2)).
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        // Without the right to this priority the run continues, and the audit shows the effect.
        let _ = sys::priority::prefer(-20);
        let favour = Favour::ask();
        // A thread that may be preempted while it polls the clock loses more time than one that
        // sleeps.
        let spin = favour.as_ref().map_or(Duration::ZERO, |_| SPIN);
        let mut vigil = Vigil::new(Awake::ask);
        let end = self.network.end();
        let mut buffer = vec![0; LARGEST];
        while !self.stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.run_before(now.min(end));
            if now >= end {
                self.network.run_through(end);
                break;
            }
            self.mark(marked);
            let taken = self.take_all(&mut buffer)?;
            if taken.of_the_run {
                vigil.keep(now);
            }
            if !taken.any {
                vigil.end_if_quiet(now);
                self.rest(end, spin)?;
            }
        }
        Ok(!vigil.is_refused())
    }

    /// Virtual time is constant while anything runs (`time-travel=inf-cpu`), so the time is known
    /// without reading the clock, which costs a system call.
    fn run_in_virtual_time(
        &mut self,
        exchange: &Exchange,
        marked: &mut [Option<Arrived>],
    ) -> io::Result<()> {
        let mut ring = Ring::new(exchange, self.clock, LARGEST)?;
        let end = self.network.end();
        while !self.stop.load(Ordering::Relaxed) {
            self.recorder.is_at(self.now);
            self.run_through(self.now.min(end));
            if self.now >= end {
                break;
            }
            self.mark(marked);
            let due = self.network.next_event().min(self.samples.next());
            let then = due.min(end).min(self.now.saturating_add(PAUSE));
            let happened = ring.turn(then)?;
            self.now = if happened.is_then {
                then
            } else {
                self.now.max(self.clock.now())
            };
            self.recorder.is_at(self.now);
            for place in &happened.refused {
                self.recorder.undelivered(*place);
            }
            for come in &happened.come {
                self.take(come.device, &come.octets);
            }
        }
        Ok(())
    }

    /// Records the arrivals of flows that have ended.
    fn mark(&self, marked: &mut [Option<Arrived>]) {
        for flow in self.marks.take() {
            marked[flow] = Some(self.arrived(flow));
        }
    }

    /// Arrivals of a flow until now.
    fn arrived(&self, flow: usize) -> Arrived {
        let id = FlowId(u32::try_from(flow).expect("counted in 32 bits"));
        Arrived {
            at: self.network.now(),
            ip_bytes: self.network.arrived_bytes(id),
        }
    }

    /// Handles all events before `until`, and takes the samples due in between. A sample shows the
    /// path at its nominal time, however late this call is.
    fn run_before(&mut self, until: Instant) {
        self.sample_until(until);
        self.network.run_before(until);
    }

    /// As [`Self::run_before`], including events at `until`.
    fn run_through(&mut self, until: Instant) {
        self.sample_until(until);
        self.network.run_through(until);
    }

    fn sample_until(&mut self, until: Instant) {
        while self.samples.due <= until
            && let Some(every) = self.samples.every
        {
            self.network.run_before(self.samples.due);
            let PathSampler {
                links,
                groups,
                due,
                taken,
                ..
            } = &mut self.samples;
            taken
                .groups
                .extend(GroupSample::of_all(self.network, groups));
            taken.links.extend(LinkSample::of_all(self.network, links));
            *due = due.saturating_add(every);
        }
    }

    /// Takes a turn of packets from each host.
    fn take_all(&mut self, buffer: &mut [u8]) -> io::Result<Taken> {
        let mut taken = Taken::default();
        for index in 0..self.devices.len() {
            for _ in 0..TURN {
                let Some(len) = self.devices[index].1.receive(buffer)? else {
                    break;
                };
                taken.any = true;
                taken.of_the_run |= self.take(index, &buffer[..len]);
            }
        }
        Ok(taken)
    }

    /// Takes a packet that a host has sent now. Returns whether it belongs to the run.
    fn take(&mut self, index: usize, octets: &[u8]) -> bool {
        let (node, device) = &self.devices[index];
        let (node, before) = (*node, device.header());
        let size = u32::try_from(octets.len() - before.min(octets.len()));
        let size = size.expect("a packet is below 64 KiB");
        let (place, ecn, dscp, mut transport) = if let Some(place) = self.directory.at(node) {
            if is_merged(octets) {
                self.recorder.merged();
            }
            let (ecn, dscp, transport) = frame::read_frame(octets, before);
            (place, ecn, dscp, transport)
        } else {
            let found = frame::read(octets);
            let found = found.and_then(|(label, transport)| {
                let conversation = || Conversation::read(octets, 0);
                let place = self
                    .directory
                    .find(node, &label, &mut self.sharing, conversation)
                    .or_else(|| self.to_router(node, &label))?;
                let expiring = self.hops.expiring(place, label.hop_limit);
                let place = expiring.unwrap_or(place);
                Some((place, label.ecn, label.dscp, transport))
            });
            let Some(found) = found else {
                self.recorder.stranger();
                return false;
            };
            found
        };
        self.recorder.taken(place);
        if let Some(conversation) = Conversation::read(octets, before) {
            let (flow, opens) = (place.0, frame::opens(&transport));
            let next = || self.network.next_connection(flow);
            let connection = self.connections.of(flow, conversation, opens, next);
            frame::set_connection(&mut transport, connection);
        }
        let packet = Departing {
            transport,
            size,
            ecn,
            dscp,
        };
        self.enter(place, packet);
        true
    }

    /// The path of a packet from a device to a router.
    fn to_router(&self, device: usize, label: &Label) -> Option<Place> {
        self.directory
            .device(label.source)
            .filter(|own| *own == device)?;
        let router = self.directory.device(label.destination)?;
        self.hops.to(device, router)
    }

    fn enter(&mut self, (flow, direction): (FlowId, Direction), packet: Departing<Frame>) {
        debug_assert!(matches!(
            packet.transport,
            Transport::Tcp(_) | Transport::Datagram(_)
        ));
        // Neither packets after the end of the run nor events of the path after it are part of the
        // run.
        let end = self.network.end();
        match self.exchange {
            None => self.run_before(self.clock.now().min(end)),
            Some(_) => self.run_through(self.now.min(end)),
        }
        self.inboxes[flow.0 as usize][direction as usize]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push_back(packet);
        self.network.wake(flow, direction);
    }

    /// Waits until an event is due or a host sends.
    fn rest(&self, end: Instant, spin: Duration) -> io::Result<()> {
        let due = self.network.next_event().min(end);
        let left = due.saturating_since(self.clock.now());
        if left <= spin {
            std::hint::spin_loop();
            return Ok(());
        }
        let pause = (left.saturating_sub(spin)).min(PAUSE);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(pause.as_nanos()).expect("a pause is short"),
        };
        let mut waiting: Vec<PollFd<'_>> = self
            .devices
            .iter()
            .map(|(_, device)| PollFd::from_borrowed_fd(device.descriptor(), PollFlags::IN))
            .collect();
        match poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a frame holds several segments (`gso_type` of `struct virtio_net_hdr`).
fn is_merged(octets: &[u8]) -> bool {
    octets.get(1).is_some_and(|kind| *kind != 0)
}

fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
