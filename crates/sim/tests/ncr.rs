//! TCP-NCR on two paths.
use anabranch_elements::body::Length;
use anabranch_model::scenario::{Extensions, Scenario};
use anabranch_sim::Simulation;

fn throughput(far: u32, seconds: u32, initial: u32, cc: &str, remedy: &str) -> (f64, f64) {
    let text = format!(
        r#"
duration = "{seconds}.2 s"
[link.access]
between = ["S", "GW1"]
rate = "100 Mbit/s"
delay = "15 ms"
[link.near]
between = ["GW1", "GW2"]
rate = "5 Mbit/s"
delay = "5 ms"
queue = {{ kind = "drop-tail", limit = "100 packets" }}
[link.far]
between = ["GW1", "GW2"]
rate = "5 Mbit/s"
delay = "{far} ms"
queue = {{ kind = "drop-tail", limit = "100 packets" }}
[gateway.pair]
between = ["GW1", "GW2"]
routes = ["near", "far"]
split = "weighted-round-robin"
restore = "none"
[link.egress]
between = ["GW2", "R"]
rate = "100 Mbit/s"
delay = "15 ms"
[flow.main]
from = "S"
to = "R"
start = "0.2 s"
cc = "{cc}"
stack = "rfc"
route = ["access", "pair", "egress"]
transport = {{ send_buffer = "unlimited", receive_window = "158 packets", initial_cwnd = {initial}, reordering = {remedy} }}
"#
    );
    let scenario = Scenario::parse(&text, "ncr.toml", &Extensions::default()).expect("it is TOML");
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    let run = Simulation::<Length>::new(&resolved).run().expect("no hosts");
    let f = |n: &str| run.summary.flows["main"][n].as_f64().unwrap_or(f64::NAN);
    (f("throughput_mbit_s"), f("retransmitted_packets"))
}

#[test]
fn probe() {
    for cc in ["cubic", "reno"] {
        for variant in ["careful", "aggressive"] {
            for restart in ["keep", "anew"] {
                for far in [10, 25, 45] {
                    for seconds in [10, 60] {
                        let v: Vec<_> = [4, 10, 20, 40]
                            .map(|i| {
                                let (a, b) = throughput(far, seconds, i, cc, &format!("{{ kind = \"ncr\", variant = \"{variant}\", restart = \"{restart}\" }}"));
                                format!("{a:.2}/{b}")
                            })
                            .into();
                        println!("{cc} {variant} {restart} far {far} {seconds}s: {v:?}");
                    }
                }
            }
        }
    }
}
