//! A device that rewrites sequence numbers but not the SACK option.

use super::{Case, Finding, Meta, counted};
use crate::{limit::Limit, report::OneWay};

pub(super) const META: Meta = Meta {
    name: "sequence-randomiser",
    title: "SACK blocks of other sequence numbers",
    meaning: "A firewall rewrites the sequence numbers of the connection and leaves those in the SACK option as they are. The \
              sender ignores such blocks, so that it recovers lost segments without SACK, mostly by timeouts.",
    evidence: "SACK blocks lie beyond the receiver's window, below the first octet, in data that is sent for the first time later, \
               or in data that is not acknowledged although data sent after the block is.",
    confusion: "A receiver whose SACK option is wrong. Blocks of data that the capture lost are not counted.",
    next: "let the firewall before {receiver} keep sequence numbers, or rewrite SACK options as well",
    rank: Some(6),
    ..Meta::PLAIN
};

/// Minimum number of wrong blocks: the first loss alone causes three duplicate acknowledgments (RFC
/// 5681 §3.2).
const FEW: u64 = 3;

pub(super) fn is_found(data: &OneWay) -> bool {
    data.wrong_sack_blocks >= FEW && data.wrong_sack_blocks > data.sack_blocks
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let data = case.data;
    let text = || {
        format!(
            "{} of {} cannot be of this data. A firewall that randomises sequence numbers leaves the SACK option as \
         it is, and {} recovers without SACK.",
            counted(data.wrong_sack_blocks, "SACK block"),
            case.receiver,
            case.sender
        )
    };
    is_found(data).then(|| case.finding(case.of_time(Limit::RetransmissionTimeout), &text()))
}
