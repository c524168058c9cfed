//! A ring of many links: bulk flows, each over twenty of them and back, each link shared by two.

use std::sync::Arc;

use anabranch::{
    body::Length,
    fec,
    network::{App, Builder, FlowSpec, LinkId, LinkSpec, Stop, Traffic},
    tcp::EcnMode,
    units::{Duration, Instant, Rate},
};

use super::{dumbbell::start, stack};

/// Links per flow.
const STEP: usize = 10;
/// Links that a flow crosses: with a delay of 1 ms each a round trip of 40 ms.
const HOPS: usize = 2 * STEP;
const DELAY: Duration = Duration::from_millis(1);
/// Maximum number of waiting packets.
const LIMIT: u64 = 20;

/// `flows` bulk flows, and [`STEP`] links of 1 Mbit/s in both directions for each.
pub fn builder(flows: u32, end: Instant) -> Builder<Length> {
    let mut builder = Builder::new(1, Instant::START, end);
    let count = flows as usize * STEP;
    let ring: Vec<[LinkId; 2]> = (0..count)
        .map(|index| {
            ["forward", "reverse"].map(|direction| {
                let rate = Some(Rate::from_mbit_per_s(1));
                let name = format!("link.ring-{index}.{direction}");
                builder.link(LinkSpec::new(name, rate, DELAY).limit(LIMIT))
            })
        })
        .collect();
    let settings = stack::settings(EcnMode::Off);
    for index in 0..flows {
        let first = index as usize * STEP;
        let crossed = (first..first + HOPS).map(|hop| ring[hop % count]);
        let there = crossed.clone().map(|[forward, _]| Stop::Link(forward));
        let back = crossed.rev().map(|[_, reverse]| Stop::Link(reverse));
        builder.flow(FlowSpec {
            ends: [0, 1],
            name: format!("bulk/{index}"),
            route: there.collect(),
            return_route: back.collect(),
            dscp: 0,
            start: start(index, flows),
            stop: None,
            traffic: Traffic::Tcp {
                settings: settings.clone(),
                control: stack::control(),
                app: App::Bulk,
            },
            fec: fec::Config::Off,
            read_delays: Arc::default(),
            idle_read_delays: Arc::default(),
            first_write_delays: Arc::default(),
        });
    }
    builder
}
