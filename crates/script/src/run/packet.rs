//! Compares a packet with the expectation of a script.

use anabranch_wire::{Flags, accecn::Counter};

use super::numbers::{self, take_apart};
use crate::{
    error::Field,
    notation::letters,
    syntax::{Ecn, Header, Item, Options},
};

/// Names of the fields.
const FLAGS: &str = "flags";
const SEQUENCE: &str = "sequence number";
const LENGTH: &str = "length";
const ACKNOWLEDGMENT: &str = "acknowledgment";
const WINDOW: &str = "window";
const ECN: &str = "ECN field";
const OPTIONS: &str = "options";

/// The two packets field by field. PSH and the order of options do not count.
///
/// `stamps` says how far the values of timestamps may be apart, in milliseconds; `None`: as far as they
/// will.
pub(super) fn fields(expected: &Header, found: &Header, stamps: Option<u64>) -> Vec<Field> {
    let flags = |header: &Header| header.flags.0 & !Flags::PSH.0;
    let field = |name, expected: String, actual: String, differs| Field {
        name,
        expected,
        actual,
        differs,
    };
    let number = |name, expected: u32, found: u32| {
        field(
            name,
            expected.to_string(),
            found.to_string(),
            expected != found,
        )
    };
    let optional = |name, expected: Option<u32>, found: Option<u32>| {
        let text = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        let differs = expected.is_some() && expected != found;
        field(name, text(expected), text(found), differs)
    };
    vec![
        field(
            FLAGS,
            letters(expected),
            letters(found),
            flags(expected) != flags(found),
        ),
        number(SEQUENCE, expected.seq, found.seq),
        number(LENGTH, expected.len, found.len),
        optional(ACKNOWLEDGMENT, expected.ack, found.ack),
        optional(
            WINDOW,
            expected.window.map(u32::from),
            found.window.map(u32::from),
        ),
        field(
            ECN,
            expected.ecn.map_or("", Ecn::name).to_owned(),
            found.ecn.map_or("", Ecn::name).to_owned(),
            expected.ecn.is_some() && expected.ecn != found.ecn,
        ),
        field(
            OPTIONS,
            expected.options.to_string(),
            found.options.to_string(),
            !same_options(&expected.options, &found.options, stamps),
        ),
    ]
}

/// The first difference, if any.
pub(super) fn difference(fields: &[Field]) -> Option<&'static str> {
    let first = fields.iter().find(|field| field.differs)?;
    Some(match first.name {
        FLAGS => "the flags differ",
        SEQUENCE => "the sequence numbers differ",
        LENGTH => "the lengths differ",
        ACKNOWLEDGMENT => "the acknowledgment numbers differ",
        WINDOW => "the windows differ",
        ECN => "the ECN fields differ",
        _ => "the options differ",
    })
}

fn same_options(expected: &Options, found: &Options, stamps: Option<u64>) -> bool {
    let (Options::List(expected), Options::List(found)) = (expected, found) else {
        return true;
    };
    let counts = |items: &[Item]| -> Vec<Item> {
        let padding = |item: &&Item| !matches!(item, Item::Nop | Item::End);
        items.iter().filter(padding).cloned().collect()
    };
    let (expected, found) = (counts(expected), counts(found));
    expected.len() == found.len()
        && expected
            .iter()
            .all(|item| found.iter().any(|other| matches(item, other, stamps)))
}

fn matches(expected: &Item, found: &Item, stamps: Option<u64>) -> bool {
    match (expected, found) {
        (Item::Timestamps(value, echo), Item::Timestamps(other, other_echo)) => {
            let apart = u64::from(value.wrapping_sub(*other).cast_signed().unsigned_abs());
            stamps.is_none_or(|stamps| apart <= stamps) && echo == other_echo
        }
        // The order of the counters is the sender's choice (RFC 9768 §3.2.3).
        (Item::AccEcn(one), Item::AccEcn(other)) => [Counter::Ect0, Counter::Ce, Counter::Ect1]
            .into_iter()
            .all(|counter| one.field(counter) == other.field(counter)),
        _ => expected == found,
    }
}

/// Whether `next` continues the burst that `found` begins.
pub(super) fn continues(found: &Header, next: &Header) -> bool {
    next.len > 0
        && next.seq == found.seq.wrapping_add(found.len)
        && next.ack == found.ack
        && !next.flags.any(Flags::SYN)
        && !next.flags.any(Flags::RST)
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
    let first = header
        .seq
        .wrapping_add(u32::from(header.flags.any(Flags::SYN)));
    let place = u64::from(first.wrapping_sub(start));
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
