//! Names and addresses of the other ends: their resolution, and the trial of addresses by silent
//! paths.

use std::{
    net::{IpAddr, SocketAddr},
    rc::Rc,
};

use anabranch_core::units::Duration;
use anabranch_gateway::time::Instant;

use super::Gateway;
use crate::{
    bypass, endpoints,
    peers::{self, Peer},
    reason,
    resolver::{self, Answer, Name, Question},
};

/// Names without an address at the start are resolved again after this time.
const RETRY: Duration = Duration::from_secs(5);
/// Paths are checked at this interval.
const CHECK: Duration = Duration::from_millis(250);
/// The time after which the names of a silent path are resolved again. It doubles up to
/// [`LONGEST`] while the path stays silent.
const SILENT: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// The times of resolutions and checks.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The time at which names without an address are resolved again.
    pub retry: Option<Instant>,
    /// The time of the next check of the paths; `None` if no peer has endpoints.
    check: Option<Instant>,
    /// The earliest next resolution of names of silent paths, and the wait after it.
    again: Option<(Instant, Duration)>,
}

impl Times {
    pub(super) fn new() -> Self {
        Self {
            retry: Some(Instant::START),
            ..Self::default()
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.retry.into_iter().chain(self.check).min()
    }

    /// Begins to check paths, or stops if no peer has endpoints.
    pub(super) fn watch(&mut self, has_trials: bool, now: Instant) {
        self.check = has_trials.then_some(now);
    }
}

impl Gateway {
    /// Starts another resolution of names that had no address at the start, and checks the paths.
    pub(super) fn follow_names(&mut self) {
        let now = self.now();
        if self.times.retry.is_some_and(|retry| retry <= now) {
            // A question would replace the pending one.
            let is_asked = self.resolver.is_asked();
            self.times.retry = is_asked.then(|| now + CHECK);
            if !is_asked {
                let names = peers::all_unknown(&self.config, &self.addresses);
                self.resolve(names);
            }
        }
        if self.domains.due().is_some_and(|due| due <= now) {
            if self.domains.expire(now)
                && let Err(why) = self.set_bypasses()
            {
                self.log.say(&why);
                self.failures.push(why);
            }
            if self.resolver.is_asked() {
                self.domains.wait_until(now + CHECK);
            } else {
                let names = self.domains.names(now);
                self.resolve(names);
            }
        }
        if self.times.check.is_some_and(|check| check <= now) {
            self.times.check = Some(now + CHECK);
            self.try_addresses(now);
            self.resolve_silent(now);
        }
    }

    fn resolve(&mut self, names: Vec<Name>) {
        if !names.is_empty() {
            self.resolver.ask(Question {
                names,
                stops_at_failure: false,
            });
        }
    }

    fn try_addresses(&mut self, now: Instant) {
        let count = u32::try_from(self.config.peer.0.len()).unwrap_or(u32::MAX);
        for number in 0..count {
            let Some(peer) = self.peers.polled(number).filter(|peer| peer.has_trials()) else {
                continue;
            };
            let (ways, links, reach) = (&self.ways, &self.links, &mut self.reach);
            let is_changed = peer.try_addresses(
                |path| {
                    let bind = ways.of_path(path);
                    let is_there = bind.is_none_or(|bind| reason::lack(bind, links).is_none());
                    is_there && !ways.is_closed(path.number().into())
                },
                |route| reach.has_route(route, ways, links, now),
                now,
            );
            if is_changed {
                // To be polled.
                let _ = self.peers.get(number);
            }
            self.find_reasons(number, now);
        }
    }

    /// Starts another resolution of the names of peers with silent paths: the other end may have
    /// another address.
    fn resolve_silent(&mut self, now: Instant) {
        let silent = |peer: &Peer| {
            let since = peer.silent();
            since.is_some_and(|since| now.saturating_since(since) >= SILENT)
        };
        let peers = self.peers.iter().zip(&self.config.peer.0);
        let silent = peers.filter(|(peer, _)| silent(peer));
        let mut names: Vec<Name> = silent
            .flat_map(|(_, (_, peer))| endpoints::names(peer))
            .collect();
        if names.is_empty() {
            self.times.again = None;
            return;
        }
        let is_early = |(at, _): (Instant, Duration)| at > now;
        // A pending resolution, or a reload, is not replaced.
        if self.times.again.is_some_and(is_early) || self.resolver.is_asked() {
            return;
        }
        let wait = self.times.again.map_or(SILENT, |(_, wait)| wait);
        self.times.again = Some((now + wait, (wait * 2).min(LONGEST)));
        names.sort();
        names.dedup();
        self.resolve(names);
    }

    /// Gives resolved addresses to the bypasses. A domain has no port, unlike an endpoint.
    fn on_domains(&mut self, answer: &mut Answer) {
        let now = self.now();
        let domains = std::mem::take(&mut answer.addresses);
        let mut is_changed = false;
        for (name, addresses) in domains {
            if name.1 != 0 {
                answer.addresses.insert(name, addresses);
                continue;
            }
            let found: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
            let refused = found.iter().find(|found| !self.domains.may_have(**found));
            answer.failures.extend(refused.map(|address| {
                let name = resolver::label(&name);
                format!("{name}: the answer {address} is private or of a peer, and is not used")
            }));
            is_changed |= self.domains.add(&name.0, &found, now);
        }
        for name in answer.names.iter().filter(|name| name.1 == 0) {
            let start = format!("{}: ", resolver::label(name));
            let mut failures = answer.failures.iter();
            let failure = failures.find(|why| why.starts_with(&start));
            self.domains.note(&name.0, failure);
        }
        if is_changed {
            answer.failures.extend(self.set_bypasses().err());
        }
    }

    fn set_bypasses(&mut self) -> Result<(), String> {
        let wanted = bypass::selectors(&self.config, &self.domains);
        self.bypass.set(&wanted)
    }

    /// Gives resolved addresses to the peers and the bypasses.
    pub(super) fn on_addresses(&mut self, mut answer: Answer) {
        self.on_domains(&mut answer);
        let names: Vec<String> = answer.names.iter().map(resolver::label).collect();
        let mut failures = answer.failures;
        let mut addresses = self.addresses.clone();
        let mut found = Vec::new();
        for (name, mut now) in answer.addresses {
            let before = addresses.get(&name);
            // Name servers turn the order of addresses; that is no change.
            let is_same = before.is_some_and(|before| {
                before.len() == now.len() && before.iter().all(|one| now.contains(one))
            });
            if is_same {
                continue;
            }
            let all: Vec<String> = now.iter().map(ToString::to_string).collect();
            found.push(format!(
                "endpoint {}:{} is {}",
                name.0,
                name.1,
                all.join(", ")
            ));
            now.shrink_to_fit();
            addresses.insert(name, now);
        }
        if !found.is_empty() {
            match self.change(&Rc::clone(&self.config), addresses) {
                Ok(()) => found.iter().for_each(|found| self.log.say(found)),
                Err(why) => failures.push(why),
            }
        }
        for why in &failures {
            if !self.failures.contains(why) {
                self.log.say(&format!("{why}; it is looked up again"));
            }
        }
        // Endpoints and domains have separate answers.
        self.failures
            .retain(|known| !names.iter().any(|name| known.starts_with(name)));
        self.failures.extend(failures);
        let is_complete = peers::all_unknown(&self.config, &self.addresses).is_empty();
        self.times.retry = (!is_complete).then(|| self.now() + RETRY);
    }
}
