//! Links: queue → rate → delay → impairments, one direction at a time.
//!
//! A *plain* link has a drop-tail or unlimited queue, a fixed rate, no `held_limit`, no impairment
//! and no change in mid-run. It is arithmetic: the departure of a packet is known when it arrives.
//! A *served* link runs any queue discipline, service and impairments, with an event at the end of
//! each transmission. On a path that both can model they treat every packet alike; a test compares
//! them.

pub mod plain;
pub mod propagation;
pub mod served;
pub mod service;
pub mod statistics;
pub mod steps;

pub use crate::window::Window;
pub use plain::PlainLink;
pub use propagation::{Delays, Propagation};
pub use served::{Mtu, Properties, ServedLink};
pub use statistics::Statistics;
