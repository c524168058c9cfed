//! Changes of the configuration while the gateway is up.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::atomic::Ordering,
};

use super::Gateway;
use crate::{
    bypass,
    config::{self, Config},
    device::Routes,
    endpoints,
    peers::{self, Change, Peer, PeerKeys},
    resolver::{Addresses, Answer, Question},
    status,
};

impl Gateway {
    /// Reads the configuration again and starts the resolution of its names. An earlier reload that
    /// still waits is dropped. Returns the outcome if it is already known.
    pub(super) fn reload(&mut self) -> Option<String> {
        if self.wanted.take().is_some() {
            self.resolver.forget();
        }
        let loaded = config::load(&self.file).map_err(|failure| failure.to_string());
        let loaded = loaded.and_then(|config| {
            config.is_reloadable(&self.config)?;
            self.may_have_caps(&config)?;
            Ok(config)
        });
        let config = match loaded {
            Ok(config) => config,
            Err(why) => return Some(self.outcome(Err(why))),
        };
        let names = peers::all_unknown(&config, &Addresses::new());
        if names.is_empty() {
            let changed = self.change(&Rc::new(config), Addresses::new());
            return Some(self.outcome(changed));
        }
        self.times.retry = None;
        self.wanted = Some(config);
        self.resolver.ask(Question {
            names,
            stops_at_failure: true,
        });
        None
    }

    /// Processes resolved addresses. Returns the outcome of a reload.
    pub(super) fn on_answer(&mut self, answer: Answer) -> Option<String> {
        let Some(config) = self.wanted.take() else {
            self.on_addresses(answer);
            return None;
        };
        let changed = match answer.failures.first() {
            Some(why) => Err(format!("{}: {why}", self.file.display())),
            None => self.change(&Rc::new(config), answer.addresses),
        };
        Some(self.outcome(changed))
    }

    /// Ends a reload: logs the outcome and returns it. After an error nothing has changed.
    pub(super) fn outcome(&mut self, changed: Result<(), String>) -> String {
        let said = match changed {
            Ok(()) => {
                self.resolver.forget();
                status::RELOADED.to_owned()
            }
            Err(why) => why,
        };
        if said == status::RELOADED {
            self.log.say(&said);
        } else {
            self.log
                .say(&format!("the configuration was not reloaded: {said}"));
        }
        let is_complete = peers::all_unknown(&self.config, &self.addresses).is_empty();
        let is_due = !is_complete && !self.resolver.is_asked();
        self.times.retry = is_due.then(|| self.now());
        said
    }

    /// The routes to peers that can have them, and to peers that were up.
    pub(super) fn routes(&self, config: &Config, known: &Addresses) -> Routes {
        let routed = self.peers.iter().filter(|peer| peer.is_routed);
        let routed: BTreeSet<PeerKeys> = routed.map(Peer::keys).collect();
        let was_routed = |peer: &config::Peer| routed.contains(&peers::keys(peer));
        let peers = config.peer.0.iter().map(|(_, peer)| peer);
        let routed =
            peers.filter(|peer| peers::is_routable(config, peer, known) || was_routed(peer));
        Routes::of(config, routed)
    }

    pub(super) fn change(
        &mut self,
        config: &Rc<Config>,
        addresses: Addresses,
    ) -> Result<(), String> {
        let now = self.now();
        let remotes = endpoints::remotes(config, &addresses);
        let ways = self.ways.plan(config, &remotes)?;
        let (links, reach) = (&self.links, &mut self.reach);
        let planned = config.peer.0.iter().map(|peer| {
            Change::of(config, peer, &addresses, &ways, |routes| {
                reach.preferred(routes, &ways, links, now)
            })
        });
        let planned = planned.collect::<Result<Vec<_>, String>>()?;
        let routes = self.routes(config, &addresses);
        let mut domains = self.domains.clone();
        domains.configure(config, now);
        let bypass = bypass::selectors(config, &domains);
        let set = self.protection.add(config);
        let set = set.and_then(|()| self.device.set_routes(&routes));
        if let Err(why) = set.and_then(|()| self.bypass.set(&bypass)) {
            let before = bypass::selectors(&self.config, &self.domains);
            let _ = self.bypass.set(&before);
            // The previous routes can be set again, unless another process has taken one meanwhile.
            let before = self.routes(&self.config, &self.addresses);
            let _ = self.device.set_routes(&before);
            let _ = self.protection.prune(&self.config);
            return Err(why);
        }
        if let Err(why) = self.protection.prune(config) {
            self.log.say(&why);
        }
        // No step after this can fail.
        self.ways.replace(ways);
        self.ways.hold(&self.links);
        let known = self.peers.take().into_iter();
        let mut known: BTreeMap<PeerKeys, Peer> = known.map(|peer| (peer.keys(), peer)).collect();
        let changed = config
            .peer
            .0
            .iter()
            .zip(planned)
            .map(|((_, peer), change)| {
                let mut changed = match known.remove(&peers::keys(peer)) {
                    Some(mut known) => {
                        known.change(change, now);
                        known
                    }
                    None => peers::peer((&self.identity, self.epoch), peer, change, now),
                };
                changed.is_routed |= peers::is_routable(config, peer, &addresses);
                changed
            });
        self.peers.set(changed.collect(), now);
        self.config = Rc::clone(config);
        self.addresses = addresses;
        self.prefers_direct
            .store(config.routes_all(), Ordering::Relaxed);
        self.bypass.is_kept = config.gateway.protect;
        self.domains = domains;
        self.watch_paths();
        self.set_caps();
        Ok(())
    }

    /// Begins to check the paths, if a peer has endpoints.
    pub(super) fn watch_paths(&mut self) {
        let has_trials = self.peers.iter().any(Peer::has_trials);
        self.times.watch(has_trials, self.now());
    }
}
