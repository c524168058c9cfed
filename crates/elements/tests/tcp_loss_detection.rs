//! Loss recovery, example by example: a sender whose acknowledgments the test writes by hand.

mod tcp_support;

use anabranch_core::{packet::Ecn, units::Duration, units::Instant};
use anabranch_elements::{
    body::Length,
    tcp::{
        DelayedAck, EcnMode, Endpoint, Flags, Options, Profile, Recovery, RetransmitCause, Role,
        SackBlock, Segment, Settings, Stats, Timestamps, WindowChange,
    },
};
use proptest::prelude::*;
use tcp_support::{Link, Net, endpoint};

use RetransmitCause::{DupThresh, Rack, Rto, Tlp};

const MSS: u32 = 1000;

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// RACK-TLP and nothing else: what RFC 8985 describes.
fn racked() -> Settings {
    Settings {
        mss: MSS,
        delayed_ack: DelayedAck::Off,
        timestamps: false,
        recovery: Recovery::Rack,
        tlp: true,
        ..Profile::named("rfc").expect("it exists").settings
    }
}

/// Everything on.
fn all() -> Settings {
    Settings {
        mss: MSS,
        delayed_ack: DelayedAck::Off,
        ..Profile::named("linux").expect("it exists").settings
    }
}

/// What left: the number of the segment, counted from 0, and why again.
type Left = (u32, Option<RetransmitCause>);

fn first(numbers: std::ops::Range<u32>) -> Vec<Left> {
    numbers.map(|n| (n, None)).collect()
}
fn again(cause: RetransmitCause, numbers: &[u32]) -> Vec<Left> {
    numbers.iter().map(|&n| (n, Some(cause))).collect()
}

struct Sender {
    end: Endpoint<Length>,
    now: Instant,
    /// What the peer echoes.
    echo: u32,
    /// Behind the highest segment sent.
    behind: u32,
}

impl Sender {
    /// An open connection with a round-trip time of 40 ms; the clock stands there.
    fn new(settings: &Settings) -> Self {
        let mut end: Endpoint<Length> = endpoint(settings, Role::Active, 0);
        end.keep_window_log();
        end.open(Instant::START);
        end.poll_transmit(Instant::START).expect("a SYN");
        let mut sender = Self {
            end,
            now: ms(40),
            echo: 0,
            behind: 0,
        };
        let mut answer = sender.segment(0, &[]);
        answer.seq = 99;
        answer.flags = Flags::SYN | Flags::ACK;
        if settings.ecn == EcnMode::Rfc3168 {
            answer.flags |= Flags::ECE;
        }
        answer.options = Options::Syn {
            mss: u16::try_from(settings.mss).unwrap() + if settings.timestamps { 12 } else { 0 },
            window_scale: Some(7),
            sack_permitted: settings.sack,
        };
        sender.end.on_segment(ms(40), &answer, Ecn::NotEct);
        assert!(sender.left().is_empty());
        sender
    }

    /// The peer expects segment `ack`, and has those `from..to`.
    fn segment(&self, ack: u32, blocks: &[(u32, u32)]) -> Segment<Length> {
        let octet = |n: u32| 1 + n * MSS;
        let mut list = [SackBlock::default(); 4];
        for (slot, &(from, to)) in list.iter_mut().zip(blocks) {
            *slot = SackBlock {
                left: octet(from),
                right: octet(to),
            };
        }
        Segment {
            seq: 100,
            ack: octet(ack),
            window: 60_000,
            flags: Flags::ACK,
            timestamps: self.end.settings().timestamps.then_some(Timestamps {
                value: u32::try_from(self.now.as_picos() / 1_000_000_000).unwrap(),
                echo: self.echo,
            }),
            options: if blocks.is_empty() {
                Options::None
            } else {
                Options::Sack(u8::try_from(blocks.len()).unwrap(), list)
            },
            body: Length(0),
        }
    }

    fn left(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        while let Some(out) = self.end.poll_transmit(self.now) {
            if out.segment.body.0 > 0 {
                let number = (out.segment.seq - 1) / MSS;
                self.behind = self.behind.max(number + 1);
                left.push((number, out.retransmission));
            }
        }
        left
    }

    fn write(&mut self, at: u64, segments: u32) -> Vec<Left> {
        self.now = ms(at);
        self.end.write_all(Length(segments * MSS));
        self.left()
    }

    fn ack(&mut self, at: u64, ack: u32, blocks: &[(u32, u32)]) -> Vec<Left> {
        self.now = ms(at);
        let segment = self.segment(ack, blocks);
        self.end.on_segment(self.now, &segment, Ecn::NotEct);
        self.left()
    }

    /// As [`Self::ack`], with the echo of a mark.
    fn ack_with_echo(&mut self, at: u64, ack: u32) -> Vec<Left> {
        self.now = ms(at);
        let mut segment = self.segment(ack, &[]);
        segment.flags |= Flags::ECE;
        self.end.on_segment(self.now, &segment, Ecn::NotEct);
        self.left()
    }

    /// Lets the next deadline come.
    fn expire(&mut self) -> Vec<Left> {
        self.now = self.now.max(self.end.deadline());
        self.end.on_deadline(self.now);
        self.left()
    }

    /// The same; it must be at this time.
    fn wait(&mut self, at: u64) -> Vec<Left> {
        assert_eq!(self.end.deadline(), ms(at));
        self.expire()
    }

    fn stats(&self) -> &Stats {
        self.end.stats()
    }
    fn cwnd(&self) -> u64 {
        self.end.cwnd().get() / u64::from(MSS)
    }
    fn changes(&mut self) -> Vec<WindowChange> {
        let log = self.end.take_window_log();
        log.into_iter().map(|event| event.change).collect()
    }
}

/// RFC 8985 §3.4: the tail of a flight is lost; a probe, and then time, find it, and find a lost
/// retransmission as well.
#[test]
fn rfc_8985_fast_recovery() {
    let mut s = Sender::new(&racked());
    assert_eq!(s.write(40, 4), first(0..4));
    // P1 to P3 are lost.
    assert_eq!(s.ack(80, 1, &[]), []);
    // Two round trips later (and the slack of a clock) the last leaves again.
    assert_eq!(s.wait(162), again(Tlp, &[3]));
    // Its report shows P1 and P2 to be lost: they left more than a round trip and a quarter before.
    assert_eq!(s.ack(202, 1, &[(3, 4)]), again(Rack, &[1, 2]));
    assert_eq!(s.stats().fast_recoveries, 1);
    // P1 is lost once more. It left just before P2, whose report shows that.
    assert_eq!(s.ack(242, 1, &[(2, 4)]), again(Rack, &[1]));
    assert_eq!(s.ack(282, 4, &[]), []);
    assert!(s.end.all_acknowledged());
    assert_eq!(
        s.changes(),
        [WindowChange::Recovery(Rack), WindowChange::Recovered]
    );
}

/// RFC 8985 §3.5: a whole flight and the probe are lost; the timeout repairs the first, and time the
/// others.
#[test]
fn rfc_8985_timeout() {
    let mut s = Sender::new(&racked());
    s.write(40, 1);
    s.ack(80, 1, &[]);
    assert_eq!(s.write(100, 3), first(1..4));
    assert_eq!(s.wait(182), again(Tlp, &[3]));
    // The retransmission timer starts anew with the probe.
    assert_eq!(s.wait(1182), again(Rto, &[1]));
    assert_eq!(s.ack(1222, 2, &[]), again(Rto, &[2, 3]));
    assert_eq!(s.ack(1262, 4, &[]), []);
    assert!(s.end.all_acknowledged());
    assert_eq!(s.stats().timeouts, 1);
}

/// RFC 8985 §6.2: what is late by less than the reordering window is not sent again; what is late by
/// more is, when the timer of §6.3 fires.
#[test]
fn the_reordering_timer() {
    for late in [true, false] {
        let mut s = Sender::new(&racked());
        s.write(40, 4);
        // P0 is missing; a quarter of the round trip, 10 ms, is its grace.
        assert_eq!(s.ack(80, 0, &[(1, 2)]), []);
        assert_eq!(s.ack(81, 0, &[(1, 3)]), []);
        if late {
            // RACK.rtt is that of P2, 41 ms.
            assert_eq!(s.wait(91), again(Rack, &[0]));
        } else {
            assert_eq!(s.ack(89, 4, &[]), []);
            assert!(s.end.all_acknowledged());
        }
        assert_eq!(s.stats().fast_recoveries, u64::from(late));
    }
}

/// RFC 8985 §6.2 step 4: DupThresh reports of what came later leave no grace, unless the path is
/// known to reorder.
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

/// RFC 8985 §7.3: new data rather than old.
#[test]
fn a_probe_prefers_new_data_and_may_exceed_cwnd() {
    let mut settings = racked();
    settings.initial_cwnd = 2;
    let mut s = Sender::new(&settings);
    assert_eq!(s.write(40, 3), first(0..2));
    assert_eq!(s.wait(122), first(2..3));
    assert_eq!(s.stats().probes, 1);
    // One probe a flight: now the retransmission timer runs.
    assert_eq!(s.wait(1122), again(Rto, &[0]));
}

/// RFC 8985 §7.4: a loss that the probe has repaired is congestion all the same, and one that it
/// merely doubled is none.
#[test]
fn a_probe_that_repairs_is_answered_by_a_reduction() {
    for lost in [true, false] {
        let mut s = Sender::new(&racked());
        s.write(40, 4);
        s.ack(80, 3, &[]);
        // One segment is left, whose acknowledgment may be delayed.
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

/// RFC 9937, by RFC 6937 §4's example: of twenty segments the first is lost.
#[test]
fn prr_spreads_the_reduction_over_the_recovery() {
    let mut settings = Settings {
        prr: true,
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
    // From now on a segment for every second acknowledgment, until ssthresh is in flight.
    let mut left = Vec::new();
    for n in 5..=20 {
        left.push(s.ack(78 + u64::from(n), 0, &[(1, n)]).len());
    }
    assert_eq!(left[..14], [0, 1].repeat(7));
    // Recovery ends with ssthresh in flight and cwnd there.
    assert_eq!(s.end.snapshot().in_flight.get(), 10 * u64::from(MSS));
    s.ack(122, 20, &[]);
    s.ack(123, 22, &[]);
    assert_eq!(s.cwnd(), 10);
    let without = Settings {
        prr: false,
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
    // Half of a round trip of silence.
    assert_eq!(left[..7], [0; 7]);
}

/// RFC 2883 §5, RFC 3708: a fast retransmit that reordering caused is undone once the duplicate is
/// reported.
#[test]
fn duplicates_undo_a_fast_retransmit() {
    let settings = Settings {
        undo: true,
        prr: true,
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
    // A second report takes nothing back.
    s.ack(122, 10, &[(0, 1)]);
    assert_eq!(s.stats().undone, 1);
}

/// RFC 3168 §6.1.2: a mark is congestion, whatever is found out later about a recovery before it.
#[test]
fn a_late_duplicate_does_not_undo_a_reduction_for_a_mark() {
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

/// RFC 3522 §3: the timestamp echoed tells at once.
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

/// RFC 5682 §2 and §3: after a spurious timeout new data leaves instead of everything again, and
/// the window comes back.
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

/// The same where everything but the first was lost.
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

/// RFC 2018 §8: a peer that forgets what it has reported gets it again, soon.
#[test]
fn a_reneging_peer_gets_everything() {
    let mut s = Sender::new(&racked());
    s.write(40, 6);
    s.ack(80, 0, &[(1, 3)]);
    // It has P0, and no longer P1 and P2.
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

/// Where duplicates count, the threshold follows the reordering.
#[test]
fn the_threshold_follows_the_reordering() {
    for adaptive in [true, false] {
        let settings = Settings {
            recovery: Recovery::Rfc6675,
            tlp: false,
            adaptive_dupthresh: adaptive,
            ..racked()
        };
        let mut s = Sender::new(&settings);
        s.write(40, 10);
        // P0 comes after P2, P3 after P9: reordering, then reordering by six more.
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
    // One late by five places, seen because it was not sent again: too few duplicates counted.
    let settings = Settings {
        recovery: Recovery::Rfc6675,
        tlp: false,
        adaptive_dupthresh: true,
        dupthresh: 8,
        ..racked()
    };
    let mut s = Sender::new(&settings);
    s.write(40, 10);
    s.ack(80, 0, &[(1, 6)]);
    s.ack(81, 6, &[]);
    assert_eq!(s.stats().fast_recoveries, 0);
}

/// Blocks that no peer sends never bring the sender down, and are counted.
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

/// RFC 5961 §3.2, §4.2 and §5.2: answered by a challenge and counted; the connection stays.
#[test]
fn blind_attacks_are_challenged() {
    let mut s = Sender::new(&all());
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
    assert_eq!(s.end.state(), anabranch_elements::tcp::State::Established);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    /// Whatever a hostile peer acknowledges and reports: no panic, nothing in flight below zero,
    /// and an honest peer afterwards gets everything.
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

/// On the study's kind of path, reordering and no loss, recovery adapts instead of withering.
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
        transfers.push(*net.ends[0].stats());
    }
    let [ours, rfc] = transfers[..] else {
        unreachable!("two were pushed")
    };
    assert!(rfc.fast_recoveries > 0);
    assert!(ours.retransmitted_packets < rfc.retransmitted_packets);
    // Nothing is lost: every reduction is needless, and taken back.
    assert_eq!(ours.fast_recoveries, u64::from(ours.undone));
    assert_eq!(ours.timeouts, 0);
}
