//! The sentences of findings and next steps in the words of QUIC.

use crate::report::Connection;

/// Words of TCP and of captures, and the ones of QUIC and of logs. Each applies to the result of
/// those before it.
const WORDS: [(&str, &str); 18] = [
    (
        " (SO_RCVBUF, tcp_rmem); both SYNs must scale windows",
        " (the limits of MAX_DATA and MAX_STREAM_DATA)",
    ),
    ("receive buffer of", "flow-control window of"),
    ("RACK at", "a larger time threshold at"),
    (
        "let ICMP pass, or clamp the MSS to the path's MTU",
        "let the sender find the path's MTU",
    ),
    ("SYN or SYN-ACK", "Initial packet"),
    ("SYNs", "Initial packets"),
    ("SYN-ACK", "Initial packet"),
    ("SYN", "Initial packet"),
    (" (`ss -lnt`, ListenOverflows)", ""),
    (
        "SO_MAX_PACING_RATE, its congestion control",
        "its congestion control",
    ),
    (
        "set TCP_NODELAY at",
        "let the acknowledgments of short data come sooner at",
    ),
    ("capture nearer to ", "diagnose the qlog of "),
    ("capture there", "diagnose its qlog"),
    ("capture at ", "diagnose the qlog of "),
    ("The capture", "The log"),
    ("the capture", "the log"),
    ("segment", "packet"),
    ("Segment", "Packet"),
];

/// Puts the sentences of a connection into the words of QUIC.
pub(super) fn translate(connection: &mut Connection, vantage: usize) {
    let local = [&connection.a, &connection.b][vantage].clone();
    let put = |text: &str| {
        // The log's point is its end.
        let text = text.replace("the capture point", &local);
        let words = WORDS.iter();
        words.fold(text, |text, (from, to)| text.replace(from, to))
    };
    for finding in &mut connection.findings {
        finding.text = put(&finding.text);
    }
    connection.next = connection.next.as_deref().map(put);
}

#[cfg(test)]
mod tests {
    use super::WORDS;

    #[test]
    fn no_replacement_brings_back_a_word_of_tcp() {
        for (_, to) in WORDS {
            for word in ["SYN", "segment", "capture", "tcp_"] {
                assert!(!to.contains(word), "{to}");
            }
        }
    }
}
