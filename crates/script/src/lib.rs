//! Behaviour scripts: the segments that a TCP must send, and their times, for given calls and
//! segments.
//!
//! The language is that of packetdrill (Cardwell et al., USENIX ATC 2013), as far as one TCP
//! connection requires; parser and runner are our own. A script is independent of the TCP that it
//! drives, which is a [`Target`]: ours ([`EndpointTarget`]) or another. All segments between the
//! two are complete packets with checksums.
//!
//! ```text
//! 0    socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//! +0   listen(3, 1) = 0
//! +0   < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
//! +0   > S. 0:0(0) ack 1 <...>
//! +.1  < . 1:1(0) ack 1 win 257
//! +0   accept(3, ..., ...) = 4
//! +0   write(4, ..., 1000) = 1000
//! +0   > P. 1:1001(1000) ack 1
//! +0   %{ assert tcpi_snd_cwnd == 10 }%
//! ```
//!
//! # Differs from packetdrill
//! - The PSH bit, the order of options and their padding are not compared: RFC 9293 leaves them to
//!   the sender.
//! - A packet that the script does not expect is an error, even at the end.
//! - `sysctl` and `setsockopt` come before `listen` or `connect` on our TCP.
//! - All octets read and written are checked: the stream must arrive unchanged.
//! - Brackets name the faults of a packet: `[bad-checksum]`, `[bad-ip-checksum]`, `[cut N]`,
//!   `[fragment]`, `[offset N]`, `[garbage]`; an option may be `raw HEX`.
//! - `ECN e0b N ceb N e1b N` (or `e1b` first, or with fewer fields) is the AccECN option.
//! - Assertions on a figure that the target does not provide are skipped ([`Target::shows`]).
//! - `--stack=NAME` selects the profile, `--mtu=N` sets the interface's MTU, `--cc=NAME` selects
//!   the congestion control, `--transport.NAME=VALUE` sets a switch; `sysctl` is the only command.
//!
//! # Not implemented
//! Blocking calls, several connections, UDP and ICMP, Python beyond comparisons.
#![forbid(unsafe_code)]

pub mod constants;
mod endpoint;
mod error;
mod lexer;
mod notation;
mod parse;
mod run;
mod syntax;
mod target;

pub use endpoint::EndpointTarget;
pub use error::{Cause, Error, Field, Position};
pub use parse::{init_scripts, parse, parse_with};
pub use run::run;
pub use syntax::{
    Action, Assertion, Call, Comparison, Control, Ecn, EpollOperation, Event, Expected, Fault,
    Header, Icmp, Item, Message, Operator, OptionValue, Options, Queue, Script, Setting, Statement,
    Value, Watched, When,
};
pub use target::{Answer, KERNEL_FIGURES, Request, Send, Target};
