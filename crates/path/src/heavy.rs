//! Heavy flows: which connection uses most of what passes, told from the packets alone.
//!
//! A detector hears every packet that arrives, and answers at any time how much of the traffic of late a
//! connection had, how many connections there were, and which had most. What follows from the answer is
//! others' business: a queue that drops more of the heaviest (`preferential-red`), or
//! one that weighs each connection by its share. Adding a detector is a file in `heavy/` and a line in the
//! registry below; one from outside the workspace implements [`HeavyFlows`] and travels as
//! [`Detector::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{component, components, packet::ConnectionId};

/// Hears packets and tells who sends most of them.
pub trait HeavyFlows: fmt::Debug + Send {
    /// A packet of `size` bytes arrives.
    fn on_packet(&mut self, connection: ConnectionId, size: u32);
    /// What part of the traffic of late is known to be this connection's, from 0 to 1. Never too much by
    /// more than the detector documents.
    fn share(&self, connection: ConnectionId) -> f64;
    /// How many connections there were of late, as far as the detector can tell.
    fn active(&self) -> usize;
    /// Who had most of late; `None` before the first statistics.
    fn heaviest(&self) -> Option<ConnectionId>;
    /// Bytes that it occupies, however many connections there are.
    fn memory(&self) -> usize;
}

/// Makes a detector from outside the workspace.
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
    /// Reads the parameters of the detector called `name` with `read`, which is handed the place of one
    /// kind of parameters after another and fills the right one; `None` if there is no such detector.
    pub(crate) fn read<'de, A: serde::de::VariantAccess<'de>>(
        name: &str,
        parameters: A,
    ) -> Option<Result<Self, A::Error>> {
        let (_, mut config, _) = registry()
            .into_iter()
            .find(|(meta, ..)| meta.name == name)?;
        let read = each!(&mut config, params => parameters.newtype_variant().map(|read| *params = read), custom => Ok(()));
        Some(read.map(|()| config))
    }
    /// The parameters alone, as they are written beside `kind`.
    pub(crate) fn parameters(&self) -> Result<serde_json::Value, serde_json::Error> {
        each!(self, params => serde_json::to_value(params), custom => Ok(serde_json::json!({})))
    }
}
