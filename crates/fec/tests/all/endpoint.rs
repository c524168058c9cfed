//! The FEC layer around two endpoints on octets: the stream arrives unchanged in spite of losses
//! and forged redundancy, and lengths alone give the same run.

use std::collections::BTreeMap;

use anabranch_core::{
    body::{Body, Length, Octets},
    packet::Ecn,
    parameters::Count,
    units::Instant,
};
use anabranch_fec::{
    Config, Params, Protected,
    params::Choice,
    params::{HoldTime, InRecovery, Release},
};
use anabranch_tcp::{Profile, State, settings::EcnMode};
use anabranch_wire::{Flags, IpHeader, Redundant, Segment, Transport, Version, redundant};
use proptest::prelude::*;

use crate::support::net;

use net::{Fate, Net};

fn stream(len: usize, seed: u64) -> Octets {
    let mut state = seed | 1;
    Octets(
        (0..len)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3]
            })
            .collect(),
    )
}

fn with(code: usize, params: Params) -> Config {
    [Config::Xor, Config::ReedSolomon, Config::SlidingRlc][code](params)
}

fn group(n: u32) -> Params {
    Params {
        group: Some(Count::new(n)),
        ..Params::default()
    }
}

fn some_params() -> impl Strategy<Value = (usize, Params)> {
    let choice = prop::sample::select(vec![Choice::Cwnd, Choice::Fixed, Choice::LossAdaptive]);
    let switches = any::<[bool; 3]>();
    let release = prop::sample::select(vec![Release::Each, Release::One, Release::Paced]);
    let recovery = prop::sample::select(vec![InRecovery::No, InRecovery::NewData, InRecovery::All]);
    let numbers = (0_u32..20, 1_u32..20, 1_u32..4);
    let holds = (release, recovery);
    (0..3_usize, choice, numbers, switches, holds).prop_map(
        |(code, redundancy, (fmax, group, redundant), switches, (release, hold_in_recovery))| {
            let [hold, second, occupies] = switches;
            let params = Params {
                redundancy: Some(redundancy),
                fmax,
                group: (redundancy == Choice::Fixed).then(|| Count::new(group)),
                redundant: (code > 0).then(|| Count::new(redundant)),
                hold_acks: hold,
                second_gap_releases: second,
                hold_in_recovery,
                occupies_cwnd: occupies,
                release,
                ..Params::default()
            };
            (code, params)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_stream_arrives_as_it_was_sent(
        (code, params) in some_params(),
        profile in prop::sample::select(vec!["ns2-sack1", "linux-6.18", "rfc", "ns3-2018"]),
        seed: u64,
        loss in prop::sample::select(vec![0.0, 0.01, 0.05, 0.2]),
        forge in prop::sample::select(vec![0.0, 0.5, 1.0]),
        late in prop::sample::select(vec![0.0, 0.05, 0.5]),
        twice in prop::sample::select(vec![0.0, 0.2]),
        len in 1_usize..150_000,
    ) {
        let config = with(code, params);
        let fate = Fate { seed, loss, forge, late, twice, ..Fate::default() };
        let sent = stream(len, seed);
        let (received, _) = Net::new(profile, &config, fate).transfer(sent.clone());
        prop_assert!(received == sent, "{} of {} octets", received.len(), sent.len());
    }

    #[test]
    fn lengths_alone_give_the_same_run(
        (code, params) in some_params(),
        seed: u64,
        loss in prop::sample::select(vec![0.0, 0.02, 0.1]),
        late in prop::sample::select(vec![0.0, 0.05, 0.5]),
        twice in prop::sample::select(vec![0.0, 0.2]),
        len in 1_u32..150_000,
    ) {
        let config = with(code, params);
        let fate = Fate { seed, loss, late, twice, ..Fate::default() };
        let mut octets = Net::new("ns2-sack1", &config, fate.clone());
        octets.transfer(stream(len as usize, seed));
        let mut lengths = Net::new("ns2-sack1", &config, fate);
        lengths.transfer(Length(len));
        prop_assert_eq!(octets.ends[1].stats(), lengths.ends[1].stats());
        prop_assert_eq!(octets.trace, lengths.trace);
    }
}

/// Loses each packet of a transfer once, in a separate run. Packets of the first windows, which
/// have no room for a group and its redundancy, are skipped.
#[test]
fn one_loss_in_a_group_needs_no_retransmission() {
    for code in 0..3 {
        let config = with(code, group(4));
        let mut repaired = 0;
        for place in 12..60 {
            let fate = Fate {
                lose: vec![place],
                ..Fate::default()
            };
            let sent = stream(60 * 1_460, place);
            let mut net = Net::new("ns2-sack1", &config, fate);
            let (received, again) = net.transfer(sent.clone());
            assert!(received == sent);
            assert_eq!(
                net.ends[0].tcp().stats().fast_recoveries,
                0,
                "{code} {place}"
            );
            assert_eq!(again, 0, "{code} {place}");
            repaired += net.ends[1].stats().recovered_packets;
        }
        assert_eq!(repaired, 48, "code {code}");
    }
}

/// Two losses in a group are more than XOR can repair: held acknowledgments are released at once,
/// and TCP recovers. Two redundant packets of a block repair them.
#[test]
fn a_second_loss_needs_a_second_redundant_packet() {
    let fate = Fate {
        lose: vec![41, 43],
        ..Fate::default()
    };
    let sent = stream(100 * 1_460, 5);
    let mut net = Net::new("ns2-sack1", &with(0, group(8)), fate.clone());
    let (received, again) = net.transfer(sent.clone());
    assert!(received == sent);
    assert_eq!(again, 2);
    let stats = net.ends[1].stats();
    assert_eq!((stats.recovered_packets, stats.released_second_gap), (0, 1));
    for code in [1, 2] {
        let params = Params {
            redundant: Some(Count::new(2)),
            ..group(8)
        };
        let mut net = Net::new("ns2-sack1", &with(code, params), fate.clone());
        let (received, again) = net.transfer(sent.clone());
        assert!(received == sent);
        assert_eq!(again, 0, "code {code}");
        assert_eq!(net.ends[1].stats().recovered_packets, 2, "code {code}");
    }
}

/// A group's last packet and its redundancy are lost, or a whole group: the hold ends before the
/// sender's timeout. Detects receivers that attribute all missing data to the arriving group.
#[test]
fn data_older_than_the_next_redundancy_is_unrecoverable() {
    for (code, size, lost) in [
        (0, 1, vec![40]),
        (1, 1, vec![40]),
        (0, 4, vec![43]),
        (1, 4, vec![43]),
        (0, 4, vec![40, 41, 42, 43]),
    ] {
        let fate = Fate {
            lose_redundant: vec![lost[0] / u64::from(size)],
            lose: lost.clone(),
            ..Fate::default()
        };
        let mut net = Net::new("ns2-sack1", &with(code, group(size)), fate);
        let sent = stream(200 * 1_460, 3);
        let (received, again) = net.transfer(sent.clone());
        assert!(received == sent);
        let stats = net.ends[0].tcp().stats();
        let case = format!("code {code}, {size} packets, {lost:?} lost");
        assert_eq!(again, lost.len() as u64, "{case}");
        assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0), "{case}");
    }
}

/// The last two packets of a group are lost, as its redundancy shows, and later a single one, for
/// which acknowledgments are not held: the sender's recovery needs them. Detects receivers that
/// find missing data only between received packets.
#[test]
fn acknowledgments_are_not_held_after_an_unrecoverable_group() {
    let fate = Fate {
        lose: vec![42, 43, 50],
        ..Fate::default()
    };
    let mut net = Net::new("ns2-sack1", &with(0, group(4)), fate);
    let sent = stream(200 * 1_460, 4);
    let (received, _) = net.transfer(sent.clone());
    assert!(received == sent);
    let stats = net.ends[0].tcp().stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));
    assert_eq!(net.ends[1].stats().holds, 0);
}

/// The same with acknowledgments held during a recovery: after the single loss is recovered, they
/// do not report it as missing. Detects receivers that release them unchanged.
#[test]
fn packets_repaired_in_a_recovery_are_not_retransmitted() {
    for hold_in_recovery in [InRecovery::NewData, InRecovery::All] {
        let fate = Fate {
            lose: vec![42, 43, 49],
            ..Fate::default()
        };
        let params = Params {
            hold_in_recovery,
            ..group(4)
        };
        let mut net = Net::new("ns2-sack1", &with(0, params), fate);
        let sent = stream(200 * 1_460, 4);
        let (received, again) = net.transfer(sent.clone());
        assert!(received == sent);
        let stats = net.ends[0].tcp().stats();
        assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));
        assert_eq!(net.ends[1].stats().recovered_packets, 1);
        assert_eq!(again, 2, "{hold_in_recovery:?}");
    }
}

/// Two packets of a group are lost, and one after it. If the recovery gets the acknowledgments of
/// its retransmissions, it continues. If those are held as well, in some cases only the sender's
/// timer continues, and the duplicates that it sends release them. Detects receivers that then wait
/// for `hold_timeout`, and receivers that hold the same acknowledgments in both modes.
#[test]
fn a_second_arrival_ends_a_hold() {
    let mut timeouts = Vec::new();
    for hold_in_recovery in [InRecovery::NewData, InRecovery::All] {
        let mut sum = 0;
        for place in (130..400).step_by(6) {
            let fate = Fate {
                lose: vec![125, 127, place],
                ..Fate::default()
            };
            let params = Params {
                hold_in_recovery,
                hold_timeout: HoldTime::from_millis(60_000),
                ..Params::default()
            };
            let mut net = Net::new("ns2-sack1", &with(0, params), fate);
            let (received, _) = net.transfer(Length(1_000 * 1_460));
            assert_eq!(received, Length(1_000 * 1_460), "{place}");
            assert_eq!(net.ends[1].stats().released_timeout, 0, "{place}");
            sum += net.ends[0].tcp().stats().timeouts;
        }
        timeouts.push(sum);
    }
    assert!(timeouts[0] < timeouts[1], "{timeouts:?}");
}

/// The largest number of acknowledgments sent at one time.
fn most_at_once(net: &Net<Length>) -> u32 {
    let mut at_once: BTreeMap<Instant, u32> = BTreeMap::new();
    for (at, _, _) in net.trace.iter().filter(|(_, from, _)| *from == 1) {
        *at_once.entry(*at).or_default() += 1;
    }
    at_once.into_values().max().expect("it acknowledges")
}

/// After a repair, paced acknowledgments are sent separately, at a cost of at most 5 % of the time.
/// Detects receivers that release all at once, and receivers that never catch up.
#[test]
fn paced_acknowledgments_are_sent_apart() {
    let run = |release| {
        let fate = Fate {
            lose: vec![205],
            ..Fate::default()
        };
        let params = Params {
            release,
            ..group(40)
        };
        let mut net = Net::new("ns2-sack1", &with(0, params), fate);
        let (received, again) = net.transfer(Length(2_000 * 1_460));
        assert_eq!(received, Length(2_000 * 1_460));
        assert_eq!(again, 0, "{release:?}");
        assert_eq!(net.ends[1].stats().released_repaired, 1, "{release:?}");
        (most_at_once(&net), net.now.saturating_since(Instant::START))
    };
    let (most, took) = run(Release::Each);
    assert!(most >= 20, "{most} at once");
    let (most, paced) = run(Release::Paced);
    assert!(most <= 2, "{most} at once");
    assert!(paced <= took.mul_f64(1.05), "{paced:?} {took:?}");
}

/// Acknowledgments of an unrecoverable loss are paced like those after a repair. Detects receivers
/// that apply `release` only after a repair.
#[test]
fn unrecoverable_losses_use_the_same_release() {
    for release in [Release::Each, Release::Paced] {
        let fate = Fate {
            lose: vec![205, 215],
            ..Fate::default()
        };
        let params = Params {
            release,
            second_gap_releases: false,
            ..group(40)
        };
        let mut net = Net::new("ns2-sack1", &with(0, params), fate);
        let (received, again) = net.transfer(Length(2_000 * 1_460));
        assert_eq!(received, Length(2_000 * 1_460));
        assert_eq!(again, 2, "{release:?}");
        let stats = net.ends[1].stats();
        assert_eq!(
            (stats.holds, stats.released_group_over),
            (1, 1),
            "{release:?}"
        );
        let most = most_at_once(&net);
        assert_eq!(
            most > 2,
            release == Release::Each,
            "{release:?}: {most} at once"
        );
    }
}

/// The congestion window permits too little redundancy for the losses: the timer's retransmission
/// ends the hold. Detects receivers that wait for redundancy, so that the timer expires repeatedly.
#[test]
fn a_retransmission_by_the_timer_ends_a_hold() {
    let params = Params {
        hold_timeout: HoldTime::from_millis(60_000),
        window: Some(Count::new(255)),
        ..group(20)
    };
    let fate = Fate {
        lose: (40..50).collect(),
        ..Fate::default()
    };
    let mut net = Net::new("ns2-sack1", &with(2, params), fate);
    let sent = stream(400 * 1_460, 5);
    let (received, _) = net.transfer(sent.clone());
    assert!(received == sent);
    assert_eq!(net.ends[0].tcp().stats().timeouts, 1);
    let stats = net.ends[1].stats();
    assert_eq!(
        (stats.released_retransmitted, stats.released_timeout),
        (1, 0)
    );
}

/// By default, a sliding window is limited to the data that may be sent while its packets are
/// waited for.
#[test]
fn windows_follow_the_congestion_window() {
    let own = Config::SlidingRlc(Params::default());
    assert_eq!(
        [0, 4, 100, 1_000].map(|cwnd| own.window(cwnd)),
        [0, 3, 75, 160]
    );
    let given = Config::SlidingRlc(Params {
        window: Some(Count::new(100)),
        ..Params::default()
    });
    assert_eq!([4, 1_000].map(|cwnd| given.window(cwnd)), [100, 100]);
    assert_eq!(Config::Xor(Params::default()).window(100), 0);
}

/// Data that arrives with the acknowledgment of the handshake is recorded. Detects receivers that
/// do so only once the connection is established: redundancy would recover it and report a loss.
#[test]
fn data_that_was_not_lost_is_not_recovered() {
    for code in 0..3 {
        let mut net = Net::new("ns2-sack1", &with(code, group(1)), Fate::default());
        net.ends[0].tcp_mut().open(net.now);
        net.ends[0].tcp_mut().write_all(stream(50 * 1_460, 6));
        net.flush();
        for _ in 0..1_000 {
            if !net.step() {
                break;
            }
        }
        let [sender, receiver] = net.ends.each_ref().map(Protected::stats);
        assert_eq!(receiver.redundant_received, 50, "code {code}");
        assert_eq!(receiver.recovered_packets, 0, "code {code}");
        assert_eq!(sender.hidden_losses, 0, "code {code}");
    }
}

/// Without holding, duplicates start a recovery although the loss is repaired, if the group is
/// long.
#[test]
fn without_holding_a_recovery_begins() {
    for (hold_acks, recoveries) in [(true, 0), (false, 1)] {
        let params = Params {
            hold_acks,
            ..group(20)
        };
        let fate = Fate {
            lose: vec![61],
            ..Fate::default()
        };
        let mut net = Net::new("ns2-sack1", &with(0, params), fate);
        net.transfer(stream(200 * 1_460, 1));
        assert_eq!(net.ends[1].stats().recovered_packets, 1);
        assert_eq!(net.ends[0].tcp().stats().fast_recoveries, recoveries);
    }
}

/// RFC 9265 §3: the congestion control is notified of repaired losses and lost redundant packets.
#[test]
fn hidden_losses_reduce_the_window_if_configured() {
    for (recovered_is_loss, reductions) in [(false, 0), (true, 1)] {
        let params = Params {
            recovered_is_loss,
            ..group(4)
        };
        let fate = Fate {
            lose: vec![101],
            ..Fate::default()
        };
        let mut net = Net::new("ns2-sack1", &with(0, params), fate);
        let (_, again) = net.transfer(stream(300 * 1_460, 1));
        assert_eq!(again, 0);
        let stats = net.ends[0].stats();
        assert_eq!(stats.hidden_losses, 1);
        assert_eq!(stats.hidden_reductions, reductions);
        let reduced = net.ends[0].tcp().snapshot().ssthresh.is_some();
        assert_eq!(reduced, recovered_is_loss);
    }
}

/// Redundancy arrives after three packets of the next group: it recovers no packet, and a loss in
/// the next group is recovered, on octets and on lengths. Detects receivers that use any running
/// sum for the redundant packet's group, or discard the sum after such an error.
#[test]
fn overtaken_redundancy_does_not_affect_the_next_group() {
    fn recovered<B: Body>(body: &B) -> (u64, u64, u64) {
        let fate = Fate {
            lose: vec![42, 47],
            late_redundant: vec![10],
            ..Fate::default()
        };
        let mut net = Net::new("ns2-sack1", &with(0, group(4)), fate);
        let (received, again) = net.transfer(body.clone());
        assert!(received == *body);
        let stats = net.ends[1].stats();
        (stats.recovered_packets, stats.redundant_refused, again)
    }
    assert_eq!(recovered(&stream(100 * 1_460, 5)), (1, 0, 1));
    assert_eq!(recovered(&Length(100 * 1_460)), (1, 0, 1));
}

/// The first of a block's two redundant packets arrives twice, and two data packets are lost.
/// Detects receivers that count duplicates and so end the block too early.
#[test]
fn duplicated_redundancy_counts_once() {
    let params = Params {
        redundant: Some(Count::new(2)),
        ..group(8)
    };
    for code in [1, 2] {
        let fate = Fate {
            lose: vec![41, 43],
            twice_redundant: vec![10],
            ..Fate::default()
        };
        let mut net = Net::new("ns2-sack1", &with(code, params.clone()), fate);
        let sent = stream(100 * 1_460, 5);
        let (received, again) = net.transfer(sent.clone());
        assert!(received == sent);
        assert_eq!(net.ends[1].stats().recovered_packets, 2, "code {code}");
        assert_eq!(again, 0, "code {code}");
        // Each of the two recovered packets is reported once.
        assert_eq!(net.ends[0].stats().hidden_losses, 2, "code {code}");
    }
}

/// A packet is marked, and a later one lost. Redundancy repairs the loss as without marks, and the
/// sender receives one mark as without the loss. Detects receivers that release acknowledgments
/// because they carry marks, and receivers that drop the marks.
#[test]
fn held_acknowledgments_keep_their_marks() {
    for mode in [
        EcnMode::Rfc3168,
        EcnMode::Dctcp,
        EcnMode::AccecnWithoutOption,
        EcnMode::Accecn,
    ] {
        for release in [Release::Each, Release::One, Release::Paced] {
            let run = |lose: Vec<u64>| {
                let mut settings = Profile::named("rfc").expect("it exists").settings;
                settings.ecn = mode;
                let params = Params {
                    release,
                    ..group(20)
                };
                let fate = Fate {
                    lose,
                    mark: vec![61, 66, 67],
                    ..Fate::default()
                };
                let mut net = Net::with_settings(settings, &with(0, params), fate);
                let sent = stream(300 * 1_460, 1);
                let (received, again) = net.transfer(sent.clone());
                let case = format!("{mode:?} {release:?}");
                assert!(received == sent, "{case}");
                assert_eq!(again, 0, "{case}");
                let stats = net.ends[0].tcp().stats();
                assert_eq!(stats.fast_recoveries, 0, "{case}");
                (stats.ecn_reductions, net.ends[1].stats().held_acks)
            };
            let (reductions, held) = run(vec![63]);
            assert!(held > 10, "{mode:?} {release:?}: {held} held");
            let (without, _) = run(vec![]);
            assert!(without > 0);
            assert_eq!(reductions, without, "{mode:?} {release:?}");
        }
    }
}

/// The connection is reset while acknowledgments are held: none is sent any more. Detects layers
/// that outlive their endpoint.
#[test]
fn a_reset_connection_sends_no_packet() {
    let fate = Fate {
        lose: vec![61],
        lose_redundant: vec![3],
        ..Fate::default()
    };
    let mut net = Net::new("ns2-sack1", &with(0, group(20)), fate);
    net.ends[0].tcp_mut().open(net.now);
    net.ends[0].tcp_mut().write_all(Length(300 * 1_460));
    net.flush();
    while net.ends[1].stats().held_acks < 3 {
        assert!(net.step());
    }
    let reset = Segment {
        seq: net.ends[1].tcp().rcv_nxt().wire(),
        flags: Flags::RST,
        ..Segment::default()
    };
    let now = net.now;
    net.ends[1].on_packet(now, &Transport::Tcp(reset), Ecn::NotEct);
    assert_eq!(net.ends[1].tcp().state(), State::Closed);
    assert!(net.ends[1].poll_transmit(now).is_none());
    assert_eq!(net.ends[1].deadline(), Instant::NEVER);
    // The same for the sending end, with redundancy due for a partial group.
    let reset = Segment {
        seq: net.ends[0].tcp().rcv_nxt().wire(),
        flags: Flags::RST,
        ..Segment::default()
    };
    net.ends[0].on_packet(now, &Transport::Tcp(reset), Ecn::NotEct);
    assert_eq!(net.ends[0].tcp().state(), State::Closed);
    assert!(net.ends[0].poll_transmit(now).is_none());
}

/// The layer ignores acknowledgments that TCP refuses: of data never sent, or with a number outside
/// the window. Detects layers that read any acknowledgment.
#[test]
fn refused_acknowledgments_report_no_losses() {
    for (ahead, off) in [(100_000_u32, 0_u32), (0, 1 << 30)] {
        let mut net = Net::new("rfc", &with(0, group(4)), Fate::default());
        net.ends[0].tcp_mut().open(net.now);
        net.ends[0].tcp_mut().write_all(Length(100 * 1_460));
        net.flush();
        while net.ends[0].tcp().snd_una() <= net.ends[0].tcp().snd_una().near(u32::MAX - 25_000) {
            assert!(net.step());
        }
        let tcp = net.ends[0].tcp();
        let mut forged = Segment {
            seq: tcp.rcv_nxt().wire().wrapping_add(off),
            ack: tcp.snd_una().wire().wrapping_add(ahead),
            window: 100,
            flags: Flags::ACK,
            ..Segment::default()
        };
        let mut hidden = redundant::Hidden::default();
        hidden.add(3);
        hidden.write(&mut forged);
        net.ends[0].on_packet(net.now, &Transport::Tcp(forged), Ecn::NotEct);
        assert_eq!(net.ends[0].stats().hidden_losses, 0, "{ahead} {off}");
    }
}

/// Data that TCP refuses, here because it lacks an acknowledgment, is not recorded: a loss of the
/// same numbers is recovered. Detects layers that record data before TCP has checked it.
#[test]
fn refused_data_is_not_recorded() {
    let fate = Fate {
        lose: vec![41],
        ..Fate::default()
    };
    let mut net = Net::new("ns2-sack1", &with(0, group(4)), fate);
    net.ends[0].tcp_mut().open(net.now);
    let body = stream(100 * 1_460, 5);
    net.ends[0].tcp_mut().write_all(body);
    net.flush();
    while net.ends[1].tcp().state() != State::Established {
        assert!(net.step());
    }
    // The first data may have arrived with the acknowledgment of the handshake.
    let first = net.ends[1].tcp().initial_numbers().1.wrapping_add(1);
    let first = net.ends[1].tcp().rcv_nxt().near(first);
    while net.ends[1].tcp().rcv_nxt().since(first) < 41 * 1_460 {
        assert!(net.step());
    }
    let forged = Segment {
        seq: net.ends[1].tcp().rcv_nxt().wire(),
        body: stream(1_460, 9),
        ..Segment::default()
    };
    net.ends[1].on_packet(net.now, &Transport::Tcp(forged), Ecn::NotEct);
    for _ in 0..2_000 {
        if !net.step() {
            break;
        }
    }
    assert_eq!(net.ends[1].stats().recovered_packets, 1);
    assert_eq!(net.ends[0].tcp().stats().retransmitted_packets, 0);
}

fn ip() -> IpHeader {
    IpHeader {
        version: Version::V4 {
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            identification: 1,
            dont_fragment: true,
        },
        dscp: 0,
        ecn: Ecn::NotEct,
        hop_limit: 64,
    }
}

/// A receiver without the layer drops redundant packets: they have no ACK.
#[test]
fn a_plain_receiver_drops_redundancy() {
    use anabranch_wire::{self as wire, Ports, Prefix};
    let redundant = Redundant {
        first: 5,
        count: 3,
        size: 4,
        lengths: 4,
        key: 0x100,
        checksum: 9,
        body: Octets(vec![1, 2, 3, 4]),
    };
    let ip = ip();
    let ports = Ports {
        source: 1,
        destination: 2,
    };
    let mut octets = Vec::new();
    let len = anabranch_wire::encode_redundant(&ip, ports, &redundant, Prefix::whole(&mut octets));
    assert_eq!(len, Ok(redundant.ip_size()));
    let segment = wire::decode(&octets).expect("it is a segment").segment;
    assert!(!segment.flags.any(Flags::ACK));
    assert_eq!(
        anabranch_wire::decode_redundant(&octets)
            .map(|read| read.map(|(_, ports, read)| (ports, read))),
        Ok(Some((ports, redundant)))
    );
}

/// A packet that covers only missing data verifies itself: its count is 1, its body the content,
/// and its checksum right except for the ends' secret. Detects a checksum without it.
#[test]
fn redundancy_of_missing_data_cannot_be_forged_from_outside() {
    let body = stream(40_000, 5);
    for knows_the_sum in [false, true] {
        let mut net = Net::new("rfc", &with(0, group(2)), Fate::default());
        net.ends[0].tcp_mut().open(net.now);
        net.flush();
        while net.ends[1].tcp().state() != State::Established {
            assert!(net.step());
        }
        let expected = net.ends[1].tcp().rcv_nxt();
        let lie = Octets(vec![0x41; 100]);
        let sum = redundant::checksum(expected.wire(), &lie.0);
        let forged = Redundant {
            first: expected.wire(),
            count: 1,
            size: 100,
            lengths: 100,
            key: 0x100,
            checksum: if knows_the_sum { sum } else { 0 },
            body: lie,
        };
        net.ends[1].on_packet(net.now, &Transport::Redundant(forged), Ecn::NotEct);
        let stats = net.ends[1].stats();
        assert_eq!((stats.redundant_refused, stats.recovered_packets), (1, 0));
        assert_eq!(net.transfer(body.clone()).0, body);
    }
}

/// Redundancy of numbers beyond the window is refused, and later losses are recovered. Detects a
/// receiver that takes any number for the highest one sent.
#[test]
fn redundancy_far_ahead_has_no_effect() {
    let body = Length(400_000);
    let fate = Fate {
        lose: vec![40, 80],
        ..Fate::default()
    };
    let mut net = Net::new("rfc", &with(0, group(4)), fate);
    net.ends[0].tcp_mut().open(net.now);
    net.flush();
    while net.ends[1].tcp().state() != State::Established {
        assert!(net.step());
    }
    let expected = net.ends[1].tcp().rcv_nxt();
    for ahead in [1_u64 << 24, 1 << 29] {
        let forged = Redundant {
            first: (expected + ahead).wire(),
            count: 1,
            size: 100,
            lengths: 100,
            key: 0x100,
            checksum: 0,
            body: Length(100),
        };
        net.ends[1].on_packet(net.now, &Transport::Redundant(forged), Ecn::NotEct);
    }
    let (received, again) = net.transfer(body);
    assert_eq!((received, again), (body, 0));
    assert_eq!(net.ends[1].stats().recovered_packets, 2);
}

/// Acknowledgments that overtake each other do not report losses that did not occur. Detects a
/// sender that takes an old count for one that has wrapped around.
#[test]
fn overtaken_acknowledgments_report_no_losses() {
    let body = Length(800_000);
    let fate = Fate {
        lose: vec![100, 200, 300],
        swap_acks: true,
        ..Fate::default()
    };
    let mut net = Net::new("rfc", &with(0, group(4)), fate);
    let (received, _) = net.transfer(body);
    assert_eq!(received, body);
    let told = net.ends[0].stats().hidden_losses;
    assert!((1..=3).contains(&told), "{told} losses");
}

proptest! {
    #[test]
    fn redundant_packets_survive_encoding(
        first: u32, count: u16, size: u16, lengths: u16, key: u16, checksum: u32,
        body in prop::collection::vec(any::<u8>(), 0..200),
        flip in prop::option::of((0_usize..100, 0_u8..8)),
    ) {
        use anabranch_wire::{Ports, Prefix};
        let redundant = Redundant { first, count, size, lengths, key, checksum, body: Octets(body) };
        let ip = ip();
        let ports = Ports { source: 1, destination: 2 };
        let mut octets = Vec::new();
        anabranch_wire::encode_redundant(&ip, ports, &redundant, Prefix::whole(&mut octets)).expect("it fits");
        if let Some((place, bit)) = flip {
            let place = place % octets.len();
            octets[place] ^= 1 << bit;
            // A checksum detects a single wrong bit, unless the bit is in a field that the
            // checksums exclude.
            if let Ok(Some((.., read))) = anabranch_wire::decode_redundant(&octets) {
                prop_assert_eq!(read, redundant);
            }
        } else {
            let read = anabranch_wire::decode_redundant(&octets).expect("it is one").expect("it is one");
            prop_assert_eq!(read.2, redundant);
        }
    }
}
