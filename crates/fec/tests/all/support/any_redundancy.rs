//! Interprets octets as events at the receiving half of the layer and checks that only sent packets
//! are recovered. This is the body of the fuzz target `fec`, which the test of the same name runs
//! as well.
//!
//! The first octet selects the code and the group size, each further one the next event: data
//! arrives or is lost; its redundancy arrives, late, twice, or changed as the following octets say.

use anabranch_core::{
    body::{Body, Octets},
    parameters::Count,
    units::Instant,
};
use anabranch_fec::{Config, Params, Stats, receiver::Receiver, redundancy::View, sender::Sender};
use anabranch_wire::{Flags, Redundant, Segment, Seq, redundant::Tag};

const SIZE: usize = 16;

/// Bits of the octet of an event: the data packet is lost.
pub const LOST: u8 = 1;
/// The data packet carries no group number.
pub const UNTAGGED: u8 = 2;
/// Redundancy is changed.
pub const CHANGED: u8 = 4;
/// Redundancy is lost.
pub const REDUNDANCY_LOST: u8 = 8;
/// The packet has its full length if one of these bits is set. Otherwise the upper two bits give
/// its length.
pub const WHOLE: u8 = 0x30;
/// With the full length: redundancy arrives after the next packet.
pub const LATE: u8 = 0x40;
/// With the full length: redundancy arrives twice.
pub const TWICE: u8 = 0x80;

/// Runs the events. Returns the receiver's counters.
///
/// # Panics
/// If a packet is recovered that was not sent.
pub fn run(bytes: &[u8]) -> Stats {
    let mut stats = Stats::default();
    let Some((&how, rest)) = bytes.split_first() else {
        return stats;
    };
    let params = Params {
        group: Some(Count::new(u32::from(how >> 2) % 12 + 1)),
        redundant: (how % 3 > 0).then(|| Count::new(2)),
        ..Params::default()
    };
    let config =
        [Config::Xor, Config::ReedSolomon, Config::SlidingRlc][usize::from(how % 3)](params);
    let (code, params) = config.parts().expect("it is on");
    let mut sender: Sender<Octets> = Sender::new(code, &config, params);
    let mut receiver: Receiver<Octets> = Receiver::new(code);
    let mut recovered = Vec::new();
    let first = Seq::first(u32::MAX - 100);
    // Far enough for any packet sent: a receiver without a window refuses all redundancy.
    receiver.trust(0, first + (1 << 24));
    let view = View {
        now: Instant::START,
        cwnd: 10,
    };
    let (mut next, mut sent) = (first, Vec::new());
    let mut late: Vec<Redundant<Octets>> = Vec::new();
    let mut input = rest.iter().copied();
    while let Some(what) = input.next() {
        let whole = what & WHOLE != 0;
        let len = if whole {
            SIZE
        } else {
            usize::from(what >> 6) + 1
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
        if what & LOST == 0 {
            if what & UNTAGGED != 0 {
                Tag::NONE.write(&mut segment);
            }
            receiver.on_data(&segment, first);
        }
        let mut comes = std::mem::take(&mut late);
        while let Some(mut redundant) = sender.take_due(Instant::START, first) {
            if what & CHANGED != 0 {
                change(&mut redundant, &mut input);
            }
            if what & REDUNDANCY_LOST != 0 {
                continue;
            }
            if whole && what & LATE != 0 {
                late.push(redundant.clone());
            } else {
                comes.push(redundant.clone());
            }
            if whole && what & TWICE != 0 {
                comes.push(redundant);
            }
        }
        for redundant in &comes {
            receiver.on_redundant(redundant, first, &mut recovered, &mut stats);
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
    stats
}

/// Changes a field as the next octets say, but never the content and its checksum together.
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
