//! Socket options of behaviour scripts by their names.

/// An option that is a number: its name, its level and its number.
const NUMBERS: [(&str, i32, i32); 27] = [
    ("SO_REUSEADDR", libc::SOL_SOCKET, libc::SO_REUSEADDR),
    ("SO_REUSEPORT", libc::SOL_SOCKET, libc::SO_REUSEPORT),
    ("SO_RCVBUF", libc::SOL_SOCKET, libc::SO_RCVBUF),
    ("SO_SNDBUF", libc::SOL_SOCKET, libc::SO_SNDBUF),
    ("SO_KEEPALIVE", libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    ("SO_ZEROCOPY", libc::SOL_SOCKET, libc::SO_ZEROCOPY),
    ("SO_MARK", libc::SOL_SOCKET, libc::SO_MARK),
    ("SO_ERROR", libc::SOL_SOCKET, libc::SO_ERROR),
    ("SO_PRIORITY", libc::SOL_SOCKET, libc::SO_PRIORITY),
    ("IP_TOS", libc::SOL_IP, libc::IP_TOS),
    ("IP_MTU_DISCOVER", libc::SOL_IP, libc::IP_MTU_DISCOVER),
    ("IP_RECVERR", libc::SOL_IP, libc::IP_RECVERR),
    ("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY),
    ("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    ("TCP_CORK", libc::IPPROTO_TCP, libc::TCP_CORK),
    ("TCP_KEEPIDLE", libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    ("TCP_KEEPINTVL", libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    ("TCP_KEEPCNT", libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    ("TCP_SYNCNT", libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    ("TCP_QUICKACK", libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    (
        "TCP_USER_TIMEOUT",
        libc::IPPROTO_TCP,
        libc::TCP_USER_TIMEOUT,
    ),
    ("TCP_FASTOPEN", libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    ("TCP_NOTSENT_LOWAT", libc::IPPROTO_TCP, 25),
    ("TCP_FASTOPEN_CONNECT", libc::IPPROTO_TCP, 30),
    ("TCP_FASTOPEN_NO_COOKIE", libc::IPPROTO_TCP, 34),
    ("TCP_INQ", libc::IPPROTO_TCP, 36),
    (
        "TCP_DEFER_ACCEPT",
        libc::IPPROTO_TCP,
        libc::TCP_DEFER_ACCEPT,
    ),
];

/// An option that is octets.
const TEXTS: [(&str, i32, i32); 2] = [
    ("TCP_CONGESTION", libc::IPPROTO_TCP, libc::TCP_CONGESTION),
    ("TCP_FASTOPEN_KEY", libc::IPPROTO_TCP, 33),
];

/// Level and number of an option that is a number.
pub(super) fn number(name: &str) -> Result<(i32, i32), String> {
    find(&NUMBERS, name)
}

/// Level and number of an option that is octets.
pub(super) fn text(name: &str) -> Result<(i32, i32), String> {
    find(&TEXTS, name)
}

fn find(options: &[(&str, i32, i32)], name: &str) -> Result<(i32, i32), String> {
    let found = options.iter().find(|(known, ..)| *known == name);
    found
        .map(|(_, level, number)| (*level, *number))
        .ok_or_else(|| format!("there is no socket option {name} here"))
}
