//! Attacks on handshakes by a sender that records and replays datagrams but has no key.

use super::network::{End, Network, Wire};
use anabranch_core::units::Duration;
use anabranch_gateway::wire::INITIATION;

const MS: Duration = Duration::from_millis(1);

/// Paths with this one-way delay.
fn wires(delay: Duration) -> Vec<[Wire; 2]> {
    let wire = Wire {
        delay,
        ..Wire::default()
    };
    vec![[wire; 2]; 2]
}

/// The recorded initiations towards an end, each once.
fn initiations(network: &Network, to: End) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for (end, _, octets) in &network.recorded {
        let is_same = |other: &Vec<u8>| other[8..40] == octets[8..40];
        if *end == to && octets[0] == 1 && !found.iter().any(is_same) {
            found.push(octets.clone());
        }
    }
    found
}

/// Seven recorded initiations are replayed while the keys are replaced.
#[test]
fn replayed_initiations_do_not_end_a_tunnel() {
    for (seed, delay, per_s) in [(1, MS * 10, 300), (2, MS * 300, 15), (3, MS * 300, 2_000)] {
        let mut network = Network::new(seed, wires(delay), false);
        for _ in 0..7 {
            network.run(MS * 3_000);
            network.restart(0);
        }
        network.run(MS * 3_000);
        let recorded = initiations(&network, 1);
        assert!(recorded.len() >= 7, "{}", recorded.len());
        let since = network.now;
        network.flow(0, 1, MS * 50, MS * 156_000);
        network.flow(1, 2, MS * 50, MS * 156_000);
        let sessions = network.stats(0).sessions;
        network.run(MS * 110_000);
        let interval = Duration::from_secs_f64(1.0 / f64::from(per_s));
        for number in 0..per_s * 30 {
            let at = usize::try_from(number).expect("small") % 7;
            network.inject(1, 0, recorded[at].clone());
            network.run(interval);
        }
        network.run(MS * 15_000);
        for end in [0, 1] {
            let gap = network.gap(end, since);
            let ms = gap.as_millis_f64();
            assert!(gap <= MS * 1_000, "{per_s} a second, end {end}: {ms} ms");
        }
        assert!(network.stats(0).sessions > sessions, "no new session");
        assert_eq!(network.stats(1).counters.peer_restarts, 7);
    }
}

/// A clock without a battery begins anew at each start. Nothing is stored at either end.
#[test]
fn an_end_whose_clock_is_behind_returns_within_a_second() {
    for (seed, begins) in [(4, 0), (5, 1)] {
        let mut network = Network::new(seed, wires(MS * 50), begins == 1);
        network.flow(0, 1, MS * 10, MS * 20_000);
        network.flow(1, 2, MS * 10, MS * 20_000);
        for epoch in [0, 0, 1 << 50] {
            network.run(MS * 3_000);
            network.epochs[begins] = epoch;
            network.restart(begins);
            let since = network.now;
            network.run(MS * 2_000);
            for end in [0, 1] {
                let gap = network.gap(end, since);
                assert!(gap <= MS * 1_000, "end {end}: {} ms", gap.as_millis_f64());
            }
        }
        assert_eq!(network.stats(1 - begins).counters.peer_restarts, 3);
        assert!(begins == 1 || network.stats(1).counters.stale_initiations > 0);
    }
}

/// The same while an attacker replays all earlier initiations.
#[test]
fn replayed_initiations_do_not_keep_a_restarted_end_out() {
    let mut network = Network::new(6, wires(MS * 50), false);
    for _ in 0..7 {
        network.run(MS * 3_000);
        network.restart(0);
    }
    network.run(MS * 3_000);
    let recorded = initiations(&network, 1);
    for end in [0, 1] {
        network.epochs[0] = 0;
        network.restart(end);
        let since = network.now;
        network.flow(0, 1, MS * 10, MS * 2_000);
        for number in 0..600 {
            network.inject(1, 0, recorded[number % recorded.len()].clone());
            network.run(Duration::from_secs_f64(1.0 / 300.0));
        }
        let gap = network.gap(1, since);
        assert!(gap <= MS * 1_000, "end {end}: {} ms", gap.as_millis_f64());
    }
}

#[test]
fn an_answer_is_shorter_than_an_initiation() {
    let mut network = Network::new(7, wires(MS * 10), false);
    network.run(MS * 2_000);
    network.restart(0);
    network.run(MS * 2_000);
    for initiation in initiations(&network, 1).into_iter().cycle().take(500) {
        let before = network.datagrams[1].values().sum::<u64>();
        network.inject(1, 0, initiation);
        network.run(Duration::from_nanos(1));
        let after = network.datagrams[1].values().sum::<u64>();
        assert!(after <= before + 1, "{} answers", after - before);
    }
    let answers = network.recorded.iter();
    let answers = answers.filter(|(to, _, octets)| *to == 0 && octets[0] != 4);
    let mut kinds = [0; 6];
    for (_, _, octets) in answers {
        kinds[usize::from(octets[0])] += 1;
        assert!(octets.len() <= INITIATION, "type {}", octets[0]);
    }
    assert!(
        [2, 3, 5].iter().all(|&kind: &usize| kinds[kind] > 0),
        "{kinds:?}"
    );
}
