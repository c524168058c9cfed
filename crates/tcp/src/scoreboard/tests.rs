use anabranch_core::units::{Duration, Instant};
use proptest::prelude::*;

use super::{record::SETTLED, *};
use crate::cause::RetransmitCause;

const SMSS: u32 = 100;

fn at(n: u64) -> Seq {
    Seq::first(u32::MAX - 250) + n
}

/// A scoreboard with `n` full segments sent at 1, 2, … ms.
fn board(n: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for i in 0..n {
        board.sent(
            at(i * u64::from(SMSS)),
            SMSS,
            Marks::NONE,
            Instant::from_millis(i + 1),
        );
    }
    board
}

fn sack(board: &mut Scoreboard, from: u64, to: u64) -> u64 {
    let mut delivered = Delivered::NOTHING;
    board.sack(at(from), at(to), &mut delivered);
    delivered.sacked
}

/// IsLost of RFC 6675 §4, octet by octet as in the text of the RFC.
fn is_lost(board: &Scoreboard, seq: Seq, dupthresh: usize) -> bool {
    let mut runs = 0;
    let mut octets = 0;
    let mut open = false;
    for record in board.records.iter() {
        if record.is_sacked() && record.start(seq) >= seq {
            octets += record.len();
            runs += usize::from(!open);
        }
        open = record.is_sacked();
    }
    runs >= dupthresh || octets > (u32::try_from(dupthresh).unwrap() - 1) * SMSS
}

#[derive(Debug, Clone)]
enum Step {
    Send(u32),
    Acknowledge(u64),
    Sack(u64, u64),
    MarkLost,
    Resend(bool),
    Speculate,
    Timeout,
    Expire(u64, u64),
    /// The record at this index has just been delivered, and segments of this age in ms are old
    /// enough.
    Detect(usize, u64),
    TimeOut(u64),
    Forgive,
    Refuse(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u32..=SMSS).prop_map(Step::Send),
        2 => (0_u64..500).prop_map(Step::Acknowledge),
        4 => (0_u64..3000, 1_u64..400).prop_map(|(from, len)| Step::Sack(from, len)),
        3 => Just(Step::MarkLost),
        3 => any::<bool>().prop_map(Step::Resend),
        1 => Just(Step::Speculate),
        1 => Just(Step::Timeout),
        1 => (0_u64..300, 0_u64..300).prop_map(|(once, again)| Step::Expire(once, again)),
        3 => (0_usize..40, 0_u64..60).prop_map(|(index, age)| Step::Detect(index, age)),
        1 => (0_u64..60).prop_map(Step::TimeOut),
        1 => Just(Step::Forgive),
        1 => (1_u32..SMSS).prop_map(Step::Refuse),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
    #[test]
    fn running_counts_match_a_recount(steps in proptest::collection::vec(step(), 1..120), dupthresh in 1_u32..5) {
        let mut board = Scoreboard::default();
        let (mut una, mut nxt) = (at(0), at(0));
        for (n, step) in steps.into_iter().enumerate() {
            let now = Instant::from_millis(n as u64 + 1);
            match step {
                Step::Send(len) => {
                    board.sent(nxt, len, Marks::NONE, now);
                    nxt += u64::from(len);
                }
                Step::Acknowledge(n) => {
                    una = nxt.min(una + n);
                    let mut delivered = Delivered::NOTHING;
                    if !board.is_plain() || board.acknowledge_whole(una).is_none() {
                        board.acknowledge(una, &mut delivered);
                    }
                }
                Step::Sack(from, len) => {
                    let left = una + from % nxt.since(una).max(1);
                    let right = nxt.min(left + len);
                    if left < right {
                        sack_between(&mut board, left, right);
                    }
                }
                Step::MarkLost => {
                    if let Some(edge) = board.lost_below(dupthresh, SMSS) {
                        board.mark_lost_below(edge);
                    }
                }
                Step::Resend(twice) => {
                    let index = board.next_lost();
                    let lowest = board.records.iter().position(|r| r.any(Marks::LOST));
                    prop_assert_eq!(index, lowest);
                    // The first segment after a timeout may be SACKed by a reneging peer.
                    if let Some(index) = index.or((!board.is_empty()).then_some(0)) {
                        board.resent(index, now, twice, true);
                    }
                }
                Step::Speculate => {
                    if let Some(index) = board.speculative() {
                        let record = *board.get(index).unwrap();
                        prop_assert!(!record.is_sacked() && record.end(una) <= board.highest_sacked().unwrap());
                        board.resent(index, now, true, true);
                    }
                }
                Step::Timeout => {
                    board.mark_all_lost();
                    prop_assert_eq!(board.in_flight(), 0);
                }
                Step::Expire(once, again) => {
                    let once = Instant::from_millis(once.min(n as u64 + 1));
                    let again = Instant::from_millis(again.min(n as u64 + 1)).min(once);
                    board.expire(once, again);
                    for record in board.records.iter().filter(|r| !r.any(SETTLED)) {
                        let limit = if record.is_retransmitted() { again } else { once };
                        prop_assert!(record.sent_at >= limit);
                    }
                }
                Step::Detect(index, age) => {
                    if let Some(record) = board.get(index) {
                        let limit = Limit {
                            latest: (record.sent_at, record.end(una)),
                            age: Duration::from_millis(age),
                        };
                        let found = board.detect(now, &limit);
                        // RFC 8985 §6.2 step 5, record by record.
                        let mut waits = false;
                        for record in board.records.iter().filter(|r| !r.any(SETTLED)) {
                            if (record.sent_at, record.end(una)) < limit.latest {
                                prop_assert!(record.sent_at.saturating_add(limit.age) > now);
                                waits = true;
                            }
                        }
                        prop_assert_eq!(found.waits, waits);
                    }
                }
                Step::TimeOut(age) => {
                    board.time_out(now, Duration::from_millis(age));
                    prop_assert!(board.front().is_none_or(|front| front.any(SETTLED)));
                }
                Step::Refuse(most) => {
                    let large = |r: &Record| !r.is_sacked() && r.payload() > most;
                    let expected = board.records.iter().filter(|r| large(r)).count();
                    let cut = board.refuse_above(most);
                    prop_assert_eq!(cut.len(), expected);
                    prop_assert!(!board.records.iter().any(large));
                    for (number, pieces) in cut {
                        let first = usize::try_from(number - board.gone()).unwrap();
                        for index in first..first + pieces {
                            prop_assert!(board.get(index).unwrap().any(Marks::LOST));
                        }
                    }
                }
                Step::Forgive => {
                    board.forgive();
                    prop_assert_eq!(board.lost(), 0);
                }
            }
            prop_assert_eq!(
                board.sacked_segments() as usize,
                board.records.iter().filter(|record| record.is_sacked()).count()
            );
            prop_assert_eq!((board.in_flight(), board.lost(), board.sacked()), board.recount());
            prop_assert!(board.front().is_none_or(|front| front.start(una) == una));
            prop_assert_eq!(board.records.iter().map(Record::numbers).sum::<u64>(), nxt.since(una));
        }
    }

    #[test]
    fn lost_below_matches_is_lost_of_rfc_6675(
        blocks in proptest::collection::vec((0_u64..40, 1_u64..6), 0..8), dupthresh in 1_u32..6,
    ) {
        let mut board = board(40);
        for (from, len) in blocks {
            let (from, to) = (from * u64::from(SMSS), (from + len).min(40) * u64::from(SMSS));
            sack(&mut board, from, to);
        }
        if let Some(edge) = board.lost_below(dupthresh, SMSS) {
            board.mark_lost_below(edge);
        }
        for record in board.records.iter().filter(|record| !record.is_sacked()) {
            prop_assert_eq!(
                record.any(Marks::LOST),
                is_lost(&board, record.start(at(0)), dupthresh as usize),
                "{:?}", record
            );
        }
    }

    /// As `acknowledge`, for whole segments sent once; for others nothing changes.
    #[test]
    fn whole_segments_are_acknowledged_as_any_others(
        segments in proptest::collection::vec((1_u32..=SMSS, 0_u8..12), 1..12), resent in 0_usize..40,
        ends in 0_usize..12, beyond in 0_u64..3,
    ) {
        let build = || {
            let (mut board, mut nxt, mut numbers) = (Scoreboard::default(), at(0), vec![]);
            for (n, &(len, control)) in (1..).zip(&segments) {
                let marks = match control {
                    0 => Marks::SYN,
                    1 => Marks::FIN,
                    _ => Marks::NONE,
                };
                board.sent(nxt, len, marks, Instant::from_millis(n));
                nxt += u64::from(len);
                numbers.push(nxt);
            }
            board.resent(resent, Instant::from_millis(100), true, false);
            (board, numbers)
        };
        let ((mut board, numbers), (mut other, _)) = (build(), build());
        let last = ends.min(numbers.len() - 1);
        let una = numbers[last] + beyond;
        let usual = |(n, segment): (usize, &(u32, u8))| segment.1 > 1 && n != resent;
        let whole = numbers.contains(&una) && {
            let count = numbers.iter().filter(|end| **end <= una).count();
            segments.iter().enumerate().take(count).all(usual)
        };
        let plain = board.acknowledge_whole(una);
        prop_assert_eq!(plain.is_some(), whole);
        let Some(plain) = plain else {
            let counts = |board: &Scoreboard| (board.len(), board.gone(), board.in_flight());
            prop_assert_eq!(counts(&board), counts(&other));
            return Ok(());
        };
        let mut delivered = Delivered::NOTHING;
        other.acknowledge(una, &mut delivered);
        let as_delivered = plain.delivered(at(0), una);
        prop_assert_eq!(as_delivered.once, delivered.once);
        prop_assert_eq!(
            (as_delivered.fresh, as_delivered.latest, as_delivered.highest),
            (delivered.fresh, delivered.latest, delivered.highest)
        );
        prop_assert_eq!((board.len(), board.gone()), (other.len(), other.gone()));
        prop_assert_eq!((board.in_flight(), board.lost(), board.sacked()), board.recount());
        prop_assert!(board.front().is_none_or(|front| front.start(una) == una));
    }
}

fn sack_between(board: &mut Scoreboard, left: Seq, right: Seq) -> u64 {
    let mut delivered = Delivered::NOTHING;
    board.sack(left, right, &mut delivered);
    delivered.sacked
}

#[test]
fn pipe_of_rfc_6675() {
    // Ten segments; the second, fourth, fifth and sixth are reported.
    let mut board = board(10);
    assert_eq!(sack(&mut board, 100, 200), 100);
    assert_eq!(sack(&mut board, 300, 600), 300);
    // Above the first and the third four segments are SACKed: both are lost. Above the others
    // nothing is SACKed.
    assert_eq!(board.in_flight(), 600);
    assert_eq!(board.lost_below(3, SMSS), Some(at(300)));
    assert_eq!(board.mark_lost_below(at(300)), 200);
    assert_eq!((board.in_flight(), board.lost()), (400, 200));
    // Retransmitted, the first counts again.
    assert_eq!(board.next_lost(), Some(0));
    board.resent(0, Instant::from_millis(50), true, false);
    assert_eq!((board.in_flight(), board.next_lost()), (500, Some(2)));
    // Rule 3: a segment retransmitted without being marked lost counts twice.
    board.resent(2, Instant::from_millis(51), true, false);
    sack(&mut board, 700, 800);
    assert_eq!(board.in_flight(), 500);
    assert_eq!(board.speculative(), Some(6));
    board.resent(6, Instant::from_millis(52), true, false);
    assert_eq!(board.in_flight(), 600);
    // Until a copy is SACKed, or until the first copy is marked lost.
    sack(&mut board, 600, 700);
    assert_eq!(board.in_flight(), 400);
}

/// A burst is sent at one time, and the block that changed last comes first (RFC 2018 §4).
#[test]
fn the_last_of_segments_sent_at_one_time_is_the_latest() {
    let mut board = Scoreboard::default();
    for i in 0..10 {
        let start = at(i * u64::from(SMSS));
        board.sent(start, SMSS, Marks::NONE, Instant::from_millis(1));
    }
    let mut delivered = Delivered::NOTHING;
    board.sack(at(700), at(800), &mut delivered);
    board.sack(at(500), at(600), &mut delivered);
    let once = delivered.once.unwrap();
    assert_eq!((once.last_end, once.lowest), (at(800), at(500)));
    assert_eq!(delivered.latest, Some(7));
}

#[test]
fn a_block_seen_before_is_not_new() {
    let mut board = board(10);
    assert_eq!(sack(&mut board, 300, 600), 300);
    assert_eq!(sack(&mut board, 300, 600), 0);
    assert_eq!(sack(&mut board, 400, 500), 0);
    assert_eq!(sack(&mut board, 200, 700), 200);
    // Half of a segment does not count as the segment.
    assert_eq!(sack(&mut board, 800, 850), 0);
    assert_eq!(sack(&mut board, 850, 900), 100);
}

#[test]
fn sack_blocks_of_a_reneging_peer_are_discarded() {
    let mut board = board(4);
    sack(&mut board, 0, 100);
    sack(&mut board, 200, 300);
    board.mark_all_lost();
    assert_eq!(
        (board.sacked(), board.lost(), board.next_lost()),
        (0, 400, Some(0))
    );
}

/// SYN stays with the first piece, FIN with the last.
#[test]
fn pieces_keep_syn_and_fin() {
    let mut board = Scoreboard::default();
    let all = Marks::SYN.with(Marks::FIN);
    board.sent(at(0), 252, all, Instant::from_millis(1));
    assert_eq!(board.refuse_above(100), [(0, 3)]);
    let pieces: Vec<_> = board
        .records
        .iter()
        .map(|r| (r.start(at(0)), r.len(), r.is_syn(), r.is_fin()))
        .collect();
    let expected = [
        (at(0), 101, true, false),
        (at(101), 100, false, false),
        (at(201), 51, false, true),
    ];
    assert_eq!(pieces, expected);
    assert_eq!((board.lost(), board.in_flight()), (252, 0));
    assert_eq!(board.refuse_above(100), []);
}

/// The largest segments of IP, and each cause of a loss mark.
#[test]
fn a_record_keeps_its_length_and_cause() {
    for cause in RetransmitCause::ALL {
        let mut board = Scoreboard::default();
        let all = Marks::SYN.with(Marks::FIN);
        board.sent(at(0), 65_537, all, Instant::from_millis(1));
        board.mark_lost(0, RetransmitCause::PathMtu);
        board.resent(0, Instant::from_millis(2), true, false);
        board.mark_lost(0, cause);
        let record = board.front().unwrap();
        assert_eq!((record.lost_by(), record.payload()), (cause, 65_535));
        assert_eq!(record.end(at(0)), at(65_537));
    }
}

#[test]
fn records_are_small() {
    assert!(size_of::<Record>() == 16, "{}", size_of::<Record>());
}

/// Large windows with many holes take linear time: a scan would show in every work counter.
#[test]
fn a_hundred_thousand_segments_with_holes_take_linear_time() {
    let n = 100_000;
    let mut board = board(n);
    let started = board.records.len();
    assert_eq!(started, 100_000);
    for i in (1..n).step_by(2) {
        let (from, to) = (i * u64::from(SMSS), (i + 1) * u64::from(SMSS));
        sack(&mut board, from, to);
        if let Some(edge) = board.lost_below(3, SMSS) {
            board.mark_lost_below(edge);
        }
    }
    let mut resent = 0;
    while let Some(index) = board.next_lost() {
        board.resent(index, Instant::from_millis(n + 1), true, true);
        resent += 1;
    }
    // All holes except the last two, above which fewer than three segments are SACKed.
    assert_eq!(resent, n / 2 - 2);
    for i in 1..=n {
        let mut delivered = Delivered::NOTHING;
        board.acknowledge(at(i * u64::from(SMSS)), &mut delivered);
    }
    assert!(board.is_empty() && board.in_flight() == 0 && board.sacked() == 0);
}
