//! Interfaces: bonds, their members, counters and queues.

use std::io;

use super::{
    Netlink,
    attributes::{Writer, find, find_nested, number_u16, number_u32, number_u64, text},
};

const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const GET_QDISC: u16 = 38;
const GET_STATS: u16 = 94;
/// Sizes of the fixed parts of messages.
const LINK_PART: usize = 16;
const STATS_PART: usize = 12;
pub(super) const TRAFFIC_PART: usize = 20;

const NAME: u16 = 3;
const ADDRESS: u16 = 1;
const MASTER: u16 = 10;
const INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_MEMBER_DATA: u16 = 5;
const EXTENSIONS: u16 = 29;
const CARRIER: u16 = 33;
/// Leaves out counters, which have other requests.
const SKIP_STATS: u32 = 1 << 3;

const BOND_MODE: u16 = 1;
const BOND_MIIMON: u16 = 3;
const BOND_HASH: u16 = 14;
const BOND_ALL_ACTIVE: u16 = 17;
const BOND_LACP_RATE: u16 = 21;
const BOND_AD: u16 = 23;
const AD_AGGREGATOR: u16 = 1;
const AD_PARTNER: u16 = 5;
const MEMBER_AGGREGATOR: u16 = 6;
const MEMBER_ACTOR: u16 = 7;
const MEMBER_PARTNER: u16 = 8;

const UP: u32 = 1;
const LOWER_UP: u32 = 1 << 16;
/// Parent of a root queue.
const ROOT: u32 = u32::MAX;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// Whether it is set up.
    pub is_up: bool,
    /// Whether it is up and has its carrier.
    pub has_carrier: bool,
    pub address: Option<[u8; 6]>,
    /// Index of the bond or bridge that it is a member of.
    pub master: Option<u32>,
    pub kind: String,
    pub bond: Option<BondLink>,
    pub member: Option<MemberLink>,
}

/// Properties of a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BondLink {
    pub options: Options,
    /// Number of the active aggregator.
    pub aggregator: Option<u16>,
    /// Address of the partner's system.
    pub partner: Option<[u8; 6]>,
}

/// Options of a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub mode: u8,
    /// Time between two checks of the members' carriers, in ms.
    pub miimon: u32,
    pub hash: u8,
    /// Whether members that do not send deliver received frames.
    pub all_active: bool,
    pub is_fast: bool,
}

/// LACP's view of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemberLink {
    pub aggregator: u16,
    /// State of this end's port.
    pub actor: u8,
    /// State of the other end's port, as its last LACPDU had it.
    pub partner: u8,
}

/// Counters of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    /// Bytes in the root queue; 0 without one.
    pub backlog: u64,
    /// Packets that the root queue dropped.
    pub drops: u64,
}

impl Netlink {
    /// All interfaces.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        let found = self.list(GET_LINK, &link_request(0))?;
        Ok(found.iter().filter_map(|octets| link_of(octets)).collect())
    }

    /// An interface.
    ///
    /// # Errors
    /// If the kernel refuses, or there is none.
    pub fn link(&mut self, index: u32) -> io::Result<Link> {
        let octets = self.get(GET_LINK, &link_request(index))?;
        link_of(&octets).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Counters of an interface and its root queue.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn totals(&mut self, index: u32) -> io::Result<Totals> {
        let mut request = vec![0; 4];
        request.extend(index.to_ne_bytes());
        request.extend(1_u32.to_ne_bytes());
        let octets = self.get(GET_STATS, &request)?;
        let stats = octets.get(STATS_PART..).and_then(|rest| find(rest, 1));
        let stats = stats.ok_or(io::ErrorKind::InvalidData)?;
        let number = |at: usize| stats.get(at * 8..).and_then(number_u64).unwrap_or(0);
        let mut totals = Totals {
            rx_packets: number(0),
            tx_packets: number(1),
            rx_bytes: number(2),
            tx_bytes: number(3),
            ..Totals::default()
        };
        // An interface without a queue has none to report.
        if let Ok(Some(octets)) = self.get_if_any(GET_QDISC, &traffic(index, 0, ROOT, 0)) {
            let queue = octets.get(TRAFFIC_PART..);
            let queue = queue.and_then(|rest| find_nested(rest, &[7, 3]));
            let number = |at: usize| {
                let octets = queue.and_then(|queue| queue.get(at * 4..));
                u64::from(octets.and_then(number_u32).unwrap_or(0))
            };
            (totals.backlog, totals.drops) = (number(1), number(2));
        }
        Ok(totals)
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_up(&mut self, index: u32, is_up: bool) -> io::Result<()> {
        let flags = if is_up { UP } else { 0 };
        self.change(NEW_LINK, 0, &link_part(index, flags, UP))
    }

    /// Sets whether members that do not send deliver received frames.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_all_active(&mut self, bond: u32, is_set: bool) -> io::Result<()> {
        let mut writer = Writer(link_part(bond, 0, 0));
        writer.put_nested(INFO, |info| {
            info.put_text(INFO_KIND, "bond")
                .put_nested(INFO_DATA, |data| {
                    data.put(BOND_ALL_ACTIVE, &[u8::from(is_set)]);
                });
        });
        self.change(NEW_LINK, 0, &writer.0)
    }
}

/// The fixed part of a request on traffic control.
pub(super) fn traffic(index: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, index, handle, parent, info]
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

fn link_part(index: u32, flags: u32, changed: u32) -> Vec<u8> {
    [0, index, flags, changed]
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

fn link_request(index: u32) -> Vec<u8> {
    let mut writer = Writer(link_part(index, 0, 0));
    writer.put(EXTENSIONS, &SKIP_STATS.to_ne_bytes());
    writer.0
}

fn link_of(octets: &[u8]) -> Option<Link> {
    let index = number_u32(octets.get(4..)?)?;
    let flags = number_u32(octets.get(8..)?)?;
    let rest = octets.get(LINK_PART..)?;
    let data = find_nested(rest, &[INFO, INFO_DATA]);
    let kind = find_nested(rest, &[INFO, INFO_KIND]).map(text);
    let kind = kind.unwrap_or_default();
    let carrier = find(rest, CARRIER).and_then(|octets| octets.first());
    let is_up = flags & UP != 0;
    Some(Link {
        index,
        name: find(rest, NAME).map(text)?,
        is_up,
        has_carrier: is_up && carrier.map_or(flags & LOWER_UP != 0, |carrier| *carrier != 0),
        address: find(rest, ADDRESS).and_then(|octets| octets.try_into().ok()),
        master: find(rest, MASTER).and_then(number_u32),
        bond: data.filter(|_| kind == "bond").map(bond_of),
        member: find_nested(rest, &[INFO, INFO_MEMBER_DATA]).map(member_of),
        kind,
    })
}

fn bond_of(data: &[u8]) -> BondLink {
    let octet = |kind| find(data, kind).and_then(|octets| octets.first().copied());
    let ad = find(data, BOND_AD).unwrap_or_default();
    BondLink {
        options: Options {
            mode: octet(BOND_MODE).unwrap_or(0),
            miimon: find(data, BOND_MIIMON).and_then(number_u32).unwrap_or(0),
            hash: octet(BOND_HASH).unwrap_or(0),
            all_active: octet(BOND_ALL_ACTIVE).unwrap_or(0) != 0,
            is_fast: octet(BOND_LACP_RATE).unwrap_or(0) != 0,
        },
        aggregator: find(ad, AD_AGGREGATOR).and_then(number_u16),
        partner: find(ad, AD_PARTNER).and_then(|octets| octets.try_into().ok()),
    }
}

fn member_of(data: &[u8]) -> MemberLink {
    MemberLink {
        aggregator: find(data, MEMBER_AGGREGATOR)
            .and_then(number_u16)
            .unwrap_or(0),
        actor: find(data, MEMBER_ACTOR)
            .and_then(|octets| octets.first().copied())
            .unwrap_or(0),
        // The kernel writes this one as 16 bits.
        partner: find(data, MEMBER_PARTNER)
            .and_then(|octets| octets.first().copied())
            .unwrap_or(0),
    }
}
