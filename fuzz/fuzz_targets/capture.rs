//! Any octets as a capture: each IP packet lies within its frame, each frame is counted once,
//! errors render, and nothing panics.
#![cfg_attr(feature = "libfuzzer", no_main)]

use anabranch_capture::{Conversations, Fragments, Reader, Skip};
use anabranch_fuzz::fuzz_target;

fn read(bytes: &[u8]) {
    let mut reader = match Reader::open(bytes) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let mut conversations = Conversations::default();
    let mut fragments = Fragments::default();
    let mut number = 0;
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                assert!(packet.number > number);
                number = packet.number;
                assert!(packet.octets.len() <= packet.frame_length as usize);
                assert!(packet.ip.length >= 20);
                conversations.add(&packet.ip, fragments.ports(&packet.ip));
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    let counts = reader.counts();
    let skipped: u64 = counts.skipped.values().sum();
    assert_eq!(counts.frames, counts.packets + skipped);
    assert!(
        counts
            .skipped
            .keys()
            .all(|skip: &Skip| !skip.to_string().is_empty())
    );
    let (largest, more) = conversations.largest(8, &conversations, false);
    assert!(largest.len() == 8 || more == 0);
}

fuzz_target!(|bytes: &[u8]| read(bytes));
