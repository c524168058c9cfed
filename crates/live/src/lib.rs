//! Real time: the model between network namespaces, with the Linux kernel's TCP at its ends.
//!
//! Each host of a scenario is a network namespace with a TUN device. [`Live`] holds the other ends of
//! the devices and carries every packet through the same network that the simulator runs, by the clock.
//! The applications are threads with real sockets; what is reported of them comes from `TCP_INFO`.
//!
//! Nothing is left behind: namespaces, devices and sockets belong to the process and go with it, however
//! it ends.
#![cfg(target_os = "linux")]

mod application;
mod audit;
mod clock;
mod connections;
mod conservation;
mod controls;
mod datagram;
mod defaults;
mod descriptors;
mod directory;
mod driver;
mod end;
mod endpoint;
mod favour;
mod frame;
mod hindrance;
mod kernel_target;
mod limits;
mod marks;
mod names;
mod namespace;
mod play;
mod program;
mod refusal;
mod report;
mod run;
mod sampler;
mod settings;
mod sharing;
mod socket;
mod stage;
mod stream;
mod sys;
mod trace;
mod transfers;
mod tun;

pub use anabranch_bpf::trace::CaState;
pub use anabranch_engine::Progress;
pub use audit::{Audit, DatagramAccount, Limits};
pub use conservation::Packets;
pub use driver::PathSamples;
pub use favour::Favour;
pub use frame::{Frame, departing, write};
pub use kernel_target::KernelTarget;
pub use names::{HostName, hosts};
pub use program::{Ended, hindrance as program_hindrance};
pub use refusal::Refusal;
pub use run::{Around, Error, Finished, Live, prepare};
pub use sampler::Sample;
pub use stage::Side;
pub use sys::tcp_info::TcpInfo;
pub use trace::{Acknowledged, Detail, Traced, Tracing};
