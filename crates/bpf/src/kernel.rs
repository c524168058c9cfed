//! A control's file in the Linux kernel: compiled by clang, checked by the kernel's verifier, and
//! then available to any program on the machine like any other congestion control.
//!
//! [`attach`] keeps it loaded for the lifetime of the value; [`pinned`] beyond the lifetime of the
//! process. Connections that use a control keep it when it is removed.

pub mod pinned;

use std::{ffi::c_void, fs, os::unix::ffi::OsStrExt as _, path::Path, ptr};

use anabranch_core::{interrupt::Interrupt, system};

use crate::{
    Error, Source, compile,
    loader::{self, Loader, Octets, Report, Sink, Status, loader},
    privilege::advice,
};

/// The kernel's type information (BTF), which is required to load a control.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";
/// `TCP_CA_NAME_MAX`.
pub(crate) const NAME_MAX: usize = 16;
/// Privileges required for loading (capabilities(7)).
const PRIVILEGE: &str =
    "loading a control into the kernel needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";
const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];

/// A control in the kernel, for the lifetime of this value.
#[derive(Debug)]
pub struct Attached {
    name: String,
    link: *mut c_void,
    loader: &'static Loader,
}

// SAFETY: a link is a file descriptor and its owner's memory; the loader's functions are called
// from one thread at a time.
unsafe impl Send for Attached {}
// SAFETY: no part of the link is used through a shared reference.
unsafe impl Sync for Attached {}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: `attach` created the link, and this is its last use.
        unsafe { (self.loader.detach)(self.link) }
    }
}

impl Attached {
    /// The name by which programs select it (`TCP_CONGESTION`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Pins it to a file in a BPF file system.
    fn pin(&mut self, path: &Path) -> Result<(), String> {
        let path = Octets::of(path.as_os_str().as_bytes());
        let pinned = call_loader(|report| {
            // SAFETY: `attach` created the link; path and report are valid until the call returns.
            unsafe { (self.loader.pin)(self.link, path, report) }
        });
        match pinned.status {
            loader::DONE => Ok(()),
            _ => Err(pinned.error),
        }
    }
}

/// Result of a loader call.
pub(crate) struct LoaderOutput {
    pub status: Status,
    /// libbpf's messages.
    pub said: String,
    pub error: String,
}

impl LoaderOutput {
    /// Whether the kernel denied it before it examined the program.
    pub fn is_denied(&self) -> bool {
        self.status == loader::DENIED && !self.said.contains(LOG)
    }

    /// The reason of a rejection: the verifier's message, or the error's.
    pub fn reason(&self) -> String {
        shortened(&self.said).unwrap_or_else(|| system::words(&self.error))
    }
}

/// Calls a loader function and collects its output.
pub(crate) fn call_loader(call: impl FnOnce(Report) -> Status) -> LoaderOutput {
    let (mut said, mut error) = (Vec::new(), Vec::new());
    let mut hear = |piece: &[u8]| said.extend_from_slice(piece);
    let mut fail = |piece: &[u8]| error.extend_from_slice(piece);
    let status = call(Report {
        said: Sink::to(&mut hear),
        error: Sink::to(&mut fail),
    });
    LoaderOutput {
        status,
        said: String::from_utf8_lossy(&said).into_owned(),
        error: String::from_utf8_lossy(&error).into_owned(),
    }
}

/// Compiles a control, loads it and registers it with the kernel. Raising `interrupt` ends the
/// compiler.
///
/// # Errors
/// There is no clang, the file does not compile, the verifier rejects it, the privilege is missing,
/// or a control of its name is already registered.
pub fn attach(source: &Source, interrupt: &Interrupt) -> Result<Attached, Error> {
    check_machine()?;
    let object = compile::kernel(source, interrupt)?;
    let name = name_of(source, &object)?;
    attach_object(source, &object, &name)
}

/// Checks whether the kernel supports eBPF controls.
pub(crate) fn check_machine() -> Result<(), Error> {
    if !Path::new(BTF).exists() {
        return Err(Error::System(format!(
            "this kernel cannot take eBPF congestion controls: {BTF} is missing; it needs CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_JIT"
        )));
    }
    Ok(())
}

/// Registers a compiled control with the kernel, under `name`.
pub(crate) fn attach_object(source: &Source, object: &[u8], name: &str) -> Result<Attached, Error> {
    let name = name.to_owned();
    if available().contains(&name) {
        return Err(Error::System(format!(
            "the kernel has a congestion control `{name}` already; `anabranch cc unload {name}` if it was loaded so"
        )));
    }
    let loader = loader()?;
    let mut link = ptr::null_mut();
    let made = call_loader(|report| {
        let (object, name) = (Octets::of(object), Octets::of(name.as_bytes()));
        // SAFETY: octets, report and `link` are valid until the call returns.
        unsafe { (loader.attach)(object, name, &raw mut link, report) }
    });
    match made.status {
        loader::DONE => Ok(Attached { name, link, loader }),
        loader::NO_CONTROL => Err(without_control(source)),
        _ if made.is_denied() => Err(Error::System(format!(
            "{PRIVILEGE}; {}",
            advice(&CAPABILITIES)
        ))),
        _ => Err(Error::Refused {
            file: source.name.clone(),
            message: made.reason(),
        }),
    }
}

fn without_control(source: &Source) -> Error {
    Error::Unfit {
        file: source.name.clone(),
        what: "has no control; mark a struct tcp_congestion_ops with SEC(\".struct_ops.link\")"
            .to_owned(),
    }
}

/// The name in the control's `struct tcp_congestion_ops`, at the offset given by its own headers.
pub(crate) fn name_of(source: &Source, object: &[u8]) -> Result<String, Error> {
    let mut found = Vec::new();
    let mut take = |piece: &[u8]| found.extend_from_slice(piece);
    // SAFETY: octets and sink are valid until the call returns.
    let status = unsafe { (loader()?.name)(Octets::of(object), Sink::to(&mut take)) };
    if status != loader::DONE {
        return Err(without_control(source));
    }
    let name = String::from_utf8_lossy(&found).into_owned();
    let fits = (1..NAME_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'));
    if fits {
        Ok(name)
    } else {
        Err(Error::Unfit {
            file: source.name.clone(),
            what: format!(
                "names its control {name:?}; `.name` holds 1 to {} letters, digits, `_`, `-` or `+`",
                NAME_MAX - 1
            ),
        })
    }
}

/// The line of libbpf's output after which the verifier's log begins.
const LOG: &str = "-- BEGIN PROG LOAD LOG --";

/// Extracts from the verifier's log the reason, which is its last message, the instruction's line
/// in the file, and the function.
fn shortened(said: &str) -> Option<String> {
    let Some((before, log)) = said.split_once(LOG) else {
        let lines: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("libbpf: "))
            .filter(|line| !line.starts_with("Error in bpf_object__probe_loading"))
            .take(2)
            .collect();
        return (!lines.is_empty()).then(|| lines.join("; "));
    };
    let log = log.split("-- END PROG LOAD LOG --").next()?;
    let function = before
        .rsplit_once("prog '")
        .and_then(|(_, rest)| rest.split('\'').next());
    let tells = |line: &&str| {
        !line.is_empty()
            && !line.starts_with("processed ")
            && !line.starts_with("verification time")
            && !line.starts_with("stack depth")
            && !line.starts_with("libbpf: ")
    };
    let reason = log.lines().map(str::trim).rfind(tells)?;
    // Source lines have the form `; text @ file:line`.
    let place = log
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("; "))
        .map(|line| line.split(" @ ").next().unwrap_or(line).trim().to_owned());
    Some(match (function, place) {
        (Some(function), Some(place)) => format!("{function}: {reason}, at `{place}`"),
        (Some(function), None) => format!("{function}: {reason}"),
        (None, _) => reason.to_owned(),
    })
}

/// The congestion controls available in the kernel.
#[must_use]
pub fn available() -> Vec<String> {
    words("/proc/sys/net/ipv4/tcp_available_congestion_control")
}

/// The congestion controls that any user may select.
#[must_use]
pub fn allowed() -> Vec<String> {
    words("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
}

fn words(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
