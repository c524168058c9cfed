//! Compares a packet with the expectation of a script.

use anabranch_core::units::Duration;
use anabranch_wire::Flags;

use super::numbers::{self, take_apart};
use crate::syntax::{Header, Item, Options};

/// The first difference, if any. PSH and the order of options do not count.
pub(super) fn difference(
    expected: &Header,
    found: &Header,
    tolerance: Duration,
) -> Option<&'static str> {
    let flags = |header: &Header| header.flags.0 & !Flags::PSH.0;
    if flags(expected) != flags(found) {
        return Some("the flags differ");
    }
    if expected.seq != found.seq {
        return Some("the sequence numbers differ");
    }
    if expected.len != found.len {
        return Some("the lengths differ");
    }
    if expected.ack.is_some() && expected.ack != found.ack {
        return Some("the acknowledgment numbers differ");
    }
    if expected.window.is_some() && expected.window != found.window {
        return Some("the windows differ");
    }
    if expected.ecn.is_some() && expected.ecn != found.ecn {
        return Some("the ECN fields differ");
    }
    match (&expected.options, &found.options) {
        (Options::List(expected), Options::List(found)) => {
            let ticks = tolerance.as_picos().div_ceil(1_000_000_000);
            let counts = |items: &[Item]| -> Vec<Item> {
                let padding = |item: &&Item| !matches!(item, Item::Nop | Item::End);
                items.iter().filter(padding).cloned().collect()
            };
            let (expected, found) = (counts(expected), counts(found));
            let same = expected.len() == found.len()
                && expected
                    .iter()
                    .all(|item| found.iter().any(|other| matches(item, other, ticks)));
            (!same).then_some("the options differ")
        }
        _ => None,
    }
}

/// Timestamps may differ by the tolerance, in milliseconds.
fn matches(expected: &Item, found: &Item, ticks: u64) -> bool {
    match (expected, found) {
        (Item::Timestamps(value, echo), Item::Timestamps(other, other_echo)) => {
            u64::from(value.wrapping_sub(*other).cast_signed().unsigned_abs()) <= ticks
                && echo == other_echo
        }
        _ => expected == found,
    }
}

/// Checks that the payload is the written stream at its position and does not exceed it.
pub(super) fn check_payload(
    packet: &[u8],
    header: &Header,
    start: u32,
    written: u64,
) -> Result<(), String> {
    if header.len == 0 {
        return Ok(());
    }
    let payload = take_apart(packet)?.payload;
    let place = u64::from(header.seq.wrapping_sub(start));
    if place + u64::from(header.len) > written {
        return Err(format!(
            "the target has sent octets that were not written: `{header}`"
        ));
    }
    if payload != numbers::stream(numbers::WRITTEN, place, header.len) {
        return Err(format!(
            "the octets of `{header}` differ from the written ones"
        ));
    }
    Ok(())
}
