//! A request to stop, raised by another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag that long-running work polls and another thread raises. Clones share it; it is never
/// lowered.
///
/// It carries no data, so that relaxed memory ordering is sufficient.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Requests the work to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether the work is to stop.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
