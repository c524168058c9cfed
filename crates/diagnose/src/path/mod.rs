//! What a capture shows of the path: round trip, rate, buffer, loss, reordering, jitter.
//!
//! An [`Observer`] collects for one direction, in one pass and within bounds; [`model`] makes estimates with intervals from
//! it once the connection has ended.
//!
//! The queue may be before or behind the capture point. A [`side::Side`] stands for each: behind it, the time from data to
//! its acknowledgment shows the queue, and acknowledgments arrive at its rate; before it, the time from an acknowledgment
//! to the data that echoes it does, and data arrives at its rate.

mod batches;
mod echo;
mod estimate;
mod least;
mod lost;
pub mod model;
mod observer;
mod reduction;
mod side;
mod waits;

pub use estimate::{Estimate, Seen};
pub use model::Model;
pub(crate) use observer::{Observer, Sent};
