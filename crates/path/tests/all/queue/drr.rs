//! Deficit round robin on scripted arrivals: the paper's lemmas.

use crate::queue::aqm;

use anabranch_core::{
    packet::Ecn,
    rng::Stream,
    units::{Bytes, Instant, text::Limit},
};
use anabranch_path::queue::{
    Config, Discipline, QueueDiscipline,
    bounded::{Quantum, QueueCount, Queues},
    drr::Params,
};
use aqm::{Arrival, Fate, Link, a_packet_per_ms, build, ms, us};

fn drr(params: Params) -> Link<Discipline> {
    Link::new(build(&Config::Drr(params)), a_packet_per_ms(), 1)
}

fn roomy() -> Params {
    Params {
        limit: Limit::Unlimited,
        ..Params::default()
    }
}

fn arrival(at: Instant, connection: u32, size: u32) -> Arrival {
    Arrival {
        at,
        size,
        connection,
        ecn: Ecn::NotEct,
    }
}

/// Figure 2 of the paper: a quantum of 500. The first queue has packets of 200, 750 and 20, the
/// second 500 and 500, the third 200 and 400. The first sends 200 in its first turn and keeps 300;
/// with 500 more, 750 fit, then 20.
#[test]
fn a_large_packet_waits_and_the_deficit_is_kept() {
    let params = Params {
        quantum: Quantum::new(500),
        ..roomy()
    };
    let mut link = drr(params);
    let sizes: [&[u32]; 3] = [&[200, 750, 20], &[500, 500], &[200, 400]];
    // A packet of another connection is in transmission when they arrive.
    let script = std::iter::once(arrival(ms(0), 9, 1_500)).chain((0..).zip(sizes).flat_map(
        |(connection, sizes)| {
            sizes
                .iter()
                .map(move |&size| arrival(us(1), connection, size))
        },
    ));
    link.run(script, ms(10));
    let sent: Vec<_> = link
        .with(Fate::Sent)
        .skip(1)
        .map(|event| (event.connection, event.size))
        .collect();
    assert_eq!(
        sent,
        [
            (0, 200), // 300 left
            (1, 500),
            (2, 200), // 300 left
            (0, 750), // 50 left
            (0, 20),
            (1, 500),
            (2, 400),
        ]
    );
}

/// Lemma 2: a queue with a permanent backlog has sent m quanta after m turns, minus less than the
/// largest packet. Two such queues thus never differ by more than a quantum and two largest
/// packets, whatever their sizes. A round robin over packets differs by 14 to 1 here.
#[test]
fn shares_are_by_bytes_whatever_the_sizes() {
    for quantum in [100, 700, 1_500, 9_000] {
        let params = Params {
            quantum: Quantum::new(quantum),
            ..roomy()
        };
        let mut link = drr(params);
        let sizes = Stream::new(1, "sizes");
        // Always the largest, always the smallest, and random.
        let size = |connection: u32, n: u64| match connection {
            0 => 1_500,
            1 => 100,
            _ => 40 + sizes.at(n).bits() % 1_461,
        };
        let script = (0..20_000_u64).flat_map(|n| {
            (0..3).map(move |connection| arrival(us(1), connection, size(connection, n)))
        });
        let mut sent = [0_u64; 3];
        // Short enough that no queue becomes empty: the 100-byte packets are 2,000,000 bytes.
        link.run(script, ms(3_500));
        for event in link.with(Fate::Sent) {
            sent[event.connection as usize] += u64::from(event.size);
            let most = sent.iter().max().expect("three");
            let least = sent.iter().min().expect("three");
            assert!(most - least <= quantum + 2 * 1_500, "{quantum}: {sent:?}");
        }
        assert!(sent.iter().all(|&bytes| bytes > 1_500_000), "{sent:?}");
    }
}

/// A queue that becomes empty keeps no deficit (the paper's `DC_i = 0`).
#[test]
fn an_idle_queue_keeps_no_deficit() {
    let mut link = drr(roomy());
    // Connection 1 sends 100 bytes at intervals and so leaves 1,400 of its quantum each time;
    // connection 0 has a permanent backlog. At the end connection 1 sends much at once.
    let mut script = vec![arrival(ms(0), 0, 1_500); 300];
    script.extend((0..20).map(|n| {
        arrival(
            ms(5 * n) + anabranch_core::units::Duration::from_micros(300),
            1,
            100,
        )
    }));
    script.extend(vec![arrival(us(150_300), 1, 100); 200]);
    link.run(script, ms(200));
    let last: Vec<_> = link
        .with(Fate::Sent)
        .filter(|event| event.at > us(150_300))
        .map(|event| event.connection)
        .collect();
    let runs: Vec<_> = last.chunk_by(|a, b| a == b).collect();
    let first = runs.iter().find(|run| run[0] == 1).expect("its turn comes");
    assert_eq!(first.len(), 15, "a quantum of 1,500 and no more");
}

/// A connection above its share loses packets, and a connection at its share loses none, whichever
/// packet finds the queue full.
#[test]
fn the_longest_queue_loses() {
    let params = Params {
        limit: Limit::Packets(30),
        ..Params::default()
    };
    let mut link = drr(params);
    let mut script: Vec<_> = (0..4_000).map(|n| arrival(us(250 * n), 0, 1_500)).collect();
    script.extend((0..400).map(|n| arrival(us(2_500 * n + 40), 1, 1_500)));
    script.sort_by_key(|arrival| arrival.at);
    let mut most = 0;
    link.run_watched(script, ms(1_000), |_, queue| most = most.max(queue.len()));
    assert_eq!(most, 30);
    let lost = |connection| {
        let all = link.with(Fate::Dropped);
        all.filter(|event| event.connection == connection).count()
    };
    assert_eq!(lost(1), 0);
    assert!(lost(0) > 2_000, "{}", lost(0));
    // 400 of the 1,000 packets that can be sent are connection 1's, except packets that still wait.
    let share = link.bytes_sent(1, ms(0), ms(1_000));
    assert!(share >= 399 * 1_500, "{share}");
}

/// A limit in bytes holds, and packets are dropped from the head.
#[test]
fn a_limit_in_bytes_holds() {
    let params = Params {
        limit: Limit::Bytes(Bytes::new(6_000)),
        ..Params::default()
    };
    let mut link = drr(params);
    link.run(vec![arrival(us(1), 0, 1_500); 7], us(1));
    let dropped: Vec<_> = link.with(Fate::Dropped).map(|e| e.packet).collect();
    assert_eq!(dropped, [1, 2]);
    assert_eq!(link.queue.bytes(), 6_000);
}

/// Each connection has a queue, even with more connections than a hash would distinguish, and
/// queues of former connections are reused.
#[test]
fn each_connection_has_its_own_queue() {
    let mut link = drr(roomy());
    let once = |from: u32, at| (from..from + 3_000).map(move |n| arrival(at, n, 100));
    // A packet of another connection is in transmission when they arrive.
    let other = |at| std::iter::once(arrival(at, u32::MAX, 1_500));
    let script = (other(ms(0)).chain(once(0, us(1))).chain(once(0, us(2))))
        .chain(other(ms(1_000)))
        .chain(once(1_000_000, us(1_000_001)).chain(once(1_000_000, us(1_000_002))));
    link.run(script, ms(2_000));
    let sent: Vec<_> = link
        .with(Fate::Sent)
        .map(|event| event.connection)
        .filter(|&connection| connection != u32::MAX)
        .collect();
    // Two packets of a connection fit its quantum, so they are sent together in its turn.
    let pairs: Vec<_> = sent.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let expected: Vec<_> = (0..3_000)
        .chain(1_000_000..1_003_000)
        .map(|n| (n, n))
        .collect();
    let differs = pairs.iter().zip(&expected).find(|(a, b)| a != b);
    assert_eq!((pairs.len(), differs), (expected.len(), None));
}

#[test]
fn connections_may_share_hashed_queues() {
    let alternations = |queues| {
        let mut link = drr(Params { queues, ..roomy() });
        let script = (0..2_u32).flat_map(|c| vec![arrival(us(1), c, 1_500); 20]);
        link.run(script, ms(100));
        let sent: Vec<_> = link.with(Fate::Sent).map(|e| e.connection).collect();
        sent.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    assert_eq!(alternations(Queues::Hashed(QueueCount::new(1))), 1);
    assert!(alternations(Queues::PerConnection) > 35);
    assert!(alternations(Queues::Hashed(QueueCount::new(65_536))) > 35);
}
