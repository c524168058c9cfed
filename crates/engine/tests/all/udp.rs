//! UDP flows: exact rates, every packet accounted for, no congestion response, and results
//! independent of folding.

use crate::support::logged;

use std::fmt::Write;

use crate::support::{Shape, resolve, text};
use anabranch_core::{
    body::{Length, Octets},
    packet::{Direction, FlowId},
    units::{Duration, Instant},
};
use anabranch_engine::record::Tapping;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::Extensions;
use anabranch_wire::{self as wire, Protocol};
use logged::{figure, logged, rows};

/// A path of 10 Mbit/s and 10 ms with a queue of `limit`, and UDP over it.
fn path(top: &str, limit: &str, workload: &str, more: &str) -> Finished {
    let text = format!(
        r#"
        {top}
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        queue = {{ kind = "drop-tail", limit = "{limit}" }}
        [flow.video]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = {{ kind = "paced", {workload} }}
        {more}
        "#
    );
    logged(&text, &Extensions::default())
}

fn count(run: &Finished, flow: &str, name: &str) -> u64 {
    run.summary.flows[flow][name].as_u64().expect("a count")
}

/// 1,000 bytes at 4 Mbit/s are sent every 2 ms; a packet has 28 bytes more, and takes 0.8224 ms for
/// transmission and 10 ms for propagation. Detects a rate in IP bytes, headers of another size, and
/// a clock that drifts.
#[test]
fn an_unloaded_path_delivers_every_packet_on_time() {
    let run = path(
        "duration = \"9999 ms\"",
        "10 packets",
        "rate = \"4 Mbit/s\", payload = \"1000 bytes\"",
        "",
    );
    let rows = rows(&run);
    assert_eq!(
        rows.len(),
        5000,
        "one at 0 ms, one at 2 ms, … one at 9,998 ms"
    );
    for (number, row) in (0..).zip(&rows) {
        assert_eq!(row.sent, Instant::START + Duration::from_millis(2 * number));
        assert_eq!(
            (u64::from(row.index), row.size, row.payload),
            (number, 1028, 1000)
        );
        let due = row.sent + Duration::from_nanos(10_822_400);
        assert_eq!(row.received, (due <= run.network.end()).then_some(due));
        assert!(row.lost.is_none() && !row.retransmission);
        assert_eq!(row.sequence, 1000 * number);
    }
    // 2 n + 10.8224 <= 9999 holds for 4,995 of them.
    assert_eq!(count(&run, "video", "sent_packets"), 5000);
    assert_eq!(count(&run, "video", "delivered_bytes"), 4_995_000);
    let goodput = 4_995_000.0 * 8.0 / 9.999 / 1e6;
    assert!((figure(&run, "video", "goodput_mbit_s") - goodput).abs() < 1e-9);
    let throughput = figure(&run, "video", "throughput_mbit_s");
    assert!((throughput - goodput * 1.028).abs() < 1e-9);
    // The mean is exact, a percentile within 0.4 %.
    assert!((figure(&run, "video", "mean_one_way_delay_ms") - 10.8224).abs() < 1e-9);
    assert!((figure(&run, "video", "p95_one_way_delay_ms") / 10.8224 - 1.0).abs() < 0.004);
    assert!(figure(&run, "video", "reordered_ratio") <= 0.0);
}

/// Figures of TCP are not applicable: they are neither 0 nor missing.
#[test]
fn figures_of_tcp_are_null() {
    let run = path(
        "duration = \"1 s\"",
        "10 packets",
        "rate = \"1 Mbit/s\"",
        "[flow.bulk]\nfrom = \"A\"\nto = \"B\"\nstack = \"rfc\"\ncc = \"reno\"",
    );
    for name in [
        "retransmitted_packets",
        "spurious_retransmissions",
        "fast_recoveries",
        "timeouts",
        "mean_cwnd_packets",
        "mean_srtt_ms",
        "min_rtt_ms",
        "flow_completion_time_s",
        "malformed_segments",
        "refused",
        "transfers",
        "exchanges",
    ] {
        let figures = &run.summary.flows["video"];
        assert!(figures.as_object().expect("a table").contains_key(name));
        assert!(figures[name].is_null(), "{name}: {}", figures[name]);
    }
    for name in ["mean_one_way_delay_ms", "p95_one_way_delay_ms", "exchanges"] {
        assert!(run.summary.flows["bulk"][name].is_null(), "{name}");
    }
    assert!(
        rows(&run).iter().any(|row| row.size == 1500),
        "the default fills a packet"
    );
}

/// 12.5 Mbit/s over 10: a sender with a congestion response would lose no packet.
#[test]
fn udp_keeps_its_rate_and_every_packet_is_accounted_for() {
    let run = path(
        "duration = \"9999 ms\"",
        "20 packets",
        "rate = \"12500 kbit/s\", payload = \"1222 bytes\"",
        "",
    );
    // 1,222 bytes at 12.5 Mbit/s: one every 0.78208 ms; 1,250 bytes at 10 Mbit/s: one every 1 ms.
    let sent = 9_999_000_000 / 782_080 + 1;
    assert_eq!(count(&run, "video", "sent_packets"), sent);
    let link = &run.summary.links["path"]["forward"];
    let dropped = link["dropped_packets"].as_u64().expect("a count");
    let arrived = count(&run, "video", "delivered_bytes") / 1222;
    let under_way = run.network.packets_in_flight() as u64;
    assert_eq!(arrived + dropped + under_way, sent);
    // From 0 to 9.999 s minus 10 ms the link sends one packet per millisecond.
    assert_eq!(arrived, 9989);
    let rows = rows(&run);
    let lost = rows.iter().filter(|row| row.lost.is_some()).count();
    assert_eq!(lost as u64, dropped);
    let seen = rows.iter().filter(|row| row.received.is_some()).count();
    assert_eq!(seen as u64, arrived);
    // A full queue: 20 packets of a millisecond each before it, one in transmission, its own
    // transmission and 10 ms.
    let p95 = figure(&run, "video", "p95_one_way_delay_ms");
    assert!((30.9..32.2).contains(&p95), "{p95}");
}

/// Next to bulk TCP it keeps its rate, and TCP uses the remainder. Detects a TCP without a
/// congestion response, and a UDP with one.
#[test]
fn tcp_yields_and_udp_keeps_its_rate() {
    let run = path(
        "duration = \"60 s\"\nwarmup = \"10 s\"",
        "50 packets",
        "rate = \"4 Mbit/s\"",
        "[flow.bulk]\nfrom = \"A\"\nto = \"B\"\nstack = \"rfc\"\ncc = \"reno\"",
    );
    let offered = 4.0 * 1500.0 / 1472.0;
    let video = figure(&run, "video", "throughput_mbit_s");
    let bulk = figure(&run, "bulk", "throughput_mbit_s");
    // Reno fills a queue of over two bandwidth-delay products, so the link never idles; the video
    // has its share of the drops, one or two per cycle of hundreds of packets.
    assert!((video + bulk - 10.0).abs() < 0.02, "{video} + {bulk}");
    assert!(
        video > 0.98 * offered && video <= offered * 1.0001,
        "{video}"
    );
    assert!(figure(&run, "bulk", "fast_recoveries") > 0.0);
}

/// Copies, starts and stops as for TCP.
#[test]
fn copies_start_and_stop() {
    let run = path(
        "duration = \"3 s\"\nseed = 7",
        "100 packets",
        "rate = \"800 kbit/s\", payload = \"100 bytes\"",
        "count = 3\nstart = \"1 s\"\nstart_spread = \"100 ms\"\nstop = \"1900500 us\"",
    );
    let rows = rows(&run);
    let ms = |n: u64| Instant::START + Duration::from_millis(n);
    let mut firsts = Vec::new();
    for copy in 0..3 {
        let mine: Vec<_> = rows.iter().filter(|row| row.flow == FlowId(copy)).collect();
        let first = mine[0].sent;
        assert!(first >= ms(1000) && first < ms(1100));
        // One per millisecond, the last before the stop.
        let span = (Instant::START + Duration::from_micros(1_900_500)) - first;
        assert_eq!(mine.len() as u64, span.as_picos().div_ceil(1_000_000_000));
        firsts.push(first);
        let name = format!("video/{copy}");
        assert_eq!(count(&run, &name, "sent_packets"), mine.len() as u64);
    }
    firsts.dedup();
    assert_eq!(firsts.len(), 3, "each starts at a time of its own");
    assert_eq!(run.network.next_event(), Instant::NEVER);
}

/// A path without a rate and delay would be refused for TCP: UDP has no round trip.
#[test]
fn udp_crosses_a_path_that_takes_no_time() {
    let text = r#"
        duration = "1 s"
        [link.path]
        between = ["A", "B"]
        [flow.sensor]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = { kind = "paced", rate = "8 kbit/s", payload = "1 byte" }
    "#;
    let run = Simulation::<Length>::new(&resolve(text))
        .run()
        .expect("no hosts");
    assert!(figure(&run, "sensor", "mean_one_way_delay_ms") <= 0.0);
    assert_eq!(count(&run, "sensor", "delivered_bytes"), 1001);
}

/// RFC 4737 over UDP: the summary agrees with the arrival times.
#[test]
fn reordering_is_measured() {
    let text = r#"
        duration = "5 s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "5 ms"
        queue = { kind = "drop-tail", limit = "30 packets", reorder = { kind = "interval", interval = 7 } }
        [flow.video]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = { kind = "paced", rate = "11 Mbit/s" }
    "#;
    let run = Simulation::<Length>::new(&resolve(text))
        .packet_log(true)
        .run()
        .expect("no hosts");
    let mut arrived: Vec<_> = rows(&run)
        .into_iter()
        .filter_map(|row| Some((row.received?, row.index)))
        .collect();
    arrived.sort_unstable();
    let (mut next, mut late) = (0, 0);
    for (_, index) in &arrived {
        late += u32::from(*index < next);
        next = next.max(index + 1);
    }
    let ratio = f64::from(late) / arrived.len() as f64;
    assert!(ratio > 0.05, "{ratio}");
    assert!((figure(&run, "video", "reordered_ratio") - ratio).abs() < 1e-12);
    assert!(figure(&run, "video", "reordering_extent_p95_packets") >= 1.0);
}

const SHAPE: Shape = Shape {
    files_only: false,
    changes: true,
    mangle: true,
    seconds: 2,
};

/// A random scenario with its TCP flows, and flows of each new kind between the same hosts.
fn mixed(number: u64) -> String {
    let mut text = text(number, SHAPE);
    let rate = 200 + number * 37 % 3000;
    let payload = 40 + number * 131 % 1400;
    let _ = writeln!(
        text,
        r#"
        [flow.video]
        from = "S0"
        to = "D0"
        protocol = "udp"
        count = 2
        start_spread = "30 ms"
        workload = {{ kind = "paced", rate = "{rate} kbit/s", payload = "{payload} bytes" }}
        [flow.back]
        from = "D0"
        to = "S0"
        protocol = "udp"
        start = "10 ms"
        stop = "1500 ms"
        workload = {{ kind = "paced", rate = "{rate} kbit/s" }}
        [flow.write]
        from = "S0"
        to = "D0"
        stack = "rfc"
        workload = {{ kind = "paced", rate = "{rate} kbit/s", payload = "{payload} bytes" }}
        [flow.ask]
        from = "D0"
        to = "S0"
        workload = {{ kind = "request-response", request = "{payload} bytes", response = "9 kB", think = "3 ms" }}
        "#
    );
    text
}

/// Detects a sender whose order among other events depends on the computation ahead of time.
#[test]
fn fast_path_folding_sampling_octets_and_captures_change_nothing() {
    let (mut folded, mut lost, mut doubled, mut asked) = (0, 0, 0, 0);
    for number in 0..70 {
        let text = mixed(number);
        let resolved = resolve(&text);
        let make = || Simulation::<Length>::new(&resolved);
        let fast = make().run().expect("no hosts");
        let same = |other: &Finished, what: &str| {
            let (a, b) = (&fast.summary, &other.summary);
            assert_eq!(a.digest, b.digest, "{what}, scenario {number}\n{text}");
            assert_eq!(a.flows, b.flows, "{what}, scenario {number}\n{text}");
            assert_eq!(a.links, b.links, "{what}, scenario {number}\n{text}");
        };
        same(&make().fast_path(false).run().expect("no hosts"), "general");
        if number % 5 == 0 {
            let every = Some(Duration::from_millis(7));
            let sampled = make().samples(every).packet_log(true).run();
            same(&sampled.expect("no hosts"), "sampled");
            let tapping = Tapping {
                places: vec![(0, Direction::Forward), (0, Direction::Reverse)],
                snap_length: 64,
                addresses: None,
            };
            same(
                &make().tap(Some(tapping)).run().expect("no hosts"),
                "tapped",
            );
            let octets = Simulation::<Octets>::new(&resolved).run();
            let octets = octets.expect("no hosts").summary;
            assert_eq!(
                octets.digest, fast.summary.digest,
                "scenario {number}\n{text}"
            );
        }
        folded += usize::from(fast.network.folded_links() > 0);
        let video = &fast.summary.flows["video/0"];
        let delivered = video["delivered_bytes"].as_u64().expect("a count");
        let payload = 40 + number * 131 % 1400;
        let arrived = delivered / payload;
        assert_eq!(arrived * payload, delivered, "whole datagrams");
        let sent = video["sent_packets"].as_u64().expect("a count");
        // With a warm-up, packets in flight at its end arrive without having been counted as sent.
        if resolved.warmup.is_zero() {
            assert!(arrived <= sent, "each once: {arrived} of {sent}\n{text}");
            lost += sent - arrived;
        }
        doubled += u64::from(text.contains("mangle"));
        asked += fast.summary.flows["ask"]["exchanges"]["completed"]
            .as_u64()
            .expect("a count");
    }
    // Otherwise there would be nothing to compare.
    assert!(folded > 17 && lost > 300 && doubled > 17 && asked > 300);
}

/// A capture contains UDP packets with correct lengths and checksums.
#[test]
fn captured_datagrams_are_correct() {
    let text = r#"
        duration = "1 s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "5 ms"
        [flow.video]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = { kind = "paced", rate = "1 Mbit/s", payload = "333 bytes" }
    "#;
    let resolved = resolve(text);
    let tapping = Tapping {
        places: vec![(0, Direction::Forward)],
        snap_length: u32::MAX,
        addresses: None,
    };
    let run = Simulation::<Length>::new(&resolved)
        .tap(Some(tapping))
        .run()
        .expect("no hosts");
    let taps = run.network.probe().taps().expect("it was asked for");
    let file = taps
        .pcapng(0, &[Direction::Forward], run.network.element_names())
        .expect("it was tapped");
    let word = |at: usize| {
        let octets = file[at..at + 4].try_into().expect("four octets");
        u32::from_le_bytes(octets) as usize
    };
    let (mut at, mut seen) = (0, 0);
    while at < file.len() {
        if word(at) == 6 {
            let packet = &file[at + 28..][..word(at + 20)];
            let (ip, protocol, datagram) = wire::decode_ip(packet).expect("an IP packet");
            assert_eq!((packet.len(), protocol), (361, Protocol::Udp));
            assert_eq!(datagram.len(), 341);
            assert_eq!(datagram[4..6], 341_u16.to_be_bytes(), "UDP's own length");
            let mut sum = ip.pseudo_header(Protocol::Udp, datagram.len());
            sum.add(datagram);
            assert_eq!(sum.finish(), 0, "RFC 768: the sum of all is all ones");
            assert_ne!(datagram[6..8], [0, 0], "zero would say that there is none");
            seen += 1;
        }
        at += word(at + 4);
    }
    assert_eq!(seen, count(&run, "video", "sent_packets"));
}
