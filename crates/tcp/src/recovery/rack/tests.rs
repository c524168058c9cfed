use super::*;
use crate::scoreboard::{Again, Once};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn at(n: u64) -> Seq {
    Seq::first(0) + n
}
fn time(n: u64) -> Instant {
    Instant::from_millis(n)
}

const QUIET: Circumstances = Circumstances {
    recovering: false,
    many_sacked: false,
    srtt: ms(100),
};

/// Octets `from..to`, sent once at that time.
fn once(from: u64, to: u64, sent_ms: u64) -> Delivered {
    Delivered {
        once: Some(Once {
            first_sent_at: time(sent_ms),
            last_sent_at: time(sent_ms),
            last_end: at(to),
            lowest: at(from),
        }),
        highest: at(to),
        fresh: to - from,
        ..Delivered::NOTHING
    }
}

fn again(from: u64, to: u64, sent_ms: u64) -> Delivered {
    Delivered {
        again: Some(Again {
            sent_at: time(sent_ms),
            end: at(to),
        }),
        highest: at(to),
        fresh: to - from,
        ..Delivered::NOTHING
    }
}

fn rack() -> Rack {
    let mut rack = Rack::new(at(0));
    rack.on_delivered(
        time(40),
        &once(0, 10, 0),
        at(0),
        Duration::ZERO,
        None,
        Order::Transmission,
    );
    rack
}

/// §6.2 step 4.
#[test]
fn the_window_before_and_after_reordering_is_seen() {
    let mut rack = rack();
    assert_eq!(rack.reo_wnd(&QUIET), ms(10));
    let recovering = Circumstances {
        recovering: true,
        ..QUIET
    };
    let many_sacked = Circumstances {
        many_sacked: true,
        ..QUIET
    };
    assert_eq!(rack.reo_wnd(&recovering), Duration::ZERO);
    assert_eq!(rack.reo_wnd(&many_sacked), Duration::ZERO);
    let una = at(10);
    assert_eq!(
        rack.on_delivered(
            time(50),
            &once(20, 30, 10),
            una,
            Duration::ZERO,
            None,
            Order::Transmission
        ),
        None
    );
    assert_eq!(
        rack.on_delivered(
            time(51),
            &once(10, 20, 9),
            una,
            Duration::ZERO,
            None,
            Order::Transmission
        ),
        Some(20)
    );
    assert!(rack.reordering_seen);
    assert_eq!(rack.reo_wnd(&recovering), ms(10));
    assert_eq!(rack.reo_wnd(&many_sacked), ms(10));
}

/// §6.2 step 3.
#[test]
fn a_retransmission_shows_no_reordering() {
    let mut rack = rack();
    let una = at(10);
    rack.on_delivered(
        time(50),
        &once(20, 30, 10),
        una,
        Duration::ZERO,
        None,
        Order::Transmission,
    );
    rack.on_delivered(
        time(95),
        &again(10, 20, 55),
        una,
        Duration::ZERO,
        None,
        Order::Transmission,
    );
    assert!(!rack.reordering_seen);
}

/// §6.2 step 4: one step per round with duplicates, up to SRTT, and back after 16 recoveries.
#[test]
fn the_window_grows_with_duplicates_and_shrinks_again() {
    let mut rack = rack();
    rack.on_spurious();
    rack.on_duplicate(at(10), at(100));
    assert_eq!(rack.reo_wnd(&QUIET), ms(20));
    rack.on_duplicate(at(99), at(200));
    assert_eq!(rack.reo_wnd(&QUIET), ms(20), "still the same round");
    rack.on_duplicate(at(100), at(200));
    assert_eq!(rack.reo_wnd(&QUIET), ms(30));
    for _ in 0..15 {
        rack.on_recovered();
        assert_eq!(rack.reo_wnd(&QUIET), ms(30));
    }
    rack.on_recovered();
    assert_eq!(rack.reo_wnd(&QUIET), ms(10));
    for round in 2..40 {
        rack.on_duplicate(at(round * 100), at((round + 1) * 100));
    }
    assert_eq!(rack.reo_wnd(&QUIET), ms(100), "SRTT at most");
}

/// §6.2 step 2: a retransmission that may be the original yields no round-trip time.
#[test]
fn a_copy_acknowledged_too_soon_is_the_original() {
    let una = at(10);
    let latest = |rack: &Rack| rack.limit(&QUIET).map(|limit| limit.latest);
    let mut rack = rack();
    assert_eq!(latest(&rack), Some((time(0), at(10))));
    rack.on_delivered(
        time(100),
        &again(10, 20, 80),
        una,
        Duration::ZERO,
        None,
        Order::Transmission,
    );
    assert_eq!(latest(&rack), Some((time(0), at(10))));
    let echo = |echoed| Some(Echo { echoed, resent: 80 });
    rack.on_delivered(
        time(200),
        &again(10, 20, 80),
        una,
        Duration::ZERO,
        echo(79),
        Order::Transmission,
    );
    assert_eq!(latest(&rack), Some((time(0), at(10))));
    rack.on_delivered(
        time(200),
        &again(10, 20, 80),
        una,
        Duration::ZERO,
        echo(80),
        Order::Transmission,
    );
    assert_eq!(latest(&rack), Some((time(80), at(20))));
    assert_eq!(
        rack.limit(&QUIET).map(|limit| limit.age),
        Some(ms(120 + 10))
    );
    // A segment sent earlier is not the latest, even if it arrives later.
    rack.on_delivered(
        time(300),
        &once(0, 5, 70),
        una,
        Duration::ZERO,
        None,
        Order::Transmission,
    );
    assert_eq!(latest(&rack), Some((time(80), at(20))));
}

/// In the order of numbers, a segment above the retransmission gives RACK.rtt, though it was sent
/// before; above the number acknowledged it was reported by SACK, and processed before.
#[test]
fn the_highest_number_acknowledged_gives_the_round_trip_time_in_linux() {
    let delivered = Delivered {
        once: once(20, 30, 60).once,
        ..again(10, 20, 80)
    };
    let age = |order| {
        let mut rack = rack();
        rack.on_delivered(time(200), &delivered, at(10), ms(40), None, order);
        let limit = rack.limit(&QUIET).expect("data was delivered");
        assert_eq!(limit.latest, (time(80), at(20)));
        limit.age
    };
    assert_eq!(age(Order::Transmission), ms(120 + 10));
    assert_eq!(age(Order::Number(at(30))), ms(140 + 10));
    assert_eq!(age(Order::Number(at(20))), ms(120 + 10));
}
