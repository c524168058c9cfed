//! A request to stop, raised by another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag that long work looks at and another thread raises. Clones share it; once raised it stays so.
///
/// It carries no data, so that the order of other memory accesses does not matter.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks the work to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether the work shall stop.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
