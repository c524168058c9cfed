//! How many files this process may have open: every connection is one.

use std::{io, sync::OnceLock};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// What it was before we raised it.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as this process may (getrlimit(2)), for good: the first 1024 files, which are the custom, are few
/// for many transfers.
pub fn raise() {
    let now = getrlimit(Resource::Nofile);
    BEFORE.get_or_init(|| now);
    // Where it is refused, what there is must do; if it does not the run says so.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: now.maximum,
            maximum: now.maximum,
        },
    );
}

/// Gives a new process the limit that it would have had without us: some programs cannot do with more. Between fork and exec
/// it may be called.
pub fn restore() -> io::Result<()> {
    match BEFORE.get() {
        Some(before) => Ok(setrlimit(Resource::Nofile, *before)?),
        None => Ok(()),
    }
}

/// Says of an error that many transfers meet with what it means. `open` are those that are not over.
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
