//! A pair of gateways with eight routes.

use anabranch::{
    Length,
    multipath::{
        Entrance, EntranceParts, Exit, ExitParts, Meter, Peer,
        restore::{self, adaptive, in_order, none, timed},
        split::{self, earliest_arrival, weighted_round_robin},
    },
    network::{Builder, LinkSpec, MiddleboxId, Stop},
    units::{Duration, Rate},
};

/// Names of the measured pairs, which are those of the restorers. `adaptive` is combined with
/// `earliest-arrival`, the others with `weighted-round-robin`.
pub const NAMES: [&str; 4] = ["none", "in-order", "timed", "adaptive"];
/// Number of routes.
const ROUTES: u64 = 8;

fn configs(name: &str) -> Option<(split::Config, restore::Config)> {
    let plain = split::Config::WeightedRoundRobin(weighted_round_robin::Params::default());
    Some(match name {
        "none" => (plain, restore::Config::Unrestored(none::Params::default())),
        "in-order" => (plain, restore::Config::InOrder(in_order::Params::default())),
        "timed" => (plain, restore::Config::Timed(timed::Params::default())),
        "adaptive" => (
            split::Config::EarliestArrival(earliest_arrival::Params::default()),
            restore::Config::Adaptive(adaptive::Params::default()),
        ),
        _ => return None,
    })
}

/// Replaces a link of this rate and delay, in both directions, by routes with an eighth of the
/// rate. The k-th route has k ms more delay.
pub fn stops(
    builder: &mut Builder<Length>,
    name: &str,
    rate: Rate,
    delay: Duration,
    limit: u64,
) -> Option<[Vec<Stop>; 2]> {
    let (split, restore) = configs(name)?;
    let count = usize::try_from(ROUTES).ok()?;
    let has_header = split.needs_header() || restore.needs_header();
    let peers = [(); 2].map(|()| has_header.then(|| Peer::new(count)));
    let rate = Rate::new(rate.bits_per_s() / ROUTES)?;
    let ends = ["forward", "reverse"]
        .into_iter()
        .enumerate()
        .map(|(way, direction)| {
            let ports = (0..ROUTES)
                .map(|k| {
                    let delay = delay + Duration::from_millis(k);
                    let name = format!("link.route-{k}.{direction}");
                    builder.link(LinkSpec::new(name, Some(rate), delay).limit(limit / ROUTES))
                })
                .collect();
            let overhead = if has_header { 52 } else { 0 };
            let window = builder.window();
            let meter = Meter::default();
            let entrance = Entrance::new(EntranceParts {
                split: split.build(&split::Init {
                    rates: vec![Some(rate); count],
                    names: (0..count).map(|k| format!("route-{k}")).collect(),
                }),
                overhead,
                routes: count,
                keeps: split.keeps(),
                peer: peers[way].clone(),
                window,
                meter: meter.clone(),
            });
            let exit = Exit::new(ExitParts {
                restore: restore.build(&restore::Init { routes: count }),
                overhead,
                peer: peers[1 - way].clone(),
                window,
                meter,
            });
            let ids: [MiddleboxId; 2] = [
                builder.middlebox(Box::new(entrance), ports),
                builder.middlebox(Box::new(exit), Vec::new()),
            ];
            ids
        });
    let ends: Vec<[MiddleboxId; 2]> = ends.collect();
    let ends = <[_; 2]>::try_from(ends).ok()?;
    builder.pair(ends);
    Some(ends.map(|ids| ids.map(Stop::Middlebox).to_vec()))
}
