//! Forward error correction inside TCP: redundant packets recover lost packets before TCP detects
//! the loss.
//!
//! The layer is between TCP and IP in both end hosts, as in Sato, Koga and Ikenaga §3.1. Modules
//! and their responsibilities:
//!
//! 1. [`anabranch_erasure`]: encoding and decoding of redundant packets, independent of TCP and
//!    time.
//! 2. [`redundant`](anabranch_wire::redundant): redundant packets, the group's number in data, the
//!    count in acknowledgments, and their encoding.
//! 3. [`redundancy`]: the number of data packets and redundant packets of the next group.
//! 4. [`params`]: the parameters of a scenario, and their consistency.
//! 5. [`sender`]: the open group, the redundant packets that are due, and those in flight.
//! 6. [`receiver`]: the received packets of each group, the recovery of missing ones, and its
//!    failure.
//! 7. [`hold`]: held acknowledgments, and their content at release.
//! 8. [`layer`]: all of this beside an endpoint; [`protected`]: an endpoint with the layer as one
//!    object.
//! 9. In [`tcp`](anabranch_tcp): window space reserved for redundancy, recovered octets, and losses
//!    that only the layer detected. Flows without the layer do not use it.
//! 10. In the engine: the flows with error correction, and its counters in the results.
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
