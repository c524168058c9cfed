//! The interface of a TCP that scripts drive.

use anabranch_core::units::Duration;
use anabranch_wire::{Ports, Version};

/// An hour: waiting costs nothing in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The figures that a kernel reports of a connection (`TCP_INFO`, tcp(7)). Our endpoint reports
/// more.
pub const KERNEL_FIGURES: [&str; 11] = [
    "tcpi_state",
    "tcpi_ca_state",
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_rtt",
    "tcpi_rttvar",
    "tcpi_rto",
    "tcpi_min_rtt",
    "tcpi_total_retrans",
    "tcpi_dsack_dups",
    "timeouts",
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
    fn sysctl(&mut self, name: &str, value: i64) -> Result<(), String>;
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
    fn shows(&self, _name: &str) -> bool {
        true
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
