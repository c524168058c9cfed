//! Any control messages from an end with valid keys while packets are outstanding: a decoded
//! message is encoded unchanged, nothing panics, and the end continues.
#![cfg_attr(feature = "libfuzzer", no_main)]

mod gateway_peer;

use anabranch_fuzz::fuzz_target;
use anabranch_gateway::wire::{Control, Kind};
use gateway_peer::Peer;

fuzz_target!(|input: &[u8]| {
    check(input);
    let Some(mut peer) = Peer::new() else { return };
    for step in input.chunks(67) {
        let Some((&[control, path, count], rest)) = step.split_first_chunk::<3>() else {
            return;
        };
        for number in 0..count % 16 {
            let mut packet = vec![0; 40];
            packet[..4].copy_from_slice(&[0x45, control & 0xfc, 0, 40]);
            packet[19] = number;
            let taken = peer.tunnel.handle_inner(packet, peer.now);
            assert_eq!(taken, Ok(()));
        }
        peer.drain();
        peer.wait(u64::from(control & 3) * 50);
        check(rest);
        peer.send(path, Kind::Control, rest);
        peer.drain();
    }
});

fn check(octets: &[u8]) {
    if let Ok(control) = Control::decode(octets) {
        let mut again = Vec::new();
        control.encode(&mut again);
        assert_eq!(again, octets);
    }
}
