//! Clocks that run for years: 64 bits of picoseconds last 213 days.

use anabranch_core::units::Duration;
use anabranch_gateway::{pool::Pool, queue::Queue, time::Instant};

use super::network::{Network, Wire};

const MS: Duration = Duration::from_millis(1);
const DAY: u64 = 86_400;

/// The deliveries of a run over four minutes, in which the session is replaced, a path dies and
/// returns, and a queue waits, with ends whose clocks begin at `offset`.
fn run(offset: Duration) -> Vec<(u16, u32, Instant)> {
    let wire = |delay: u64| {
        [Wire {
            delay: MS * delay,
            rate: 1.25e5,
            loss: 0.01,
            ..Wire::default()
        }; 2]
    };
    let mut network = Network::new(21, vec![wire(10), wire(30)], false);
    for end in [0, 1] {
        network.start_clock(end, offset);
    }
    network.flow(0, 1, MS * 5, MS * 240_000);
    network.flow(1, 2, MS * 25, MS * 240_000);
    for (time, is_dead) in [(60_000, true), (20_000, false), (165_000, false)] {
        network.run(MS * time);
        for wire in &mut network.wires[0] {
            wire.is_dead = is_dead;
        }
    }
    assert!(network.stats(0).sessions >= 2);
    let delivered = network.delivered.iter().flatten();
    let delivered: Vec<_> = delivered
        .map(|packet| (packet.flow, packet.number, packet.at))
        .collect();
    assert!(delivered.len() > 40_000, "{}", delivered.len());
    delivered
}

/// Nothing depends on the time of the clock, also while it passes 64 bits.
#[test]
fn a_clock_passes_213_days() {
    compare_clocks(&[0, 70, 130]);
}

#[test]
#[ignore = "many cases: make test-cases"]
fn a_clock_passes_213_days_in_many_cases() {
    compare_clocks(&[1, 119, 200]);
}

fn compare_clocks(seconds_before_end: &[u64]) {
    let first = run(Duration::from_secs(100 * DAY));
    for &before_end in seconds_before_end {
        // Reports have microseconds, rounded down.
        let last = Duration::from_micros(u64::MAX / 1_000_000);
        let offset = last.saturating_sub(Duration::from_secs(before_end));
        assert!(run(offset) == first, "{before_end} s before the end");
    }
}

#[test]
fn instants_of_years_are_exact() {
    let year = Instant::from_nanos(365 * DAY * 1_000_000_000);
    let [later, much_later] = [year + Duration::from_picos(1), year + Duration::MAX];
    assert!(year < later && later < much_later);
    assert_eq!(later.saturating_since(year), Duration::from_picos(1));
    assert_eq!(much_later.saturating_since(Instant::START), Duration::MAX);
    assert_eq!(year.saturating_since(later), Duration::ZERO);
    assert_eq!(later.as_nanos(), 365 * DAY * 1_000_000_000);
    assert_eq!(
        year.saturating_sub(Duration::MAX)
            .saturating_sub(Duration::MAX),
        Instant::START
    );
}

/// The discipline's clock has 64 bits: it begins again when no packet waits, and at last in any case.
#[test]
fn a_queue_outlives_its_clock() {
    let mut pool = Pool::default();
    let mut queue = Queue::new(1);
    let age = Duration::from_secs(1);
    let mut now = Instant::START;
    let mut pass = |queue: &mut Queue, now: Instant| {
        for _ in 0..10 {
            queue.push(1, vec![0; 100], now, &mut pool);
        }
        let mut taken = 0;
        while let Some((flow, packet, arrived)) = queue.pop(MS * 5, age, now + MS, &mut pool) {
            assert_eq!((flow, packet.len(), arrived), (1, 100, now));
            taken += 1;
        }
        assert_eq!(taken, 10);
    };
    for _ in 0..100 {
        pass(&mut queue, now);
        now = now + Duration::from_secs(10 * DAY);
    }
    // A packet that always waits: one is taken for each that is added.
    let mut pool = Pool::default();
    queue.push(1, vec![0; 100], now, &mut pool);
    let mut taken = 0;
    for _ in 0..1_000 {
        now = now + Duration::from_secs(DAY);
        queue.push(1, vec![0; 100], now, &mut pool);
        taken += u32::from(queue.pop(MS * 5, Duration::MAX, now, &mut pool).is_some());
        assert!(queue.len() <= 10, "{}", queue.len());
    }
    assert!(taken >= 980, "{taken}");
}
