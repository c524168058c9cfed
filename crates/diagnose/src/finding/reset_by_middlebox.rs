//! A device on the path that ended a connection in the name of a host.

use super::{Case, Finding, Meta, Origin, Sign};

pub(super) const META: Meta = Meta {
    name: "reset-by-middlebox",
    title: "Reset by a middlebox",
    meaning: "A device on the path reset the connection in the name of an end.",
    evidence: "Two independent signs or more: another number of hops; another numbering of packets or no timestamps; a sequence number \
         that the host does not use; an answer sooner than the host can give it; packets of the host that go on.",
    confusion: "A proxy or load balancer that answers for the host.",
    next: "look for a firewall or proxy between the hosts; capture on both sides of it",
    rank: Some(5),
    is_failure: true,
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let reset = connection.reset.as_ref()?;
    (reset.origin == Origin::Middlebox).then(|| Finding {
        share: 0.0,
        text: format!(
            "A device on the path sent a RST in the name of {}: it {}.",
            case.end(reset.by),
            named(&reset.signs)
        ),
        packets: vec![reset.packet],
    })
}

/// The signs of a RST in words.
pub(super) fn named(signs: &[Sign]) -> String {
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
