//! Gateways and their routes.

use anabranch_core::{
    packet::Direction,
    units::{Bytes, Duration},
};
use anabranch_document::class;
use anabranch_path::multipath::{header, restore, split};

use super::{
    GatewayEnds, Hop, ResolvedClass, ResolvedGateway, ResolvedLink, Resolver, route::Graph,
};
use crate::{
    error::{Error, Fault, choice},
    format::{File, Gateway, GatewayKind, Named, Policy},
    kind::Kind,
    path::no_such,
};

/// The most bytes that a tunnel may add to a packet: the size of a large packet.
const MAX_OVERHEAD: u32 = 1500;
/// The most routes of a gateway; the splitter evaluates all of them for each packet.
const MAX_ROUTES: usize = 256;
/// The most routes of a tunnel: its messages identify a path by four bits.
const MAX_PATHS: usize = 16;
/// The latest reading of a clock at the start; the time of the run is added to it.
const MAX_OFFSET: Duration = Duration::from_secs(1_000_000);

/// Resolves all gateways.
pub(super) fn gateways(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
) -> Result<Vec<ResolvedGateway>, Error> {
    let mut gateways: Vec<ResolvedGateway> = Vec::new();
    for (name, table) in &file.gateway.0 {
        if graph.link(name).is_some() {
            return Err(resolver.error(
                &["gateway", name],
                format!("the gateway `{name}` has the name of a link"),
                vec!["expected a name that no link has".to_owned()],
            ));
        }
        let ends = ends(resolver, graph, name, table)?;
        let elements = match table.kind {
            GatewayKind::Split => split_ends(resolver, (name, table))?,
            GatewayKind::Tunnel => tunnel_ends(resolver, (name, table))?,
        };
        let routes = routes(resolver, graph, &gateways, (name, table), ends)?;
        gateways.push(ResolvedGateway {
            name: name.clone(),
            ends,
            routes,
            elements,
        });
    }
    Ok(gateways)
}

fn split_ends(
    resolver: &Resolver<'_>,
    (name, table): (&str, &Gateway),
) -> Result<GatewayEnds, Error> {
    let foreign = [
        ("policies", !table.policies.is_empty()),
        ("class", !table.class.is_empty()),
        ("clock_offset", table.clock_offset.is_some()),
    ];
    refuse_foreign(resolver, name, &foreign, "tunnel", "split")?;
    let missing = |key: &str| {
        let help = format!("expected `{key} = …`");
        resolver.fault(&["gateway", name], Fault::missing(key).help(help))
    };
    let split = table.split.as_ref().ok_or_else(|| missing("split"))?;
    let split = resolver.build(split, &["gateway", name, "split"])?;
    let restore = table.restore.as_ref().ok_or_else(|| missing("restore"))?;
    let restore = resolver.build(restore, &["gateway", name, "restore"])?;
    let overhead = overhead(resolver, (name, table), &split, &restore)?;
    Ok(GatewayEnds::Split {
        split,
        restore,
        overhead,
    })
}

fn tunnel_ends(
    resolver: &Resolver<'_>,
    (name, table): (&str, &Gateway),
) -> Result<GatewayEnds, Error> {
    let foreign = [
        ("split", table.split.is_some()),
        ("restore", table.restore.is_some()),
        ("overhead", table.overhead.is_some()),
    ];
    refuse_foreign(resolver, name, &foreign, "split", "tunnel")?;
    if table.routes.len() > MAX_PATHS {
        return Err(resolver.error(
            &["gateway", name, "routes"],
            format!("the tunnel `{name}` has {} routes", table.routes.len()),
            vec![format!("expected 1 to {MAX_PATHS} links")],
        ));
    }
    let mut policies = vec![Policy::default(); table.routes.len()];
    for (route, policy) in &table.policies.0 {
        let Some(place) = table.routes.iter().position(|known| known == route) else {
            return Err(resolver.error(
                &["gateway", name, "policies", route],
                format!("`{route}` is no route of the gateway `{name}`"),
                choice(route, &table.routes),
            ));
        };
        policies[place] = *policy;
    }
    let clock_offset = table.clock_offset.unwrap_or_default();
    for (k, offset) in clock_offset.iter().enumerate() {
        if *offset > MAX_OFFSET {
            return Err(resolver.error(
                &["gateway", name, "clock_offset", &k.to_string()],
                format!("the clock of an end begins at {offset}"),
                vec![format!("expected {MAX_OFFSET} at most")],
            ));
        }
    }
    Ok(GatewayEnds::Tunnel {
        policies,
        classes: classes(resolver, (name, table))?,
        clock_offset,
    })
}

/// Resolves the classes of a tunnel; their paths are its routes.
fn classes(
    resolver: &Resolver<'_>,
    (name, table): (&str, &Gateway),
) -> Result<Vec<ResolvedClass>, Error> {
    let routes: Vec<&str> = table.routes.iter().map(String::as_str).collect();
    class::check(&table.class, &routes).map_err(|wrong| {
        let place = wrong.path(&["gateway", name, "class"]);
        resolver.error(&place, wrong.message.clone(), wrong.help.clone())
    })?;
    let classes = table.class.0.iter();
    let all = classes.map(|(name, class)| ResolvedClass {
        name: name.clone(),
        matches: class.matches.clone(),
        mode: class.mode,
        path: routes
            .iter()
            .position(|route| class.path.as_deref() == Some(*route)),
    });
    Ok(all.collect())
}

/// Refuses keys of the other kind of gateway.
fn refuse_foreign(
    resolver: &Resolver<'_>,
    name: &str,
    keys: &[(&str, bool)],
    theirs: &str,
    own: &str,
) -> Result<(), Error> {
    let Some((key, _)) = keys.iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    Err(resolver.error(
        &["gateway", name, key],
        format!(
            "`{key}` is for `kind = \"{theirs}\"`, and the gateway `{name}` is of kind `{own}`"
        ),
        vec![format!("expected no `{key}`, or `kind = \"{theirs}\"`")],
    ))
}

/// Returns the bytes that the tunnel adds to each packet: the value of the file, or the required
/// minimum.
fn overhead(
    resolver: &Resolver<'_>,
    (name, table): (&str, &Gateway),
    split: &split::Config,
    restore: &restore::Config,
) -> Result<u32, Error> {
    let needs = match (split.needs_header(), restore.needs_header()) {
        (_, true) => Some(("restorer", restore.name())),
        (true, false) => Some(("splitter", split.name())),
        (false, false) => None,
    };
    let Some(given) = table.overhead else {
        return Ok(needs.map_or(0, |_| header::SIZE + header::CARRIER));
    };
    let wrong = |message: String, least: u32| {
        let [least, most] = [least, MAX_OVERHEAD].map(|bytes| Bytes::new(u64::from(bytes)));
        resolver.error(
            &["gateway", name, "overhead"],
            message,
            vec![format!("expected {least} to {most}")],
        )
    };
    let least = needs.map_or(0, |_| header::SIZE);
    let bytes = u32::try_from(given.get())
        .ok()
        .filter(|bytes| *bytes <= MAX_OVERHEAD)
        .ok_or_else(|| {
            wrong(
                format!("a tunnel does not add {given} to each packet"),
                least,
            )
        })?;
    match needs {
        Some((kind, needs)) if bytes < least => Err(wrong(
            format!(
                "the {kind} `{needs}` needs the tunnel's header, {}, and the tunnel adds {given}",
                Bytes::new(u64::from(header::SIZE))
            ),
            least,
        )),
        _ => Ok(bytes),
    }
}

fn ends(
    resolver: &Resolver<'_>,
    graph: &Graph,
    name: &str,
    table: &Gateway,
) -> Result<[usize; 2], Error> {
    let mut ends = [0; 2];
    for (k, node) in table.between.iter().enumerate() {
        ends[k] = graph.find(node).ok_or_else(|| {
            resolver.error(
                &["gateway", name, "between", &k.to_string()],
                format!("no link leads to a node `{node}`"),
                choice(node, &graph.nodes),
            )
        })?;
    }
    if ends[0] == ends[1] {
        return Err(resolver.error(
            &["gateway", name, "between"],
            format!(
                "the gateway `{name}` joins `{}` to itself",
                table.between[0]
            ),
            vec!["expected two different nodes".to_owned()],
        ));
    }
    Ok(ends)
}

fn routes(
    resolver: &Resolver<'_>,
    graph: &Graph,
    before: &[ResolvedGateway],
    (name, table): (&str, &Gateway),
    ends: [usize; 2],
) -> Result<Vec<Hop>, Error> {
    let count = table.routes.len();
    // A tunnel works over one path; a splitter needs two.
    let least = match table.kind {
        GatewayKind::Split => 2,
        GatewayKind::Tunnel => 1,
    };
    if !(least..=MAX_ROUTES).contains(&count) {
        let has = match count {
            0 => "no route".to_owned(),
            1 => "one route: there is nothing to split".to_owned(),
            _ => format!("{count} routes"),
        };
        return Err(resolver.error(
            &["gateway", name, "routes"],
            format!("the gateway `{name}` has {has}"),
            vec![format!("expected {least} to {MAX_ROUTES} links")],
        ));
    }
    let mut routes: Vec<Hop> = Vec::new();
    for (k, link_name) in table.routes.iter().enumerate() {
        let k = k.to_string();
        let place = ["gateway", name, "routes", &k];
        let Some(link) = graph.link(link_name) else {
            let fault = no_such("link", link_name, resolver.root, |_| true);
            return Err(resolver.fault(&place, fault));
        };
        let Some((hop, _)) = graph.hop(ends[0], link).filter(|(_, to)| *to == ends[1]) else {
            let [a, b] = graph.ends[link].map(|end| &graph.nodes[end]);
            let [from, to] = &table.between;
            return Err(resolver.error(
                &place,
                format!("`{link_name}` is between `{a}` and `{b}`, the gateway `{name}` between `{from}` and `{to}`"),
                vec!["expected links between the gateway's two ends".to_owned()],
            ));
        };
        if routes.contains(&hop) {
            return Err(resolver.error(
                &place,
                format!("`{link_name}` is a route of the gateway `{name}` twice"),
                vec!["expected each link once".to_owned()],
            ));
        }
        let taken = |gateway: &&ResolvedGateway| gateway.routes.iter().any(|r| r.link == link);
        if let Some(other) = before.iter().find(taken) {
            return Err(resolver.error(
                &place,
                format!(
                    "`{link_name}` is a route of the gateway `{}` already",
                    other.name
                ),
                vec!["a route carries only what one gateway splits".to_owned()],
            ));
        }
        routes.push(hop);
    }
    Ok(routes)
}

/// Requires a rate on every route of a splitter that weighs routes by rate.
pub(super) fn check_rates(
    resolver: &Resolver<'_>,
    gateways: &[ResolvedGateway],
    links: &[ResolvedLink],
) -> Result<(), Error> {
    for gateway in gateways {
        let GatewayEnds::Split { split, .. } = &gateway.elements else {
            continue;
        };
        if !split.needs_rates() {
            continue;
        }
        for (k, route) in gateway.routes.iter().enumerate() {
            let link = &links[route.link];
            let endless = |way: &Direction| link.directions[*way as usize].rate.is_none();
            let Some(way) = Direction::BOTH.iter().find(|way| endless(way)) else {
                continue;
            };
            return Err(resolver.error(
                &["gateway", &gateway.name, "routes", &k.to_string()],
                format!(
                    "the splitter `{}` weighs routes by their rate, and the {} rate of `{}` is unlimited",
                    split.name(),
                    way.name(),
                    link.name
                ),
                vec![format!("expected a `rate` of `{}`", link.name)],
            ));
        }
    }
    Ok(())
}

/// Writes the resolved values into the tables.
pub(super) fn write_out(file: &mut File, gateways: &[ResolvedGateway]) {
    for ((_, table), gateway) in file.gateway.0.iter_mut().zip(gateways) {
        match &gateway.elements {
            GatewayEnds::Split {
                split,
                restore,
                overhead,
            } => {
                table.split = Some(Kind::BuiltIn(split.clone()));
                table.restore = Some(Kind::BuiltIn(restore.clone()));
                table.overhead = Some(Bytes::new(u64::from(*overhead)));
            }
            GatewayEnds::Tunnel {
                policies,
                clock_offset,
                ..
            } => {
                let policies = table.routes.iter().cloned().zip(policies.iter().copied());
                table.policies = Named(policies.collect());
                table.clock_offset = Some(*clock_offset);
            }
        }
    }
}
