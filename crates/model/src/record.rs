//! What a run leaves behind: observations, meters of flows, packet logs, captures, samples.

pub mod meter;
pub mod packet_log;
pub mod probe;
pub mod summary;
pub mod tap;

pub use meter::{ReceiverMeter, SenderMeter};
pub use packet_log::{PacketLog, PacketRow};
pub use probe::Probe;
pub use summary::Summary;
pub use tap::{Tapping, Taps};
