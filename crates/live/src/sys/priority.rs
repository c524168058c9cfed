//! How soon a thread runs once it has something to do.

use std::{io, num::NonZeroU64};

/// `struct sched_attr` (sched_setattr(2)).
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that the kernel takes, in nanoseconds (Linux 6.12: 0.1 ms).
const SLICE: u64 = 100_000;

/// The calling thread goes by the clock: it is woken as soon as it can be, without the right to a priority as far as
/// that goes. What is late for all that is written down by whoever calls this.
pub fn be_prompt() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _ = prefer(-19);
}

/// The calling thread gets `nice`, and a short turn at a time: the fair scheduler then lets it run before threads with longer
/// ones. Kernels before 6.12 take the first alone.
pub fn prefer(nice: i32) -> io::Result<()> {
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>()).expect("a small number"),
        policy: u32::try_from(libc::SCHED_OTHER).expect("a small number"),
        flags: 0,
        nice,
        priority: 0,
        runtime: SLICE,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the system call reads the structure, whose size is in it.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            0,
            std::ptr::from_ref(&attributes),
            0,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
