//! The syntax tree of a script.

use anabranch_core::units::Duration;
use anabranch_wire::{AccEcn, Flags, SackBlock};

use crate::error::Position;

/// A whole script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its name, for messages.
    pub file: String,
    /// `--NAME=VALUE`, in order.
    pub options: Vec<(Position, String, String)>,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// Whether a command without a time sets up the kernel, as in scripts of the Linux kernel and of
    /// packetdrill: see the crate's documentation.
    pub is_for_linux: bool,
    /// Whether the script gives the tick of timestamps (`--tcp_ts_tick_usecs`), so that their values are
    /// compared.
    pub has_timestamp_tick: bool,
}

impl Script {
    /// The value of an option, the last one given.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut given = self.options.iter().rev();
        given
            .find(|option| option.1 == name)
            .map(|option| option.2.as_str())
    }
}

/// An event: one line of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its position.
    pub at: Position,
    /// Its time.
    pub when: When,
    /// Its action.
    pub action: Action,
}

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At this time after the start of the script.
    At(Duration),
    /// At this time after the previous event.
    After(Duration),
    /// Within this span after the previous event; for expected packets.
    Between(Duration, Duration),
    /// At any time; for expected packets.
    Any,
    /// A call that begins at the first time after the previous event, and returns at the second.
    Blocking(Duration, Duration),
}

/// The action of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `<`: the target receives a packet.
    Inject(Header),
    /// `>`: the target sends a packet.
    Expect(Header),
    /// A socket call and its expected result.
    Call(Call, Expected),
    /// `%{ assert … }%`
    Assert(Vec<Assertion>),
    /// `` `sysctl -q NAME=VALUE` ``
    Command(Vec<Setting>),
}

/// A setting of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// `sysctl NAME=VALUE`: one number or several, or a name.
    Sysctl(String, String),
    /// The same in an init script: a shell goes on if the kernel has no such setting.
    Default(String, String),
    /// `ip link set dev tun0 mtu N`
    Mtu(u32),
    /// `tc qdisc replace dev tun0 root fq`: data is paced.
    Paced,
    /// `ethtool -K tun0 tso off gso off`: each segment leaves alone.
    SegmentsAlone,
}

/// A segment in the script's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Control bits.
    pub flags: Flags,
    /// Sequence number.
    pub seq: u32,
    /// Octets of payload.
    pub len: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// Window field.
    pub window: Option<u16>,
    /// Options.
    pub options: Options,
    /// ECN field.
    pub ecn: Option<Ecn>,
    /// Faults of the packet.
    pub faults: Vec<Fault>,
}

/// ECN fields, as named in scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// `noecn`
    NotEct,
    /// `ect0`
    Ect0,
    /// `ect1`
    Ect1,
    /// `ce`
    Ce,
}

/// Options between angle brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Options {
    /// `<...>`: any options.
    Any,
    /// Exactly these options.
    List(Vec<Item>),
}

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// `nop`
    Nop,
    /// `eol`
    End,
    /// `mss N`
    Mss(u16),
    /// `wscale N`
    WindowScale(u8),
    /// `sackOK`
    SackPermitted,
    /// `sack L:R L:R`
    Sack(Vec<SackBlock>),
    /// `TS val N ecr N`
    Timestamps(u32, u32),
    /// `ECN e0b N ceb N e1b N`, or `ECN e1b N ceb N e0b N`, possibly with fewer fields.
    AccEcn(AccEcn),
    /// `raw HEX`: these octets.
    Raw(Vec<u8>),
}

/// A fault of an injected packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The TCP checksum is wrong.
    BadChecksum,
    /// The IPv4 header's checksum is wrong.
    BadIpChecksum,
    /// This many octets are missing at the end.
    Cut(u32),
    /// The more-fragments bit is set.
    Fragment,
    /// The data offset has this value, in words.
    Offset(u8),
    /// The payload differs from the stream.
    Garbage,
}

/// A socket call, with the script's descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `socket(…)`
    Socket,
    /// `bind(fd, …)`
    Bind(i64),
    /// `listen(fd, backlog)`
    Listen(i64),
    /// `accept(fd, …)`
    Accept(i64),
    /// `connect(fd, …)`
    Connect(i64),
    /// `read(fd, …, n)`
    Read(i64, u32),
    /// `write(fd, …, n)`
    Write(i64, u32),
    /// `close(fd)`
    Close(i64),
    /// `shutdown(fd, SHUT_WR)`
    ShutdownWrite(i64),
    /// `shutdown(fd, SHUT_RD)`
    ShutdownRead(i64),
    /// `shutdown(fd, SHUT_RDWR)`
    ShutdownBoth(i64),
    /// `setsockopt(fd, LEVEL, NAME, [value], size)`
    SetOption(i64, String, i64),
    /// `getsockopt(fd, LEVEL, NAME, [value], [size])`
    GetOption(i64, String, i64),
    /// `fcntl(fd, …)`
    Fcntl(i64),
}

/// The expected result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// `?`
    Any,
    /// A number.
    Value(i64),
    /// `-1 NAME`
    Error(String),
}

/// `VALUE OP VALUE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Its position.
    pub at: Position,
    /// The left side.
    pub left: Value,
    /// The comparison.
    pub comparison: Comparison,
    /// The right side.
    pub right: Value,
}

/// A side of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(i64),
    /// The name of a figure, or of a constant such as `TCP_ESTABLISHED`.
    Name(String),
}

/// A comparison of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether it holds.
    #[must_use]
    pub const fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
    /// Its notation in scripts.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}
