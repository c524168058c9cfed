//! The path MTU, with ICMP blocked.

use super::{
    network::{Network, Wire, packet},
    tunnel::two,
};
use anabranch_core::units::Duration;
use anabranch_gateway::{path::Mtu, time::Instant, tunnel::Refused};

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_path_mtu_is_found_within_three_seconds() {
    for mtu in [1_200, 1_280, 1_344, 1_400, 1_452, 1_472] {
        let small = Wire {
            mtu,
            ..Wire::default()
        };
        let mut network = Network::new(9, vec![[small; 2], [Wire::default(); 2]], false);
        network.run(MS * 3_000);
        for end in [0, 1] {
            let found = network.stats(end).paths[0].mtu;
            assert!(found <= mtu && found + 8 >= mtu, "{found} of {mtu}");
            assert_eq!(network.stats(end).paths[1].mtu, 1_472);
        }
    }
}

#[test]
fn packets_that_are_too_large_are_refused_with_the_mtu() {
    let mut network = Network::new(16, two(), false);
    network.run(MS * 3_000);
    let now = network.now;
    let tunnel = network.tunnel(0);
    assert_eq!(tunnel.inner_mtu(), 1_472 - 40);
    assert_eq!(tunnel.handle_inner(packet(0, 1, 0, 1_432), now), Ok(()));
    assert_eq!(
        tunnel.handle_inner(packet(0, 1, 1, 1_433), now),
        Err(Refused::TooBig(1_432))
    );
    assert_eq!(tunnel.handle_inner(vec![0; 30], now), Err(Refused::NotIp));
}

#[test]
fn a_small_path_mtu_affects_only_its_path() {
    let small = Wire {
        mtu: 1_300,
        delay: MS * 5,
        ..Wire::default()
    };
    let mut network = Network::new(17, vec![[small; 2], [Wire::default(); 2]], false);
    network.run(MS * 3_000);
    // IPv6 needs 1,280 octets.
    assert_eq!(network.tunnel(0).inner_mtu(), 1_472 - 40);
    network.size = 1_400;
    network.flow(0, 1, MS * 5, MS * 2_000);
    network.run(MS * 3_000);
    assert_eq!((network.check_once(1), network.refused), (400, 0));
}

/// A line with PPPoE (1,492) or IPv6 outside beside one of 1,500 octets.
#[test]
fn full_segments_use_paths_of_different_mtus() {
    let [small, large] = [1_452, 1_472].map(|mtu| Wire {
        mtu,
        rate: 1e6,
        ..Wire::default()
    });
    let mut network = Network::new(21, vec![[small; 2], [large; 2]], false);
    network.run(MS * 3_000);
    let found = network.stats(0).paths[0].mtu;
    assert_eq!(network.tunnel(0).inner_mtu(), (found - 40) & !1);
    network.size = network.tunnel(0).inner_mtu();
    // 2.3 MB/s.
    for flow in 0..8 {
        network.flow(0, flow, MS * 5, MS * 4_000);
    }
    network.run(MS * 5_000);
    let carried = network.check_once(1) * network.size;
    assert!(carried > 6_500_000, "{carried} octets in 4 s");
    assert_eq!(network.refused, 0);
    // A path that is silent no longer counts.
    network.wires[0]
        .iter_mut()
        .for_each(|wire| wire.is_dead = true);
    network.run(MS * 3_000);
    assert_eq!(network.tunnel(0).inner_mtu(), 1_472 - 40);
}

/// A full queue drops several packets in a row. Packets of the present size are sent until probes
/// of it are lost, too.
#[test]
fn consecutive_losses_do_not_lower_the_path_mtu() {
    let wait = Duration::from_millis(50);
    let mut now = Instant::START;
    let mut mtu = Mtu::default();
    let probe = |mtu: &mut Mtu, number: u64, now: Instant| {
        let size = mtu.probe(now).expect("a probe is due");
        mtu.on_probe(number, size, now, wait);
        size
    };
    let size = probe(&mut mtu, 0, now);
    mtu.on_arrived(0, size, now);
    assert_eq!(mtu.size(), 1_472);
    // A later packet of this size arrived.
    mtu.on_arrived(30, 1_472, now);
    for number in 20..30 {
        mtu.on_lost(number, 1_472, now);
    }
    assert_eq!((mtu.size(), mtu.probe(now)), (1_472, None));
    // None arrived later: a probe arrives, and then none does.
    for (is_black_hole, first) in [(false, 100), (true, 200)] {
        for number in first..first + 20 {
            mtu.on_lost(number, 1_472, now);
        }
        for number in first + 20..first + 23 {
            assert_eq!(probe(&mut mtu, number, now), 1_472);
            if !is_black_hole {
                mtu.on_arrived(number, 1_472, now);
                break;
            }
            assert_eq!(mtu.size(), 1_472);
            now = now + wait;
            mtu.advance(now);
        }
        assert_eq!(mtu.size(), if is_black_hole { 1_200 } else { 1_472 });
    }
}

/// One of two parallel links has a smaller MTU: every second large packet is lost.
#[test]
fn a_shrunk_mtu_is_noticed_although_some_large_packets_arrive() {
    let wait = Duration::from_millis(50);
    // Whether probes arrive, and the number of probes of the present size until the check ends.
    for (arrives, probes) in [(true, 1), (false, 6)] {
        let mut now = Instant::START;
        let mut mtu = Mtu::default();
        mtu.on_probe(0, 1_472, now, wait);
        mtu.on_arrived(0, 1_472, now);
        let mut seen = 0;
        for number in (2..).step_by(2) {
            now = now + MS * 10;
            mtu.advance(now);
            if mtu.size() < 1_472 || seen == 1 && arrives {
                break;
            }
            if mtu.probe(now).is_some() {
                mtu.on_probe(10_000 + seen, 1_472, now, wait);
                seen += 1;
                if arrives {
                    mtu.on_arrived(10_000, 1_472, now);
                }
            }
            mtu.on_arrived(number, 1_472, now);
            mtu.on_lost(number - 1, 1_472, now);
            assert!(mtu.is_complete(), "packets of this size are still sent");
        }
        assert_eq!(seen, probes);
        assert_eq!(mtu.size(), if arrives { 1_472 } else { 1_200 });
        assert!(now.saturating_since(Instant::START) < MS * 600);
        // The next check begins no earlier than 5 s later.
        for number in (20_000..20_100).step_by(2) {
            mtu.on_arrived(number, mtu.size(), now);
            mtu.on_lost(number - 1, mtu.size(), now);
        }
        assert_eq!(mtu.probe(now), (!arrives).then_some(1_472));
    }
}

/// A path that carries no large packets for the time being must not lose the first ones later.
#[test]
fn a_shrunk_mtu_is_noticed_without_traffic() {
    let mut network = Network::new(19, vec![[Wire::default(); 2]], false);
    network.run(MS * 3_000);
    for wire in &mut network.wires[0] {
        wire.mtu = 1_300;
    }
    network.run(MS * 33_000);
    for end in [0, 1] {
        let found = network.stats(end).paths[0].mtu;
        assert!((1_292..=1_300).contains(&found), "{found}");
    }
}

#[test]
fn a_path_whose_mtu_shrinks_recovers() {
    let mut network = Network::new(18, vec![[Wire::default(); 2]], false);
    network.run(MS * 3_000);
    network.size = 1_400;
    network.flow(0, 1, MS * 5, MS * 3_000);
    network.run(MS * 500);
    for wire in &mut network.wires[0] {
        wire.mtu = 1_300;
    }
    network.run(MS * 2_600);
    let found = network.stats(0).paths[0].mtu;
    assert!((1_292..=1_300).contains(&found), "{found}");
}
