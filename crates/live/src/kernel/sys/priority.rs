//! Scheduling latency of threads.

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

#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const SIZE: u32 = size_of::<Attributes>() as u32;

/// The shortest slice that the kernel accepts, in nanoseconds (Linux 6.12: 0.1 ms).
const SLICE: u64 = 100_000;

/// Makes the calling thread wake as early as possible, with the smallest timer slack and a high
/// priority. Continues without the priority if it is not permitted; the caller records the
/// remaining lateness.
pub fn be_prompt() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _ = prefer(-19);
}

/// Gives the calling thread nice value `nice` and a short slice: the fair scheduler runs it before
/// threads with longer slices. Kernels before 6.12 ignore the slice. A thread without the right to
/// `nice` gets the short slice with its present nice value.
///
/// # Errors
/// If the calling thread may not have `nice`.
pub fn prefer(nice: i32) -> io::Result<()> {
    let told = set(nice);
    if let Err(error) = &told
        && error.raw_os_error() == Some(libc::EPERM)
    {
        // The kernel refused both values. The present nice value needs no right.
        set(present()?)?;
    }
    told
}

/// The present nice value.
fn present() -> io::Result<i32> {
    rustix::process::getpriority_process(None).map_err(Into::into)
}

fn set(nice: i32) -> io::Result<()> {
    let attributes = Attributes {
        size: SIZE,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Nice value and slice of the calling thread.
    fn of_this_thread() -> (i32, u64) {
        let mut attributes = Attributes {
            size: SIZE,
            policy: 0,
            flags: 0,
            nice: 0,
            priority: 0,
            runtime: 0,
            deadline: 0,
            period: 0,
        };
        // SAFETY: the system call writes the structure, whose size is passed.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                0,
                std::ptr::from_mut(&mut attributes),
                SIZE,
                0,
            )
        };
        assert_eq!(answer, 0, "{}", io::Error::last_os_error());
        (attributes.nice, attributes.runtime)
    }

    /// Detects a thread that gets no short slice because it has no right to a priority. A kernel
    /// without slices reports none, before and after.
    #[test]
    fn a_thread_without_rights_gets_a_short_slice() {
        /// A user identifier without rights.
        const NOBODY: libc::c_long = 65_534;
        let thread = std::thread::spawn(|| {
            // SAFETY: the system call affects this thread alone; the library's function affects all
            // threads.
            unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            let (nice, _) = of_this_thread();
            if prefer(nice - 10).is_ok() {
                eprintln!("SKIPPED: everybody may have a priority here");
                return;
            }
            let told = of_this_thread();
            set(nice).expect("it has that");
            assert_eq!(told, of_this_thread());
            assert_eq!(told.0, nice);
        });
        thread.join().expect("as it should be");
    }
}
