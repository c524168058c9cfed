//! Forward error correction inside TCP: redundant packets bring lost ones back before TCP hears of them.
//!
//! The layer stands between TCP and IP in both end hosts, as in Sato, Koga and Ikenaga §3.1. What is
//! owned where:
//!
//! 1. [`anabranch_erasure`]: the codes.
//! 2. [`redundant`](anabranch_wire::redundant): a redundant packet, the group's number in data and the count in
//!    acknowledgments, as octets too.
//! 3. [`redundancy`]: how many packets the next group has and how many redundant ones it gets.
//! 4. [`params`]: what a scenario may set, and what goes together.
//! 5. [`sender`]: the open group, the redundant packets due, and which of them count as in flight.
//! 6. [`receiver`]: what has come of each group, what it brings back, and when that is hopeless.
//! 7. [`hold`]: acknowledgments held back, and what they say when they leave.
//! 8. [`layer`]: all that beside an endpoint; [`protected`]: an endpoint with it, as one thing.
//! 9. In [`tcp`](anabranch_tcp): a window with room kept for redundancy, octets that were rebuilt, and losses
//!    that only the layer saw. Nothing there is asked of a flow without the layer.
//! 10. In the model: which flows have it, and its counters in the results.
#![forbid(unsafe_code)]

pub mod hold;
pub mod layer;
pub mod params;
pub mod protected;
pub mod receiver;
pub mod redundancy;
pub mod sender;
pub mod stats;

pub use layer::Layer;
pub use params::{Config, Params};
pub use protected::Protected;
pub use stats::Stats;
