//! Causes of retransmissions, and changes of windows: the tables agree with the counters, with each
//! other, and with each packet's outcome.

use std::collections::BTreeMap;

use anabranch_core::{body::Length, packet::Direction};
use anabranch_engine::record::{PacketRow, Retransmitted};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

fn run(stack: &str, cc: &str, impair: &str, ecn: &str) -> Finished<Length> {
    run_for(8, stack, cc, impair, ecn)
}

fn run_for(seconds: u32, stack: &str, cc: &str, impair: &str, ecn: &str) -> Finished<Length> {
    let text = format!(
        r#"
        duration = "{seconds} s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        queue = {{ kind = "drop-tail", limit = "60 packets"{impair} }}
        impair = [{{ kind = "bernoulli-loss", rate = 0.01 }}]
        [flow.main]
        from = "A"
        to = "B"
        stack = "{stack}"
        cc = "{cc}"
        transport = {{ {ecn} }}
        "#
    );
    let scenario = Scenario::parse(&text, "why.toml", &Extensions::default()).expect("valid");
    Simulation::new(&scenario.resolve(None).expect("valid"))
        .packet_log(true)
        .run()
        .expect("it runs")
}

const REORDER: &str = ", reorder = { kind = \"interval\", interval = 20 }";

/// The outcome of each transmission of each octet.
fn brute_force(rows: &[&PacketRow]) -> Vec<Option<bool>> {
    let mut sendings: BTreeMap<u64, Vec<(bool, bool)>> = BTreeMap::new();
    let judge = |row: &&PacketRow| {
        let mut verdicts = Vec::new();
        for octet in row.sequence..row.sequence + u64::from(row.payload) {
            let before = sendings.entry(octet).or_default();
            if row.retransmission {
                let arrived = before.iter().any(|(arrived, _)| *arrived);
                let open = before.iter().any(|(_, open)| *open);
                verdicts.push((arrived, open));
            }
            let is_refused =
                octet + u64::from(row.refused) >= row.sequence + u64::from(row.payload);
            before.push((
                row.received.is_some() && !is_refused,
                row.received.is_none() && row.lost.is_none(),
            ));
        }
        if verdicts.is_empty() {
            None
        } else if verdicts.iter().any(|(arrived, open)| !arrived && !open) {
            Some(true)
        } else if verdicts.iter().all(|(arrived, _)| *arrived) {
            Some(false)
        } else {
            None
        }
    };
    rows.iter().map(judge).collect()
}

/// Detects a table that considers only one earlier transmission.
#[test]
fn needed_considers_all_earlier_transmissions() {
    let (mut needed, mut spurious) = (0, 0);
    for (stack, reorder) in [
        ("linux", ""),
        ("linux", REORDER),
        ("rfc", REORDER),
        ("ns3-2018", ""),
    ] {
        // Each octet of each transmission is searched.
        let finished = run_for(4, stack, "reno", reorder, "");
        let log = finished.network.probe().log().expect("it was asked for");
        let told = log.needed();
        let (rows, told): (Vec<&PacketRow>, Vec<Option<bool>>) = log
            .rows()
            .zip(told)
            .filter(|(row, _)| row.direction == Direction::Forward)
            .unzip();
        assert_eq!(told, brute_force(&rows), "{stack}{reorder}");
        for (row, told) in rows.iter().zip(&told) {
            assert!(told.is_none() || row.retransmission);
            assert_eq!(row.cause.is_some(), row.retransmission);
        }
        needed += told.iter().filter(|told| **told == Some(true)).count();
        spurious += told.iter().filter(|told| **told == Some(false)).count();
    }
    assert!(needed > 50 && spurious > 5, "{needed}, {spurious}");
}

/// Compares each packet with all preceding ones.
fn searched(rows: &[PacketRow]) -> Vec<(PacketRow, Option<PacketRow>)> {
    let counted: Vec<&PacketRow> = rows.iter().filter(|row| row.counts()).collect();
    let end = |row: &PacketRow| row.sequence + u64::from(row.payload);
    let mut found = Vec::new();
    for (number, row) in counted
        .iter()
        .enumerate()
        .filter(|(_, row)| row.retransmission)
    {
        let before = &counted[..number];
        let whole = |other: &&&PacketRow| other.sequence == row.sequence && end(other) >= end(row);
        let part = |other: &&&PacketRow| other.sequence < end(row) && end(other) > row.sequence;
        let original = before
            .iter()
            .rfind(whole)
            .or_else(|| before.iter().rfind(part));
        found.push(((*row).clone(), original.map(|other| (*other).clone())));
    }
    found
}

#[test]
fn an_original_is_the_last_packet_with_the_same_octets() {
    let mut count = 0;
    for (stack, reorder) in [("linux", ""), ("linux", REORDER), ("ns3-2018", REORDER)] {
        let finished = run(stack, "cubic", reorder, "");
        let log = finished.network.probe().log().expect("it was asked for");
        let plain = |one: Retransmitted<'_>| (one.row.clone(), one.original.cloned());
        let told: Vec<_> = log.retransmitted().map(plain).collect();
        let expected: Vec<_> = log
            .connections()
            .iter()
            .flat_map(|rows| searched(rows))
            .collect();
        assert_eq!(told, expected, "{stack}{reorder}");
        let needed = log.needed();
        let of_rows = log
            .rows()
            .zip(needed)
            .filter(|(row, _)| row.retransmission && row.counts());
        let needed: Vec<_> = of_rows.map(|(_, needed)| needed).collect();
        assert_eq!(
            log.retransmitted()
                .map(|one| one.needed)
                .collect::<Vec<_>>(),
            needed
        );
        count += told.len();
    }
    assert!(count > 100, "{count}");
}

/// Detects a log that begins late, misses a kind of event or loses the events of an ended transfer,
/// and one that is kept without a request.
#[test]
fn every_window_change_is_logged() {
    for (stack, cc, reorder) in [
        ("linux", "reno", REORDER),
        ("linux", "cubic", ""),
        ("rfc", "reno", REORDER),
        ("ns3-2018", "cubic-plus", REORDER),
    ] {
        let finished = run(stack, cc, reorder, "");
        let (_, stats) = finished
            .network
            .snapshot(anabranch_core::packet::FlowId(0))
            .expect("our TCP");
        let windows = finished.network.probe().log().expect("asked for").windows();
        let count = |event: &str| {
            let rows = windows.iter().filter(|row| row.event() == event);
            rows.count() as u64
        };
        assert_eq!(
            count("recovery-entered"),
            stats.fast_recoveries,
            "{stack}, {cc}"
        );
        assert_eq!(count("rto"), stats.timeouts, "{stack}, {cc}");
        assert_eq!(count("undo"), u64::from(stats.undone), "{stack}, {cc}");
        assert_eq!(count("timer-rule"), stats.timer_losses, "{stack}, {cc}");
        assert_eq!(count("ecn"), stats.ecn_reductions, "{stack}, {cc}");
        assert!(stats.fast_recoveries > 3, "{stack}, {cc}");
        assert!(windows.is_sorted_by_key(|row| row.at));
        for row in windows {
            assert!(row.cwnd.0.get() > 0 && row.cwnd.1.get() > 0);
            match row.event() {
                // A reduction for a mark in the same round trip may have come before.
                "recovery-entered" | "ecn" | "rto" => assert!(row.cwnd.1 <= row.cwnd.0, "{row:?}"),
                "undo" => assert!(row.cwnd.1 >= row.cwnd.0, "{row:?}"),
                _ => {}
            }
        }
    }
}

#[test]
fn no_events_are_logged_without_a_packet_log() {
    let text = "duration = \"1 s\"\n[link.p]\nbetween = [\"A\", \"B\"]\nrate = \"9 Mbit/s\"\n[flow.f]\nfrom = \"A\"\nto = \"B\"";
    let scenario = Scenario::parse(text, "w.toml", &Extensions::default()).expect("valid");
    let resolved = scenario.resolve(None).expect("valid");
    let finished = Simulation::<Length>::new(&resolved).run().expect("it runs");
    assert!(finished.network.probe().log().is_none());
    assert_eq!(finished.summary.flows["f"]["malformed_segments"], 0);
    assert_eq!(
        finished.summary.flows["f"]["refused"],
        serde_json::json!({})
    );
}

/// The spurious retransmissions of a flow by the log, and the figure of its summary.
fn spurious(link: &str, flow: &str, end_ms: u64) -> [(u64, u64); 2] {
    let text = format!(
        r#"
        duration = "{end_ms} ms"
        [link.path]
        between = ["A", "B"]
        delay = "50 ms"
        {link}
        [flow.main]
        from = "A"
        to = "B"
        {flow}
        "#
    );
    let stall = b"time_s,rate_mbit_s\n0,10\n1,0\n3,10\n".to_vec();
    let extensions = Extensions::default().files(move |_, _| Ok(stall.clone()));
    let scenario = Scenario::parse(&text, "spurious.toml", &extensions).expect("TOML");
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    let finished = Simulation::<Length>::new(&resolved)
        .packet_log(true)
        .run()
        .expect("it runs");
    let log = finished.network.probe().log().expect("it was asked for");
    let again: Vec<_> = log
        .retransmitted()
        .filter(|one| one.row.direction == Direction::Forward)
        .collect();
    let needless = again.iter().filter(|one| one.needed == Some(false)).count();
    let figures = &finished.summary.flows["main"];
    let figure = |name: &str| figures[name].as_u64().expect("a count");
    [
        (again.len() as u64, figure("retransmitted_packets")),
        (needless as u64, figure("spurious_retransmissions")),
    ]
}

/// A path that stalls for two seconds, reordering, losses of data, acknowledgments and SYNs, and
/// duplicates: with DSACK, Eifel detection, F-RTO or none of them, the counters and the log agree
/// at each end of the run.
#[test]
fn spurious_retransmissions_of_summary_and_log_agree_at_any_time() {
    const QUEUE: &str =
        "rate = \"10 Mbit/s\"\nqueue = { kind = \"drop-tail\", limit = \"60 packets\"";
    let links = [
        "forward = { service = { kind = \"trace\", file = \"stall.csv\" }, queue = { kind = \"drop-tail\", limit = \"100 packets\" } }\n\
         reverse.rate = \"10 Mbit/s\""
            .to_owned(),
        format!("{QUEUE}, reorder = {{ kind = \"interval\", interval = 20 }} }}"),
        format!("{QUEUE} }}\nimpair = [{{ kind = \"bernoulli-loss\", rate = 0.1 }}]"),
        format!("{QUEUE} }}\nreverse.impair = [{{ kind = \"bernoulli-loss\", rate = 0.7 }}]"),
        format!(
            "{QUEUE} }}\nforward.impair = [{{ kind = \"duplicate\", rate = 0.1 }}, {{ kind = \"jitter\", mean = \"30 ms\" }}]"
        ),
    ];
    let flows = [
        "cc = \"reno\"",
        "stack = \"rfc\"\ncc = \"reno\"",
        "transport = { eifel = false, timestamps = false }",
        "transport = { frto = false, eifel = false, dsack = false }",
        "stack = \"ns3-2018\"",
        "stack = \"bsd44-lite\"",
        "stack = \"rfc\"\nfec = { kind = \"xor\", fmax = 10 }",
        "fec = { kind = \"reed-solomon\", redundancy = \"fixed\" }",
    ];
    let (mut again, mut needless) = (0, 0);
    for link in &links {
        for flow in flows {
            for end_ms in [900, 2_600, 3_012, 3_055, 3_103, 3_250, 4_000] {
                let [all, spurious] = spurious(link, flow, end_ms);
                assert_eq!(all.0, all.1, "{link}, {flow}, {end_ms} ms");
                assert_eq!(spurious.0, spurious.1, "{link}, {flow}, {end_ms} ms");
                again += all.0;
                needless += spurious.0;
            }
        }
    }
    assert!(again > 1_000 && needless > 200, "{again}, {needless}");
}

/// RFC 7323 §5.3 R1: "If there is a Timestamps option in the arriving segment, SEG.TSval <
/// TS.Recent, […] then treat the arriving segment as not acceptable […] and drop the segment." A
/// retransmission of data that the receiver refused and lacked was needed.
#[test]
fn data_refused_by_paws_needs_its_retransmission() {
    let text = r#"
        seed = 4
        duration = "60 s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        forward.impair = [
            { kind = "bernoulli-loss", rate = 0.1 },
            { kind = "jitter", mean = "20 ms", reorder = true },
        ]
        [flow.main]
        from = "A"
        to = "B"
        workload = { kind = "file", size = "3 MB" }
    "#;
    let scenario = Scenario::parse(text, "paws.toml", &Extensions::default()).expect("TOML");
    let finished = Simulation::<Length>::new(&scenario.resolve(None).expect("valid"))
        .packet_log(true)
        .run()
        .expect("it runs");
    let figures = &finished.summary.flows["main"];
    assert!(figures["refused"]["old_timestamp"].as_u64() > Some(0));
    assert_eq!(figures["delivered_bytes"], 3_000_000);
    let log = finished.network.probe().log().expect("it was asked for");
    let (rows, told): (Vec<_>, Vec<_>) = log
        .rows()
        .zip(log.needed())
        .filter(|(row, _)| row.direction == Direction::Forward && row.payload > 0)
        .unzip();
    let mut refused = 0;
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.refused > 0) {
        let end = row.sequence + u64::from(row.payload);
        let has_octets = |other: &PacketRow| {
            let other_end = other.sequence + u64::from(other.payload);
            other.sequence < end && other_end >= end
        };
        let mut before = rows[..at].iter().filter(|other| has_octets(other));
        if before.any(|other| other.received.is_some() && other.refused == 0) {
            continue;
        }
        let next = (at + 1..rows.len()).find(|&next| has_octets(rows[next]));
        let next = next.expect("the file arrived, so that another packet brought the octets");
        assert_eq!(told[next], Some(true), "{:?}", rows[next]);
        refused += 1;
    }
    assert!(refused > 0);
}

/// Two SYNs are sent before the answer to the first arrives.
#[test]
fn an_unnecessary_syn_counts_as_spurious() {
    let [all, spurious] = spurious(
        "rate = \"10 Mbit/s\"\nreverse.delay = \"1200 ms\"",
        "",
        5_000,
    );
    assert_eq!((all, spurious), ((1, 1), (1, 1)));
}
