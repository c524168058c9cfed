//! Packet sockets: whole frames from and to an interface (packet(7)).

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

/// Octets of `struct virtio_net_hdr` (`linux/virtio_net.h`) before every frame here. It marks
/// checksums that are not computed yet, in both directions.
pub const OFFLOAD_HEADER: usize = 10;

/// `struct tpacket_stats`.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    packets: u32,
    drops: u32,
}

/// Opens a socket that receives all frames arriving at an interface of the calling thread's
/// namespace, and none that leave it.
pub fn open(interface: &str) -> io::Result<OwnedFd> {
    let all = u16::try_from(libc::ETH_P_ALL)
        .expect("a number of 16 bits")
        .to_be();
    // Protocol 0, so that nothing is received before the socket is bound.
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: `socket` takes numbers and returns a new descriptor.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let name = CString::new(interface)?;
    // SAFETY: the name ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let index = i32::try_from(index).expect("interfaces are counted in 31 bits");
    set(&socket, libc::PACKET_VNET_HDR, &1_i32)?;
    set(&socket, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("a small number"),
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(&socket, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).expect("a small number"),
        sll_protocol: all,
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a `struct sockaddr_ll`, and its size is given.
    let answer = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_in_socklen(&address),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

/// Frames dropped by the socket since the last call.
pub fn drops(socket: &impl AsFd) -> io::Result<u64> {
    let mut statistics = Statistics::default();
    let mut len = size_of_in_socklen(&statistics);
    // SAFETY: the kernel writes a `struct tpacket_stats`, which has these two fields.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut len,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(statistics.drops.into())
}

fn size_of_in_socklen<T>(_: &T) -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("a small number")
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the options of this module read the type passed with them: an int, or a `struct
    // packet_mreq`.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_in_socklen(value),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
