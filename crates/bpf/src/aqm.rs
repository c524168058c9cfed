//! Active queue management at the egress of a device, as an eBPF program of the traffic control layer
//! (TCX).
//!
//! [`Settings`] are a queue of the simulator and a rate. The program keeps a virtual queue of that
//! rate, and drops or marks packets by the decisions that the simulator's queue makes for the same
//! arrivals. `bpf/aqm/red.h` has them in integers; [`config`] computes its constants.
//!
//! [`attach`] holds the program at the device while its value lives. [`device`] finds the program of
//! a device again, and confirms or detaches it.

pub mod config;
pub mod device;
mod pins;
mod settings;

use std::{
    ffi::c_void,
    os::fd::BorrowedFd,
    ptr,
    sync::{Mutex, PoisonError},
};

use anabranch_core::interrupt::Interrupt;

pub use self::{
    pins::sweep,
    settings::{KINDS, Settings},
};
use crate::{
    Error, compile,
    kernel::{LoaderOutput, call_loader},
    loader::{self, Loader, Octets, QueueMaps, loader},
    privilege::advice,
};

/// The program's file.
const NAME: &str = "share_red.bpf.c";
const TEXT: &str = include_str!("../../../bpf/aqm/share_red.bpf.c");
/// The decision, which a test also compiles for this machine.
pub const DECISION: &str = include_str!("../../../bpf/aqm/red.h");
/// Privileges (capabilities(7)).
const PRIVILEGE: &str =
    "a queue at a device needs root, or CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN";
const CAPABILITIES: [&str; 4] = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN", "CAP_SYS_ADMIN"];

/// A queue's program in the kernel, for the lifetime of this value or of a copy of its link.
#[derive(Debug)]
pub struct Queue {
    queue: *mut c_void,
    loader: &'static Loader,
}

// SAFETY: a queue holds file descriptors and memory that no thread owns.
unsafe impl Send for Queue {}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: `load` created the queue, and this is its last use.
        unsafe { (self.loader.queue_end)(self.queue) }
    }
}

impl Queue {
    /// The link; `None` if the program is loaded without a device.
    #[must_use]
    pub fn link(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: `load` created the queue, which owns the descriptor for its lifetime.
        unsafe {
            let link = (self.loader.queue_link)(self.queue);
            (link >= 0).then(|| BorrowedFd::borrow_raw(link))
        }
    }

    /// The number of the program.
    #[must_use]
    pub fn program(&self) -> u32 {
        // SAFETY: `load` created the queue.
        unsafe { (self.loader.queue_program)(self.queue) }
    }

    /// Runs the program on a frame that arrives at `now`, in ns (`BPF_PROG_TEST_RUN`). Returns its
    /// result; `None` if it cannot run. For tests: the configuration has to name the packet's clock.
    #[must_use]
    pub fn run(&self, frame: &[u8], now: u64) -> Option<i32> {
        /// Octets of `struct __sk_buff`, and of its member `tstamp`.
        const CONTEXT: usize = 192;
        const TIME: std::ops::Range<usize> = 152..160;
        let mut context = [0; CONTEXT];
        context[TIME].copy_from_slice(&now.to_ne_bytes());
        let (frame, context) = (Octets::of(frame), Octets::of(&context));
        // SAFETY: `load` created the queue, and the octets are valid until the call returns.
        let result = unsafe { (self.loader.queue_run)(self.queue, frame, context) };
        (result != i32::MIN).then_some(result)
    }
}

/// Compiles the program, loads it with `config` and `about`, and attaches it to the egress of the
/// device of this number; 0 attaches it to none. Raising `interrupt` ends the compiler.
///
/// # Errors
/// There is no clang, the kernel lacks TCX, or the privilege is missing.
pub fn attach(
    config: &[u8],
    about: &str,
    device: u32,
    interrupt: &Interrupt,
) -> Result<Queue, Error> {
    let object = compiled(interrupt)?;
    let loader = loader()?;
    let mut queue = ptr::null_mut();
    let made = call_loader(|report| {
        let maps = QueueMaps {
            config: Octets::of(config),
            about: Octets::of(about.as_bytes()),
        };
        // SAFETY: octets, report and `queue` are valid until the call returns.
        unsafe { (loader.queue_attach)(Octets::of(&object), maps, device, &raw mut queue, report) }
    });
    checked(&made)?;
    Ok(Queue { queue, loader })
}

/// Turns a loader's refusal into an error.
fn checked(output: &LoaderOutput) -> Result<(), Error> {
    if output.status == loader::DONE {
        return Ok(());
    }
    if output.is_denied() {
        return Err(Error::System(format!(
            "{PRIVILEGE}; {}",
            advice(&CAPABILITIES)
        )));
    }
    if output.error.starts_with("TCX") && !output.error.contains("No such device") {
        return Err(Error::System(format!(
            "the kernel does not attach a program to the device's egress: {}; it needs Linux 6.6 with CONFIG_NET_XGRESS",
            output.reason()
        )));
    }
    Err(Error::Refused {
        file: NAME.to_owned(),
        message: output.reason(),
    })
}

/// The object file. It is compiled once per process.
fn compiled(interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    static COMPILED: Mutex<Option<Vec<u8>>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(object) = &*compiled {
        return Ok(object.clone());
    }
    let text = TEXT.replace("#include \"red.h\"", DECISION);
    let object = compile::kernel_alone(NAME, &text, interrupt)?;
    *compiled = Some(object.clone());
    Ok(object)
}
