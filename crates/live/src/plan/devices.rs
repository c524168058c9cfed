//! The devices of hosts: their numbers, and the choice of the device for each packet.
//!
//! The first device of each node has the node's number; the further devices of hosts with several
//! devices follow after all nodes. A device's number determines its addresses, so a host with one
//! device has the addresses of its node.

use std::net::IpAddr;

use anabranch_scenario::{Match, Resolved, ResolvedFlow};

use crate::{
    kernel::namespace::{DEVICE, Way},
    plan::hops::Hops,
};

/// A device of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device<'a> {
    pub node: usize,
    pub name: &'a str,
}

/// All devices, by number.
pub fn all(resolved: &Resolved) -> Vec<Device<'_>> {
    let nodes = resolved.attached.iter().enumerate();
    let first = nodes.clone().map(|(node, host)| Device {
        node,
        name: host.devices.first().map_or(DEVICE, String::as_str),
    });
    let further = nodes.flat_map(|(node, host)| {
        let names = host.devices.iter().skip(1);
        names.map(move |name| Device { node, name })
    });
    first.chain(further).collect()
}

/// The number of a node's device.
pub fn number(resolved: &Resolved, node: usize, device: usize) -> usize {
    if device == 0 {
        return node;
    }
    let further = |node: usize| resolved.attached[node].devices.len().saturating_sub(1);
    resolved.nodes.len() + (0..node).map(further).sum::<usize>() + device - 1
}

/// The numbers of a node's devices.
pub fn of_node(resolved: &Resolved, node: usize) -> impl Iterator<Item = usize> + '_ {
    let count = resolved.attached[node].devices.len().max(1);
    (0..count).map(move |device| number(resolved, node, device))
}

/// The devices over which the two ends of a flow send, by number.
pub fn ends(resolved: &Resolved, flow: &ResolvedFlow) -> [usize; 2] {
    [0, 1].map(|side| number(resolved, flow.ends[side], flow.devices[side].unwrap_or(0)))
}

/// The numbers and names of a node's devices.
pub fn named(resolved: &Resolved, node: usize) -> Vec<(usize, &str)> {
    let names = resolved.attached[node].devices.iter().map(String::as_str);
    of_node(resolved, node).zip(names).collect()
}

pub use crate::kernel::address::address_of as address;

/// The routes of a node's kernel, for packets without a source address. For each destination, the
/// first matching flow determines the device; port rules of flows take precedence.
pub fn ways(resolved: &Resolved, hops: &Hops, node: usize) -> Vec<Way> {
    let mut by_ports: Vec<Way> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    // Flows without `match` follow those with one.
    let flows = resolved.flows.iter();
    let (others, chosen): (Vec<&ResolvedFlow>, Vec<_>) =
        flows.partition(|flow| flow.select.is_empty());
    for flow in chosen.into_iter().chain(others) {
        for side in [0, 1] {
            if flow.ends[side] != node {
                continue;
            }
            let device = ends(resolved, flow)[side];
            for to in destinations(resolved, flow, 1 - side) {
                let from = address(device, to.is_ipv6());
                if !flow.select.fits_addresses([from, to]) {
                    continue;
                }
                let ports = ports(&flow.select);
                let list = if ports.is_empty() {
                    &mut ways
                } else {
                    &mut by_ports
                };
                let is_known = list.iter().any(|way| way.to == to && way.ports == ports);
                if !is_known {
                    list.push(Way { to, device, ports });
                }
            }
        }
    }
    // A destination of port rules also needs a route for other packets, such as ICMP.
    for way in &by_ports {
        if !ways.iter().any(|other| other.to == way.to) {
            ways.push(Way {
                ports: Vec::new(),
                ..way.clone()
            });
        }
    }
    // Routers that are not hosts, over the first flow that passes them.
    for hop in hops.all().iter().filter(|hop| hop.host == node) {
        for to in [false, true].map(|is_v6| address(hop.router, is_v6)) {
            if !ways.iter().any(|way| way.to == to) {
                ways.push(Way {
                    to,
                    device: hop.device,
                    ports: Vec::new(),
                });
            }
        }
    }
    by_ports.extend(ways);
    by_ports
}

fn ports(select: &Match) -> Vec<[u16; 2]> {
    select
        .port
        .0
        .iter()
        .map(|range| [range.first, range.last])
        .collect()
}

/// The addresses of an end of a flow: its device's, and the further addresses of its node.
fn destinations(resolved: &Resolved, flow: &ResolvedFlow, side: usize) -> Vec<IpAddr> {
    let device = ends(resolved, flow)[side];
    let further = &resolved.attached[flow.ends[side]].addresses;
    let mut all = vec![address(device, false), address(device, true)];
    all.extend(further);
    all
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::{Extensions, Scenario};

    use super::*;
    use crate::kernel::address::v4_of;

    fn resolved(flows: &str) -> Resolved {
        let text = format!(
            r#"
            duration = "1 s"
            [link.wifi]
            between = ["A", "B"]
            delay = "1 ms"
            [link.lte]
            between = ["A", "B"]
            delay = "1 ms"
            [host.A]
            devices = ["wifi", "lte"]
            [host.B]
            addresses = ["192.0.2.1"]
            {flows}
            "#
        );
        let extensions = Extensions::default().live(true);
        Scenario::parse(&text, "devices.toml", &extensions)
            .and_then(|scenario| scenario.resolve(None))
            .expect("correct")
    }

    #[test]
    fn further_devices_are_numbered_after_all_nodes() {
        let flows = r#"
            [flow.one]
            from = "A"
            to = "B"
            route = ["wifi"]
            [flow.two]
            from = "B"
            to = "A"
            route = ["lte"]
        "#;
        let resolved = resolved(flows);
        let names: Vec<_> = all(&resolved)
            .iter()
            .map(|device| (device.node, device.name))
            .collect();
        assert_eq!(names, [(0, "wifi"), (1, "path"), (0, "lte")]);
        assert_eq!(
            resolved
                .flows
                .iter()
                .map(|flow| ends(&resolved, flow))
                .collect::<Vec<_>>(),
            [[0, 1], [1, 2]]
        );
        assert_eq!(of_node(&resolved, 0).collect::<Vec<_>>(), [0, 2]);
        // The first flow determines the device of packets without a source address.
        let ways = ways(&resolved, &Hops::of(&resolved), 0);
        let of = |to: IpAddr| ways.iter().find(|way| way.to == to).map(|way| way.device);
        assert_eq!(of(v4_of(1).into()), Some(0));
        assert_eq!(of("192.0.2.1".parse().expect("an address")), Some(0));
    }

    #[test]
    fn flows_with_match_precede_others() {
        let flows = r#"
            [flow.rest]
            from = "A"
            to = "B"
            route = ["wifi"]
            [flow.web]
            from = "A"
            to = "B"
            route = ["lte"]
            match = { port = 443 }
            [flow.far]
            from = "A"
            to = "B"
            route = ["lte"]
            match = { prefix = "192.0.2.0/24" }
        "#;
        let resolved = resolved(flows);
        let ways = ways(&resolved, &Hops::of(&resolved), 0);
        let of = |to: IpAddr, ports: &[[u16; 2]]| {
            let mut fitting = ways.iter().filter(|way| way.to == to && way.ports == ports);
            fitting.next().map(|way| way.device)
        };
        let far = "192.0.2.1".parse().expect("an address");
        assert_eq!(of(v4_of(1).into(), &[]), Some(0));
        assert_eq!(of(v4_of(1).into(), &[[443, 443]]), Some(2));
        assert_eq!(of(far, &[]), Some(2));
    }
}
