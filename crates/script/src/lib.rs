//! Behaviour scripts: what a TCP must send, and when, if it is called and spoken to like this.
//!
//! The language is that of packetdrill (Cardwell et al., USENIX ATC 2013), as far as one TCP
//! connection needs it; parser and runner are our own. A script knows nothing of the TCP that it
//! drives: that is a [`Target`], ours ([`EndpointTarget`]) or another. Everything that passes
//! between the two is a real packet, checksums and all.
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
//! - The PSH bit is not compared, nor the order of options and their padding: RFC 9293 leaves
//!   them to the sender.
//! - A packet that the script does not expect is an error, even at the end.
//! - Read and written octets are checked one by one: the stream must come through as it went in.
//! - Between brackets stands what makes a packet bad: `[bad-checksum]`, `[bad-ip-checksum]`,
//!   `[cut N]`, `[fragment]`, `[offset N]`, `[garbage]`; and among options `raw HEX`.
//! - `ECN e0b N ceb N e1b N` (or `e1b` first, or less at the end) is the AccECN option.
//! - What a script says of a figure that its target does not have is skipped ([`Target::shows`]).
//! - `--stack=NAME` names the profile, `--mtu=N` the interface, `--cc=NAME` the congestion control,
//!   `--transport.NAME=VALUE` turns a switch; `sysctl` is the only command.
//!
//! # Not implemented
//! Blocking calls, several connections, UDP and ICMP, Python beyond comparisons.
#![forbid(unsafe_code)]

mod endpoint;
mod error;
mod lexer;
mod notation;
mod parse;
mod run;
mod syntax;
mod target;

pub use endpoint::EndpointTarget;
pub use error::{Error, Position};
pub use parse::parse;
pub use run::run;
pub use syntax::{
    Action, Assertion, Call, Comparison, Ecn, Event, Expected, Fault, Header, Item, Options,
    Script, Value, When,
};
pub use target::{Answer, KERNEL_FIGURES, Request, Target};
