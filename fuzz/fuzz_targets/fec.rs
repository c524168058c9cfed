//! Any octets as redundant packets, and as what the receiving half of the layer hears between data: never a panic,
//! and never anything brought back that was not sent.
//!
//! The first octet picks the code and how long groups are, each further one what happens next: data comes, or is lost,
//! or its redundancy comes, changed as the octets behind say.
#![no_main]

use anabranch_core::units::Instant;
use anabranch_elements::{
    body::{Body, Octets},
    fec::{
        Config, Params, Redundant, Stats,
        packet::Tag,
        receiver::Receiver,
        redundancy::{Choice, View},
        sender::Sender,
    },
    heavy::Count,
    tcp::{Flags, Segment, Seq},
    wire,
};
use libfuzzer_sys::fuzz_target;

const SIZE: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let _ = wire::decode_redundant(bytes);
    let Some((&how, rest)) = bytes.split_first() else {
        return;
    };
    let params = Params {
        redundancy: Choice::Fixed,
        group: Count::new(u32::from(how >> 2) % 12 + 1),
        redundant: (how % 3 > 0).then(|| Count::new(2)),
        ..Params::default()
    };
    let config =
        [Config::Xor, Config::ReedSolomon, Config::SlidingRlc][usize::from(how % 3)](params);
    let (code, params) = config.parts().expect("it is on");
    let mut sender: Sender<Octets> = Sender::new(code, &config, params);
    let mut receiver: Receiver<Octets> = Receiver::new(code);
    let (mut stats, mut recovered) = (Stats::default(), Vec::new());
    let first = Seq::first(u32::MAX - 100);
    let view = View {
        now: Instant::START,
        cwnd: 10,
    };
    let (mut next, mut sent) = (first, Vec::new());
    let mut input = rest.iter().copied();
    while let Some(what) = input.next() {
        let len = if what & 0x30 == 0 {
            usize::from(what >> 6) + 1
        } else {
            SIZE
        };
        let octets: Vec<u8> = (0..len)
            .map(|k| (sent.len() * 7 + k * 13).to_le_bytes()[0] ^ what)
            .collect();
        let mut segment = Segment {
            seq: next.wire(),
            flags: Flags::ACK,
            body: Octets(octets.clone()),
            ..Segment::default()
        };
        next += len as u64;
        sent.extend(octets);
        sender.on_data(&view, &mut segment);
        if what & 1 == 0 {
            if what & 2 != 0 {
                Tag::NONE.write(&mut segment);
            }
            receiver.on_data(&segment, first);
        }
        while let Some(mut redundant) = sender.take_due(Instant::START, first) {
            if what & 4 != 0 {
                change(&mut redundant, &mut input);
            }
            if what & 8 == 0 {
                receiver.on_redundant(&redundant, first, &mut recovered, &mut stats);
            }
        }
        for one in recovered.drain(..) {
            let from = usize::try_from(one.start.since(first)).expect("it was sent");
            let to = from + one.body.len() as usize;
            assert_eq!(
                one.body.octets(),
                sent.get(from..to),
                "nothing else comes back"
            );
        }
    }
});

/// Changes a field, as the next octets say; never the content and its checksum together.
fn change(redundant: &mut Redundant<Octets>, input: &mut impl Iterator<Item = u8>) {
    let (Some(what), Some(by)) = (input.next(), input.next()) else {
        return;
    };
    match what % 8 {
        0 => redundant.first = redundant.first.wrapping_add(u32::from(by)),
        1 => redundant.count = redundant.count.wrapping_add(by.into()),
        2 => redundant.size = redundant.size.wrapping_sub(by.into()),
        3 => redundant.lengths ^= u16::from(by) << (what >> 5),
        4 => redundant.key ^= u16::from(by) << (what >> 4 & 8),
        5 => redundant.checksum ^= u32::from(by) << (what >> 3),
        6 => redundant.body.0.resize(usize::from(by), what),
        _ => {
            let place = usize::from(by) % redundant.body.0.len().max(1);
            if let Some(octet) = redundant.body.0.get_mut(place) {
                *octet ^= what;
            }
        }
    }
}
