//! Flows: copies, start times, stacks.

use anabranch_core::{
    rng::Stream,
    units::{Bytes, Instant},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    ResolvedFlow, ResolvedGateway, ResolvedLink, Resolver, Step, Written, device,
    route::{Graph, Routes},
    traffic,
};
use crate::{
    de::later,
    error::{Error, Fault, choice},
    format::{File, Flow, Port, Protocol},
    kind::Kind,
    text::ResolvedText,
    tree::Node,
    types::{cc, fec, tcp, workload},
    unavailable,
};

/// Resolves all flows, and the stack settings of each table.
pub(super) fn flows(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
    routes: &[Routes],
) -> Result<(Vec<ResolvedFlow>, Vec<tcp::Settings>), Error> {
    let mut flows = Vec::new();
    let mut all_settings = Vec::new();
    for ((table, flow), routes) in file.flow.0.iter().zip(routes) {
        device::check_match(resolver, table, flow)?;
        let devices = device::of_flow(resolver, file, graph, (table, flow, routes))?;
        traffic::check_protocol(resolver, table, flow)?;
        let settings = settings(resolver, table, flow)?;
        let cc = match &flow.cc {
            Some(kind) => resolver.build(kind, &["flow", table, "cc"])?,
            None => default_control(&flow.stack),
        };
        let settings = under(&cc, settings, &flow.transport).map_err(|problem| {
            let path = ["flow", table, "transport", problem.field];
            resolver.fault(&path, refused(&problem))
        })?;
        let fec = correction(resolver, table, flow, &settings)?;
        let workload = resolver.build(&flow.workload, &["flow", table, "workload"])?;
        let workload = traffic::complete(resolver, table, flow, &settings, workload)?;
        check_workload(resolver, table, &workload)?;
        let replayed = traffic::replayed(resolver, table, flow, &workload)?;
        let node = |name: &str| graph.find(name).expect("routing found both ends");
        let ends = [node(&flow.from), node(&flow.to)];
        let start = Instant::START.saturating_add(flow.start);
        let written = written(resolver, table);
        for copy in 0..flow.count {
            let late = Stream::new(file.seed, &format!("flow.{table}.{copy}"))
                .at(0)
                .uniform_duration(flow.start_spread);
            flows.push(ResolvedFlow {
                name: match flow.count {
                    1 => table.clone(),
                    _ => format!("{table}/{copy}"),
                },
                table: table.clone(),
                copy,
                written: written.clone(),
                ends,
                start: start.saturating_add(late),
                stop: flow
                    .stop
                    .filter(|stop| *stop < file.duration)
                    .map(|stop| Instant::START.saturating_add(stop)),
                protocol: flow.protocol,
                family: flow.family,
                dscp: flow.dscp.get(),
                port: flow.port.map(Port::get),
                udp_headers: u32::try_from(traffic::udp_headers(flow.family)).expect("a few bytes"),
                stack: settings.clone(),
                cc: cc.clone(),
                fec: fec.clone(),
                workload: workload.clone(),
                replayed: replayed.clone(),
                route: routes.there.clone(),
                return_route: routes.back.clone(),
                devices,
                select: flow.select.clone().unwrap_or_default(),
            });
        }
        all_settings.push(settings);
    }
    Ok((flows, all_settings))
}

/// Returns the keys that the scenario gives a flow.
fn written(resolver: &Resolver<'_>, table: &str) -> Written {
    let entries = resolver
        .root
        .find(&["flow", table])
        .and_then(Node::as_table);
    let entries = entries.into_iter().flat_map(|table| &table.0);
    Written(entries.map(|entry| entry.key.clone()).collect())
}

fn settings(resolver: &Resolver<'_>, table: &str, flow: &Flow) -> Result<tcp::Settings, Error> {
    let path = ["flow", table, "stack"];
    let Some(profile) = tcp::Profile::named(&flow.stack) else {
        let known: Vec<&str> = tcp::profiles()
            .iter()
            .map(|profile| profile.meta.name)
            .collect();
        let given = resolver.root.find(&path).is_some();
        let fault = if unavailable::names("stack").contains(&flow.stack.as_str()) {
            let what = if given {
                format!("the stack `{}`", flow.stack)
            } else {
                format!("the default stack, `{}`,", flow.stack)
            };
            later(&what).help(format!(
                "expected `stack` to be one of `{}`",
                known.join("`, `")
            ))
        } else {
            let mut fault = Fault::new(format!("unknown stack `{}`", flow.stack));
            fault.help = choice(&flow.stack, &known);
            fault
        };
        return Err(resolver.fault(&path, fault));
    };
    profile.settings.with(&flow.transport).map_err(|problem| {
        let path = ["flow", table, "transport", problem.field];
        resolver.fault(&path, refused(&problem))
    })
}

/// Returns the flow's error correction, which must suit its stack.
fn correction(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
    settings: &tcp::Settings,
) -> Result<fec::Config, Error> {
    let path = ["flow", table, "fec"];
    let fec: fec::Config = resolver.build(&flow.fec, &path)?;
    fec.check().map_err(|wrong| {
        resolver.error(
            &[&path[..], wrong.key].concat(),
            wrong.message,
            vec![format!("expected {}", wrong.expected)],
        )
    })?;
    let most = anabranch_wire::redundant::MOST_PAYLOAD;
    if fec != fec::Config::Off && settings.mss > most {
        return Err(resolver.error(
            &path,
            format!(
                "the stack of `{table}` cannot carry error correction: its segments have {} bytes, and a redundant \
                 packet has room for {most}",
                settings.mss
            ),
            vec![format!("expected `fec = \"off\"`, or `transport.mss` of \"{most} bytes\" at most")],
        ));
    }
    Ok(fec.settled())
}

fn refused(problem: &tcp::Problem) -> Fault {
    <Fault as serde::de::Error>::custom(format!("`{}`: {}", problem.field, problem.message))
}

/// Returns the switches with the values that the congestion control requires.
///
/// # Errors
/// If a switch in the file contradicts the control.
fn under(
    cc: &cc::Config,
    mut settings: tcp::Settings,
    written: &tcp::Overrides,
) -> Result<tcp::Settings, tcp::Problem> {
    use cc::{HyStartUse, hystart::Kind, params::OrStack};
    use tcp::EcnMode;
    let problem = |field, message: String| Err(tcp::Problem { field, message });
    let name = cc.name();
    match (written.hystart, cc.hystart()) {
        (Some(Kind::Linux | Kind::HaRhee | Kind::Rfc9406), Some(HyStartUse::None)) => {
            return problem(
                "hystart",
                format!("`{name}` has no slow start that HyStart could end"),
            );
        }
        (Some(kind @ (Kind::Linux | Kind::HaRhee)), Some(HyStartUse::Rfc9406)) => {
            let kind = if kind == Kind::Linux {
                "linux"
            } else {
                "ha-rhee"
            };
            return problem(
                "hystart",
                format!("\"{kind}\" is a part of cubic; `{name}` can have \"rfc9406\" or \"off\""),
            );
        }
        (Some(stack), Some(HyStartUse::Any(OrStack::Own(own)))) if own != stack => {
            return problem(
                "hystart",
                format!(
                    "the parameter `hystart` of `{name}` contradicts this; expected one of the two"
                ),
            );
        }
        _ => {}
    }
    // The settings get the value that the control uses, so that the resolved scenario states the
    // actual behaviour and can be read again.
    match cc.hystart() {
        Some(HyStartUse::None) => settings.hystart = Kind::Off,
        Some(HyStartUse::Rfc9406) if matches!(settings.hystart, Kind::Linux | Kind::HaRhee) => {
            settings.hystart = Kind::Off;
        }
        Some(HyStartUse::Any(OrStack::Own(own))) => settings.hystart = own,
        _ => {}
    }
    settings.pacing |= cc.sets_its_rate();
    if written.pacing == Some(false) && cc.sets_its_rate() {
        return problem(
            "pacing",
            format!("`{name}` sets its pacing rate and is always paced"),
        );
    }
    if cc.needs_exact_marks() {
        match written.ecn {
            None if cc.is_l4s() => settings.ecn = EcnMode::L4s,
            None => settings.ecn = EcnMode::Dctcp,
            Some(
                EcnMode::Dctcp | EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s,
            ) => {}
            Some(EcnMode::Off | EcnMode::Rfc3168) => {
                return problem(
                    "ecn",
                    format!(
                        "`{name}` needs to know which bytes were marked; expected \"dctcp\", \"accecn\" or \"l4s\""
                    ),
                );
            }
        }
    }
    Ok(settings)
}

/// Returns the default congestion control of the stack. The stack's name has been checked before.
fn default_control(stack: &str) -> cc::Config {
    let name = tcp::Profile::named(stack).map_or("", |profile| profile.cc);
    cc::Config::named(name).expect("every profile names a control that is registered")
}

fn check_workload(
    resolver: &Resolver<'_>,
    table: &str,
    workload: &workload::Config,
) -> Result<(), Error> {
    use workload::{Config, Sizes};
    let empty = |key: &'static [&'static str]| {
        let message = "files of no bytes make no load".to_owned();
        (key, message, "1 byte or more")
    };
    let sizes = match workload {
        Config::File(file) if file.size == Bytes::ZERO => None,
        Config::Poisson(poisson) => Some(poisson.sizes.0),
        Config::File(_)
        | Config::Bulk
        | Config::Paced(_)
        | Config::OnOff(_)
        | Config::Replay(_)
        | Config::RequestResponse(_) => return Ok(()),
    };
    let (key, message, expected) = match sizes {
        None => empty(&["size"]),
        Some(Sizes::Fixed { size: Bytes::ZERO }) => empty(&["sizes", "size"]),
        Some(
            Sizes::Exponential { mean: Bytes::ZERO }
            | Sizes::Pareto {
                mean: Bytes::ZERO, ..
            },
        ) => empty(&["sizes", "mean"]),
        Some(Sizes::LogNormal {
            median: Bytes::ZERO,
            ..
        }) => empty(&["sizes", "median"]),
        Some(Sizes::Pareto { shape, .. }) if shape.is_nan() || shape <= 1.0 => (
            &["sizes", "shape"][..],
            format!("a Pareto distribution of shape {shape} has no mean"),
            "a number above 1",
        ),
        Some(Sizes::LogNormal { sigma, .. }) if !(sigma > 0.0 && sigma <= 4.0) => (
            &["sizes", "sigma"][..],
            format!("{sigma} is out of range for `sigma` of a log-normal distribution"),
            "a number above 0 and up to 4",
        ),
        Some(_) => return Ok(()),
    };
    Err(resolver.error(
        &[&["flow", table, "workload"][..], key].concat(),
        message,
        vec![format!("expected {expected}")],
    ))
}

/// Writes the resolved values into the tables.
pub(super) fn write_out(
    file: &mut File,
    flows: &[ResolvedFlow],
    links: &[ResolvedLink],
    gateways: &[ResolvedGateway],
) {
    let name = |step: &Step| match *step {
        Step::Link(hop) => links[hop.link].name.clone(),
        Step::Gateway { gateway, .. } => gateways[gateway].name.clone(),
    };
    let names = |steps: &[Step]| steps.iter().map(name).collect();
    let duration = file.duration;
    for (name, table) in &mut file.flow.0 {
        let Some(flow) = flows.iter().find(|flow| flow.table == *name) else {
            continue;
        };
        table.stop = Some(table.stop.unwrap_or(duration));
        if flow.protocol == Protocol::Tcp {
            table.cc = Some(Kind::BuiltIn(flow.cc.clone()));
            table.fec = Kind::BuiltIn(flow.fec.clone());
        }
        table.workload = Kind::BuiltIn(flow.workload.clone());
        table.route = Some(names(&flow.route));
        table.return_route = Some(names(&flow.return_route));
    }
}

/// Returns the scenario with these tables of flows.
pub(super) fn text(file: &File, flows: &Map<String, Value>) -> ResolvedText {
    #[derive(Serialize)]
    struct WithFlows<'a> {
        #[serde(flatten)]
        file: &'a File,
        flow: &'a Map<String, Value>,
    }
    debug_assert!(file.flow.is_empty(), "each flow once");
    ResolvedText::new(&WithFlows { file, flow: flows })
        .expect("tables are made of text, numbers and lists")
}

/// Returns the tables of flows as JSON, with every switch of each flow's stack under `transport`.
/// Keys that would change the meaning if written are omitted: in the live engine, an explicit
/// workload is an application of ours next to a program, and a flow of an attached interface has no
/// end of ours.
pub(super) fn with_settings(
    file: &File,
    settings: &[tcp::Settings],
    flows: &[ResolvedFlow],
) -> Map<String, Value> {
    let tables = file.flow.0.iter().zip(settings);
    tables
        .map(|((name, flow), settings)| {
            let mut table = table_of(flow, settings);
            keep_what_holds(&mut table, file, flow, |key| {
                let resolved = flows.iter().find(|flow| flow.table == *name);
                resolved.is_some_and(|flow| flow.gives(key))
            });
            (name.clone(), table.into())
        })
        .collect()
}

/// Returns a flow's table with its stack.
fn table_of(flow: &Flow, settings: &tcp::Settings) -> Map<String, Value> {
    let written = |value: serde_json::Result<Value>| match value {
        Ok(Value::Object(table)) => table,
        other => unreachable!("tables are made of text, numbers and lists: {other:?}"),
    };
    let mut table = written(serde_json::to_value(flow));
    if flow.protocol == Protocol::Udp {
        for key in ["stack", "transport", "fec"] {
            table.remove(key);
        }
        return table;
    }
    let mut transport = written(serde_json::to_value(settings));
    // In a scenario the segment size has its unit.
    let mss = Bytes::new(u64::from(settings.mss));
    transport.insert("mss".to_owned(), mss.to_string().into());
    table.insert("transport".to_owned(), transport.into());
    table
}

/// Removes keys without meaning if an end is a program or represents an interface, except keys that
/// the scenario gives.
fn keep_what_holds(
    table: &mut Map<String, Value>,
    file: &File,
    flow: &Flow,
    gives: impl Fn(&str) -> bool,
) {
    let ends = [&flow.from, &flow.to];
    let hosts = file.host.0.iter();
    let hosts = hosts.filter(|(host, _)| ends.contains(&host));
    let is_interface = |attach: &String| attach.starts_with("interface:");
    let (mut is_inline, mut runs) = (false, false);
    for (_, host) in hosts {
        is_inline |= host.attach.as_ref().is_some_and(is_interface);
        runs |= host.exec.is_some();
    }
    if is_inline {
        let way = ["from", "to", "route", "return_route"];
        table.retain(|key, _| way.contains(&key.as_str()) || gives(key));
    } else if runs {
        table.retain(|key, _| !["workload", "cc"].contains(&key.as_str()) || gives(key));
    }
}
