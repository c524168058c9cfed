//! Errors of reading a qlog.

use crate::header::KNOWN_VERSIONS;

/// Error of reading a qlog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// JSON of another kind.
    #[error("it is JSON without a trace of qlog; expected an object with `traces` or `trace`")]
    NotQlog,
    /// It ends, or is damaged, within its header.
    #[error(
        "the header of the qlog cannot be read (line {line}, column {column}: {why}); expected an object of JSON"
    )]
    Header {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The reason.
        why: String,
    },
    /// A version that this crate cannot read.
    #[error(
        "its qlog version is \"{0}\"; expected one of {known}, or the schema urn:ietf:params:qlog:file:sequential or :contained",
        known = KNOWN_VERSIONS.join(", ")
    )]
    UnknownVersion(String),
    /// No packets of QUIC.
    #[error(
        "its qlog has no packets of QUIC{}; expected the events packet_sent and packet_received",
        .schema.as_ref().map(|schema| format!(" (its events are of {schema})")).unwrap_or_default()
    )]
    NoPackets {
        /// The schema of its events, if it names one.
        schema: Option<String>,
    },
    /// Traces of different points.
    #[error(
        "its traces were recorded at different points ({0} and {1}); expected one: split the file and diagnose each"
    )]
    MixedVantages(&'static str, &'static str),
    /// A trace that was recorded between the ends.
    #[error(
        "its vantage point is the network, which sees no acknowledgments; expected a qlog of the client or of the server"
    )]
    NetworkVantage,
    /// An event that is far larger than any program writes.
    #[error("event {0} is longer than 16 MiB; expected events of packets")]
    LongEvent(u64),
    /// More connections than any program logs in a file.
    #[error(
        "its events are of more than {0} connections (`group_id`); expected fewer: split the file"
    )]
    ManyConnections(usize),
    /// The file cannot be read.
    #[error("it cannot be read: {0}; expected a file that can be read")]
    System(String),
    /// `stop` returned true.
    #[error("reading was interrupted; expected time to read it")]
    Interrupted,
}
