//! Addresses of hosts, ports of flows, and the flow of each packet.

use std::{collections::HashMap, net::IpAddr};

use anabranch_core::packet::{Direction, FlowId};
use anabranch_scenario::{Family, Match, Resolved};

use crate::{
    kernel::address,
    plan::{
        devices,
        frame::{Conversation, Label},
        settings::is_carried,
        sharing::{Choice, Sharing},
    },
};

/// The listening port of flow 0. The flow's number is added.
const FIRST_PORT: u16 = 10_000;
/// The largest number of flows, each of which needs a separate port.
pub const MOST_FLOWS: usize = 20_000;
/// The port from which our own TCP connects for flow 0. The flow's number is added.
const FIRST_OWN_PORT: u16 = 32_768;

/// A flow and its two ends.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// The numbers of the end that connects and of the end that listens.
    active: u16,
    passive: u16,
    /// The direction of packets from the active end.
    direction: Direction,
}

/// A device, and the numbers of source and destination.
type Key = (usize, (u16, u16));

/// The flows between two addresses.
#[derive(Debug, Default)]
struct Between {
    /// Flows with a `match`, in the order of the file; copies are together.
    chosen: Vec<(Match, Vec<Choice>)>,
    /// Flows without a `match`.
    others: Vec<Choice>,
}

impl Between {
    fn add(&mut self, select: &Match, choice: Choice) {
        if select.is_empty() {
            self.others.push(choice);
        } else if let Some((_, choices)) = self.chosen.iter_mut().find(|(other, _)| other == select)
        {
            choices.push(choice);
        } else {
            self.chosen.push((select.clone(), vec![choice]));
        }
    }

    /// The flows that a packet may take. A packet without ports, such as ICMP, takes flows with
    /// ports if there are no others.
    fn of(&self, label: &Label) -> &[Choice] {
        let addresses = [label.source, label.destination];
        let fits = |(select, _): &&(Match, Vec<Choice>)| select.fits(addresses, label.ports);
        let fits_by_address =
            |(select, _): &&(Match, Vec<Choice>)| select.fits_addresses(addresses);
        if let Some((_, choices)) = self.chosen.iter().find(fits) {
            return choices;
        }
        if self.others.is_empty() && label.ports.is_none() {
            let found = self.chosen.iter().find(fits_by_address);
            return found.map_or(&[], |(_, choices)| choices);
        }
        &self.others
    }
}

/// The assignment of packets to flows.
#[derive(Debug)]
pub struct Directory {
    flows: Vec<Ends>,
    /// The number of devices; each has addresses of its number.
    devices: u16,
    /// The numbers of further addresses of hosts.
    further: HashMap<IpAddr, u16>,
    /// By the device that sends a packet, its source and its destination: the flows that carry
    /// programs' packets between them, or else all flows.
    pairs: HashMap<Key, Between>,
    /// For each node that represents an interface: its flow, and the direction of packets from
    /// there.
    interfaces: Vec<Option<(FlowId, Direction)>>,
}

impl Directory {
    /// The flows of a scenario. Hosts have the numbers of its nodes.
    pub fn of(resolved: &Resolved) -> Self {
        let flows = resolved.flows.iter().map(|flow| {
            let [from, to] = devices::ends(resolved, flow).map(address::number);
            if crate::plan::settings::connects_back(flow) {
                Ends {
                    active: to,
                    passive: from,
                    direction: Direction::Reverse,
                }
            } else {
                Ends {
                    active: from,
                    passive: to,
                    direction: Direction::Forward,
                }
            }
        });
        let of_node = |node: usize| {
            resolved.attached[node].interface.as_ref()?;
            let mut flows = resolved.flows.iter().zip(0..);
            flows.find_map(|(flow, id)| match flow.ends {
                [from, _] if from == node => Some((FlowId(id), Direction::Forward)),
                [_, to] if to == node => Some((FlowId(id), Direction::Reverse)),
                _ => None,
            })
        };
        Self {
            flows: flows.collect(),
            devices: address::number(devices::all(resolved).len()) - 1,
            further: further(resolved),
            pairs: pairs(resolved),
            interfaces: (0..resolved.nodes.len()).map(of_node).collect(),
        }
    }

    /// The flow and direction of packets from the interface of a device's node; `None` for a
    /// namespace.
    pub fn at(&self, device: usize) -> Option<(FlowId, Direction)> {
        *self.interfaces.get(device)?
    }

    /// The device that has this address.
    pub fn device(&self, address: IpAddr) -> Option<usize> {
        let number = address::number_in(address)?;
        (1..=self.devices)
            .contains(&number)
            .then(|| usize::from(number) - 1)
    }

    fn number(&self, address: IpAddr) -> Option<u16> {
        let own = self.device(address).map(address::number);
        own.or_else(|| self.further.get(&address).copied())
    }

    /// The port at which a flow's passive end listens.
    pub fn port(flow: usize) -> u16 {
        FIRST_PORT + u16::try_from(flow).expect("flows are counted in 16 bits")
    }

    /// The port from which a flow's active end connects if it uses our own TCP.
    pub fn own_port(flow: usize) -> u16 {
        FIRST_OWN_PORT + u16::try_from(flow).expect("flows are counted in 16 bits")
    }

    /// The flow and direction of a packet from a device. A program's packet, which belongs to no
    /// application, takes a flow between the two addresses that begins at the device. A packet with
    /// the address of another device has no flow and is not forwarded (RFC 2827).
    pub fn find(
        &self,
        device: usize,
        label: &Label,
        sharing: &mut Sharing,
        conversation: impl FnOnce() -> Option<Conversation>,
    ) -> Option<(FlowId, Direction)> {
        if self.device(label.source).is_some_and(|own| own != device) {
            return None;
        }
        let ends = (self.number(label.source)?, self.number(label.destination)?);
        self.by_ports(label, ends).or_else(|| {
            let choices = self.pairs.get(&(device, ends))?.of(label);
            sharing.of(choices, label.is_v6, conversation)
        })
    }

    fn by_ports(&self, label: &Label, (from, to): (u16, u16)) -> Option<(FlowId, Direction)> {
        let [source, destination] = label.ports?;
        let flow = |port: u16| {
            let index = usize::from(port.checked_sub(FIRST_PORT)?);
            Some((FlowId(u32::from(port - FIRST_PORT)), self.flows.get(index)?))
        };
        if let Some((id, ends)) = flow(destination)
            && (ends.active, ends.passive) == (from, to)
        {
            return Some((id, ends.direction));
        }
        if let Some((id, ends)) = flow(source)
            && (ends.active, ends.passive) == (to, from)
        {
            return Some((id, ends.direction.opposite()));
        }
        None
    }
}

/// The numbers of further addresses of hosts, which follow the numbers of devices.
fn further(resolved: &Resolved) -> HashMap<IpAddr, u16> {
    let all = resolved.attached.iter().flat_map(|host| &host.addresses);
    let numbers = devices::all(resolved).len()..;
    all.zip(numbers)
        .map(|(address, number)| (*address, address::number(number)))
        .collect()
}

/// The flows between each two addresses, in both directions.
fn pairs(resolved: &Resolved) -> HashMap<Key, Between> {
    let further = further(resolved);
    let mut pairs: HashMap<_, Between> = HashMap::new();
    // Programs' packets take the flow of an application only if there is no other.
    for carried in [true, false] {
        let mut found: HashMap<_, Between> = HashMap::new();
        for (flow, id) in resolved.flows.iter().zip(0..) {
            if is_carried(flow, resolved) != carried {
                continue;
            }
            let sending = devices::ends(resolved, flow);
            let devices = sending.map(address::number);
            let [from, to] = [0, 1].map(|side| {
                let of_host = resolved.attached[flow.ends[side]].addresses.iter();
                let mut all = vec![devices[side]];
                all.extend(of_host.map(|address| further[address]));
                all
            });
            for (from, to) in from
                .iter()
                .flat_map(|from| to.iter().map(move |to| (*from, *to)))
            {
                for (key, direction) in [
                    ((sending[0], (from, to)), Direction::Forward),
                    ((sending[1], (to, from)), Direction::Reverse),
                ] {
                    let choice = Choice {
                        place: (FlowId(id), direction),
                        is_v6: flow.family == Family::V6,
                    };
                    found.entry(key).or_default().add(&flow.select, choice);
                }
            }
        }
        for (key, choices) in found {
            pairs.entry(key).or_insert(choices);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use anabranch_core::packet::Ecn;
    use anabranch_scenario::{Extensions, Scenario};

    use super::*;

    fn label(from: u16, to: u16, ports: Option<[u16; 2]>) -> Label {
        Label {
            source: devices::address(usize::from(from - 1), false),
            destination: devices::address(usize::from(to - 1), false),
            ports,
            is_v6: false,
            ecn: Ecn::NotEct,
            dscp: 0,
            hop_limit: 64,
        }
    }

    #[test]
    fn packets_find_their_flow() {
        let text = r#"
            duration = "1 s"
            [link.path]
            between = ["A", "B"]
            delay = "1 ms"
            [flow.first]
            from = "A"
            to = "B"
            [flow.asks]
            from = "B"
            to = "A"
            workload = "request-response"
        "#;
        let scenario = Scenario::parse(text, "directory.toml", &Extensions::default());
        let resolved = scenario
            .and_then(|scenario| scenario.resolve(None))
            .expect("correct");
        let directory = Directory::of(&resolved);
        let (forward, reverse) = (Direction::Forward, Direction::Reverse);
        for (from, to, ports, expected) in [
            (1, 2, Some([40_000, 10_000]), Some((0, forward))),
            (2, 1, Some([10_000, 40_000]), Some((0, reverse))),
            // The client of the second flow is at its `to`, which is A.
            (1, 2, Some([40_000, 10_001]), Some((1, reverse))),
            (2, 1, Some([10_001, 40_000]), Some((1, forward))),
            // Packets of no flow's connection take the first flow between the hosts.
            (1, 2, Some([40_000, 80]), Some((0, forward))),
            (2, 1, None, Some((0, reverse))),
            // The port of a flow, but not its hosts.
            (1, 3, Some([40_000, 10_000]), None),
        ] {
            let expected = expected.map(|(flow, direction)| (FlowId(flow), direction));
            assert_eq!(
                directory.find(
                    usize::from(from - 1),
                    &label(from, to, ports),
                    &mut Sharing::default(),
                    || None
                ),
                expected,
                "{from} {to} {ports:?}"
            );
        }
    }

    /// Ports, prefixes and devices determine the flow of a program's packet, in both directions.
    #[test]
    fn matching_packets_take_their_flow() {
        let text = r#"
            duration = "1 s"
            [link.wifi]
            between = ["A", "B"]
            delay = "1 ms"
            [link.lte]
            between = ["A", "B"]
            delay = "1 ms"
            [host.A]
            devices = ["wifi", "lte"]
            exec = ["true"]
            [host.B]
            addresses = ["192.0.2.1"]
            [flow.web]
            from = "A"
            to = "B"
            route = ["wifi"]
            match = { port = 443 }
            [flow.far]
            from = "B"
            to = "A"
            route = ["wifi"]
            match = { prefix = "192.0.2.0/24" }
            [flow.rest]
            from = "A"
            to = "B"
            route = ["lte"]
        "#;
        let scenario = Scenario::parse(text, "match.toml", &Extensions::default().live(true));
        let resolved = scenario
            .and_then(|scenario| scenario.resolve(None))
            .expect("correct");
        let directory = Directory::of(&resolved);
        let [wifi, b, lte] = [0, 1, 2].map(|number| devices::address(number, false));
        let far: IpAddr = "192.0.2.1".parse().expect("an address");
        let (forward, reverse) = (Direction::Forward, Direction::Reverse);
        let web = Some([40_000, 443]);
        for (device, source, destination, ports, expected) in [
            (0, wifi, b, web, Some((0, forward))),
            (1, b, wifi, Some([443, 40_000]), Some((0, reverse))),
            (0, wifi, far, Some([40_000, 80]), Some((1, reverse))),
            (1, far, wifi, Some([80, 40_000]), Some((1, forward))),
            (1, far, wifi, None, Some((1, forward))),
            // Both flows match; the first is taken.
            (0, wifi, far, web, Some((0, forward))),
            // The flows with `match` use the other device.
            (2, lte, b, web, Some((2, forward))),
            (2, lte, far, None, Some((2, forward))),
            // No flow matches; a packet without ports takes the first flow that requires ports.
            (0, wifi, b, Some([40_000, 80]), None),
            (0, wifi, b, None, Some((0, forward))),
            (0, wifi, lte, None, None),
            (
                0,
                wifi,
                "10.113.0.77".parse().expect("an address"),
                None,
                None,
            ),
            // From a device other than that of its source address.
            (2, wifi, b, web, None),
            (0, lte, b, web, None),
        ] {
            let label = Label {
                source,
                destination,
                ..label(1, 2, ports)
            };
            let expected = expected.map(|(flow, direction)| (FlowId(flow), direction));
            let found = directory.find(device, &label, &mut Sharing::default(), || None);
            assert_eq!(found, expected, "{device} {source} {destination} {ports:?}");
        }
    }
}
