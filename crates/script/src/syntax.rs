//! A script as it was read.

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
    /// What happens, in order.
    pub events: Vec<Event>,
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

/// One line of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where it stands.
    pub at: Position,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub action: Action,
}

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long after the start of the script.
    At(Duration),
    /// So long after the event before.
    After(Duration),
    /// In that span after the event before; for packets that are expected.
    Between(Duration, Duration),
    /// Whenever; for packets that are expected.
    Any,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `<`: a packet reaches the target.
    Inject(Header),
    /// `>`: the target sends one.
    Expect(Header),
    /// A socket call, and what it returns.
    Call(Call, Expected),
    /// `%{ assert … }%`
    Assert(Vec<Assertion>),
    /// `` `sysctl -q NAME=VALUE` ``
    Sysctl(String, i64),
}

/// A segment in the script's own numbers.
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
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

/// ECN fields as scripts name them.
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
    /// `<...>`: any.
    Any,
    /// These, none if empty.
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
    /// `ECN e0b N ceb N e1b N`, or `ECN e1b N ceb N e0b N`; less at the end.
    AccEcn(AccEcn),
    /// `raw HEX`: octets as they are.
    Raw(Vec<u8>),
}

/// What is wrong with a packet that is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The TCP checksum is wrong.
    BadChecksum,
    /// The IPv4 header's checksum is wrong.
    BadIpChecksum,
    /// So many octets are missing at the end.
    Cut(u32),
    /// It says that more fragments follow.
    Fragment,
    /// The data offset says so many words.
    Offset(u8),
    /// The payload is not what the stream has there.
    Garbage,
}

/// A socket call. Descriptors are the script's own numbers.
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
    /// `setsockopt(fd, LEVEL, NAME, [value], size)`
    SetOption(i64, String, i64),
    /// `fcntl(fd, …)`
    Fcntl(i64),
}

/// What a call returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// `?`
    Any,
    /// A number.
    Value(i64),
    /// `-1 NAME`
    Error(String),
}

/// `NAME OP VALUE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Where it stands.
    pub at: Position,
    /// The name of what is looked at.
    pub name: String,
    /// How they compare.
    pub comparison: Comparison,
    /// With what.
    pub value: Value,
}

/// The right side of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A constant's name, which the target knows (`TCP_ESTABLISHED`).
    Constant(String),
}

/// How two numbers compare.
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
    /// As scripts write it.
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
