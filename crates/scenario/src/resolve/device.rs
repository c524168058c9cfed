//! The devices and addresses of hosts in the live engine, and the devices of flows.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::{
    Attached, Resolver,
    route::{Graph, Routes},
};
use crate::{
    error::{Error, choice},
    format::{File, Flow, Host},
    tree::Value,
};

/// Linux: `IFNAMSIZ` - 1.
const LONGEST_NAME: usize = 15;

/// Adds the devices and addresses of each node. The names of hosts have been checked.
pub(super) fn add(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
    all: &mut [Attached],
) -> Result<(), Error> {
    let mut owners: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for (name, host) in &file.host.0 {
        let node = graph.find(name).expect("hosts have been checked");
        check_interface(resolver, name, host, &all[node])?;
        check_not_empty(resolver, name)?;
        for place in 0..host.devices.len() {
            check_device(resolver, graph, (name, node), &host.devices, place)?;
        }
        for (place, address) in host.addresses.iter().enumerate() {
            if let Some(owner) = owners.insert(address.0, name) {
                return Err(resolver.error(
                    &["host", name, "addresses", &place.to_string()],
                    format!("`{address}` is an address of `{owner}` already"),
                    vec!["expected addresses that no other host has, each once".to_owned()],
                ));
            }
        }
        all[node].devices.clone_from(&host.devices);
        all[node].addresses = host.addresses.iter().map(|address| address.0).collect();
    }
    Ok(())
}

/// Refuses an empty list of devices or addresses.
fn check_not_empty(resolver: &Resolver<'_>, name: &str) -> Result<(), Error> {
    for (key, expected) in [
        ("devices", "links, groups or gateways of the host"),
        ("addresses", "addresses of one host"),
    ] {
        let path = ["host", name, key];
        let given = resolver.root.find(&path).map(|node| &node.value);
        if matches!(given, Some(Value::List(list)) if list.is_empty()) {
            return Err(resolver.error(
                &path,
                format!("`{key}` is empty"),
                vec![format!("expected {expected}, or no `{key}`")],
            ));
        }
    }
    Ok(())
}

/// Refuses devices and addresses at a host that represents an interface, which has none of ours.
fn check_interface(
    resolver: &Resolver<'_>,
    name: &str,
    host: &Host,
    attached: &Attached,
) -> Result<(), Error> {
    let given = [
        ("devices", host.devices.is_empty()),
        ("addresses", host.addresses.is_empty()),
    ];
    let given = given.into_iter().find(|(_, is_empty)| !is_empty);
    match given {
        Some((key, _)) if attached.interface.is_some() => Err(resolver.error(
            &["host", name, key],
            format!("`{name}` is attached to an interface, whose devices and addresses are not part of the scenario"),
            vec![format!("expected `{key}` at a host without `attach`")],
        )),
        _ => Ok(()),
    }
}

fn check_device(
    resolver: &Resolver<'_>,
    graph: &Graph,
    (name, node): (&str, usize),
    devices: &[String],
    place: usize,
) -> Result<(), Error> {
    let device = &devices[place];
    let error = |message: String, help: Vec<String>| {
        Err(resolver.error(
            &["host", name, "devices", &place.to_string()],
            message,
            help,
        ))
    };
    let there = graph.names_at(node);
    if !there.contains(&device.as_str()) {
        return error(
            format!("there is no link, group or gateway `{device}` at `{name}`"),
            choice(device, &there),
        );
    }
    if devices[..place].contains(device) {
        return error(
            format!("`{device}` is a device of `{name}` already"),
            vec!["expected each name once".to_owned()],
        );
    }
    let is_reserved = ["lo", "all", "default"].contains(&device.as_str());
    let is_plain = device
        .bytes()
        .all(|b| b.is_ascii_graphic() && b != b':' && b != b'%');
    if is_reserved || !is_plain || device.len() > LONGEST_NAME {
        return error(
            format!("`{device}` cannot name a network device"),
            vec![format!(
                "expected a link whose name has 1 to {LONGEST_NAME} letters, digits and signs, without `:` and `%`, and is not \
                 `lo`, `all` or `default`"
            )],
        );
    }
    Ok(())
}

/// Returns the device over which each end of a flow sends; `None` if the host has one device for
/// all its links.
pub(super) fn of_flow(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
    (table, flow, routes): (&str, &Flow, &Routes),
) -> Result<[Option<usize>; 2], Error> {
    let ends = [
        (&flow.from, &routes.there, "from"),
        (&flow.to, &routes.back, "to"),
    ];
    let mut found = [None; 2];
    for (found, (name, steps, key)) in found.iter_mut().zip(ends) {
        let Some(host) = file
            .host
            .0
            .iter()
            .find(|(host, _)| host == name)
            .map(|(_, host)| host)
            .filter(|host| !host.devices.is_empty())
        else {
            continue;
        };
        let Some(first) = steps.first().map(|step| graph.name_of(*step)) else {
            continue;
        };
        *found = host.devices.iter().position(|device| device == first);
        if found.is_none() {
            return Err(resolver.error(
                &["flow", table, key],
                format!(
                    "`{table}` leaves `{name}` over `{first}`, which is not one of its devices"
                ),
                vec![format!(
                    "expected a route over one of `{}`, or `{first}` among `devices` of `{name}`",
                    host.devices.join("`, `")
                )],
            ));
        }
    }
    Ok(found)
}

/// Refuses an empty `match`.
pub(super) fn check_match(resolver: &Resolver<'_>, table: &str, flow: &Flow) -> Result<(), Error> {
    if flow
        .select
        .as_ref()
        .is_some_and(crate::format::Match::is_empty)
    {
        return Err(resolver.error(
            &["flow", table, "match"],
            "`match` is empty and would match every packet".to_owned(),
            vec!["expected `port`, `prefix` or both, or no `match`".to_owned()],
        ));
    }
    Ok(())
}
