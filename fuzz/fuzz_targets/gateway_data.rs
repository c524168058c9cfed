//! Any sealed messages from an end with valid keys: packets, packets of blocks, repair packets and
//! probes, with any numbers on any paths. Nothing panics, and the memory of the other end stays
//! within its bounds.
#![cfg_attr(feature = "libfuzzer", no_main)]

mod gateway_peer;

use anabranch_fuzz::fuzz_target;
use anabranch_gateway::wire::{Inner, Kind};
use gateway_peer::Peer;

fuzz_target!(|input: &[u8]| {
    let Some(mut peer) = Peer::new() else { return };
    for step in input.chunks(32) {
        let Some((&[control, path, block, repeat], rest)) = step.split_first_chunk::<4>() else {
            return;
        };
        if let Ok((inner, content)) = Inner::decode(rest, block.into()) {
            assert_eq!([&inner.encode(), content].concat(), rest);
            let packet = packet(content);
            let content = if control & 1 == 0 { content } else { &packet };
            for k in 0..=u32::from(repeat) {
                let mut kind = inner.kind;
                if let Kind::Packet(place) = &mut kind {
                    place.number = place.number.wrapping_add(k * u32::from(control >> 4));
                }
                peer.send(path, kind, content);
            }
        }
        peer.wait(u64::from(control >> 1 & 7) * 30);
        peer.drain();
    }
});

/// An IPv4 packet.
fn packet(content: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; 20];
    octets[0] = 0x45;
    octets.extend_from_slice(content);
    octets[3] = u8::try_from(octets.len()).unwrap_or(0);
    octets
}
