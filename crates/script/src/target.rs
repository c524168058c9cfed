//! The interface of a TCP that scripts drive.

use anabranch_core::units::Duration;
use anabranch_wire::{Ports, Version};

use crate::syntax::{Control, EpollOperation, OptionValue, Queue};

/// An hour: waiting costs nothing in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The figures that a kernel reports of a connection (`TCP_INFO`, tcp(7)). Our endpoint reports
/// more.
pub const KERNEL_FIGURES: [&str; 27] = [
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
    "tcpi_options",
    "tcpi_delivered",
    "tcpi_advmss",
    "tcpi_backoff",
    "tcpi_probes",
    "tcpi_reordering",
    "timeouts",
];

/// Other fields of Linux's `struct tcp_info`, which no target reports: assertions on them are skipped.
pub(crate) const OTHER_FIGURES: [&str; 14] = [
    "tcpi_bytes_acked",
    "tcpi_bytes_received",
    "tcpi_bytes_retrans",
    "tcpi_bytes_sent",
    "tcpi_delivered_ce",
    "tcpi_delivery_rate",
    "tcpi_delivery_rate_app_limited",
    "tcpi_fackets",
    "tcpi_last_data_recv",
    "tcpi_last_data_sent",
    "tcpi_pacing_rate",
    "tcpi_rcv_mss",
    "tcpi_reord_seen",
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
    /// Whether the target has this setting, so that a command that sets it succeeds.
    fn has(&self, name: &str) -> bool;
    /// Takes a socket option that the script sets on a connection before it writes, ahead of the
    /// first event. A target that can set it at its time ignores this.
    fn announce(&mut self, _name: &str, _value: i64) {}
    /// Discards the cookies of Fast Open that connections have learned.
    fn forget_cookies(&mut self);
    /// Executes a socket call at `now`.
    ///
    /// # Errors
    /// If the target does not support the call. The result of the call itself is an [`Answer`].
    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String>;
    /// The number of the connection that packets, figures and calls are about: it changes with each
    /// socket that listens or connects.
    fn connection(&self) -> u64;
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

/// Data to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send<'a> {
    /// The socket.
    pub handle: i64,
    /// The octets; `None` for a buffer at `NULL`.
    pub octets: Option<&'a [u8]>,
    /// `MSG_…`
    pub flags: u32,
    /// The address is `AF_UNSPEC`.
    pub to_nobody: bool,
    /// The application waits until all is taken.
    pub waits: bool,
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
    /// Reads at most this many octets, with `MSG_…` flags.
    Read(i64, u32, u32),
    /// The same, with flags and control messages.
    ReadMessage(i64, u32, u32),
    /// Sends.
    Send(Send<'a>),
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
    SetOption(i64, &'a str, &'a OptionValue),
    /// Queries the octets of a queue.
    QueueSize(i64, Queue),
    /// Queries which of these events (`POLL…`), or errors, there are.
    Poll(i64, u32),
    /// Creates a set of watched sockets.
    EpollCreate,
    /// Changes a set: the set, the operation, the socket and its events (`EPOLL…`).
    EpollControl(i64, EpollOperation, i64, u32),
    /// Takes the next event of a set.
    EpollWait(i64),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A number.
    Value(i64),
    /// The call has taken this many octets, and returns when the connection is open.
    Started(i64),
    /// Octets read.
    Octets(Vec<u8>),
    /// Octets, flags (`MSG_…`) and control messages.
    Message(Vec<u8>, u32, Vec<Control>),
    /// Events (`EPOLL…`) of a socket; `None` if there are none.
    Event(Option<(u32, i64)>),
    /// An error by its name, such as `EAGAIN`.
    Error(&'static str),
}
