//! Detection and undo of spurious retransmissions and timeouts, example by example.

use crate::support;

use anabranch_congestion::IdleRestart;
use anabranch_core::{body::Length, packet::Ecn};
use anabranch_tcp::{
    EcnMode, Receiver, Recovery, RecoveryPace, Refusal, RetransmitCause, Settings, WindowChange,
    WindowRules,
};
use anabranch_wire::{Segment, Timestamps};
use support::scripted::{MSS, Sender, again, all, first, ms, racked};

use RetransmitCause::{Rack, Rto};

/// RFC 2883 §5, RFC 3708: a fast retransmit caused by reordering is undone once the duplicate is
/// reported.
#[test]
fn duplicates_undo_a_fast_retransmit() {
    let settings = Settings {
        undo: true,
        recovery_pace: RecoveryPace::Prr,
        ..racked()
    };
    let mut s = Sender::new(&settings);
    s.write(40, 10);
    s.ack(80, 0, &[(1, 3)]);
    let cwnd = s.cwnd();
    assert_eq!(s.ack(81, 0, &[(1, 5)]), again(Rack, &[0]));
    assert!(s.cwnd() < cwnd);
    // The original was only late.
    s.ack(82, 10, &[]);
    assert!(s.cwnd() < cwnd);
    s.ack(121, 10, &[(0, 1)]);
    assert_eq!(s.cwnd(), cwnd);
    assert_eq!((s.stats().undone, s.stats().duplicates_reported), (1, 1));
    assert_eq!(
        s.changes(),
        [
            WindowChange::Recovery(Rack),
            WindowChange::Recovered,
            WindowChange::Undone
        ]
    );
    // A second report undoes nothing.
    s.ack(122, 10, &[(0, 1)]);
    assert_eq!(s.stats().undone, 1);
}

/// RFC 3168 §6.1.2: a mark indicates congestion, whether or not an earlier recovery proves
/// spurious.
#[test]
fn a_late_duplicate_does_not_undo_an_ecn_reduction() {
    let settings = Settings {
        undo: true,
        ecn: EcnMode::Rfc3168,
        ..racked()
    };
    let mut s = Sender::new(&settings);
    s.write(40, 10);
    s.ack(80, 0, &[(1, 3)]);
    assert_eq!(s.ack(81, 0, &[(1, 5)]), again(Rack, &[0]));
    s.ack(82, 10, &[]);
    s.write(83, 4);
    let before = s.cwnd();
    s.ack_with_echo(123, 11);
    let reduced = s.cwnd();
    assert!(reduced < before);
    s.ack(124, 11, &[(0, 1)]);
    assert_eq!((s.cwnd(), s.stats().undone), (reduced, 0));
}

/// Two retransmissions need two reports.
#[test]
fn one_duplicate_of_two_undoes_nothing() {
    let settings = Settings {
        undo: true,
        ..racked()
    };
    let mut s = Sender::new(&settings);
    s.write(40, 10);
    s.ack(80, 0, &[(2, 4)]);
    assert_eq!(s.ack(81, 0, &[(2, 6)]), again(Rack, &[0]));
    assert_eq!(s.ack(82, 0, &[(2, 7)]), again(Rack, &[1]));
    s.ack(121, 10, &[(1, 2)]);
    assert_eq!(s.stats().undone, 0);
    s.ack(122, 10, &[(0, 1)]);
    assert_eq!(s.stats().undone, 1);
}

/// RFC 3522 §3: the echoed timestamp shows it at once.
#[test]
fn timestamps_undo_a_fast_retransmit() {
    for (original, undone) in [(true, 1), (false, 0)] {
        let mut s = Sender::new(&all());
        s.write(40, 10);
        s.echo = 40;
        s.ack(80, 0, &[(1, 3)]);
        let cwnd = s.cwnd();
        assert_eq!(s.ack(81, 0, &[(1, 5)]), again(Rack, &[0]));
        s.echo = if original { 40 } else { 81 };
        s.ack(82, 8, &[]);
        assert_eq!(s.stats().undone, undone);
        assert_eq!(s.cwnd() >= cwnd, original);
    }
}

/// A segment lost before a recovery that proved spurious is retransmitted without a timeout, as
/// Linux 6.18 does. RFC 6582 §3.2 step 2 ignores its duplicates.
#[test]
fn a_loss_from_before_a_spurious_recovery_begins_another() {
    for (recovery_pace, retransmitted) in [(RecoveryPace::Prr, 2), (RecoveryPace::Pipe, 1)] {
        let settings = Settings {
            recovery: Recovery::NewReno,
            recovery_pace,
            sack: false,
            dsack: false,
            max_dupthresh: 3,
            initial_cwnd: 20,
            tlp: false,
            ..all()
        };
        let mut s = Sender::new(&settings);
        s.write(40, 20);
        s.echo = 40;
        // This one opens the window, and is no duplicate.
        s.ack(80, 0, &[]);
        for at in 81..84 {
            s.ack(at, 0, &[]);
        }
        assert_eq!(s.stats().retransmitted_packets, 1);
        // The original of segment 0 was late; segment 10, sent with it, is lost.
        s.ack(90, 10, &[]);
        assert_eq!(s.stats().undone, 1);
        for at in 91..94 {
            s.ack(at, 10, &[]);
        }
        assert_eq!(s.stats().retransmitted_packets, retransmitted);
    }
}

fn timed_out(settings: &Settings, blocks: bool) -> (Sender, u64) {
    let mut s = Sender::new(settings);
    s.write(40, 10);
    s.end.write_all(Length(10 * MSS));
    let cwnd = s.cwnd();
    let at = s.end.deadline().as_picos() / 1_000_000_000;
    let mut left = s.wait(at);
    if left.is_empty() || left[0].1 != Some(Rto) {
        let at = s.end.deadline().as_picos() / 1_000_000_000;
        left = s.wait(at);
    }
    assert_eq!(left, again(Rto, &[0]), "{blocks}");
    assert_eq!(s.cwnd(), 1);
    (s, cwnd)
}

/// RFC 5682 §2 and §3: after a spurious timeout new data is sent instead of retransmissions, and
/// the window is restored.
#[test]
fn frto_sees_a_spurious_timeout() {
    for recovery in [Recovery::NewReno, Recovery::Rfc6675, Recovery::Rack] {
        let settings = Settings {
            recovery,
            sack: recovery.needs_sack(),
            dsack: false,
            frto: true,
            undo: true,
            tlp: false,
            ..racked()
        };
        let (mut s, cwnd) = timed_out(&settings, false);
        let at = s.now.as_picos() / 1_000_000_000;
        assert_eq!(s.ack(at + 5, 1, &[]), first(10..12), "{recovery:?}");
        let left = s.ack(at + 6, 2, &[]);
        assert_eq!(s.stats().undone, 1, "{recovery:?}");
        assert!(left.iter().all(|left| left.1.is_none()), "{left:?}");
        assert!(s.cwnd() >= cwnd);
        assert_eq!(s.stats().retransmitted_packets, 1);
    }
}

/// The same if everything except the first segment was lost.
#[test]
fn frto_sees_a_genuine_timeout() {
    let settings = Settings {
        frto: true,
        undo: true,
        tlp: false,
        recovery: Recovery::Rfc6675,
        ..racked()
    };
    let (mut s, _) = timed_out(&settings, true);
    let at = s.now.as_picos() / 1_000_000_000;
    assert_eq!(s.ack(at + 40, 1, &[]), first(10..12));
    assert_eq!(s.ack(at + 80, 1, &[(10, 11)]), again(Rto, &[1]));
    assert_eq!(s.stats().undone, 0);
}

/// RFC 3522 after a timeout.
#[test]
fn timestamps_undo_a_timeout() {
    let settings = Settings {
        tlp: false,
        frto: false,
        ..all()
    };
    let (mut s, cwnd) = timed_out(&settings, true);
    s.echo = 40;
    let at = s.now.as_picos() / 1_000_000_000;
    let left = s.ack(at + 5, 1, &[]);
    assert_eq!(s.stats().undone, 1);
    assert!(left.iter().all(|left| left.1.is_none()), "{left:?}");
    assert!(s.cwnd() >= cwnd);
}

/// In Linux a timeout during a recovery reduces nothing further, and only the recovery's reduction
/// can be undone. The late acknowledgment of the recovery's retransmission echoes a time before the
/// timeout, but not before the recovery. The original was therefore lost, and nothing is undone. If
/// the timeout itself has reduced the window (RFC 5681), only its reduction is undone.
#[test]
fn a_spurious_timeout_in_recovery_does_not_undo_it() {
    // Without undo the window is one segment, and the acknowledgment increases it.
    for (again_, undone, cwnd) in [(false, 0, 2), (true, 1, 21)] {
        let settings = Settings {
            window_rules: if again_ {
                WindowRules::Rfc5681
            } else {
                WindowRules::Linux
            },
            initial_cwnd: 40,
            tlp: false,
            ..all()
        };
        let mut s = Sender::new(&settings);
        s.write(40, 40);
        s.echo = 40;
        assert_eq!(s.ack(80, 0, &[(1, 8)]), again(Rack, &[0]));
        s.ack(82, 0, &[(1, 40)]);
        while s.stats().timeouts == 0 {
            s.expire();
        }
        let at = s.now.as_picos() / 1_000_000_000;
        s.echo = 80;
        s.ack(at + 5, 40, &[]);
        assert_eq!(s.stats().undone, undone);
        assert_eq!(s.cwnd(), cwnd);
        let ssthresh = s.end.snapshot().ssthresh.expect("reduced");
        assert_eq!(ssthresh.get(), 20_000);
    }
}

/// RFC 7661 §4.4.1 reduces the window again at the end of a recovery that began with an unused
/// window, but not if the recovery has proved spurious.
#[test]
fn an_undone_recovery_skips_the_rfc_7661_reduction() {
    for spurious in [true, false] {
        let settings = Settings {
            idle_restart: IdleRestart::Rfc7661,
            eifel: false,
            initial_cwnd: 40,
            tlp: false,
            ..all()
        };
        let mut s = Sender::new(&settings);
        // Four segments per round trip, of forty that the window permits.
        for round in 1..6 {
            s.write(40 * round, 4);
            s.ack(40 * (round + 1), s.behind, &[]);
        }
        let cwnd = s.cwnd();
        assert!(cwnd >= 40);
        let una = s.behind;
        s.write(240, 10);
        s.ack(280, una, &[(una + 1, una + 5)]);
        s.ack(320, una, &[(una + 1, una + 6)]);
        assert_eq!(s.stats().retransmitted_packets, 1);
        assert!(s.cwnd() < cwnd);
        let duplicate = [(una, una + 1)];
        s.ack(330, una + 8, if spurious { &duplicate } else { &[] });
        assert_eq!(s.stats().undone, u32::from(spurious));
        s.ack(331, una + 10, &[]);
        assert_eq!(s.cwnd() >= cwnd, spurious, "{} of {cwnd}", s.cwnd());
    }
}

/// A late original shows the extent of reordering although it was retransmitted: from then on each
/// SACK increases the window. A lost segment that was retransmitted shows nothing.
#[test]
fn a_late_original_shows_reordering_despite_its_retransmission() {
    for (original, grows) in [(true, true), (false, false)] {
        let mut s = Sender::new(&all());
        s.write(40, 10);
        s.echo = 40;
        s.ack(80, 0, &[(1, 3)]);
        assert_eq!(s.ack(81, 0, &[(1, 5)]), again(Rack, &[0]));
        s.echo = if original { 40 } else { 81 };
        s.ack(82, 5, &[]);
        s.ack(83, 10, &[]);
        s.write(84, 40);
        s.ack(124, 11, &[]);
        let before = s.cwnd();
        s.echo = 84;
        s.ack(125, 11, &[(12, 14)]);
        assert_eq!(s.cwnd() > before, grows, "{before} to {}", s.cwnd());
    }
}

/// RFC 7323 §5.3 R1, and the tolerance of one millisecond in Linux.
#[test]
fn a_slightly_old_timestamp_is_accepted_if_the_stack_permits() {
    for (receiver, old, taken) in [
        (Receiver::Rfc, 0, true),
        (Receiver::Rfc, 1, false),
        (Receiver::Linux, 1, true),
        (Receiver::Linux, 2, false),
    ] {
        let settings = Settings { receiver, ..all() };
        let mut s = Sender::new(&settings);
        s.now = ms(100);
        let data = |s: &Sender, seq, value| Segment {
            seq,
            timestamps: Some(Timestamps { value, echo: 40 }),
            body: Length(10),
            ..s.segment(0, &[])
        };
        let newest = data(&s, 100, 100);
        s.end.on_segment(s.now, &newest, Ecn::NotEct);
        // The acknowledgment makes its timestamp the last one.
        s.left();
        let late = data(&s, 110, 100 - old);
        s.end.on_segment(s.now, &late, Ecn::NotEct);
        assert_eq!(
            s.end.stats().delivered_bytes,
            if taken { 20 } else { 10 },
            "{old} ms with {receiver:?}"
        );
        assert_eq!(
            s.end.refusals().of(Refusal::OldTimestamp),
            u64::from(!taken)
        );
    }
}
