//! Remarks of `check` about the state of this machine: paths that could not send now, although they
//! may be able to later, and the protection.

use std::{
    collections::BTreeMap,
    sync::mpsc::channel,
    thread,
    time::{self, Duration},
};

use anabranch_gateway::time::Instant;

use crate::{
    bypass,
    config::{Config, Endpoint, Way},
    dns::Direct,
    links::Links,
    protect,
    reach::Reach,
    reason::{Reason, before_sending, reverse_path},
    resolver, ways,
};

/// The time for which `check` waits for the resolver.
const PATIENCE: Duration = Duration::from_secs(5);

/// The remarks, in the order of paths.
pub fn remarks(config: &Config, links: &Links) -> Vec<String> {
    let mut reach = Reach::new();
    let mut remarks = Vec::new();
    for path @ (name, _) in &config.path.0 {
        let lack = lack(path, links);
        let remark = lack.or_else(|| remark(config, path, links, &mut reach));
        remarks.extend(remark.map(|remark| format!("path {name}: {remark}")));
    }
    remarks.extend(protect::remark(config));
    remarks.extend(protect::remark_of_bypasses(config));
    remarks
}

/// The remarks about domains of bypasses that have no address now. A resolver that does not answer
/// delays `check` by [`PATIENCE`].
pub fn of_domains(config: &Config) -> Vec<String> {
    let (answer, answers) = channel();
    for domain in bypass::domains(config) {
        let answer = answer.clone();
        let name = (domain, 0);
        // A thread that waits for the resolver ends with the process.
        thread::spawn(move || {
            let outcome = resolver::look_up(&name, &Direct::new(), false);
            let _ = answer.send((name.0, outcome.err()));
        });
    }
    drop(answer);
    let until = time::Instant::now() + PATIENCE;
    let mut open = bypass::domains(config);
    let mut failures = BTreeMap::new();
    while let Ok((domain, failure)) =
        answers.recv_timeout(until.saturating_duration_since(time::Instant::now()))
    {
        open.remove(&domain);
        failures.extend(failure.map(|why| (domain, why)));
    }
    failures.extend(open.into_iter().map(|domain| {
        let label = resolver::label(&(domain.clone(), 0));
        (domain, format!("{label}: no name server answers"))
    }));
    let mut remarks = Vec::new();
    for (name, bypass) in &config.bypass.0 {
        let domains = bypass.domain.0.iter();
        let failed = domains.filter_map(|domain| failures.get(&domain.0));
        remarks.extend(failed.map(|why| format!("bypass {name}: {why}")));
    }
    remarks
}

/// The interface or address that this machine lacks now.
fn lack((_, way): &(String, Way), links: &Links) -> Option<String> {
    let interfaces: Vec<&str> = links.0.keys().map(String::as_str).collect();
    match (&way.interface, way.source) {
        (Some(interface), _) if !links.0.contains_key(&interface.0) => Some(format!(
            "there is no interface `{}` now; there are: {}",
            interface.0,
            interfaces.join(", ")
        )),
        (Some(interface), _) if links.0.get(&interface.0).is_some_and(|link| !link.is_up) => {
            Some(format!("`{}` is set down now", interface.0))
        }
        (Some(interface), _)
            if links
                .0
                .get(&interface.0)
                .is_some_and(|link| !link.is_running) =>
        {
            Some(format!("`{}` has no carrier now", interface.0))
        }
        (None, Some(source)) if links.with(source.0).is_none() => {
            Some(format!("no interface has the address {} now", source.0))
        }
        _ => None,
    }
}

/// The reason why the path cannot reach any endpoint of a peer. Names are not looked up.
fn remark(
    config: &Config,
    (name, way): &(String, Way),
    links: &Links,
    reach: &mut Reach,
) -> Option<String> {
    let bind = ways::of_way(name, way, 0);
    for (_, peer) in &config.peer.0 {
        let has_names = peer
            .endpoints
            .iter()
            .any(|endpoint| matches!(endpoint, Endpoint::Name(..)));
        let addresses = peer.endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Address(address) if bind.serves(*address) => Some(*address),
            _ => None,
        });
        let mut first: Option<Reason> = None;
        let mut is_reached = has_names || peer.endpoints.is_empty();
        for address in addresses {
            let reason = before_sending(&bind, address, links, reach, Instant::START)
                .or_else(|| reverse_path(&bind, address.ip(), links, reach, Instant::START));
            is_reached |= reason.is_none();
            first = first.or(reason);
        }
        if !is_reached {
            let none = || format!("{} serves no endpoint's family", way.place());
            return Some(first.map_or_else(none, |reason| reason.to_string()));
        }
    }
    None
}
