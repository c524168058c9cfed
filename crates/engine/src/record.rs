//! The records of a run: observations, meters of flows, packet logs, captures, samples.

pub mod meter;
pub mod needed;
pub mod packet_log;
pub mod probe;
pub mod resent;
pub mod retransmitted;
pub mod tap;
pub mod window_events;

pub use meter::{ReceiverMeter, SenderMeter};
pub use packet_log::{PacketLog, PacketRow};
pub use probe::Probe;
pub use resent::Resent;
pub use retransmitted::Retransmitted;
pub use tap::{Tapping, Taps};
pub use window_events::WindowRow;
