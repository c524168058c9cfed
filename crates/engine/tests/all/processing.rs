//! What hosts take: `processing_jitter`, a random time over each packet, `read_delays`, the time until data is read, and
//! `first_write_delays`, the time until it is first written.

use crate::support::{Shape, resolve, text};
use anabranch_core::{body::Length, units::Duration};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::Resolved;
use serde_json::Value;

/// Two pairs of hosts that share nothing.
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

/// Also where routes share a host, packets are doubled and links change.
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
fn none_is_as_before() {
    let none = format!("{APART}\n{}", jitter("S0", "0 s"));
    assert_eq!(run(&none).summary.digest, run(APART).summary.digest);
}

/// Hosts draw from streams of their own: who else draws, and how often, changes nothing.
#[test]
fn one_host_does_not_change_anothers_luck() {
    let one = run(&format!("{APART}\n{}", jitter("S0", "5 ms")));
    let two = run(&format!(
        "{APART}\n{}{}",
        jitter("S0", "5 ms"),
        jitter("S1", "5 ms")
    ));
    assert_eq!(flow(&one, "zero"), flow(&two, "zero"));
    assert_ne!(flow(&one, "one"), flow(&two, "one"));
    // Nor are the two alike, although their paths are.
    assert_ne!(
        flow(&two, "zero")["mean_srtt_ms"],
        flow(&two, "one")["mean_srtt_ms"]
    );
    assert_eq!(
        flow(&run(APART), "zero")["mean_srtt_ms"],
        flow(&run(APART), "one")["mean_srtt_ms"]
    );
}

/// Packets leave late, at most by the longest time and on average by half of it, and in order.
#[test]
fn packets_are_late_and_in_order() {
    // One packet of one segment after the other is in flight: none waits for another.
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
    // 2 ms there and 1 ms back; 4,300 round trips, standard deviation 1.3 ms: five standard errors are 0.1 ms.
    assert!((late - 3.0).abs() < 0.1, "{late} ms");

    let crowd = format!("{APART}\n{}", jitter("S0", "20 ms"));
    let reordering = |run: &Finished| flow(run, "zero")["reordering"]["reordered_packets"].as_u64();
    let crowd = run(&crowd);
    assert_eq!(reordering(&crowd), Some(0), "{}", flow(&crowd, "zero"));
    assert!(flow(&crowd, "zero")["delivered_bytes"].as_u64() > Some(1_000_000));
}

/// A packet that has not left when the run ends was not sent to the link.
#[test]
fn a_time_longer_than_the_run_is_no_error() {
    let never = format!("{APART}\n{}", jitter("S0", "1000 h"));
    let run = run(&never);
    assert_eq!(flow(&run, "zero")["goodput_mbit_s"].as_f64(), Some(0.0));
    assert!(run.network.end().as_picos() >= Duration::from_secs(3).as_picos());
}

fn reads(host: &str, delays: &str) -> String {
    format!("[host.{host}]\nread_delays = [{delays}]\n")
}

/// A file of ten windows: each is read so late, and the sender hears of the room as late.
#[test]
fn a_window_that_is_read_late_opens_late() {
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
    // Ten windows, each read 5 ms after it has come; the last one's reader is waited for, too.
    let late = took(&format!("{lonely}\n{}", reads("D", "\"5 ms\""))) - took(lonely);
    assert!((late - 0.05).abs() < 1e-6, "{late}");
    // The mean of 2 and 6 ms is 4 ms; ten draws are of both.
    let drawn = took(&format!("{lonely}\n{}", reads("D", "\"2 ms\", \"6 ms\""))) - took(lonely);
    assert!(drawn > 0.02 && drawn < 0.06, "{drawn}");
    assert!(
        (drawn / 0.004).fract().min(1.0 - (drawn / 0.004).fract()) < 1e-3,
        "{drawn}"
    );
}

/// A reader whose last read was 10 ms ago takes longer than one that goes on. Fails for one list in both cases.
#[test]
fn a_reader_that_has_waited_takes_longer() {
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
    // Ten windows, a round trip from a read to the next data: more than 10 ms and each is read after a pause, less and the first
    // is, as nothing was read before.
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

/// Each connection's first data leaves so late.
#[test]
fn what_is_first_written_late_leaves_late() {
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
    // Told to stop before, it writes at once and closes, as one does that has written already.
    let stopped = |delays: &str| {
        let stop = file.replace("workload =", "stop = \"30 ms\", workload =");
        run(&format!("{stop}\n{delays}"))
    };
    for delays in [String::new(), first_writes("S", "\"15 ms\"")] {
        let sent = &stopped(&delays).summary.links["a"]["forward"]["sent_packets"];
        // A SYN and ten segments at least.
        assert!(sent.as_u64() >= Some(11), "{delays}{sent}");
    }

    // Every transfer draws: those of two times are there as often, as far as chance has it.
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

/// The fast path changes nothing where the host at an `end` of a flow is `late`, also where packets are doubled, overtaken and lost.
/// How many of 100 scenarios that was felt in.
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

/// The flow's own stream: who else reads late changes nothing.
#[test]
fn one_reader_does_not_change_anothers_luck() {
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
