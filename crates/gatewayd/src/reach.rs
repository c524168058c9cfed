//! Whether this machine can send to an address by a path, according to the kernel's routes.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use anabranch_core::units::Duration;
use anabranch_gateway::{path::Route, time::Instant};
use rustix::io::Errno;

use crate::{
    links::Links,
    netlink::{Netlink, Output},
    socket::Bind,
    ways::Ways,
};

/// The time for which a result is reused.
const AGE: Duration = Duration::from_secs(1);
/// The most results that are remembered.
const RESULTS: usize = 4_096;

/// Queries the kernel's routes.
pub struct Reach {
    /// Without a socket every address counts as reachable.
    netlink: Option<Netlink>,
    known: BTreeMap<(String, SocketAddr), (Instant, Option<Errno>)>,
    unbound: BTreeMap<IpAddr, (Instant, Option<u32>)>,
}

impl Reach {
    pub fn new() -> Self {
        Self {
            netlink: Netlink::new().ok(),
            known: BTreeMap::new(),
            unbound: BTreeMap::new(),
        }
    }

    /// The error of the kernel's route lookup for a socket's datagrams to an address; `None` if
    /// there is a route. `links` are the interfaces now.
    pub fn error(
        &mut self,
        bind: &Bind,
        remote: SocketAddr,
        links: &Links,
        now: Instant,
    ) -> Option<Errno> {
        let key = (bind.label.clone(), remote);
        if let Some((at, error)) = self.known.get(&key)
            && now.saturating_since(*at) < AGE
        {
            return *error;
        }
        let error = self.look_up(bind, remote, links);
        if self.known.len() >= RESULTS {
            self.known.clear();
        }
        self.known.insert(key, (now, error));
        error
    }

    fn look_up(&mut self, bind: &Bind, remote: SocketAddr, links: &Links) -> Option<Errno> {
        let interface = match &bind.interface {
            Some(name) => match links.0.get(name) {
                Some(link) => u32::try_from(link.index).ok(),
                None => return Some(Errno::NODEV),
            },
            None => None,
        };
        let source = bind.address.ip();
        let output = Output {
            interface,
            source: (!source.is_unspecified()).then_some(source),
            is_marked: true,
        };
        let found = self.netlink.as_mut()?.find_route(remote.ip(), output);
        let code = found.err()?.raw_os_error()?;
        Some(Errno::from_raw_os_error(code))
    }

    /// The interface of the route to an address, regardless of sockets and marks.
    pub fn interface_of(&mut self, to: IpAddr, now: Instant) -> Option<u32> {
        if let Some((at, index)) = self.unbound.get(&to)
            && now.saturating_since(*at) < AGE
        {
            return *index;
        }
        let any = Output {
            interface: None,
            source: None,
            is_marked: false,
        };
        let found = self.netlink.as_mut()?.find_route(to, any);
        let index = found.ok().flatten();
        if self.unbound.len() >= RESULTS {
            self.unbound.clear();
        }
        self.unbound.insert(to, (now, index));
        index
    }

    /// The first route that the kernel supports, or else the first.
    pub fn preferred(
        &mut self,
        routes: &[Route],
        ways: &Ways,
        links: &Links,
        now: Instant,
    ) -> Option<Route> {
        let mut supported = routes
            .iter()
            .filter(|&&route| self.has_route(route, ways, links, now));
        supported.next().or(routes.first()).copied()
    }

    /// Whether the kernel has a route for a socket's datagrams to an address.
    pub fn has_route(&mut self, route: Route, ways: &Ways, links: &Links, now: Instant) -> bool {
        let bind = ways.bind(route.local);
        bind.is_some_and(|bind| self.error(bind, route.remote, links, now).is_none())
    }
}
