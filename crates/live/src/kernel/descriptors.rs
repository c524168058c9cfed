//! The limit on open files of this process: each connection takes one.

use std::{io, sync::OnceLock};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// The limit before [`raise`].
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard limit for the rest of the process (getrlimit(2)): the usual
/// 1024 files are too few for many transfers.
pub fn raise() {
    let now = getrlimit(Resource::Nofile);
    BEFORE.get_or_init(|| now);
    // If the kernel refuses, the old limit stays; the run reports it if it does not suffice.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: now.maximum,
            maximum: now.maximum,
        },
    );
}

/// Gives a new process the original limit, because some programs fail with a larger one. Safe
/// between fork and exec.
pub fn restore() -> io::Result<()> {
    match BEFORE.get() {
        Some(before) => Ok(setrlimit(Resource::Nofile, *before)?),
        None => Ok(()),
    }
}

/// Explains errors that many open transfers cause. `open` is the number of open transfers.
pub fn explain(error: io::Error, open: usize) -> io::Error {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let what = if is(Errno::MFILE) {
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.map_or("none".to_owned(), |limit| limit.to_string());
        format!(
            "{open} transfers are open, each of which takes two files, and this process may have {limit} \
             (`ulimit -Hn`); give it more, or the flow less load"
        )
    } else if is(Errno::ADDRNOTAVAIL) {
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let range: Vec<String> = range
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        format!(
            "no port from {} is left for another transfer: {open} are open, and the ports of others rest after their end \
             (TIME-WAIT), for a second with `timestamps` and for a minute without; let the flow have fewer and larger transfers, \
             or a shorter run",
            range.join(" to ")
        )
    } else {
        return error;
    };
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
