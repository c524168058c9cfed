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

#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const SIZE: u32 = size_of::<Attributes>() as u32;

/// The shortest slice that the kernel takes, in nanoseconds (Linux 6.12: 0.1 ms).
const SLICE: u64 = 100_000;

/// The calling thread goes by the clock: it is woken as soon as it can be, without the right to a priority as far as
/// that goes. What is late for all that is written down by whoever calls this.
pub fn be_prompt() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _ = prefer(-19);
}

/// The calling thread gets `nice`, and a short turn at a time: the fair scheduler then lets it run before threads with longer
/// ones. Kernels before 6.12 take the first alone. Who may not have `nice` gets the short turn with the one that it has.
///
/// # Errors
/// If the calling thread may not have `nice`.
pub fn prefer(nice: i32) -> io::Result<()> {
    let told = set(nice);
    if let Err(error) = &told
        && error.raw_os_error() == Some(libc::EPERM)
    {
        // Before, nothing of it was set. A right to it is not needed for what stays as it is.
        set(present()?)?;
    }
    told
}

/// What the calling thread has.
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
        // SAFETY: the system call writes the structure, whose size it is told.
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

    /// Fails where a thread without the right to a priority does not get the short turn either. A kernel that knows no
    /// slices tells of none, before and after.
    #[test]
    fn who_may_have_no_priority_has_short_turns() {
        /// Anybody without rights.
        const NOBODY: libc::c_long = 65_534;
        let thread = std::thread::spawn(|| {
            // SAFETY: of this thread alone; the library's function is for all of them.
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
