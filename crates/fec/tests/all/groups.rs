//! Groups as the sender makes them: how long, what they take of the congestion window, what belongs to none, and what ends a hold
//! when no further group comes.
//!
//! Where a rule is a formula, other rules that a sender might follow are held to the same packets, and must not fit them.

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

/// So many packets are written, and nothing is closed.
fn begun(config: &Config, fate: Fate, packets: u32) -> Net<Length> {
    let mut net = Net::new("ns2-sack1", config, fate);
    net.ends[0].tcp_mut().open(net.now);
    net.ends[0].tcp_mut().write_all(Length(packets * MSS));
    net.flush();
    net
}

/// A whole transfer of so many packets by `ns2-sack1`, whose window begins with two.
fn transferred(config: &Config, fate: Fate, packets: u32) -> Net<Length> {
    let mut net = Net::new("ns2-sack1", config, fate);
    let (received, _) = net.transfer(Length(packets * MSS));
    assert_eq!(received, Length(packets * MSS));
    net
}

/// A closed group: the packets that its redundancy covers, and the congestion window in whole packets as each of them left.
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
    // The last one ends with the data.
    groups.pop();
    groups
}

/// A group is the window less the redundant packet as its first packet leaves, so it is chosen anew after each redundant packet: one data
/// packet of a window of two, more as it grows, fewer after a loss that does not come back. Fails for senders that forget the
/// redundant packet, limit the group without being told to, keep the first size, go by the window before the redundant packet, or by
/// that at the end of the group.
#[test]
fn groups_follow_the_window_less_one() {
    // Two losses in one group: the window is halved.
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

/// With a limit the same, up to the limit.
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

/// Packets in flight after each thing that happens while the sender has data: data, redundant packets of which something
/// has not been acknowledged, and the congestion window.
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

/// At the same window the sender has as many packets fewer in flight as it has redundant ones there. What leaves right behind its group,
/// when that has filled the window, is one too many until the next acknowledgment. Fails for senders that count redundancy
/// in either case, in neither, or each redundant packet once and for all.
#[test]
fn redundant_packets_in_flight_are_what_they_take_of_the_window() {
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

/// The group's redundancy is lost with one of its packets, and no other group follows: `hold_timeout` ends the hold, and the duplicates that
/// leave then begin a recovery. Fails for receivers that wait for the sender's timer, as one does that is given a minute.
#[test]
fn a_hold_ends_after_its_time() {
    let run = |hold_timeout: Duration| {
        let millis = hold_timeout.as_nanos() / 1_000_000;
        let params = Params {
            hold_timeout: HoldTime::from_millis(millis),
            ..group(20)
        };
        // Group 3 is packets 60 to 69: the data ends there.
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

/// The sender runs out of data within a group and its last packet is lost: it comes back, by redundancy that covers the part that there is.
/// Fails for senders that wait for the group to fill, as which the second run stands: without that redundant packet only the timer helps.
#[test]
fn the_last_packet_of_a_partial_group_comes_back() {
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

/// What is retransmitted, by a recovery and by the timer, has no number of a group, and no redundancy covers it a second time. Fails for senders
/// that let it join the open group, or leave the number that it had: then its tag is some.
#[test]
fn what_is_sent_again_belongs_to_no_group() {
    for redundancy in [Choice::Cwnd, Choice::Fixed] {
        let params = Params {
            redundancy: Some(redundancy),
            hold_in_recovery: InRecovery::All,
            hold_timeout: HoldTime::from_millis(60_000),
            ..Params::default()
        };
        // Two of a group, and all of the end but one.
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
