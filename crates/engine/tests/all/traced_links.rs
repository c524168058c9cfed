//! Links whose delay or rate follows a trace, and links that change repeatedly.

use std::path::Path;

use anabranch_core::{
    body::Length,
    units::{Duration, Instant},
};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// One packet of 1,250 bytes per millisecond, for two seconds.
fn scenario(link: &str, at: &str) -> String {
    format!(
        "duration = \"3 s\"\n{at}\n[link.lan]\nbetween = [\"A\", \"R\"]\nrate = \"1 Gbit/s\"\n\
         [link.wan]\nbetween = [\"R\", \"B\"]\n{link}\n\
         [flow.main]\nfrom = \"A\"\nto = \"B\"\nprotocol = \"udp\"\nstop = \"2 s\"\n\
         workload = {{ kind = \"paced\", rate = \"10 Mbit/s\", payload = \"1222 bytes\" }}\n"
    )
}

fn run(text: &str, files: &'static [(&'static str, &'static str)], fast: bool) -> Finished {
    let extensions = Extensions::default().files(|path: &Path, _| {
        let name = path.to_string_lossy();
        let file = files.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| "no such file".to_owned())
    });
    let resolved = Scenario::parse(text, "test.toml", &extensions)
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .fast_path(fast)
        .packet_log(true)
        .run()
        .expect("no hosts")
}

/// The times at which each packet was sent and received.
fn times(run: &mut Finished) -> Vec<(Instant, Option<Instant>)> {
    let log = run.network.probe().log().expect("a log is kept");
    log.rows().map(|row| (row.sent, row.received)).collect()
}

const DROP: &[(&str, &str)] = &[("delays", "0 50\n1 10\n2 10")];
const TRACED: &str = "delay = { kind = \"trace\", file = \"delays\" }";

#[test]
fn packets_have_the_delay_of_their_departure() {
    let mut run = run(
        &scenario(&format!("rate = \"1 Gbit/s\"\n{TRACED}"), ""),
        DROP,
        true,
    );
    let serialization = Duration::from_micros(20);
    for (sent, received) in times(&mut run) {
        let received = received.expect("nothing is lost");
        let late = if sent < Instant::from_millis(1_000) {
            50
        } else {
            10
        };
        let due = sent + serialization + Duration::from_millis(late);
        // The last packet sent before the delay fell arrives at 1.05 s; later packets wait for it.
        let due = if sent < Instant::from_millis(1_000) {
            due
        } else {
            due.max(Instant::from_millis(1_050))
        };
        let off = received
            .saturating_since(due)
            .max(due.saturating_since(received));
        assert!(
            off < Duration::from_millis(2),
            "{sent:?} {received:?} {due:?}"
        );
    }
}

#[test]
fn order_is_kept_unless_the_link_permits_overtaking() {
    for (link, at) in [
        (TRACED, ""),
        (
            "delay = \"50 ms\"",
            "[[at]]\ntime = \"1 s\"\nset = { \"link.wan.delay\" = \"10 ms\" }",
        ),
    ] {
        let link = format!("rate = \"1 Gbit/s\"\n{link}");
        let kept = run(&scenario(&link, at), DROP, true);
        let figure = |run: &Finished| {
            let value = &run.summary.links["wan"]["forward"]["reordered_packets"];
            value.as_u64().expect("a count")
        };
        assert_eq!(figure(&kept), 0);
        let overtaking = run(
            &scenario(&format!("{link}\novertake = true"), at),
            DROP,
            true,
        );
        // Each of the 40 packets sent in the last 40 ms before the change is overtaken.
        assert!(
            (38..=41).contains(&figure(&overtaking)),
            "{}",
            figure(&overtaking)
        );
    }
}

#[test]
fn a_trace_of_one_value_equals_a_constant() {
    const CONSTANT: &[(&str, &str)] =
        &[("both", "0,8,25\n0.3,8,25\n"), ("delays", "0 25\n0.1 25\n")];
    let fixed = "rate = \"8 Mbit/s\"\ndelay = \"25 ms\"\nqueue = { kind = \"drop-tail\", limit = \"30 packets\" }";
    let mut plain = run(&scenario(fixed, ""), CONSTANT, true);
    let queue = "queue = { kind = \"drop-tail\", limit = \"30 packets\" }";
    for link in [
        format!("rate = \"8 Mbit/s\"\n{TRACED}\n{queue}"),
        format!("service = {{ kind = \"trace\", file = \"both\" }}\n{queue}"),
    ] {
        for fast in [true, false] {
            let mut traced = run(&scenario(&link, ""), CONSTANT, fast);
            assert_eq!(times(&mut traced), times(&mut plain), "{link}");
            assert_eq!(traced.summary.digest, plain.summary.digest, "{link}");
        }
    }
}

#[test]
fn throughput_follows_a_rate_trace() {
    const RATES: &[(&str, &str)] = &[(
        "rates",
        "time_s,rate_mbit_s\n0,4\n0.5,0\n0.75,8\n1,0\n1.25,0\n",
    )];
    for (repeat, bits) in [("false", 4e6), ("true", 8e6)] {
        let link = format!(
            "service = {{ kind = \"trace\", file = \"rates\", repeat = {repeat} }}\ndelay = \"1 ms\""
        );
        let run = run(&scenario(&link, ""), RATES, true);
        let sent = run.summary.links["wan"]["forward"]["sent_packets"]
            .as_f64()
            .expect("a count");
        // A round takes 1.5 s; the second begins within the run.
        let carried = sent * 10_000.0;
        assert!(
            (carried - bits).abs() <= 20_000.0,
            "{repeat}: {carried} {bits}"
        );
    }
}

#[test]
fn losses_and_queues_follow_changes() {
    let at = "[[at]]\ntime = \"0.5 s\"\nset = { \"link.wan.forward.impair.0.rate\" = 1 }\n\
              [[at]]\ntime = \"1 s\"\nset = { \"link.wan.forward.impair.0.rate\" = 0 }\n";
    let link = "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nforward.impair = [{ kind = \"bernoulli-loss\", rate = 0 }]";
    let mut lossy = run(&scenario(link, at), &[], true);
    // An impairment judges a packet at the far end, after the delay.
    let is_lost = |sent: Instant| (499..999).contains(&(sent.as_picos() / 1_000_000_000));
    let wrong = times(&mut lossy)
        .iter()
        .filter(|(sent, received)| received.is_none() != is_lost(*sent))
        .count();
    assert!(wrong <= 4, "{wrong} packets");
    // A CoDel with a distant target drops no packet; from half of the run on it has an effective
    // one.
    let at = "[[at]]\ntime = \"1 s\"\nset = { \"link.wan.queue.target\" = \"5 ms\", \"link.wan.queue.interval\" = \"20 ms\" }";
    let link = "rate = \"9.5 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { kind = \"codel\", target = \"10 s\", interval = \"20 s\" }";
    let dropped = |at: &str| {
        let run = run(&scenario(link, at), &[], true);
        run.summary.links["wan"]["forward"]["dropped_packets"]
            .as_u64()
            .expect("a count")
    };
    assert_eq!(dropped(""), 0);
    assert!(dropped(at) > 0);
}
