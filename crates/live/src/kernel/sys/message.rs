//! Socket calls of behaviour scripts without a safe wrapper: `recvmsg` with control messages,
//! socket options by number, queue sizes, and sends from a buffer at `NULL`.

use std::{
    io,
    net::SocketAddrV4,
    os::fd::{AsFd, AsRawFd},
};

/// `MSG_ZEROCOPY` notifications and `TCP_INQ` in the control messages of a `recvmsg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Octets that remain to be read.
    Unread(i32),
    /// Calls whose memory is free.
    ZeroCopy {
        first: u32,
        last: u32,
        was_copied: bool,
    },
    /// Another message: its level and its type.
    Other(i32, i32),
}

/// The result of `recvmsg`.
#[derive(Debug)]
pub struct Received {
    pub octets: Vec<u8>,
    pub flags: i32,
    pub notes: Vec<Note>,
}

/// `struct sock_extended_err` (`linux/errqueue.h`), as far as it is read.
const ERROR_SIZE: usize = 16;
const ORIGIN_ZEROCOPY: u8 = 5;
const TCP_CM_INQ: i32 = 36;

fn result(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Receives with control messages.
pub fn receive(socket: &impl AsFd, most: usize, flags: i32) -> io::Result<Received> {
    let mut octets = vec![0_u8; most];
    // Control messages have the alignment of their length field.
    let mut control = [0_u64; 64];
    let mut buffer = libc::iovec {
        iov_base: octets.as_mut_ptr().cast(),
        iov_len: octets.len(),
    };
    // SAFETY: all zeros are a message without buffers.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut buffer;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header has the addresses and sizes of the buffers above, which live longer.
    let answer = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, flags) };
    octets.truncate(result(answer)?);
    let mut notes = Vec::new();
    // SAFETY: the kernel has written the messages and their size.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !next.is_null() {
        // SAFETY: the pointer is that of a message within the buffer.
        let message = unsafe { next.read_unaligned() };
        // SAFETY: as above; the data follows the message's header.
        let start = unsafe { libc::CMSG_DATA(next) };
        // SAFETY: the length of a message without data.
        let empty = unsafe { libc::CMSG_LEN(0) } as usize;
        let len = (message.cmsg_len as usize).saturating_sub(empty);
        // SAFETY: the kernel has written `len` octets of data there.
        let data = unsafe { std::slice::from_raw_parts(start, len) };
        notes.push(note(message.cmsg_level, message.cmsg_type, data));
        // SAFETY: both are of the message that the kernel has written.
        next = unsafe { libc::CMSG_NXTHDR(&raw const header, next) };
    }
    Ok(Received {
        octets,
        flags: header.msg_flags,
        notes,
    })
}

fn note(level: i32, kind: i32, data: &[u8]) -> Note {
    let word = |at: usize| {
        let octets = data[at..at + 4].try_into().expect("four octets");
        u32::from_ne_bytes(octets)
    };
    match (level, kind) {
        (libc::IPPROTO_TCP, TCP_CM_INQ) if data.len() >= 4 => Note::Unread(word(0).cast_signed()),
        (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            if data.len() >= ERROR_SIZE && data[4] == ORIGIN_ZEROCOPY =>
        {
            Note::ZeroCopy {
                first: word(8),
                last: word(12),
                was_copied: data[6] == 1,
            }
        }
        _ => Note::Other(level, kind),
    }
}

/// Where data is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The peer of the connection.
    Peer,
    /// An address of no family (`AF_UNSPEC`).
    Nobody,
    /// An address to connect to.
    Address(SocketAddrV4),
}

/// Sends `octets`, or as many from `NULL`.
pub fn send_to(
    socket: &impl AsFd,
    octets: Result<&[u8], usize>,
    flags: i32,
    to: Destination,
) -> io::Result<usize> {
    let (start, len) = match octets {
        Ok(octets) => (octets.as_ptr().cast(), octets.len()),
        Err(len) => (std::ptr::null(), len),
    };
    // SAFETY: all zeros are an address without a family (`AF_UNSPEC`).
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    if let Destination::Address(to) = to {
        address.sin_family = libc::sa_family_t::try_from(libc::AF_INET).expect("a small number");
        address.sin_port = to.port().to_be();
        address.sin_addr.s_addr = u32::from(*to.ip()).to_be();
    }
    let size = match to {
        Destination::Peer => 0,
        _ => size_of::<libc::sockaddr_in>(),
    };
    let size = libc::socklen_t::try_from(size).expect("a small number");
    let place: *const libc::sockaddr_in = match to {
        Destination::Peer => std::ptr::null(),
        _ => &raw const address,
    };
    // SAFETY: the kernel reads `len` octets at `start`, and answers `EFAULT` at `NULL`; the address
    // and its size are those above.
    let answer = unsafe {
        libc::sendto(
            socket.as_fd().as_raw_fd(),
            start,
            len,
            flags,
            place.cast(),
            size,
        )
    };
    result(answer)
}

/// Sets an option of the socket to `value`.
pub fn set_option(socket: &impl AsFd, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads the octets of `value`.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            libc::socklen_t::try_from(value.len()).expect("a small number"),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The number that an option of the socket has.
pub fn option(socket: &impl AsFd, level: i32, option: i32) -> io::Result<i32> {
    let mut value: libc::c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("a small number");
    // SAFETY: the option is an int, whose address and size these are.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}

/// Octets that can be read (`SIOCINQ`), or that are not acknowledged (`SIOCOUTQ`).
pub fn queue_size(socket: &impl AsFd, is_received: bool) -> io::Result<i32> {
    let request = if is_received {
        libc::FIONREAD
    } else {
        libc::TIOCOUTQ
    };
    let mut octets: libc::c_int = 0;
    // SAFETY: the request writes an int, whose address this is.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), request as _, &raw mut octets) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(octets)
}
