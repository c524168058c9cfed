//! The response of every congestion control to losses and queues, as tables. A commit that changes
//! a cell explains why; `INSTA_UPDATE=always cargo nextest run -p anabranch-engine tables` updates
//! the tables.

use std::fmt::Write;

use anabranch_congestion::registry;

use crate::support::simulate::simulate;

/// Every congestion control, in registry order.
fn controls() -> Vec<&'static str> {
    registry().into_iter().map(|(meta, ..)| meta.name).collect()
}

/// A table with a row for each control.
fn table(columns: &[&str], cell: impl Fn(&str, &str) -> String) -> String {
    let mut text = format!("{:13}", "");
    for column in columns {
        let _ = write!(text, " {column:>11}");
    }
    for control in controls() {
        let _ = write!(text, "\n{control:13}");
        for column in columns {
            let _ = write!(text, " {:>11}", cell(control, column));
        }
    }
    text
}

/// Random loss in per cent; goodput in Mbit/s over 10 Mbit/s, 40 ms and a queue of one
/// bandwidth-delay product.
#[test]
fn loss_by_control() {
    let goodput = |control: &str, loss: &str| {
        let rate: f64 = loss.parse::<f64>().expect("a number") / 100.0;
        let simulation = simulate("loss_by_control")
            .path(&format!(
                "rate = \"10 Mbit/s\"; delay = \"20 ms\"; queue = {{ kind = \"drop-tail\", limit = \"1 bdp\" }}; \
                 forward.impair = [{{ kind = \"bernoulli-loss\", rate = {rate} }}]"
            ))
            .flow(&format!("cc = \"{control}\""));
        format!("{:.2}", simulation.goodput())
    };
    insta::assert_snapshot!(table(&["0", "0.01", "0.1", "1", "3"], goodput));
}

/// Two flows of one control; their goodput in Mbit/s over 10 Mbit/s and 40 ms, and the mean queue
/// in packets.
#[test]
fn queue_by_control() {
    let cell = |control: &str, queue: &str| {
        let limit = if queue == "fq-codel" || queue == "drr" {
            format!("\"{queue}\"")
        } else if queue == "red" {
            "{ kind = \"red\", min_threshold = \"10 packets\", max_threshold = \"30 packets\", weight = 0.002 }"
                .to_owned()
        } else {
            format!("{{ kind = \"{queue}\", limit = \"2 bdp\" }}")
        };
        let flow = format!("cc = \"{control}\"");
        let finished = simulate("queue_by_control")
            .path(&format!(
                "rate = \"10 Mbit/s\"; delay = \"20 ms\"; forward.queue = {limit}"
            ))
            .flow(&flow)
            .flow(&format!("{flow}; start = \"1 s\""))
            .run();
        let goodput: f64 = ["f0", "f1"]
            .iter()
            .map(|name| {
                finished.summary.flows[*name]["goodput_mbit_s"]
                    .as_f64()
                    .expect("a rate")
            })
            .sum();
        let waiting = &finished.summary.links["path"]["forward"]["mean_queue_packets"];
        format!("{goodput:.1} {:5.1}", waiting.as_f64().expect("packets"))
    };
    let queues = ["drop-tail", "red", "codel", "pie", "fq-codel", "drr"];
    insta::assert_snapshot!(table(&queues, cell));
}
