//! Live runs: the model between network namespaces in real time, with the Linux kernel's TCP at its
//! ends.
//!
//! Each host of a scenario is a network namespace with a TUN device. [`Live`] holds the other ends
//! of the devices and moves every packet through the same network that the simulator runs, in real
//! time. The applications are threads with real sockets; their state is read from `TCP_INFO`.
//!
//! Namespaces, devices and sockets belong to the process and vanish with it, however it ends.
#![cfg(target_os = "linux")]

mod apps;
mod engine;
mod kernel;
mod kernel_target;
mod plan;
mod report;
mod run;
mod scripts;

pub use anabranch_bpf::trace::CaState;
pub use anabranch_engine::Progress;
pub use apps::{
    program::{Ended, hindrance as program_hindrance},
    sampler::Sample,
    stage::Side,
};
pub use engine::{
    audit::{Audit, DatagramAccount, Limits},
    conservation::Packets,
    driver::PathSamples,
};
pub use kernel::{favour::Favour, sys::tcp_info::TcpInfo};
pub use kernel_target::KernelTarget;
pub use plan::{
    error::Error,
    frame::{Frame, departing, write},
    names::{HostName, hosts},
    refusal::Refusal,
};
pub use report::summary::LiveSummary;
pub use report::trace::{Acknowledged, Detail, Traced, Tracing};
pub use run::{Around, Finished, Live, prepare};
pub use scripts::{KernelOutcome, ScriptRuns};
