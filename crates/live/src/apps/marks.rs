//! Moments at which a flow's own time is over: its file is whole, or a program at one of its ends has ended. The engine, which
//! alone sees packets, notes there what has arrived.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anabranch_core::units::Instant;

/// IP bytes of a flow that have arrived in the measured time, and until when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrived {
    pub at: Instant,
    pub ip_bytes: u64,
}

/// Flows to be noted.
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
    /// This flow's own time is over now.
    pub fn add(&self, flow: usize) {
        let mut flows = self.lock();
        flows.fresh.push(flow);
        flows.all.insert(flow);
        self.is_any.store(true, Ordering::Release);
    }

    /// Those that were added since.
    pub fn take(&self) -> Vec<usize> {
        // The engine looks in every turn.
        if !self.is_any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.is_any.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.lock().fresh)
    }

    /// Whether this flow's own time has ever been over.
    pub fn has(&self, flow: usize) -> bool {
        self.lock().all.contains(&flow)
    }

    fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
