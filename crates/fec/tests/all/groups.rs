//! Groups of the sender: their size, their share of the congestion window, the data that belongs to
//! none, and the end of a hold without a further group.
//!
//! If a rule is a formula, other plausible rules are applied to the same packets and must not fit
//! them.

use anabranch_core::{body::Length, parameters::Count, units::Duration};
use anabranch_fec::{
    Config, Params,
    params::Choice,
    params::{HoldTime, InRecovery},
};
use anabranch_wire::redundant::Tag;

use crate::support::net;

use net::{Fate, Left, Net};

const MSS: u32 = 1_460;

fn group(n: u32) -> Params {
    Params {
        group: Some(Count::new(n)),
        ..Params::default()
    }
}

fn losing(lose: Vec<u64>, lose_redundant: Vec<u64>) -> Fate {
    Fate {
        lose,
        lose_redundant,
        ..Fate::default()
    }
}

/// A connection on which `packets` packets are written and which is not closed.
fn begun(config: &Config, fate: Fate, packets: u32) -> Net<Length> {
    let mut net = Net::new("ns2-sack1", config, fate);
    net.ends[0].tcp_mut().open(net.now);
    net.ends[0].tcp_mut().write_all(Length(packets * MSS));
    net.flush();
    net
}

/// A whole transfer of `packets` packets by `ns2-sack1`, whose initial window is two packets.
fn transferred(config: &Config, fate: Fate, packets: u32) -> Net<Length> {
    let mut net = Net::new("ns2-sack1", config, fate);
    let (received, _) = net.transfer(Length(packets * MSS));
    assert_eq!(received, Length(packets * MSS));
    net
}

/// A closed group: the packets that its redundancy covers, and the congestion window in whole
/// packets at the transmission of each.
struct Group {
    covers: u16,
    windows: Vec<u64>,
}

/// The groups that were full when they were closed.
fn full_groups(net: &Net<Length>) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut windows = Vec::new();
    for left in &net.log {
        match left {
            Left::Data { cwnd, tag, .. } if tag.is_some() => windows.push(*cwnd),
            Left::Data { .. } => {}
            Left::Redundant { count, .. } => groups.push(Group {
                covers: *count,
                windows: std::mem::take(&mut windows),
            }),
        }
    }
    // The last group ends with the data.
    groups.pop();
    groups
}

/// A group is the window minus the redundant packet when its first packet is sent, chosen again
/// after each redundant packet: one data packet at a window of two, more as the window grows, fewer
/// after an unrecovered loss. Detects senders that ignore the redundant packet, limit the group by
/// themselves, keep the first size, or use the window before the redundant packet or at the end of
/// the group.
#[test]
fn groups_follow_the_window_less_one() {
    // Two losses in one group halve the window.
    let net = transferred(
        &Config::Xor(Params::default()),
        losing(vec![600, 602], vec![]),
        3_000,
    );
    assert_eq!(net.ends[0].tcp().stats().fast_recoveries, 1);
    let groups = full_groups(&net);
    let first = |k: usize| groups[k].windows[0];
    let sizes: Vec<u64> = groups.iter().map(|group| group.covers.into()).collect();
    let of = |rule: &dyn Fn(usize) -> u64| (0..groups.len()).map(rule).collect::<Vec<_>>();
    let less_one = |window: u64| window.saturating_sub(1).max(1);

    assert_eq!(sizes, of(&|k| less_one(first(k))));
    for (group, size) in groups.iter().zip(&sizes) {
        assert_eq!(group.windows.len() as u64, *size, "what it covers has left");
    }
    assert_eq!((first(0), sizes[0]), (2, 1));
    let top = sizes.iter().max().expect("there are some");
    assert!(*top > 40, "no limit: {top}");
    let after = sizes.iter().rposition(|size| size == top).expect("above");
    assert!(sizes[after..].iter().any(|size| size * 3 < top * 2));

    let wrong: [(&str, &dyn Fn(usize) -> u64); 5] = [
        ("the whole window", &|k| first(k)),
        ("a limit of 40", &|k| less_one(first(k)).min(40)),
        ("never updated", &|_| less_one(first(0))),
        ("updated one group late", &|k| {
            less_one(first(k.saturating_sub(1)))
        }),
        ("the window at the group's end", &|k| {
            less_one(*groups[k].windows.last().expect("a group has packets"))
        }),
    ];
    for (name, rule) in wrong {
        assert_ne!(sizes, of(rule), "the wrong sender, {name}");
    }
}

/// The same with a limit.
#[test]
fn fmax_bounds_a_group() {
    let params = Params {
        fmax: 10,
        ..Params::default()
    };
    let net = transferred(&Config::Xor(params), Fate::default(), 500);
    let groups = full_groups(&net);
    for group in &groups {
        let expected = (group.windows[0] - 1).clamp(1, 10);
        assert_eq!(u64::from(group.covers), expected);
    }
    assert!(groups.iter().any(|group| group.covers < 10));
    assert!(groups.iter().any(|group| group.windows[0] > 11));
}

/// Packets in flight after each event while the sender has data: data packets, redundant packets
/// with unacknowledged data, and the congestion window.
fn in_flight(occupies_cwnd: bool) -> Vec<(u64, u64, u64)> {
    let params = Params {
        occupies_cwnd,
        ..group(4)
    };
    let mut net = begun(&Config::Xor(params), Fate::default(), 100_000);
    let mut seen = Vec::new();
    for _ in 0..3_000 {
        assert!(net.step());
        let tcp = net.ends[0].tcp();
        let una = tcp.snd_una();
        let (mut data, mut redundant) = (0, 0);
        for left in &net.log {
            match left {
                Left::Data { end, .. } => data += u64::from(una.near(*end) > una),
                Left::Redundant { end, .. } => redundant += u64::from(una.near(*end) > una),
            }
        }
        let cwnd = tcp.cwnd().get() / u64::from(tcp.smss());
        if redundant > 0 {
            seen.push((data, redundant, cwnd));
        }
    }
    seen
}

/// At the same window, each redundant packet in flight displaces one data packet. A redundant
/// packet sent directly after its group, if the group has filled the window, is one too many until
/// the next acknowledgment. Detects senders that count redundancy in both modes, in neither, or for
/// ever.
#[test]
fn redundant_packets_in_flight_take_their_share_of_the_window() {
    let fits = |seen: &[(u64, u64, u64)], taken: &dyn Fn(u64) -> u64| {
        seen.iter().all(|(data, redundant, cwnd)| {
            let all = data + taken(*redundant);
            all == *cwnd || all == cwnd + taken(1)
        })
    };
    let (on, off) = (in_flight(true), in_flight(false));
    let most = |seen: &[(u64, u64, u64)]| seen.iter().map(|(_, redundant, _)| *redundant).max();
    assert!(most(&on) > Some(10) && most(&off) > Some(10));
    assert!(fits(&on, &|redundant| redundant), "{on:?}");
    assert!(fits(&off, &|_| 0), "{off:?}");
    assert!(
        !fits(&off, &|redundant| redundant),
        "counted in either case"
    );
    assert!(!fits(&on, &|_| 0), "counted in neither");
}

/// The group's redundancy is lost with one of its packets, and no other group follows:
/// `hold_timeout` ends the hold, and the duplicates then released begin a recovery. Detects
/// receivers that wait for the sender's timer, as with a timeout of a minute.
#[test]
fn a_hold_ends_after_its_timeout() {
    let run = |hold_timeout: Duration| {
        let millis = hold_timeout.as_nanos() / 1_000_000;
        let params = Params {
            hold_timeout: HoldTime::from_millis(millis),
            ..group(20)
        };
        // Group 3 consists of packets 60 to 69, where the data ends.
        let fate = losing(vec![61], vec![3]);
        let mut net = begun(&Config::Xor(params), fate, 70);
        let (mut began, mut ended) = (None, None);
        while net.step() {
            let stats = net.ends[1].stats();
            began = began.or((stats.holds > 0).then_some(net.now));
            ended = ended.or((stats.released_timeout > 0).then_some(net.now));
        }
        let receiver = *net.ends[1].stats();
        assert_eq!(
            net.ends[1].tcp_mut().read(net.now, u64::MAX),
            Length(70 * MSS)
        );
        assert_eq!((receiver.holds, receiver.recovered_packets), (1, 0));
        assert!(receiver.held_acks >= 8);
        let sender = net.ends[0].tcp().stats();
        let lasted = ended.map(|ended| ended.saturating_since(began.expect("it began")));
        (
            receiver.released_timeout,
            lasted,
            (sender.fast_recoveries, sender.timeouts),
        )
    };
    for millis in [10, 100] {
        let time = Duration::from_millis(millis);
        assert_eq!(run(time), (1, Some(time), (1, 0)));
    }
    assert_eq!(run(Duration::from_secs(60)), (0, None, (0, 1)));
}

/// The sender runs out of data within a group and its last packet is lost: redundancy of the
/// partial group recovers it. Detects senders that wait for a full group; the second run imitates
/// one: without that redundant packet only the timer helps.
#[test]
fn the_last_packet_of_a_partial_group_is_recovered() {
    let codes: [fn(Params) -> Config; 3] = [Config::Xor, Config::ReedSolomon, Config::SlidingRlc];
    for (place, code) in codes.into_iter().enumerate() {
        for (lose_redundant, recovered, again) in [(vec![], 1, 0), (vec![7], 0, 1)] {
            // Seven groups, and five packets of the eighth.
            let fate = losing(vec![60], lose_redundant);
            let mut net = begun(&code(group(8)), fate, 61);
            while net.step() {}
            assert_eq!(
                net.ends[1].tcp_mut().read(net.now, u64::MAX),
                Length(61 * MSS)
            );
            assert_eq!(net.redundant, 8, "code {place}");
            let sent = net.ends[0].tcp().stats();
            assert_eq!(net.ends[1].stats().recovered_packets, recovered);
            assert_eq!((sent.retransmitted_packets, sent.timeouts), (again, again));
            assert_eq!(sent.fast_recoveries, 0, "code {place}");
        }
    }
}

/// Retransmissions, by a recovery and by the timer, carry no group number, and no redundancy covers
/// them again. Detects senders that let them join the open group, or keep their original number:
/// then the tag is set.
#[test]
fn retransmissions_belong_to_no_group() {
    for redundancy in [Choice::Cwnd, Choice::Fixed] {
        let params = Params {
            redundancy: Some(redundancy),
            hold_in_recovery: InRecovery::All,
            hold_timeout: HoldTime::from_millis(60_000),
            ..Params::default()
        };
        // Two packets of a group, and all but one of the last ones.
        let lose = vec![100, 102].into_iter().chain(390..399).collect();
        let net = transferred(&Config::Xor(params), losing(lose, vec![]), 400);
        let sent = net.ends[0].tcp().stats();
        assert!(sent.timeouts > 0);
        let (mut again, mut new, mut covered) = (0, 0, 0);
        for left in &net.log {
            match left {
                Left::Data {
                    retransmission: true,
                    tag,
                    ..
                } => {
                    assert_eq!(*tag, Tag::NONE);
                    again += 1;
                }
                Left::Data { tag, .. } => {
                    assert!(tag.is_some());
                    new += 1;
                }
                Left::Redundant { count, .. } => covered += u64::from(*count),
            }
        }
        assert_eq!(again, sent.retransmitted_packets);
        assert!(again > 2, "{again}");
        assert_eq!((new, covered), (400, 400));
    }
}
