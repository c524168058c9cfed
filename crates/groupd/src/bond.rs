//! Finds a bond and its members, and refuses bonds that cannot be controlled.

use std::{fs, io, path::Path};

use anabranch_core::{system::words, units::Rate};
use anabranch_document::nearest;
use anabranch_path::group::lacp::pdu::State;

use crate::{
    core::{
        announce::{self, Port},
        members::View,
    },
    failure::Failure,
    netlink::{BondLink, Link, Netlink, Options, Totals},
};

const MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
const LACP: u8 = 4;
/// Where the driver reports on bonds. `/proc/self` is of this process's network namespace.
const REPORTS: &str = "/proc/self/net/bonding";

/// A bond in mode 802.3ad.
#[derive(Debug, Clone)]
pub struct Bond {
    pub index: u32,
    pub name: String,
    pub options: Options,
    pub partner: Option<[u8; 6]>,
    pub members: Vec<Member>,
}

/// A member of a bond.
#[derive(Debug, Clone)]
pub struct Member {
    pub index: u32,
    pub name: String,
    pub is_up: bool,
    pub has_carrier: bool,
}

/// Finds a bond.
///
/// # Errors
/// There is no such interface, it is no bond, or its mode is another one: a sentence with the
/// command to type.
pub fn find(netlink: &mut Netlink, name: &str) -> Result<Bond, String> {
    let links = netlink
        .links()
        .map_err(|error| format!("the interfaces cannot be listed: {}", words(&error)))?;
    let Some(link) = links.iter().find(|link| link.name == name) else {
        return Err(unknown(name, &links));
    };
    let Some(BondLink {
        options, partner, ..
    }) = link.bond
    else {
        let has = bonds(name, &links);
        return Err(format!("{name} is not a bond{has}"));
    };
    if options.mode != LACP {
        let mode = MODES.get(usize::from(options.mode)).unwrap_or(&"unknown");
        return Err(format!(
            "{name} has the mode {mode}, and members are taken out by LACP: type `ip link set {name} down; \
             ip link set {name} type bond mode 802.3ad miimon 100` before it has members"
        ));
    }
    let mut members: Vec<Member> = links
        .iter()
        .filter(|other| other.master == Some(link.index))
        .map(|member| Member {
            index: member.index,
            name: member.name.clone(),
            is_up: member.is_up,
            has_carrier: member.has_carrier,
        })
        .collect();
    members.sort_by_key(|member| natural(&member.name));
    Ok(Bond {
        index: link.index,
        name: name.to_owned(),
        options,
        partner: partner.filter(|address| *address != [0; 6]),
        members,
    })
}

/// Refuses a bond that has too few members, or would not notice failures.
///
/// # Errors
/// A sentence with the command to type. Too few members are no bad input: others may follow.
pub fn check(bond: &Bond) -> Result<(), Failure> {
    let name = &bond.name;
    let count = bond.members.iter().filter(|member| member.is_up).count();
    if count < 2 {
        return Err(Failure::System(format!(
            "{name} has {count} members that are up, and control needs two: type `ip link set DEV down; \
             ip link set DEV master {name}; ip link set DEV up` for each"
        )));
    }
    if bond.options.miimon == 0 {
        return Err(Failure::Input(format!(
            "{name} does not check the carriers of its members (miimon 0): type \
             `ip link set {name} type bond miimon 100`"
        )));
    }
    Ok(())
}

/// The rate of the slowest member, as the driver reports it.
///
/// # Errors
/// No member's speed is known.
pub fn rate(ports: &[Port], name: &str) -> Result<Rate, String> {
    let slowest = ports.iter().filter_map(|port| port.speed_mbit).min();
    slowest
        .and_then(|mbit| Rate::new(mbit.saturating_mul(1_000_000)))
        .ok_or_else(|| {
            format!("the speed of the members of {name} is unknown: give it with --rate")
        })
}

/// LACP's data of the members, from the driver's report.
///
/// # Errors
/// If the system refuses.
pub fn ports(name: &str) -> io::Result<Vec<Port>> {
    let report = fs::read_to_string(Path::new(REPORTS).join(name))?;
    Ok(announce::ports(&report))
}

/// Observation of a member.
#[must_use]
pub fn view(link: &Link, totals: &Totals) -> View {
    let member = link.member.unwrap_or_default();
    View {
        is_up: link.is_up,
        has_carrier: link.has_carrier,
        actor: State(member.actor),
        partner: State(member.partner),
        backlog: totals.backlog,
        sent: totals.tx_packets,
        received: totals.rx_packets,
    }
}

fn unknown(name: &str, links: &[Link]) -> String {
    if !Path::new(REPORTS).exists() {
        return format!(
            "there is no interface {name}, and the kernel has no bonding driver: type `modprobe bonding`"
        );
    }
    format!("there is no interface {name}{}", bonds(name, links))
}

/// The bonds that are there, and the one nearest to a wrong name.
fn bonds(wrong: &str, links: &[Link]) -> String {
    let names: Vec<&str> = links
        .iter()
        .filter(|link| link.bond.is_some())
        .map(|link| link.name.as_str())
        .collect();
    if names.is_empty() {
        "; there are no bonds: type `ip link add bond0 type bond mode 802.3ad miimon 100`"
            .to_owned()
    } else {
        let near = nearest(wrong, &names)
            .map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!("; bonds: {}{near}", names.join(", "))
    }
}

/// A key that sorts `eth10` after `eth9`.
fn natural(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].parse().unwrap_or(0);
    (stem.to_owned(), number)
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["eth10", "eth9", "ens1", "eth0"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["ens1", "eth0", "eth9", "eth10"]);
    }
}
