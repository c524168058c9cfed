//! An annotated capture has the same frames, and every comment.

use std::collections::BTreeMap;

use anabranch_capture::{Error, annotate};
use proptest::prelude::*;

use crate::make::{Order, block, enhanced, ethernet, interface, plain, read, section, v4};

fn annotated(file: &[u8], comments: &BTreeMap<u64, String>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    annotate(file, &mut out, "title", comments, || false)?;
    Ok(out)
}

fn has(file: &[u8], text: &str) -> bool {
    file.windows(text.len())
        .any(|window| window == text.as_bytes())
}

proptest! {
    #[test]
    fn frames_keep_number_time_and_length(lengths in prop::collection::vec(28_u16..1500, 0..30), at in 1_u64..40) {
        let packets: Vec<_> = lengths.iter().map(|length| v4(*length)).collect();
        let file = plain(101, &packets);
        let comments = BTreeMap::from([(at, "what was found ✓".to_owned())]);
        let made = annotated(&file, &comments)?;
        prop_assert_eq!(read(&made).0, read(&file).0);
        prop_assert_eq!(has(&made, "what was found ✓"), at <= lengths.len() as u64);
    }
}

#[test]
fn link_types_stay_apart() {
    let order = Order::Big;
    let file = [
        section(order),
        interface(order, 1, &[]),
        interface(order, 101, &[]),
        enhanced(order, 0, 7, &ethernet(0x0800, &v4(60))),
        block(order, 0x0bad, &[]),
        enhanced(order, 1, 9, &v4(80)),
    ]
    .concat();
    let made = annotated(&file, &BTreeMap::new()).expect("a capture");
    assert_eq!(read(&made).0, read(&file).0);
}

#[test]
fn a_damaged_capture_is_written_up_to_the_damage() {
    let mut file = plain(101, &[v4(60), v4(80), v4(100)]);
    file.truncate(file.len() - 50);
    let made = annotated(&file, &BTreeMap::new()).expect("a capture");
    assert_eq!(read(&made).0.len(), 2);
}

#[test]
fn a_comment_that_is_too_long_is_cut_between_characters() {
    let comments = BTreeMap::from([(1, "é".repeat(40_000))]);
    let made = annotated(&plain(101, &[v4(60)]), &comments).expect("a capture");
    assert_eq!(read(&made).0.len(), 1);
}

#[test]
fn a_file_that_is_not_a_capture_is_refused() {
    let made = annotated(b"no capture", &BTreeMap::new());
    assert_eq!(made, Err(Error::NotACapture));
}
