//! The purpose of queues that limit delay, tested with TCP.

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// Two CUBIC flows through 20 Mbit/s, one of 20 ms and one of 100 ms.
fn run(queue: &str, transport: &str, fast: bool) -> Finished {
    let text = format!(
        r#"
        duration = "30 s"
        warmup = "5 s"
        [link.near]
        between = ["A", "M"]
        delay = "5 ms"
        [link.far]
        between = ["B", "M"]
        delay = "45 ms"
        [link.bottleneck]
        between = ["M", "R"]
        rate = "20 Mbit/s"
        delay = "5 ms"
        forward.queue = {queue}
        [flow.near]
        from = "A"
        to = "R"
        stack = "rfc"
        cc = "cubic"
        transport = {transport}
        [flow.far]
        from = "B"
        to = "R"
        stack = "rfc"
        cc = "cubic"
        transport = {transport}
        "#
    );
    let scenario =
        Scenario::parse(&text, "queues.toml", &Extensions::default()).expect("it is TOML");
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    let run = Simulation::<Length>::new(&resolved).fast_path(fast).run();
    run.expect("no hosts")
}

fn link(run: &Finished, name: &str) -> f64 {
    run.summary.links["bottleneck"]["forward"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}"))
}

const PLAIN: &str = "{ }";
const DROP_TAIL: &str = r#"{ kind = "drop-tail", limit = "1000 packets" }"#;
const CODEL: &str = r#""codel""#;
const PIE: &str = r#""pie""#;
const FQ_CODEL: &str = r#""fq-codel""#;
const DRR: &str = r#""drr""#;

/// At most a tenth of drop-tail's delay, and at least nine tenths of its throughput. A queue that
/// never acts, or that acts on every packet, does not pass.
#[test]
fn delay_is_a_fraction_of_drop_tails_and_the_link_stays_busy() {
    let tail = run(DROP_TAIL, PLAIN, true);
    let full = link(&tail, "p95_queue_delay_ms");
    assert!(full > 200.0, "{full}");
    for queue in [CODEL, PIE, FQ_CODEL] {
        let run = run(queue, PLAIN, true);
        let delay = link(&run, "p95_queue_delay_ms");
        assert!(delay < full / 10.0, "{queue}: {delay} of {full}");
        let busy = link(&run, "utilization");
        assert!(busy > 0.9 * link(&tail, "utilization"), "{queue}: {busy}");
    }
}

/// Of a near and a far flow, the near one takes more, unless each has a separate queue.
#[test]
fn fair_queues_share_equally_between_near_and_far() {
    let jain = |queue| {
        let run = run(queue, PLAIN, true);
        run.summary.fairness.jain_index.expect("two flows")
    };
    assert!(jain(CODEL) < 0.97, "{}", jain(CODEL));
    for queue in [FQ_CODEL, DRR] {
        assert!(jain(queue) > 0.97, "{queue}: {}", jain(queue));
    }
}

/// With ECN at both ends, congestion is signalled without loss.
#[test]
fn ecn_avoids_drops() {
    for kind in ["codel", "pie", "fq-codel"] {
        let queue = format!("{{ kind = {kind:?}, ecn = true }}");
        let with = run(&queue, r#"{ ecn = "rfc3168" }"#, true);
        let without = run(&queue, PLAIN, true);
        assert!(link(&with, "marked_packets") > 10.0, "{kind}");
        assert!(link(&without, "dropped_packets") > 10.0, "{kind}");
        assert!(link(&without, "marked_packets") < 0.5, "{kind}");
        let dropped = link(&with, "dropped_packets");
        let limit = link(&without, "dropped_packets") / 2.0;
        assert!(dropped < limit, "{kind}: {dropped}");
    }
}

#[test]
fn folding_changes_nothing() {
    for queue in [CODEL, PIE, FQ_CODEL, DRR] {
        let [fast, slow] = [true, false].map(|fast| run(queue, PLAIN, fast).summary.digest);
        assert!(fast.is_some() && fast == slow, "{queue}");
    }
}
