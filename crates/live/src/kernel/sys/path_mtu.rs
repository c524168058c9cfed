//! Whether a socket of UDP fragments what it sends.

use std::{io, os::fd::AsFd};

use super::tcp_info::set;

/// Every datagram leaves whole, with "don't fragment", whatever is known of the path, as in the simulator: the kernel would
/// fragment those that a router has reported.
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
