//! Loads programs into the kernel, with libbpf: congestion controls, the program that traces TCP, and
//! the queues of devices.
//!
//! The engine opens this library at run time, so that it builds and runs without libelf and zlib.
//! `crates/bpf` calls it through the table `ANABRANCH_LOADER`; `abi.rs` there documents each
//! function.

#[cfg(all(feature = "libbpf", target_os = "linux"))]
#[path = "../../bpf/src/loader/abi.rs"]
mod abi;
#[cfg(all(feature = "libbpf", target_os = "linux"))]
mod control;
#[cfg(all(feature = "libbpf", target_os = "linux"))]
mod messages;
#[cfg(all(feature = "libbpf", target_os = "linux"))]
mod queue;
#[cfg(all(feature = "libbpf", target_os = "linux"))]
mod trace;

/// The library's functions.
#[cfg(all(feature = "libbpf", target_os = "linux"))]
#[unsafe(no_mangle)]
pub static ANABRANCH_LOADER: abi::Loader = abi::Loader {
    version: abi::VERSION,
    name: control::name,
    attach: control::attach,
    pin: control::pin,
    detach: control::detach,
    trace: trace::start,
    take: trace::take,
    lost: trace::lost,
    filter: trace::filter,
    end: trace::end,
    queue_attach: queue::attach,
    queue_link: queue::link,
    queue_program: queue::program,
    queue_run: queue::run,
    queue_end: queue::end,
    queue_find: queue::find,
    queue_read: queue::read,
    queue_write: queue::write,
    queue_cost: queue::cost,
    queue_pin: queue::pin,
    queue_pinned: queue::pinned,
    queue_detach: queue::detach,
};
