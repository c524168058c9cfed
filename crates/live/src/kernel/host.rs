//! A host of a live run.

use std::sync::Arc;

use super::{namespace::Namespace, tun::Device};

/// A node where flows begin or end.
#[derive(Debug)]
pub struct LiveHost {
    /// Where programs of ours run; none behind an interface.
    pub namespace: Option<Namespace>,
    /// Where its packets enter and leave.
    pub device: Arc<dyn Device>,
}
