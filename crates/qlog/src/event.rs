//! The events of a connection that concern packets, acknowledgments, loss and congestion.

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The addresses of this end and of the other one.
    Started {
        /// This end's address and port.
        local: Option<(std::net::IpAddr, u16)>,
        /// The other end's.
        remote: Option<(std::net::IpAddr, u16)>,
    },
    /// Transport parameters of one end.
    Parameters(Parameters),
    /// A packet was sent or received.
    Packet(Packet),
    /// A packet was declared lost.
    Lost {
        /// The kind of the packet, if it is named.
        kind: PacketKind,
        /// Its number.
        number: u64,
        /// The rule by which it was declared lost.
        trigger: Trigger,
    },
    /// Metrics of recovery and congestion control changed.
    Metrics(Metrics),
}

/// Transport parameters (RFC 9000 §18.2) that limit data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters {
    /// The end that logs them announced them.
    pub is_local: bool,
    /// `initial_max_data`.
    pub max_data: Option<u64>,
    /// `initial_max_stream_data_bidi_local`.
    pub bidi_local: Option<u64>,
    /// `initial_max_stream_data_bidi_remote`.
    pub bidi_remote: Option<u64>,
    /// `initial_max_stream_data_uni`.
    pub uni: Option<u64>,
}

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// Initial (RFC 9000 §17.2.2).
    Initial,
    /// Handshake.
    Handshake,
    /// 0-RTT or 1-RTT: both use the packet numbers of application data.
    Application,
    /// Retry.
    Retry,
    /// Version negotiation.
    VersionNegotiation,
    /// Another one, or unnamed.
    Other,
}

/// A packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// Sent by the end that logs it; else received by it.
    pub is_sent: bool,
    /// Its kind.
    pub kind: PacketKind,
    /// Its number.
    pub number: Option<u64>,
    /// Its octets, with its header.
    pub length: Option<u64>,
    /// The version of QUIC, as in the file.
    pub version: Option<String>,
    /// Its frames; `None` if the file does not list them.
    pub frames: Option<Vec<Frame>>,
    /// It was sent as a probe because a timer expired (RFC 9002 §6.2.4).
    pub is_probe: bool,
}

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Data of a stream.
    Stream {
        /// The stream.
        id: u64,
        /// Its first octet.
        offset: u64,
        /// Octets.
        length: u64,
        /// The stream ends with it.
        fin: bool,
    },
    /// An acknowledgment: ranges of packet numbers, both ends included, in ascending order.
    Ack(Vec<(u64, u64)>),
    /// Data of the handshake.
    Crypto {
        /// Its first octet.
        offset: u64,
    },
    /// The limit on the data of all streams.
    MaxData(u64),
    /// The limit on the data of a stream.
    MaxStreamData {
        /// The stream.
        id: u64,
        /// The limit.
        maximum: u64,
    },
    /// The sender abandoned a stream.
    ResetStream {
        /// The stream.
        id: u64,
    },
    /// The connection ends.
    Close,
    /// Another frame.
    Other,
}

/// The rule by which a packet was declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Later packets were acknowledged (RFC 9002 §6.1.1).
    Reordering,
    /// Time elapsed (RFC 9002 §6.1.2).
    Time,
    /// The probe timer expired.
    Probe,
    /// Unnamed.
    Other,
}

/// Metrics of recovery and congestion control; only those that changed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics {
    /// The congestion window, in octets.
    pub congestion_window: Option<u64>,
    /// Octets in flight.
    pub bytes_in_flight: Option<u64>,
    /// The last round trip, in milliseconds.
    pub latest_rtt_ms: Option<f64>,
    /// The rate of the pacer, in bit/s.
    pub pacing_rate: Option<f64>,
}
