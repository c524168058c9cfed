//! What a script drives.

use anabranch_core::units::Duration;
use anabranch_wire::{Ports, Version};

/// An hour, which costs nothing in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The figures that a kernel tells of a connection (`TCP_INFO`, tcp(7)); our endpoint tells them and more.
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

/// A TCP that is called, spoken to, and listened to. Times count from the start of the script.
pub trait Target {
    /// How late or early its packets may be.
    fn tolerance(&self) -> Duration {
        Duration::ZERO
    }
    /// How much later than after `wait` a timer of its may go off, beyond [`Self::tolerance`].
    fn lateness(&self, _wait: Duration) -> Duration {
        Duration::ZERO
    }
    /// How long a packet is waited for that may come whenever.
    fn patience(&self) -> Duration {
        PATIENCE
    }
    /// How far a figure may be from the number that it is said to be equal to.
    fn slack(&self, _figure: &str) -> i64 {
        0
    }
    /// An option of the script: `stack`, `mtu` (octets of the largest IPv4 packet), `cc`, or
    /// `transport.` and a switch. Says what is wrong with it, if anything.
    ///
    /// # Errors
    /// With what was expected.
    fn option(&mut self, name: &str, value: &str) -> Result<(), String>;
    /// A kernel setting by its name (`net.ipv4.tcp_sack`).
    ///
    /// # Errors
    /// If the target has none of that name, or not with that value.
    fn sysctl(&mut self, name: &str, value: i64) -> Result<(), String>;
    /// A socket call at `now`.
    ///
    /// # Errors
    /// If the target cannot do such a thing at all; what the call itself returns is an [`Answer`].
    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String>;
    /// Addresses (without identification or label) and ports of packets to the target.
    fn towards(&self) -> (Version, Ports);
    /// An IP packet reaches the target at `now`.
    fn inject(&mut self, now: Duration, packet: &[u8]);
    /// Time goes on until `until`, or until something is sent, whichever is earlier.
    ///
    /// # Errors
    /// If what the target sends cannot be seen any more.
    fn advance(&mut self, until: Duration) -> Result<(), String>;
    /// The first packet sent and not yet taken, and when it was sent.
    fn take_sent(&mut self) -> Option<(Duration, Vec<u8>)>;
    /// A figure of the connection or of the host by its name: `tcpi_…` as in Linux's `struct
    /// tcp_info`, or a counter of the target's own. `None` if there is none of that name.
    fn figure(&self, name: &str) -> Option<i64>;
    /// Every name that [`Self::figure`] knows, for messages.
    fn figures(&self) -> &'static [&'static str];
    /// Whether the target has a figure of that name at all. What a script says of one that it has
    /// not is skipped: a kernel does not tell why it refused a segment.
    fn shows(&self, _name: &str) -> bool {
        true
    }
}

/// A socket call. Handles are what the target returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// A new socket.
    Socket,
    /// To an address of its own.
    Bind(i64),
    /// Wait for connections.
    Listen(i64),
    /// Take one.
    Accept(i64),
    /// Open one, without waiting for it.
    Connect(i64),
    /// At most so many octets.
    Read(i64, u32),
    /// These octets.
    Write(i64, &'a [u8]),
    /// No more of it.
    Close(i64),
    /// No more will be written.
    ShutdownWrite(i64),
    /// A socket option by its name.
    SetOption(i64, &'a str, i64),
}

/// What a call returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A number.
    Value(i64),
    /// Octets read.
    Octets(Vec<u8>),
    /// An error by its name, such as `EAGAIN`.
    Error(&'static str),
}
