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
    /// `< icmp …`: the target receives an ICMP error.
    InjectIcmp(Icmp),
    /// `>`: the target sends a packet.
    Expect(Header),
    /// A socket call and its expected result.
    Call(Call, Expected),
    /// `%{ assert … }%`
    Code(Vec<Statement>),
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
    /// `A || B`: the second settings if the target does not have the first.
    Either(Vec<Setting>, Vec<Setting>),
    /// `ip tcp_metrics flush all`: cookies of Fast Open are discarded.
    ForgetCookies,
}

/// An ICMP error "destination unreachable" (RFC 792).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp {
    /// Its code.
    pub code: u8,
    /// The MTU of the next hop, of "fragmentation needed" (RFC 1191).
    pub mtu: Option<u16>,
    /// Sequence number of the quoted segment; the oldest that is outstanding if not given.
    pub seq: Option<u32>,
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
    /// `FO COOKIE`, or `FOEXP COOKIE` for the experimental option; without a cookie, a request.
    FastOpen {
        /// `FOEXP`
        is_experimental: bool,
        /// The cookie, of any length.
        cookie: Vec<u8>,
    },
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
    /// `read(fd, …, n)`, `recv`, `recvfrom`, `readv`
    Read {
        /// The descriptor.
        fd: i64,
        /// Octets of the buffer.
        most: u32,
        /// `MSG_…`
        flags: u32,
    },
    /// `recvmsg(fd, {…}, flags)`
    ReadMessage {
        /// The descriptor.
        fd: i64,
        /// Octets of all buffers.
        most: u32,
        /// `MSG_…`
        flags: u32,
        /// The flags and control messages that are returned.
        expected: Message,
    },
    /// `write(fd, …, n)`, `send`, `sendto`, `sendmsg`, `writev`
    Write {
        /// The descriptor.
        fd: i64,
        /// Octets of all buffers.
        octets: u32,
        /// `MSG_…`
        flags: u32,
        /// The buffer is `NULL`.
        from_null: bool,
        /// The address is `AF_UNSPEC`.
        to_nobody: bool,
    },
    /// `close(fd)`
    Close(i64),
    /// `shutdown(fd, SHUT_WR)`
    ShutdownWrite(i64),
    /// `shutdown(fd, SHUT_RD)`
    ShutdownRead(i64),
    /// `shutdown(fd, SHUT_RDWR)`
    ShutdownBoth(i64),
    /// `setsockopt(fd, LEVEL, NAME, [value], size)`
    SetOption(i64, String, OptionValue),
    /// `getsockopt(fd, LEVEL, NAME, [value], [size])`
    GetOption(i64, String, i64),
    /// `fcntl(fd, …)`
    Fcntl(i64),
    /// `ioctl(fd, SIOCINQ, [value])`
    QueueSize(i64, Queue, i64),
    /// `poll([{fd=…, events=…, revents=…}, …], n, timeout)`
    Poll {
        /// The descriptors.
        watched: Vec<Watched>,
        /// Milliseconds; negative for no end.
        timeout: i64,
    },
    /// `epoll_create(n)`
    EpollCreate,
    /// `epoll_ctl(epoll, operation, fd, {events=…, fd=…})`
    EpollControl {
        /// The descriptor of the set.
        epoll: i64,
        /// The operation.
        operation: EpollOperation,
        /// The descriptor that is watched.
        fd: i64,
        /// `EPOLL…`
        events: u32,
    },
    /// `epoll_wait(epoll, {events=…, fd=…}, n, timeout)`
    EpollWait {
        /// The descriptor of the set.
        epoll: i64,
        /// The events that are returned, and their descriptor.
        expected: (u32, Option<i64>),
        /// Milliseconds; negative for no end.
        timeout: i64,
    },
}

/// The value of a socket option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// `[value]`, `&value`
    Number(i64),
    /// `"text"`
    Text(Vec<u8>),
    /// `{onoff=1, linger=seconds}`; `None` for off.
    Linger(Option<u32>),
}

/// Queue that `ioctl` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// `SIOCINQ`: octets to read.
    Received,
    /// `SIOCOUTQ`: octets that are not acknowledged.
    Sent,
}

/// An operation of `epoll_ctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpollOperation {
    /// `EPOLL_CTL_ADD`
    Add,
    /// `EPOLL_CTL_MOD`
    Modify,
    /// `EPOLL_CTL_DEL`
    Delete,
}

/// A descriptor of `poll`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// The descriptor.
    pub fd: i64,
    /// Events to wait for.
    pub events: u32,
    /// Events returned; `None` for any.
    pub returned: Option<u32>,
}

/// Flags and control messages of `recvmsg`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// `msg_flags`; `None` for any.
    pub flags: Option<u32>,
    /// `msg_control`; `None` for any.
    pub control: Option<Vec<Control>>,
}

/// A control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// `TCP_CM_INQ`: octets that remain to be read.
    Unread(i64),
    /// `SO_EE_ORIGIN_ZEROCOPY`: the memory of these calls with `MSG_ZEROCOPY` is free.
    ZeroCopy {
        /// Number of the first call.
        first: u32,
        /// Number of the last call.
        last: u32,
        /// The data was copied.
        was_copied: bool,
    },
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
    /// `-1`: any error.
    AnyError,
}

/// A statement of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `assert VALUE OP VALUE`
    Assert(Assertion),
    /// `NAME = VALUE`
    Assign(Position, String, Value),
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
    /// The name of a variable, of a figure, or of a constant such as `TCP_ESTABLISHED`.
    Name(String),
    /// Two values joined by an operator.
    Joined(Operator, Box<(Value, Value)>),
}

impl Value {
    /// The names in it.
    pub(crate) fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => names.push(name),
            Self::Joined(_, pair) => {
                pair.0.names(names);
                pair.1.names(names);
            }
        }
    }
}

/// An operator on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `&`
    And,
    /// `|`
    Or,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounded down.
    Divide,
}

impl Operator {
    /// Its result; `None` for a division by zero or a result out of range.
    #[must_use]
    pub const fn of(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::And => Some(left & right),
            Self::Or => Some(left | right),
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div_euclid(right),
        }
    }
    /// Its notation in scripts.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
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
