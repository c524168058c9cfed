//! Events of the kernel's TCP between samples: every acknowledgment, every change of the congestion
//! state and every retransmission, reported by a BPF program during the run.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration as Pause,
};

pub use anabranch_bpf::trace::Detail;
use anabranch_bpf::{
    Error as BpfError,
    trace::{Place, Record, Trace},
};
use anabranch_core::{interrupt::Interrupt, system};
use anabranch_scenario::{Protocol, Resolved, ResolvedFlow};

use crate::{
    kernel::{host::LiveHost, sys::tcp_info::namespace_cookie},
    plan::{
        directory::Directory,
        error::{Error, failed},
        settings::{self, connects_back, is_carried, kernel_sends},
    },
};

mod traced;

pub use traced::{Acknowledged, LiveTrace, Traced};

/// Interval at which records are taken; the buffer holds the records of ten intervals.
const TAKE: Pause = Pause::from_millis(20);
/// The most records that are stored, in 0.8 GB; later ones are lost.
const MOST_RECORDS: usize = 8_000_000;

/// The extent of tracing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracing {
    /// No tracing.
    Off,
    /// This detail, if the machine permits it.
    IfPossible(Detail),
    /// This detail; the run fails if it is impossible.
    Required(Detail),
}

/// The flows that can be traced, with their sockets' properties: the kernel's TCP sends, and its
/// port is known.
fn places(resolved: &Resolved, hosts: &[Option<LiveHost>]) -> io::Result<Vec<(Place, u32)>> {
    let mut places = Vec::new();
    for (index, flow) in resolved.flows.iter().enumerate() {
        if !is_traced(flow, resolved) {
            continue;
        }
        let host = hosts[flow.ends[0]].as_ref();
        let Some(namespace) = host.and_then(|host| host.namespace.as_ref()) else {
            continue;
        };
        let place = Place {
            namespace: namespace.inside(|| namespace_cookie(&settings::tcp_socket()?))?,
            port: Directory::port(index),
            listens: connects_back(flow),
        };
        places.push((
            place,
            u32::try_from(index).expect("flows are counted in 16 bits"),
        ));
    }
    Ok(places)
}

fn is_traced(flow: &ResolvedFlow, resolved: &Resolved) -> bool {
    flow.protocol == Protocol::Tcp && !is_carried(flow, resolved) && kernel_sends(flow, resolved)
}

/// A running trace, or the reason why there is none.
#[derive(Debug)]
pub struct Watch(Result<Taking, String>);

/// A thread that takes records.
#[derive(Debug)]
struct Taking {
    detail: Detail,
    flows: Vec<u32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Vec<Record>, u64)>>,
    filter: OwnedFd,
}

impl Watch {
    /// Starts the trace. Raising `interrupt` ends the compiler.
    ///
    /// # Errors
    /// With the missing requirement, if tracing is required.
    pub fn start(
        tracing: Tracing,
        resolved: &Resolved,
        hosts: &[Option<LiveHost>],
        interrupt: &Interrupt,
    ) -> Result<Self, String> {
        match tracing {
            Tracing::Off => Ok(Self(Err("it was turned off".to_owned()))),
            Tracing::IfPossible(detail) => {
                Ok(Self(Taking::begin(detail, resolved, hosts, interrupt)))
            }
            Tracing::Required(detail) => {
                Taking::begin(detail, resolved, hosts, interrupt).map(|taking| Self(Ok(taking)))
            }
        }
    }

    /// The filter for sockets, if tracing runs.
    pub fn filter(&self) -> Result<Option<OwnedFd>, Error> {
        let filter = self.0.as_ref().ok().map(|taking| taking.filter.try_clone());
        filter
            .transpose()
            .map_err(|source| failed("watching received packets", source))
    }

    /// Ends the trace. Returns the records since the run began at `start_ns` of `CLOCK_MONOTONIC`.
    pub fn end(self, start_ns: u64) -> Traced {
        match self.0 {
            Ok(taking) => taking.end(start_ns),
            Err(why) => Traced {
                why_not: Some(why),
                ..Traced::default()
            },
        }
    }
}

/// Stored records, up to the limit.
#[derive(Debug, Default)]
struct Kept {
    records: Vec<Record>,
    without_room: u64,
}

impl Kept {
    fn add(&mut self, mut told: Vec<Record>) {
        let room = MOST_RECORDS - self.records.len();
        self.without_room += told.len().saturating_sub(room) as u64;
        told.truncate(room);
        self.records.append(&mut told);
    }
}

impl Taking {
    fn begin(
        detail: Detail,
        resolved: &Resolved,
        hosts: &[Option<LiveHost>],
        interrupt: &Interrupt,
    ) -> Result<Self, String> {
        let places = places(resolved, hosts).map_err(|error| {
            let why = system::words(&error);
            format!("sockets do not report their network: {why}")
        })?;
        if places.is_empty() {
            return Err(
                "no flow is sent by this machine's TCP for an application of ours".to_owned(),
            );
        }
        let told = |error: BpfError| error.to_string();
        let mut trace = Trace::start(&places, detail, interrupt).map_err(told)?;
        let filter = trace.filter().as_fd().try_clone_to_owned();
        let filter = filter.map_err(|error| system::words(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut kept = Kept::default();
            while !over.load(Ordering::Relaxed) {
                thread::sleep(TAKE);
                kept.add(trace.take());
            }
            kept.add(trace.take());
            (kept.records, kept.without_room + trace.lost())
        });
        Ok(Self {
            detail,
            flows: places.iter().map(|(_, flow)| *flow).collect(),
            stop,
            thread: Some(thread),
            filter,
        })
    }

    fn end(mut self, start_ns: u64) -> Traced {
        let (mut records, lost) = self.stop();
        records.retain(|record| record.time_ns >= start_ns);
        // Records arrive from several processors; records of one flow and one moment keep their
        // order.
        records.sort_by_key(|record| record.time_ns);
        let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
        for (place, record) in records.iter().enumerate() {
            places.entry(record.flow).or_default().push(place);
        }
        Traced {
            detail: Some(self.detail),
            why_not: None,
            flows: std::mem::take(&mut self.flows),
            records,
            places,
            lost,
            start_ns,
        }
    }

    fn stop(&mut self) -> (Vec<Record>, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        thread.map_or((Vec::new(), 0), |thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}
