//! Links, by direction.

use std::sync::Arc;

use anabranch_core::{
    packet::Direction,
    units::{
        Bytes, Duration, Rate,
        text::{Limit, LinkRate},
    },
};
use anabranch_path::{
    group::Spread,
    link::{Mtu, Properties},
};

use super::{
    Hop, ResolvedFlow, ResolvedGateway, ResolvedLink, Resolver, Step,
    route::{Graph, Routes},
    side_file,
    wire::{self, Wire},
};
use crate::{
    error::{Error, Fault},
    format::{Delay, DelayKind, Family, File, Key, Link, OneWay, Queue, TraceFile, Way},
    kind::Kind,
    path::no_such,
    types::{Capacity, Delays, Medium, impair, queue},
};

/// The smallest MTU of IPv4 (RFC 791 §3.2), and its largest packet.
const LEAST_MTU: u32 = 68;
const MOST_MTU: u32 = 65_535;

/// One direction of a link in the file.
struct InFile<'a> {
    wire: &'a Wire<'a>,
    direction: Direction,
    keys: Way<'a>,
}

impl<'a> InFile<'a> {
    fn of(wire: &'a Wire<'a>, direction: Direction) -> Self {
        Self {
            wire,
            direction,
            keys: wire.link.way(direction),
        }
    }

    /// The path of a key: in the direction's table if it is there, or else in the link's.
    fn path(&self, key: Key) -> Vec<&'a str> {
        let (section, name) = (self.wire.section, self.wire.name.as_str());
        if self.keys.is_own(key) {
            vec![section, name, self.direction.name(), key.name()]
        } else {
            vec![section, name, key.name()]
        }
    }

    /// Whether MTUs above this direction's are reported, if the file says so. A setting for both
    /// directions applies only to directions with an MTU, if one has an MTU.
    fn mtu_reports(&self) -> Option<bool> {
        let link = &self.wire.link;
        let ways = [&link.forward, &link.reverse];
        let other = ways.into_iter().flatten().any(|way| way.mtu.is_some());
        let applies = self.keys.is_own(Key::mtu_reports) || self.keys.mtu.is_some() || !other;
        self.keys.mtu_reports.copied().filter(|_| applies)
    }

    /// Returns the MTU of the direction, if any.
    fn mtu(&self, resolver: &Resolver<'_>) -> Result<Option<Mtu>, Error> {
        let reports = self.mtu_reports();
        let Some(mtu) = self.keys.mtu else {
            return match reports {
                None => Ok(None),
                Some(_) => Err(resolver.error(
                    &self.path(Key::mtu_reports),
                    "this direction of the link has no MTU, so there is nothing to report"
                        .to_owned(),
                    vec!["expected an `mtu` beside it, for example \"1400 bytes\"".to_owned()],
                )),
            };
        };
        let bytes = u32::try_from(mtu.get())
            .ok()
            .filter(|bytes| (LEAST_MTU..=MOST_MTU).contains(bytes));
        let Some(bytes) = bytes else {
            return Err(resolver.error(
                &self.path(Key::mtu),
                format!("an MTU of {mtu} is outside {LEAST_MTU} to {MOST_MTU} bytes"),
                vec![format!(
                    "expected {LEAST_MTU} bytes, the minimum MTU of IPv4, to {MOST_MTU} bytes, its largest packet"
                )],
            ));
        };
        Ok(Some(Mtu {
            bytes,
            reports: reports.unwrap_or(true),
        }))
    }

    /// Returns the limit on held packets; a limit in bdp needs a `rate`.
    fn held_limit(
        &self,
        resolver: &Resolver<'_>,
        rate: Option<Rate>,
        rtt: Duration,
    ) -> Result<Limit, Error> {
        let path = || self.path(Key::held_limit);
        match (*self.keys.held_limit, rate) {
            (Limit::Bdp(_), None) => Err(needs_rate(resolver, &path(), "held_limit")),
            (Limit::Packets(0) | Limit::Bytes(Bytes::ZERO), _) => Err(resolver.error(
                &path(),
                "a link that can hold no packet delivers none".to_owned(),
                vec!["expected 1 packet or more, or \"unlimited\"".to_owned()],
            )),
            (limit, Some(rate)) => Ok(limit.with_bdp(rate * rtt)),
            (limit, None) => Ok(limit),
        }
    }

    /// Returns the traces of capacity and delay. Traces in `there` are not read again.
    fn traces(&self, resolver: &Resolver<'_>, there: Option<Traces>) -> Result<Traces, Error> {
        let is_later = there.is_some();
        let (was, delays_were) = there.map_or((None, None), |there| (there.capacity, there.delays));
        let (capacity, column) = self.capacity(resolver, (was, delays_were.clone()))?;
        let path = self.path(Key::delay);
        let delays = match self.keys.delay {
            None => column,
            Some(Delay::Fixed(_)) => None,
            Some(Delay::Kind(DelayKind::Trace(file))) => match delays_were {
                Some(delays) if delays.file == *file => Some(delays),
                _ if is_later => {
                    return Err(resolver.error(
                        &path,
                        "a delay cannot begin to follow a trace in mid-run".to_owned(),
                        vec![
                            "expected a duration; a trace holds from the start of the run"
                                .to_owned(),
                        ],
                    ));
                }
                _ => Some(read_delays(resolver, self.wire, &path, file)?),
            },
        };
        Ok(Traces { capacity, delays })
    }

    /// Returns the trace of the capacity, if any, and the delays of the same file.
    fn capacity(
        &self,
        resolver: &Resolver<'_>,
        there: (Option<Capacity>, Option<TracedDelay>),
    ) -> Result<(Option<Capacity>, Option<TracedDelay>), Error> {
        let path = self.path(Key::service);
        let Some(trace) = resolver.build(self.keys.service, &path)?.trace() else {
            return Ok((None, None));
        };
        let refuse = |path: &[&str], message: &str, help: &str| {
            Err(resolver.error(path, message.to_owned(), vec![help.to_owned()]))
        };
        if self.wire.section == "group" {
            return refuse(
                &path,
                "the members of a group send at a fixed rate",
                "expected `service = \"fixed\"`, or a link",
            );
        }
        if self.keys.rate.rate().is_some() {
            return refuse(
                &self.path(Key::rate),
                "this rate is beside a trace, which sets the times at which the link can send",
                "expected `rate` or a trace; if only one direction has a trace, `rate` in the other (`forward.rate`, `reverse.rate`)",
            );
        }
        if there.0.is_some() {
            return Ok(there);
        }
        let place = [&path[..], &["file"]].concat();
        let named = side_file::Named {
            path: &place,
            file: &trace.file,
            noun: "a trace: a time in whole milliseconds on each line, or a time in seconds and a rate in Mbit/s",
        };
        let parse = |text: &str| Capacity::parse(text, trace.repeat);
        let (capacity, column) = side_file::text(resolver, named, parse)?;
        let delays = column.map(|table| TracedDelay {
            file: trace,
            table: Arc::new(table),
        });
        Ok((Some(capacity), delays))
    }

    /// Returns the delay; for a trace, its mean.
    fn mean_delay(&self, traces: &Traces) -> Duration {
        match self.keys.delay {
            Some(Delay::Fixed(delay)) => *delay,
            _ => traces
                .delays
                .as_ref()
                .map_or(Duration::ZERO, |delays| delays.table.mean()),
        }
    }

    /// Returns the medium, if the service models medium access. A `trace` replaces the rate.
    fn medium(
        &self,
        resolver: &Resolver<'_>,
        trace: Option<&Capacity>,
    ) -> Result<Option<Medium>, Error> {
        let path = self.path(Key::service);
        let Some(medium) = resolver.build(self.keys.service, &path)?.medium() else {
            return Ok(None);
        };
        let refuse = |message: String, help: &str| {
            Err(resolver.error(&path, message, vec![help.to_owned()]))
        };
        if self.wire.section == "group" {
            return refuse(
                "the members of a group send at a fixed rate".to_owned(),
                "expected `service = \"fixed\"`, or a link",
            );
        }
        if self.keys.rate.rate().is_none() && trace.is_none() {
            return refuse(
                format!("a {} needs the rate of its physical layer", medium.noun()),
                match medium {
                    Medium::Cellular(_) => {
                        "expected `rate` beside it, for example \"65 Mbit/s\", or a trace in its `file`"
                    }
                    _ => "expected `rate` beside it, for example \"65 Mbit/s\"",
                },
            );
        }
        Ok(Some(medium))
    }
}

fn read_delays(
    resolver: &Resolver<'_>,
    wire: &Wire<'_>,
    path: &[&str],
    file: &TraceFile,
) -> Result<TracedDelay, Error> {
    if wire.section == "group" {
        return Err(resolver.error(
            path,
            "the members of a group have a fixed delay".to_owned(),
            vec!["expected a duration, or a link".to_owned()],
        ));
    }
    let place = [path, &["file"]].concat();
    let named = side_file::Named {
        path: &place,
        file: &file.file,
        noun: "a trace: a time in seconds and a delay in milliseconds on each line",
    };
    let table = side_file::text(resolver, named, |text| Delays::parse(text, file.repeat))?;
    Ok(TracedDelay {
        file: file.clone(),
        table: Arc::new(table),
    })
}

/// A delay that follows a trace.
#[derive(Debug, Clone)]
pub(super) struct TracedDelay {
    pub file: TraceFile,
    pub table: Arc<Delays>,
}

/// Traces of capacity and delay, from the scenario's files.
#[derive(Debug, Clone)]
pub(super) struct Traces {
    pub capacity: Option<Capacity>,
    pub delays: Option<TracedDelay>,
}

/// Parts that are kept: traces read from files, and impairments that no change touches.
#[derive(Debug)]
pub(super) struct Kept {
    pub traces: Traces,
    pub impair: Option<Vec<impair::Config>>,
}

/// Resolves one direction of `wire`, and the file of its delay's trace, if any. A limit in
/// bandwidth-delay products uses `rtt` as the delay. The `kept` parts are reused.
pub(super) fn direction(
    resolver: &Resolver<'_>,
    wire: &Wire<'_>,
    direction: Direction,
    rtt: Duration,
    kept: Kept,
) -> Result<(Properties, Option<TraceFile>), Error> {
    let written = InFile::of(wire, direction);
    let Kept { traces, impair } = kept;
    let traces = written.traces(resolver, Some(traces))?;
    let medium = written.medium(resolver, traces.capacity.as_ref())?;
    let rate = match &traces.capacity {
        Some(trace) => Some(trace.mean_rate()),
        None => written.keys.rate.rate(),
    };
    let mtu = written.mtu(resolver)?;
    let total =
        rate.and_then(|rate| Rate::new(rate.bits_per_s().saturating_mul(u64::from(wire.members))));
    let held_limit = written.held_limit(resolver, total, rtt)?;
    let queue_path = written.path(Key::queue);
    let mut queue = resolver.build(&written.keys.queue.discipline, &queue_path)?;
    if let Some(key) = queue.in_bdp() {
        let Some(rate) = rate else {
            let noun = key.last().map_or("limit", |key| *key);
            let path = [&queue_path[..], key].concat();
            return Err(needs_rate(resolver, &path, noun));
        };
        queue.set_bdp(rate * rtt * u64::from(wire.members));
    }
    if let Err(wrong) = queue.check() {
        return Err(resolver.error(
            &[&queue_path[..], wrong.key].concat(),
            wrong.message,
            vec![format!("expected {}", wrong.expected)],
        ));
    }
    let impair = match impair {
        Some(impair) => impair,
        None => impairments(resolver, written.keys.impair, &written.path(Key::impair))?,
    };
    let properties = Properties {
        rate,
        delay: written.mean_delay(&traces),
        trace: traces.capacity,
        medium,
        delays: traces
            .delays
            .as_ref()
            .map(|delays| Arc::clone(&delays.table)),
        queue,
        reorder: written.keys.queue.reorder,
        held_limit,
        impair,
        mtu,
        ..written.keys.properties()
    };
    Ok((properties, traces.delays.map(|delays| delays.file)))
}

/// The error for a limit in bdp on a link without a rate.
fn needs_rate(resolver: &Resolver<'_>, path: &[&str], noun: &str) -> Error {
    resolver.error(
        path,
        format!("a {noun} in bdp needs a rate, and this link's is unlimited"),
        vec![format!(
            "expected a `rate` on the link, or a {noun} in packets or bytes"
        )],
    )
}

/// Resolves the impairments of a direction, which are at `path`.
fn impairments(
    resolver: &Resolver<'_>,
    list: &[Kind<impair::Config>],
    path: &[&str],
) -> Result<Vec<impair::Config>, Error> {
    let build = |(k, kind): (usize, &Kind<impair::Config>)| {
        let position = k.to_string();
        let place = [path, &[&position]].concat();
        let mut config = resolver.build(kind, &place)?;
        if let Some(file) = config.file().map(str::to_owned) {
            if let Err(wrong) = config.check() {
                return Err(contradiction(resolver, &place, wrong));
            }
            let path = [&place[..], &["file"]].concat();
            let named = side_file::Named {
                path: &path,
                file: &file,
                noun: "a text file with a value on each line",
            };
            side_file::text(resolver, named, |text| config.take_file(text))?;
        }
        match config.check() {
            Err(wrong) => Err(contradiction(resolver, &place, wrong)),
            Ok(()) => Ok(config),
        }
    };
    list.iter().enumerate().map(build).collect()
}

fn contradiction(resolver: &Resolver<'_>, place: &[&str], wrong: impair::Contradiction) -> Error {
    resolver.error(
        &[place, wrong.key].concat(),
        wrong.message,
        vec![format!("expected {}", wrong.expected)],
    )
}

/// Requires that the flows exist that a queue's parameters name.
fn check_flows(
    resolver: &Resolver<'_>,
    file: &File,
    wire: &Wire<'_>,
    way: Direction,
    queue: &queue::Config,
) -> Result<(), Error> {
    let Some((key, flows)) = queue.flows() else {
        return Ok(());
    };
    for (k, flow) in flows.iter().enumerate() {
        let (table, copy) = match flow.split_once('/') {
            Some((table, copy)) => (table, Some(copy)),
            None => (&flow[..], None),
        };
        let mut tables = file.flow.0.iter();
        let count = tables
            .find(|(name, _)| name == table)
            .map_or(0, |(_, flow)| flow.count);
        let position = k.to_string();
        let fault = match copy {
            _ if count == 0 => no_such("flow", flow, resolver.root, |_| true),
            None => continue,
            Some(copy) if count > 1 && (0..count).any(|k| k.to_string() == copy) => continue,
            Some(_) if count == 1 => Fault::new(format!("there is no flow `{flow}`"))
                .help(format!("expected `{table}`, of which there is one")),
            Some(_) => Fault::new(format!("there is no flow `{flow}`")).help(format!(
                "expected `{table}` for all copies, or one from `{table}/0` to `{table}/{}`",
                count - 1
            )),
        };
        let path = InFile::of(wire, way).path(Key::queue);
        return Err(resolver.fault(&[&path[..], key, &[&position[..]]].concat(), fault));
    }
    Ok(())
}

/// Refuses queues that a group cannot use. A group that spreads flows has a line per member after
/// the queue, so a queue that decides at dequeue would not see packets wait.
fn check_spread(
    resolver: &Resolver<'_>,
    file: &File,
    wire: &Wire<'_>,
    way: Direction,
    queue: &queue::Config,
) -> Result<(), Error> {
    let mut groups = file.group.0.iter();
    let written = InFile::of(wire, way);
    let path = written.path(Key::queue);
    if wire.section == "group" && queue.shapes() {
        return Err(resolver.error(
            &[&path[..], &["rate"]].concat(),
            format!(
                "`{}` shapes to its `rate`, and the members of a group have a rate already",
                queue.name()
            ),
            vec!["expected no `rate` in it".to_owned()],
        ));
    }
    let per_flow = wire.section == "group"
        && groups.any(|(name, group)| *name == wire.name && group.spread == Spread::PerFlow);
    if !per_flow || !queue.decides_late() {
        return Ok(());
    }
    Err(resolver.error(
        &[&path[..], &["kind"]].concat(),
        format!(
            "`{}` decides at dequeue, and a group with `spread = \"per-flow\"` dequeues packets before they can be sent",
            queue.name()
        ),
        vec![
            "expected a queue that decides at enqueue, for example `drop-tail` or `red`, or `spread = \"per-packet\"`"
                .to_owned(),
        ],
    ))
}

/// IPv6 requires an MTU of 1280 bytes on every link (RFC 8200 §5).
const LEAST_MTU_V6: u32 = 1280;

/// Refuses flows over IPv6 that cross a link with a smaller MTU.
pub(super) fn check_mtus(
    resolver: &Resolver<'_>,
    links: &[ResolvedLink],
    gateways: &[ResolvedGateway],
    flows: &[ResolvedFlow],
) -> Result<(), Error> {
    for flow in flows.iter().filter(|flow| flow.family == Family::V6) {
        let steps = flow.route.iter().chain(&flow.return_route);
        for hop in steps.flat_map(|step| step.hops(gateways)) {
            let link = &links[hop.link];
            let Some(mtu) = link.way(&hop).mtu else {
                continue;
            };
            if mtu.bytes < LEAST_MTU_V6 {
                return Err(resolver.error(
                    &["flow", &flow.table, "family"],
                    format!(
                        "the link `{}` has an MTU of {} bytes, and IPv6 requires {LEAST_MTU_V6} on every link",
                        link.name, mtu.bytes
                    ),
                    vec![format!(
                        "expected `family = 4`, or `mtu = \"{LEAST_MTU_V6} bytes\"` or more there"
                    )],
                ));
            }
        }
    }
    Ok(())
}

/// Resolves all links. The base round-trip time of a link is the largest of the flows that cross it
/// in either direction, or its own two-way delay if no flow does. A gateway counts with the longest
/// of its routes.
pub(super) fn links(
    resolver: &Resolver<'_>,
    file: &File,
    wires: &[Wire<'_>],
    graph: &Graph,
    gateways: &[ResolvedGateway],
    routes: &[Routes],
) -> Result<Vec<ResolvedLink>, Error> {
    let read = |wire| -> Result<[Traces; 2], Error> {
        let [forward, reverse] =
            Direction::BOTH.map(|way| InFile::of(wire, way).traces(resolver, None));
        Ok([forward?, reverse?])
    };
    let traces = wires.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let delay = |hop: &Hop| {
        let written = InFile::of(&wires[hop.link], hop.direction);
        written.mean_delay(&traces[hop.link][hop.direction as usize])
    };
    let longest = |step: &Step| {
        let delays = step.hops(gateways).map(|hop| delay(&hop));
        delays.max().unwrap_or(Duration::ZERO)
    };
    let sum = |steps: &[Step]| {
        let delays = steps.iter().map(longest);
        delays.fold(Duration::ZERO, saturating_add)
    };
    let mut largest: Vec<[Option<Duration>; 2]> = vec![[None; 2]; wires.len()];
    for routes in routes {
        let rtt = saturating_add(sum(&routes.there), sum(&routes.back));
        let steps = routes.there.iter().chain(&routes.back);
        for hop in steps.flat_map(|step| step.hops(gateways)) {
            let of_link = &mut largest[hop.link][hop.direction as usize];
            *of_link = (*of_link).max(Some(rtt));
        }
    }
    wires
        .iter()
        .enumerate()
        .map(|(index, wire)| {
            let own = Direction::BOTH
                .map(|direction| {
                    delay(&Hop {
                        link: index,
                        direction,
                    })
                })
                .into_iter()
                .fold(Duration::ZERO, saturating_add);
            let base_rtt = largest[index].map(|largest| largest.unwrap_or(own));
            let one = |way: Direction| {
                let rtt = base_rtt[way as usize];
                let kept = Kept {
                    traces: traces[index][way as usize].clone(),
                    impair: None,
                };
                let (built, file_of_delay) = direction(resolver, wire, way, rtt, kept)?;
                check_flows(resolver, file, wire, way, &built.queue)?;
                check_spread(resolver, file, wire, way, &built.queue)?;
                Ok((built, file_of_delay))
            };
            let (forward, forward_delay) = one(Direction::Forward)?;
            let (reverse, reverse_delay) = one(Direction::Reverse)?;
            Ok(ResolvedLink {
                name: wire.name.clone(),
                ends: graph.ends[index],
                directions: [forward, reverse],
                base_rtt,
                delay_files: [forward_delay, reverse_delay],
                group: wire::group(resolver, file, wire)?,
            })
        })
        .collect()
}

fn saturating_add(a: Duration, b: Duration) -> Duration {
    Duration::from_picos(a.as_picos().saturating_add(b.as_picos()))
}

/// Writes the resolved values into the tables, each direction in full.
pub(super) fn write_out(file: &mut File, links: &[ResolvedLink]) {
    let plain = links.iter().filter(|link| link.group.is_none());
    for ((_, table), link) in file.link.0.iter_mut().zip(plain) {
        let [forward, reverse] = Direction::BOTH.map(|way| one_way(link, table, way));
        table.delay.get_or_insert(Duration::ZERO.into());
        table.held_limit = Limit::Unlimited;
        table.forward = Some(forward);
        table.reverse = Some(reverse);
    }
    for (name, table) in &mut file.group.0 {
        let mut groups = links
            .iter()
            .filter_map(|link| Some((link, link.group.as_ref()?)));
        if let Some((link, group)) = groups.find(|(link, _)| link.name == *name) {
            let member = Link::from(&*table);
            let ways = Direction::BOTH.map(|way| one_way(link, &member, way));
            wire::write_out(table, group, ways);
        }
    }
}

/// Returns a direction in full.
fn one_way(link: &ResolvedLink, table: &Link, way: Direction) -> OneWay {
    let direction = &link.directions[way as usize];
    OneWay {
        rate: Some(match direction.rate {
            Some(rate) if direction.trace.is_none() => LinkRate::Rate(rate),
            _ => LinkRate::Unlimited,
        }),
        delay: Some(match &link.delay_files[way as usize] {
            Some(file) => Delay::Kind(DelayKind::Trace(file.clone())),
            None => direction.delay.into(),
        }),
        queue: Some(Queue {
            discipline: Kind::BuiltIn(direction.queue.clone()),
            reorder: direction.reorder,
        }),
        held_limit: Some(direction.held_limit).filter(|limit| *limit != Limit::Unlimited),
        impair: Some(
            direction
                .impair
                .iter()
                .cloned()
                .map(Kind::BuiltIn)
                .collect(),
        ),
        mtu_reports: direction.mtu.map(|mtu| mtu.reports),
        ..table.way(way).written()
    }
}
