//! Completion times of short flows on a path without loss, compared with a calculation by hand: the
//! handshake, the rounds of slow start, the transmission times of packets, and the pauses caused by
//! delayed acknowledgments.
//!
//! Each bound is also shown to distinguish the right system from a wrong one: an initial window of
//! three segments, or another delayed acknowledgment policy than the profile's.

use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

/// One-way delay, in seconds.
const DELAY: f64 = 0.050;
/// Bit/s: an access link fast enough that a round is a burst, and a bottleneck with an effect at
/// 1,000 packets.
const RATE: f64 = 20e6;
/// Octets of payload, and of the IP packet around them: 20 + 20 + 12 of headers (contract).
const MSS: u64 = 1448;
const PACKET: f64 = 1500.0 * 8.0;
/// A segment without payload: 52 octets.
const ACK: f64 = 52.0 * 8.0;
/// A SYN: 20 + 20 + 20 of options (MSS 4, SACK 2, timestamps 10, window scale 3, padded).
const SYN: f64 = 60.0 * 8.0;
/// The tolerance (the issue's).
const WITHIN: f64 = 0.05;

fn completion_time(packets: u64, (stack, cc): (&str, &str), transport: &str) -> f64 {
    let text = format!(
        r#"
        duration = "60 s"
        [link.path]
        between = ["A", "B"]
        rate = "20 Mbit/s"
        delay = "50 ms"
        queue = {{ kind = "drop-tail", limit = "2000 packets" }}
        [flow.main]
        from = "A"
        to = "B"
        stack = "{stack}"
        cc = "{cc}"
        transport = {{ mss = "{MSS} bytes"{transport} }}
        workload = {{ kind = "file", size = "{} bytes" }}
        "#,
        packets * MSS
    );
    let scenario = Scenario::parse(&text, "short.toml", &Extensions::default()).expect("valid");
    let resolved = scenario.resolve(None).expect("valid");
    let run = Simulation::<anabranch_core::body::Length>::new(&resolved)
        .run()
        .expect("it runs");
    let flow = &run.summary.flows["main"];
    assert_eq!(flow["retransmitted_packets"], 0, "the path loses nothing");
    flow["flow_completion_time_s"]
        .as_f64()
        .expect("the file arrives")
}

/// The receiver's acknowledgment policy, and the sender's growth in slow start.
#[derive(Clone, Copy)]
struct Habits {
    /// Segments of the first flight.
    initial: u64,
    /// Segments acknowledged individually at the beginning.
    quick: u64,
    /// Segments per acknowledgment after that.
    per_ack: u64,
    /// The longest delay of a single segment's acknowledgment.
    hold: f64,
    /// The growth per acknowledgment of two segments: two if all acknowledged data counts, else
    /// one.
    growth: u64,
}

/// RFC 5681 §3.1 with RFC 6928: ten, every second segment, 200 ms, one segment per acknowledgment.
const RFC: Habits = Habits {
    initial: 10,
    quick: 0,
    per_ack: 2,
    hold: 0.200,
    growth: 1,
};
/// Ten, 16 individually, then every second within 40 ms; all acknowledged data counts.
const LINUX: Habits = Habits {
    initial: 10,
    quick: 16,
    per_ack: 2,
    hold: 0.040,
    growth: 2,
};

/// The calculation, acknowledgment by acknowledgment. The bottleneck is the sender's link, so a
/// segment is transmitted when the preceding one has been and the window permits it.
fn by_hand(packets: u64, habits: Habits) -> f64 {
    let wire = PACKET / RATE;
    let back = ACK / RATE + DELAY;
    // The handshake: a SYN there, a SYN-ACK back; the third segment is sent right before the data.
    let mut free_at = 2.0 * (SYN / RATE + DELAY) + ACK / RATE;
    // Acknowledgments in flight: arrival time, and the number of segments that each covers.
    let mut acks = std::collections::VecDeque::new();
    let (mut window, mut sent, mut acked, mut arrived) = (habits.initial, 0_u64, 0_u64, 0_u64);
    let mut now = free_at;
    // The arrival time of a segment that waits for a second one.
    let mut waiting: Option<f64> = None;
    let mut last_arrival = 0.0;
    loop {
        while sent < packets && sent - acked < window {
            free_at = f64::max(free_at, now) + wire;
            let arrival = free_at + DELAY;
            sent += 1;
            arrived += 1;
            last_arrival = arrival;
            if let Some(since) = waiting.take() {
                if since + habits.hold < arrival {
                    // Its delay expired: it is acknowledged alone, and this segment waits next.
                    acks.push_back((since + habits.hold + back, 1));
                    waiting = Some(arrival);
                } else {
                    acks.push_back((arrival + back, 2));
                }
            } else if arrived <= habits.quick || habits.per_ack == 1 {
                acks.push_back((arrival + back, 1));
            } else {
                waiting = Some(arrival);
            }
        }
        if sent == packets {
            return last_arrival;
        }
        let (at, covers) = acks
            .pop_front()
            .or_else(|| waiting.take().map(|since| (since + habits.hold + back, 1)))
            .expect("something is outstanding");
        now = at;
        acked += covers;
        // Slow start throughout: there is no loss.
        window += covers.min(habits.growth);
    }
}

fn off_by(packets: u64, (stack, transport): (&str, &str), habits: Habits) -> f64 {
    let (found, hand) = (
        completion_time(packets, (stack, "reno"), transport),
        by_hand(packets, habits),
    );
    (found - hand).abs() / hand
}

/// Ten packets fit the initial window: a handshake, a one-way delay, and the transmission of ten
/// packets. This case needs no loop.
#[test]
fn ten_packets_take_a_round_trip_and_a_half() {
    let hand = 2.0 * (SYN / RATE + DELAY) + ACK / RATE + 10.0 * PACKET / RATE + DELAY;
    assert!((by_hand(10, RFC) - hand).abs() < 1e-9 && (by_hand(10, LINUX) - hand).abs() < 1e-9);
    for stack in [("rfc", "reno"), ("linux", "reno"), ("linux", "cubic")] {
        let found = completion_time(10, stack, "");
        assert!(
            (found - hand).abs() / hand < WITHIN,
            "{stack:?}: {found} for {hand}"
        );
        // An initial window of three segments takes at least another round trip.
        let wrong = completion_time(10, stack, ", initial_cwnd = 3");
        assert!(
            (wrong - hand).abs() / hand > WITHIN,
            "{stack:?}: {wrong} for {hand}"
        );
    }
}

/// A hundred packets: rounds of 10, 15, 22, … if every second segment is acknowledged and counts
/// as one; of 10, 20, 40, … if all acknowledged data counts. The loop above yields these rounds.
#[test]
fn a_hundred_packets_take_the_rounds_of_slow_start() {
    // The rounds without transmission times: each takes a round trip, the last half of one.
    let rounds = |factor: f64| {
        let (mut left, mut window, mut rounds) = (100.0, 10.0, 0.0);
        while left > 0.0 {
            left -= window;
            window *= factor;
            rounds += 1.0;
        }
        rounds
    };
    let roughly = |factor| 2.0 * DELAY + 2.0 * DELAY * (rounds(factor) - 1.0) + DELAY;
    assert!((by_hand(100, RFC) / roughly(1.5) - 1.0).abs() < 0.15);
    assert!((by_hand(100, LINUX) / roughly(2.0) - 1.0).abs() < 0.15);
}

#[test]
fn short_flows_take_the_calculated_time() {
    for packets in [10, 100, 1000] {
        // The unmodified stack also has HyStart, which may end slow start by design once the
        // bottleneck's queue grows.
        for (stack, habits, transport) in [
            (("rfc", "reno"), RFC, ""),
            (("linux", "reno"), LINUX, ""),
            (("linux", "cubic"), LINUX, ""),
            (("linux", "cubic"), LINUX, ", hystart = \"off\""),
        ] {
            let found = completion_time(packets, stack, transport);
            let hand = by_hand(packets, habits);
            let off = (found - hand).abs() / hand;
            assert!(
                off < WITHIN,
                "{packets} packets, {stack:?}: {found} s for {hand} s"
            );
        }
    }
}

/// Linux without its quick acknowledgments, and without its compensation for delayed
/// acknowledgments.
const ONE_PER_ACK_NONE_QUICK: &str =
    ", delayed_ack = { segments = 2, timeout = \"40 ms\" }, slow_start_limit = \"1 packet\"";

/// Each of these exceeds the tolerance; the right system does not.
#[test]
fn the_calculation_detects_wrong_systems() {
    let mut missed = Vec::new();
    for (packets, wrong, habits) in [
        (100, ("rfc", ", initial_cwnd = 3"), RFC),
        (100, ("rfc", ", delayed_ack = \"off\""), RFC),
        (100, ("rfc", ", slow_start_limit = \"unlimited\""), RFC),
        (1000, ("rfc", ", initial_cwnd = 3"), RFC),
        (100, ("linux", ", initial_cwnd = 3"), LINUX),
        (1000, ("linux", ", initial_cwnd = 3"), LINUX),
        (1000, ("linux", ONE_PER_ACK_NONE_QUICK), LINUX),
    ] {
        let off = off_by(packets, wrong, habits);
        if off <= WITHIN {
            missed.push((packets, wrong, off));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// The largest file that can be expressed: unsent data takes no memory.
#[test]
fn a_file_may_be_of_any_size() {
    for workload in [
        r#"{ kind = "file", size = "18446744073709551615 bytes" }"#,
        r#"{ kind = "request-response", response = "18446744073709551615 bytes" }"#,
    ] {
        let text = format!(
            r#"
            duration = "2 s"
            [link.path]
            between = ["A", "B"]
            rate = "20 Mbit/s"
            delay = "50 ms"
            queue = {{ kind = "drop-tail", limit = "100 packets" }}
            [flow.main]
            from = "A"
            to = "B"
            workload = {workload}
            "#
        );
        let scenario = Scenario::parse(&text, "large.toml", &Extensions::default());
        let resolved = scenario.expect("valid").resolve(None).expect("valid");
        let run = Simulation::<anabranch_core::body::Length>::new(&resolved)
            .run()
            .expect("it runs");
        let flow = &run.summary.flows["main"];
        let goodput = flow["goodput_mbit_s"].as_f64().expect("it sends");
        assert!((10.0..20.0).contains(&goodput), "{goodput}");
        assert!(flow["flow_completion_time_s"].is_null());
    }
}
