//! A control's file in the simulator: compiled by the system's `cc`, loaded into this process, called
//! as the kernel calls it.
//!
//! What runs is native code of whoever wrote the file. It is as trusted as a program.
//!
//! # Differs from the kernel
//! - The simulator's endpoint decides what is lost, when a recovery begins and ends and when a
//!   window may grow; its stack profile stands for the kernel's habits.
//! - During a recovery snd_cwnd is what the reduction left: proportional rate reduction is the
//!   endpoint's and does not show in it.
//! - Octets become packets of a full segment each, a remainder carried over to the next
//!   acknowledgment; the kernel counts the packets, full or not.
//! - `max_packets_out` is zero: whether the window was used is the endpoint's to say.
//! - A control that sets no pacing rate leaves pacing to the stack.
//!
//! # Not implemented
//! - `min_tso_segs`, `sndbuf_expand` and `get_info` are never called.
//! - Maps, variables of the file's own, and helpers other than the time.

mod abi;
mod adapter;
mod library;

use std::sync::Arc;

use anabranch_congestion::{self as cc};
use anabranch_core::interrupt::Interrupt;

use self::adapter::Adapter;
use crate::{Error, Source};

/// Makes the controls of connections from a file, which is compiled now. Raising `interrupt` ends the compiler.
///
/// # Errors
/// The file does not compile, is no control, or uses what the simulator does not have.
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
