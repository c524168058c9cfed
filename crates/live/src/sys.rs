//! What the system is asked that no safe wrapper asks: devices and `TCP_INFO`. All unsafe code is here.

pub mod interface;
pub mod packet;
pub mod priority;
pub mod tcp_info;

use std::{os::unix::process::CommandExt, process::Command};

use rustix::process::{Signal, set_parent_process_death_signal};

/// A program to be started ends when the thread that starts it does (PR_SET_PDEATHSIG(2)), even if that is killed.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}
