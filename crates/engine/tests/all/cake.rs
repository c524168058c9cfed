//! CAKE end to end: TCP through its shaper, in both engines' link code.

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};
use serde_json::Value;

fn run(text: &str) -> Finished<Length> {
    let resolved = Scenario::parse(text, "cake.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts")
}

fn figure(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"))
}

/// Host A with eight flows and host B with one, to two receivers, over 20 Mbit/s; `more` are
/// further keys of the link.
fn home(queue: &str, more: &str) -> Finished<Length> {
    let access = |name: &str| {
        format!(
            "[link.{name}]\nbetween = [\"{name}\", \"R\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    let far = |name: &str| {
        format!(
            "[link.{name}]\nbetween = [\"I\", \"{name}\"]\nrate = \"1 Gbit/s\"\ndelay = \"8 ms\"\n"
        )
    };
    run(&format!(
        "duration = \"30 s\"\nwarmup = \"10 s\"\n{}{}{}{}\
         [link.wan]\nbetween = [\"R\", \"I\"]\nrate = \"20 Mbit/s\"\ndelay = \"1 ms\"\nforward.queue = {queue}\n{more}\n\
         [flow.many]\nfrom = \"A\"\nto = \"X\"\ncount = 8\nstart_spread = \"1 s\"\n\
         [flow.one]\nfrom = \"B\"\nto = \"Y\"\n\
         [flow.ping]\nfrom = \"B\"\nto = \"Y\"\nprotocol = \"udp\"\n\
         workload = {{ kind = \"paced\", rate = \"40 kbit/s\", payload = \"100 bytes\" }}\n",
        access("A"),
        access("B"),
        far("X"),
        far("Y"),
    ))
}

fn sums(run: &Finished<Length>) -> (f64, f64) {
    let flows = &run.summary.flows;
    let many = flows.iter().filter(|(name, _)| name.starts_with("many/"));
    let many = many.map(|(_, flow)| figure(flow, "goodput_mbit_s")).sum();
    (many, figure(&flows["one"], "goodput_mbit_s"))
}

#[test]
fn hosts_share_the_rate_equally_over_tcp() {
    let (many, one) = sums(&home("{ kind = \"cake\", rate = \"18 Mbit/s\" }", ""));
    assert!((0.8..1.25).contains(&(many / one)), "{many} and {one}");
    let (many, one) = sums(&home(
        "{ kind = \"cake\", rate = \"18 Mbit/s\", isolation = \"flows\" }",
        "",
    ));
    assert!(many / one > 5.0, "{many} and {one}");
}

/// The shaper, at 90 % of the link's rate, keeps the queue out of the link, which has no AQM. The
/// same holds on a link that may change, on which transmissions are not computed ahead.
#[test]
fn the_shaper_keeps_its_rate_on_any_link() {
    let queue = "{ kind = \"cake\", rate = \"18 Mbit/s\", overhead = 38 }";
    let mut digests = Vec::new();
    for more in [
        "",
        "\n[[at]]\ntime = \"29 s\"\nset = { \"link.wan.delay\" = \"1 ms\" }\n",
    ] {
        let run = home(queue, more);
        let (many, one) = sums(&run);
        // 1,448 of 1,538 bytes, and a small share for the datagrams.
        let expected = 18.0 * 1448.0 / 1538.0;
        assert!(
            ((many + one) / expected - 1.0).abs() < 0.01,
            "{more}: {many} and {one}, not {expected}"
        );
        let link = &run.summary.links["wan"]["forward"];
        assert!(figure(link, "utilization") < 0.92, "{link}");
        digests.push(run.summary.digest.clone());
    }
    assert_eq!(digests[0], digests[1]);
}

/// Latency under load: the datagrams of a sparse flow do not wait for nine downloads.
#[test]
fn a_sparse_flow_does_not_wait_for_downloads() {
    let delay = |queue: &str| {
        let run = home(queue, "");
        figure(&run.summary.flows["ping"], "p95_one_way_delay_ms")
    };
    let (cake, bloated) = (
        delay("{ kind = \"cake\", rate = \"18 Mbit/s\" }"),
        delay("{ kind = \"drop-tail\", limit = \"500 packets\" }"),
    );
    // Ten milliseconds of propagation.
    assert!(cake < 12.5, "{cake}");
    assert!(bloated > 100.0, "{bloated}");
}
