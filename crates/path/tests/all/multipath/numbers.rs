//! The tunnel's numbers and clock wrap, and may advance far while nothing arrives: restorers and
//! the duplicate window continue.

use anabranch_core::{
    packet::{ConnectionId, PacketId},
    tunnel::Header,
    units::Instant,
};
use anabranch_path::multipath::restore::{
    AnyRestore, Arrived, Config, Init, Restore, adaptive, timed,
};

/// A packet: number in its flow, route, number on the route, and departure time in microseconds.
fn packet(number: u32, route: u8, route_number: u16, sent: u64) -> Arrived {
    Arrived {
        packet: PacketId(number),
        size: 1_000,
        connection: ConnectionId(0),
        tunnel: Header {
            route,
            number,
            route_number,
            sent: u32::try_from(sent % (1 << 32)).expect("modulo 2^32"),
            ..Header::default()
        },
        tcp: None,
    }
}

fn build(config: &Config) -> AnyRestore {
    config.build(&Init { routes: 2 })
}

struct Bench {
    restore: AnyRestore,
    released: Vec<PacketId>,
}

impl Bench {
    fn new(config: &Config) -> Self {
        Self {
            restore: build(config),
            released: Vec::new(),
        }
    }
    /// Delivers a packet `at` microseconds after the start; returns all packets released up to now.
    fn arrive(&mut self, at: u64, packet: Arrived) -> Vec<u32> {
        let now = Instant::from_nanos(at * 1_000);
        self.restore.on_timer(now, &mut self.released);
        self.restore.arrive(now, packet, &mut self.released);
        self.released.iter().map(|id| id.0).collect()
    }
}

fn adaptive() -> Config {
    Config::Adaptive(adaptive::Params::default())
}

/// The departure clock wraps after 71 minutes. Detects restorers that extend it from the last
/// departure alone: after a pause of more than half of that period, all packets would seem to have
/// left earlier, and every gap would be abandoned at once.
#[test]
fn order_is_restored_after_a_long_pause() {
    for minutes in [1, 30, 40, 50, 71, 72, 100, 107, 143, 1_000] {
        let mut bench = Bench::new(&adaptive());
        bench.arrive(0, packet(0, 0, 0, 0));
        bench.arrive(0, packet(1, 1, 0, 0));
        let later = minutes * 60_000_000;
        bench.arrive(later + 5_000, packet(2, 1, 1, later));
        bench.arrive(later + 5_002, packet(4, 0, 1, later + 2));
        let out = bench.arrive(later + 10_000, packet(3, 1, 2, later + 1));
        assert_eq!(out, [0, 1, 2, 3, 4], "{minutes} minutes");
    }
}

/// A route loses more than half of its 16-bit numbers at once. Detects restorers that take the
/// following packets for late ones: the route would seem unordered, and its next losses would be
/// waited for.
#[test]
fn a_route_may_lose_more_than_half_of_its_numbers_at_once() {
    for skipped in [10, 32_766, 32_767, 32_768, 40_000, 65_000] {
        let mut bench = Bench::new(&adaptive());
        bench.arrive(0, packet(0, 0, 0, 0));
        bench.arrive(0, packet(1, 1, 0, 0));
        for number in 2..12 {
            let at = 10_000 + u64::from(number) * 100;
            let own = skipped + u16::try_from(number).expect("small");
            bench.arrive(at, packet(number, 0, own, at));
        }
        // Number 12 is lost on the same route.
        let out = bench.arrive(20_000, packet(13, 0, skipped + 13, 20_000));
        assert_eq!(out.last(), Some(&13), "{skipped}");
    }
}

/// The flow's numbers approach 2^32 in two steps, because a step of more than 2^31 would go
/// backwards.
#[test]
fn numbers_of_flows_and_routes_wrap() {
    let mut bench = Bench::new(&Config::Timed(timed::Params::default()));
    let first = u32::MAX - 40;
    bench.arrive(0, packet(0x7fff_fff0, 0, u16::MAX - 21, 0));
    bench.arrive(1_000_000, packet(first, 0, u16::MAX - 20, 1_000_000));
    for step in 0..100_u32 {
        let at = 2_000_000 + u64::from(step) * 1_000;
        // Each two packets are swapped.
        let n = step ^ 1;
        let own = (u16::MAX - 19).wrapping_add(u16::try_from(n).expect("small"));
        bench.arrive(at, packet(first.wrapping_add(1 + n), 0, own, at));
    }
    let out: Vec<u32> = bench.released.iter().skip(2).map(|id| id.0).collect();
    let expected: Vec<u32> = (1..=100).map(|n| first.wrapping_add(n)).collect();
    assert_eq!(out, expected);
}
