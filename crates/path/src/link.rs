//! Links: queue → rate → delay → impairments, one direction at a time.
//!
//! A *plain* link (drop-tail or unlimited queue, fixed rate, no `held_limit`, no impairment, nothing changed in
//! mid-run) is arithmetic: the moment a packet leaves is known when it arrives. A *served* link
//! runs any queue discipline, service and impairments, with an event when a transmission ends.
//! On a path where both apply they do the same to every packet; a test compares them.

pub mod plain;
pub mod propagation;
pub mod served;
pub mod service;
pub mod statistics;
pub mod steps;

pub use crate::window::Window;
pub use plain::PlainLink;
pub use propagation::{Delays, Propagation};
pub use served::ServedLink;
pub use statistics::Statistics;
