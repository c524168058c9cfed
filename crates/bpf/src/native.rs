//! A control's file in the simulator: compiled by the system's `cc`, loaded into this process, and
//! called as by the kernel.
//!
//! The file runs as native code, with the trust of any program.
//!
//! # Differs from the kernel
//! - The simulator's endpoint decides about losses, about the start and end of a recovery and about
//!   the growth of a window; its stack profile replaces the kernel's behaviour.
//! - During a recovery snd_cwnd is the reduced window: proportional rate reduction belongs to the
//!   endpoint and does not show in it.
//! - Octets are counted as packets of a full segment each, with the remainder carried over to the
//!   next acknowledgment; the kernel counts the packets, full or not.
//! - `max_packets_out` is zero: the endpoint decides whether the window was used.
//! - A control that sets no pacing rate leaves pacing to the stack.
//!
//! # Not implemented
//! - `min_tso_segs`, `sndbuf_expand` and `get_info` are never called.
//! - Maps, variables of the file, and helpers other than the time.

mod abi;
mod adapter;
mod library;

use std::sync::Arc;

use anabranch_congestion::{self as cc};
use anabranch_core::interrupt::Interrupt;

use self::adapter::Adapter;
use crate::{Error, Source};

/// Compiles a file, and returns a factory of its controls for connections. Raising `interrupt` ends
/// the compiler.
///
/// # Errors
/// The file does not compile, is not a control, or uses features that the simulator lacks.
pub fn factory(source: &Source, interrupt: &Interrupt) -> Result<cc::Factory, Error> {
    if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
        return Err(Error::System(
            "eBPF controls run on 64-bit Linux only, in the simulator too; choose a built-in control"
                .to_owned(),
        ));
    }
    let loaded = library::load(source, interrupt)?;
    Ok(Arc::new(move |init| {
        Box::new(Adapter::new(Arc::clone(&loaded), init))
    }))
}
