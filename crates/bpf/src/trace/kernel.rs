//! The program in the kernel.

use std::{
    ffi::c_void,
    os::fd::BorrowedFd,
    path::Path,
    ptr,
    sync::{Mutex, OnceLock, PoisonError},
};

use anabranch_core::interrupt::Interrupt;

use super::{Detail, Place, Record};
use crate::{
    Error, compile,
    kernel::{BTF, call_loader},
    loader::{self, Loader, Octets, PLACE, Sink, Watch, loader},
    privilege::advice,
};

/// The program's file.
const NAME: &str = "tcp_trace.bpf.c";
const TEXT: &str = include_str!("../../../../bpf/trace/tcp_trace.bpf.c");
/// Privileges required for loading (capabilities(7)).
const PRIVILEGE: &str = "tracing the kernel's TCP needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN outside of user namespaces";
const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];
/// Size of the ring in octets: a fifth of a second at 200,000 segments per second, or 2,500 events.
const ROOM_FOR_SEGMENTS: u32 = 8 << 20;
const ROOM_FOR_EVENTS: u32 = 256 << 10;

/// A trace in progress; dropping the value ends it.
#[derive(Debug)]
pub struct Trace {
    trace: *mut c_void,
    loader: &'static Loader,
}

// SAFETY: a trace holds file descriptors and memory that no thread owns; mutation takes
// `&mut self`.
unsafe impl Send for Trace {}

impl Drop for Trace {
    fn drop(&mut self) {
        // SAFETY: `start` created the trace, and this is its last use.
        unsafe { (self.loader.end)(self.trace) }
    }
}

impl Trace {
    /// Compiles the program, loads it and attaches it to the sockets of these flows. Each flow has
    /// a number, which its records contain. Raising `interrupt` ends the compiler.
    ///
    /// # Errors
    /// There is no clang, the kernel lacks BTF or the tracepoints, or the privilege is missing.
    pub fn start(
        flows: &[(Place, u32)],
        detail: Detail,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        if !Path::new(BTF).exists() {
            return Err(Error::System(format!(
                "this kernel does not describe its structures: {BTF} is missing; it needs CONFIG_DEBUG_INFO_BTF"
            )));
        }
        let object = compiled(interrupt)?;
        let loader = loader()?;
        let places: Vec<u8> = flows
            .iter()
            .flat_map(|(place, flow)| key(place).into_iter().chain(flow.to_ne_bytes()))
            .collect();
        let watch = Watch {
            flows: Octets::of(&places),
            room: match detail {
                Detail::Events => ROOM_FOR_EVENTS,
                Detail::Segments => ROOM_FOR_SEGMENTS,
            },
            segments: u32::from(detail == Detail::Segments),
        };
        let mut trace = ptr::null_mut();
        let started = call_loader(|report| {
            // SAFETY: octets, report and `trace` are valid until the call returns.
            unsafe { (loader.trace)(Octets::of(&object), watch, &raw mut trace, report) }
        });
        match started.status {
            loader::DONE => Ok(Self { trace, loader }),
            _ if started.is_denied() => Err(Error::System(format!(
                "{PRIVILEGE}; {}",
                advice(&CAPABILITIES)
            ))),
            _ => Err(Error::Refused {
                file: NAME.to_owned(),
                message: started.reason(),
            }),
        }
    }

    /// The records since the last call, in order of time for each flow.
    pub fn take(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut take = |piece: &[u8]| records.extend(Record::of(piece));
        // SAFETY: `start` created the trace, and the sink is valid until the call returns.
        unsafe { (self.loader.take)(self.trace, Sink::to(&mut take)) }
        records
    }

    /// Number of records dropped because the ring was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        // SAFETY: `start` created the trace.
        unsafe { (self.loader.lost)(self.trace) }
    }

    /// The filter that passes to the program the segments that a socket receives after one of its
    /// sides is closed (`SO_ATTACH_BPF`).
    #[must_use]
    pub fn filter(&self) -> BorrowedFd<'_> {
        // SAFETY: `start` created the trace, which owns the file descriptor for its lifetime.
        unsafe { BorrowedFd::borrow_raw((self.loader.filter)(self.trace)) }
    }
}

/// `struct place`.
fn key(place: &Place) -> [u8; PLACE] {
    let mut key = [0; PLACE];
    key[..8].copy_from_slice(&place.namespace.to_ne_bytes());
    key[8..12].copy_from_slice(&u32::from(place.port).to_ne_bytes());
    key[12..].copy_from_slice(&u32::from(place.listens).to_ne_bytes());
    key
}

/// The object file. It is compiled once per process, because compilation takes longer than loading.
fn compiled(interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    static COMPILED: OnceLock<Mutex<Option<Vec<u8>>>> = OnceLock::new();
    let mut compiled = COMPILED
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(object) = &*compiled {
        return Ok(object.clone());
    }
    let object = compile::kernel_alone(NAME, TEXT, interrupt)?;
    *compiled = Some(object.clone());
    Ok(object)
}
