//! Moments at which a flow is over before the run: its file is complete, or a program at one of its
//! ends has exited. Only the engine sees packets, so it records the arrived bytes at these moments.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anabranch_core::units::Instant;

/// IP bytes of a flow that arrived in the measured time until `at`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrived {
    pub at: Instant,
    pub ip_bytes: u64,
}

/// Flows that are over.
#[derive(Debug, Default)]
pub struct Marks {
    is_any: AtomicBool,
    flows: Mutex<Flows>,
}

#[derive(Debug, Default)]
struct Flows {
    fresh: Vec<usize>,
    all: BTreeSet<usize>,
}

impl Marks {
    /// Marks this flow as over.
    pub fn add(&self, flow: usize) {
        let mut flows = self.lock();
        flows.fresh.push(flow);
        flows.all.insert(flow);
        self.is_any.store(true, Ordering::Release);
    }

    /// The flows marked since the last call.
    pub fn take(&self) -> Vec<usize> {
        // The engine checks this in every turn.
        if !self.is_any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.is_any.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.lock().fresh)
    }

    /// Whether this flow has been marked.
    pub fn has(&self, flow: usize) -> bool {
        self.lock().all.contains(&flow)
    }

    fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
