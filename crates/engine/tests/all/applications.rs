//! Applications over TCP without a permanent backlog: paced writers, and clients that send requests
//! and wait. Times are compared with a calculation by hand.

use anabranch_core::{body::Length, packet::Direction, units::Instant};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// Runs one flow of profile `rfc` over 10 Mbit/s and a one-way delay of 20 ms.
fn run(top: &str, link: &str, flow: &str) -> Finished {
    let text = format!(
        r#"
        {top}
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        {link}
        [flow.main]
        from = "A"
        to = "B"
        stack = "rfc"
        cc = "reno"
        {flow}
        "#
    );
    let scenario = Scenario::parse(&text, "applications.toml", &Extensions::default());
    let resolved = scenario
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .packet_log(true)
        .run()
        .expect("no hosts")
}

fn exchanges(run: &Finished, name: &str) -> f64 {
    let figures = &run.summary.flows["main"]["exchanges"];
    figures[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {figures}"))
}

fn figure(run: &Finished, name: &str) -> f64 {
    let figures = &run.summary.flows["main"];
    figures[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {figures}"))
}

fn count(run: &Finished, name: &str) -> u64 {
    run.summary.flows["main"][name].as_u64().expect("a count")
}

fn completed(run: &Finished) -> u64 {
    run.summary.flows["main"]["exchanges"]["completed"]
        .as_u64()
        .expect("a count")
}

/// Milliseconds on the wire: payload and 52 bytes of headers (IPv4 20, TCP 20, timestamps 12).
fn wire(payload: f64) -> f64 {
    (payload + 52.0) * 8.0 / 10e6 * 1e3
}

/// A response time is a round trip plus the transmission times of both packets. Detects a client
/// that sends its request before the previous response, a server that waits for a delayed
/// acknowledgment, and a response time that includes the pause.
#[test]
fn response_times_equal_the_calculation() {
    let by_hand = 40.0 + wire(100.0) + wire(1000.0);
    for think in [0.0, 7.0, 300.0] {
        let flow = format!(
            "workload = {{ kind = \"request-response\", request = \"100 bytes\", response = \"1 kB\", think = \"{think} ms\" }}"
        );
        let run = run("duration = \"20 s\"", "", &flow);
        let p50 = exchanges(&run, "p50_response_time_ms");
        assert!((p50 - by_hand).abs() < 1e-6, "{p50}, by hand {by_hand}");
        // The first request follows the last packet of the handshake, and others may follow an
        // acknowledgment that could not wait for the next request: one such packet's transmission
        // time at most.
        let mean = exchanges(&run, "mean_response_time_ms");
        let worst = exchanges(&run, "p99_response_time_ms");
        assert!(
            mean >= by_hand - 1e-6 && worst <= by_hand + wire(0.0) + 1e-6,
            "{mean}, {worst}"
        );
        // The handshake takes a round trip; exchanges follow each other.
        let cycles = (20_000.0 - 40.0 - 2.0 * wire(8.0)) / (by_hand + think);
        let completed = exchanges(&run, "completed");
        assert!(
            (completed - cycles).abs() <= 1.5,
            "{completed}, by hand {cycles}"
        );
        assert!((0.0..=1.0).contains(&(exchanges(&run, "started") - completed)));
        assert_eq!(count(&run, "delivered_bytes"), 1000 * self::completed(&run));
        assert!(run.summary.flows["main"]["flow_completion_time_s"].is_null());
    }
}

/// netperf's TCP_RR: the bare name.
#[test]
fn the_defaults_are_one_byte_in_each_direction() {
    let run = run("duration = \"10 s\"", "", "workload = \"request-response\"");
    let by_hand = 40.0 + 2.0 * wire(1.0);
    assert!((exchanges(&run, "p50_response_time_ms") - by_hand).abs() < 1e-6);
}

/// 100 kB are 70 segments. With 10 in the first flight and at most twice as many per round trip,
/// they need at least three flights, the first of which the request starts.
#[test]
fn long_responses_take_several_round_trips() {
    let flow = "workload = { kind = \"request-response\", request = \"1 kB\", response = \"100 kB\", think = \"2 s\" }";
    let run = run("duration = \"10 s\"", "", flow);
    let first = exchanges(&run, "p99_response_time_ms");
    assert!(first > 120.0, "{first}");
    assert!(figure(&run, "mean_srtt_ms") >= 40.0);
    assert_eq!(count(&run, "retransmitted_packets"), 0);
}

/// The client at `to` opens the connection. When it stops, both ends close, and no event is left
/// after TIME-WAIT, four minutes.
#[test]
fn the_client_opens_and_closes() {
    let flow = "stop = \"5 s\"\nworkload = { kind = \"request-response\", response = \"30 kB\" }";
    let run = run("duration = \"300 s\"", "", flow);
    let log = run.network.probe().log().expect("it was asked for");
    let first = log.rows().min_by_key(|row| row.sent).expect("packets");
    assert_eq!(first.direction, Direction::Reverse);
    let completed = exchanges(&run, "completed");
    assert!(completed > 20.0);
    // Both have closed: the first to close is in TIME-WAIT, which it would not be if the
    // other had not closed.
    let shorter = self::run("duration = \"200 s\"", "", flow);
    assert_ne!(shorter.network.next_event(), Instant::NEVER);
    let goodput = figure(&run, "goodput_mbit_s");
    // In the five seconds: whole responses, and perhaps a part of the next.
    let whole = completed * 30_000.0 * 8.0 / 5.0 / 1e6;
    assert!(goodput >= whole - 1e-9 && goodput < whole + 30_000.0 * 8.0 / 5.0 / 1e6);
    assert_eq!(run.network.packets_in_flight(), 0);
    assert_eq!(run.network.next_event(), Instant::NEVER);
}

/// Lost requests and lost responses are retransmitted; none is skipped, and each waits for the
/// preceding one.
#[test]
fn losses_delay_exchanges_but_skip_none() {
    let flow =
        "workload = { kind = \"request-response\", request = \"3 kB\", response = \"20 kB\" }";
    let impair = "impair = [{ kind = \"bernoulli-loss\", rate = 0.02 }]";
    let lossy = run("duration = \"100 s\"", impair, flow);
    let clean = run("duration = \"100 s\"", "", flow);
    assert!(figure(&lossy, "retransmitted_packets") > 50.0);
    let (completed, started) = (exchanges(&lossy, "completed"), exchanges(&lossy, "started"));
    assert!(started - completed <= 1.0 && completed > 100.0);
    assert_eq!(
        count(&lossy, "delivered_bytes") / 20_000,
        self::completed(&lossy)
    );
    let mean = |run| exchanges(run, "mean_response_time_ms");
    assert!(mean(&lossy) > 1.2 * mean(&clean));
    let log = lossy.network.probe().log().expect("it was asked for");
    assert!(
        !log.windows().is_empty(),
        "the server's reductions are noted"
    );
}

/// Exchanges are measured after `warmup`, like all figures.
#[test]
fn exchanges_before_the_warmup_do_not_count() {
    let flow = "workload = \"request-response\"";
    let whole = run("duration = \"10 s\"", "", flow);
    let half = run("duration = \"10 s\"\nwarmup = \"5 s\"", "", flow);
    let share = exchanges(&half, "completed") / exchanges(&whole, "completed");
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

/// An application that writes less than the network takes determines the rate, not the window.
/// Detects a writer that writes all data at once, and one whose clock drifts.
#[test]
fn a_paced_writer_determines_the_rate() {
    // 500 bytes every 2 ms.
    let flow = "workload = { kind = \"paced\", rate = \"2 Mbit/s\", payload = \"500 bytes\" }";
    let run = run("duration = \"10 s\"", "", flow);
    // Writing begins at the end of the handshake, after a round trip; a write arrives 20 ms and its
    // transmission time later.
    let begun = 40.0 + 2.0 * wire(8.0);
    let writes = (10_000.0 - begun - 20.0 - wire(500.0)) / 2.0;
    let delivered = figure(&run, "delivered_bytes") / 500.0;
    assert!(
        (delivered - writes.floor() - 1.0).abs() <= 1.0,
        "{delivered}, by hand {writes}"
    );
    let log = run.network.probe().log().expect("it was asked for");
    let mut written = 0;
    for row in log.rows().filter(|row| row.payload > 0) {
        written += u64::from(row.payload);
        let since = row.sent.as_secs_f64() * 1e3 - begun;
        let most = 500.0 * (since / 2.0 + 1.0) + 1e-3;
        assert!(
            written as f64 <= most,
            "{written} bytes have left {since} ms after the first"
        );
    }
    assert_eq!(count(&run, "retransmitted_packets"), 0);
    assert_eq!(run.summary.links["path"]["forward"]["dropped_packets"], 0);
    // The queue stays empty, so the round trip is the path's plus the transmission times of two
    // packets (up to a delayed acknowledgment: every second segment, 2 ms later).
    let srtt = figure(&run, "mean_srtt_ms");
    assert!((40.4..42.6).contains(&srtt), "{srtt}");
}

/// A writer faster than the network behaves like a bulk transfer: its data waits.
#[test]
fn a_writer_faster_than_the_network_is_bulk() {
    let link = "queue = { kind = \"drop-tail\", limit = \"40 packets\" }";
    let paced = run(
        "duration = \"30 s\"",
        link,
        "workload = { kind = \"paced\", rate = \"20 Mbit/s\" }",
    );
    let bulk = run("duration = \"30 s\"", link, "");
    let ratio = figure(&paced, "goodput_mbit_s") / figure(&bulk, "goodput_mbit_s");
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    assert!(figure(&paced, "fast_recoveries") > 0.0);
    // By default, `payload` is a full segment: no short segment is sent.
    let log = paced.network.probe().log().expect("it was asked for");
    assert!(
        log.rows()
            .filter(|row| row.payload > 0)
            .all(|row| row.size == 1500)
    );
}

/// At `stop` the application closes; data that it has written still arrives. No event is left after
/// TIME-WAIT, four minutes.
#[test]
fn a_stopped_paced_writer_closes_the_connection() {
    let flow = "stop = \"2 s\"\nworkload = { kind = \"paced\", rate = \"8 Mbit/s\" }";
    let run = run("duration = \"300 s\"", "", flow);
    let log = run.network.probe().log().expect("it was asked for");
    let last = log
        .rows()
        .filter(|row| row.payload > 0)
        .last()
        .expect("data");
    assert!(
        (1.9..2.1).contains(&last.sent.as_secs_f64()),
        "{:?}",
        last.sent
    );
    assert_eq!(run.network.packets_in_flight(), 0);
    assert_eq!(run.network.next_event(), Instant::NEVER);
}

/// 1 kB, 200 bytes and 400 bytes at 800 kbit/s: 10, 2 and 4 ms to the next write.
#[test]
fn paced_writes_of_several_sizes_keep_the_rate() {
    let flow = "workload = { kind = \"paced\", rate = \"800 kbit/s\", writes = [\"1 kB\", \"200 bytes\", \"400 bytes\"] }";
    let run = run("duration = \"2 s\"", "", flow);
    let log = run.network.probe().log().expect("asked for");
    let rows: Vec<_> = log
        .rows()
        .filter(|row| row.direction == Direction::Forward && row.payload > 0)
        .collect();
    let payloads: Vec<u32> = rows.iter().take(7).map(|row| row.payload).collect();
    assert_eq!(payloads, [1_000, 200, 400, 1_000, 200, 400, 1_000]);
    let first = rows[0].sent;
    let sent: Vec<f64> = rows
        .iter()
        .take(7)
        .map(|row| (row.sent - first).as_millis_f64())
        .collect();
    assert_eq!(sent, [0.0, 10.0, 12.0, 16.0, 26.0, 28.0, 32.0]);
}
