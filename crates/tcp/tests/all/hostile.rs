//! Invalid, forged and hostile segments.

use crate::support;

use anabranch_congestion::IdleRestart;
use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, Duration, Instant, text::Limit},
};
use anabranch_tcp::{EcnMode, Endpoint, Profile, Recovery, Refusal, Role, Settings, State};
use anabranch_wire::{AccEcn, Flags, Options, SackBlock, Segment, Timestamps, accecn::Order};
use proptest::prelude::*;
use support::{
    Link, Net, endpoint, octets,
    plain::{RULE, drain, established, link, ms, settings, without_sack},
};

/// A segment of any kind, with numbers near the expected ones or far from them.
fn hostile() -> impl Strategy<Value = Segment<Length>> {
    let number = || prop_oneof![-5_000_i32..70_000, any::<i32>()];
    (
        (number(), number()),
        any::<u16>(),
        prop_oneof![Just(Flags::ACK.0), 0_u16..512],
        prop_oneof![Just(None), (any::<u32>(), any::<u32>()).prop_map(Some)],
        prop_oneof![
            Just(Options::None),
            (
                any::<u16>(),
                proptest::option::of(any::<u8>()),
                any::<bool>()
            )
                .prop_map(|(mss, window_scale, sack_permitted)| {
                    Options::Syn {
                        mss,
                        window_scale,
                        sack_permitted,
                        accecn: None,
                        fast_open: None,
                    }
                }),
            (any::<u8>(), proptest::array::uniform4((number(), number()))).prop_map(
                |(n, blocks)| {
                    Options::Sack(
                        n,
                        blocks.map(|(left, right)| SackBlock {
                            left: 101_u32.wrapping_add_signed(left),
                            right: 101_u32.wrapping_add_signed(right),
                        }),
                    )
                }
            ),
            (
                any::<bool>(),
                proptest::array::uniform3(any::<u32>()),
                0_usize..4
            )
                .prop_map(|(first, fields, count)| {
                    let order = if first {
                        Order::Ect0First
                    } else {
                        Order::Ect1First
                    };
                    Options::AccEcn(AccEcn::new(order, &fields[..count]))
                }),
        ],
        prop_oneof![Just(0_u32), 0_u32..3000],
    )
        .prop_map(
            |((seq, ack), window, flags, timestamps, options, len)| Segment {
                seq: 1_u32.wrapping_add_signed(seq),
                ack: 101_u32.wrapping_add_signed(ack),
                window,
                flags: Flags(flags),
                timestamps: timestamps
                    .map(|(value, echo)| anabranch_wire::Timestamps { value, echo }),
                options,
                body: Length(len),
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
    #[test]
    fn no_segment_makes_an_endpoint_panic(
        segments in proptest::collection::vec((hostile(), 0_u64..300, any::<u8>()), 1..40),
        opened: bool, sack: bool, timed: bool, ecn: bool, linux: bool,
    ) {
        let mut s = if sack { settings() } else { without_sack(Recovery::NewReno) };
        s.ecn = if ecn { EcnMode::Rfc3168 } else { EcnMode::Off };
        if linux {
            s = Settings { idle_restart: IdleRestart::Rfc7661, ..all_switches() };
        }
        let mut end = match (opened, linux) {
            (true, true) => listened(&s),
            (true, false) => established(&s),
            (false, _) => endpoint(&s, Role::Passive, 100),
        };
        if timed {
            end = end.with_timer_rule(Some(RULE));
        }
        end.write_all(Length(30_000));
        let mut now = ms(100);
        for (n, (segment, wait, codepoint)) in segments.into_iter().enumerate() {
            now = now.saturating_add(Duration::from_millis(wait));
            if end.deadline() <= now {
                end.on_deadline(now);
            }
            let before = end.stats();
            end.on_segment(now, &segment, Ecn::from_bits(codepoint));
            prop_assert!(drain(&mut end, now).len() < 200);
            // At most the data that arrived is delivered.
            prop_assert!(end.stats().delivered_bytes <= before.delivered_bytes + 120_000);
            if n == 20 {
                end.close();
            }
        }
        // The connection still ends.
        let mut steps = 0;
        while end.deadline() != Instant::NEVER && steps < 100 {
            now = end.deadline();
            end.on_deadline(now);
            drain(&mut end, now);
            steps += 1;
        }
    }

    #[test]
    fn blind_attackers_do_not_disturb_a_transfer(
        segments in proptest::collection::vec((hostile(), 0_usize..2), 1..30), sack: bool,
    ) {
        // An attacker who does not know the sequence numbers changes nothing, except with one guess
        // in 2^16.
        let s = if sack { settings() } else { without_sack(Recovery::NewReno) };
        let link = Link { loss: 0.05, ..link(&[]) };
        let mut net: Net<anabranch_core::body::Octets> = Net::new(&s, &s, link, [1 << 30, 1 << 31]);
        net.ends[1].set_auto_read(false);
        net.open();
        net.run_until(ms(4000));
        let stream = octets(5, 100_000);
        net.ends[0].write_all(stream.clone());
        net.flush();
        let mut got = Vec::new();
        for (segment, to) in segments {
            for _ in 0..20 {
                net.step();
            }
            let injected = Segment {
                seq: segment.seq,
                ack: segment.ack,
                window: segment.window,
                flags: segment.flags,
                timestamps: segment.timestamps,
                options: segment.options,
                body: octets(9, segment.body.0 as usize),
            };
            let distance = |known: u32, number: u32| known.wrapping_sub(number).cast_signed().unsigned_abs();
            let (ours, theirs) = ([1_u32 << 30, 1 << 31][1 - to], [1_u32 << 30, 1 << 31][to]);
            // RFC 5961 §5.2 accepts acknowledgments as old as the largest window offered, here
            // 2^30.
            let blind = distance(ours, injected.seq) > 1 << 29 || (distance(theirs, injected.ack) > (1 << 30) + (1 << 20) && !injected.flags.any(Flags::RST | Flags::SYN));
            if blind {
                net.inject(to, &injected);
            }
            got.extend(net.ends[1].read(net.now, u64::MAX).0);
        }
        net.run_until(ms(200_000));
        got.extend(net.ends[1].read(net.now, u64::MAX).0);
        prop_assert_eq!(got.len(), stream.0.len(), "{:?}", net.states());
        prop_assert!(got == stream.0);
    }
}

/// A SYN written by hand, with sequence number 0.
fn peers_syn() -> Segment<Length> {
    Segment {
        window: 60_000,
        flags: Flags::SYN,
        options: Options::Syn {
            mss: 1000,
            window_scale: Some(7),
            sack_permitted: true,
            accecn: None,
            fast_open: None,
        },
        ..Segment::default()
    }
}

/// An end that has accepted a connection from a peer with AccECN, opened by hand; it has the same
/// numbers as in [`established`].
fn listened(s: &Settings) -> Endpoint<Length> {
    let mut end: Endpoint<Length> = endpoint(
        &Settings {
            timestamps: false,
            ..s.clone()
        },
        Role::Passive,
        100,
    );
    let syn = Segment {
        flags: Flags::SYN | Flags::ECE | Flags::CWR | Flags::AE,
        ..peers_syn()
    };
    end.on_segment(ms(0), &syn, Ecn::NotEct);
    drain(&mut end, ms(0));
    let answer = Segment {
        seq: 1,
        ack: 101,
        window: 60_000,
        flags: Flags::ACK | Flags::CWR,
        ..Segment::default()
    };
    end.on_segment(ms(50), &answer, Ecn::NotEct);
    assert_eq!(end.state(), State::Established);
    end
}

/// RFC 9293 §3.10.7.4: in SYN-RECEIVED a segment with an unacceptable acknowledgment is answered by
/// a reset and changes no state. In particular its timestamp is not recorded, because the real
/// peer's segments would then be refused.
#[test]
fn a_blind_segment_does_not_lock_out_a_connecting_peer() {
    let s = all_switches();
    let mut end: Endpoint<Length> = endpoint(&s, Role::Passive, 100);
    let at = |value| Some(Timestamps { value, echo: 0 });
    let syn = Segment {
        timestamps: at(1000),
        ..peers_syn()
    };
    end.on_segment(ms(0), &syn, Ecn::NotEct);
    drain(&mut end, ms(0));
    let honest = Segment {
        seq: 1,
        ack: 101,
        window: 60_000,
        flags: Flags::ACK,
        timestamps: at(1010),
        ..Segment::default()
    };
    let blind = Segment {
        ack: 5000,
        timestamps: at(1_000_000),
        ..honest
    };
    end.on_segment(ms(5), &blind, Ecn::NotEct);
    assert_eq!(end.refusals().of(Refusal::UnsentAck), 1);
    drain(&mut end, ms(5));
    end.on_segment(ms(10), &honest, Ecn::NotEct);
    assert_eq!(end.state(), State::Established);
}

/// RFC 2018 §3: a SACK block reports data above a gap. RFC 2883 §4: or it reports a duplicate,
/// which then lies entirely below the acknowledgment.
#[test]
fn a_sack_block_across_the_acknowledgment_is_refused() {
    let mut end = established(&settings());
    end.write_all(Length(8000));
    drain(&mut end, ms(50));
    let with = |left, right| Segment {
        seq: 1,
        ack: 3101,
        window: 65_535,
        flags: Flags::ACK,
        options: Options::Sack(1, [SackBlock { left, right }; 4]),
        ..Segment::default()
    };
    end.on_segment(ms(60), &with(1101, 3101), Ecn::NotEct);
    assert_eq!(end.refusals().of(Refusal::SackBlock), 0);
    end.on_segment(ms(61), &with(1101, 5101), Ecn::NotEct);
    assert_eq!(end.refusals().of(Refusal::SackBlock), 1);
}

/// RFC 9293 §3.10.7.4: no data follows a FIN. Data refused for that reason is not SACKed either.
#[test]
fn data_after_a_fin_is_not_sacked() {
    let mut end = established(&settings());
    let with = |seq, flags, len| Segment {
        seq,
        ack: 101,
        window: 65_535,
        flags,
        body: Length(len),
        ..Segment::default()
    };
    end.on_segment(
        ms(60),
        &with(4001, Flags::ACK | Flags::FIN, 1000),
        Ecn::NotEct,
    );
    drain(&mut end, ms(60));
    end.on_segment(ms(61), &with(7001, Flags::ACK, 1000), Ecn::NotEct);
    assert_eq!(end.refusals().of(Refusal::OutsideWindow), 1);
    let answers = drain(&mut end, ms(61));
    let blocks: Vec<_> = answers
        .iter()
        .flat_map(|answer| answer.options.sack_blocks())
        .map(|block| (block.left, block.right))
        .collect();
    // The block has the number of the FIN.
    assert_eq!(blocks, [(4001, 5002)]);
}

/// Once the data before an early FIN has arrived, there is no gap: acknowledgments are sent with
/// data again.
#[test]
fn an_early_fin_leaves_no_gap() {
    let mut end = established(&settings());
    let with = |seq, flags, len| Segment {
        seq,
        ack: 101,
        window: 65_535,
        flags,
        body: Length(len),
        ..Segment::default()
    };
    end.on_segment(
        ms(60),
        &with(1001, Flags::ACK | Flags::FIN, 1000),
        Ecn::NotEct,
    );
    drain(&mut end, ms(60));
    assert!(end.has_gaps());
    end.on_segment(ms(61), &with(1, Flags::ACK, 1000), Ecn::NotEct);
    assert_eq!(end.state(), State::CloseWait);
    assert!(!end.has_gaps());
    end.write_all(Length(1000));
    let answers = drain(&mut end, ms(61));
    let of: Vec<_> = answers.iter().map(|a| (a.ack, a.body.0)).collect();
    assert_eq!(of, [(2002, 1000)]);
}

/// An end whose application does not read, with its buffer full.
fn full() -> Endpoint<Length> {
    let mut end = established(&Settings {
        receive_window: Limit::Bytes(Bytes::new(2000)),
        ..settings()
    });
    end.set_auto_read(false);
    for seq in [1, 1001] {
        end.on_segment(ms(60), &closed_window(seq, Flags::ACK, 1000), Ecn::NotEct);
    }
    let answers = drain(&mut end, ms(60));
    assert_eq!(answers.last().map(|answer| answer.window), Some(0));
    end
}

fn closed_window(seq: u32, flags: Flags, len: u32) -> Segment<Length> {
    Segment {
        seq,
        ack: 101,
        window: 65_535,
        flags,
        body: Length(len),
        ..Segment::default()
    }
}

/// RFC 9293 §3.8.6.1: a peer that probes a closed window has sent one octet more than fits, and
/// acknowledges with the number after it. A still higher number is invalid.
#[test]
fn a_peer_that_probes_a_closed_window_is_honest() {
    let mut end = full();
    end.on_segment(ms(300), &closed_window(2001, Flags::ACK, 1), Ecn::NotEct);
    end.on_segment(ms(310), &closed_window(2002, Flags::ACK, 0), Ecn::NotEct);
    assert_eq!(end.stats().malformed, 0);
    end.on_segment(ms(320), &closed_window(2003, Flags::ACK, 0), Ecn::NotEct);
    assert_eq!(end.refusals().of(Refusal::OutsideWindow), 1);
}

/// RFC 9293 §3.10.7.4: a valid reset is accepted although the closed window does not accept its
/// data.
#[test]
fn a_closed_window_takes_resets() {
    let mut end = full();
    end.on_segment(ms(300), &closed_window(2001, Flags::RST, 1), Ecn::NotEct);
    assert_eq!(end.state(), State::Closed);
}

/// The Linux profile, with every other switch that is compatible with it.
fn all_switches() -> Settings {
    let linux = Profile::named("linux").expect("it exists").settings;
    Settings {
        mss: 1000,
        ecn: EcnMode::Accecn,
        pacing: true,
        ..linux
    }
}

/// The error in a segment from an attacker who sees neither direction of the stream.
#[derive(Debug, Clone, Copy)]
enum Guess {
    /// The sequence number is far from the window; all other fields are right.
    Sequence(u32),
    /// The segment is within the window, but its acknowledgment is far ahead or long past.
    Acknowledgment(u32),
    /// A reset within the window, not at its edge.
    Reset,
    /// A SYN within the window.
    Syn,
    /// Without the timestamp that both ends have negotiated.
    NoTimestamp,
    /// With a timestamp that is long past.
    OldTimestamp,
    /// Data this far before the peer's first number.
    BeforeTheFirst(u32),
    /// A reset this far before the first number.
    ResetBeforeTheFirst(u32),
    /// A SYN this far before the first number.
    SynBeforeTheFirst(u32),
    /// A reset with a number that was once expected; the value is a share of the data received
    /// since.
    OldReset(u8),
    /// A SYN with a number that was once expected.
    OldSyn(u8),
}

fn guess() -> impl Strategy<Value = Guess> {
    let far = (1_u32 << 26)..(1 << 31);
    prop_oneof![
        far.clone().prop_map(Guess::Sequence),
        (far, any::<bool>()).prop_map(|(far, ahead)| {
            Guess::Acknowledgment(if ahead { far } else { far.wrapping_neg() })
        }),
        Just(Guess::Reset),
        Just(Guess::Syn),
        Just(Guess::NoTimestamp),
        Just(Guess::OldTimestamp),
        // The first number itself belongs to the peer's SYN, which may be retransmitted.
        (2000_u32..1 << 30).prop_map(Guess::BeforeTheFirst),
        (1_u32..1 << 30).prop_map(Guess::ResetBeforeTheFirst),
        (1_u32..1 << 30).prop_map(Guess::SynBeforeTheFirst),
        any::<u8>().prop_map(Guess::OldReset),
        any::<u8>().prop_map(Guess::OldSyn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Detects an end that takes a timestamp, a mark, a window or payload from a segment before it
    /// has validated the acknowledgment, an end without RFC 5961, and an end that does not count.
    #[test]
    fn blind_segments_during_a_transfer_are_refused_and_counted(
        guesses in proptest::collection::vec((guess(), 0_usize..2, any::<u16>(), any::<u16>(), 1_u32..900), 1..40),
        loss in prop_oneof![Just(0.0), Just(0.03)], seed: u64,
    ) {
        let s = all_switches();
        let link = Link { seed, loss, ..link(&[]) };
        let first = [u32::MAX - 90_000, 1 << 31];
        let mut net: Net<anabranch_core::body::Octets> = Net::new(&s, &s, link, first);
        net.logging = true;
        net.ends[1].set_auto_read(false);
        net.open();
        net.run_until(ms(5_000));
        prop_assume!(net.ends.iter().all(|end| end.state() == State::Established));
        let stream = octets(5, 300_000);
        net.ends[0].write_all(stream.clone());
        net.flush();
        let mut got = Vec::new();
        for (guess, to, window, flags, len) in guesses {
            for _ in 0..15 {
                net.step();
            }
            got.extend(net.ends[1].read(net.now, u64::MAX).0);
            net.flush();
            // The victim's last segment: its own number, and the number it expects.
            let (_, _, _, seq, ack, sent) = *net.log.iter().rev().find(|entry| entry.1 == to).expect("it has spoken");
            let (expected, next) = (ack, seq.wrapping_add(sent));
            let tick = u32::try_from(net.now.as_picos() / 1_000_000_000).expect("a short test");
            let honest = Segment {
                // Beyond the data that may have arrived since the victim's last segment.
                seq: expected.wrapping_add(5000),
                ack: next,
                window,
                flags: Flags(flags & 0x1c0) | Flags::ACK,
                timestamps: Some(Timestamps { value: tick + 1000, echo: tick }),
                options: Options::None,
                body: octets(9, len as usize),
            };
            let old = tick.wrapping_sub(1 << 30);
            // Numbers that were expected before. There are none before the first data.
            let irs = first[1 - to];
            let come = expected.wrapping_sub(irs).wrapping_sub(1);
            let once = |share: u8| {
                let back = (u64::from(come) * u64::from(share) / 256).max(1);
                expected.wrapping_sub(u32::try_from(back).expect("a part of it"))
            };
            if matches!(guess, Guess::OldReset(_) | Guess::OldSyn(_)) && come == 0 {
                continue;
            }
            let wrong = match guess {
                Guess::Sequence(far) => Segment { seq: expected.wrapping_add(far), ..honest },
                Guess::Acknowledgment(far) => Segment { ack: next.wrapping_add(far), ..honest },
                Guess::Reset => Segment { flags: Flags::RST | Flags::ACK, ..honest },
                Guess::Syn => Segment { flags: Flags::SYN | Flags::ACK, ..honest },
                Guess::NoTimestamp => Segment { timestamps: None, ..honest },
                Guess::OldTimestamp => Segment { timestamps: Some(Timestamps { value: old, echo: tick }), ..honest },
                Guess::BeforeTheFirst(back) => Segment { seq: irs.wrapping_sub(back), ..honest },
                Guess::ResetBeforeTheFirst(back) => Segment { seq: irs.wrapping_sub(back), flags: Flags::RST, ..honest },
                Guess::SynBeforeTheFirst(back) => Segment { seq: irs.wrapping_sub(back), flags: Flags::SYN, body: octets(9, 0), ..honest },
                Guess::OldReset(share) => Segment { seq: once(share), flags: Flags::RST, body: octets(9, 0), ..honest },
                Guess::OldSyn(share) => Segment { seq: once(share).wrapping_sub(1), flags: Flags::SYN, body: octets(9, 0), ..honest },
            };
            let reason = match guess {
                Guess::Sequence(_) | Guess::BeforeTheFirst(_) => Refusal::OutsideWindow,
                Guess::Acknowledgment(far) if far < 1 << 31 => Refusal::UnsentAck,
                Guess::Acknowledgment(_) => Refusal::OldAck,
                Guess::Reset | Guess::ResetBeforeTheFirst(_) => Refusal::BlindReset,
                Guess::Syn | Guess::SynBeforeTheFirst(_) | Guess::OldSyn(_) => Refusal::BlindSyn,
                Guess::OldReset(_) => Refusal::OldReset,
                Guess::NoTimestamp => Refusal::MissingTimestamp,
                Guess::OldTimestamp => Refusal::OldTimestamp,
            };
            // Linux accepts a segment without a timestamp; its profile is not tried with one.
            if matches!(guess, Guess::NoTimestamp)
                && net.ends[to].settings().receiver.accepts_missing_timestamp()
            {
                continue;
            }
            let before = net.ends[to].refusals();
            let window_before = net.ends[to].snapshot();
            net.ends[to].on_segment(net.now, &wrong, Ecn::NotEct);
            let after = net.ends[to].refusals();
            for other in Refusal::ALL {
                let expected = before.of(other) + u64::from(other == reason);
                prop_assert_eq!(after.of(other), expected, "{:?} {:?}: {}", guess, wrong, other.name());
            }
            prop_assert_eq!(net.ends[to].snapshot(), window_before, "{:?}", guess);
            net.flush();
        }
        for second in 0..400 {
            net.run_until(net.now.max(ms(6_000 + second * 1_000)));
            got.extend(net.ends[1].read(net.now, u64::MAX).0);
            net.flush();
        }
        prop_assert_eq!(got.len(), stream.0.len(), "{:?}", net.states());
        prop_assert!(got == stream.0);
        for end in &net.ends {
            prop_assert_eq!(end.stats().malformed, end.refusals().malformed());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    /// No segment of an honest peer counts as malformed, even if its packets are lost, delayed and
    /// duplicated. Detects an end that takes an old SYN, an old FIN or old data for an attack.
    #[test]
    fn an_honest_transfer_counts_nothing(
        seed: u64, loss in 0.0..0.1, duplicate in 0.0..0.3, jitter in 0_u64..40,
        sizes in (0_u32..30_000, 0_u32..30_000), iss: (u32, u32), linux: bool, sack: bool, timestamps: bool,
    ) {
        let base = if linux { all_switches() } else { settings() };
        let over = anabranch_tcp::Overrides {
            sack: Some(sack),
            timestamps: Some(timestamps),
            ..Default::default()
        };
        let s = base.with(&over).expect("they go together");
        let link = Link {
            seed, loss, duplicate,
            jitter: Duration::from_millis(jitter),
            gap: Duration::from_micros(100),
            ..Link::default()
        };
        let mut net: Net<Length> = Net::new(&s, &s, link, [iss.0, iss.1]);
        net.open();
        net.ends[0].write_all(Length(sizes.0));
        net.ends[1].write_all(Length(sizes.1));
        net.run_until(ms(2_000));
        net.ends[0].close();
        net.flush();
        net.run_until(ms(3_000));
        net.ends[1].close();
        net.flush();
        net.run_until(ms(600_000));
        for end in &net.ends {
            let refused = end.refusals();
            for reason in Refusal::ALL.into_iter().filter(|reason| reason.is_malformed()) {
                prop_assert_eq!(refused.of(reason), 0, "{}", reason.name());
            }
            prop_assert_eq!(end.stats().malformed, 0);
        }
    }

    /// RFC 5961 §7: a flood of challenged segments causes at most one answer per interval, and
    /// every segment is counted. Detects an end without the limit, or an end that does not apply it
    /// to the last kind.
    #[test]
    fn a_flood_is_answered_at_most_once_per_interval(
        interval in 0_u64..2_000, apart in 0_u64..20, kind in 0_usize..4, flood in 1_u64..500,
    ) {
        let s = Settings { challenge_ack_interval: Duration::from_millis(interval), ..settings() };
        let mut end = established(&s);
        drain(&mut end, ms(100));
        let mut answers = 0;
        for n in 0..flood {
            let now = ms(10_000 + n * apart);
            let (seq, flags, ack) = [
                (5_000, Flags::RST, 0),
                (9_000, Flags::SYN, 0),
                (3_000_000_000, Flags::SYN, 0),
                (1, Flags::ACK, 101 + 1_000_000),
            ][kind];
            let segment = Segment { seq, ack, window: 1000, flags, ..Segment::default() };
            end.on_segment(now, &segment, Ecn::NotEct);
            answers += drain(&mut end, now).len() as u64;
        }
        let most = match interval {
            0 => flood,
            _ => (flood - 1) * apart / interval + 1,
        };
        prop_assert!(answers <= most, "{answers} of {flood}, {most} at most");
        prop_assert_eq!(answers, u64::from(end.stats().challenge_acks));
        // It is still answered, as soon as the limit permits.
        prop_assert!(answers * 2 >= most.min(flood) , "{answers}, {most}");
        prop_assert_eq!(end.stats().malformed, flood);
    }
}
