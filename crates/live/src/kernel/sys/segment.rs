//! The segment size of a TCP socket (`TCP_MAXSEG`).

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use super::tcp_info::set;

/// The size that the socket announces or, connected, the size of its segments.
pub fn of(socket: impl AsFd) -> io::Result<i32> {
    let mut size: libc::c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("a small number");
    // SAFETY: the option is an int, whose address and size these are.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_MAXSEG,
            (&raw mut size).cast(),
            &raw mut len,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(size)
}

/// Sets the size that the socket announces, with its options' octets.
pub fn limit(socket: &impl AsFd, size: i32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, size)
}
