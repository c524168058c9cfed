//! FQ-CoDel on scripted arrivals.

use crate::queue::aqm;

use anabranch_core::{
    packet::Ecn,
    units::{Bytes, Duration, Instant, text::Limit},
};
use anabranch_path::queue::{
    Config, Discipline, QueueDiscipline,
    bounded::{MemoryLimit, Quantum, QueueCount},
    codel,
    fq_codel::Params,
};
use aqm::{Arrival, Fate, Link, a_packet_per_ms, build, ms, us};

fn fq(params: Params, seed: u64) -> Link<Discipline> {
    Link::new(build(&Config::FqCodel(params)), a_packet_per_ms(), seed)
}

/// Arrivals of one connection at a constant interval.
fn flow(
    connection: u32,
    size: u32,
    (from, to): (Instant, Instant),
    every: Duration,
) -> impl Iterator<Item = Arrival> {
    (0_u64..)
        .map(move |n| Arrival {
            at: from + every.saturating_mul(n),
            size,
            connection,
            ecn: Ecn::NotEct,
        })
        .take_while(move |arrival| arrival.at < to)
}

fn in_order(mut script: Vec<Arrival>) -> Vec<Arrival> {
    script.sort_by_key(|arrival| arrival.at);
    script
}

/// Connection 0 sends twice the capacity; connection 1 sends a small packet every 50 ms.
fn sparse_beside_bulk() -> Vec<Arrival> {
    let whole = (ms(0), ms(3_000));
    let bulk = flow(0, 1_500, whole, Duration::from_micros(500));
    let sparse = flow(1, 200, (us(10_250), ms(3_000)), Duration::from_millis(50));
    in_order(bulk.chain(sparse).collect())
}

/// A packet of the sparse flow waits for the packet in transmission and for the rest of the other's
/// quantum: less than one round. With CoDel alone it waits like all others.
#[test]
fn a_sparse_flow_waits_less_than_a_round() {
    let run = |config: &Config| {
        let mut link = Link::new(build(config), a_packet_per_ms(), 1);
        link.run(sparse_beside_bulk(), ms(3_000));
        link
    };
    let longest = |link: &Link<Discipline>| {
        let sparse = link.with(Fate::Sent).filter(|e| e.connection == 1);
        sparse.map(|event| event.sojourn).max().expect("some")
    };
    // A quantum of both takes 2 ms.
    let apart = run(&Config::FqCodel(Params::default()));
    assert!(longest(&apart) < Duration::from_millis(2));
    let sent = apart.with(Fate::Sent).filter(|e| e.connection == 1);
    assert_eq!(sent.count(), 60, "none is lost");
    let together = run(&Config::Codel(codel::Params::default()));
    assert!(longest(&together) > Duration::from_millis(20));
    let hashed_together = Params {
        queues: QueueCount::new(1),
        ..Params::default()
    };
    let together = run(&Config::FqCodel(hashed_together));
    assert!(longest(&together) > Duration::from_millis(20));
}

/// Flows that always have a backlog get equal bytes, whatever their packet sizes and rates.
#[test]
fn backlogged_flows_have_equal_shares() {
    let whole = (ms(0), ms(10_000));
    let flows = [(1_500, 700), (1_500, 1_200), (576, 300), (100, 60)];
    let script: Vec<_> = (0..)
        .zip(flows)
        .flat_map(|(connection, (size, every))| {
            flow(connection, size, whole, Duration::from_micros(every))
        })
        .collect();
    // Without CoDel's drops, so that each always has a backlog.
    let params = Params {
        limit: Limit::Unlimited,
        target: anabranch_path::queue::bounded::ControlTime::from_millis(100_000),
        interval: anabranch_path::queue::bounded::ControlTime::from_millis(100_000),
        ..Params::default()
    };
    let mut link = fq(params, 1);
    link.run(in_order(script), ms(10_000));
    let total = 10_000.0 * 1_500.0;
    for connection in 0..4 {
        let share = link.bytes_sent(connection, ms(0), ms(10_000)) as f64 / total;
        assert!((share - 0.25).abs() < 0.0025, "{connection}: {share}");
    }
}

/// The queue with most bytes loses half of its packets, at most 64, from its head, and no other
/// queue loses any.
#[test]
fn the_fattest_queue_loses() {
    let params = Params {
        limit: Limit::Packets(100),
        ..Params::default()
    };
    // The first packet is in transmission. 51 small packets are not the fattest queue; 50 large
    // packets are.
    let all_at_once = |connection: u32, size, n| {
        std::iter::repeat_n(
            Arrival {
                at: us(connection.into()),
                size,
                connection,
                ecn: Ecn::Ect0,
            },
            n,
        )
    };
    let script = all_at_once(0, 1_500, 1)
        .chain(all_at_once(1, 1_500, 50))
        .chain(all_at_once(2, 100, 51));
    let mut link = fq(params.clone(), 1);
    link.run(script, us(2));
    let dropped: Vec<_> = link.with(Fate::Dropped).map(|e| e.packet).collect();
    assert_eq!(
        dropped,
        (1..26).collect::<Vec<_>>(),
        "half of 50, from the head"
    );
    assert_eq!(link.queue.len(), 76);
    // At most 64: 200 packets wait in one queue with room for 199.
    let mut link = fq(
        Params {
            limit: Limit::Packets(199),
            ..params
        },
        1,
    );
    link.run(all_at_once(0, 1_500, 201), us(1));
    let dropped: Vec<_> = link.with(Fate::Dropped).map(|e| e.packet).collect();
    assert_eq!(dropped, (1..65).collect::<Vec<_>>());
}

#[test]
fn the_memory_limit_also_holds() {
    let params = Params {
        memory_limit: MemoryLimit(Some(Bytes::new(15_000))),
        ..Params::default()
    };
    let mut link = fq(params, 1);
    let script = flow(0, 1_500, (ms(0), ms(50)), Duration::from_micros(100));
    let mut most = 0;
    link.run_watched(script, ms(50), |_, queue| most = most.max(queue.bytes()));
    assert!((13_500..=15_000).contains(&most), "{most}");
    assert!(link.with(Fate::Dropped).count() > 100);
}

/// Each queue has its own CoDel: the CoDel of a flow below its share never acts.
#[test]
fn codel_acts_only_on_the_standing_queue() {
    let whole = (ms(0), ms(3_000));
    let bulk = flow(0, 1_500, whole, Duration::from_micros(500));
    let modest = flow(1, 1_500, (us(130), ms(3_000)), Duration::from_micros(2_900));
    let mut link = fq(Params::default(), 1);
    link.run(in_order(bulk.chain(modest).collect()), ms(3_000));
    let drops = |connection| {
        let all = link.with(Fate::Dropped);
        all.filter(|event| event.connection == connection).count()
    };
    assert!(drops(0) > 30, "{}", drops(0));
    assert_eq!(drops(1), 0);
}

/// With ECN (the default) CoDel marks; packets are still dropped at the limit.
#[test]
fn ecn_marks() {
    let run = |ecn, limit| {
        let mut link = fq(
            Params {
                ecn,
                limit,
                ..Params::default()
            },
            1,
        );
        let script = flow(0, 1_500, (ms(0), ms(2_000)), Duration::from_micros(900));
        link.run(
            script.map(|arrival| Arrival {
                ecn: Ecn::Ect0,
                ..arrival
            }),
            ms(2_000),
        );
        [Fate::Marked, Fate::Dropped].map(|fate| link.with(fate).count())
    };
    assert!(matches!(run(true, Limit::Packets(1_000)), [(1..), 0]));
    assert!(matches!(run(false, Limit::Packets(1_000)), [0, (1..)]));
    assert!(matches!(run(true, Limit::Packets(10)), [_, (1..)]));
}

/// With two queues, sharing is random and depends only on the seed.
#[test]
fn queue_sharing_depends_on_the_seed() {
    let shares = |seed| {
        let params = Params {
            queues: QueueCount::new(2),
            ..Params::default()
        };
        let mut link = fq(params, seed);
        link.run(sparse_beside_bulk(), ms(500));
        let late = link.with(Fate::Sent).filter(|e| e.connection == 1);
        late.map(|event| event.sojourn).max() > Some(Duration::from_millis(4))
    };
    let together: Vec<_> = (0..40).filter(|&seed| shares(seed)).collect();
    // Half of the seeds, within four standard deviations.
    assert!((8..=32).contains(&together.len()), "{together:?}");
    assert!(together.iter().all(|&seed| shares(seed)));
}

/// A larger quantum lets a queue send more per turn.
#[test]
fn a_turn_sends_a_quantum() {
    let params = Params {
        quantum: Quantum::new(6_000),
        ..Params::default()
    };
    let whole = (ms(0), ms(100));
    let script = flow(0, 1_500, whole, Duration::from_micros(400)).chain(flow(
        1,
        1_500,
        whole,
        Duration::from_micros(400),
    ));
    let mut link = fq(params, 1);
    link.run(in_order(script.collect()), ms(100));
    let order: Vec<_> = link.with(Fate::Sent).map(|e| e.connection).collect();
    let runs: Vec<_> = order.chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
    assert!(
        runs[2..runs.len() - 1].iter().all(|&run| run == 4),
        "{runs:?}"
    );
}

/// Forty flows that each send a packet at intervals fill the link together. Each has just been
/// idle, and so is new. But a queue that has just become empty joins the old queues (RFC 8290
/// §4.2), so a flow with a permanent backlog has its turn among the 41. If the empty queue were
/// removed instead, the new queues would always precede the old ones.
#[test]
fn sparse_flows_do_not_starve_the_others() {
    let whole = (ms(0), ms(10_000));
    let bulk = flow(0, 1_500, whole, Duration::from_micros(900));
    let sparse = (1..=40_u32).flat_map(|connection| {
        let from = us(u64::from(connection) * 930);
        flow(
            connection,
            1_400,
            (from, ms(10_000)),
            Duration::from_micros(36_000),
        )
    });
    let mut link = fq(Params::default(), 1);
    link.run(in_order(bulk.chain(sparse).collect()), ms(10_000));
    let share = link.bytes_sent(0, ms(1_000), ms(10_000)) as f64 / (9_000.0 * 1_500.0);
    // A 41st of the turns, minus the partial turns at the edges.
    assert!(share > 0.024, "{share}");
}
