//! Constants of the socket interface by their names (`bits/socket.h`, `sys/epoll.h`, `poll.h`,
//! `linux/errqueue.h`, `linux/net_tstamp.h`).

/// Receives or sends without blocking.
pub const MSG_DONTWAIT: u32 = 0x40;
/// Leaves the data in the receive queue.
pub const MSG_PEEK: u32 = 0x2;
/// Returns the length even if the buffer is smaller; discards data of a TCP.
pub const MSG_TRUNC: u32 = 0x20;
/// Ends a record.
pub const MSG_EOR: u32 = 0x80;
/// Waits until the buffer is full.
pub const MSG_WAITALL: u32 = 0x100;
/// Reads the error queue.
pub const MSG_ERRQUEUE: u32 = 0x2000;
/// Sends no signal if the connection is broken.
pub const MSG_NOSIGNAL: u32 = 0x4000;
/// More data follows.
pub const MSG_MORE: u32 = 0x8000;
/// Sends without a copy, and notifies when the memory is free.
pub const MSG_ZEROCOPY: u32 = 0x400_0000;
/// Opens the connection with the data (RFC 7413).
pub const MSG_FASTOPEN: u32 = 0x2000_0000;

/// Data can be read.
pub const POLLIN: u32 = 0x1;
/// Data can be written.
pub const POLLOUT: u32 = 0x4;
/// There is an error.
pub const POLLERR: u32 = 0x8;
/// Both directions are closed.
pub const POLLHUP: u32 = 0x10;
/// The peer has closed its direction.
pub const POLLRDHUP: u32 = 0x2000;
/// Each event is reported once.
pub const EPOLLET: u32 = 1 << 31;
/// One event is reported.
pub const EPOLLONESHOT: u32 = 1 << 30;
/// One waiter is woken.
pub const EPOLLEXCLUSIVE: u32 = 1 << 28;

/// `tcpi_options`: timestamps are used.
pub const TCPI_OPT_TIMESTAMPS: i64 = 1;
/// SACK is used.
pub const TCPI_OPT_SACK: i64 = 2;
/// Window scaling is used.
pub const TCPI_OPT_WSCALE: i64 = 4;
/// ECN is used.
pub const TCPI_OPT_ECN: i64 = 8;
/// The peer acknowledged data in the SYN, or this end accepted it.
pub const TCPI_OPT_SYN_DATA: i64 = 32;

/// Every constant that a call or an assertion may name.
pub(crate) const ALL: [(&str, i64); 80] = [
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", TCPI_OPT_TIMESTAMPS),
    ("TCPI_OPT_SACK", TCPI_OPT_SACK),
    ("TCPI_OPT_WSCALE", TCPI_OPT_WSCALE),
    ("TCPI_OPT_ECN", TCPI_OPT_ECN),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", TCPI_OPT_SYN_DATA),
    ("MSG_OOB", 0x1),
    ("MSG_PEEK", MSG_PEEK as i64),
    ("MSG_DONTROUTE", 0x4),
    ("MSG_CTRUNC", 0x8),
    ("MSG_TRUNC", MSG_TRUNC as i64),
    ("MSG_DONTWAIT", MSG_DONTWAIT as i64),
    ("MSG_EOR", MSG_EOR as i64),
    ("MSG_WAITALL", MSG_WAITALL as i64),
    ("MSG_ERRQUEUE", MSG_ERRQUEUE as i64),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL as i64),
    ("MSG_MORE", MSG_MORE as i64),
    ("MSG_ZEROCOPY", MSG_ZEROCOPY as i64),
    ("MSG_FASTOPEN", MSG_FASTOPEN as i64),
    ("POLLIN", POLLIN as i64),
    ("POLLPRI", 0x2),
    ("POLLOUT", POLLOUT as i64),
    ("POLLERR", POLLERR as i64),
    ("POLLHUP", POLLHUP as i64),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLWRNORM", 0x100),
    ("POLLRDHUP", POLLRDHUP as i64),
    ("EPOLLIN", POLLIN as i64),
    ("EPOLLPRI", 0x2),
    ("EPOLLOUT", POLLOUT as i64),
    ("EPOLLERR", POLLERR as i64),
    ("EPOLLHUP", POLLHUP as i64),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLRDHUP", POLLRDHUP as i64),
    ("EPOLLET", EPOLLET as i64),
    ("EPOLLONESHOT", EPOLLONESHOT as i64),
    ("EPOLLEXCLUSIVE", EPOLLEXCLUSIVE as i64),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("SOL_IP", 0),
    ("SOL_SOCKET", 1),
    ("SOL_TCP", 6),
    ("IPPROTO_TCP", 6),
    ("SOL_IPV6", 41),
    ("IP_RECVERR", 11),
    ("IPV6_RECVERR", 25),
    ("TCP_CM_INQ", 36),
    // Defined on packetdrill's command line by the programs that run its scripts over IPv4.
    ("CMSG_LEVEL_IP", 0),
    ("CMSG_TYPE_RECVERR", 11),
    ("SO_EE_ORIGIN_ZEROCOPY", 5),
    ("SO_EE_ORIGIN_TIMESTAMPING", 4),
    ("SO_EE_CODE_ZEROCOPY_COPIED", 1),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_PROBE", 3),
    ("SIOCINQ", 0x541b),
    ("FIONREAD", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("TIOCOUTQ", 0x5411),
    ("NULL", 0),
];

/// The value of a constant.
pub(crate) fn value_of(name: &str) -> Option<i64> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// The names of all constants whose name begins with `prefix`, for messages.
pub(crate) fn names(prefix: &str) -> Vec<&'static str> {
    let names = ALL.iter().map(|(name, _)| *name);
    names.filter(|name| name.starts_with(prefix)).collect()
}
