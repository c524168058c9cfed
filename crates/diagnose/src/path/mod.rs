//! The path as a capture shows it: round-trip time, rate, buffer, loss, reordering, jitter.
//!
//! An [`Observer`] collects the data of one direction, in one pass and within bounds. `fit` derives
//! a [`Model`] with intervals from it when the connection has ended.
//!
//! The queue may be on either side of the capture point, and a `Side` describes each. If the queue
//! is between the capture point and the receiver, the time from data to its acknowledgment includes
//! the wait, and acknowledgments arrive at the queue's rate. If it is between the sender and the
//! capture point, the time from an acknowledgment to the data that echoes it includes the wait, and
//! data arrives at the queue's rate.

mod batches;
mod estimate;
mod fit;
mod lost;
pub mod model;
mod observer;
mod policer;
mod queue;
mod side;
mod summaries;

pub use estimate::{Estimate, Seen};
pub(crate) use fit::Facts;
pub(crate) use model::Policed;
pub use model::{LossKind, Model, Policer};
pub(crate) use observer::Observer;
pub(crate) use policer::Policing;
pub use summaries::Series;
