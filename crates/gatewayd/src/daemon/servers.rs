//! Servers of groups, and the MTUs of interface and routes.

use super::{Gateway, octets};

impl Gateway {
    /// Sets the interface's MTU to the largest of the tunnels that are up, and the MTU of each route
    /// to that of its peer, so that the kernel notifies senders. A change of the interface takes a
    /// descriptor; without one the next turn repeats it.
    pub(super) fn follow_mtu(&mut self) {
        if let Some(mtu) = self.peers.mtu() {
            let _ = self.device.set_mtu(octets(mtu));
        }
        for (net, mtu) in self.peers.take_route_mtus() {
            self.device.set_route_mtu(net, octets(mtu));
        }
    }

    /// Moves the traffic of groups to the best servers that are up.
    pub(super) fn follow_servers(&mut self) {
        let now = self.now();
        let log = &mut self.log;
        self.peers.follow_servers(now, |before, after| {
            let group = after.rank.group.as_deref().unwrap_or_default();
            let why = if before.health.is_up() {
                "which is better and has stayed up"
            } else {
                "because the other is down"
            };
            log.say(&format!(
                "group {group}: the traffic moves from peer {} to peer {}, {why}",
                before.name, after.name
            ));
        });
    }
}
