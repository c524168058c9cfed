//! DCTCP at a switch that marks above a threshold.

use anabranch_core::body::Length;
use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

/// Forty connections open while others keep the queue at the threshold of 20 packets.
fn scenario(queue: &str) -> String {
    format!(
        "duration = \"600 ms\"\n\
         [link.hosts]\nbetween = [\"S\", \"SW\"]\nrate = \"100 Gbit/s\"\ndelay = \"25 us\"\n\
         [link.bottleneck]\nbetween = [\"SW\", \"D\"]\nrate = \"1 Gbit/s\"\ndelay = \"25 us\"\n\
         forward.queue = {queue}\n\
         [flow.f]\nfrom = \"S\"\nto = \"D\"\ncount = 40\nstart_spread = \"40 ms\"\ncc = \"dctcp\"\n\
         transport = {{ ecn = \"dctcp\" }}\n"
    )
}

fn run(text: &str) -> anabranch_engine::Finished<Length> {
    let resolved = Scenario::parse(text, "dctcp.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts")
}

/// RED with both thresholds at 20 packets drops packets that are not ECN-capable, SYNs first.
/// Detects stacks that send SYNs or pure acknowledgments without ECT.
#[test]
fn dctcp_connections_open_at_a_switch_that_drops_non_ect_packets() {
    let red = r#"{ kind = "red", limit = "10000 packets", min_threshold = "20 packets", max_threshold = "21 packets", max_probability = 1.0, weight = 1.0, ecn = true, hard_drop = false }"#;
    let run = run(&scenario(red));
    assert_eq!(run.summary.flows.len(), 40);
    for (name, flow) in &run.summary.flows {
        assert!(
            flow["delivered_bytes"].as_u64() > Some(100_000),
            "{name}: {flow}"
        );
    }
    let bottleneck = &run.summary.links["bottleneck"]["forward"];
    assert_eq!(bottleneck["dropped_packets"], 0, "{bottleneck}");
}

#[test]
fn threshold_marking_holds_the_queue_near_the_threshold() {
    let run = run(
        &scenario(r#"{ kind = "threshold-mark", threshold = "20 packets" }"#)
            .replace("count = 40", "count = 2"),
    );
    let bottleneck = &run.summary.links["bottleneck"]["forward"];
    let mean = bottleneck["mean_queue_packets"].as_f64().expect("a mean");
    assert!((5.0..40.0).contains(&mean), "{bottleneck}");
    assert!(
        bottleneck["utilization"].as_f64() > Some(0.95),
        "{bottleneck}"
    );
    assert_eq!(bottleneck["dropped_packets"], 0, "{bottleneck}");
}
