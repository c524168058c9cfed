//! Reads qlog files of QUIC connections: JSON, JSON text sequences (RFC 7464) and lines of JSON.
//!
//! [`read`] streams: its memory does not grow with the file. It delivers the events that concern
//! packets, acknowledgments, loss and congestion ([`Event`]), and skips all others.
//!
//! Formats: draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events, in the versions
//! 0.3 and 0.4 and with the schema URNs that followed; and draft-00 to draft-02 of
//! draft-marx-qlog-main-schema, whose events are rows of columns.
//!
//! # Not implemented
//! - Events of HTTP/3 and QPACK.
//! - Multipath QUIC: packet numbers of all paths are taken as one space.
#![forbid(unsafe_code)]

mod error;
mod event;
mod fields;
mod header;
mod input;
mod reader;
mod value;

pub use error::Error;
pub use event::{Event, Frame, Metrics, Packet, PacketKind, Parameters, Trigger};
pub use header::{Header, Vantage};
pub use input::is_qlog;
pub use reader::{Account, Record, read};
