//! What a UDP socket knows beside its datagrams (socket(7)).

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    time::{Duration, SystemTime},
};

/// `SIOCGSTAMPNS` (`asm-generic/sockios.h`), whose structure is the C library's `timespec`.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
/// Places of `SO_MEMINFO`'s figures, and that of what was dropped (`linux/sock_diag.h`).
const MEMORY: usize = 9;
const DROPPED: usize = 8;

/// When the datagram that was read last had arrived. The first call switches the stamps on, and has none.
pub fn arrived(socket: &impl AsFd) -> io::Result<SystemTime> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the request writes one timespec, which is there.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCGSTAMPNS, &raw mut time) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    let (seconds, nanos) = (
        u64::try_from(time.tv_sec).unwrap_or(0),
        u64::try_from(time.tv_nsec).unwrap_or(0),
    );
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

/// Datagrams that the socket had no room for.
pub fn dropped(socket: &impl AsFd) -> io::Result<u64> {
    let mut figures = [0_u32; MEMORY];
    let mut len = libc::socklen_t::try_from(size_of_val(&figures)).expect("a small number");
    // SAFETY: the kernel writes at most `len` octets there.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(figures[DROPPED].into())
}
