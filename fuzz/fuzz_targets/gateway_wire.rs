//! Any octets as messages of the gateway's tunnel: what is read is written as it was.
#![no_main]

use anabranch_gateway::wire::{Control, HEADER, Inner, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(message) = Message::decode(octets) {
        let again = match message {
            Message::Initiation(message) => message.encode().to_vec(),
            Message::Response(message) => message.encode().to_vec(),
            Message::CookieReply(message) => message.encode().to_vec(),
            Message::Data(header) => [&header.encode(), &octets[HEADER..]].concat(),
        };
        assert_eq!(again, octets);
    }
    if let Ok((inner, rest)) = Inner::decode(octets) {
        assert_eq!([&inner.encode(), rest].concat(), octets);
    }
    if let Ok(control) = Control::decode(octets) {
        let mut again = Vec::new();
        control.encode(&mut again);
        assert_eq!(again, octets);
    }
});
