//! A table of host names for one program: mounted over `/etc/hosts` in the program's mount
//! namespace (mount_namespaces(7)), so that no other process sees it and it vanishes with the
//! program.

use std::{ffi::CStr, io, ptr};

const TABLE: &CStr = c"/etc/hosts";
/// Temporary mount point of the table's file system. Its former content is visible again
/// afterwards.
const ASIDE: &CStr = c"/proc";
const WRITTEN: &CStr = c"/proc/hosts";

/// Gives the table to the calling process. Safe between fork and exec.
pub fn give(table: &[u8]) -> io::Result<()> {
    // SAFETY: system calls on constant, zero-terminated names; a process of one thread gets a mount
    // namespace.
    unsafe {
        done(libc::access(TABLE.as_ptr(), libc::F_OK))?;
        done(libc::unshare(libc::CLONE_NEWNS))?;
        // Mounts made here do not propagate outside; mounts made outside still appear here.
        mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        mount(Some(c"tmpfs"), ASIDE, Some(c"tmpfs"), flags)?;
        let put = write(table).and_then(|()| mount(Some(WRITTEN), TABLE, None, libc::MS_BIND));
        done(libc::umount2(ASIDE.as_ptr(), libc::MNT_DETACH))?;
        put
    }
}

fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let or_null = |name: Option<&CStr>| name.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: the names end with zero, and there are no options.
    done(unsafe {
        let (source, kind) = (or_null(source), or_null(kind));
        libc::mount(source, target.as_ptr(), kind, flags, ptr::null())
    })
}

fn write(table: &[u8]) -> io::Result<()> {
    let mode = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: system calls on a constant name, an open descriptor and valid memory.
    unsafe {
        let file = libc::open(WRITTEN.as_ptr(), mode, 0o644);
        done(file)?;
        // Any user's program can read the table, whatever the umask is.
        let readable = done(libc::fchmod(file, 0o644));
        let written = libc::write(file, table.as_ptr().cast(), table.len());
        libc::close(file);
        readable?;
        if usize::try_from(written) == Ok(table.len()) {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
