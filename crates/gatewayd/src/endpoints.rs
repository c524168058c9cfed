//! The other end's addresses, and which of them each path tries.
//!
//! A path has a list of candidates: all addresses of all endpoints that its socket can send to. It
//! begins with the first one that the system has a route to, and tries the others while it is
//! silent.

use std::net::SocketAddr;

use anabranch_core::units::Duration;
use anabranch_gateway::{
    path::{Route, State},
    policy::Role,
    time::Instant,
    tunnel::PathConfig,
    wire::{PATHS, PathId},
};

use crate::{
    config::{self, Config, Endpoint, Policy},
    resolver::{Addresses, Name},
    ways::Ways,
};

/// The time for which a path that has not delivered yet tries an address. It doubles with each
/// round, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
/// The time after which a path that delivered tries another address. Shorter outages are usual on
/// radio links, and concern all addresses.
const PATIENCE: Duration = Duration::from_secs(3);

/// A path to a peer, and its candidates in order of preference.
#[derive(Debug, Clone)]
pub struct Candidates {
    pub path: PathId,
    pub role: Role,
    pub routes: Vec<Route>,
}

/// The paths to a peer. Path `i` prefers endpoint `i`, so that the paths use different links of the
/// other end. If no path is configured, there is one for each endpoint.
///
/// # Errors
/// If there are more paths than a tunnel supports.
pub fn candidates(
    config: &Config,
    peer: &config::Peer,
    known: &Addresses,
    ways: &Ways,
) -> Result<Vec<Candidates>, String> {
    let endpoints = peer.endpoints.iter();
    let endpoints: Vec<Vec<SocketAddr>> = endpoints.map(|one| addresses(one, known)).collect();
    if config.path.is_empty() {
        let path = |(number, addresses): (u8, Vec<SocketAddr>)| {
            let path = PathId::new(number).ok_or_else(|| {
                format!(
                    "a peer has {PATHS} endpoints at most, not {}",
                    peer.endpoints.len()
                )
            })?;
            Ok(Candidates {
                path,
                role: Role::Active,
                routes: routes(path, addresses, ways),
            })
        };
        return (0..=u8::MAX).zip(endpoints).map(path).collect();
    }
    let paths = ways.paths().filter_map(|(path, name)| {
        let mut configured = config.path.0.iter().enumerate();
        let (place, (_, way)) = configured.find(|(_, (other, _))| other == name)?;
        // A source address reaches only addresses of its family.
        let is_fit = |remote: &SocketAddr| {
            let source = way.source;
            source.is_none_or(|source| source.0.is_ipv4() == remote.is_ipv4())
        };
        let count = endpoints.len();
        let turned = (0..count).map(|step| &endpoints[(place + step) % count]);
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for &address in turned.flatten().filter(|address| is_fit(address)) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Some(Candidates {
            path,
            role: role(way.policy),
            routes: routes(path, addresses, ways),
        })
    });
    Ok(paths.collect())
}

fn routes(path: PathId, addresses: Vec<SocketAddr>, ways: &Ways) -> Vec<Route> {
    let route = |remote| Route {
        local: ways.local(path, remote),
        remote,
    };
    addresses.into_iter().map(route).collect()
}

fn addresses(endpoint: &Endpoint, known: &Addresses) -> Vec<SocketAddr> {
    match endpoint {
        Endpoint::Address(address) => vec![*address],
        Endpoint::Name(host, port) => known
            .get(&(host.clone(), *port))
            .cloned()
            .unwrap_or_default(),
    }
}

/// All known addresses of all peers' endpoints.
pub fn remotes(config: &Config, known: &Addresses) -> Vec<SocketAddr> {
    let endpoints = config.peer.0.iter().flat_map(|(_, peer)| &peer.endpoints);
    endpoints.flat_map(|one| addresses(one, known)).collect()
}

/// The names of a peer's endpoints.
pub fn names(peer: &config::Peer) -> impl Iterator<Item = Name> {
    peer.endpoints.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Address(_) => None,
        Endpoint::Name(host, port) => Some((host.clone(), *port)),
    })
}

impl Candidates {
    /// The configuration of the path with a route.
    pub const fn with(&self, route: Option<Route>) -> PathConfig {
        PathConfig {
            id: self.path,
            route,
            role: self.role,
        }
    }
}

/// Whether a path delivers; `None` while it is under test.
pub const fn delivers(state: State) -> Option<bool> {
    match state {
        State::Active | State::Standby => Some(true),
        State::Validating { reported: None } | State::Dead { .. } => Some(false),
        State::Suspect | State::Validating { reported: Some(_) } => None,
    }
}

/// The trial of candidates by one path.
#[derive(Debug, Default)]
pub struct Trial {
    candidates: Vec<Route>,
    /// The address that is being tried.
    current: Option<Route>,
    /// The address that delivered last.
    worked: Option<Route>,
    /// The time since which the path has been silent.
    silent: Option<Instant>,
    /// The time since which the current address has been tried.
    since: Option<Instant>,
    /// Addresses tried since the path became silent.
    tried: usize,
    round: Duration,
}

impl Trial {
    /// A trial that begins with `current`.
    pub fn new(candidates: Vec<Route>, current: Option<Route>) -> Self {
        Self {
            candidates,
            current,
            worked: None,
            silent: None,
            since: None,
            tried: 0,
            round: FIRST,
        }
    }

    /// Changes the candidates. An address that is still one of them is kept; otherwise the path
    /// goes to `other`. Returns the address.
    pub fn change(&mut self, candidates: Vec<Route>, other: Option<Route>) -> Option<Route> {
        if !self.current.is_some_and(|now| candidates.contains(&now)) {
            *self = Self::new(Vec::new(), other);
        }
        self.candidates = candidates;
        self.current
    }

    /// Whether there is an address to try.
    pub const fn has_candidates(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// Ends the trial of an address while the path has no interface, address or carrier.
    pub const fn pause(&mut self) {
        (self.silent, self.since) = (None, None);
    }

    /// The time since which the path has been silent.
    pub const fn silent(&self) -> Option<Instant> {
        self.silent
    }

    /// Follows the state of the path, whose datagrams go to `actual`. Returns the next address if
    /// the path should try another one. `has_route` says whether the system has a route to an
    /// address by this path.
    pub fn follow(
        &mut self,
        delivers: Option<bool>,
        actual: Option<Route>,
        mut has_route: impl FnMut(Route) -> bool,
        now: Instant,
    ) -> Option<Route> {
        match delivers {
            Some(true) => {
                (self.silent, self.since) = (None, None);
                (self.tried, self.round) = (0, FIRST);
                self.worked = actual;
                // The other end may have moved the path.
                self.current = actual.or(self.current);
                return None;
            }
            None => return None,
            Some(false) => {}
        }
        self.silent = self.silent.or(Some(now));
        let since = *self.since.get_or_insert(now);
        if self.candidates.len() < 2 && self.candidates.first().copied() == self.current {
            return None;
        }
        let mut fit: Vec<Route> = self.candidates.clone();
        fit.retain(|&address| has_route(address));
        if fit.is_empty() {
            return None;
        }
        let is_fit = self.current.is_some_and(|current| fit.contains(&current));
        let wait = if self.tried == 0 && self.worked.is_some() {
            PATIENCE
        } else {
            self.round
        };
        if is_fit && now.saturating_since(since) < wait {
            return None;
        }
        self.since = Some(now);
        self.tried += 1;
        let next = self.next(&fit);
        let is_other = self.current != Some(next);
        self.current = Some(next);
        is_other.then_some(next)
    }

    /// The next address of the list. Every second one is the address that delivered last.
    fn next(&mut self, fit: &[Route]) -> Route {
        let worked = self.worked.filter(|worked| fit.contains(worked));
        if let Some(worked) = worked
            && self.current != Some(worked)
        {
            return worked;
        }
        let others: Vec<Route> = fit
            .iter()
            .copied()
            .filter(|&address| Some(address) != worked)
            .collect();
        let Some(count) = (!others.is_empty()).then_some(others.len()) else {
            return fit[0];
        };
        let turn = if worked.is_some() {
            self.tried / 2
        } else {
            let place = others.iter().position(|&one| Some(one) == self.current);
            place.map_or(0, |place| place + 1)
        };
        if turn > 0 && turn.is_multiple_of(count) {
            self.round = (self.round * 2).min(LONGEST);
        }
        others[turn % count]
    }
}

/// The role of a path.
pub const fn role(policy: Policy) -> Role {
    match policy {
        Policy::Active => Role::Active,
        Policy::Overflow => Role::Overflow,
        Policy::Backup => Role::Backup,
        Policy::Metered => Role::Metered,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::units::Duration;
    use anabranch_gateway::path::Route;
    use anabranch_gateway::time::Instant;

    use super::{LONGEST, PATIENCE, Trial};

    const TURN: Duration = Duration::from_millis(250);

    fn address(host: u8) -> Route {
        Route {
            local: 0,
            remote: ([192, 0, 2, host], 51_900).into(),
        }
    }

    /// The addresses that a silent path tries within `time`.
    fn tried(trial: &mut Trial, from: Instant, time: Duration, routes: &[u8]) -> Vec<Route> {
        let mut tried = Vec::new();
        let mut now = from;
        while now < from + time {
            let has_route = |to| routes.iter().any(|&host| address(host) == to);
            tried.extend(trial.follow(Some(false), None, has_route, now));
            now = now + TURN;
        }
        tried
    }

    #[test]
    fn a_path_that_has_never_delivered_tries_each_address_in_turn() {
        let all = [1, 2, 3].map(address);
        let mut trial = Trial::new(all.to_vec(), Some(all[0]));
        let time = Duration::from_millis(3_400);
        let tried = tried(&mut trial, Instant::START, time, &[1, 2, 3]);
        assert_eq!(tried, [2, 3, 1, 2, 3].map(address)[..tried.len()]);
        assert!(tried.len() >= 4, "{tried:?}");
    }

    #[test]
    fn an_address_without_route_is_left_at_once() {
        let all = [1, 2].map(address);
        let mut trial = Trial::new(all.to_vec(), Some(all[0]));
        assert_eq!(tried(&mut trial, Instant::START, TURN, &[2]), [address(2)]);
        let later = Instant::START + TURN;
        assert!(tried(&mut trial, later, LONGEST * 4, &[2]).is_empty());
    }

    #[test]
    fn without_any_route_a_path_stays_where_it_is() {
        let all = [1, 2].map(address);
        let mut trial = Trial::new(all.to_vec(), Some(all[0]));
        assert!(tried(&mut trial, Instant::START, LONGEST * 4, &[]).is_empty());
    }

    #[test]
    fn every_second_trial_is_the_address_that_worked() {
        let all = [1, 2, 3].map(address);
        let mut trial = Trial::new(all.to_vec(), Some(all[0]));
        trial.follow(Some(true), Some(all[1]), |_| true, Instant::START);
        let short = tried(&mut trial, Instant::START, PATIENCE, &[1, 2, 3]);
        assert!(short.is_empty(), "{short:?}");
        let tried = tried(&mut trial, Instant::START + PATIENCE, LONGEST, &[1, 2, 3]);
        assert_eq!(tried[..4], [1, 2, 3, 2].map(address), "{tried:?}");
    }

    #[test]
    fn a_changed_list_keeps_an_address_that_is_in_it() {
        let [a, b, c] = [1, 2, 3].map(address);
        let mut trial = Trial::new(vec![a, b], Some(a));
        assert_eq!(trial.change(vec![b, a, c], Some(b)), Some(a));
        assert_eq!(trial.change(vec![b, c], Some(b)), Some(b));
        assert_eq!(trial.change(vec![], None), None);
    }

    #[test]
    fn one_address_is_never_left() {
        let mut trial = Trial::new(vec![address(1)], Some(address(1)));
        assert!(tried(&mut trial, Instant::START, LONGEST * 4, &[1]).is_empty());
    }
}
