//! The interface of a TCP that scripts drive.

use anabranch_core::units::Duration;
use anabranch_wire::{Ports, Version};

/// An hour: waiting costs nothing in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The figures that a kernel reports of a connection (`TCP_INFO`, tcp(7)). Our endpoint reports
/// more.
pub const KERNEL_FIGURES: [&str; 21] = [
    "tcpi_state",
    "tcpi_ca_state",
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_snd_mss",
    "tcpi_rtt",
    "tcpi_rttvar",
    "tcpi_rto",
    "tcpi_min_rtt",
    "tcpi_total_retrans",
    "tcpi_dsack_dups",
    "tcpi_unacked",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_notsent_bytes",
    "tcpi_data_segs_out",
    "tcpi_busy_time",
    "tcpi_rwnd_limited",
    "tcpi_sndbuf_limited",
    "timeouts",
];

/// Other fields of Linux's `struct tcp_info`, which no target reports: assertions on them are skipped.
pub(crate) const OTHER_FIGURES: [&str; 19] = [
    "tcpi_advmss",
    "tcpi_backoff",
    "tcpi_bytes_acked",
    "tcpi_bytes_received",
    "tcpi_bytes_retrans",
    "tcpi_bytes_sent",
    "tcpi_delivered",
    "tcpi_delivered_ce",
    "tcpi_delivery_rate",
    "tcpi_delivery_rate_app_limited",
    "tcpi_fackets",
    "tcpi_last_data_recv",
    "tcpi_last_data_sent",
    "tcpi_options",
    "tcpi_pacing_rate",
    "tcpi_probes",
    "tcpi_rcv_mss",
    "tcpi_reordering",
    "tcpi_retransmits",
];

/// A TCP that a script drives by calls and packets. Times count from the start of the script.
pub trait Target {
    /// Tolerance on the times of its packets.
    fn tolerance(&self) -> Duration {
        Duration::ZERO
    }
    /// Additional lateness of a timer of duration `wait`, beyond [`Self::tolerance`].
    fn lateness(&self, _wait: Duration) -> Duration {
        Duration::ZERO
    }
    /// Longest wait for a packet that may arrive at any time.
    fn patience(&self) -> Duration {
        PATIENCE
    }
    /// Maximum accepted difference between a figure and the value of an `==` assertion.
    fn slack(&self, _figure: &str) -> i64 {
        0
    }
    /// Sets an option of the script: `stack`, `mtu` (octets of the largest IPv4 packet), `cc`, or
    /// `transport.` followed by a switch.
    ///
    /// # Errors
    /// A message with the problem and the expected value.
    fn option(&mut self, name: &str, value: &str) -> Result<(), String>;
    /// Sets a kernel setting by its name (`net.ipv4.tcp_sack`).
    ///
    /// # Errors
    /// If the target does not have this setting, or not this value.
    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String>;
    /// Whether a kernel has this setting.
    fn knows(&self, _name: &str) -> bool {
        true
    }
    /// Takes a socket option that the script sets on a connection before it writes, ahead of the
    /// first event. A target that can set it at its time ignores this.
    fn announce(&mut self, _name: &str, _value: i64) {}
    /// Executes a socket call at `now`.
    ///
    /// # Errors
    /// If the target does not support the call. The result of the call itself is an [`Answer`].
    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String>;
    /// Addresses (without identification or label) and ports of packets to the target.
    fn towards(&self) -> (Version, Ports);
    /// Delivers an IP packet to the target at `now`.
    fn inject(&mut self, now: Duration, packet: &[u8]);
    /// Advances the time to `until`, or until a packet is sent, whichever is earlier.
    ///
    /// # Errors
    /// If the packets of the target cannot be captured any more.
    fn advance(&mut self, until: Duration) -> Result<(), String>;
    /// Returns the first packet that was sent and not yet taken, with its time.
    fn take_sent(&mut self) -> Option<(Duration, Vec<u8>)>;
    /// A figure of the connection or of the host by its name: `tcpi_…` as in Linux's `struct
    /// tcp_info`, or a counter of the target. `None` if the name is unknown.
    fn figure(&self, name: &str) -> Option<i64>;
    /// All names that [`Self::figure`] accepts, for messages.
    fn figures(&self) -> &'static [&'static str];
    /// Whether the target provides this figure. Assertions on other figures are skipped: a kernel
    /// does not report why it refused a segment.
    fn shows(&self, name: &str) -> bool {
        !OTHER_FIGURES.contains(&name)
    }
}

/// A socket call. Handles are values that the target returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Creates a socket.
    Socket,
    /// Binds a socket to its address.
    Bind(i64),
    /// Listens for connections.
    Listen(i64),
    /// Accepts a connection.
    Accept(i64),
    /// Opens a connection without blocking.
    Connect(i64),
    /// Reads at most this many octets.
    Read(i64, u32),
    /// Writes these octets.
    Write(i64, &'a [u8]),
    /// Closes the descriptor.
    Close(i64),
    /// Shuts down the sending direction.
    ShutdownWrite(i64),
    /// Shuts down the receiving direction.
    ShutdownRead(i64),
    /// Shuts down both directions.
    ShutdownBoth(i64),
    /// Reads a socket option by its name.
    GetOption(i64, &'a str),
    /// Sets a socket option by its name.
    SetOption(i64, &'a str, i64),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A number.
    Value(i64),
    /// Octets read.
    Octets(Vec<u8>),
    /// An error by its name, such as `EAGAIN`.
    Error(&'static str),
}
