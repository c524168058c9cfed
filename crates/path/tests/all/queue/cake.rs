//! CAKE on scripted arrivals, compared with its paper and manual page.

use std::collections::BTreeMap;

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Bytes, Duration, Instant, Rate, text::Limit},
};
use anabranch_path::queue::{
    Config, Init, Item, Outcome, QueueContext, QueueDiscipline,
    bounded::{Bandwidth, MinimumPacket, Overhead},
    cake::{Cake, Diffserv, Framing, Isolation, Params},
};

use crate::queue::{
    decisions,
    support::{Bench, arrive},
};

/// A packet that arrives: time, flow, size, DSCP.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: Instant,
    flow: u32,
    size: u32,
    dscp: u8,
}

/// A departure: time, flow, size.
type Sent = (Instant, u32, u32);

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Runs arrivals through a queue and a link of this rate until `end`. Flow `n` is connection `n`.
fn carry(
    params: &Params,
    hosts: &[[u32; 2]],
    link: Rate,
    arrivals: &[Arrival],
    end: Instant,
) -> (Vec<Sent>, u64) {
    let init = Init {
        rate: Some(link),
        flows: &[],
        hosts,
    };
    let mut queue = Cake::new(params, &init);
    let (mut outcomes, mut sent, mut dropped) = (Vec::new(), Vec::new(), 0);
    let mut free = Instant::START;
    let mut next = arrivals.iter().peekable();
    let mut order = 0;
    loop {
        let arrival = next.peek().map_or(Instant::NEVER, |arrival| arrival.at);
        let service = if queue.is_empty() {
            Instant::NEVER
        } else {
            free
        };
        let now = arrival.min(service.max(Instant::START));
        if now > end || now == Instant::NEVER {
            return (sent, dropped);
        }
        let mut cx = QueueContext {
            now,
            held_packets: 0,
            held_bytes: 0,
            stream: Stream::new(1, "cake"),
            outcomes: &mut outcomes,
        };
        if arrival <= service {
            let arrival = next.next().expect("it was peeked");
            let item = Item {
                packet: PacketId(order),
                size: arrival.size,
                flow: FlowId(arrival.flow),
                connection: ConnectionId(arrival.flow),
                arrived: now,
                // CoDel marks instead of dropping, so only turns matter.
                ecn: Ecn::Ect0,
                dscp: arrival.dscp,
                has_data: true,
                direction: Direction::Forward,
                order,
            };
            order += 1;
            queue.enqueue(item, &mut cx);
            free = free.max(now);
        } else if let Some(item) = queue.dequeue(&mut cx) {
            sent.push((now, item.flow.0, item.size));
            free = (now + Bytes::new(u64::from(item.size)) / link).max(queue.held_until());
        }
        dropped += outcomes
            .drain(..)
            .filter(|outcome| matches!(outcome, Outcome::Dropped(_)))
            .count() as u64;
    }
}

/// Arrivals of `flows` flows that each send a packet of 1,500 bytes at this interval.
fn flood(flows: u32, every: Duration, end: Instant, dscp: impl Fn(u32) -> u8) -> Vec<Arrival> {
    let mut all = Vec::new();
    let mut at = Instant::START;
    while at < end {
        all.extend((0..flows).map(|flow| Arrival {
            at,
            flow,
            size: 1500,
            dscp: dscp(flow),
        }));
        at = at + every;
    }
    all
}

/// Bytes of each flow that left from `from` on.
fn by_flow(sent: &[Sent], from: Instant) -> BTreeMap<u32, f64> {
    let mut bytes = BTreeMap::new();
    for (_, flow, size) in sent.iter().filter(|(at, ..)| *at >= from) {
        *bytes.entry(*flow).or_default() += f64::from(*size);
    }
    bytes
}

fn shaped(mbit: u64) -> Params {
    Params {
        rate: Bandwidth(Some(Rate::from_mbit_per_s(mbit))),
        // Nothing overflows, so BLUE has no effect.
        limit: Limit::Unlimited,
        ..Params::default()
    }
}

const LINK: Rate = Rate::from_mbit_per_s(1000);
const END: Instant = Instant::from_millis(4_000);
const WARM: Instant = Instant::from_millis(1_000);

/// tc-cake(8): the link's overhead counts, in cells or blocks if the link uses them.
#[test]
fn the_shaper_sends_at_its_rate_with_overhead() {
    for (overhead, mpu, framing, size, length) in [
        (0, 0, Framing::Noatm, 1500, 1500.0),
        (38, 0, Framing::Noatm, 1500, 1538.0),
        (-20, 0, Framing::Noatm, 1500, 1480.0),
        (38, 84, Framing::Noatm, 40, 84.0),
        // 1,500 and 44 bytes fill 33 cells (ADSL, RFC 2684 with LLC and FCS); 40 and 8 bytes fill
        // one.
        (44, 0, Framing::Atm, 1500, 33.0 * 53.0),
        (8, 0, Framing::Atm, 40, 53.0),
        // 1,522 and 24 blocks.
        (22, 0, Framing::Ptm, 1500, 1546.0),
    ] {
        let params = Params {
            overhead: Overhead::new(overhead),
            mpu: MinimumPacket::new(mpu),
            framing,
            ..shaped(8)
        };
        let mut load = flood(1, us(u64::from(size) / 2), END, |_| 0);
        for arrival in &mut load {
            arrival.size = size;
        }
        let (sent, _) = carry(&params, &[], LINK, &load, END);
        let left: f64 = by_flow(&sent, WARM).values().sum();
        // Three seconds at a million bytes per second.
        let expected = 3e6 * f64::from(size) / length;
        assert!(
            (left / expected - 1.0).abs() < 0.002,
            "{framing:?} {size}: {left} of {expected}"
        );
    }
}

#[test]
fn an_idle_shaper_lets_no_burst_through() {
    let mut load: Vec<Arrival> = Vec::new();
    for k in 0..3_u64 {
        let at = Instant::from_millis(1000 * k);
        load.extend(vec![
            Arrival {
                at,
                flow: 0,
                size: 1500,
                dscp: 0
            };
            10
        ]);
    }
    let (sent, _) = carry(&shaped(12), &[], LINK, &load, END);
    assert_eq!(sent.len(), 30);
    for pair in sent.windows(2) {
        assert!(
            pair[1].0.saturating_since(pair[0].0) >= us(1000),
            "{pair:?}"
        );
    }
}

#[test]
fn flows_share_alike_whatever_they_offer() {
    // Flow 0 offers ten times the rate of each other flow, and the others offer twice their share.
    let mut load = flood(5, us(3000), END, |_| 0);
    load.extend(flood(1, us(300), END, |_| 0));
    load.sort_by_key(|arrival| arrival.at);
    let (sent, _) = carry(&shaped(10), &[], LINK, &load, END);
    let bytes = by_flow(&sent, WARM);
    let total: f64 = bytes.values().sum();
    for (flow, bytes) in bytes {
        assert!(
            (bytes / total - 0.2).abs() < 0.01,
            "{flow}: {bytes} of {total}"
        );
    }
}

/// Shares of the first and the last flow: five flows of host 1 and one of host 2, as `hosts`
/// assigns them.
fn shares_of_hosts(isolation: Isolation, hosts: &[[u32; 2]]) -> (f64, f64) {
    let params = Params {
        isolation,
        ..shaped(10)
    };
    let count = u32::try_from(hosts.len()).expect("few");
    let load = flood(count, us(1000), END, |_| 0);
    let (sent, _) = carry(&params, hosts, LINK, &load, END);
    let bytes = by_flow(&sent, WARM);
    let total: f64 = bytes.values().sum();
    let last = bytes.get(&(count - 1)).copied().unwrap_or(0.0) / total;
    let first = bytes.get(&0).copied().unwrap_or(0.0) / total;
    (first, last)
}

/// Høiland-Jørgensen et al. 2018 §3.2 and tc-cake(8): hosts first, then the flows of each.
#[test]
fn hosts_share_alike_whatever_their_numbers_of_flows() {
    let sources: Vec<[u32; 2]> = [1, 1, 1, 1, 1, 2].map(|source| [source, 9]).into();
    let destinations: Vec<[u32; 2]> = [1, 1, 1, 1, 1, 2].map(|end| [9, end]).into();
    let pairs: Vec<[u32; 2]> = [[1, 9]; 5].into_iter().chain([[2, 8]]).collect();
    for (isolation, hosts, lone) in [
        (Isolation::Flows, &pairs, 1.0 / 6.0),
        (Isolation::DualSrchost, &sources, 0.5),
        (Isolation::DualSrchost, &destinations, 1.0 / 6.0),
        (Isolation::DualDsthost, &destinations, 0.5),
        (Isolation::DualDsthost, &sources, 1.0 / 6.0),
        (Isolation::TripleIsolate, &pairs, 0.5),
        (Isolation::Srchost, &sources, 0.5),
        (Isolation::Dsthost, &destinations, 0.5),
        (Isolation::Hosts, &pairs, 0.5),
    ] {
        let (first, last) = shares_of_hosts(isolation, hosts);
        assert!(
            (last - lone).abs() < 0.02,
            "{isolation:?}: {last}, not {lone}"
        );
        let other = (1.0 - lone) / 5.0;
        let shared = matches!(
            isolation,
            Isolation::Srchost | Isolation::Dsthost | Isolation::Hosts
        );
        assert!(
            shared || (first - other).abs() < 0.02,
            "{isolation:?}: {first}"
        );
    }
}

/// Latency under load (§4.2 of the paper): a sparse flow waits only for the packet in transmission
/// and a turn of each other flow.
#[test]
fn a_sparse_flow_hardly_waits_under_load() {
    let mut load = flood(8, us(1000), END, |_| 0);
    load.extend(
        flood(1, us(20_000), END, |_| 0)
            .into_iter()
            .map(|arrival| Arrival {
                flow: 100,
                size: 100,
                at: arrival.at + us(130),
                ..arrival
            }),
    );
    load.sort_by_key(|arrival| arrival.at);
    let (sent, _) = carry(&shaped(10), &[], LINK, &load, END);
    let mut came = load.iter().filter(|arrival| arrival.flow == 100);
    let mut waits = Vec::new();
    for (at, ..) in sent.iter().filter(|(_, flow, _)| *flow == 100) {
        let arrived = came.next().expect("it arrived").at;
        // At first all flows are new.
        if arrived >= Instant::from_millis(100) {
            waits.push(at.saturating_since(arrived));
        }
    }
    assert!(waits.len() > 190, "{}", waits.len());
    // The packet in transmission takes 1.2 ms.
    let longest = waits.iter().max().expect("some");
    assert!(*longest <= us(1_200), "{longest}");
}

/// tc-cake(8): a tin has priority up to its threshold, and gets no more while lower tins have a
/// backlog.
#[test]
fn tins_have_priority_up_to_their_thresholds() {
    let shares = |diffserv: Diffserv, dscps: &'static [u8]| -> Vec<f64> {
        let params = Params {
            diffserv,
            ..shaped(10)
        };
        let count = u32::try_from(dscps.len()).expect("few");
        let load = flood(count, us(1000), END, |flow| dscps[flow as usize]);
        let (sent, _) = carry(&params, &[], LINK, &load, END);
        let bytes = by_flow(&sent, WARM);
        let total: f64 = bytes.values().sum();
        (0..count)
            .map(|flow| bytes.get(&flow).map_or(0.0, |bytes| bytes / total))
            .collect()
    };
    let near = |measured: Vec<f64>, expected: &[f64]| {
        for (measured, expected) in measured.iter().zip(expected) {
            assert!(
                (measured - expected).abs() < 0.02,
                "{measured}, not {expected}"
            );
        }
    };
    // Best effort, EF.
    near(shares(Diffserv::Besteffort, &[0, 46]), &[0.5, 0.5]);
    near(shares(Diffserv::Diffserv3, &[0, 46]), &[0.75, 0.25]);
    // CS5 is voice only with four tins, and 2 is not a class (measured with Linux 6.12).
    near(shares(Diffserv::Diffserv3, &[0, 40]), &[0.5, 0.5]);
    near(shares(Diffserv::Diffserv4, &[0, 40]), &[0.75, 0.25]);
    near(shares(Diffserv::Diffserv4, &[0, 2]), &[0.5, 0.5]);
    near(shares(Diffserv::Diffserv4, &[0, 46]), &[0.75, 0.25]);
    // AF41 has a half.
    near(
        shares(Diffserv::Diffserv4, &[0, 46, 34]),
        &[0.25, 0.25, 0.5],
    );
    // CS1 and LE have a sixteenth, and no more while best effort has a backlog (measured with Linux
    // 6.12).
    near(
        shares(Diffserv::Diffserv4, &[0, 8, 1]),
        &[0.9375, 0.031, 0.031],
    );
    near(
        shares(Diffserv::Diffserv4, &[0, 8, 34, 46]),
        &[0.1875, 0.0625, 0.5, 0.25],
    );
    // Each tin alone gets the whole bandwidth.
    for dscp in [&[0_u8][..], &[8], &[34], &[46]] {
        near(shares(Diffserv::Diffserv4, dscp), &[1.0]);
    }
}

#[test]
fn without_a_bandwidth_tins_share_by_weight() {
    let params = Params {
        diffserv: Diffserv::Diffserv4,
        limit: Limit::Unlimited,
        ..Params::default()
    };
    let dscps = [0, 8, 34, 46];
    let load = flood(4, us(500), END, |flow| dscps[flow as usize]);
    let (sent, _) = carry(&params, &[], Rate::from_mbit_per_s(10), &load, END);
    let bytes = by_flow(&sent, WARM);
    for (flow, weight) in [(1, 1.0 / 16.0), (2, 0.5), (3, 0.25)] {
        let ratio = bytes[&flow] / bytes[&0];
        assert!((ratio / weight - 1.0).abs() < 0.05, "{flow}: {ratio}");
    }
}

/// The 8-way set-associative hash: 512 flows in 1,024 queues rarely share one, while a plain hash
/// puts more than a third of them with another (Høiland-Jørgensen et al. 2018 §3.2).
#[test]
fn flows_rarely_share_a_queue() {
    let params = Params {
        isolation: Isolation::Flows,
        diffserv: Diffserv::Besteffort,
        ..shaped(100)
    };
    let flows = 512;
    let load = flood(flows, us(20_000), END, |_| 0);
    let (sent, _) = carry(&params, &[], LINK, &load, END);
    let bytes = by_flow(&sent, WARM);
    let mean = bytes.values().sum::<f64>() / f64::from(flows);
    let short = bytes.values().filter(|bytes| **bytes < 0.75 * mean).count();
    assert!(
        short < 20,
        "{short} of {flows} have less than three quarters of the mean"
    );
    assert_eq!(bytes.len(), flows as usize);
}

/// A single set of 8 queues: 8 flows get separate queues, and 20 flows share them.
#[test]
fn an_overfull_set_shares_its_queues() {
    let params = Params {
        queues: anabranch_path::queue::bounded::QueueCount::new(8),
        isolation: Isolation::Flows,
        diffserv: Diffserv::Besteffort,
        ..shaped(10)
    };
    let load = flood(8, us(2000), END, |_| 0);
    let (sent, _) = carry(&params, &[], LINK, &load, END);
    let bytes = by_flow(&sent, WARM);
    let mean = bytes.values().sum::<f64>() / 8.0;
    for (flow, bytes) in &bytes {
        assert!(
            (bytes / mean - 1.0).abs() < 0.02,
            "{flow}: {bytes} of {mean}"
        );
    }
    let load = flood(20, us(2000), END, |_| 0);
    let (sent, _) = carry(&params, &[], LINK, &load, END);
    assert_eq!(by_flow(&sent, WARM).len(), 20);
}

/// Times in milliseconds at which packets that are not ECN-capable are dropped.
fn drops(params: &Params, arrivals: impl IntoIterator<Item = (u64, u32)>) -> Vec<f64> {
    let arrivals = arrivals
        .into_iter()
        .map(|(us, flow)| decisions::Arrival(1_000 * us, 1500, flow, 0, 0))
        .collect();
    let decided = decisions::decide(&decisions::Case {
        queue: Config::Cake(params.clone()),
        rate: None,
        seed: 1,
        arrivals,
        hosts: Vec::new(),
    });
    let mut drops: Vec<f64> = decided
        .iter()
        .filter_map(|packet| packet.dropped)
        .map(|at| at as f64 / 1e6)
        .collect();
    drops.sort_by(f64::total_cmp);
    drops
}

/// One flow at 1.33 times a rate of 12 Mbit/s, from `from_ms` to `to_ms`.
fn overload(from_ms: u64, to_ms: u64) -> impl Iterator<Item = (u64, u32)> {
    let packets = (to_ms - from_ms) * 4 / 3;
    (0..packets).map(move |k| (from_ms * 1_000 + k * 750 + 100, 0))
}

/// COBALT: the first signal follows the first delay above the target. CoDel would wait for an
/// interval of 100 ms.
#[test]
fn the_first_signal_does_not_wait_for_an_interval() {
    let drops = drops(&shaped(12), overload(0, 400));
    assert!((15.0..30.0).contains(&drops[0]), "{}", drops[0]);
    let gap = drops[2] - drops[1];
    assert!(
        (55.0..60.0).contains(&gap),
        "100 ms over the root of 3: {gap}"
    );
}

/// COBALT: the count falls at the pace at which it rose. After a short pause signals are frequent
/// at once; after a long pause the first signal waits for an interval. CoDel would restart after
/// both, or continue after both.
#[test]
fn the_signal_schedule_runs_back_below_the_target() {
    let first = |pause: u32| {
        let second = 1_000 + pause;
        let load = overload(0, 600).chain(overload(second.into(), u64::from(second) + 400));
        let drops = drops(&shaped(12), load);
        let second = f64::from(second);
        let after: Vec<f64> = drops.into_iter().filter(|at| *at >= second).collect();
        (after[0] - second, after[1] - after[0])
    };
    let (wait, gap) = first(0);
    assert!(wait < 50.0 && gap < 35.0, "{wait}, {gap}");
    let (wait, gap) = first(9_000);
    assert!(wait > 100.0 && gap > 65.0, "{wait}, {gap}");
}

/// COBALT never drops the last packet of a queue: twenty flows with one packet each wait for 20 ms
/// and lose nothing.
#[test]
fn the_last_packet_of_a_queue_is_not_dropped() {
    let load = |packets: u32| {
        let bursts = (0..40).flat_map(move |k| {
            (0..20 * packets).map(move |n| (u64::from(k * 25_000 * packets), n % 20))
        });
        drops(&shaped(12), bursts).len()
    };
    assert_eq!(load(1), 0);
    assert!(load(2) > 20, "{}", load(2));
}

/// Linux signals nothing below the time of four of the largest packets: 48 ms at 1 Mbit/s.
#[test]
fn a_slow_link_may_hold_four_packets() {
    let standing = |packets: u64| {
        let first = (0..packets).map(|n| (10 * n, 0));
        let steady = (1..200).map(|k| (k * 12_000 + 500, 0));
        drops(&shaped(1), first.chain(steady)).len()
    };
    assert_eq!(standing(4), 0);
    assert!(standing(6) > 0);
}

/// BLUE: after an overflow an unresponsive flow loses packets at random before the queue is full.
#[test]
fn an_unresponsive_flow_is_limited() {
    let params = Params {
        limit: Limit::Packets(50),
        ..shaped(10)
    };
    let end = Instant::from_millis(20_000);
    let load = flood(1, us(600), end, |_| 0);
    let (sent, dropped) = carry(&params, &[], LINK, &load, end);
    assert!(dropped > 10_000, "{dropped}");
    assert!(sent.len() > 16_000, "{}", sent.len());
}

#[test]
fn the_ledger_holds_with_a_shaper() {
    let config = Config::Cake(shaped(5));
    let mut script = Vec::new();
    for k in 0..2_000_u32 {
        script.push(arrive(us(1_000), 1500, k % 7));
    }
    script.push(arrive(Duration::from_secs(10), 1500, 0));
    let fates = Bench::of(&config, Some(Rate::from_mbit_per_s(100)))
        .run(&script)
        .expect("the laws hold");
    assert_eq!(fates.len(), 2_001);
}
