//! Looks at every socket every 10 ms (contract: `mean_srtt_ms`).

use std::sync::atomic::Ordering;

use anabranch_core::units::{Duration, Instant};

use crate::{
    application::{Side, Stage},
    clock::Clock,
    sys::tcp_info::TcpInfo,
};

const EVERY: Duration = Duration::from_millis(10);

/// A socket at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Index into the scenario's flows.
    pub flow: usize,
    /// Which end.
    pub side: Side,
    /// What the kernel says, or our own TCP.
    pub info: TcpInfo,
}

/// Samples until the run is over; the last ones are taken at its end.
pub fn run(clock: Clock, end: Instant, stage: &Stage) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut due = Instant::START;
    loop {
        clock.sleep_until(due.min(end));
        for (flow, side, socket) in stage.sockets.lock().iter() {
            // A socket that the kernel says nothing of has nothing to say.
            if let Ok(info) = socket.info() {
                samples.push(Sample {
                    at: clock.now(),
                    flow: *flow,
                    side: *side,
                    info,
                });
            }
        }
        if due >= end || stage.over.load(Ordering::Relaxed) {
            return samples;
        }
        // What was missed is missed.
        while due <= clock.now() {
            due = due + EVERY;
        }
        due = due.min(end);
    }
}
