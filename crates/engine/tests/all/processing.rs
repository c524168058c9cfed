//! Delays of hosts: `processing_jitter`, a random time per packet, `read_delays`, the time until
//! data is read, and `first_write_delays`, the time until the first write.

use crate::support::{Shape, resolve, text};
use anabranch_core::{body::Length, units::Duration};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::Resolved;
use serde_json::Value;

/// Two separate pairs of hosts.
const APART: &str = r#"
duration = "3 s"
link.a = { between = ["S0", "D0"], rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "50 packets" } }
link.b = { between = ["S1", "D1"], rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "50 packets" } }
flow.zero = { from = "S0", to = "D0", cc = "reno", stack = "rfc" }
flow.one = { from = "S1", to = "D1", cc = "reno", stack = "rfc" }
"#;

fn run(text: &str) -> Finished {
    Simulation::<Length>::new(&resolve(text))
        .run()
        .expect("no hosts")
}

fn digest(resolved: &Resolved, fast: bool) -> Option<String> {
    let run = Simulation::<Length>::new(resolved)
        .fast_path(fast)
        .run()
        .expect("no hosts");
    run.summary.digest
}

fn jitter(host: &str, longest: &str) -> String {
    format!("[host.{host}]\nprocessing_jitter = \"{longest}\"\n")
}

fn flow<'a>(run: &'a Finished, name: &str) -> &'a Value {
    &run.summary.flows[name]
}

/// Includes routes that share a host, duplicates and changes of links.
#[test]
fn the_fast_path_changes_nothing() {
    let mut others = 0;
    for number in 0..200 {
        let shape = Shape {
            files_only: false,
            changes: true,
            mangle: true,
            seconds: 1,
        };
        let plain = text(number, shape);
        let jittered = format!(
            "{plain}\n{}{}",
            jitter("S0", "2 ms"),
            jitter("D0", "300 us")
        );
        let resolved = resolve(&jittered);
        let fast = digest(&resolved, true);
        assert_eq!(
            fast,
            digest(&resolved, false),
            "scenario {number}\n{jittered}"
        );
        others += usize::from(run(&plain).summary.digest != fast);
    }
    assert!(others > 190, "jitter was felt in {others} of 200 only");
}

#[test]
fn threads_change_nothing() {
    let text = format!("{APART}\n{}{}", jitter("S0", "5 ms"), jitter("D1", "1 ms"));
    let alone = run(&text).summary.digest;
    std::thread::scope(|scope| {
        let runs = [(); 4].map(|()| scope.spawn(|| run(&text).summary.digest));
        for run in runs {
            assert_eq!(run.join().expect("no panic"), alone);
        }
    });
}

#[test]
fn zero_jitter_changes_nothing() {
    let none = format!("{APART}\n{}", jitter("S0", "0 s"));
    assert_eq!(run(&none).summary.digest, run(APART).summary.digest);
}

/// Hosts have separate random streams: draws of another host have no effect.
#[test]
fn hosts_have_independent_random_streams() {
    let one = run(&format!("{APART}\n{}", jitter("S0", "5 ms")));
    let two = run(&format!(
        "{APART}\n{}{}",
        jitter("S0", "5 ms"),
        jitter("S1", "5 ms")
    ));
    assert_eq!(flow(&one, "zero"), flow(&two, "zero"));
    assert_ne!(flow(&one, "one"), flow(&two, "one"));
    // The two differ, although their paths are equal.
    assert_ne!(
        flow(&two, "zero")["mean_srtt_ms"],
        flow(&two, "one")["mean_srtt_ms"]
    );
    assert_eq!(
        flow(&run(APART), "zero")["mean_srtt_ms"],
        flow(&run(APART), "one")["mean_srtt_ms"]
    );
}

/// Packets are delayed, at most by the longest time and on average by half of it, and stay in
/// order.
#[test]
fn packets_are_delayed_and_in_order() {
    // One packet of one segment at a time is in flight: none waits for another.
    let lonely = r#"
duration = "100 s"
link.a = { between = ["S", "D"], rate = "1 Gbit/s", delay = "10 ms" }
flow.main = { from = "S", to = "D", cc = "reno", stack = "rfc", transport.receive_window = "1460 B", transport.delayed_ack = "off" }
"#;
    let rtt = |text: &str| {
        flow(&run(text), "main")["mean_srtt_ms"]
            .as_f64()
            .expect("a number")
    };
    let both = format!("{lonely}\n{}{}", jitter("S", "4 ms"), jitter("D", "2 ms"));
    let late = rtt(&both) - rtt(lonely);
    // 2 ms there and 1 ms back; 4,300 round trips, standard deviation 1.3 ms: five standard errors
    // are 0.1 ms.
    assert!((late - 3.0).abs() < 0.1, "{late} ms");

    let crowd = format!("{APART}\n{}", jitter("S0", "20 ms"));
    let reordering = |run: &Finished| flow(run, "zero")["reordering"]["reordered_packets"].as_u64();
    let crowd = run(&crowd);
    assert_eq!(reordering(&crowd), Some(0), "{}", flow(&crowd, "zero"));
    assert!(flow(&crowd, "zero")["delivered_bytes"].as_u64() > Some(1_000_000));
}

/// A packet still in its host at the end of the run was not sent to the link.
#[test]
fn a_processing_time_longer_than_the_run_is_valid() {
    let never = format!("{APART}\n{}", jitter("S0", "1000 h"));
    let run = run(&never);
    assert_eq!(flow(&run, "zero")["goodput_mbit_s"].as_f64(), Some(0.0));
    assert!(run.network.end().as_picos() >= Duration::from_secs(3).as_picos());
}

fn reads(host: &str, delays: &str) -> String {
    format!("[host.{host}]\nread_delays = [{delays}]\n")
}

/// A file of ten windows: each is read with the delay, and the window update is delayed
/// accordingly.
#[test]
fn a_late_read_delays_the_window_update() {
    let lonely = r#"
duration = "100 s"
link.a = { between = ["S", "D"], rate = "1 Gbit/s", delay = "10 ms" }
flow.main = { from = "S", to = "D", cc = "reno", stack = "rfc", workload = { kind = "file", size = "14480 B" }, transport = { receive_window = "1448 B", delayed_ack = "off", timestamps = false } }
"#;
    let took = |text: &str| {
        flow(&run(text), "main")["flow_completion_time_s"]
            .as_f64()
            .expect("a number")
    };
    // Ten windows, each read 5 ms after its arrival, including the last one.
    let late = took(&format!("{lonely}\n{}", reads("D", "\"5 ms\""))) - took(lonely);
    assert!((late - 0.05).abs() < 1e-6, "{late}");
    // The mean of 2 and 6 ms is 4 ms; ten draws contain both.
    let drawn = took(&format!("{lonely}\n{}", reads("D", "\"2 ms\", \"6 ms\""))) - took(lonely);
    assert!(drawn > 0.02 && drawn < 0.06, "{drawn}");
    assert!(
        (drawn / 0.004).fract().min(1.0 - (drawn / 0.004).fract()) < 1e-3,
        "{drawn}"
    );
}

/// A reader idle for 10 ms takes longer than an active one. Detects one list used in both cases.
#[test]
fn an_idle_reader_takes_longer() {
    let took = |delay: &str, host: &str| {
        let text = format!(
            r#"
duration = "100 s"
link.a = {{ between = ["S", "D"], rate = "1 Gbit/s", delay = "{delay}" }}
flow.main = {{ from = "S", to = "D", cc = "reno", stack = "rfc", workload = {{ kind = "file", size = "14480 B" }}, transport = {{ receive_window = "1448 B", delayed_ack = "off", timestamps = false }} }}
{host}"#
        );
        flow(&run(&text), "main")["flow_completion_time_s"]
            .as_f64()
            .expect("a number")
    };
    let both = "[host.D]\nread_delays = [\"1 ms\"]\nidle_read_delays = [\"3 ms\"]\n";
    let alone = "[host.D]\nidle_read_delays = [\"3 ms\"]\n";
    // Ten windows, and a round trip from a read to the next data. With more than 10 ms every window
    // is read after a pause; with less only the first is, because there was no read before it.
    for (delay, host, late_ms) in [
        ("10 ms", both, 30.0),
        ("5.1 ms", both, 30.0),
        ("4.9 ms", both, 12.0),
        ("2 ms", both, 12.0),
        ("2 ms", alone, 3.0),
    ] {
        let late = 1e3 * (took(delay, host) - took(delay, ""));
        assert!((late - late_ms).abs() < 1e-3, "{delay}, {host}: {late} ms");
    }
}

fn first_writes(host: &str, delays: &str) -> String {
    format!("[host.{host}]\nfirst_write_delays = [{delays}]\n")
}

/// The first data of each connection is delayed.
#[test]
fn a_late_first_write_delays_the_first_data() {
    let flow_of = |workload: &str| {
        format!(
            r#"
duration = "20 s"
link.a = {{ between = ["S", "D"], rate = "1 Gbit/s", delay = "10 ms" }}
flow.main = {{ from = "S", to = "D", cc = "reno", stack = "rfc", workload = {workload} }}
"#
        )
    };
    let file = flow_of(r#"{ kind = "file", size = "14480 B" }"#);
    let took = |text: &str| {
        flow(&run(text), "main")["flow_completion_time_s"]
            .as_f64()
            .expect("a number")
    };
    let late = took(&format!("{file}\n{}", first_writes("S", "\"5 ms\""))) - took(&file);
    assert!((late - 0.005).abs() < 1e-9, "{late}");
    // If stopped earlier, the application writes at once and closes, like one that has already
    // written.
    let stopped = |delays: &str| {
        let stop = file.replace("workload =", "stop = \"30 ms\", workload =");
        run(&format!("{stop}\n{delays}"))
    };
    for delays in [String::new(), first_writes("S", "\"15 ms\"")] {
        let sent = &stopped(&delays).summary.links["a"]["forward"]["sent_packets"];
        // A SYN and at least ten segments.
        assert!(sent.as_u64() >= Some(11), "{delays}{sent}");
    }

    // Every transfer draws a delay: two values occur equally often, within chance.
    let many = flow_of(
        r#"{ kind = "poisson", rate = "200 kbit/s", sizes = { kind = "fixed", size = "1448 B" } }"#,
    );
    let mean = |text: &str| {
        flow(&run(text), "main")["transfers"]["mean_completion_time_s"]
            .as_f64()
            .expect("a number")
    };
    let both = first_writes("S", "\"2 ms\", \"6 ms\"");
    let late = mean(&format!("{many}\n{both}")) - mean(&many);
    assert!(late > 0.0035 && late < 0.0045, "{late}");
}

/// Checks that the fast path changes nothing with the host at an `end` of a flow `late`, including
/// duplicates, reordering and loss. Returns the number of 100 scenarios in which the delays had an
/// effect.
fn scenarios_that_feel(end: &str, late: impl Fn(&str) -> String) -> usize {
    let felt = |number| {
        let shape = Shape {
            files_only: true,
            changes: true,
            mangle: true,
            seconds: 1,
        };
        let plain = text(number, shape);
        let name = plain.split(&format!("{end} = \"")).nth(1);
        let host = name.expect("there is a flow").split('"').next();
        let late = format!("{plain}\n{}", late(host.expect("a name")));
        let resolved = resolve(&late);
        let with = digest(&resolved, true);
        assert_eq!(with, digest(&resolved, false), "scenario {number}\n{late}");
        run(&plain).summary.digest != with
    };
    (0..100).filter(|number| felt(*number)).count()
}

#[test]
fn the_fast_path_changes_nothing_for_late_writers() {
    let late = |host: &str| first_writes(host, "\"0 s\", \"40 us\", \"3 ms\"");
    let felt = scenarios_that_feel("from", late);
    assert!(felt > 40, "late writers were felt in {felt} of 100 only");
}

#[test]
fn the_fast_path_changes_nothing_for_late_readers() {
    let late = |host: &str| reads(host, "\"0 s\", \"40 us\", \"3 ms\"");
    let felt = scenarios_that_feel("to", late);
    assert!(felt > 70, "late reads were felt in {felt} of 100 only");
}

/// Flows have separate random streams: another late reader has no effect.
#[test]
fn readers_have_independent_random_streams() {
    let delays = "\"10 us\", \"5 ms\"";
    let one = run(&format!("{APART}\n{}", reads("D0", delays)));
    let two = run(&format!(
        "{APART}\n{}{}",
        reads("D0", delays),
        reads("D1", delays)
    ));
    assert_eq!(flow(&one, "zero"), flow(&two, "zero"));
    assert_ne!(flow(&one, "one"), flow(&two, "one"));
}
