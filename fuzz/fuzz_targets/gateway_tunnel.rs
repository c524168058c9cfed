//! Any datagrams and packets, at any time, to an end of the gateway's tunnel, and altered ones of a real session: nothing panics.
#![no_main]

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant},
};
use anabranch_gateway::{
    crypto::{Entropy, Keys, public_key},
    path::Route,
    tunnel::{Config, PathConfig, Tunnel},
    wire::PathId,
};
use libfuzzer_sys::fuzz_target;

struct Seeded(Stream, u64);

impl Entropy for Seeded {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            *octet = self.0.at(self.1).bits().to_be_bytes()[0];
            self.1 += 1;
        }
    }
}

fn route() -> Route {
    Route {
        local: 0,
        remote: ([192, 0, 2, 1], 5_000).into(),
    }
}

fn tunnel(private: u8, peer: u8, begins: bool) -> Tunnel {
    let config = Config {
        keys: Keys {
            private: [private; 32],
            peer: public_key(&[peer; 32]),
            psk: None,
        },
        paths: (0..2)
            .filter_map(PathId::new)
            .map(|id| PathConfig {
                id,
                route: begins.then(route),
                standby: false,
            })
            .collect(),
        sources: Vec::new(),
    };
    let entropy = Seeded(Stream::new(u64::from(private), "fuzz"), 0);
    Tunnel::new(config, Box::new(entropy), Instant::START)
}

fuzz_target!(|input: &[u8]| {
    let mut ends = [tunnel(1, 2, true), tunnel(2, 1, false)];
    let mut now = Instant::START;
    let mut buffer = Vec::new();
    for step in input.chunks(8) {
        let end = usize::from(step[0] & 1);
        now = now + Duration::from_millis(u64::from(step[0] >> 4) * 20);
        let _ = match step[0] >> 1 & 3 {
            0 => ends[end].handle_inner(step[1..].to_vec(), now),
            1 => {
                ends[end].handle(&mut step[1..].to_vec(), route(), now, now);
                Ok(())
            }
            2 => ends[end].handle_inner(packet(step), now),
            _ => Ok(()),
        };
        for end in 0..2 {
            while ends[end].poll_transmit(now, &mut buffer).is_some() {
                if let (1.., Some(&at), Some(&flip)) = (step[0] & 8, step.get(1), step.get(2)) {
                    let length = buffer.len();
                    buffer[usize::from(at) % length] ^= flip;
                }
                ends[1 - end].handle(&mut buffer, route(), now, now);
            }
            while ends[end].poll_deliver(now).is_some() {}
        }
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
