//! Parts of a scenario that no kernel, or not this one, can run.

use std::collections::BTreeSet;

use anabranch_congestion::{self as cc};
use anabranch_fec::{self as fec};
use anabranch_scenario::{GatewayEnds, Protocol, Resolved, ResolvedFlow, workload::Config};
use anabranch_tcp::EcnMode;

mod carried;

use crate::{
    kernel::address::number_in,
    plan::{
        directory::MOST_FLOWS,
        settings::{self, Switches, has_interface, has_own_end, is_carried, kernel_sends},
    },
};

/// A part of the scenario that cannot run live: its position, the reason, and the expected value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The keys of its position.
    pub path: Vec<String>,
    /// The reason.
    pub message: String,
    /// The expected value.
    pub help: String,
}

impl Refusal {
    pub(crate) fn new(path: &[&str], message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Checks whether all of a scenario can run live.
///
/// # Errors
/// With the first part that cannot.
pub fn check(resolved: &Resolved) -> Result<(), Refusal> {
    check_structure(resolved)?;
    check_flows(resolved)
}

/// Checks whether the network and the hosts can run live, whatever the flows do. This suffices for
/// a shell.
///
/// # Errors
/// With the first part that cannot.
pub fn check_structure(resolved: &Resolved) -> Result<(), Refusal> {
    if resolved.flows.len() > MOST_FLOWS {
        return Err(Refusal::new(
            &["flow"],
            format!("{} flows: each needs a separate port", resolved.flows.len()),
            format!("expected {MOST_FLOWS} flows at most"),
        ));
    }
    for link in &resolved.links {
        let group = link.group.as_ref();
        if group.is_some_and(|group| group.control.needs_arrivals() && group.arrivals.is_none()) {
            return Err(Refusal::new(
                &["group", &link.name, "control"],
                "a live run cannot know future arrivals, which `oracle` needs",
                "expected another controller",
            ));
        }
    }
    for gateway in &resolved.gateways {
        if matches!(gateway.elements, GatewayEnds::Tunnel { .. }) {
            return Err(Refusal::new(
                &["gateway", &gateway.name, "kind"],
                "a live run does not make the tunnel; `anabranch-gateway` runs it on real links",
                "expected `kind = \"split\"`, or the simulator",
            ));
        }
    }
    check_hosts(resolved)?;
    // Packets must fit the devices.
    for flow in &resolved.flows {
        if is_carried(flow, resolved) {
            continue;
        }
        match flow.protocol {
            Protocol::Udp => check_datagrams(flow)?,
            Protocol::Tcp => check_segments(flow, resolved)?,
        }
    }
    Ok(())
}

/// Checks whether this machine's kernel, or our own TCP, supports the settings of the flows.
fn check_flows(resolved: &Resolved) -> Result<(), Refusal> {
    check_peers(resolved)?;
    let first = settings::of_kernels(resolved).next();
    for flow in &resolved.flows {
        if is_carried(flow, resolved) {
            carried::check(flow, resolved)?;
            if has_interface(flow, resolved) {
                continue;
            }
        } else {
            check_workload(flow, resolved)?;
            check_port(flow)?;
            check_match(flow)?;
            if flow.protocol == Protocol::Udp {
                continue;
            }
            check_fec(flow)?;
            if !has_own_end(flow, resolved) {
                check_stack(flow, resolved)?;
            }
            if kernel_sends(flow, resolved) {
                check_parameters(flow)?;
            }
        }
        let differs = |first: &ResolvedFlow| {
            let switches =
                |flow: &ResolvedFlow| (flow.stack.ecn, Switches::of_kernels(flow, resolved));
            // An end with our own TCP has a separate buffer.
            let own = has_own_end(first, resolved) || has_own_end(flow, resolved);
            let buffers = first.stack.send_buffer != flow.stack.send_buffer;
            switches(first) != switches(flow) || (buffers && !own)
        };
        if first.is_some_and(differs) {
            return Err(Refusal::new(
                &["flow", &flow.table, "transport"],
                "a host has one setting for each of `ecn`, `timestamps`, `sack`, `dsack`, `rack`, `tlp`, `frto`, `mtu_discovery` and `send_buffer`, and the flows differ in them",
                "expected the same in every flow",
            ));
        }
    }
    Ok(())
}

/// Checks whether a node is a host for a shell.
///
/// # Errors
/// If no flow begins or ends there.
pub fn check_place(resolved: &Resolved, node: usize) -> Result<(), Refusal> {
    if resolved.attached[node].has_own_tcp {
        return Err(Refusal::new(
            &["host", &resolved.nodes[node], "tcp"],
            format!(
                "`{}` has our own TCP, and no namespace for a shell",
                resolved.nodes[node]
            ),
            "expected `tcp = \"kernel\"`, or another host",
        ));
    }
    if let Some(name) = &resolved.attached[node].interface {
        return Err(Refusal::new(
            &["host", &resolved.nodes[node], "attach"],
            format!(
                "`{}` is attached to the interface `{name}`, and has no namespace for a shell",
                resolved.nodes[node]
            ),
            "expected another host",
        ));
    }
    if resolved.flows.iter().any(|flow| flow.ends.contains(&node)) {
        return Ok(());
    }
    let ends: BTreeSet<&str> = resolved
        .flows
        .iter()
        .flat_map(|flow| flow.ends)
        .map(|end| resolved.nodes[end].as_str())
        .collect();
    let ends: Vec<&str> = ends.into_iter().collect();
    Err(Refusal::new(
        &[],
        format!(
            "no flow begins or ends at `{}`, so it is not a host",
            resolved.nodes[node]
        ),
        format!("expected one of `{}`", ends.join("`, `")),
    ))
}

/// Programs and interfaces need a flow whose path their packets take; an interface needs exactly
/// one.
fn check_hosts(resolved: &Resolved) -> Result<(), Refusal> {
    check_addresses(resolved)?;
    for (node, host) in resolved.attached.iter().enumerate() {
        let name = &resolved.nodes[node];
        let key = match (&host.exec, &host.interface) {
            (Some(_), _) => "exec",
            (None, Some(_)) => "attach",
            (None, None) => continue,
        };
        if !resolved.flows.iter().any(|flow| flow.ends.contains(&node)) {
            return Err(Refusal::new(
                &["host", name, key],
                format!("no flow begins or ends at `{name}`, so its packets have no route"),
                "expected a flow between the hosts that talk to each other",
            ));
        }
    }
    let is_interface = |node: usize| resolved.attached[node].interface.is_some();
    for flow in &resolved.flows {
        let Some(end) = flow.ends.into_iter().find(|end| is_interface(*end)) else {
            continue;
        };
        let name = resolved.nodes[end].as_str();
        if !flow.ends.into_iter().all(is_interface) {
            return Err(Refusal::new(
                &["host", name, "attach"],
                format!(
                    "`{name}` is attached to an interface and the other end of `{}` is not",
                    flow.name
                ),
                "expected interfaces at both ends, between which frames are carried",
            ));
        }
        if resolved
            .flows
            .iter()
            .filter(|flow| flow.ends.contains(&end))
            .count()
            > 1
        {
            return Err(Refusal::new(
                &["host", name, "attach"],
                format!(
                    "several flows begin or end at `{name}`: the scenario does not assign frames to them"
                ),
                "expected one flow at an interface, which carries all of its frames",
            ));
        }
    }
    check_interfaces(resolved)
}

/// The two networks of the devices' addresses are reserved.
fn check_addresses(resolved: &Resolved) -> Result<(), Refusal> {
    for (node, host) in resolved.attached.iter().enumerate() {
        let taken = host
            .addresses
            .iter()
            .position(|address| number_in(*address).is_some());
        if let Some(place) = taken {
            return Err(Refusal::new(
                &[
                    "host",
                    &resolved.nodes[node],
                    "addresses",
                    &place.to_string(),
                ],
                format!(
                    "`{}` is in a network that the live engine uses for its devices",
                    host.addresses[place]
                ),
                "expected an address outside of 10.113.0.0/16 and fd71:616e:6162::/64",
            ));
        }
    }
    Ok(())
}

/// Each interface is an end of one flow. The loopback is none, because packets sent there return at
/// once.
fn check_interfaces(resolved: &Resolved) -> Result<(), Refusal> {
    let mut taken: Vec<(&str, &str)> = Vec::new();
    for (node, host) in resolved.attached.iter().enumerate() {
        let (name, Some(interface)) = (resolved.nodes[node].as_str(), &host.interface) else {
            continue;
        };
        if interface == "lo" {
            return Err(loopback(name, interface));
        }
        if let Some((_, other)) = taken.iter().find(|(taken, _)| taken == interface) {
            return Err(same_interface(name, other, interface));
        }
        taken.push((interface, name));
    }
    Ok(())
}

/// Refuses an interface whose frames return to it.
pub fn loopback(host: &str, interface: &str) -> Refusal {
    Refusal::new(
        &["host", host, "attach"],
        format!("`{interface}` is a loopback interface: frames sent there return and would loop"),
        "expected a network card, or one end of a veth pair",
    )
}

/// Refuses two hosts with the same interface, under whatever names.
pub fn same_interface(host: &str, other: &str, interface: &str) -> Refusal {
    Refusal::new(
        &["host", host, "attach"],
        format!(
            "`{interface}` is the interface of `{other}` already: frames sent there would return and loop"
        ),
        "expected a separate interface for each host",
    )
}

/// Our own TCP needs a TCP application at the other end.
fn check_peers(resolved: &Resolved) -> Result<(), Refusal> {
    for flow in &resolved.flows {
        let own = |end: &usize| resolved.attached[*end].has_own_tcp;
        let runs = |end: &usize| resolved.attached[*end].exec.is_some();
        let is_others = is_carried(flow, resolved) || flow.ends.iter().any(runs);
        if let Some(end) = flow.ends.into_iter().find(own)
            && (is_others || flow.protocol == Protocol::Udp)
        {
            return Err(Refusal::new(
                &["host", &resolved.nodes[end], "tcp"],
                format!(
                    "our own TCP has no peer over `{}`: its other end is not a TCP application of ours",
                    flow.name
                ),
                "expected flows over TCP to hosts without `exec`",
            ));
        }
    }
    Ok(())
}

/// Packets of applications are identified by their ports.
fn check_match(flow: &ResolvedFlow) -> Result<(), Refusal> {
    if flow.select.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        &["flow", &flow.table, "match"],
        "`match` assigns packets of programs to flows, and this flow has an application of ours",
        "expected a host with `exec` at one of its ends and no `workload`, or no `match`",
    ))
}

fn check_port(flow: &ResolvedFlow) -> Result<(), Refusal> {
    if flow.port.is_none() {
        return Ok(());
    }
    Err(Refusal::new(
        &["flow", &flow.table, "port"],
        "a live run gives each flow a separate port",
        "expected no `port`, or the simulator",
    ))
}

fn check_workload(flow: &ResolvedFlow, resolved: &Resolved) -> Result<(), Refusal> {
    if let Config::RequestResponse(what) = &flow.workload
        && what.synchronized
    {
        return Err(Refusal::new(
            &["flow", &flow.table, "workload", "synchronized"],
            "live clients do not wait for each other in this version",
            "expected `synchronized = false`, or the simulator",
        ));
    }
    if !has_own_end(flow, resolved) {
        return Ok(());
    }
    if flow.protocol == Protocol::Udp {
        return Err(Refusal::new(
            &["flow", &flow.table, "protocol"],
            "a host with our own TCP has no UDP in this version",
            "expected `tcp`",
        ));
    }
    let name = match &flow.workload {
        Config::Bulk | Config::File(_) => return Ok(()),
        Config::Poisson(_) => "poisson",
        Config::Paced(_) => "paced",
        _ => "request-response",
    };
    Err(Refusal::new(
        &["flow", &flow.table, "workload"],
        format!("a host with our own TCP has no application for `{name}` in this version"),
        "expected `bulk` or `file`",
    ))
}

/// An IP packet has at most 65,535 bytes; over IPv6 a datagram that fits the format can exceed
/// that.
fn check_datagrams(flow: &ResolvedFlow) -> Result<(), Refusal> {
    const MOST: u32 = 65_535;
    let largest = settings::largest_datagram(flow).unwrap_or(0);
    if largest <= MOST {
        return Ok(());
    }
    Err(Refusal::new(
        &["flow", &flow.table, "workload"],
        format!("a packet of {largest} bytes with its headers is more than a device carries"),
        format!(
            "expected {} bytes of payload at most",
            MOST - flow.udp_headers
        ),
    ))
}

/// The range of `TCP_MAXSEG` (`TCP_MIN_MSS` and `MAX_TCP_WINDOW` of `net/tcp.h`), timestamps
/// included.
const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=32_767;

/// A socket of the kernel accepts segment sizes of this range only.
fn check_segments(flow: &ResolvedFlow, resolved: &Resolved) -> Result<(), Refusal> {
    let is_kernel = |node: &usize| !resolved.attached[*node].has_own_tcp;
    let size = settings::segment(&flow.stack);
    if SEGMENTS.contains(&size) || !flow.ends.iter().any(is_kernel) {
        return Ok(());
    }
    let [least, most] =
        [SEGMENTS.start(), SEGMENTS.end()].map(|bound| bound - (size - flow.stack.mss));
    Err(Refusal::new(
        &["flow", &flow.table, "transport", "mss"],
        format!(
            "a socket of this machine's kernel cannot have segments of {} bytes",
            flow.stack.mss
        ),
        format!("expected {least} to {most} bytes"),
    ))
}

fn check_fec(flow: &ResolvedFlow) -> Result<(), Refusal> {
    if flow.fec != fec::Config::Off {
        return Err(Refusal::new(
            &["flow", &flow.table, "fec"],
            "a live host runs this machine's kernel, whose TCP has no error correction",
            "expected `fec = \"off\"`",
        ));
    }
    Ok(())
}

fn check_stack(flow: &ResolvedFlow, resolved: &Resolved) -> Result<(), Refusal> {
    let named = &resolved.flow_tables[&flow.table]["stack"];
    let Some(mut kernel) = named.as_str().and_then(settings::stack_of_kernel) else {
        return Err(Refusal::new(
            &["flow", &flow.table, "stack"],
            format!("a live host runs this machine's kernel, not the stack {named}"),
            "expected `stack = \"linux\"`, or `tcp = \"own\"` at one of its hosts",
        ));
    };
    kernel.mss = flow.stack.mss;
    if !flow.stack.receive_autotuning {
        kernel.receive_autotuning = false;
        kernel.receive_window = flow.stack.receive_window;
    }
    kernel.send_buffer = flow.stack.send_buffer;
    kernel.nagle = flow.stack.nagle;
    Switches::of(&flow.stack).put_into(&mut kernel);
    // In the kernel, too, the congestion control sets these.
    if flow.cc.sets_its_rate() {
        kernel.pacing = flow.stack.pacing;
    }
    if flow.cc.name() != "cubic" {
        kernel.hystart = flow.stack.hystart;
    }
    match flow.stack.ecn {
        EcnMode::Off | EcnMode::Rfc3168 => kernel.ecn = flow.stack.ecn,
        EcnMode::Dctcp if flow.cc.needs_exact_marks() => kernel.ecn = flow.stack.ecn,
        EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s | EcnMode::Dctcp => {}
    }
    if kernel == flow.stack {
        return Ok(());
    }
    let switch = difference(&kernel, &flow.stack);
    Err(Refusal::new(
        &["flow", &flow.table, "transport", &switch],
        format!("`{switch}` cannot be set for a socket of this machine's kernel"),
        "expected the stack's own; a live run can set `mss`, `timestamps`, `ecn` (\"off\", \"rfc3168\"), `sack`, `dsack`, `rack`, `tlp`, `frto`, \
         `nagle`, `mtu_discovery` (but \"off\"), `send_buffer`, and `receive_window` beside `receive_autotuning = false`",
    ))
}

/// The first switch in which two stacks differ.
fn difference(a: &anabranch_tcp::Settings, b: &anabranch_tcp::Settings) -> String {
    let table = |settings| match serde_json::to_value(settings) {
        Ok(serde_json::Value::Object(table)) => table,
        _ => serde_json::Map::new(),
    };
    let (a, b) = (table(a), table(b));
    b.into_iter()
        .find(|(key, value)| a.get(key) != Some(value))
        .map_or_else(|| "recovery".to_owned(), |(key, _)| key)
}

fn check_parameters(flow: &ResolvedFlow) -> Result<(), Refusal> {
    let name = flow.cc.name();
    let registry = cc::registry();
    let default = registry.iter().find(|(meta, ..)| meta.name == name);
    let is_default = default.is_some_and(|(_, config, _)| *config == flow.cc);
    if is_default || name == "bpf" {
        return Ok(());
    }
    Err(Refusal::new(
        &["flow", &flow.table, "cc"],
        format!("a socket can only name its congestion control, and `{name}` is given parameters"),
        format!("expected `cc = \"{name}\"`"),
    ))
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::{Extensions, Scenario};

    use super::*;

    #[test]
    fn a_tunnel_does_not_run_live() {
        let text = r#"
            duration = "1 s"
            [link.a]
            between = ["X", "Y"]
            delay = "1 ms"
            [link.b]
            between = ["X", "Y"]
            delay = "1 ms"
            [gateway.g]
            between = ["X", "Y"]
            routes = ["a", "b"]
            kind = "tunnel"
            [flow.main]
            from = "X"
            to = "Y"
        "#;
        let resolved = Scenario::parse(text, "live.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .expect("a right scenario");
        let refusal = check(&resolved).expect_err("a tunnel");
        assert_eq!(refusal.path, ["gateway", "g", "kind"]);
        assert!(refusal.message.contains("anabranch-gateway"));
    }
}
