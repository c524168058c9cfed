//! L4S end to end: Prague and CUBIC through DualPI2, compared with RFC 9332 and the control laws of
//! both.

#![expect(clippy::float_cmp, reason = "counts are exact")]

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};
use serde_json::Value;

fn run(text: &str) -> Finished<Length> {
    let resolved = Scenario::parse(text, "l4s.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts")
}

/// A bottleneck of 40 Mbit/s and flows from `S` to `D`.
fn scenario(rtt_ms: u32, queue: &str, flows: &str) -> String {
    format!(
        "duration = \"40 s\"\nwarmup = \"15 s\"\n\
         [link.bottleneck]\nbetween = [\"S\", \"D\"]\nrate = \"40 Mbit/s\"\ndelay = \"{} us\"\n\
         forward.queue = {queue}\n{flows}",
        rtt_ms * 500
    )
}

fn flow(name: &str, keys: &str) -> String {
    format!("[flow.{name}]\nfrom = \"S\"\nto = \"D\"\nstart_spread = \"1 s\"\n{keys}\n")
}

fn pair(ecn: &str) -> String {
    flow("prague", "cc = \"prague\"") + &flow("cubic", &format!("cc = \"cubic\"\n{ecn}"))
}

fn figure(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"))
}

/// De Schepper et al. (PI2, 2016, §5): with the coupled queue, the rates of a Classic and a
/// scalable flow are within a factor of two at every round-trip time; drop-tail, or one threshold
/// for both, starves one of them.
#[test]
fn prague_and_cubic_share_the_rate_and_only_cubic_queues() {
    for rtt in [5, 10, 20, 50, 100] {
        for ecn in ["", "transport = { ecn = \"rfc3168\" }"] {
            let run = run(&scenario(rtt, "\"dualpi2\"", &pair(ecn)));
            let (prague, cubic) = (&run.summary.flows["prague"], &run.summary.flows["cubic"]);
            let ratio = figure(prague, "goodput_mbit_s") / figure(cubic, "goodput_mbit_s");
            assert!((0.4..2.5).contains(&ratio), "{rtt} ms {ecn}: {ratio}");
            let base = f64::from(rtt);
            let queued = |of: &Value| figure(of, "mean_srtt_ms") - base;
            // RFC 9332: about 1 ms, and the target of 15 ms.
            assert!(queued(prague) < 2.0, "{rtt} ms {ecn}: {}", queued(prague));
            assert!(
                (6.0..22.0).contains(&queued(cubic)),
                "{rtt} ms {ecn}: {}",
                queued(cubic)
            );
            assert_eq!(figure(prague, "retransmitted_packets"), 0.0);
            let lost = figure(cubic, "retransmitted_packets");
            assert!((lost == 0.0) != ecn.is_empty(), "{rtt} ms {ecn}: {lost}");
            let link = &run.summary.links["bottleneck"]["forward"];
            assert!(figure(link, "utilization") > 0.97, "{rtt} ms {ecn}");
        }
    }
}

#[test]
fn one_threshold_for_both_starves_cubic() {
    let marking =
        "{ kind = \"threshold-mark\", limit = \"400 packets\", threshold = \"3 packets\" }";
    let run = run(&scenario(
        20,
        marking,
        &pair("transport = { ecn = \"rfc3168\" }"),
    ));
    let flows = &run.summary.flows;
    let ratio =
        figure(&flows["prague"], "goodput_mbit_s") / figure(&flows["cubic"], "goodput_mbit_s");
    assert!(ratio > 4.0, "{ratio}");
}

/// Two Prague flows with round-trip times of 5 ms and 25 ms.
fn unequal(after: u32) -> f64 {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"25 s\"\n\
         [link.near]\nbetween = [\"A\", \"R\"]\ndelay = \"1500 us\"\n\
         [link.far]\nbetween = [\"B\", \"R\"]\ndelay = \"11500 us\"\n\
         [link.bottleneck]\nbetween = [\"R\", \"D\"]\nrate = \"40 Mbit/s\"\ndelay = \"1 ms\"\nforward.queue = \"dualpi2\"\n\
         [flow.near]\nfrom = \"A\"\nto = \"D\"\ncc = {{ kind = \"prague\", rtt_independent_after = {after} }}\n\
         [flow.far]\nfrom = \"B\"\nto = \"D\"\ncc = {{ kind = \"prague\", rtt_independent_after = {after} }}\n"
    );
    let run = run(&text);
    let flows = &run.summary.flows;
    figure(&flows["near"], "goodput_mbit_s") / figure(&flows["far"], "goodput_mbit_s")
}

/// draft-briscoe-iccrg-prague-congestion-control §2.4.4. Without it the ratio is that of the
/// round-trip times, about 4.
#[test]
fn prague_shares_equally_at_unequal_round_trip_times() {
    let (with, without) = (unequal(500), unequal(1_000_000));
    assert!((0.6..1.7).contains(&with), "{with}");
    assert!(without > 2.5, "{without}");
}

/// With a peer that supports only RFC 3168, Prague sends ECT(0): its packets are in the Classic
/// queue, and the flow works.
#[test]
fn prague_without_accurate_ecn_uses_the_classic_queue() {
    let flows = flow(
        "prague",
        "cc = \"prague\"\ntransport = { ecn = \"accecn\" }",
    );
    let run = run(&scenario(20, "\"dualpi2\"", &flows));
    let prague = &run.summary.flows["prague"];
    assert!(figure(prague, "mean_srtt_ms") > 25.0, "{prague}");
    assert!(figure(prague, "goodput_mbit_s") > 30.0, "{prague}");
}
