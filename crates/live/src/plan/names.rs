//! Names and addresses of hosts, as programs at the hosts see them.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use anabranch_scenario::{Family, Resolved};

use crate::{
    kernel::address::{v4_of, v6_of},
    plan::{
        devices::{self, Device},
        hops,
        settings::is_carried,
    },
};

/// The name and addresses of a host, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName {
    /// Its name in the scenario.
    pub name: String,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
    /// The program that runs there.
    pub exec: Option<Vec<String>>,
}

/// The hosts that a program reaches by an address, with one entry for each device of a host with
/// several. These are the hosts where a flow begins or ends, except interfaces and hosts with our
/// own TCP.
#[must_use]
pub fn hosts(resolved: &Resolved) -> Vec<HostName> {
    let all = devices::all(resolved).into_iter().enumerate();
    let mut all: Vec<_> = all
        .filter(|(_, device)| has_address(resolved, device.node))
        .collect();
    all.sort_by_key(|(_, device)| device.node);
    all.into_iter()
        .map(|(number, device)| HostName {
            name: of_device(resolved, device),
            v4: v4_of(number),
            v6: v6_of(number),
            // Once for each host.
            exec: resolved.attached[device.node]
                .exec
                .clone()
                .filter(|_| number == device.node),
        })
        .collect()
}

fn has_address(resolved: &Resolved, node: usize) -> bool {
    let host = &resolved.attached[node];
    host.interface.is_none()
        && !host.has_own_tcp
        && resolved.flows.iter().any(|flow| flow.ends.contains(&node))
}

/// The name of a device: the host's name if it has one device, else `HOST.DEVICE`.
pub fn of_device(resolved: &Resolved, device: Device<'_>) -> String {
    let host = &resolved.nodes[device.node];
    if resolved.attached[device.node].devices.is_empty() {
        return host.clone();
    }
    format!("{host}.{}", device.name)
}

/// The numbers and names of the devices of hosts with several devices.
fn of_several(resolved: &Resolved) -> impl Iterator<Item = (usize, Device<'_>)> {
    let all = devices::all(resolved).into_iter().enumerate();
    all.filter(|(_, device)| !resolved.attached[device.node].devices.is_empty())
}

/// A word of a program at `node`, with `{NAME}` replaced by the address of the host of that name.
pub fn addressed(word: &str, resolved: &Resolved, node: usize) -> String {
    let mut text = word.to_owned();
    for (host, name) in resolved.nodes.iter().enumerate() {
        let place = format!("{{{name}}}");
        if text.contains(&place) {
            text = text.replace(&place, &addresses(resolved, node, host)[0].to_string());
        }
    }
    for (number, device) in of_several(resolved) {
        let place = format!("{{{}}}", of_device(resolved, device));
        if text.contains(&place) {
            let is_v6 = addresses(resolved, node, device.node)[0].is_ipv6();
            text = text.replace(&place, &devices::address(number, is_v6).to_string());
        }
    }
    text
}

/// The table of host names that programs at `node` read in place of this machine's (hosts(5)).
pub fn table(resolved: &Resolved, node: usize) -> String {
    let is_name = |c: char| !c.is_whitespace() && !c.is_control() && c != '#';
    let mut text = String::new();
    for (host, name) in resolved.nodes.iter().enumerate() {
        if !has_address(resolved, host) || !name.chars().all(is_name) {
            continue;
        }
        for address in addresses(resolved, node, host) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{address} {name}");
        }
    }
    let devices = of_several(resolved).filter(|(_, device)| has_address(resolved, device.node));
    let devices =
        devices.map(|(number, device)| (number, device.node, of_device(resolved, device)));
    let routers = hops::routers(resolved).into_iter();
    let routers = routers.filter(|router| !has_address(resolved, *router));
    let routers = routers.map(|router| (router, router, resolved.nodes[router].clone()));
    for (number, host, name) in devices.chain(routers) {
        if !name.chars().all(is_name) {
            continue;
        }
        for address in addresses(resolved, node, host) {
            let address = devices::address(number, address.is_ipv6());
            let _ = writeln!(text, "{address} {name}");
        }
    }
    text.push_str("127.0.0.1 localhost\n::1 localhost\n");
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    if !resolved.nodes.iter().any(|name| *name == machine) {
        let _ = writeln!(text, "127.0.1.1 {machine}");
    }
    text
}

/// The addresses by which programs at `node` reach a host, in the order of the file. The flows that
/// carry the programs' packets determine the IP versions.
fn addresses(resolved: &Resolved, node: usize, host: usize) -> Vec<IpAddr> {
    // For each version, the address over the first flow.
    let families = |of: &dyn Fn([usize; 2]) -> bool, carried: bool| -> Vec<(Family, usize)> {
        let mut found: Vec<(Family, usize)> = Vec::new();
        for flow in &resolved.flows {
            let counts = of(flow.ends) && (!carried || is_carried(flow, resolved));
            if counts && !found.iter().any(|(family, _)| *family == flow.family) {
                let side = flow.ends.iter().position(|end| *end == host);
                let device = side.map_or(host, |side| devices::ends(resolved, flow)[side]);
                found.push((flow.family, device));
            }
        }
        found
    };
    let between = |ends: [usize; 2]| ends == [node, host] || ends == [host, node];
    let here = |ends: [usize; 2]| ends.contains(&node);
    let choices = [
        families(&between, true),
        families(&between, false),
        families(&here, true),
        vec![(Family::V4, host)],
    ];
    let chosen = choices.into_iter().find(|families| !families.is_empty());
    let families = chosen.unwrap_or_default();
    let address =
        |(family, device): &(Family, usize)| devices::address(*device, *family == Family::V6);
    families.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::{Extensions, Scenario};

    use super::*;

    #[test]
    fn names_resolve_to_the_version_of_the_flow() {
        let text = r#"
            duration = "1 s"
            [link.one]
            between = ["A", "B"]
            delay = "1 ms"
            [link.two]
            between = ["B", "two words"]
            delay = "1 ms"
            [host.A]
            exec = ["ping", "{B}", "{two words}"]
            [flow.six]
            from = "A"
            to = "B"
            family = 6
            [flow.four]
            from = "B"
            to = "two words"
        "#;
        let extensions = Extensions::default().live(true);
        let scenario = Scenario::parse(text, "names.toml", &extensions);
        let resolved = scenario
            .and_then(|scenario| scenario.resolve(None))
            .expect("correct");
        let v6 = v6_of(1).to_string();
        assert_eq!(addressed("{B}", &resolved, 0), v6);
        assert_eq!(addressed("[{A}]", &resolved, 1), format!("[{}]", v6_of(0)));
        assert_eq!(addressed("{two words}", &resolved, 1), v4_of(2).to_string());
        let table = table(&resolved, 0);
        assert!(
            table.starts_with(&format!("{} A\n{v6} B\n", v6_of(0))),
            "{table}"
        );
        // A blank ends a name in the table.
        assert!(!table.contains("two"), "{table}");
        assert!(table.contains("127.0.0.1 localhost\n"), "{table}");
        assert_eq!(hosts(&resolved).len(), 3);
    }

    #[test]
    fn devices_and_routers_have_names() {
        let text = r#"
            duration = "1 s"
            [link.wifi]
            between = ["A", "R"]
            delay = "1 ms"
            [link.lte]
            between = ["A", "B"]
            delay = "1 ms"
            [link.far]
            between = ["R", "B"]
            delay = "1 ms"
            [host.A]
            devices = ["wifi", "lte"]
            exec = ["true"]
            [flow.first]
            from = "B"
            to = "A"
            route = ["lte"]
            [flow.second]
            from = "A"
            to = "B"
            route = ["wifi", "far"]
        "#;
        let scenario = Scenario::parse(text, "names.toml", &Extensions::default().live(true));
        let resolved = scenario
            .and_then(|scenario| scenario.resolve(None))
            .expect("correct");
        // The first flow determines the address of the host's name.
        let [wifi, lte] = [v4_of(0), v4_of(3)].map(|address| address.to_string());
        assert_eq!(addressed("{A}", &resolved, 2), lte);
        assert_eq!(
            addressed("{A.wifi}-{A.lte}", &resolved, 2),
            format!("{wifi}-{lte}")
        );
        let table = table(&resolved, 2);
        let expected = format!("{wifi} A.wifi\n{lte} A.lte\n{} R\n127.0.0.1", v4_of(1));
        assert!(table.contains(&expected), "{table}");
        let rows: Vec<_> = hosts(&resolved)
            .into_iter()
            .map(|host| (host.name, host.exec.is_some()))
            .collect();
        let expected = [("A.wifi", true), ("A.lte", false), ("B", false)];
        assert_eq!(rows, expected.map(|(name, runs)| (name.to_owned(), runs)));
    }
}
