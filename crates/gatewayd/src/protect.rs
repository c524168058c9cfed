//! The protection of `allowed` while the gateway is down: routes that refuse packets and outlive the
//! daemon.
//!
//! Each prefix has an unreachable route in the table of its length ([`crate::netlink::table`]),
//! with a metric that any usable route goes before. The daemon adds its routes to the same tables,
//! so that exactly the packets that enter the tunnel are refused while it is down.

use std::io;

use anabranch_core::system::words;
use ipnet::IpNet;

use crate::{
    config::Config,
    netlink::{Barrier, Netlink, family},
};

/// The least metric of barriers. The rest identifies the gateway's interface, since a host may have
/// several gateways.
const METRIC: u32 = 0xf000_0000;

/// The protection of one gateway.
pub struct Protection {
    netlink: Netlink,
    metric: u32,
}

impl Protection {
    /// The protection of this configuration's gateway.
    ///
    /// # Errors
    /// If there is no netlink socket.
    pub fn of(config: &Config) -> Result<Self, String> {
        let netlink = Netlink::new();
        let netlink = netlink.map_err(|error| format!("netlink: {}", words(&error)))?;
        Ok(Self {
            netlink,
            metric: metric(&config.gateway.interface.0),
        })
    }

    /// Adds the barriers of a configuration. Existing ones stay.
    ///
    /// # Errors
    /// A message that names the prefix that the kernel refused.
    pub fn add(&mut self, config: &Config) -> Result<(), String> {
        for net in nets(config) {
            let metric = self.metric;
            let added = self
                .netlink
                .add_barrier(Barrier { net, metric })
                .and_then(|()| self.netlink.add_rules(family(&net), net.prefix_len()));
            added.map_err(|error| format!("protection of {net}: {}", words(&error)))?;
        }
        Ok(())
    }

    /// Removes the barriers that a configuration does not have.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn prune(&mut self, config: &Config) -> Result<(), String> {
        let wanted = nets(config);
        self.remove(|net| !wanted.contains(net))
    }

    /// Removes all barriers of this gateway. Returns whether there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end(&mut self) -> Result<bool, String> {
        let was_set = !self.list()?.is_empty();
        self.remove(|_| true)?;
        Ok(was_set)
    }

    /// Removes the barriers of all gateways of this host. Returns whether there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end_all(&mut self) -> Result<bool, String> {
        let all = self.all()?;
        for barrier in &all {
            let deleted = self.netlink.delete_barrier(*barrier);
            deleted.map_err(|error| format!("protection of {}: {}", barrier.net, words(&error)))?;
        }
        self.remove(|_| true)?;
        Ok(!all.is_empty())
    }

    /// The prefixes that other gateways of this host protect, or an earlier configuration with
    /// another `interface`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn others(&mut self) -> Result<Vec<IpNet>, String> {
        let mut all = self.all()?;
        all.retain(|barrier| barrier.metric != self.metric);
        Ok(all.into_iter().map(|barrier| barrier.net).collect())
    }

    fn all(&mut self) -> Result<Vec<Barrier>, String> {
        let all = self.netlink.barriers();
        all.map_err(|error| format!("protection: {}", words(&error)))
    }

    fn remove(&mut self, is_stale: impl Fn(&IpNet) -> bool) -> Result<(), String> {
        let failed = |error: &io::Error| format!("protection: {}", words(error));
        let stale: Vec<IpNet> = self.list()?.into_iter().filter(is_stale).collect();
        for net in &stale {
            let metric = self.metric;
            let deleted = self.netlink.delete_barrier(Barrier { net: *net, metric });
            deleted.map_err(|error| format!("protection of {net}: {}", words(&error)))?;
        }
        // A killed daemon may have left the rules of a default route.
        let done = self.netlink.delete_all_unused_rules();
        done.map_err(|error| failed(&error))
    }

    /// The prefixes that have a barrier of this gateway.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn list(&mut self) -> Result<Vec<IpNet>, String> {
        let all = self.all()?;
        let own = all.iter().filter(|barrier| barrier.metric == self.metric);
        Ok(own.map(|barrier| barrier.net).collect())
    }
}

/// The prefixes that are protected.
pub fn nets(config: &Config) -> Vec<IpNet> {
    if !config.gateway.protect {
        return Vec::new();
    }
    let allowed = config.peer.0.iter().flat_map(|(_, peer)| &peer.allowed);
    let mut nets: Vec<IpNet> = allowed.map(|prefix| prefix.0.trunc()).collect();
    nets.sort_unstable();
    nets.dedup();
    nets
}

/// The metric of a gateway's barriers.
fn metric(interface: &str) -> u32 {
    METRIC | (number(interface) & 0x0fff_fffe)
}

/// A number that differs between the gateways of a host: FNV-1a of the interface's name.
pub fn number(interface: &str) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    for octet in interface.bytes() {
        hash = (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193);
    }
    hash
}

/// Remarks of `check` about the protection that is set now.
pub fn remark(config: &Config) -> Option<String> {
    let set = Protection::of(config).and_then(|mut protection| protection.list());
    let set = set.ok()?;
    if config.gateway.protect {
        let missing = nets(config).into_iter().find(|net| !set.contains(net));
        return missing.map(|net| {
            format!(
                "{net} is not protected now; anabranch-gateway protect FILE, or up FILE, sets it"
            )
        });
    }
    set.first().map(|net| {
        format!("{net} is refused by an earlier protection; anabranch-gateway down FILE removes it")
    })
}

/// Remark of `check` about bypasses, which skip the rules of other gateways too.
pub fn remark_of_bypasses(config: &Config) -> Option<String> {
    let (name, _) = config.bypass.0.first()?;
    let others = Protection::of(config).and_then(|mut protection| protection.others());
    let net = others.ok()?.into_iter().next()?;
    Some(format!(
        "bypass {name}: its packets to {net} leave in clear, although another gateway of this host protects it"
    ))
}

#[cfg(test)]
mod tests {
    use super::{METRIC, metric};

    #[test]
    fn metrics_of_gateways_differ_and_are_the_greatest() {
        let names = ["anabranch0", "anabranch1", "a", "b"];
        for (n, name) in names.iter().enumerate() {
            assert!(metric(name) >= METRIC && metric(name) < u32::MAX);
            assert!(names[..n].iter().all(|other| metric(other) != metric(name)));
        }
    }
}
