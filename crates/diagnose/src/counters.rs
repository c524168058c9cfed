//! Finds hosts that share one counter of IP identifications among connections.

use std::net::IpAddr;

use crate::segment::{End, SYN, Segment};

#[expect(
    clippy::disallowed_types,
    reason = "hosts are looked up and never iterated over"
)]
type Places = std::collections::HashMap<IpAddr, usize>;

/// Maximum number of stored hosts. When the table is full, all of them are discarded.
const MOST: usize = 1 << 14;
/// The largest step of a counter from one packet to the next.
const LONGEST: u16 = 64;
/// Steps between connections that indicate a shared counter: two separate counters are this close
/// in one of 1000 cases.
const FEW: u32 = 2;

/// The last packet of a host, and the number of steps from one connection to another.
#[derive(Debug)]
struct Host {
    id: u16,
    ends: (End, End),
    changes: u32,
    steps: u32,
}

/// The hosts of a capture.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    places: Places,
    hosts: Vec<Host>,
    /// The last two hosts: packets of two ends often alternate.
    recent: [Option<(IpAddr, usize)>; 2],
}

impl Counters {
    /// Records a packet. Returns whether its host shares one counter among its connections.
    pub(crate) fn see(&mut self, segment: &Segment) -> bool {
        let Some(id) = segment.id.filter(|id| *id != 0 && !segment.has(SYN)) else {
            return false;
        };
        let ends = (segment.source, segment.target);
        let at = self.place(id, ends);
        let Some(host) = self.hosts.get_mut(at) else {
            return false;
        };
        if host.ends != ends {
            host.changes += 1;
            host.steps += u32::from((1..=LONGEST).contains(&id.wrapping_sub(host.id)));
        }
        (host.id, host.ends) = (id, ends);
        host.steps >= FEW && 2 * host.steps > host.changes
    }

    /// The index of the host that sends from the first end.
    fn place(&mut self, id: u16, ends: (End, End)) -> usize {
        let address = ends.0.0;
        let [one, other] = self.recent;
        for known in [one, other].into_iter().flatten() {
            if known.0 == address {
                return known.1;
            }
        }
        if self.hosts.len() >= MOST {
            self.places.clear();
            self.hosts.clear();
            self.recent = [None; 2];
        }
        let next = self.hosts.len();
        let at = *self.places.entry(address).or_insert(next);
        if at == next {
            self.hosts.push(Host {
                id,
                ends,
                changes: 0,
                steps: 0,
            });
        }
        self.recent = [Some((address, at)), self.recent[0]];
        at
    }
}
