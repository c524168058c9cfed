//! Loss detection and repair, example by example.

use crate::support;

use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};
use anabranch_tcp::{
    Endpoint, Profile, Recovery, RecoveryPace, RetransmitCause, Role, Settings, Timers,
    WindowChange, WindowRules,
};
use anabranch_wire::{Flags, Options, Segment};
use proptest::prelude::*;
use support::{
    Link, Net, endpoint,
    scripted::{MSS, Sender, again, all, first, ms, racked},
};

use RetransmitCause::{DupThresh, Rack, Rto, Tlp};

/// RFC 8985 §3.4: the tail of a flight is lost. A probe and then RACK detect the losses, including
/// the loss of a retransmission.
#[test]
fn rfc_8985_fast_recovery() {
    let mut s = Sender::new(&racked());
    assert_eq!(s.write(40, 4), first(0..4));
    // P1 to P3 are lost.
    assert_eq!(s.ack(80, 1, &[]), []);
    // Two round trips and the clock's slack later the last segment is retransmitted.
    assert_eq!(s.wait(162), again(Tlp, &[3]));
    // Its SACK shows that P1 and P2 are lost: they were sent more than a round trip and a quarter
    // before.
    assert_eq!(s.ack(202, 1, &[(3, 4)]), again(Rack, &[1, 2]));
    assert_eq!(s.stats().fast_recoveries, 1);
    // P1 is lost once more. It was sent just before P2, whose SACK shows the loss.
    assert_eq!(s.ack(242, 1, &[(2, 4)]), again(Rack, &[1]));
    assert_eq!(s.ack(282, 4, &[]), []);
    assert!(s.end.all_acknowledged());
    assert_eq!(
        s.changes(),
        [WindowChange::Recovery(Rack), WindowChange::Recovered]
    );
}

/// RFC 8985 §3.5: a whole flight and the probe are lost. The timeout repairs the first loss, and
/// RACK the others.
#[test]
fn rfc_8985_timeout() {
    let mut s = Sender::new(&racked());
    s.write(40, 1);
    s.ack(80, 1, &[]);
    assert_eq!(s.write(100, 3), first(1..4));
    assert_eq!(s.wait(182), again(Tlp, &[3]));
    // The probe restarts the retransmission timer.
    assert_eq!(s.wait(1182), again(Rto, &[1]));
    assert_eq!(s.ack(1222, 2, &[]), again(Rto, &[2, 3]));
    assert_eq!(s.ack(1262, 4, &[]), []);
    assert!(s.end.all_acknowledged());
    assert_eq!(s.stats().timeouts, 1);
}

/// RFC 8985 §6.2: a segment that is late by less than the reordering window is not retransmitted.
/// One later than that is retransmitted when the timer of §6.3 expires.
#[test]
fn the_reordering_timer() {
    for late in [true, false] {
        let mut s = Sender::new(&racked());
        s.write(40, 4);
        // P0 is missing; the reordering window is a quarter of the round trip, 10 ms.
        assert_eq!(s.ack(80, 0, &[(1, 2)]), []);
        assert_eq!(s.ack(81, 0, &[(1, 3)]), []);
        if late {
            // RACK.rtt is P2's, 41 ms.
            assert_eq!(s.wait(91), again(Rack, &[0]));
        } else {
            assert_eq!(s.ack(89, 4, &[]), []);
            assert!(s.end.all_acknowledged());
        }
        assert_eq!(s.stats().fast_recoveries, u64::from(late));
    }
}

/// A clock with ticks adds two milliseconds and the elapsed part of a tick: a timer of 10 ms
/// expires 16 ms after its tick, a timer of 82 ms 88 ms after its tick.
#[test]
fn a_clock_with_ticks_makes_timers_expire_later() {
    let mut settings = racked();
    settings.timers = Timers::Linux;
    settings.clock_tick = Duration::from_millis(4);
    let mut s = Sender::new(&settings);
    s.write(40, 4);
    s.ack(80, 0, &[(1, 2)]);
    s.ack(81, 0, &[(1, 3)]);
    assert_eq!(s.wait(96), again(Rack, &[0]));

    let mut s = Sender::new(&settings);
    s.write(40, 4);
    s.ack(80, 1, &[]);
    assert_eq!(s.wait(168), again(Tlp, &[3]));
}

/// With segments of 1,000 octets the first piece of a write has 84 segments and the next 65. The
/// last segment of the second is sent alone.
#[test]
fn no_burst_crosses_from_one_piece_into_the_next() {
    let mut settings = all();
    settings.initial_cwnd = 200;
    let mut s = Sender::new(&settings);
    // The window of a SYN is not scaled.
    s.ack(40, 0, &[]);
    s.end.write_all(Length(200 * MSS));
    let pushed = pushed(&mut s);
    let pairs = (1..148).step_by(2).chain((150..199).step_by(2));
    assert_eq!(pushed, pairs.chain([199]).collect::<Vec<_>>());
}

/// The numbers of the segments with PSH among the segments sent now.
fn pushed(s: &mut Sender) -> Vec<u32> {
    let mut pushed = Vec::new();
    while let Some(out) = s.end.poll_transmit(s.now) {
        if out.segment.flags.any(Flags::PSH) {
            pushed.push((out.segment.seq - 1) / MSS);
        }
    }
    pushed
}

/// An endless flow with a send buffer of `octets` at first, whose first hundred segments have been
/// sent.
fn with_large_buffer(octets: u64) -> Sender {
    let mut settings = all();
    settings.initial_cwnd = 100;
    settings.send_autotuning_start = Bytes::new(octets);
    let mut s = Sender::new(&settings);
    // The window of a SYN is not scaled.
    s.ack(40, 0, &[]);
    s.end.write_endless();
    s.left();
    s
}

/// Data that a large initial buffer accepts at once is written before the peer has offered more
/// than 64 KiB. It is divided into pieces of 32 segments of 1,000 octets; data written later is in
/// pieces of 65. In captures of live flows with buffers of 4 MiB, pieces of 22 segments of 1,448
/// octets follow the first ten segments. Detects pieces of 65 from the beginning.
#[test]
fn data_written_at_once_is_in_smaller_pieces() {
    let mut s = with_large_buffer(150_000);
    s.now = ms(80);
    let segment = s.segment(100, &[]);
    s.end.on_segment(s.now, &segment, Ecn::NotEct);
    // Bursts of nine.
    let ends = pushed(&mut s);
    assert_eq!(ends[..8], [108, 117, 126, 131, 140, 149, 158, 163]);
    assert_eq!(ends[8..16], [172, 181, 190, 199, 208, 217, 226, 228]);
}

/// The segments with PSH that are sent once the peer offers room for `segments` segments after the
/// first hundred.
fn pushed_of_offered(s: &mut Sender, at: u64, segments: u32) -> Vec<u32> {
    s.now = ms(at);
    let mut segment = s.segment(100, &[]);
    segment.window = u16::try_from((segments * MSS).div_ceil(128)).expect("a small window");
    s.end.on_segment(s.now, &segment, Ecn::NotEct);
    pushed(s)
}

/// The last segment of such a piece, when it would be sent alone. If the window has room, it shares
/// a burst with the first segments of the next piece; otherwise it has PSH, here and in larger
/// pieces (`a_piece_has_psh_if_enough_precedes_its_end`). In a capture of
/// `scenarios/live/reverse-load.toml`, the last segment of 164 of Reno's pieces shared a burst with
/// the next segment, and at four pieces it did not; of 29 sent alone for lack of room, 23 had PSH.
/// Detects bursts that never cross the end of a piece, and lone segments without PSH.
#[test]
fn the_last_segment_of_a_piece_is_joined_or_pushed() {
    let left_with_room_for = |segments: u32| {
        let mut s = with_large_buffer(300_000);
        // A piece of 32 segments follows the hundred: first all but its last segment, then
        // `segments` more.
        assert_eq!(pushed_of_offered(&mut s, 80, 31), [108, 117, 126, 130]);
        pushed_of_offered(&mut s, 81, 31 + segments)
    };
    assert_eq!(left_with_room_for(1), [131]);
    assert_eq!(left_with_room_for(3), [133]);
    // A burst of nine, whose first segment ends a piece.
    assert_eq!(left_with_room_for(10), [139]);
}

/// In data written at once, a piece has PSH if it ends more than half of a SYN's window after the
/// last piece with PSH, or if a write of 128 KiB ends in it. The last segment of any other piece is
/// sent without PSH. In captures of `scenarios/live/lossy.toml` with segments of 1,448 octets, the
/// pieces that end with segments 120, 208, 538, 670 and 714 have PSH; the piece that ends with 142
/// has none. Detects PSH at the end of each piece.
#[test]
fn a_piece_has_psh_if_enough_precedes_its_end() {
    let pushed_alone = |end: u32| {
        let mut s = with_large_buffer(300_000);
        pushed_of_offered(&mut s, 80, end - 101);
        !pushed_of_offered(&mut s, 81, end - 100).is_empty()
    };
    // The first write ends in the first of these pieces, with 131,072 octets; the second in the
    // last.
    assert_eq!(
        [132, 164, 196, 228, 260, 292].map(pushed_alone),
        [true, true, false, true, false, true]
    );
}

/// The pacing rate and the TSO burst grow within a round trip if cwnd does. Linux 6.18 begins to
/// send bursts of three and four segments within the round trip in which cwnd grows from 70 to 140.
/// Detects a rate that is sampled once per round trip.
#[test]
fn the_current_rate_determines_the_tso_burst() {
    let mut settings = all();
    settings.initial_cwnd = 100;
    let mut s = Sender::new(&settings);
    // The window of a SYN is not scaled.
    s.ack(40, 0, &[]);
    s.end.write_endless();
    s.left();
    let mut trains = |acked| {
        s.now = ms(80);
        let segment = s.segment(acked, &[]);
        s.end.on_segment(s.now, &segment, Ecn::NotEct);
        let ends = pushed(&mut s);
        ends[1] - ends[0]
    };
    // Twice cwnd per 40 ms, for 1/1,024 s, with windows of 130, 160 and 200 segments.
    assert_eq!([30, 60, 100].map(&mut trains), [6, 7, 9]);
}

/// RFC 8985 §6.2 step 4: once DupThresh segments are SACKed there is no reordering window, unless
/// the path is known to reorder.
#[test]
fn reordering_once_seen_gives_grace() {
    let mut s = Sender::new(&racked());
    s.write(40, 6);
    assert_eq!(s.ack(80, 0, &[(1, 3)]), []);
    assert_eq!(s.ack(80, 0, &[(1, 4)]), again(Rack, &[0]));
    assert_eq!(s.ack(120, 6, &[]), []);

    let mut s = Sender::new(&racked());
    s.write(40, 2);
    assert_eq!(s.ack(80, 0, &[(1, 2)]), []);
    assert_eq!(s.ack(81, 2, &[]), []);
    assert_eq!(s.write(100, 6), first(2..8));
    assert_eq!(s.ack(140, 2, &[(3, 7)]), []);
    assert_eq!(s.ack(149, 8, &[]), []);
    assert_eq!(s.stats().fast_recoveries, 0);
}

/// RFC 8985 §7.3: a probe sends new data if there is any.
#[test]
fn a_probe_prefers_new_data_and_may_exceed_cwnd() {
    let mut settings = racked();
    settings.initial_cwnd = 2;
    let mut s = Sender::new(&settings);
    assert_eq!(s.write(40, 3), first(0..2));
    assert_eq!(s.wait(122), first(2..3));
    assert_eq!(s.stats().probes, 1);
    // One probe per flight: then the retransmission timer expires.
    assert_eq!(s.wait(1122), again(Rto, &[0]));
}

/// RFC 8985 §7.4: a loss repaired by the probe indicates congestion; a probe that is only a
/// duplicate does not.
#[test]
fn a_probe_that_repairs_is_answered_by_a_reduction() {
    for lost in [true, false] {
        let mut s = Sender::new(&racked());
        s.write(40, 4);
        s.ack(80, 3, &[]);
        // One segment is outstanding, whose acknowledgment may be delayed.
        assert_eq!(s.wait(80 + 80 + 200), again(Tlp, &[3]));
        let cwnd = s.cwnd();
        assert_eq!(s.ack(400, 4, &[]), []);
        if !lost {
            s.ack(401, 4, &[(3, 4)]);
        }
        assert_eq!(s.write(402, 1), first(4..5));
        s.ack(442, 5, &[]);
        assert_eq!(s.cwnd() < cwnd, lost);
        assert_eq!(
            s.changes(),
            if lost {
                vec![WindowChange::ProbeRepaired]
            } else {
                vec![]
            }
        );
    }
}

/// RFC 9937, with the example of RFC 6937 §4: of twenty segments the first is lost.
#[test]
fn prr_spreads_the_reduction_over_the_recovery() {
    let mut settings = Settings {
        recovery_pace: RecoveryPace::Prr,
        recovery: Recovery::Rfc6675,
        tlp: false,
        ..racked()
    };
    settings.initial_cwnd = 20;
    let mut s = Sender::new(&settings);
    assert_eq!(s.write(40, 100), first(0..20));
    // Limited transmit.
    assert_eq!(s.ack(80, 0, &[(1, 2)]), first(20..21));
    assert_eq!(s.ack(81, 0, &[(1, 3)]), first(21..22));
    assert_eq!(s.ack(82, 0, &[(1, 4)]), again(DupThresh, &[0]));
    assert_eq!(s.cwnd(), 10);
    // From now on one segment per two acknowledgments, until the data in flight equals ssthresh.
    let mut left = Vec::new();
    for n in 5..=20 {
        left.push(s.ack(78 + u64::from(n), 0, &[(1, n)]).len());
    }
    assert_eq!(left[..14], [0, 1].repeat(7));
    // Recovery ends with the data in flight and cwnd at ssthresh.
    assert_eq!(s.end.snapshot().in_flight.get(), 10 * u64::from(MSS));
    s.ack(122, 20, &[]);
    s.ack(123, 22, &[]);
    assert_eq!(s.cwnd(), 10);
    let without = Settings {
        recovery_pace: RecoveryPace::Pipe,
        ..settings
    };
    let mut s = Sender::new(&without);
    s.write(40, 100);
    for n in 2..5 {
        s.ack(78 + u64::from(n), 0, &[(1, n)]);
    }
    let mut left = Vec::new();
    for n in 5..=20 {
        left.push(s.ack(78 + u64::from(n), 0, &[(1, n)]).len());
    }
    // No transmission for half a round trip.
    assert_eq!(left[..7], [0; 7]);
}

/// RFC 2018 §8: a peer that discards SACKed data soon receives it again.
#[test]
fn a_reneging_peer_gets_everything() {
    let mut s = Sender::new(&racked());
    s.write(40, 6);
    s.ack(80, 0, &[(1, 3)]);
    // The peer has P0, but no longer P1 and P2.
    s.ack(81, 1, &[]);
    assert_eq!(s.stats().reneged, 1);
    assert_eq!(
        s.end.deadline(),
        ms(81) + s.end.srtt() / 2,
        "half of a round trip"
    );
    assert_eq!(s.expire(), again(Rto, &[1]));
    let at = 102;
    let mut seen = vec![1];
    for n in 2..7 {
        seen.extend(s.ack(at + 40 * u64::from(n), n, &[]).iter().map(|l| l.0));
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert!(s.end.all_acknowledged());
}

/// With duplicate-based detection the threshold adapts to reordering.
#[test]
fn the_threshold_follows_the_reordering() {
    for adaptive in [true, false] {
        let settings = Settings {
            recovery: Recovery::Rfc6675,
            tlp: false,
            max_dupthresh: if adaptive { 300 } else { 3 },
            ..racked()
        };
        let mut s = Sender::new(&settings);
        s.write(40, 10);
        // P0 arrives after P2, and P3 after P9: reordering, then reordering by six more.
        s.ack(80, 0, &[(1, 3)]);
        s.ack(81, 3, &[]);
        s.ack(82, 3, &[(4, 6)]);
        s.ack(83, 6, &[]);
        assert_eq!(s.stats().fast_recoveries, 0);
        s.write(100, 10);
        let mut left = Vec::new();
        for n in 8..=10 {
            left.extend(s.ack(100 + u64::from(n), 6, &[(7, n)]));
        }
        assert_eq!(s.stats().fast_recoveries, 1, "three, as ever");
        s.ack(125, 10, &[]);
        s.ack(126, 20, &[]);
        let _ = left;
    }
    // A segment five places late, seen because it was not retransmitted: the duplicates were fewer
    // than the threshold.
    let settings = Settings {
        recovery: Recovery::Rfc6675,
        tlp: false,
        dupthresh: 8,
        max_dupthresh: 300,
        ..racked()
    };
    let mut s = Sender::new(&settings);
    s.write(40, 10);
    s.ack(80, 0, &[(1, 6)]);
    s.ack(81, 6, &[]);
    assert_eq!(s.stats().fast_recoveries, 0);
}

/// Impossible blocks are counted and never cause a panic.
#[test]
fn impossible_blocks_are_counted() {
    for blocks in [
        vec![(20, 30)],
        vec![(5, 2)],
        vec![(u32::MAX / MSS - 9, u32::MAX / MSS - 8)],
        vec![(3, 3)],
    ] {
        let mut s = Sender::new(&all());
        s.write(40, 10);
        s.ack(80, 1, &blocks);
        assert_eq!(s.stats().malformed, 1, "{blocks:?}");
        assert_eq!(s.stats().duplicates_reported, 0);
        s.ack(81, 10, &[]);
        assert!(s.end.all_acknowledged());
    }
}

/// RFC 5961 §3.2, §4.2 and §5.2: the attack is answered by a challenge ACK and counted; the
/// connection stays open.
#[test]
fn blind_attacks_are_challenged() {
    // No rate limit on challenge ACKs.
    let mut s = Sender::new(&Settings {
        challenge_ack_interval: Duration::ZERO,
        ..all()
    });
    s.write(40, 10);
    s.ack(80, 10, &[]);
    let base = s.segment(10, &[]);
    let attacks = [
        Segment {
            seq: 150,
            flags: Flags::RST,
            ..base
        },
        Segment {
            seq: 120,
            flags: Flags::SYN,
            ..base
        },
        Segment {
            ack: base.ack.wrapping_sub(1 << 30),
            body: Length(10),
            ..base
        },
    ];
    for (n, attack) in attacks.iter().enumerate() {
        s.end.on_segment(s.now, attack, Ecn::NotEct);
        let challenge = s.end.poll_transmit(s.now).expect("a challenge");
        assert_eq!(
            (challenge.segment.seq, challenge.segment.ack),
            (1 + 10 * MSS, 100)
        );
        assert_eq!(s.stats().challenge_acks as usize, n + 1);
        assert_eq!(s.stats().delivered_bytes, 0);
    }
    assert_eq!(s.end.state(), anabranch_tcp::State::Established);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    /// With any acknowledgments and SACK blocks of a hostile peer there is no panic, the data in
    /// flight stays within bounds, and an honest peer afterwards receives everything.
    #[test]
    fn hostile_reports_never_bring_the_sender_down(
        steps in proptest::collection::vec(
            (1_u64..300, 0_u32..40, proptest::collection::vec((0_u32..60, 0_u32..60), 0..4)), 1..60),
        everything: bool,
    ) {
        let mut s = Sender::new(&if everything { all() } else { racked() });
        s.write(40, 30);
        let mut at = 40;
        for (wait, ack, blocks) in steps {
            at += wait;
            while s.end.deadline() <= ms(at) {
                s.expire();
            }
            s.ack(at, ack, &blocks);
            let snapshot = s.end.snapshot();
            prop_assert!(snapshot.in_flight.get() <= 2 * 30 * u64::from(MSS));
        }
        let mut n = 0;
        while !s.end.all_acknowledged() {
            if s.end.deadline() != Instant::NEVER {
                s.expire();
            }
            let at = s.now.as_picos() / 1_000_000_000 + 50;
            s.ack(at, s.behind, &[]);
            n += 1;
            prop_assert!(n < 40);
        }
    }
}

/// On a path that reorders without loss, as in the study, recovery adapts and throughput does not
/// collapse.
#[test]
fn reordering_is_survived() {
    let link = || Link {
        jitter: Duration::from_millis(4),
        gap: Duration::from_micros(500),
        ..Link::default()
    };
    let mut transfers = Vec::new();
    for settings in [
        all(),
        Settings {
            mss: MSS,
            ..Profile::named("rfc").expect("it exists").settings
        },
    ] {
        let mut net: Net<Length> = Net::new(&settings, &settings, link(), [7, 8]);
        net.open();
        net.ends[0].write_all(Length(3000 * MSS));
        net.run_until(ms(60_000));
        assert_eq!(net.ends[1].stats().delivered_bytes, 3000 * u64::from(MSS));
        transfers.push(net.ends[0].stats());
    }
    let [ours, rfc] = transfers[..] else {
        unreachable!("two were pushed")
    };
    assert!(rfc.fast_recoveries > 0);
    assert!(ours.retransmitted_packets < rfc.retransmitted_packets);
    // Nothing is lost: every reduction is spurious and undone.
    assert_eq!(ours.fast_recoveries, u64::from(ours.undone));
    assert_eq!(ours.timeouts, 0);
}

/// RFC 8985 §7.3: no probe is sent without a round-trip time measured since the last probe, so that
/// a path that has become longer is not probed forever. The retransmission timer runs instead.
#[test]
fn a_probe_needs_a_measurement_since_the_last() {
    for measured in [false, true] {
        let mut s = Sender::new(&racked());
        s.write(40, 4);
        s.ack(80, 3, &[]);
        assert_eq!(s.wait(360), again(Tlp, &[3]));
        // Either copy may be acknowledged here: no measurement (Karn's algorithm).
        s.ack(400, 4, &[]);
        s.ack(401, 4, &[(3, 4)]);
        if measured {
            assert_eq!(s.write(402, 1), first(4..5));
            s.ack(442, 5, &[]);
        }
        let next = s.behind;
        assert_eq!(s.write(500, 2), first(next..next + 2));
        // Two round trips and the slack: the timer expires in either case.
        let left = s.wait(582);
        if measured {
            assert_eq!(left, again(Tlp, &[next + 1]));
        } else {
            assert_eq!(left, []);
        }
        assert_eq!(s.stats().probes, 1 + u32::from(measured));
        // The retransmission timer restarts, with or without a probe.
        assert_eq!(s.wait(1582), again(Rto, &[next]));
    }
}

/// RFC 8985 §7.3: no probe is sent before the first measurement of a connection.
#[test]
fn no_probe_before_the_first_round_trip_time() {
    let mut end: Endpoint<Length> = endpoint(&racked(), Role::Active, 0);
    end.open(Instant::START);
    end.poll_transmit(Instant::START).expect("a SYN");
    end.on_deadline(ms(1000));
    end.poll_transmit(ms(1000)).expect("a SYN");
    let mut s = Sender {
        end,
        now: ms(1040),
        echo: 0,
        behind: 0,
    };
    let mut answer = s.segment(0, &[]);
    answer.seq = 99;
    answer.flags = Flags::SYN | Flags::ACK;
    answer.options = Options::Syn {
        mss: 1000,
        window_scale: Some(7),
        sack_permitted: true,
        accecn: None,
        fast_open: None,
    };
    s.end.on_segment(ms(1040), &answer, Ecn::NotEct);
    s.left();
    assert_eq!(s.write(1040, 2), first(0..2));
    // 1 s for a probe without a round-trip time (§7.2), 3 s for the timeout (RFC 6298 (5.7)).
    assert_eq!(s.wait(2040), []);
    assert_eq!(s.wait(5040), again(Rto, &[0]));
    assert_eq!(s.stats().probes, 0);
}

/// A segment sent during a recovery is lost, and its retransmission is in flight when that recovery
/// ends. Linux 6.18 begins another recovery with the same acknowledgment, and reduces again
/// (`anabranch run scenarios/live/reordering.toml --engine live --seed 2`, the table of window
/// events). The RFCs begin a recovery only with a newly detected loss. Linux does the same if the
/// retransmission is still to be sent, for example because of pacing.
#[test]
fn a_recovery_may_follow_with_a_retransmission_in_flight() {
    for (begins, has_left) in [(false, true), (true, true), (true, false)] {
        let mut s = Sender::new(&Settings {
            window_rules: if begins {
                WindowRules::Linux
            } else {
                WindowRules::Rfc5681
            },
            ..racked()
        });
        assert_eq!(s.write(40, 30), first(0..10));
        // The first is lost.
        assert_eq!(s.ack(80, 0, &[(1, 4)])[0], (0, Some(Rack)));
        for reported in 5..=10 {
            s.ack(76 + u64::from(reported), 0, &[(1, reported)]);
        }
        let sent = s.behind;
        assert!(sent > 12, "{sent}");
        // The first segment sent during the recovery is also lost.
        if has_left {
            let left = s.ack(124, 0, &[(11, sent), (1, 10)]);
            assert!(left.contains(&(10, Some(Rack))), "{left:?}");
        } else {
            s.now = ms(124);
            let segment = s.segment(0, &[(11, sent), (1, 10)]);
            s.end.on_segment(s.now, &segment, Ecn::NotEct);
        }
        s.changes();
        let before = s.cwnd();
        s.ack(125, 10, &[(11, sent)]);
        if begins {
            assert_eq!(
                s.changes(),
                [WindowChange::Recovered, WindowChange::Recovery(Rack)]
            );
            assert!(
                s.end
                    .snapshot()
                    .ssthresh
                    .is_some_and(|ssthresh| ssthresh.get() <= before * u64::from(MSS) / 2)
            );
        } else {
            assert_eq!(s.changes(), [WindowChange::Recovered]);
        }
        // In either case all data arrives once.
        s.ack(165, sent, &[]);
        assert_eq!(
            s.end.snapshot().in_flight.get() / u64::from(MSS),
            u64::from(s.behind - sent)
        );
    }
}

/// RFC 5681 §4.3: a lost retransmission is a second indication of congestion. Linux 6.18 treats a
/// timeout during fast recovery as part of the same one, with or without partial acknowledgments
/// before it (measured with `TCP_INFO`: forty segments in flight, ssthresh at 20 after the first
/// SACK and after the timeout). After the recovery a timeout reduces again.
#[test]
fn a_timeout_during_a_recovery_reduces_again_or_not() {
    for (again_, partial) in [(true, false), (true, true), (false, false), (false, true)] {
        let settings = Settings {
            window_rules: if again_ {
                WindowRules::Rfc5681
            } else {
                WindowRules::Linux
            },
            initial_cwnd: 40,
            tlp: false,
            ..racked()
        };
        let mut s = Sender::new(&settings);
        s.write(40, 40);
        s.ack(80, 0, &[(2, 8)]);
        s.ack(81, 0, &[(2, 9)]);
        assert_eq!(s.stats().fast_recoveries, 1);
        let ssthresh = |s: &Sender| s.end.snapshot().ssthresh.expect("reduced").get();
        let first = ssthresh(&s);
        assert_eq!(first, 20_000);
        if partial {
            s.ack(121, 1, &[(2, 9)]);
        }
        while s.stats().timeouts == 0 {
            s.expire();
        }
        assert_eq!(s.cwnd(), 1);
        // RFC 5681 takes half of the data in flight, which the recovery has limited to ssthresh.
        assert_eq!(ssthresh(&s) < first, again_, "partial: {partial}");
        // Without progress there is no further reduction; with progress there is.
        let second = ssthresh(&s);
        s.expire();
        assert_eq!((s.stats().timeouts, ssthresh(&s)), (2, second));
        let at = s.now.as_picos() / 1_000_000_000;
        s.ack(at + 40, 2, &[(2, 9)]);
        while s.stats().timeouts == 2 {
            s.expire();
        }
        assert!(ssthresh(&s) < second);
    }
}

/// RFC 7323 §4.1 takes a round-trip sample when SND.UNA advances. Linux 6.18 also takes one when
/// data is SACKed for the first time, from the segment sent earliest (measured: 20.2 ms smoothed, a
/// SACK after 62.8 ms of segments sent 40 ms apart, then 25.5 ms). Neither samples segments sent
/// twice (Karn).
#[test]
fn sack_yields_round_trip_samples_if_the_stack_uses_them() {
    for (timestamps, from_sack) in [(false, false), (false, true), (true, false), (true, true)] {
        let settings = Settings {
            timers: if from_sack {
                Timers::Linux
            } else {
                Timers::Rfc6298
            },
            timestamps,
            tlp: false,
            ..racked()
        };
        let mut s = Sender::new(&settings);
        s.echo = 1;
        let srtt = s.end.srtt();
        assert_eq!(srtt, Duration::from_millis(40));
        s.write(40, 4);
        s.write(60, 3);
        // P1 and P4 yield 120 and 100 ms; the earlier segment counts: 7/8 of 40 and 1/8 of 120.
        s.ack(160, 0, &[(1, 2), (4, 5)]);
        let expected = if from_sack { 50 } else { 40 };
        assert_eq!(
            s.end.srtt(),
            Duration::from_millis(expected),
            "{timestamps}"
        );
        // The same SACK yields no new sample.
        s.ack(170, 0, &[(1, 2), (4, 5)]);
        assert_eq!(s.end.srtt(), Duration::from_millis(expected));
        // The timeout retransmits P0, then RACK retransmits P2 and P3; a SACK of P3 may be for
        // either copy.
        while s.stats().timeouts == 0 {
            s.expire();
        }
        let at = s.now.as_picos() / 1_000_000_000;
        assert_eq!(s.ack(at + 40, 2, &[(4, 5)]), again(Rack, &[2, 3]));
        let srtt = s.end.srtt();
        s.ack(at + 90, 2, &[(3, 5)]);
        assert_eq!(s.end.srtt(), srtt);
    }
}
