//! What a UDP socket knows beside its datagrams (socket(7)).

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    time::{Duration, SystemTime},
};

/// `SIOCGSTAMPNS` (`asm-generic/sockios.h`), whose structure is the C library's `timespec`.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;

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
