//! Parts of packetdrill's language that this subset does not have, for messages that say so.

/// Options of packetdrill's command line, which a script may also begin with.
pub(super) const OPTIONS: [&str; 26] = [
    "bind_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "connect_port",
    "define",
    "dry_run",
    "gateway_ip",
    "init_scripts",
    "ip_version",
    "is_anyip",
    "local_ip",
    "mss",
    "netdev_ip",
    "netmask_ip",
    "no_checksum",
    "non_fatal",
    "remote_ip",
    "send_omit_free",
    "so_filename",
    "so_flags",
    "speed",
    "tcp_ts_ecr_scaled",
    "tcp_ts_tick_usecs",
    "udp_encaps",
    "verbose",
];

/// Socket calls.
pub(super) const CALLS: [&str; 18] = [
    "cap_set",
    "epoll_create",
    "epoll_ctl",
    "epoll_wait",
    "getsockname",
    "getsockopt",
    "ioctl",
    "open",
    "pipe",
    "poll",
    "readv",
    "recvfrom",
    "recvmsg",
    "sendfile",
    "sendmsg",
    "sendto",
    "splice",
    "writev",
];

/// Packets other than plain TCP segments.
pub(super) const PACKETS: [&str; 6] = ["gre", "icmp", "ipv4", "ipv6", "mpls", "udp"];

/// TCP options.
pub(super) const ITEMS: [&str; 8] = [
    "FO",
    "FOEXP",
    "add_address",
    "dss",
    "md5",
    "mp_capable",
    "mp_join",
    "remove_address",
];

/// Words that begin a statement of Python.
pub(super) const PYTHON: [&str; 9] = [
    "def", "for", "from", "global", "if", "import", "print", "sys", "while",
];
