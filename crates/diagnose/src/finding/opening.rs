//! A handshake that needed more than one SYN, or got no answer.

use crate::report::{Connection, Finding};

pub(super) fn find(connection: &Connection) -> Option<Finding> {
    let text = match connection.handshake {
        "unanswered" => format!("{} did not answer the SYN.", connection.b),
        "refused" => format!("{} refused the connection.", connection.b),
        _ if connection.syn_retransmissions > 0 => format!(
            "The handshake needed {} retransmissions of a SYN or SYN-ACK.",
            connection.syn_retransmissions
        ),
        _ => return None,
    };
    let time = connection.directions.a_to_b.limits_s.get("handshake");
    Some(Finding {
        cause: "handshake",
        share: time.map_or(0.0, |time| time / connection.duration_s.max(f64::EPSILON)),
        text,
        packets: Vec::new(),
    })
}
