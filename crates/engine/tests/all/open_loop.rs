//! UDP at random or recorded times: rate and spacing match the configuration, and both ends agree
//! on the delays.

use crate::support::logged;

use std::path::Path;

use anabranch_core::units::{Duration, Instant};
use anabranch_engine::Finished;
use anabranch_engine::record::PacketRow;
use anabranch_scenario::Extensions;
use logged::rows;

/// A wide path of 10 ms and UDP over it.
fn run(workload: &str, more: &str, duration: &str, capture: &[u8]) -> Finished {
    let text = format!(
        r#"
        duration = "{duration}"
        [link.path]
        between = ["A", "B"]
        rate = "1 Gbit/s"
        delay = "10 ms"
        {more}
        [flow.x]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = {{ {workload} }}
        "#
    );
    let capture = capture.to_vec();
    let extensions = Extensions::default().files(move |_: &Path, _| Ok(capture.clone()));
    logged::logged(&text, &extensions)
}

fn figure(run: &Finished, name: &str) -> f64 {
    logged::figure(run, "x", name)
}

/// The receiver's delays equal those of the packet log, with a tenth of the packets lost. Detects
/// ends that draw different times, and a receiver whose count is wrong after losses.
#[test]
fn both_ends_agree_on_the_times() {
    let impaired = "impair = [{ kind = \"bernoulli-loss\", rate = 0.1 }]";
    for workload in [
        "kind = \"poisson\", rate = \"4 Mbit/s\", sizes = { kind = \"fixed\", size = \"500 bytes\" }",
        "kind = \"poisson\", rate = \"4 Mbit/s\", sizes = { kind = \"fixed\", size = \"500 bytes\" }, profile = { period = \"2 s\", depth = 0.9 }",
        "kind = \"paced\", rate = \"4 Mbit/s\", profile = { period = \"1 s\", shape = \"square\", depth = 0.5, bursts = { every = \"500 ms\", length = \"10 ms\", factor = 5 } }",
        "kind = \"on-off\", rate = \"8 Mbit/s\", on = { kind = \"exponential\", mean = \"20 ms\" }, off = { kind = \"fixed\", time = \"20 ms\" }",
    ] {
        let run = run(workload, impaired, "10 s", &[]);
        let delays: Vec<f64> = rows(&run)
            .iter()
            .filter_map(|row| row.received.map(|at| (at - row.sent).as_millis_f64()))
            .collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!(delays.len() > 500, "{}", delays.len());
        assert!(
            (figure(&run, "mean_one_way_delay_ms") - mean).abs() < 1e-6,
            "{workload}"
        );
    }
}

/// The mean equals the configured rate. On and off half of the time each: 4 of 8 Mbit/s.
#[test]
fn mean_rates_equal_the_configured_rates() {
    for (workload, within) in [
        (
            "kind = \"poisson\", rate = \"4 Mbit/s\", sizes = { kind = \"fixed\", size = \"500 bytes\" }, profile = { period = \"2 s\", depth = 0.9 }",
            0.02,
        ),
        (
            "kind = \"paced\", rate = \"4 Mbit/s\", profile = { period = \"1 s\", depth = 1.0 }",
            0.01,
        ),
        (
            "kind = \"on-off\", rate = \"8 Mbit/s\", on = { kind = \"exponential\", mean = \"10 ms\" }, off = { kind = \"exponential\", mean = \"10 ms\" }, payload = \"100 bytes\"",
            0.12,
        ),
    ] {
        // 60 s: for 2,000 points per second the count deviates by 0.3 %; for 3,000 periods by 2.4
        // %.
        let run = run(workload, "", "60 s", &[]);
        let mean = figure(&run, "goodput_mbit_s");
        assert!((mean / 4.0 - 1.0).abs() < within, "{mean}: {workload}");
    }
}

/// Datagrams in an on period are evenly spaced, and no period is shorter than the minimum of its
/// distribution.
#[test]
fn on_and_off_periods_follow_their_distributions() {
    let run = run(
        "kind = \"on-off\", rate = \"8 Mbit/s\", payload = \"1000 bytes\", on = { kind = \"fixed\", time = \"10 ms\" }, off = { kind = \"pareto\", mean = \"30 ms\", shape = 1.5 }",
        "",
        "20 s",
        &[],
    );
    let sent: Vec<Instant> = rows(&run).iter().map(|row| row.sent).collect();
    let gaps = sent.windows(2).map(|pair| pair[1] - pair[0]);
    let mut in_period = 1;
    for gap in gaps {
        if gap == Duration::from_millis(1) {
            in_period += 1;
            continue;
        }
        // Ten datagrams, and then a pause of at least 10 ms, counted from 1 ms after the last.
        assert_eq!(in_period, 10);
        assert!(gap >= Duration::from_millis(11), "{gap}");
        in_period = 1;
    }
}

/// A capture of raw IPv4: (microseconds, bytes).
fn capture(packets: &[(u32, u16)]) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (time, size) in packets {
        let words = [time / 1_000_000, time % 1_000_000, 20, u32::from(*size)];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let [high, low] = size.to_be_bytes();
        let mut packet = vec![0x45, 0, high, low];
        packet.resize(20, 0);
        file.extend(packet);
    }
    file
}

/// Each packet's length at its time. Again at four times the speed, and twice: the repetition
/// begins after the last packet and the mean interval of 1 ms. Detects payload lengths used as IP
/// lengths, absolute times, and a repetition that begins at the time of the last packet.
#[test]
fn a_replay_sends_the_recorded_packets() {
    let file = capture(&[
        (7_000_000, 1_500),
        (7_000_500, 40),
        (7_000_500, 28),
        (7_003_000, 576),
    ]);
    let sent = |workload: &str| -> Vec<(u64, u32)> {
        let run = run(
            &format!("kind = \"replay\", file = \"x.pcap\"{workload}"),
            "",
            "1 s",
            &file,
        );
        let rows = rows(&run);
        rows.iter()
            .map(|row| (row.sent.as_picos() / 1_000_000, row.size))
            .collect()
    };
    let once = [(0, 1_500), (500, 40), (500, 28), (3_000, 576)];
    assert_eq!(sent(""), once);
    let fast = [(0, 1_500), (125, 40), (125, 28), (750, 576)];
    assert_eq!(sent(", speed = 4"), fast);
    assert_eq!(
        sent(", speed = 4, repeat = true")[..8],
        [fast, fast.map(|(at, size)| (at + 1_000, size))].concat()
    );
    // 2,144 bytes in 3 ms are 5.717 Mbit/s; at half of that rate they take 6 ms.
    assert_eq!(
        sent(", rate = \"2858667 bit/s\"").last(),
        Some(&(5_999, 576))
    );
}

/// Files over TCP follow the curve: none in the low half, all in the high half.
#[test]
fn transfers_follow_the_curve() {
    let text = r#"
        duration = "20 s"
        [link.path]
        between = ["A", "B"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        [flow.web]
        from = "A"
        to = "B"
        stack = "rfc"
        cc = "reno"
        [flow.web.workload]
        kind = "poisson"
        rate = "1 Mbit/s"
        sizes = { kind = "fixed", size = "1 kB" }
        profile = { shape = "square", period = "2 s", depth = 1.0 }
    "#;
    let run = logged::logged(text, &Extensions::default());
    let started = run.summary.flows["web"]["transfers"]["started"]
        .as_f64()
        .expect("a count");
    // 2,500 are expected; five deviations are 250. The first begins at the flow's start.
    assert!((started - 2_500.0).abs() < 250.0, "{started}");
    // Transfers that began at the end of the high half end within 100 ms.
    let dark = |row: &&PacketRow| {
        let into = row.sent.as_picos() % 2_000_000_000_000;
        (100_000_000_000..999_000_000_000).contains(&into)
    };
    assert_eq!(rows(&run).iter().filter(dark).count(), 0);
}
