//! Parts of packetdrill's language that this subset does not have, for messages that say so.

/// Options of packetdrill's command line, which a script may also begin with.
pub(super) const OPTIONS: [&str; 15] = [
    "code_command",
    "code_format",
    "code_sockopt",
    "define",
    "dry_run",
    "init_scripts",
    "is_anyip",
    "mss",
    "netdev_ip",
    "no_checksum",
    "so_filename",
    "so_flags",
    "speed",
    "udp_encaps",
    "verbose",
];

/// Socket calls.
pub(super) const CALLS: [&str; 9] = [
    "cap_set",
    "getsockname",
    "open",
    "pipe",
    "psp_rx_assoc",
    "psp_tx_assoc",
    "sendfile",
    "setxattr",
    "splice",
];

/// Packets other than plain TCP segments.
pub(super) const PACKETS: [&str; 6] = ["gre", "icmp", "ipv4", "ipv6", "mpls", "udp"];

/// TCP options.
pub(super) const ITEMS: [&str; 6] = [
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
