use anabranch_core::{
    body::{Length, Octets},
    parameters::Count,
    units::Instant,
};

use super::*;
use crate::{Config, Params, redundancy::View, sender::Sender};

const SIZE: u32 = 64;

/// A sender, and a receiver that gets a part of its packets.
struct Pair<B: Body> {
    sender: Sender<B>,
    receiver: Receiver<B>,
    first: Seq,
    next: Seq,
    stats: Stats,
    back: u32,
}

impl<B: Body> Pair<B> {
    /// Groups of four packets with `redundant` redundant packets.
    fn new(code: usize, redundant: u32) -> Self {
        let params = Params {
            group: Some(Count::new(4)),
            redundant: (redundant > 1).then(|| Count::new(redundant)),
            ..Params::default()
        };
        let config = [Config::Xor, Config::ReedSolomon, Config::SlidingRlc][code](params);
        let (code, params) = config.parts().expect("it is on");
        let first = Seq::first(u32::MAX - 100);
        let mut receiver = Receiver::new(code);
        receiver.trust(7, first + (1 << 30));
        Self {
            sender: Sender::new(code, &config, params),
            receiver,
            first,
            next: first,
            stats: Stats::default(),
            back: 0,
        }
    }

    /// Sends a packet. Returns the redundancy that is due after it.
    fn data(&mut self, lost: bool) -> Vec<Redundant<B>> {
        let view = View {
            now: Instant::START,
            cwnd: 8,
        };
        let number = self.next.since(self.first).to_le_bytes();
        let octets: Vec<u8> = number.iter().copied().cycle().take(SIZE as usize).collect();
        let mut segment = Segment {
            seq: self.next.wire(),
            body: B::from_octets(&octets, SIZE),
            ..Segment::default()
        };
        self.next += u64::from(SIZE);
        self.sender.on_data(&view, &mut segment);
        if !lost {
            self.receiver.on_data(&segment, self.first);
        }
        let mut due = Vec::new();
        while let Some(mut redundant) = self.sender.take_due(Instant::START, self.first) {
            redundant.checksum = redundant.checksum.wrapping_add(7);
            due.push(redundant);
        }
        due
    }

    fn redundancy(&mut self, redundant: &Redundant<B>) -> Verdict {
        let mut recovered = Vec::new();
        let verdict =
            self.receiver
                .on_redundant(redundant, self.first, &mut recovered, &mut self.stats);
        self.back += u32::try_from(recovered.len()).expect("few");
        verdict
    }

    /// Sends a group and loses these packets.
    fn group(&mut self, lost: &[u32]) {
        for place in 0..4 {
            for redundant in self.data(lost.contains(&place)) {
                self.redundancy(&redundant);
            }
        }
    }

    /// Forged redundancy of `count` packets from `first` on.
    fn forged(first: Seq, count: u16, size: u16, key: u16) -> Redundant<B> {
        Redundant {
            first: first.wire(),
            count,
            size,
            lengths: if count.is_multiple_of(2) { 0 } else { size },
            key,
            checksum: 0x0bad_cafe,
            body: B::from_octets(&vec![0x41; usize::from(size)], size.into()),
        }
    }
}

/// Whatever a forged packet claims, losses in the current group and the next one are recovered.
/// Detects receivers that move the end of sent data, the open group or the floor for an unverified
/// packet, and receivers that continue to use a contradicted packet.
#[test]
fn forged_redundancy_does_not_switch_repair_off() {
    let size = u16::try_from(SIZE).expect("small");
    for code in 0..3 {
        let key: u16 = if code == 1 { 0x200 } else { 0x100 };
        // The start, in packets from the next one, and the number of packets.
        for (from, count) in [
            (0, 1),
            (0, 2),
            (0, 60_000),
            (0, 200),
            (9_000, 2),
            (-2, 2),
            (-2, 3),
            (-2, 4),
            (-2, 100),
        ] {
            for after in 0..4 {
                let mut pair: Pair<Octets> = Pair::new(code, if code == 0 { 1 } else { 2 });
                pair.group(&[]);
                pair.group(&[]);
                for place in 0..4 {
                    for redundant in pair.data(place == 2) {
                        pair.redundancy(&redundant);
                    }
                    if place == after && place < 3 {
                        let from = pair.first
                            + pair
                                .next
                                .since(pair.first)
                                .saturating_add_signed(from * i64::from(SIZE));
                        pair.redundancy(&Pair::forged(from, count, size, key));
                    }
                }
                let case = format!("code {code}, {count} packets at {from}, after {after}");
                assert_eq!(pair.back, 1, "{case}: its own group");
                pair.group(&[1]);
                pair.group(&[0]);
                assert_eq!(pair.back, 3, "{case}: those behind it");
            }
        }
    }
}

/// XOR has one redundant packet, and its key says so. Detects receivers that trust the number of
/// redundant packets in a forged key: they would then miss 254 packets of every group.
#[test]
fn xor_has_one_key() {
    let mut pair: Pair<Octets> = Pair::new(0, 1);
    for _ in 0..3 {
        pair.data(false);
    }
    for mut redundant in pair.data(false) {
        redundant.key = 0xff00;
        pair.redundancy(&redundant);
        assert_eq!(pair.stats.redundant_refused, 1);
        redundant.key = 0x100;
        pair.redundancy(&redundant);
    }
    pair.group(&[]);
    pair.group(&[]);
    assert_eq!(pair.receiver.untold, 0);
}

/// Stored data is bounded even if redundancy never arrives, and so is redundancy of blocks that
/// remain incomplete. Detects receivers that rely on redundancy to discard data.
#[test]
fn stored_packets_are_bounded() {
    for code in 0..3 {
        let mut pair: Pair<Length> = Pair::new(code, if code == 0 { 1 } else { 2 });
        for _ in 0..[70_000, 1_000, 8_000][code] {
            pair.data(false);
        }
        let most = [65_535, 510, 4_096][code];
        assert!(pair.receiver.kept.len() <= most, "code {code}");
        // Packets that are still of use are stored.
        pair.group(&[2]);
        assert_eq!(pair.back, 1, "code {code}");
        let mut pair: Pair<Length> = Pair::new(code, if code == 0 { 1 } else { 2 });
        for _ in 0..200 {
            pair.group(&[0, 1, 2]);
        }
        assert!(
            pair.receiver.redundant.len() <= MOST_REDUNDANT,
            "code {code}"
        );
    }
}
