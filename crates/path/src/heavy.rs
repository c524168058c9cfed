//! Detection of heavy flows: the connection with the largest share of the traffic, from the packets
//! alone.
//!
//! A detector is notified of every packet that arrives. It reports at any time a connection's share
//! of the recent traffic, the number of connections, and the heaviest connection. Its users act on
//! these: a queue that drops more packets of the heaviest (`preferential-red`), or a queue that
//! weighs each connection by its share. A new detector is a file in `heavy/` and a line in the
//! registry below. A detector from outside the workspace implements [`HeavyFlows`] and is stored as
//! [`Detector::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{component, components, packet::ConnectionId};

/// Detector of heavy flows.
pub trait HeavyFlows: fmt::Debug + Send {
    /// Counts a packet of `size` bytes.
    fn on_packet(&mut self, connection: ConnectionId, size: u32);
    /// Known share of this connection in the recent traffic, from 0 to 1. It exceeds the true share
    /// by at most the error that the detector documents.
    fn share(&self, connection: ConnectionId) -> f64;
    /// Number of recent connections, as known to the detector.
    fn active(&self) -> usize;
    /// Heaviest connection; `None` before the first statistics.
    fn heaviest(&self) -> Option<ConnectionId>;
    /// Memory in bytes, independent of the number of connections.
    fn memory(&self) -> usize;
}

/// Constructor of a detector from outside the workspace.
pub type Factory = Arc<dyn Fn() -> Box<dyn HeavyFlows> + Send + Sync>;

/// A detector from outside the workspace.
pub type Custom = component::Custom<Factory>;

components! {
    enum Detector: HeavyFlows();

    history::History,
    space_saving::SpaceSaving,
}

impl HeavyFlows for Detector {
    #[inline]
    fn on_packet(&mut self, connection: ConnectionId, size: u32) {
        each!(self, detector => detector.on_packet(connection, size));
    }
    fn share(&self, connection: ConnectionId) -> f64 {
        each!(self, detector => detector.share(connection))
    }
    fn active(&self) -> usize {
        each!(self, detector => detector.active())
    }
    #[inline]
    fn heaviest(&self) -> Option<ConnectionId> {
        each!(self, detector => detector.heaviest())
    }
    fn memory(&self) -> usize {
        each!(self, detector => detector.memory())
    }
}

impl Config {
    /// Reads the parameters of the detector called `name`; `None` if there is no such detector.
    pub(crate) fn read<'de, A: serde::de::VariantAccess<'de>>(
        name: &str,
        parameters: A,
    ) -> Option<Result<Self, A::Error>> {
        let mut config = Self::named(name)?;
        let read = each!(&mut config, params => parameters.newtype_variant().map(|read| *params = read), custom => Ok(()));
        Some(read.map(|()| config))
    }
    /// Parameters without `kind`, as they are written.
    pub(crate) fn parameters(&self) -> Result<serde_json::Value, serde_json::Error> {
        each!(self, params => serde_json::to_value(params), custom => Ok(serde_json::json!({})))
    }
}
