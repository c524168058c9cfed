//! The functions that the loader exports, for the engine that calls them and for the library
//! itself, which includes this file.

use std::{ffi::c_void, os::fd::RawFd, ptr, slice};

/// Changes with any change of this file. Only this number is read of a table of another version.
pub const VERSION: u32 = 3;

/// Result of a call.
pub type Status = u32;
/// Success.
pub const DONE: Status = 0;
/// The object file has no `struct tcp_congestion_ops`.
pub const NO_CONTROL: Status = 1;
/// The kernel returned `EPERM`.
pub const DENIED: Status = 2;
/// libbpf or the kernel rejected the call.
pub const REFUSED: Status = 3;

/// The caller's octets; valid until the call returns.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Octets {
    start: *const u8,
    len: usize,
}

impl Octets {
    /// The octets of a slice.
    #[must_use]
    pub const fn of(slice: &[u8]) -> Self {
        Self {
            start: slice.as_ptr(),
            len: slice.len(),
        }
    }

    /// The slice.
    ///
    /// # Safety
    /// The call that passed the octets has not returned.
    #[must_use]
    pub const unsafe fn slice<'a>(self) -> &'a [u8] {
        // SAFETY: `of` is the only constructor, and the caller promises that its slice is still
        // borrowed.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// Receiver of the octets that a call writes, in pieces.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sink {
    context: *mut c_void,
    push: unsafe extern "C" fn(*mut c_void, Octets),
}

impl Sink {
    /// Passes each piece to `take`. The sink is valid while `take` is borrowed.
    pub const fn to<F: FnMut(&[u8])>(take: &mut F) -> Self {
        unsafe extern "C" fn push<F: FnMut(&[u8])>(context: *mut c_void, octets: Octets) {
            // SAFETY: the context is the `F` of `to`, borrowed for this one sink, and the octets
            // belong to a call.
            unsafe { (*context.cast::<F>())(octets.slice()) }
        }
        Self {
            context: ptr::from_mut(take).cast(),
            push: push::<F>,
        }
    }

    /// Writes one piece.
    ///
    /// # Safety
    /// The call that passed the sink has not returned, and no other thread writes to it.
    pub unsafe fn write(self, piece: &[u8]) {
        // SAFETY: as promised.
        unsafe { (self.push)(self.context, Octets::of(piece)) }
    }
}

/// Output of a call that may fail: libbpf's messages, and the text of the error.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Report {
    pub said: Sink,
    pub error: Sink,
}

/// The flows of a trace and the size of its ring.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// `struct place` and the flow's number, 20 octets per flow.
    pub flows: Octets,
    /// Size of the ring in octets.
    pub room: u32,
    /// Nonzero: trace every segment.
    pub segments: u32,
}

/// Octets of one of [`Watch::flows`].
pub const FLOW: usize = PLACE + 4;
/// Octets of `struct place`.
pub const PLACE: usize = 16;

/// Initial values of a queue program's maps.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct QueueMaps {
    /// `aqm_config`.
    pub config: Octets,
    /// `aqm_about`.
    pub about: Octets,
}

/// The table that the library exports as `ANABRANCH_LOADER`.
#[repr(C)]
#[derive(Debug)]
pub struct Loader {
    pub version: u32,
    /// Writes the name in an object file's `struct tcp_congestion_ops`.
    pub name: unsafe extern "C" fn(object: Octets, name: Sink) -> Status,
    /// Loads a control under a name of fewer than 16 octets.
    pub attach: unsafe extern "C" fn(
        object: Octets,
        name: Octets,
        made: *mut *mut c_void,
        report: Report,
    ) -> Status,
    /// Pins a control to a file.
    pub pin: unsafe extern "C" fn(attached: *mut c_void, path: Octets, report: Report) -> Status,
    /// Frees a control; it is removed from the kernel unless it is pinned.
    pub detach: unsafe extern "C" fn(attached: *mut c_void),
    /// Starts a trace.
    pub trace: unsafe extern "C" fn(
        object: Octets,
        watch: Watch,
        made: *mut *mut c_void,
        report: Report,
    ) -> Status,
    /// Writes each record since the last call, one per piece.
    pub take: unsafe extern "C" fn(trace: *mut c_void, records: Sink),
    /// Number of records dropped because the ring was full.
    pub lost: unsafe extern "C" fn(trace: *const c_void) -> u64,
    /// The program for `SO_ATTACH_BPF`; the trace owns the file descriptor.
    pub filter: unsafe extern "C" fn(trace: *const c_void) -> RawFd,
    /// Ends a trace.
    pub end: unsafe extern "C" fn(trace: *mut c_void),
    /// Loads a queue program, writes its configuration and description, and attaches it to the
    /// egress of a device, unless `device` is 0.
    pub queue_attach: unsafe extern "C" fn(
        object: Octets,
        maps: QueueMaps,
        device: u32,
        made: *mut *mut c_void,
        report: Report,
    ) -> Status,
    /// The file descriptor of the link, which the queue owns; -1 if it is not attached.
    pub queue_link: unsafe extern "C" fn(queue: *const c_void) -> RawFd,
    /// The number of the queue's program.
    pub queue_program: unsafe extern "C" fn(queue: *const c_void) -> u32,
    /// Runs the program on a frame with a context (`struct __sk_buff`), and returns its result;
    /// `i32::MIN` if it cannot run.
    pub queue_run:
        unsafe extern "C" fn(queue: *const c_void, frame: Octets, context: Octets) -> i32,
    /// Frees a queue; it is detached unless another process or a file holds its link.
    pub queue_end: unsafe extern "C" fn(queue: *mut c_void),
    /// Writes the numbers of program and link of each program at the egress of a device, 8 octets
    /// each.
    pub queue_find: unsafe extern "C" fn(device: u32, found: Sink, report: Report) -> Status,
    /// Writes the first value of the program's map of this name, or nothing if there is none.
    pub queue_read:
        unsafe extern "C" fn(program: u32, map: Octets, value: Sink, report: Report) -> Status,
    /// Replaces the first value of the program's map of this name.
    pub queue_write:
        unsafe extern "C" fn(program: u32, map: Octets, value: Octets, report: Report) -> Status,
    /// Writes the program's run time in ns and its number of runs, 16 octets.
    pub queue_cost: unsafe extern "C" fn(program: u32, cost: Sink, report: Report) -> Status,
    /// Pins a link to a file.
    pub queue_pin: unsafe extern "C" fn(link: u32, path: Octets, report: Report) -> Status,
    /// Writes the number of the link that a file holds, and that of its device, 4 octets each; the
    /// device is 0 if it is gone.
    pub queue_pinned: unsafe extern "C" fn(path: Octets, found: Sink, report: Report) -> Status,
    /// Detaches a link, also if another process holds it.
    pub queue_detach: unsafe extern "C" fn(link: u32, report: Report) -> Status,
}
