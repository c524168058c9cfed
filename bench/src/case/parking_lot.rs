//! The parking lot: three bottlenecks in a row; some flows cross all, others one, in either
//! direction, and short transfers come and go.

use std::sync::Arc;

use anabranch::{
    body::Length,
    fec,
    network::{App, Builder, FlowSpec, LinkId, LinkSpec, Stop, Traffic},
    tcp::EcnMode,
    units::{Bytes, Duration, Instant, Rate},
    workload::Sizes,
};

use super::{
    dumbbell::{BDP_PACKETS, access, start},
    stack,
};

const BOTTLENECKS: usize = 3;

/// Propagation delay of a bottleneck; with 5 ms at each end a round trip of 40 ms over all three.
const BOTTLENECK_DELAY: Duration = Duration::from_picos(Duration::from_millis(10).as_picos() / 3);

/// Transfers per second at each bottleneck: with [`SIZES`] a tenth of its capacity.
const TRANSFERS_PER_S: f64 = 250.0;
const SIZES: Sizes = Sizes::Exponential {
    mean: Bytes::new(50_000),
};

/// One in seven of the `bulk` flows crosses all three bottlenecks, and each bottleneck has one in
/// seven in each direction that crosses no other. Short transfers also cross each bottleneck.
pub fn builder(bulk: u32, end: Instant) -> Builder<Length> {
    let mut builder = Builder::new(1, Instant::START, end);
    let hops: Vec<[LinkId; 2]> = (0..BOTTLENECKS)
        .map(|hop| {
            ["forward", "reverse"].map(|direction| {
                let name = format!("link.bottleneck-{hop}.{direction}");
                let rate = Some(Rate::from_mbit_per_s(1_000));
                builder.link(LinkSpec::new(name, rate, BOTTLENECK_DELAY).limit(BDP_PACKETS))
            })
        })
        .collect();
    let settings = stack::settings(EcnMode::Off);
    for index in 0..bulk {
        // 0: all hops; 1 to 3: one hop forward; 4 to 6: one hop backward.
        let class = index as usize % 7;
        let path = match class {
            0 => Path {
                from: 0,
                to: BOTTLENECKS,
                backward: false,
            },
            hop @ 1..4 => Path {
                from: hop - 1,
                to: hop,
                backward: false,
            },
            hop => Path {
                from: hop - 4,
                to: hop - 3,
                backward: true,
            },
        };
        let traffic = Traffic::Tcp {
            settings: settings.clone(),
            control: stack::control(),
            app: App::Bulk,
        };
        let name = format!("bulk/{index}");
        path.add_flow(&mut builder, &hops, name, start(index, bulk), traffic);
    }
    for hop in 0..BOTTLENECKS {
        let path = Path {
            from: hop,
            to: hop + 1,
            backward: false,
        };
        let traffic = Traffic::Poisson {
            settings: settings.clone(),
            control: stack::control(),
            rate: TRANSFERS_PER_S,
            sizes: SIZES,
            profile: None,
        };
        path.add_flow(
            &mut builder,
            &hops,
            format!("short-{hop}"),
            Instant::START,
            traffic,
        );
    }
    builder
}

/// The bottlenecks `from..to`, one way or the other.
#[derive(Debug, Clone, Copy)]
struct Path {
    from: usize,
    to: usize,
    backward: bool,
}

impl Path {
    fn add_flow(
        self,
        builder: &mut Builder<Length>,
        hops: &[[LinkId; 2]],
        name: String,
        start: Instant,
        traffic: Traffic<Length>,
    ) {
        let key = name.replace('/', "-");
        let mut side = |side: &str| {
            ["forward", "reverse"].map(|way| access(builder, &format!("{side}-{key}"), way))
        };
        let (near, far) = (side("near"), side("far"));
        let crossed = &hops[self.from..self.to];
        let mut there: Vec<LinkId> = crossed
            .iter()
            .map(|hop| hop[usize::from(self.backward)])
            .collect();
        let mut back: Vec<LinkId> = crossed
            .iter()
            .map(|hop| hop[usize::from(!self.backward)])
            .collect();
        if self.backward {
            there.reverse();
        } else {
            back.reverse();
        }
        let route = |first: LinkId, middle: Vec<LinkId>, last: LinkId| {
            [vec![first], middle, vec![last]]
                .concat()
                .into_iter()
                .map(Stop::Link)
                .collect()
        };
        builder.flow(FlowSpec {
            name,
            ends: [0, 1],
            route: route(near[0], there, far[0]),
            return_route: route(far[1], back, near[1]),
            dscp: 0,
            start,
            stop: None,
            traffic,
            fec: fec::Config::Off,
            read_delays: Arc::default(),
            idle_read_delays: Arc::default(),
            first_write_delays: Arc::default(),
        });
    }
}
