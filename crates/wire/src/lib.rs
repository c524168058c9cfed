//! Packet formats: the only reader, writer and ICMP implementation of Anabranch. The crate does no
//! I/O and has no state, and no input makes it panic.
//!
//! - [`IpPacket`] reads IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200) in place, also
//!   from truncated packets of a capture. [`set_ecn`], [`take_hops`] and [`clamp_mss`] change
//!   headers in place and correct checksums (RFC 1624).
//! - [`TcpHeader`] and [`iter_options`] read TCP in place (RFC 9293 §3.1 and §3.2; options of
//!   RFC 2018, RFC 7323, RFC 7413 and RFC 9768).
//! - [`decode_ip`], [`decode_tcp`] and [`decode`] read with the checks of a receiver: a packet with
//!   a wrong length or checksum is an error, which [`Discards`] counts.
//! - [`encode_ip`], [`encode_tcp`], [`encode_datagram`] and [`encode`] write packets with their
//!   checksums (RFC 1071).
//! - [`icmp`] writes errors and echo replies (RFC 792, RFC 4443).
//! - [`Segment`] is a TCP segment in the endpoint's representation, with [`Seq`] for its numbers.
//!   [`Redundant`] is a packet of error correction, and [`Transport`] any content of a packet.
//!
//! # Not implemented
//! Writing IPv4 options, IPv6 extension headers or the urgent pointer; reassembly of fragments;
//! jumbograms (RFC 2675).
#![forbid(unsafe_code)]

pub mod accecn;
mod checksum;
mod crc32c;
mod error;
pub mod fast_open;
pub mod icmp;
mod ip;
mod option;
mod packet;
pub mod redundant;
pub mod segment;
pub mod seq;
mod tcp;
pub mod transport;
mod udp;

pub use accecn::AccEcn;
pub use checksum::{Checksum, updated};
pub use error::{DecodeError, Discards, EncodeError};
pub use fast_open::FastOpen;
pub use ip::{
    Carried, Fragment, IpHeader, IpPacket, Protocol, Version, decode_ip, encode_ip, set_ecn,
    take_hops,
};
pub use option::{OptionIter, TcpOption, iter_options};
pub use packet::{Decoded, Prefix, decode, encode, encode_prefix};
pub use redundant::{Redundant, decode_redundant, encode_redundant};
pub use segment::{Flags, Options, SackBlock, Segment, Timestamps};
pub use seq::Seq;
pub use tcp::{Ports, TcpHeader, TcpPacket, clamp_mss, decode_tcp, encode_tcp};
pub use transport::Transport;
pub use udp::encode_datagram;
