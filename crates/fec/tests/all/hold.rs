//! The content of held acknowledgments at their release.

use anabranch_core::{body::Length, units::Instant};
use anabranch_fec::{
    Params, Stats,
    hold::{Held, Hold, Reason},
    params::InRecovery,
};
use anabranch_wire::{
    AccEcn, Flags, Options, SackBlock, Segment, Seq,
    accecn::{Counter, Order},
};

const NOW: Instant = Instant::START;
const SIZE: u64 = 1_000;

fn counts() -> AccEcn {
    AccEcn::new(Order::Ect0First, &[5_001, 1_000])
}

/// An acknowledgment of `ack` with SACK `blocks`, elicited by data up to `end`.
fn held(ack: Seq, end: Seq, blocks: &[(Seq, Seq)], accecn: Option<AccEcn>) -> Held<Length> {
    let mut three = [SackBlock::default(); 3];
    for (block, (left, right)) in three.iter_mut().zip(blocks) {
        (block.left, block.right) = (left.wire(), right.wire());
    }
    let [a, b, c] = three;
    let n = u8::try_from(blocks.len()).expect("three");
    let options = match accecn {
        Some(accecn) => Options::SackAccEcn(n, three, accecn),
        None => Options::Sack(n, [a, b, c, SackBlock::default()]),
    };
    let ack = Segment {
        ack: ack.wire(),
        window: 100,
        flags: Flags::ACK | Flags::ECE,
        options,
        ..Segment::default()
    };
    Held {
        ack,
        end,
        ready: NOW,
        scale: 7,
    }
}

/// The acknowledgments released after the repair of the packet at `gap`, after which `packets` have
/// arrived.
fn released(gap: Seq, packets: u64, accecn: Option<AccEcn>) -> Vec<Segment<Length>> {
    let mut stats = Stats::default();
    let mut hold = Hold::new(&Params::default());
    hold.begin(NOW, &mut stats);
    for n in 1..=packets {
        let end = gap + SIZE * (n + 1);
        let blocks = [(gap + SIZE, end)];
        hold.keep(held(gap, end, &blocks, accecn), &mut stats);
    }
    let top = gap + SIZE * (packets + 1);
    let counted = hold.complete(NOW, Reason::Repaired, top, &mut stats);
    // TCP sends the last one, with its counts.
    assert_eq!(counted, accecn.is_some());
    std::iter::from_fn(|| hold.take_released(NOW)).collect()
}

/// Each acknowledgment covers the data that elicited it, and its window keeps its right edge, but
/// is not negative. Detects receivers that raise the number and leave the window.
#[test]
fn windows_keep_their_right_edge() {
    // Sequence numbers wrap.
    let gap = Seq::first(u32::MAX - 1_500);
    let acks = released(gap, 30, None);
    assert_eq!(acks.len(), 29);
    for (n, ack) in (1..).zip(&acks) {
        let more = SIZE * (n + 1);
        assert_eq!(ack.ack, (gap + more).wire());
        assert_eq!(ack.options, Options::None);
        let (window, offered) = (u64::from(ack.window) << 7, 100 << 7);
        assert!(window + more <= offered.max(more), "{n}");
        assert!(window + more + 128 > offered, "{n}");
    }
}

/// Detects receivers that drop the counts of marked octets, or the echo, together with the SACK
/// blocks.
#[test]
fn marks_remain_when_sack_blocks_are_removed() {
    let acks = released(Seq::first(9), 5, Some(counts()));
    assert_eq!(acks.len(), 4);
    for ack in acks {
        assert_eq!(ack.options, Options::AccEcn(counts()));
        assert!(ack.flags.has(Flags::ACK | Flags::ECE));
    }
}

/// Earlier data is missing, and a later gap is repaired: with and without counts of marked octets,
/// no SACK block has a hole there any more. Then the first gap is repaired: no SACK block begins at
/// the acknowledgment number, which would report the data as missing and as received. Detects
/// receivers that update only one form of the option, or the block but not the number.
#[test]
fn recovered_data_is_not_reported_as_missing() {
    let older = Seq::first(1_000_000);
    let [a, b, c, left, right] = [2, 3, 4, 7, 9].map(|n| older + SIZE * n);
    let params = Params {
        hold_in_recovery: InRecovery::All,
        ..Params::default()
    };
    for accecn in [None, Some(counts())] {
        let mut stats = Stats::default();
        let mut hold = Hold::new(&params);
        hold.give_up(NOW, Reason::GroupOver, older + SIZE, &mut stats);
        hold.begin(NOW, &mut stats);
        hold.keep(
            held(older, c, &[(b, c), (older + SIZE, a)], accecn),
            &mut stats,
        );
        hold.keep(
            held(
                older,
                right,
                &[(left, right), (b, c), (older + SIZE, a)],
                accecn,
            ),
            &mut stats,
        );
        hold.on_repaired(a, b);
        assert_eq!(
            hold.deadline(),
            NOW.saturating_add(params.hold_timeout.get())
        );
        hold.on_repaired(older, older + SIZE);
        hold.give_up(NOW, Reason::Timeout, right, &mut stats);
        let acks: Vec<_> = std::iter::from_fn(|| hold.take_released(NOW)).collect();
        let blocks = |ack: &Segment<Length>| -> Vec<(u32, u32)> {
            let blocks = ack.options.sack_blocks().iter();
            blocks.map(|block| (block.left, block.right)).collect()
        };
        assert_eq!(acks.len(), 2);
        for ack in &acks {
            assert_eq!(ack.options.accecn(), accecn);
            assert_eq!(ack.ack, c.wire());
        }
        assert_eq!(blocks(&acks[0]), []);
        assert_eq!(blocks(&acks[1]), [(left.wire(), right.wire())]);
        assert_eq!(counts().field(Counter::Ce), Some(1_000));
    }
}
