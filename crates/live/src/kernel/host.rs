//! A host of a live run.

use std::sync::Arc;

use super::{namespace::Namespace, tun::Device};

/// A node where flows begin or end.
#[derive(Debug)]
pub struct LiveHost {
    /// The namespace in which our programs run; `None` for a host connected through an interface.
    pub namespace: Option<Namespace>,
    /// The device of its packets.
    pub device: Arc<dyn Device>,
}
