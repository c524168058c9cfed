//! Arrivals at a bottleneck: TCP flows that share it, and one unresponsive flow with a larger
//! share.
//!
//! 100 Mbit/s through the RED queue of the fairness study; CUBIC with the stack of the other cases.
//! The heavy flow begins at half time: datagrams at a constant rate of [`Traffic::excess`] times
//! another flow's.

use std::sync::{Arc, Mutex};

use anabranch::{
    body::Length,
    network::{App, Builder, Datagrams, FlowSpec, LinkSpec, Stop, Timing, Traffic as Sends},
    packet::{ConnectionId, FlowId},
    queue::{self, Init, Item, QueueContext, QueueDiscipline, red::Red},
    tcp::EcnMode,
    units::{Bytes, Duration, Instant, Rate},
    workload::Pace,
};
use serde_json::json;

use super::{Found, Traffic};
use crate::case::stack;

const RATE_MBIT_S: u64 = 100;
/// Start of the heavy flow, and end of all flows.
const HALF: Instant = Instant::START.saturating_add(Duration::from_secs(10));
const END: Instant = Instant::START.saturating_add(Duration::from_secs(20));
/// Time after the start of the heavy flow at which the measurement of precision begins.
const SETTLING: Duration = Duration::from_secs(2);
const HEADERS: u32 = 28;
const PAYLOAD: u32 = 1_472;

/// Base round-trip times of the table.
pub const RTT_MS: [u64; 3] = [2, 20, 200];

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    at: Instant,
    flow: FlowId,
    connection: ConnectionId,
    size: u32,
}

type Heard = Arc<Mutex<Vec<Arrival>>>;

/// RED that records arrivals.
#[derive(Debug)]
struct Listening {
    red: Red,
    heard: Heard,
}

impl Listening {
    fn hear(&self, item: &Item, now: Instant) {
        self.heard.lock().expect("one thread").push(Arrival {
            at: now,
            flow: item.flow,
            connection: item.connection,
            size: item.size,
        });
    }
}

impl QueueDiscipline for Listening {
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        self.hear(&item, cx.now);
        self.red.enqueue(item, cx);
    }
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.hear(item, cx.now);
        self.red.pass(item, cx)
    }
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.red.dequeue(cx)
    }
    fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        self.red.ran_out(cx);
    }
    fn len(&self) -> usize {
        self.red.len()
    }
    fn bytes(&self) -> u64 {
        self.red.bytes()
    }
}

fn listening(heard: &Heard) -> queue::Config {
    let params: queue::red::Params = serde_json::from_value(json!({
        "limit": "10000 packets",
        "min_threshold": "1 packets",
        "max_threshold": "9999 packets",
        "max_probability": 0.2,
    }))
    .expect("they are right");
    let heard = Arc::clone(heard);
    queue::Config::Custom(queue::Custom {
        name: "listening".to_owned(),
        params: json!({}),
        build: Arc::new(move |init: &Init<'_>| {
            Box::new(Listening {
                red: Red::new(&params, init),
                heard: Arc::clone(&heard),
            })
        }),
    })
}

/// Returns the arrivals with this base round-trip time. [`Traffic::burst`] is not used: TCP and the
/// queue determine the bursts.
pub fn arrivals(traffic: Traffic, rtt_ms: u64, seed: u64) -> Vec<Arrival> {
    let heard = Heard::default();
    let mut builder = Builder::<Length>::new(seed, Instant::START, END);
    let rate = Rate::from_mbit_per_s(RATE_MBIT_S);
    let delay = Duration::from_micros(rtt_ms * 500);
    let forward = LinkSpec::new("link.bottleneck.forward", Some(rate), delay);
    let forward = builder.link(forward.queue(listening(&heard)));
    let reverse = builder.link(LinkSpec::new("link.bottleneck.reverse", None, delay));
    let mut flow = |name: String, start: Instant, traffic: Sends<Length>| {
        builder.flow(FlowSpec {
            name,
            ends: [0, 1],
            route: vec![Stop::Link(forward)],
            return_route: vec![Stop::Link(reverse)],
            dscp: 0,
            start,
            stop: None,
            traffic,
            fec: anabranch::fec::Config::Off,
            read_delays: Arc::default(),
            idle_read_delays: Arc::default(),
            first_write_delays: Arc::default(),
        })
    };
    let others = traffic.flows - 1;
    for index in 0..others {
        let start = crate::case::dumbbell::start(index, others);
        let sends = Sends::Tcp {
            settings: stack::settings(EcnMode::Off),
            control: stack::control(),
            app: App::Bulk,
        };
        flow(format!("bulk/{index}"), start, sends);
    }
    let share = traffic.excess / (traffic.excess + f64::from(others));
    let packet = Bytes::new(u64::from(PAYLOAD + HEADERS));
    let interval = Duration::from_secs_f64((packet / rate).as_secs_f64() / share);
    let rate = Rate::from_bytes_per(Bytes::new(PAYLOAD.into()), interval).expect("it takes time");
    let pace = Pace::new(rate, PAYLOAD).expect("slow enough");
    let datagrams = Datagrams {
        timing: Timing::Paced(pace),
        headers: HEADERS,
    };
    flow("heavy".to_owned(), HALF, Sends::Datagrams(datagrams));
    builder.build().run_through(END);
    let mut heard = heard.lock().expect("one thread");
    std::mem::take(&mut *heard)
}

/// Number of the heavy flow, the last one.
pub fn heavy(traffic: Traffic) -> FlowId {
    FlowId(traffic.flows - 1)
}

/// The heavy flow's share of the arrivals after the settling time.
#[cfg(test)]
pub fn share(arrivals: &[Arrival], heavy: FlowId) -> f64 {
    let counted = || {
        let settled = |arrival: &&Arrival| arrival.at.saturating_since(HALF) >= SETTLING;
        arrivals.iter().filter(settled)
    };
    let of_heavy = counted().filter(|arrival| arrival.flow == heavy).count();
    of_heavy as f64 / counted().count() as f64
}

/// Measures a detector on these arrivals. The delay is in milliseconds.
pub fn watch(config: &anabranch::heavy::Config, arrivals: &[Arrival], heavy: FlowId) -> Found {
    use anabranch::heavy::HeavyFlows;

    let mut detector = config.build();
    let (mut right, mut counted) = (0_u32, 0_u32);
    let (mut connection, mut noticed) = (None, None);
    for arrival in arrivals {
        if arrival.flow == heavy {
            connection = Some(arrival.connection);
        }
        detector.on_packet(arrival.connection, arrival.size);
        let found = connection.is_some() && detector.heaviest() == connection;
        let since = arrival.at.saturating_since(HALF);
        if found && noticed.is_none() {
            noticed = Some(since.as_millis_f64());
        }
        if since >= SETTLING {
            right += u32::from(found);
            counted += 1;
        }
    }
    Found {
        right: f64::from(right) / f64::from(counted),
        delay: noticed,
    }
}
