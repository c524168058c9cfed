//! The gateway's tunnel under TCP and UDP: the goodput of its flows, and the constraints on its
//! packets.

use std::fmt::Write;

use anabranch_core::{
    body::Length,
    rng::{Draw, Stream},
};
use anabranch_engine::{
    Finished, Simulation,
    network::Census,
    topology::{Engine, compile},
};
use serde_json::Value;

use crate::support::resolve;

/// Two equal paths and a file over the tunnel; `STACK` is replaced.
const PAIR: &str = r#"
duration = "30 s"
[link.a]
between = ["X", "Y"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "100 packets" }
[link.b]
between = ["X", "Y"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "100 packets" }
[gateway.g]
between = ["X", "Y"]
routes = ["a", "b"]
kind = "tunnel"
[flow.main]
from = "X"
to = "Y"
start = "1 s"
stack = "STACK"
cc = "cubic"
workload = { kind = "file", size = "12 MB" }
"#;

/// The scenario with this stack, and further tables.
fn pair(stack: &str, more: &str) -> String {
    PAIR.replace("STACK", stack) + more
}

fn run(text: &str) -> Finished<Length> {
    let resolved = resolve(text);
    Simulation::<Length>::new(&resolved)
        .run()
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number `{key}` in {value}"))
}

/// Checks that the tunnel delivers no packet twice, and none that did not enter.
fn check_matched(finished: &Finished<Length>, text: &str) {
    for way in ["forward", "reverse"] {
        let way = &finished.summary.gateways["g"][way];
        assert_eq!(way["unmatched_packets"], 0, "{way}\n{text}");
        assert!(
            number(way, "released_packets") <= number(way, "entered_packets"),
            "{way}\n{text}"
        );
    }
}

/// The goodput of a file over a single path, with the other path down throughout.
fn single(stack: &str) -> f64 {
    let text = pair(stack, "").replacen("queue", "up = false\nqueue", 1);
    number(&run(&text).summary.flows["main"], "goodput_mbit_s")
}

#[test]
fn one_flow_has_at_least_the_goodput_of_a_single_path() {
    for (stack, least) in [("linux", 1.1), ("rfc", 0.97)] {
        let finished = run(&pair(stack, ""));
        let flow = &finished.summary.flows["main"];
        check_matched(&finished, stack);
        assert_eq!(flow["ended"], "completed", "{flow}");
        let (goodput, single) = (number(flow, "goodput_mbit_s"), single(stack));
        assert!(goodput > least * single, "{stack}: {goodput}, {single}");
    }
}

#[test]
fn the_failure_of_a_path_does_not_end_the_flow() {
    for (dies, returns) in [(2_500, 30_000), (1_700, 6_000)] {
        let more = format!(
            "[[at]]\ntime = \"{dies} ms\"\nset = {{ \"link.a.up\" = false }}\n\
             [[at]]\ntime = \"{returns} ms\"\nset = {{ \"link.a.up\" = true }}\n"
        );
        let text = pair("linux", &more).replace("30 s", "60 s");
        let finished = run(&text);
        let flow = &finished.summary.flows["main"];
        let forward = &finished.summary.gateways["g"]["forward"];
        check_matched(&finished, &text);
        assert_eq!(flow["ended"], "completed", "{flow}\n{forward}");
        assert!(
            number(&forward["routes"]["a"], "deaths") >= 1.0,
            "{forward}"
        );
        assert!(number(forward, "silent_ms") < 1_000.0, "{forward}");
    }
}

/// Detects a log that misses the drops in the tunnel's queue.
/// A link without carrier keeps its queue, as a modem does. Packets of the outage arrive late or are
/// lost. If they counted as the path's delay or loss, a direction with few packets, such as that of
/// acknowledgments, would never return to the path.
#[test]
fn both_directions_return_to_a_path_after_its_outage() {
    let paths = r#"
duration = "17 s"
warmup = "11 s"
[link.fast]
between = ["X", "Y"]
delay = "8 ms"
forward = { rate = "40 Mbit/s", queue = { kind = "drop-tail", limit = "500000 bytes" } }
reverse = { rate = "60 Mbit/s", queue = { kind = "drop-tail", limit = "750000 bytes" } }
[link.slow]
between = ["X", "Y"]
rate = "10 Mbit/s"
delay = "40 ms"
queue = { kind = "drop-tail", limit = "125000 bytes" }
[gateway.g]
between = ["X", "Y"]
routes = ["fast", "slow"]
kind = "tunnel"
[[at]]
time = "5 s"
set = { "link.fast.up" = false }
[[at]]
time = "9 s"
set = { "link.fast.up" = true }
"#;
    for (from, to, rate) in [("X", "Y", 40.0), ("Y", "X", 60.0)] {
        let flow = format!("[flow.main]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"1 s\"\n");
        let finished = run(&format!("{paths}{flow}"));
        let flow = &finished.summary.flows["main"];
        let goodput = number(flow, "goodput_mbit_s");
        assert!(
            goodput > 0.8 * rate,
            "{from} to {to}: {goodput} of {rate} Mbit/s"
        );
    }
}

#[test]
fn packets_dropped_by_the_tunnel_are_lost_at_the_gateway() {
    let resolved = resolve(&pair("linux", ""));
    let mut run = Simulation::<Length>::new(&resolved)
        .packet_log(true)
        .run()
        .expect("no hosts");
    let log = run.network.log_mut().expect("packets are logged");
    let needed = log.needed();
    let repeated = log
        .rows()
        .zip(&needed)
        .filter(|(row, _)| row.retransmission);
    let (mut all, mut known) = (0, 0);
    for (_, needed) in repeated {
        all += 1;
        known += u32::from(needed.is_some());
    }
    assert!(all > 0, "{all}");
    assert_eq!(known, all);
}

#[test]
fn a_tunnel_run_repeats_exactly() {
    let text = pair("linux", "").replace("12 MB", "2 MB").replacen(
        "queue",
        "impair = [{ kind = \"bernoulli-loss\", rate = 0.01 }]\nqueue",
        1,
    );
    let digest = |text: &str| run(text).summary.digest;
    let first = digest(&text);
    assert!(first.is_some());
    assert_eq!(first, digest(&text));
    let other = text.replacen("duration", "seed = 2\nduration", 1);
    assert_ne!(first, digest(&other));
}

#[test]
fn offsets_of_the_ends_clocks_change_nothing() {
    let text = pair("linux", "").replace("12 MB", "2 MB");
    let offset = text.replace(
        "kind = \"tunnel\"",
        "kind = \"tunnel\"\nclock_offset = [\"977 s\", \"123456 s\"]",
    );
    assert_ne!(text, offset);
    assert_eq!(run(&text).summary.digest, run(&offset).summary.digest);
}

#[test]
fn a_backup_path_carries_only_probes_and_reports() {
    let text = pair("linux", "").replace("12 MB", "2 MB").replace(
        "kind = \"tunnel\"",
        "kind = \"tunnel\"\npolicies = { b = \"backup\" }",
    );
    let finished = run(&text);
    assert_eq!(finished.summary.flows["main"]["ended"], "completed");
    let routes = &finished.summary.gateways["g"]["forward"]["routes"];
    assert!(number(&routes["a"], "sent_bytes") > 2e6, "{routes}");
    assert!(number(&routes["b"], "sent_bytes") < 2e5, "{routes}");
    assert_eq!(routes["b"]["state"], "standby");
}

#[test]
fn spare_paths_carry_few_probes() {
    let datagrams = |policy: &str| {
        let text = pair("linux", "").replace("12 MB", "2 MB").replace(
            "kind = \"tunnel\"",
            &format!("kind = \"tunnel\"\npolicies = {{ b = \"{policy}\" }}"),
        );
        let forward = &run(&text).summary.gateways["g"]["forward"];
        number(&forward["routes"]["b"], "sent_packets")
    };
    for policy in ["backup", "metered"] {
        let datagrams = datagrams(policy);
        assert!(datagrams < 20.0, "{policy}: {datagrams}");
    }
}

/// Datagrams of one length and no other traffic: a link carries them with the octets of seal and
/// headers.
#[test]
fn datagrams_have_their_length_on_the_wire() {
    let text = PAIR
        .replace(
            "stack = \"STACK\"\ncc = \"cubic\"\n",
            "protocol = \"udp\"\n",
        )
        .replace(
            "{ kind = \"file\", size = \"12 MB\" }",
            "{ kind = \"paced\", rate = \"LOAD\", payload = \"1000 bytes\" }",
        );
    let bytes = |load: &str| {
        let finished = run(&text.replace("LOAD", load).replace("30 s", "11 s"));
        let forward = &finished.summary.gateways["g"]["forward"];
        let sent = |key: &str| {
            ["a", "b"]
                .map(|route| number(&forward["routes"][route], key))
                .iter()
                .sum::<f64>()
        };
        (
            number(forward, "entered_packets"),
            sent("sent_packets"),
            sent("sent_bytes"),
        )
    };
    let (packets, datagrams, octets) = bytes("1 Mbit/s");
    assert!(packets > 1_000.0 && datagrams >= packets);
    // IPv4 and UDP, twice, and the tunnel's 40; probes and reports have less than twice the headers
    // of a packet.
    let own = octets - packets * (1_000.0 + 28.0 + 28.0 + 40.0);
    let others = datagrams - packets;
    assert!(own >= others * 68.0, "{packets} {datagrams} {octets}");
    assert!(own <= others * 500.0, "{packets} {datagrams} {octets}");
}

/// Two to four paths of random rate and delay, with loss, reordering, failure and recovery.
fn random(seed: u64) -> String {
    let draw = &mut Stream::new(seed, "tunnel").at(0);
    let between = |draw: &mut Draw, low: f64, high: f64| low + draw.uniform() * (high - low);
    let paths = 2 + draw.bits() % 3;
    let mut text = format!("seed = {seed}\nduration = \"40 s\"\n");
    let mut routes = Vec::new();
    for path in 0..paths {
        let (rate, delay) = (between(draw, 1e6, 3e7), between(draw, 1.0, 80.0));
        let limit = between(draw, 20.0, 200.0);
        let _ = write!(
            text,
            "[link.p{path}]\nbetween = [\"X\", \"Y\"]\nrate = \"{rate:.0} bit/s\"\ndelay = \"{delay:.3} ms\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"{limit:.0} packets\" }}\n"
        );
        let mut impair = Vec::new();
        if draw.chance(0.5) {
            let rate = between(draw, 0.0005, 0.05);
            impair.push(format!("{{ kind = \"bernoulli-loss\", rate = {rate:.5} }}"));
        }
        if draw.chance(0.3) {
            let mean = between(draw, 0.5, 10.0);
            impair.push(format!(
                "{{ kind = \"jitter\", mean = \"{mean:.3} ms\", reorder = true }}"
            ));
        }
        if draw.chance(0.2) {
            impair.push("{ kind = \"duplicate\", rate = 0.02 }".to_owned());
        }
        let _ = writeln!(text, "impair = [{}]", impair.join(", "));
        routes.push(format!("\"p{path}\""));
    }
    let _ = write!(
        text,
        "[gateway.g]\nbetween = [\"X\", \"Y\"]\nroutes = [{}]\nkind = \"tunnel\"\n",
        routes.join(", ")
    );
    // The last path stays up, so that the flow can complete.
    for path in 0..paths - 1 {
        if draw.chance(0.5) {
            let dies = between(draw, 0.2, 4.0);
            let returns = dies + between(draw, 0.1, 5.0);
            let way = ["", ".forward", ".reverse"][draw.bits() as usize % 3];
            for (time, up) in [(dies, false), (returns, true)] {
                let _ = write!(
                    text,
                    "[[at]]\ntime = \"{time:.3} s\"\nset = {{ \"link.p{path}{way}.up\" = {up} }}\n"
                );
            }
        }
    }
    let stack = ["linux", "rfc"][draw.bits() as usize % 2];
    let start = between(draw, 0.0, 1.0);
    let _ = write!(
        text,
        "[flow.main]\nfrom = \"X\"\nto = \"Y\"\nstart = \"{start:.3} s\"\nstack = \"{stack}\"\n\
         workload = {{ kind = \"file\", size = \"400 kB\" }}\n"
    );
    text
}

#[test]
fn tcp_completes_over_random_tunnels_without_duplicates() {
    let (mut repaired, mut deaths, mut duplicates) = (0.0, 0.0, 0.0);
    for seed in 0..70 {
        let text = random(seed);
        let finished = run(&text);
        let flow = &finished.summary.flows["main"];
        let forward = &finished.summary.gateways["g"]["forward"];
        assert_eq!(flow["ended"], "completed", "{flow}\n{forward}\n{text}");
        check_matched(&finished, &text);
        repaired += number(forward, "repaired_packets");
        duplicates += number(forward, "duplicates_dropped");
        let routes = forward["routes"].as_object().expect("a table");
        deaths += routes
            .values()
            .map(|route| number(route, "deaths"))
            .sum::<f64>();
    }
    // Otherwise the paths would be too good for a meaningful test.
    assert!(
        repaired > 350.0 && deaths > 17.0 && duplicates > 35.0,
        "{repaired} {deaths} {duplicates}"
    );
}

fn census(text: &str) -> Census {
    let engine = Engine {
        digest: false,
        tally: true,
        ..Engine::default()
    };
    let compiled = compile::<Length>(&resolve(text), engine, Vec::new()).expect("no hosts");
    let mut network = compiled.network;
    network.run_through(network.end());
    network.census().expect("fates are counted")
}

#[test]
fn every_packet_of_a_tunnel_is_accounted_for() {
    let (mut made, mut held) = (0, 0);
    for seed in 0..10 {
        for seconds in [9.3, 10.1] {
            let text = random(seed)
                .replace("40 s", &format!("{seconds} s"))
                .replace("400 kB", "6 MB");
            let census = census(&text);
            assert_eq!(census.missing(), 0, "{census:?}\n{text}");
            made += census.made_packets;
            held += census.held_packets;
        }
    }
    // Otherwise the paths would be too good for a meaningful test.
    assert!(made > 5_000 && held > 0, "{made} {held}");
}
