//! Packets as octets.
#![forbid(unsafe_code)]

pub mod accecn;
mod checksum;
mod crc32c;
mod error;
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
pub use checksum::Checksum;
pub use error::{DecodeError, Discards, EncodeError};
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
