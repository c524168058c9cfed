//! The dumbbell: hosts on separate access links, one bottleneck between them, both directions.

use std::sync::Arc;

use anabranch::{
    body::Length,
    fec,
    group::{Spread, control, energy::PowerModel, lacp::LacpRate},
    impair::{self, bernoulli_loss},
    network::{App, Builder, FlowSpec, GroupSpec, LinkId, LinkSpec, Stop, Traffic},
    queue,
    tcp::EcnMode,
    units::{Duration, Fraction, Instant, Rate},
};

use super::{gateway, queues, stack};

/// Bandwidth-delay product in packets: 1 Gbit/s × 40 ms ÷ 1,500 bytes.
pub const BDP_PACKETS: u64 = 3_333;

/// Propagation delay of an access link; with [`BOTTLENECK_DELAY`] a round trip of 40 ms.
const ACCESS_DELAY: Duration = Duration::from_millis(5);
const BOTTLENECK_DELAY: Duration = Duration::from_millis(10);

/// The flows start one after another within this time.
const START_SPREAD: Duration = Duration::from_millis(100);

/// Behaviour of the bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub enum Path {
    /// A drop-tail queue of one bandwidth-delay product, without loss.
    Clean,
    /// RED marks packets, and one packet in a thousand is lost.
    RedAndLoss,
    /// This queue.
    Queue(Box<queue::Config>),
    /// As clean, over a group whose members have an eighth of the rate each, with the study's
    /// controller.
    Group,
    /// As clean, over a pair of gateways whose routes have an eighth of the rate each, with this
    /// restorer.
    Gateway(String),
}

/// Rate and stack of a dumbbell.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The bottleneck's rate.
    pub gbit_per_s: u32,
    /// The profile of both ends.
    pub profile: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            gbit_per_s: 1,
            profile: "rfc",
        }
    }
}

/// `flows` bulk flows over a bottleneck of 1 Gbit/s.
pub fn builder(flows: u32, end: Instant, path: Path) -> Builder<Length> {
    builder_of(flows, end, path, Setup::default())
}

/// `flows` bulk flows.
pub fn builder_of(flows: u32, end: Instant, path: Path, setup: Setup) -> Builder<Length> {
    let mut builder = Builder::new(1, Instant::START, end);
    let rate = Some(Rate::from_mbit_per_s(u64::from(setup.gbit_per_s) * 1_000));
    let queue = BDP_PACKETS * u64::from(setup.gbit_per_s);
    let bottleneck = LinkSpec::new("link.bottleneck.forward", rate, BOTTLENECK_DELAY).limit(queue);
    let is_group = path == Path::Group;
    let gateway = match &path {
        Path::Gateway(name) => Some(name.clone()),
        _ => None,
    };
    let (bottleneck, ecn) = match path {
        Path::Clean | Path::Group | Path::Gateway(_) => (bottleneck, EcnMode::Off),
        Path::Queue(config) => (bottleneck.queue(*config), EcnMode::Off),
        Path::RedAndLoss => {
            let loss = bernoulli_loss::Params {
                rate: Fraction::new(0.001),
                max_burst: None,
            };
            let bottleneck = bottleneck
                .queue(queues::red(true))
                .impair(impair::Config::BernoulliLoss(loss));
            (bottleneck, EcnMode::Rfc3168)
        }
    };
    let back = LinkSpec::new("link.bottleneck.reverse", rate, BOTTLENECK_DELAY).limit(queue);
    let pair = gateway
        .and_then(|name| gateway::stops(&mut builder, &name, rate?, BOTTLENECK_DELAY, queue));
    let [forward, reverse] = if let Some(pair) = pair {
        pair
    } else if is_group {
        let links = builder.group(group([bottleneck, back])).1;
        links.map(|link| vec![Stop::Link(link)])
    } else {
        [bottleneck, back].map(|link| vec![Stop::Link(builder.link(link))])
    };
    let settings = stack::settings_of(setup.profile, ecn);
    for index in 0..flows {
        let side = |builder: &mut Builder<Length>, side: &str| {
            ["forward", "reverse"]
                .map(|direction| access(builder, &format!("{side}-{index}"), direction))
        };
        let (left, right) = (side(&mut builder, "left"), side(&mut builder, "right"));
        builder.flow(FlowSpec {
            name: format!("bulk/{index}"),
            ends: [0, 1],
            route: through(left[0], &forward, right[0]),
            return_route: through(right[1], &reverse, left[1]),
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

fn through(first: LinkId, middle: &[Stop], last: LinkId) -> Vec<Stop> {
    let ends = [first, last].map(Stop::Link);
    [&ends[..1], middle, &ends[1..]].concat()
}

/// Replaces these links by eight members.
fn group(mut links: [LinkSpec; 2]) -> GroupSpec {
    for link in &mut links {
        link.link.rate = Some(Rate::from_mbit_per_s(1_000 / 8));
    }
    GroupSpec {
        links,
        members: 8,
        spread: Spread::PerPacket,
        control: control::Config::PeakPercentile(control::peak_percentile::Params::default()),
        wake_time: Duration::ZERO,
        lacp_rate: LacpRate::Fast,
        power: PowerModel::default(),
        arrivals: None,
    }
}

/// One direction of an access link: 10 Gbit/s.
pub fn access(builder: &mut Builder<Length>, name: &str, direction: &str) -> LinkId {
    let rate = Some(Rate::from_mbit_per_s(10_000));
    builder.link(LinkSpec::new(
        format!("link.{name}.{direction}"),
        rate,
        ACCESS_DELAY,
    ))
}

/// Start time of the `index`-th of `flows`.
pub fn start(index: u32, flows: u32) -> Instant {
    let step = START_SPREAD.as_picos() / u64::from(flows.max(1));
    Instant::START + Duration::from_picos(step * u64::from(index))
}
