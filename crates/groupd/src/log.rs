//! Messages on standard error.

use std::io::{self, Write};

use anabranch_core::shown;

/// Writes a message.
pub fn say(message: &str) {
    // A failure to write the log must not end the daemon.
    let _ = io::stderr().write_all((shown::terminal(message) + "\n").as_bytes());
}
