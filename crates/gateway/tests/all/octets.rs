//! The octets of datagrams: `docs/bench-gateway.md` has the sums.

use anabranch_core::units::Duration;
use anabranch_gateway::wire::{HEADER, INNER, OVERHEAD, TAG};

use super::network::{Network, Wire};

const MS: Duration = Duration::from_millis(1);
/// IPv4 and UDP.
const BELOW: usize = 28;
/// IPv4, TCP and its timestamps.
const TCP: usize = 20 + 20 + 12;

/// Lengths of the recorded datagrams from the first end.
fn lengths(network: &Network) -> Vec<usize> {
    let forward = network.recorded.iter().filter(|(to, _, _)| *to == 1);
    forward.map(|(_, _, octets)| octets.len()).collect()
}

#[test]
fn a_full_segment_has_1380_of_1500_octets() {
    assert_eq!((HEADER, INNER, TAG, OVERHEAD), (16, 8, 16, 40));
    let mut network = Network::new(31, vec![[Wire::default(); 2]; 2], false);
    network.run(MS * 5_000);
    let mtu = network.tunnel(0).inner_mtu();
    assert_eq!((mtu, mtu - TCP), (1_500 - BELOW - OVERHEAD, 1_380));
}

/// Nothing is padded, in particular not to full packets.
#[test]
fn a_packet_of_any_size_has_40_octets_more() {
    for size in [32, 100, 777, 1_279, 1_431, 1_432] {
        let mut network = Network::new(32, vec![[Wire::default(); 2]], false);
        network.run(MS * 5_000);
        network.recorded.clear();
        network.size = size;
        network.flow(0, 1, MS * 10, MS * 1_000);
        network.run(MS * 1_500);
        let count = lengths(&network)
            .into_iter()
            .filter(|&length| length == size + OVERHEAD)
            .count();
        assert!(count >= 100, "{size}: {count}");
        assert_eq!(network.check_once(1), 100);
    }
}

/// Under load, reports, probes and handshakes take less than a two-hundredth of a path.
#[test]
fn almost_all_octets_of_a_busy_path_are_of_packets() {
    let mut network = Network::new(33, vec![[Wire::default(); 2]; 2], false);
    network.run(MS * 5_000);
    network.size = 1_432;
    // One and a fifth of the rate of both paths.
    network.flow(0, 1, Duration::from_micros(48), MS * 6_000);
    network.run(MS * 2_000);
    network.recorded.clear();
    network.run(MS * 3_000);
    let of_packets = network.size + OVERHEAD;
    let (mut packets, mut others) = (0, 0);
    for length in lengths(&network) {
        if length == of_packets {
            packets += length + BELOW;
        } else {
            others += length + BELOW;
        }
    }
    let share = others as f64 / (packets + others) as f64;
    println!("{share:.4} of {} octets", packets + others);
    assert!(share < 0.005, "{share}");
    assert!(packets > 60_000_000, "{packets}");
}
