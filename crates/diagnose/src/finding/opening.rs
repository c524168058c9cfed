//! How a connection begins and ends: SYNs and RSTs.

use super::{Case, Finding, Handshake, Origin, Sign, counted, milliseconds};
use crate::limit::Limit;

/// A SYN without an answer.
pub(super) fn unanswered(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    (connection.handshake == Handshake::Unanswered)
        .then(|| Finding::new(1.0, format!("{} did not answer the SYN.", connection.b)))
}

/// A SYN answered by a RST.
pub(super) fn refused(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let packets = connection.reset.iter().map(|reset| reset.packet).collect();
    let text = format!("{} refused the connection.", connection.b);
    (connection.handshake == Handshake::Refused).then(|| Finding::new(1.0, text).at(packets))
}

/// A handshake that needed more than one SYN or SYN-ACK.
pub(super) fn syn_loss(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let again = connection.syn_retransmissions;
    let failed = [Handshake::Unanswered, Handshake::Refused];
    let text = format!(
        "The handshake took {}: it needed {} of a SYN or SYN-ACK.",
        milliseconds(case.data.time(Limit::Handshake) * 1e3),
        counted(again, "retransmission")
    );
    (again > 0 && !failed.contains(&connection.handshake))
        .then(|| Finding::new(case.of_time(Limit::Handshake), text))
}

/// A host that ended a connection with a RST.
pub(super) fn reset(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let reset = connection.reset.as_ref()?;
    let is_its = reset.origin != Origin::Middlebox && connection.handshake != Handshake::Refused;
    // The signs of a device on the path are too few to prove one.
    let doubt = if reset.signs.is_empty() {
        String::new()
    } else {
        format!(
            " One sign is for a device on the path, which alone proves nothing: the RST {}.",
            named(&reset.signs)
        )
    };
    let text = format!("{} reset the connection.{doubt}", case.end(reset.by));
    is_its.then(|| Finding::new(0.0, text).at(vec![reset.packet]))
}

/// A device on the path that ended a connection in the name of a host.
pub(super) fn reset_by_middlebox(case: &Case<'_>) -> Option<Finding> {
    let reset = case.once()?.reset.as_ref()?;
    let text = format!(
        "A device on the path sent a RST in the name of {}: it {}.",
        case.end(reset.by),
        named(&reset.signs)
    );
    (reset.origin == Origin::Middlebox).then(|| Finding::new(0.0, text).at(vec![reset.packet]))
}

/// The signs of a RST in words.
fn named(signs: &[Sign]) -> String {
    let words: Vec<_> = signs.iter().map(|sign| in_words(*sign)).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

const fn in_words(sign: Sign) -> &'static str {
    match sign {
        Sign::Hops => "came over another number of hops than the host's other packets",
        Sign::IpIdentification => "does not continue the host's IP identifications",
        Sign::NoTimestamps => "lacks the timestamps of the host's other packets",
        Sign::Sequence => "has a sequence number beyond what the host had sent",
        Sign::TooSoon => "answers a packet sooner than the host can",
        Sign::GoesOn => "did not end what the host sends",
    }
}
