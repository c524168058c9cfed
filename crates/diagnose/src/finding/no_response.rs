//! A request that was never answered.

use super::{Case, Finding, Meta, counted, large_segments_lost, silent_peer};

pub(super) const META: Meta = Meta {
    name: "no-response",
    title: "No response",
    meaning: "The other end never answered the last request.",
    evidence: "The end that opened the connection sent the last data, and no data follows for a second or more, and four times the mean \
               time of earlier answers. The other end's TCP acknowledged the request, or did not.",
    confusion: "A protocol without answers whose client sends a single message.",
    next: "find out why the program at {receiver} does not answer: its TCP acknowledged the request",
    rank: Some(11),
    is_failure: true,
    ..Meta::PLAIN
};

/// The step if the request was not acknowledged.
pub(crate) const UNACKNOWLEDGED: &str = "find where the request to {receiver} or its acknowledgment is lost: capture at {receiver} as well";

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.connection;
    let request = connection.unanswered_request.as_ref()?;
    if case.sender != connection.a {
        return None;
    }
    let copies = case.data.retransmissions.iter();
    let copies: Vec<_> = copies.filter(|one| one.bytes > 0).collect();
    let waited = format!("{:.1} s", request.waited_s);
    let until = if request.closed {
        "until the connection was closed"
    } else {
        "until the capture ended"
    };
    let text = if request.acknowledged {
        format!(
            "{} never answered the last request of {}: its TCP acknowledged the request, and its program sent nothing for {waited}, \
             {until}.",
            case.receiver, case.sender
        )
    } else {
        // These report more: the same segment was lost over several timeouts.
        if silent_peer::find(case).is_some() || large_segments_lost::is_stuck(case) {
            return None;
        }
        format!(
            "{} acknowledged nothing of the last request of {} for {waited}, {until}, after {}: the path lost the request or the \
             acknowledgments, or drops all packets since then.",
            case.receiver,
            case.sender,
            counted(copies.len(), "retransmission")
        )
    };
    Some(Finding {
        share: case.share(request.waited_s),
        text,
        packets: Vec::new(),
    })
}
