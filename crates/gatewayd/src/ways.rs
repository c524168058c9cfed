//! The UDP sockets of this machine: one for each path, or for each address on which this end
//! listens.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use anabranch_gateway::wire::{PATHS, PathId};

use crate::{
    config::{Config, Way},
    links::Links,
    socket::{Bind, PathSocket},
};

/// The socket of a path or address, which is closed while its interface or address is absent.
pub struct Slot {
    /// How the socket is bound.
    pub bind: Bind,
    pub socket: Option<PathSocket>,
    /// Whether sending is suspended because the interface has no carrier. Otherwise the kernel
    /// would query the next hop's link-layer address in vain, and after the carrier's return repeat
    /// the query only a second after the last one.
    is_held: bool,
}

impl Slot {
    fn new(bind: Bind, socket: Option<PathSocket>) -> Self {
        Self {
            bind,
            socket,
            is_held: false,
        }
    }
}

/// A change of a path's interface or address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It is unusable: no carrier, no interface, or no such address.
    Lost,
    /// It is usable, with another address, interface or carrier than before.
    Changed,
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "its interface, address or carrier has gone",
            Self::Changed => "its interface, address or carrier has changed",
        })
    }
}

/// Sockets by the number in routes. If there are paths, it is the path's number.
#[derive(Default)]
pub struct Ways {
    slots: BTreeMap<u32, Slot>,
    names: BTreeMap<PathId, String>,
    /// Sockets that send nothing, because the caps of their paths are reached.
    closed: BTreeSet<u32>,
}

impl Ways {
    /// Opens the configured sockets. An interface or an address may be added later.
    ///
    /// # Errors
    /// A message that names the path or the address.
    pub fn open(config: &Config, remotes: &[SocketAddr]) -> Result<Self, String> {
        let mut ways = Self::default();
        ways.names = ways.number(config)?;
        for (number, bind) in ways.binds(config, remotes) {
            let socket = bind.open_if_there()?;
            ways.slots.insert(number, Slot::new(bind, socket));
        }
        Ok(ways)
    }

    /// The sockets of a changed configuration, with those opened that are new or bound differently.
    /// Unchanged sockets stay closed in the plan: [`Self::replace`] moves them.
    ///
    /// # Errors
    /// As [`Self::open`]; nothing has changed then.
    pub fn plan(&self, config: &Config, remotes: &[SocketAddr]) -> Result<Self, String> {
        let mut plan = Self {
            names: self.number(config)?,
            ..Self::default()
        };
        for (number, bind) in plan.binds(config, remotes) {
            let stays = self.slots.values().any(|slot| slot.bind.is_same(&bind));
            let socket = if stays { None } else { bind.open_if_there()? };
            plan.slots.insert(number, Slot::new(bind, socket));
        }
        Ok(plan)
    }

    /// Changes to a plan, which takes over the unchanged sockets.
    pub fn replace(&mut self, mut plan: Self) {
        for slot in plan.slots.values_mut().filter(|slot| slot.socket.is_none()) {
            let mut before = self.slots.values_mut();
            let same = before.find(|before| before.bind.is_same(&slot.bind));
            slot.socket = same.and_then(|before| before.socket.take());
        }
        // A number may be that of a socket without a path now, which nothing would open again.
        plan.closed = std::mem::take(&mut self.closed);
        plan.closed.retain(|&number| {
            let mut paths = plan.names.keys();
            paths.any(|path| u32::from(path.number()) == number)
        });
        *self = plan;
    }

    /// Follows changes of interfaces and addresses: closes sockets whose interface or address has
    /// gone, and opens sockets for new ones. Returns the changes, by number.
    pub fn follow(&mut self, before: &Links, now: &Links) -> Vec<(u32, Happened)> {
        let mut happened = Vec::new();
        for (&number, slot) in &mut self.slots {
            let old = slot.bind.link(before);
            let new = slot.bind.link(now);
            if slot.bind.is_any() || (old == new && slot.socket.is_some() == new.is_some()) {
                continue;
            }
            if old.map(|link| link.index) != new.map(|link| link.index) || new.is_none() {
                slot.socket = None;
            }
            if slot.socket.is_none() {
                // A port in use is tried again at the next change.
                slot.socket = slot.bind.open_if_there().unwrap_or_default();
            }
            let is_running = new.is_some_and(|link| link.is_running) && slot.socket.is_some();
            let was_running = old.is_some_and(|link| link.is_running);
            match (was_running, is_running) {
                (_, true) => happened.push((number, Happened::Changed)),
                (true, false) => happened.push((number, Happened::Lost)),
                (false, false) => {}
            }
        }
        happened
    }

    /// The open sockets, by number.
    pub fn sockets(&self) -> impl Iterator<Item = (u32, &PathSocket)> {
        let slots = self.slots.iter();
        slots.filter_map(|(&number, slot)| Some((number, slot.socket.as_ref()?)))
    }

    /// Returns a socket.
    pub fn socket(&self, number: u32) -> Option<&PathSocket> {
        self.slots.get(&number)?.socket.as_ref()
    }

    /// Returns a socket for sending; `None` while its interface has no carrier, or its path's cap is
    /// reached.
    pub fn socket_mut(&mut self, number: u32) -> Option<&mut PathSocket> {
        if self.closed.contains(&number) {
            return None;
        }
        let slot = self.slots.get_mut(&number).filter(|slot| !slot.is_held)?;
        slot.socket.as_mut()
    }

    /// Suspends sending over interfaces without a carrier. A source address alone does not choose
    /// an interface.
    pub fn hold(&mut self, links: &Links) {
        for slot in self.slots.values_mut() {
            let name = slot.bind.interface.as_ref();
            let link = name.and_then(|name| links.0.get(name));
            slot.is_held = link.is_some_and(|link| !link.is_running);
        }
    }

    /// The binding of a path's socket; `None` if the system's routes are the only path.
    pub fn of_path(&self, path: PathId) -> Option<&Bind> {
        self.names.get(&path)?;
        self.bind(path.number().into())
    }

    /// Suspends or resumes sending. Returns whether this is a change.
    pub fn close(&mut self, number: u32, is_closed: bool) -> bool {
        if is_closed {
            self.closed.insert(number)
        } else {
            self.closed.remove(&number)
        }
    }

    /// Whether the socket exists and sending is not suspended.
    pub fn may_send(&self, number: u32) -> bool {
        let slot = self.slots.get(&number);
        !self.is_closed(number) && slot.is_some_and(|slot| !slot.is_held && slot.socket.is_some())
    }

    /// Whether sending is suspended by [`Self::close`].
    pub fn is_closed(&self, number: u32) -> bool {
        self.closed.contains(&number)
    }

    /// Reads the ICMP messages about a socket's datagrams.
    pub fn read_errors(&mut self, number: u32) {
        let slot = self.slots.get_mut(&number);
        if let Some(socket) = slot.and_then(|slot| slot.socket.as_mut()) {
            socket.read_errors();
        }
    }

    /// The configured name of a path.
    pub fn name(&self, path: PathId) -> String {
        let name = self.names.get(&path).cloned();
        name.unwrap_or_else(|| path.number().to_string())
    }

    /// The paths by number; none if the system's routes are the only path.
    pub fn paths(&self) -> impl Iterator<Item = (PathId, &str)> {
        self.names.iter().map(|(&path, name)| (path, name.as_str()))
    }

    /// The number of the socket by which a path sends to this address.
    pub fn local(&self, path: PathId, remote: SocketAddr) -> u32 {
        if self.names.is_empty() {
            self.serving(remote)
        } else {
            path.number().into()
        }
    }

    /// The binding of a socket.
    pub fn bind(&self, number: u32) -> Option<&Bind> {
        self.slots.get(&number).map(|slot| &slot.bind)
    }

    /// The socket by which an end without paths reaches this address.
    fn serving(&self, remote: SocketAddr) -> u32 {
        let mut slots = self.slots.iter();
        slots
            .find(|(_, slot)| slot.bind.serves(remote))
            .map_or(0, |(&number, _)| number)
    }

    /// The paths of a configuration with their numbers. A path that has a number keeps it.
    fn number(&self, config: &Config) -> Result<BTreeMap<PathId, String>, String> {
        let is_kept = |name: &str| config.path.names().any(|other| other == name);
        let kept = self.names.iter().filter(|(_, name)| is_kept(name));
        let mut names: BTreeMap<PathId, String> =
            kept.map(|(&path, name)| (path, name.clone())).collect();
        for name in config.path.names() {
            if names.values().any(|other| other == name) {
                continue;
            }
            let free = (0..=u8::MAX)
                .map_while(PathId::new)
                .find(|path| !names.contains_key(path));
            let free = free.ok_or_else(|| {
                format!(
                    "a gateway has {PATHS} paths at most, not {}",
                    config.path.0.len()
                )
            })?;
            names.insert(free, name.to_owned());
        }
        Ok(names)
    }

    fn binds(&self, config: &Config, remotes: &[SocketAddr]) -> BTreeMap<u32, Bind> {
        let listen: Vec<SocketAddr> = config.gateway.listen.iter().map(|at| at.0).collect();
        if config.path.is_empty() {
            return (0..).zip(without_paths(&listen, remotes)).collect();
        }
        let port = listen.first().map_or(0, SocketAddr::port);
        let ways = self.names.iter().filter_map(|(path, name)| {
            let (_, way) = config.path.0.iter().find(|(other, _)| other == name)?;
            Some((path.number().into(), of_way(name, way, port)))
        });
        ways.collect()
    }
}

/// The binding of a path's socket.
pub fn of_way(name: &str, way: &Way, port: u16) -> Bind {
    let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    Bind {
        label: format!("path {name}: {}", way.place()),
        interface: way.interface.as_ref().map(|interface| interface.0.clone()),
        address: SocketAddr::new(way.source.map_or(any, |source| source.0), port),
        only_v6: false,
        reports_errors: true,
    }
}

/// One socket for each listening address, and one for endpoints of a family that none of these
/// serves.
fn without_paths(listen: &[SocketAddr], remotes: &[SocketAddr]) -> Vec<Bind> {
    let bind = |at: &SocketAddr| Bind {
        label: format!("listen {at}"),
        interface: None,
        address: *at,
        // The same port of both families takes two sockets.
        only_v6: listen
            .iter()
            .any(|other| other.is_ipv4() && other.port() == at.port()),
        reports_errors: false,
    };
    let mut binds: Vec<Bind> = listen.iter().map(bind).collect();
    let is_served = |remote: &SocketAddr| binds.iter().any(|bind| bind.serves(*remote));
    if remotes.iter().any(|remote| !is_served(remote)) || binds.is_empty() {
        binds.push(Bind {
            label: "UDP socket".to_owned(),
            interface: None,
            address: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
            only_v6: false,
            reports_errors: true,
        });
    }
    binds
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use anabranch_gateway::wire::PathId;

    use super::Ways;

    #[test]
    fn no_socket_stays_closed_without_its_path() {
        let path = PathId::new(1).expect("a path");
        let number = u32::from(path.number());
        for (names, is_closed) in [
            (BTreeMap::from([(path, "lte".to_owned())]), true),
            (BTreeMap::new(), false),
        ] {
            let mut ways = Ways {
                closed: BTreeSet::from([number]),
                ..Ways::default()
            };
            ways.replace(Ways {
                names,
                ..Ways::default()
            });
            assert_eq!(ways.is_closed(number), is_closed);
        }
    }
}
