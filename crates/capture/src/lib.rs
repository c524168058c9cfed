//! Reads the IP packets of a capture: pcap or pcapng, compressed or not, of any common link type.
//!
//! [`Reader`] streams: its memory does not grow with the capture. Frames without an IP packet are
//! skipped and counted by reason ([`Skip`]). A truncated capture ends with its last whole packet.
//!
//! Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types:
//! tcpdump.org/linktypes.html.
//!
//! # Not implemented
//! - IEEE 802.11, frame relay, ATM, USB and other link types that [`layers`] does not list.
//! - Tunnels over UDP (VXLAN, GTP-U): the packet is the outer one.
//! - Reassembly of fragments.
#![forbid(unsafe_code)]

mod annotate;
mod bytes;
mod compression;
mod container;
mod content;
pub mod conversations;
mod error;
pub mod layers;
mod limits;
mod packet;
mod reader;
pub mod selection;

pub use annotate::annotate;
pub use container::is_capture;
pub use content::Content;
pub use conversations::{Conversation, Conversations, Fragments};
pub use error::Error;
pub use layers::Skip;
pub use limits::Limits;
pub use packet::{Fragment, Ip, Packet};
pub use reader::{Counts, Reader};
pub use selection::{Endpoint, Protocol, Selection};
