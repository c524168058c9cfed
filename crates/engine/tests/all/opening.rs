//! Opening and abandoning connections: the completion time of a file whose first packets are lost,
//! and the outcome of connections, compared with a calculation by hand.

use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};
use serde_json::Value;

/// Full segments of the long file: an initial window (RFC 6928).
const SEGMENTS: u64 = 10;
const MSS: u64 = 1448;

/// A flow over a fast path that loses the listed packets.
#[derive(Clone, Copy)]
struct Case<'a> {
    rtt_ms: u64,
    forward: &'a [u64],
    reverse: &'a [u64],
    bytes: u64,
    flow: &'a str,
}

impl Case<'_> {
    fn run(&self) -> Value {
        // A list must not be empty; a packet with this number never occurs.
        let list = |packets: &[u64]| [packets, &[1_000_000]].concat();
        let text = format!(
            r#"
            duration = "400 s"
            [link.path]
            between = ["A", "B"]
            rate = "1 Gbit/s"
            delay = "{} us"
            forward.impair = [{{ kind = "loss-list", packets = {:?} }}]
            reverse.impair = [{{ kind = "loss-list", packets = {:?} }}]
            [flow.f]
            from = "A"
            to = "B"
            {}
            workload = {{ kind = "file", size = "{} bytes" }}
            "#,
            self.rtt_ms * 500,
            list(self.forward),
            list(self.reverse),
            self.flow,
            self.bytes,
        );
        run(&text)
    }

    fn seconds(&self) -> f64 {
        let flow = self.run();
        let time = flow["flow_completion_time_s"].as_f64();
        assert_eq!(flow["ended"], "completed", "{flow}");
        assert_eq!(flow["ended_at_s"].as_f64(), time);
        time.expect("the file arrives")
    }
}

/// The figures of the flow `f`.
fn run(text: &str) -> Value {
    let scenario = Scenario::parse(text, "opening.toml", &Extensions::default()).expect("valid");
    let resolved = scenario.resolve(None).expect("valid");
    let run = Simulation::<anabranch_core::body::Length>::new(&resolved).run();
    run.expect("it runs").summary.flows["f"].clone()
}

#[track_caller]
fn near(time: f64, expected: f64) {
    let within = (0.01 * expected).max(0.005);
    assert!(
        (time - expected).abs() < within,
        "{time} s, not {expected} s"
    );
}

/// The times of all SYNs that `stack` sends, in seconds.
fn syns(stack: &str) -> &'static [u32] {
    match stack {
        "linux" => &[0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67],
        _ => &[0, 1, 3, 7, 15, 31, 63],
    }
}

#[test]
fn a_lost_syn_is_retransmitted_linearly_only_by_linux() {
    for stack in ["linux", "rfc"] {
        let flow = format!("stack = \"{stack}\"");
        for (lost, at) in syns(stack).iter().enumerate() {
            let forward: Vec<u64> = (0..lost as u64).collect();
            for rtt_ms in [1, 100, 600] {
                let case = Case {
                    rtt_ms,
                    forward: &forward,
                    reverse: &[],
                    bytes: 1000,
                    flow: &flow,
                };
                near(case.seconds(), f64::from(*at) + 1.5 * rtt_ms as f64 / 1e3);
            }
        }
    }
}

#[test]
fn lost_syns_count_as_retransmissions_and_timeouts() {
    let case = Case {
        rtt_ms: 20,
        forward: &[0, 1, 2],
        reverse: &[],
        bytes: 1000,
        flow: "",
    };
    let flow = case.run();
    assert_eq!(flow["retransmitted_packets"], 3);
    assert_eq!(flow["timeouts"], 3);
    assert_eq!(flow["sent_packets"], 4);
    assert_eq!(flow["spurious_retransmissions"], 0);
}

/// RFC 5681 §3.1, RFC 6928 §2.
#[test]
fn several_lost_syns_reduce_the_initial_window_to_one_segment() {
    for stack in ["linux", "rfc"] {
        let flow = format!("stack = \"{stack}\"");
        // Windows of 1, 2 and 4 with linux. The receiver of rfc delays the acknowledgment of the
        // single segment by 200 ms, and the acknowledgments of every second segment let the window
        // grow to 2, 3 and 4.
        let slow = if stack == "linux" { 3.0 } else { 6.0 };
        for (lost, rounds) in [(0, 0.0), (1, 0.0), (2, slow), (4, slow)] {
            let forward: Vec<u64> = (0..lost).collect();
            let case = Case {
                rtt_ms: 100,
                forward: &forward,
                reverse: &[],
                bytes: SEGMENTS * MSS,
                flow: &flow,
            };
            let opens = f64::from(syns(stack)[forward.len()]);
            near(case.seconds(), opens + 0.15 + 0.1 * rounds);
        }
    }
}

/// Several lost SYNs reduce the initial window to one segment with every congestion control.
#[test]
fn every_control_begins_with_one_segment_after_lost_syns() {
    for (meta, ..) in anabranch_congestion::registry() {
        let flow = format!("stack = \"rfc\"\ncc = \"{}\"", meta.name);
        let flow = if meta.name == "dctcp" {
            format!("{flow}\ntransport = {{ ecn = \"dctcp\" }}")
        } else {
            flow
        };
        let seconds = |forward: &[u64]| {
            let case = Case {
                rtt_ms: 100,
                forward,
                reverse: &[],
                bytes: SEGMENTS * MSS,
                flow: &flow,
            };
            case.seconds()
        };
        let rounds = (seconds(&[0, 1]) - 3.0 - seconds(&[])) / 0.1;
        assert!(rounds > 1.5, "{}: {rounds} rounds", meta.name);
    }
}

/// RFC 6928 §2: the echo of the first SYN's timestamp shows that the retransmission was spurious.
#[test]
fn a_late_syn_ack_for_the_first_syn_keeps_the_initial_window() {
    for timestamps in [true, false] {
        let flow = format!("transport = {{ timestamps = {timestamps} }}");
        let case = Case {
            rtt_ms: 2_500,
            forward: &[],
            reverse: &[],
            bytes: SEGMENTS * MSS,
            flow: &flow,
        };
        let seconds = case.seconds();
        if timestamps {
            near(seconds, 2.5 * 1.5);
        } else {
            assert!(seconds > 2.5 * 3.5, "{seconds} s");
        }
    }
}

/// RFC 6298 (5.7); measured on Linux 6.18 with and without timestamps and probes.
#[test]
fn the_timeout_after_a_lost_syn_follows_the_measurements() {
    for (stack, timestamps, tlp, wait) in [
        ("linux", true, true, 0.3),
        ("linux", true, false, 0.3),
        ("linux", false, true, 1.0),
        ("linux", false, false, 3.0),
        ("rfc", true, false, 3.0),
        ("rfc", false, false, 3.0),
    ] {
        let tlp = if stack == "linux" {
            format!(", tlp = {tlp}")
        } else {
            String::new()
        };
        let flow = format!("stack = \"{stack}\"\ntransport = {{ timestamps = {timestamps}{tlp} }}");
        let case = Case {
            rtt_ms: 100,
            // The SYN is lost; another SYN and an acknowledgment get through; the data is lost.
            forward: if stack == "linux" { &[0, 3] } else { &[0, 2] },
            reverse: &[],
            bytes: 1000,
            flow: &flow,
        };
        // Timers of two seconds and more end at a multiple of 256 ms in Linux.
        let coarse = if stack == "linux" && wait >= 2.0 {
            0.256
        } else {
            0.0
        };
        let seconds = case.seconds();
        assert!(
            (1.14 + wait..1.17 + wait + coarse).contains(&seconds),
            "{stack}: {seconds} s"
        );
    }
}

#[test]
fn a_lost_syn_ack_is_retransmitted_by_timer_and_by_syn() {
    // By the timer and by the second SYN a second later; then by each SYN.
    for (lost, at) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)] {
        let reverse: Vec<u64> = (0..lost).collect();
        let case = Case {
            rtt_ms: 100,
            forward: &[],
            reverse: &reverse,
            bytes: 1000,
            flow: "",
        };
        near(case.seconds(), f64::from(at) + 0.15);
    }
}

fn ending(path: &str, flow: &str, seconds: u64) -> (Value, Option<f64>) {
    let text = format!(
        "duration = \"{seconds} s\"\n[link.path]\nbetween = [\"A\", \"B\"]\nrate = \"1 Gbit/s\"\n{path}\n[flow.f]\nfrom = \"A\"\nto = \"B\"\n{flow}\n"
    );
    let flow = run(&text);
    (flow["ended"].clone(), flow["ended_at_s"].as_f64())
}

#[test]
fn an_unanswered_connection_gives_up() {
    for (stack, at) in [("linux", 131.0), ("rfc", 123.0)] {
        let (ended, when) = ending(
            "delay = \"5 ms\"\nup = false",
            &format!("stack = \"{stack}\""),
            200,
        );
        assert_eq!(ended, "gave-up");
        near(when.expect("it ended"), at);
    }
}

/// Linux's `tcpi_total_rto` counts the timeouts that retransmit, not the last one, at which the
/// connection gives up.
#[test]
fn the_last_timeout_of_an_abandoned_connection_does_not_count() {
    for (stack, retransmissions) in [("linux", 10), ("rfc", 6)] {
        let text = format!(
            "duration = \"200 s\"\n[link.path]\nbetween = [\"A\", \"B\"]\ndelay = \"5 ms\"\nup = false\n[flow.f]\nfrom = \"A\"\nto = \"B\"\nstack = \"{stack}\"\n"
        );
        let flow = run(&text);
        assert_eq!(flow["ended"], "gave-up", "{stack}");
        assert_eq!(flow["retransmitted_packets"], retransmissions, "{stack}");
        assert_eq!(flow["timeouts"], retransmissions, "{stack}");
    }
}

/// RFC 9293 §3.10.4: a close in SYN-SENT deletes the connection. Detects SYNs after the stop, which
/// open a connection once they get through.
#[test]
fn a_stop_before_the_connection_is_open_ends_the_flow() {
    let back =
        "delay = \"5 ms\"\nup = false\n[[at]]\ntime = \"10 s\"\nset = { \"link.path.up\" = true }";
    for workload in [
        "",
        "workload = { kind = \"paced\", rate = \"1 Mbit/s\" }",
        "workload = { kind = \"file\", size = \"1 MB\" }",
        "workload = { kind = \"request-response\", request = \"100 bytes\", response = \"10 kB\" }",
    ] {
        let flow = format!("stop = \"2.5 s\"\n{workload}");
        let expected = (Value::from("gave-up"), Some(2.5));
        assert_eq!(ending(back, &flow, 100), expected, "{workload}");
        let text = format!(
            "duration = \"100 s\"\n[link.path]\nbetween = [\"A\", \"B\"]\nrate = \"1 Gbit/s\"\n{back}\n[flow.f]\nfrom = \"A\"\nto = \"B\"\n{flow}\n"
        );
        let flow = run(&text);
        // For requests, the receiving end opens the connection.
        let opens = u64::from(!workload.contains("request"));
        assert_eq!(flow["retransmitted_packets"], 2 * opens, "{workload}");
        assert_eq!(flow["delivered_bytes"], 0, "{workload}");
    }
}

/// RFC 9293 §3.10.7.4. The tenth retransmission of the SYN arrives 32 s after the ninth, when the
/// listener gives up. Detects a listener whose expiring timer discards the SYN.
#[test]
fn a_syn_at_the_expiry_of_the_listener_is_answered() {
    let one_way = "[[at]]\ntime = \"0.005 s\"\nset = { \"link.path.reverse.up\" = false }\n[[at]]\ntime = \"62 s\"\nset = { \"link.path.reverse.up\" = true }";
    let file = "workload = { kind = \"file\", size = \"10 kB\" }";
    for (stack, delay, at) in [("linux", 10, 67.0), ("linux", 100, 67.0), ("rfc", 10, 63.0)] {
        let path = format!("delay = \"{delay} ms\"\n{one_way}");
        let (ended, when) = ending(&path, &format!("stack = \"{stack}\"\n{file}"), 140);
        assert_eq!(ended, "completed", "{stack}, {delay} ms");
        near(when.expect("it ended"), at + 0.003 * f64::from(delay));
    }
}

/// Linux compares a time, not a number: 924.6 s, independent of the first timeout. The first of 51
/// ticks of 4 ms doubles to 104.4 s, then come six of 120 s: 928.7 s, and up to an eighth of some of
/// them.
#[test]
fn a_dead_path_is_abandoned_by_elapsed_time() {
    let dead = "delay = \"25 us\"\n[[at]]\ntime = \"2.55 s\"\nset = { \"link.path.up\" = false }";
    for (transport, least, most) in [
        ("{ min_rto = \"1 s\" }", 960.0, 980.0),
        ("{}", 928.0, 948.0),
        ("{ retries = 5 }", 14.0, 16.0),
        (
            "{ timers = \"linux-2.6\", min_rto = \"1 s\" }",
            1_200.0,
            1_220.0,
        ),
    ] {
        let flow = format!(
            "transport = {transport}\nworkload = {{ kind = \"paced\", rate = \"80 bit/s\", payload = \"1 bytes\" }}"
        );
        let (ended, when) = ending(dead, &flow, 1_500);
        assert_eq!(ended, "gave-up", "{transport}");
        let when = when.expect("it ended");
        assert!((least..most).contains(&when), "{transport}: {when} s");
    }
}

#[test]
fn flows_report_whether_they_completed_or_run() {
    let path = "delay = \"5 ms\"";
    assert_eq!(ending(path, "", 1), (Value::from("running"), None));
    assert_eq!(
        ending(path, "stop = \"0.5 s\"", 1),
        (Value::from("completed"), Some(0.5))
    );
    let file = "stop = \"0.5 s\"\nworkload = { kind = \"file\", size = \"1 GB\" }";
    assert_eq!(ending(path, file, 1), (Value::from("running"), None));
    // Datagrams and workloads with several transfers have no single outcome.
    let udp = "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"1 Mbit/s\" }";
    assert_eq!(ending(path, udp, 1), (Value::Null, None));
    let many = "workload = { kind = \"poisson\", rate = \"1 Mbit/s\", sizes = { kind = \"fixed\", size = \"10 kB\" } }";
    assert_eq!(ending(path, many, 1), (Value::Null, None));
}
