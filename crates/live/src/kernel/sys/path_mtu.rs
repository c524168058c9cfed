//! Fragmentation of the datagrams of a UDP socket.

use std::{io, os::fd::AsFd};

use super::tcp_info::set;

/// Sends every datagram unfragmented, with "don't fragment", whatever path MTU is known, as in the
/// simulator: the kernel would fragment datagrams to a destination for which a router has reported
/// a smaller MTU.
pub fn ignore(socket: &impl AsFd, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        set(
            socket,
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        )
    } else {
        set(
            socket,
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        )
    }
}
