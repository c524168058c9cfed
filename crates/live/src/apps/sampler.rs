//! Samples every socket every 10 ms (contract: `mean_srtt_ms`), and at the start and end of each
//! flow's measured time.

use anabranch_core::units::{Duration, Instant};

use crate::{
    apps::stage::{Side, Socket, Stage},
    kernel::{clock::Clock, sys::tcp_info::TcpInfo},
};

const EVERY: Duration = Duration::from_millis(10);

/// The state of a socket at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The time of the sample.
    pub at: Instant,
    /// Index into the scenario's flows.
    pub flow: usize,
    /// The end of the flow.
    pub side: Side,
    /// The state from the kernel, or from our own TCP.
    pub info: TcpInfo,
}

impl Sample {
    /// Samples a socket now; `None` if its state is unavailable.
    #[must_use]
    pub fn of(flow: usize, side: Side, socket: &Socket, clock: Clock) -> Option<Self> {
        let info = socket.info(clock.now()).ok()?;
        let at = clock.now();
        Some(Self {
            at,
            flow,
            side,
            info,
        })
    }
}

/// Samples at regular times and at `edges` until the run is over, and once at its end. Ordered by
/// time.
pub fn run(clock: Clock, end: Instant, mut edges: Vec<Instant>, stage: &Stage) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut due = Instant::START;
    edges.sort_unstable_by(|a, b| b.cmp(a));
    loop {
        while edges.last().is_some_and(|edge| *edge <= clock.now()) {
            edges.pop();
        }
        let next = edges.last().map_or(due, |edge| due.min(*edge)).min(end);
        clock.sleep_until(next);
        let sockets = stage.sockets.lock();
        let all = sockets.iter();
        samples
            .extend(all.filter_map(|(flow, side, socket)| Sample::of(*flow, *side, socket, clock)));
        drop(sockets);
        if clock.now() >= end || stage.is_over() {
            break;
        }
        // Missed sampling times are skipped.
        while due <= clock.now() {
            due = due + EVERY;
        }
    }
    samples
}
