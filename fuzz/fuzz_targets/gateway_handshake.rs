//! Handshakes of two ends whose messages are altered, truncated, repeated and replaced by any
//! octets, at any time: nothing panics, and a decoded message is encoded unchanged.
#![cfg_attr(feature = "libfuzzer", no_main)]

mod gateway_peer;

use anabranch_core::units::Duration;
use anabranch_fuzz::fuzz_target;
use anabranch_gateway::time::Instant;
use anabranch_gateway::wire::{HEADER, Message};
use gateway_peer::{route, tunnel};

fuzz_target!(|input: &[u8]| {
    check(input);
    let mut ends = [tunnel(1, 2, true), tunnel(2, 1, false)];
    let (mut now, mut buffer) = (Instant::START, Vec::new());
    for step in input.chunks(6) {
        now = now + Duration::from_millis(u64::from(step[0] >> 4) * 40);
        let times = if step[0] & 2 == 0 { 1 } else { 20 };
        for end in 0..2 {
            if step[0] & 4 != 0 {
                ends[end].handle(&mut step.to_vec(), route(), now, now);
            }
            while ends[end].poll_transmit(now, &mut buffer).is_some() {
                if let (1, &[_, at, flip, cut, ..]) = (step[0] & 1, step) {
                    let length = buffer.len();
                    buffer[usize::from(at) % length] ^= flip;
                    buffer.truncate(length - usize::from(cut) % 2 * (length / 3));
                }
                check(&buffer);
                for _ in 0..times {
                    ends[1 - end].handle(&mut buffer.clone(), route(), now, now);
                }
            }
        }
    }
    for end in &ends {
        assert!(end.stats().answering <= 64);
    }
});

fn check(octets: &[u8]) {
    if let Ok(message) = Message::decode(octets) {
        let again = match message {
            Message::Initiation(message) => message.encode().to_vec(),
            Message::Response(message) => message.encode().to_vec(),
            Message::CookieReply(message) => message.encode().to_vec(),
            Message::StampReply(message) => message.encode().to_vec(),
            Message::Data(header) => [&header.encode(), &octets[HEADER..]].concat(),
        };
        assert_eq!(again, octets);
    }
}
