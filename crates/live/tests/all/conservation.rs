//! Conservation of packets in live runs: each packet sent was received, dropped, lost or discarded,
//! or is still in the network. A run fails if its engine, or an element, loses packets without
//! counting them or adds packets.
use std::{collections::VecDeque, path::Path, sync::Arc};

use crate::common::{Fault, Wrong, exact, live, resolve};
use anabranch_core::units::Instant;
use anabranch_live::{Around, Frame};
use anabranch_path::{
    host::{Arrived, Departing, Host},
    queue,
    queue::{Item, QueueContext, QueueDiscipline},
};
use anabranch_scenario::Extensions;
use serde_json::Value;

/// Duplicated and lost packets, a warm-up, copies over two routes and a host with our own TCP; the
/// run ends while packets are in flight.
const ALL_AT_ONCE: &str = r#"
duration = "700 ms"
warmup = "300 ms"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "10 packets", reorder = { kind = "interval", interval = 5 } }
impair = [{ kind = "duplicate", rate = 0.05 }, { kind = "bernoulli-loss", rate = 0.02 }]
[link.fast]
between = ["g", "h"]
rate = "10 Mbit/s"
delay = "5 ms"
[link.slow]
between = ["g", "h"]
rate = "10 Mbit/s"
delay = "15 ms"
impair = [{ kind = "bernoulli-loss", rate = 0.05 }]
[gateway.pair]
between = ["g", "h"]
routes = ["fast", "slow"]
split = "redundant"
restore = "adaptive"
[link.third]
between = ["C", "D"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "5 packets" }
[host.C]
tcp = "own"
[flow.main]
from = "A"
to = "B"
[flow.copied]
from = "g"
to = "h"
[flow.own]
from = "C"
to = "D"
"#;

const ONE_FLOW: &str = r#"
duration = "500 ms"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "5 ms"
QUEUE
[flow.main]
from = "A"
to = "B"
"#;

/// The packet counts of a run, or why it failed.
fn run(text: &str, extensions: Extensions, around: Option<Around>) -> Result<Value, String> {
    let resolved = resolve(text, Path::new("conservation.toml"), extensions);
    let mut live = live(&resolved);
    if let Some(around) = around {
        live = live.around_kernel_ends(around);
    }
    let done = exact(live.run()).map_err(|error| error.to_string())?;
    Ok(done.summary.live.expect("the run was live")["packets"].clone())
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn every_packet_is_accounted_for() {
    let packets = run(ALL_AT_ONCE, Extensions::default(), None).expect("packets are conserved");
    for count in [
        "made",
        "dropped",
        "lost",
        "discarded",
        "in_flight",
        "received",
    ] {
        let key = format!("{count}_packets");
        assert!(packets[&key].as_u64() > Some(0), "{key}: {packets}");
    }
    // Packets of our own TCP pass no device.
    assert!(packets["taken"].as_u64() > packets["kernel_taken"].as_u64());
    assert!(packets["kernel_sent"].as_u64() > Some(100), "{packets}");
}

/// Asserts that the run fails and names where packets were lost or added.
#[track_caller]
fn is_found_out(done: Result<Value, String>, told: &str) {
    let error = done.expect_err("packets are not conserved");
    assert!(error.contains("packets are not conserved"), "{error}");
    assert!(error.contains(told), "{error}");
}

/// A fault that affects every fiftieth packet.
#[derive(Debug, Default)]
struct Counter(u64);

impl Counter {
    fn is_met(&mut self) -> bool {
        self.0 += 1;
        self.0.is_multiple_of(50)
    }
}

#[derive(Debug, Default)]
struct DropsWhatLeaves(Counter);

impl Fault for DropsWhatLeaves {
    fn poll_transmit(
        &mut self,
        right: &mut dyn Host<Frame>,
        now: Instant,
    ) -> Option<Departing<Frame>> {
        let packet = right.poll_transmit(now)?;
        if self.0.is_met() {
            return right.poll_transmit(now);
        }
        Some(packet)
    }
}

#[derive(Debug, Default)]
struct DropsWhatComes(Counter);

impl Fault for DropsWhatComes {
    fn on_packet(&mut self, right: &mut dyn Host<Frame>, now: Instant, packet: Arrived<'_, Frame>) {
        if !self.0.is_met() {
            right.on_packet(now, packet);
        }
    }
}

#[derive(Debug, Default)]
struct DoublesWhatComes(Counter);

impl Fault for DoublesWhatComes {
    fn on_packet(&mut self, right: &mut dyn Host<Frame>, now: Instant, packet: Arrived<'_, Frame>) {
        if self.0.is_met() {
            right.on_packet(
                now,
                Arrived {
                    transport: packet.transport,
                    ecn: packet.ecn,
                    dscp: packet.dscp,
                },
            );
        }
        right.on_packet(now, packet);
    }
}

fn with_fault<F: Fault + Default + 'static>(right: Box<dyn Host<Frame>>) -> Box<dyn Host<Frame>> {
    let fault = F::default();
    Box::new(Wrong { right, fault })
}

fn one_flow(around: Around) -> Result<Value, String> {
    let text = ONE_FLOW.replace("QUEUE", "");
    run(&text, Extensions::default(), Some(around))
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn detects_a_driver_that_drops_packets_from_hosts() {
    is_found_out(
        one_flow(with_fault::<DropsWhatLeaves>),
        "without a trace between the engine and its network",
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn detects_a_driver_that_drops_packets_to_hosts() {
    is_found_out(
        one_flow(with_fault::<DropsWhatComes>),
        "without a trace between the network and the hosts",
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn detects_a_driver_that_duplicates_packets() {
    is_found_out(
        one_flow(with_fault::<DoublesWhatComes>),
        "from nowhere between the network and the hosts",
    );
}

/// A FIFO from which packets vanish.
#[derive(Debug, Default)]
struct Leaky {
    counter: Counter,
    items: VecDeque<Item>,
}

impl QueueDiscipline for Leaky {
    fn enqueue(&mut self, item: Item, _cx: &mut QueueContext<'_>) {
        if !self.counter.is_met() {
            self.items.push_back(item);
        }
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.items.pop_front()
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        0
    }
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn detects_a_queue_that_drops_silently() {
    let extensions = Extensions::default().queue("leaky", |_| {
        let make: queue::Factory = Arc::new(|_: &queue::Init<'_>| Box::new(Leaky::default()));
        Ok(make)
    });
    let text = ONE_FLOW.replace("QUEUE", "queue = \"leaky\"");
    is_found_out(
        run(&text, extensions, None),
        "without a trace in the network",
    );
}
