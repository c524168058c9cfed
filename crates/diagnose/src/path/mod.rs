//! What a capture shows of the path: round trip, rate, buffer, loss, reordering, jitter.
//!
//! An [`Observer`] collects for one direction, in one pass and within bounds; `fit` makes a [`Model`] with intervals from
//! it once the connection has ended.
//!
//! The queue may be before or behind the capture point. A `Side` stands for each: behind it, the time from data to
//! its acknowledgment shows the queue, and acknowledgments arrive at its rate; before it, the time from an acknowledgment
//! to the data that echoes it does, and data arrives at its rate.

mod batches;
mod echo;
mod estimate;
mod fit;
mod least;
mod lost;
pub mod model;
mod observer;
mod policer;
mod queue;
mod reduction;
mod series;
mod side;
mod waits;

pub use estimate::{Estimate, Seen};
pub(crate) use fit::Facts;
pub use model::Model;
pub(crate) use observer::{Observer, Sent};
pub use policer::Policer;
pub use series::Series;
