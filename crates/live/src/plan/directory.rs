//! Who is who: addresses of hosts, ports of flows, and whose packet one is.

use std::{collections::HashMap, net::IpAddr};

use anabranch_core::packet::{Direction, FlowId};
use anabranch_scenario::{Family, Resolved};

use crate::{
    kernel::address::{self, v4_of, v6_of},
    plan::{
        frame::{Address, Conversation, Label},
        settings::is_carried,
        sharing::{Choice, Sharing},
    },
};

/// The port at which a flow's passive end listens: this, and the flow's number.
const FIRST_PORT: u16 = 10_000;
/// Flows that have a port of their own.
pub const MOST_FLOWS: usize = 20_000;
/// The port from which our own TCP connects: this, and the flow's number.
const FIRST_OWN_PORT: u16 = 32_768;

/// A flow and its two ends.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// The end that connects, the end that listens.
    active: u16,
    passive: u16,
    /// Which way packets of the active end go.
    direction: Direction,
}

/// Whose packet is whose.
#[derive(Debug)]
pub struct Directory {
    flows: Vec<Ends>,
    /// By a packet's source and destination: the flows that carry programs' packets between them, or else all.
    pairs: HashMap<(u16, u16), Vec<Choice>>,
    /// Of each node that stands for an interface: its flow, and which way what arrives there goes.
    interfaces: Vec<Option<(FlowId, Direction)>>,
}

impl Directory {
    /// The flows of a scenario. Hosts are numbered as its nodes are.
    pub fn of(resolved: &Resolved) -> Self {
        let flows = resolved.flows.iter().map(|flow| {
            let [from, to] = flow.ends.map(address::number);
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
            pairs: pairs(resolved),
            interfaces: (0..resolved.nodes.len()).map(of_node).collect(),
        }
    }

    /// The flow that what arrives at a node's interface belongs to; `None` for a namespace.
    pub fn at(&self, node: usize) -> Option<(FlowId, Direction)> {
        self.interfaces[node]
    }

    /// The port at which a flow's passive end listens.
    pub fn port(flow: usize) -> u16 {
        FIRST_PORT + u16::try_from(flow).expect("flows are counted in 16 bits")
    }

    /// The port from which a flow's active end connects, where that is our own TCP.
    pub fn own_port(flow: usize) -> u16 {
        FIRST_OWN_PORT + u16::try_from(flow).expect("flows are counted in 16 bits")
    }

    /// Where a flow's passive end listens, by host number.
    pub fn address(host: usize, v6: bool) -> IpAddr {
        if v6 {
            v6_of(host).into()
        } else {
            v4_of(host).into()
        }
    }

    /// The flow that a packet belongs to, and which way it goes along it. What belongs to no application of ours, a program's
    /// packet, goes with a flow between the two hosts.
    pub fn find(
        &self,
        label: &Label,
        sharing: &mut Sharing,
        conversation: impl FnOnce() -> Option<Conversation>,
    ) -> Option<(FlowId, Direction)> {
        self.by_ports(label).or_else(|| {
            let (Address(from), Address(to)) = (label.source, label.destination);
            sharing.of(self.pairs.get(&(from, to))?, label.is_v6, conversation)
        })
    }

    fn by_ports(&self, label: &Label) -> Option<(FlowId, Direction)> {
        let [source, destination] = label.ports?;
        let (Address(from), Address(to)) = (label.source, label.destination);
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

/// The flows between each two hosts, in both directions.
fn pairs(resolved: &Resolved) -> HashMap<(u16, u16), Vec<Choice>> {
    let mut pairs: HashMap<_, Vec<_>> = HashMap::new();
    // Programs' packets take a flow of ours only where there is no other.
    for carried in [true, false] {
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        for (flow, id) in resolved.flows.iter().zip(0..) {
            if is_carried(flow, resolved) != carried {
                continue;
            }
            let [from, to] = flow.ends.map(address::number);
            for (key, direction) in [
                ((from, to), Direction::Forward),
                ((to, from), Direction::Reverse),
            ] {
                found.entry(key).or_default().push(Choice {
                    place: (FlowId(id), direction),
                    is_v6: flow.family == Family::V6,
                });
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
            source: Address(from),
            destination: Address(to),
            ports,
            is_v6: false,
            ecn: Ecn::NotEct,
            dscp: 0,
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
            // Of no flow's connection: with the first between the two.
            (1, 2, Some([40_000, 80]), Some((0, forward))),
            (2, 1, None, Some((0, reverse))),
            // The port of a flow, but not its hosts.
            (1, 3, Some([40_000, 10_000]), None),
        ] {
            let expected = expected.map(|(flow, direction)| (FlowId(flow), direction));
            assert_eq!(
                directory.find(&label(from, to, ports), &mut Sharing::default(), || None),
                expected,
                "{from} {to} {ports:?}"
            );
        }
    }
}
