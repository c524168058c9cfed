//! The LACPDU by which a port leaves, and the driver's report that it is made from.

use anabranch_path::group::lacp::pdu::{Information, Lacpdu, State};

/// LACP's data of a member, from `/proc/net/bonding`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Port {
    pub name: String,
    /// In Mbit/s, if the driver knows it.
    pub speed_mbit: Option<u64>,
    pub actor: Option<Information>,
    pub partner: Option<Information>,
}

/// The members in the driver's report. Details of LACP are in it only for privileged readers.
#[must_use]
pub fn ports(report: &str) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    let mut is_partner = false;
    for line in report.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "Slave Interface" {
            ports.push(Port {
                name: value.to_owned(),
                ..Port::default()
            });
            continue;
        }
        let Some(port) = ports.last_mut() else {
            continue;
        };
        match key {
            "Speed" => port.speed_mbit = value.strip_suffix(" Mbps").and_then(|n| n.parse().ok()),
            "details actor lacp pdu" => {
                is_partner = false;
                port.actor = Some(Information::default());
            }
            "details partner lacp pdu" => {
                is_partner = true;
                port.partner = Some(Information::default());
            }
            _ => {
                let side = if is_partner {
                    &mut port.partner
                } else {
                    &mut port.actor
                };
                if let Some(side) = side {
                    read(side, key, value);
                }
            }
        }
    }
    ports
}

fn read(side: &mut Information, key: &str, value: &str) {
    let number = value.parse().unwrap_or(0);
    match key {
        "system priority" => side.system_priority = number,
        "system mac address" => side.system = address(value).unwrap_or_default(),
        "port key" | "oper key" => side.key = number,
        "port priority" => side.port_priority = number,
        "port number" => side.port = number,
        "port state" => side.state = State(value.parse().unwrap_or(0)),
        _ => {}
    }
}

fn address(text: &str) -> Option<[u8; 6]> {
    let octets: Result<Vec<u8>, _> = text.split(':').map(|o| u8::from_str_radix(o, 16)).collect();
    octets.ok()?.try_into().ok()
}

/// The LACPDU by which a port leaves its group: not to be aggregated, not synchronized, and neither
/// collecting nor distributing (IEEE 802.1AX-2014 §6.4.2.3).
#[must_use]
pub fn leave(port: &Port) -> Option<Lacpdu> {
    let mut actor = port.actor?;
    for bit in [
        State::AGGREGATION,
        State::SYNCHRONIZATION,
        State::COLLECTING,
        State::DISTRIBUTING,
    ] {
        actor.state = actor.state.with(bit, false);
    }
    Some(Lacpdu {
        actor,
        partner: port.partner?,
        collector_max_delay: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::{leave, ports};

    const REPORT: &str = "\
Bonding Mode: IEEE 802.3ad Dynamic link aggregation
802.3ad info
System priority: 65535

Slave Interface: m0
MII Status: up
Speed: 10000 Mbps
Aggregator ID: 1
details actor lacp pdu:
    system priority: 65535
    system mac address: 02:00:00:00:00:0a
    port key: 15
    port priority: 255
    port number: 1
    port state: 63
details partner lacp pdu:
    system priority: 65534
    system mac address: 02:00:00:00:00:0b
    oper key: 16
    port priority: 254
    port number: 7
    port state: 61

Slave Interface: m1
Speed: Unknown
";

    #[test]
    fn the_drivers_report_is_read() {
        let found = ports(REPORT);
        assert_eq!(found.len(), 2);
        let (actor, partner) = (found[0].actor.unwrap(), found[0].partner.unwrap());
        assert_eq!(
            (found[0].speed_mbit, actor.key, actor.port),
            (Some(10_000), 15, 1)
        );
        assert_eq!((partner.system_priority, partner.key), (65_534, 16));
        assert_eq!((partner.port_priority, partner.port), (254, 7));
        assert_eq!(partner.system, [2, 0, 0, 0, 0, 11]);
        assert_eq!((actor.state.0, partner.state.0), (63, 61));
        assert_eq!((found[1].speed_mbit, found[1].actor), (None, None));
    }

    #[test]
    fn a_leaving_port_keeps_its_activity_and_timeout_alone() {
        let pdu = leave(&ports(REPORT)[0]).expect("there are details");
        assert_eq!(pdu.actor.state.0, 3);
        assert_eq!(pdu.partner.port, 7);
        assert_eq!(leave(&ports(REPORT)[1]), None);
    }
}
