//! Every byte once and in order, nothing leaks, nothing happens after the end.

mod common;

use anabranch_core::units::Instant;
use anabranch_elements::body::Length;
use anabranch_sim::Simulation;
use common::{Shape, resolve, text};

/// Files over random paths with loss, reordering, duplication and damage: 10,000 of them.
#[test]
fn files_arrive_whole_and_nothing_is_left() {
    let shape = Shape {
        files_only: true,
        changes: false,
        mangle: true,
        seconds: 600,
    };
    let (mut files, mut retransmitted, mut reordered, mut timeouts) = (0_u64, 0, 0, 0);
    for number in 0..10_000 {
        let text = text(number, shape);
        let resolved = resolve(&text);
        let run = Simulation::<Length>::new(&resolved)
            .digest(false)
            .run()
            .expect("no hosts");
        for (name, flow) in &run.summary.flows {
            let size = file_size(&text, name);
            assert_eq!(
                flow["delivered_bytes"].as_u64(),
                Some(size),
                "scenario {number}, {name}: {flow}\n{text}"
            );
            assert!(
                flow["flow_completion_time_s"].as_f64().is_some(),
                "scenario {number}, {name}\n{text}"
            );
            files += 1;
            retransmitted += flow["retransmitted_packets"].as_u64().unwrap_or(0);
            timeouts += flow["timeouts"].as_u64().unwrap_or(0);
            reordered += u64::from(flow["reordered_ratio"].as_f64() > Some(0.0));
        }
        // Ten minutes later every connection has closed: no packet is on its way, no timer is set.
        assert_eq!(
            run.network.packets_in_flight(),
            0,
            "scenario {number}\n{text}"
        );
        assert_eq!(
            run.network.next_event(),
            Instant::NEVER,
            "scenario {number}\n{text}"
        );
    }
    // Otherwise the paths were too good for the test to mean anything.
    assert!(files > 20_000 && retransmitted > 10_000 && timeouts > 1_000 && reordered > 1_000);
}

fn file_size(text: &str, flow: &str) -> u64 {
    let (_, table) = text
        .split_once(&format!("[flow.{flow}]\n"))
        .expect("the flow stands in the text");
    let (_, size) = table.split_once("size = \"").expect("it is a file");
    size.split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number of bytes")
}

/// What a link took in has gone on, was dropped or lost, or is still there.
#[test]
fn packets_are_conserved_at_the_end_of_a_run() {
    let shape = Shape {
        files_only: false,
        changes: true,
        mangle: false,
        seconds: 1,
    };
    for number in 0..500 {
        let text = text(number, shape);
        let resolved = resolve(&text);
        let run = Simulation::<Length>::new(&resolved)
            .packet_log(true)
            .run()
            .expect("no hosts");
        let log = run.network.probe().log().expect("a log is kept");
        let (mut received, mut lost, mut on_the_way) = (0_usize, 0_usize, 0_usize);
        for row in log.rows() {
            assert!(row.sent <= run.network.end());
            match (row.received, row.lost) {
                (Some(at), None) => {
                    assert!(at >= row.sent && at <= run.network.end());
                    received += 1;
                }
                (None, Some(_)) => lost += 1,
                (None, None) => on_the_way += 1,
                (Some(_), Some(_)) => panic!("received and lost\n{text}"),
            }
        }
        assert_eq!(received + lost + on_the_way, log.rows().count());
        assert_eq!(
            on_the_way,
            run.network.packets_in_flight(),
            "scenario {number}\n{text}"
        );
    }
}
