//! Traffic beside the tunnel: rules of the kernel before the rules of the tunnel's tables.
//!
//! Each rule names the gateway that made it ([`Owner`]). The rules remain after the daemon has ended if
//! the tunnel's prefixes are protected, because they belong to these rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use anabranch_core::{system::words, units::Duration};
use anabranch_gateway::time::Instant;

use ipnet::IpNet;

use crate::{
    config::{ADDRESSES, Account, Bypass, Config},
    netlink::{
        Netlink, is_unsupported,
        selector::{Owner, Selector, host, is_v6},
    },
    protect,
    resolver::Name,
};

/// The message on a kernel that has no rules by DSCP.
const NO_DSCP: &str = "this kernel has no rules by DSCP for IPv4; Linux 6.13 has; \
                       a rule of nftables can set a `mark` instead";

/// The time after which a name's addresses are resolved again, if it has any, or if it has none.
const FRESH: Duration = Duration::from_secs(60);
const UNKNOWN: Duration = Duration::from_secs(5);
/// The time for which an address counts after the last answer with it: many names have more
/// addresses than one answer, and connections outlive an answer.
const KEPT: Duration = Duration::from_secs(3_600);
/// The addresses of domains, each with the time of the last answer that has it.
#[derive(Debug, Clone, Default)]
pub struct Domains {
    known: BTreeMap<String, BTreeMap<IpAddr, Instant>>,
    /// The peers' prefixes other than default routes.
    inside: Vec<IpNet>,
    /// The time of the next resolution; `None` if there are no domains.
    due: Option<Instant>,
    /// Messages about domains whose last resolution failed.
    failures: BTreeMap<String, String>,
}

impl Domains {
    /// Keeps the addresses of the domains of a configuration, and has them resolved at once.
    pub fn configure(&mut self, config: &Config, now: Instant) {
        let before = std::mem::take(&mut self.known);
        let peers = config.peer.0.iter();
        let allowed = peers.flat_map(|(_, peer)| peer.allowed.iter().map(|net| net.0.trunc()));
        self.inside = allowed.filter(|net| net.prefix_len() > 0).collect();
        for name in domains(config) {
            let mut known = before.get(&name).cloned().unwrap_or_default();
            known.retain(|address, _| self.may_have(*address));
            self.known.insert(name, known);
        }
        self.failures
            .retain(|name, _| self.known.contains_key(name));
        self.due = (!self.known.is_empty()).then_some(now);
    }

    /// The time of the next resolution.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Has the names resolved later.
    pub fn wait_until(&mut self, at: Instant) {
        self.due = self.due.map(|_| at);
    }

    /// The names to be resolved now. A domain has no port, unlike an endpoint.
    pub fn names(&mut self, now: Instant) -> Vec<Name> {
        let is_known = self.known.values().all(|addresses| !addresses.is_empty());
        let next = now + if is_known { FRESH } else { UNKNOWN };
        let times = self.known.values().flat_map(BTreeMap::values);
        let ends = times.map(|at| *at + KEPT).filter(|end| *end > now);
        self.due = Some(ends.fold(next, Instant::min));
        self.known.keys().map(|name| (name.clone(), 0)).collect()
    }

    /// Whether an answer may take packets to an address out of the tunnel. Otherwise the
    /// sender of an answer could choose packets to the networks of the peers and to hosts nearby.
    pub fn may_have(&self, address: IpAddr) -> bool {
        is_public(address) && !self.inside.iter().any(|net| net.contains(&address))
    }

    /// Adds the permitted addresses of an answer, and drops old ones. Returns whether the addresses changed.
    pub fn add(&mut self, name: &str, found: &[IpAddr], now: Instant) -> bool {
        let found = found.iter().filter(|address| self.may_have(**address));
        let found: Vec<IpAddr> = found.copied().collect();
        let Some(known) = self.known.get_mut(name) else {
            return false;
        };
        let before: Vec<IpAddr> = known.keys().copied().collect();
        known.extend(found.iter().map(|address| (*address, now)));
        known.retain(|_, at| now.saturating_since(*at) < KEPT);
        while known.len() > ADDRESSES {
            let oldest = known.iter().min_by_key(|(_, at)| **at);
            let Some(oldest) = oldest.map(|(address, _)| *address) else {
                break;
            };
            known.remove(&oldest);
        }
        !before.iter().eq(known.keys())
    }

    /// Drops the addresses without an answer for too long, also if there are no answers at all.
    /// Returns whether the addresses changed.
    pub fn expire(&mut self, now: Instant) -> bool {
        let count = |domains: &Self| domains.known.values().map(BTreeMap::len).sum::<usize>();
        let before = count(self);
        for known in self.known.values_mut() {
            known.retain(|_, at| now.saturating_since(*at) < KEPT);
        }
        count(self) != before
    }

    /// Notes the outcome of a domain's resolution: the message if it failed.
    pub fn note(&mut self, name: &str, failure: Option<&String>) {
        match failure {
            Some(why) => self.failures.insert(name.to_owned(), why.clone()),
            None => self.failures.remove(name),
        };
    }

    /// The message about a domain whose last resolution failed.
    pub fn failure(&self, name: &str) -> Option<&str> {
        self.failures.get(name).map(String::as_str)
    }

    /// The addresses of a domain.
    pub fn addresses(&self, name: &str) -> impl Iterator<Item = IpAddr> {
        let known = self.known.get(name).into_iter();
        known.flat_map(|addresses| addresses.keys().copied())
    }
}

/// Whether an address is that of a host of the Internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_special = v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0;
            !(is_special || v4.is_loopback() || v4.is_private() || v4.is_link_local())
        }
        IpAddr::V6(v6) => {
            let is_special = v6.is_multicast() || v6.is_unspecified() || v6.to_ipv4().is_some();
            !(is_special || v6.is_unique_local() || v6.is_unicast_link_local())
        }
    }
}

/// The domains of a configuration, without duplicates.
pub fn domains(config: &Config) -> BTreeSet<String> {
    let bypasses = config.bypass.0.iter();
    let domains = bypasses.flat_map(|(_, bypass)| &bypass.domain.0);
    domains.map(|domain| domain.0.clone()).collect()
}

/// The packets of all bypasses.
pub fn selectors(config: &Config, domains: &Domains) -> BTreeSet<Selector> {
    let bypasses = config.bypass.0.iter();
    bypasses
        .flat_map(|(_, bypass)| of_bypass(bypass, domains))
        .collect()
}

/// The packets of a bypass: one rule for each combination of its values.
fn of_bypass(bypass: &Bypass, domains: &Domains) -> Vec<Selector> {
    let mut all = destinations(bypass, domains);
    let sources: Vec<IpNet> = bypass.source.0.iter().map(|net| net.0.trunc()).collect();
    all = each(all, &sources, |selector, net| selector.from = Some(net));
    // No packet has addresses of both families.
    all.retain(|selector| {
        selector
            .from
            .is_none_or(|net| is_v6(&net) == selector.is_v6)
    });
    if let Some(protocol) = bypass.protocol {
        for selector in &mut all {
            selector.protocol = Some(protocol.number());
        }
    }
    let ports = bypass.port.0.iter().map(|ports| (ports.first, ports.last));
    let ports: Vec<_> = ports
        .flat_map(|range| [(Some(range), None), (None, Some(range))])
        .collect();
    all = each(all, &ports, |selector, (source, destination)| {
        selector.source_ports = source;
        selector.destination_ports = destination;
    });
    let dscp: Vec<u8> = bypass.dscp.0.iter().map(|dscp| dscp.get()).collect();
    all = each(all, &dscp, |selector, dscp| selector.dscp = Some(dscp));
    // A selector without a number would have the packets of all users.
    let users = bypass.user.0.iter().map(Account::uid);
    let Some(users) = users.collect::<Option<Vec<u32>>>() else {
        return Vec::new();
    };
    all = each(all, &users, |selector, uid| selector.uid = Some(uid));
    let marks: Vec<(u32, u32)> = bypass
        .mark
        .0
        .iter()
        .map(|mark| (mark.value, mark.mask))
        .collect();
    each(all, &marks, |selector, mark| selector.mark = Some(mark))
}

/// The packets by destination: of both families if none is given.
fn destinations(bypass: &Bypass, domains: &Domains) -> Vec<Selector> {
    let to = |net| Selector {
        to: Some(net),
        ..Selector::all(is_v6(&net))
    };
    if bypass.prefix.is_empty() && bypass.domain.is_empty() {
        return vec![Selector::all(false), Selector::all(true)];
    }
    let prefixes = bypass.prefix.0.iter().map(|prefix| prefix.0.trunc());
    let names = bypass.domain.0.iter();
    let addresses = names.flat_map(|domain| domains.addresses(&domain.0));
    prefixes.chain(addresses.map(host)).map(to).collect()
}

/// The combinations of selectors with values; the selectors themselves if there is no value.
fn each<T: Copy>(
    all: Vec<Selector>,
    values: &[T],
    set: impl Fn(&mut Selector, T),
) -> Vec<Selector> {
    if values.is_empty() {
        return all;
    }
    let with = |selector: &Selector, value: T| {
        let mut selector = *selector;
        set(&mut selector, value);
        selector
    };
    all.iter()
        .flat_map(|selector| values.iter().map(move |&value| (selector, value)))
        .map(|(selector, value)| with(selector, value))
        .collect()
}

/// The rules of one gateway, which are deleted on drop unless they are kept.
pub struct Rules {
    netlink: Netlink,
    owner: Owner,
    /// Whether they stay, as the protection does.
    pub is_kept: bool,
}

impl Drop for Rules {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = self.end();
        }
    }
}

impl Rules {
    /// The rules of this configuration's gateway.
    ///
    /// # Errors
    /// If there is no netlink socket.
    pub fn of(config: &Config) -> Result<Self, String> {
        let netlink = Netlink::new();
        let netlink = netlink.map_err(|error| format!("netlink: {}", words(&error)))?;
        Ok(Self {
            netlink,
            owner: Owner::new(protect::number(&config.gateway.interface.0)),
            is_kept: config.gateway.protect,
        })
    }

    /// Sets these rules, and deletes all others of this gateway.
    ///
    /// # Errors
    /// A message that has the rule that the kernel refused. Others may be set.
    pub fn set(&mut self, wanted: &BTreeSet<Selector>) -> Result<(), String> {
        let now: BTreeSet<Selector> = self.list()?.into_iter().collect();
        let mut with_dscp = wanted.difference(&now).filter_map(Selector::harmless);
        if let Some(selector) = with_dscp.next() {
            self.check_dscp(&selector)?;
        }
        for selector in wanted.difference(&now) {
            self.add(selector)?;
        }
        for selector in now.difference(wanted) {
            // A rule that an operator deleted is gone already.
            let _ = self.netlink.delete_bypass(selector, self.owner);
        }
        Ok(())
    }

    fn add(&mut self, selector: &Selector) -> Result<(), String> {
        let added = self.netlink.add_bypass(selector, self.owner);
        // Without IPv6 there are no such packets.
        if selector.is_of_all_v6() && added.as_ref().is_err_and(is_unsupported) {
            return Ok(());
        }
        added.map_err(|error| format!("bypass: {}: {selector}", words(&error)))
    }

    /// Refuses DSCP on a kernel that ignores it in rules of IPv4, which would have all packets bypass
    /// the tunnel.
    fn check_dscp(&mut self, harmless: &Selector) -> Result<(), String> {
        self.add(harmless)?;
        let is_known = self.list()?.contains(harmless);
        let deleted = self.netlink.delete_bypass(harmless, self.owner);
        deleted.map_err(|error| format!("bypass: {}: {harmless}", words(&error)))?;
        if is_known {
            return Ok(());
        }
        Err(format!("bypass: {NO_DSCP}"))
    }

    /// Deletes all rules of this gateway. Returns whether there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end(&mut self) -> Result<bool, String> {
        let was_set = !self.list()?.is_empty();
        self.set(&BTreeSet::new()).map(|()| was_set)
    }

    fn list(&mut self) -> Result<Vec<Selector>, String> {
        let own = |(selector, owner)| (owner == self.owner).then_some(selector);
        let all = self.netlink.bypasses();
        let all = all.map_err(|error| format!("bypass: {}", words(&error)))?;
        Ok(all.into_iter().filter_map(own).collect())
    }

    /// Deletes the rules of all gateways of this host. Returns whether there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end_all(&mut self) -> Result<bool, String> {
        let all = self.netlink.bypasses();
        let all = all.map_err(|error| format!("bypass: {}", words(&error)))?;
        for (selector, owner) in &all {
            let deleted = self.netlink.delete_bypass(selector, *owner);
            deleted.map_err(|error| format!("bypass: {}: {selector}", words(&error)))?;
        }
        Ok(!all.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::IpAddr};

    use anabranch_gateway::time::Instant;

    use super::{ADDRESSES, Bypass, Domains, KEPT, UNKNOWN, of_bypass};

    fn bypass(text: &str) -> Bypass {
        let root = anabranch_document::tree::parse_document(text).expect("TOML");
        anabranch_document::de::read(&root, &crate::config::NoNames).expect("a bypass")
    }

    #[test]
    fn each_combination_of_values_has_a_rule() {
        let cases = [
            ("dscp = \"ef\"", 2),
            ("prefix = \"192.0.2.0/24\"\nport = 443", 2),
            (
                "prefix = [\"192.0.2.0/24\", \"2001:db8::/32\"]\nport = [80, 443]\nprotocol = \"tcp\"",
                8,
            ),
            ("user = [0, 1]\nmark = 7", 4),
            ("source = [\"192.168.7.0/24\", \"2001:db8::/32\"]", 2),
            ("domain = \"video.example\"", 0),
        ];
        for (text, rules) in cases {
            let bypass = bypass(text);
            let found = of_bypass(&bypass, &Domains::default());
            assert_eq!(found.len(), rules, "{text}");
            assert!(found.len() <= bypass.rules(), "{text}");
        }
    }

    #[test]
    fn a_user_without_a_number_has_no_rule() {
        for text in ["user = \"absent\"", "user = [0, \"absent\"]\nport = 443"] {
            let found = of_bypass(&bypass(text), &Domains::default());
            assert_eq!(found, [], "{text}");
        }
    }

    fn address(host: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0xcb00_7000 + host).into()
    }

    #[test]
    fn no_answer_takes_private_or_allowed_addresses_out_of_the_tunnel() {
        let mut domains = Domains {
            inside: vec!["203.0.113.128/25".parse().expect("a prefix")],
            ..Domains::default()
        };
        domains
            .known
            .insert("video.example".to_owned(), BTreeMap::default());
        let refused = [
            "10.9.0.1",
            "192.168.7.1",
            "127.0.0.1",
            "169.254.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "203.0.113.200",
            "::",
            "::1",
            "fd09::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.9.0.1",
        ];
        for text in refused {
            let found = text.parse().expect("an address");
            let is_changed = domains.add("video.example", &[found], Instant::START);
            assert!(!is_changed, "{text}");
        }
        for text in ["203.0.113.2", "2001:db8::1"] {
            let found = text.parse().expect("an address");
            let is_changed = domains.add("video.example", &[found], Instant::START);
            assert!(is_changed, "{text}");
        }
    }

    #[test]
    fn addresses_end_without_answers() {
        let mut domains = Domains::default();
        domains
            .known
            .insert("video.example".to_owned(), BTreeMap::default());
        assert!(domains.add("video.example", &[address(1)], Instant::START));
        let late = (Instant::START + KEPT).saturating_sub(UNKNOWN);
        assert!(!domains.expire(late));
        assert_eq!(domains.names(late).len(), 1);
        let end = Instant::START + KEPT;
        assert_eq!(domains.due(), Some(end));
        assert!(domains.expire(end));
        assert_eq!(domains.addresses("video.example").count(), 0);
        assert!(!domains.expire(end));
    }

    #[test]
    fn addresses_of_a_domain_are_kept_for_a_while_and_bounded() {
        let mut domains = Domains::default();
        domains
            .known
            .insert("video.example".to_owned(), BTreeMap::default());
        let mut add = |found: &[IpAddr], now| domains.add("video.example", found, now);
        assert!(add(&[address(1)], Instant::START));
        assert!(!add(&[address(1)], Instant::START));
        let half = Instant::START + KEPT / 2;
        assert!(add(&[address(2)], half));
        assert!(add(&[address(2)], Instant::START + KEPT), "the first ends");
        let many: Vec<IpAddr> = (0..300).map(address).collect();
        assert!(add(&many, Instant::START + KEPT));
        assert_eq!(domains.addresses("video.example").count(), ADDRESSES);
    }
}
