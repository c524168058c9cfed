//! The TUN interface, its addresses and the routes to the peers' networks.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::{AsFd, BorrowedFd},
};

use anabranch_core::system::words;
use ipnet::IpNet;
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::{
    config::{Config, Peer},
    netlink::{MAIN, Netlink, family, table},
};

/// The least MTU of an interface with IPv6 (RFC 8200 §5): below it the kernel removes the
/// addresses.
const LEAST_V6: u16 = 1280;

/// The interface. It is removed with its routes and rules on drop.
pub struct Device {
    tun: SyncDevice,
    name: String,
    index: u32,
    mtu: u16,
    least: u16,
    netlink: Netlink,
    table: GROTable,
    /// The routes, each with the number of its table.
    routes: BTreeSet<(IpNet, u32)>,
    /// The MTUs of routes, also of routes that are not set yet.
    mtus: BTreeMap<IpNet, u16>,
}

impl Device {
    /// Creates the configured interface.
    ///
    /// # Errors
    /// A message that names the interface, and the address or the route that the kernel refused.
    pub fn new(config: &Config, mtu: u16, routes: &Routes) -> Result<Self, String> {
        let name = config.gateway.interface.0.clone();
        let addresses: Vec<IpNet> = config.gateway.addresses.iter().map(|own| own.0).collect();
        let has_v6 = addresses.iter().any(|own| own.addr().is_ipv6());
        let least = if has_v6 { LEAST_V6 } else { 0 };
        let mtu = mtu.max(least);
        let failed = |what: &str, error: &io::Error| format!("{name}: {what}{}", words(error));
        let build = |offload| {
            let builder = DeviceBuilder::new().name(&name).mtu(mtu);
            builder.offload(offload).build_sync()
        };
        // A kernel without offloads passes each packet separately.
        let tun = build(true)
            .or_else(|_| build(false))
            .map_err(|error| failed("", &error))?;
        tun.set_nonblocking(true)
            .map_err(|error| failed("", &error))?;
        let index = tun.if_index().map_err(|error| failed("", &error))?;
        let mut netlink = Netlink::new().map_err(|error| failed("netlink: ", &error))?;
        for own in addresses {
            let added = netlink.add_address(own, index);
            added.map_err(|error| failed(&format!("address {own}: "), &error))?;
        }
        let mut device = Self {
            tun,
            name,
            index,
            mtu,
            least,
            netlink,
            table: GROTable::default(),
            routes: BTreeSet::new(),
            mtus: BTreeMap::new(),
        };
        device.set_routes(routes)?;
        Ok(device)
    }

    /// Sets the routes into the interface, and removes all others.
    ///
    /// # Errors
    /// A message that names the route that the kernel refused. Earlier routes in the list are set.
    pub fn set_routes(&mut self, wanted: &Routes) -> Result<(), String> {
        let tables = wanted.nets.iter().map(|net| (*net, wanted.table(net)));
        let tables: BTreeSet<(IpNet, u32)> = tables.collect();
        for &(net, table) in tables.difference(&self.routes.clone()) {
            // The protection has its rules already.
            let has_rules = table == MAIN || wanted.is_protected;
            let mtu = self.mtus.get(&net).copied();
            let added = self.netlink.add_route(net, (self.index, table), mtu);
            let added = added.and_then(|()| {
                self.routes.insert((net, table));
                match has_rules {
                    true => Ok(()),
                    false => self.netlink.add_rules(family(&net), net.prefix_len()),
                }
            });
            added.map_err(|error| format!("{}: route to {net}: {}", self.name, words(&error)))?;
        }
        let stale: Vec<(IpNet, u32)> = self.routes.difference(&tables).copied().collect();
        for (net, table) in stale {
            // A route that an operator deleted is gone already.
            let _ = self.netlink.delete_route(net, (self.index, table));
            self.routes.remove(&(net, table));
            if table != MAIN {
                self.netlink
                    .delete_unused_rules(family(&net), net.prefix_len());
            }
        }
        Ok(())
    }

    /// Sets the MTU of the route to a network, so that the kernel notifies senders of packets that
    /// are too large for its peer.
    pub fn set_route_mtu(&mut self, net: IpNet, mtu: u16) {
        let mtu = if net.addr().is_ipv6() {
            mtu.max(LEAST_V6)
        } else {
            mtu
        };
        if self.mtus.insert(net, mtu) != Some(mtu) {
            let tables = self.routes.range((net, 0)..=(net, u32::MAX));
            for &(_, table) in tables {
                // A route that an operator deleted has no MTU.
                let _ = self.netlink.change_route(net, (self.index, table), mtu);
            }
        }
    }

    /// The MTU in force.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Sets the MTU, so that the kernel notifies senders of packets that are too large.
    pub fn set_mtu(&mut self, mtu: u16) -> io::Result<()> {
        let mtu = mtu.max(self.least);
        if mtu != self.mtu {
            self.tun.set_mtu(mtu)?;
            self.mtu = mtu;
        }
        Ok(())
    }

    /// Receives packets from the kernel, and splits merged ones.
    ///
    /// # Errors
    /// If there are no packets, or the interface is gone.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        batch.count = 0;
        batch.count =
            self.tun
                .recv_multiple(&mut batch.raw, &mut batch.packets, &mut batch.sizes, 0)?;
        Ok(())
    }

    /// Sends packets to the kernel, merging packets of a flow. Returns how often the kernel
    /// refused.
    pub fn send(&mut self, delivered: &mut Delivered) -> u64 {
        let packets = &mut delivered.packets[..std::mem::take(&mut delivered.count)];
        if packets.is_empty() {
            return 0;
        }
        let sent = self.tun.send_multiple(&mut self.table, packets, HEADROOM);
        sent.is_err().into()
    }
}

/// Octets before a packet, for the kernel's offload header.
const HEADROOM: usize = VIRTIO_NET_HDR_LEN;
/// Packets per batch.
const BATCH: usize = IDEAL_BATCH_SIZE;

/// Capacity of a buffer in which a flow's packets are merged.
const TOGETHER: usize = 2 * HEADROOM + (1 << 16);

/// Packets for the kernel, in reused buffers. Each buffer has capacity for merging: without it each
/// packet is written separately.
#[derive(Default)]
pub struct Delivered {
    packets: Vec<Vec<u8>>,
    count: usize,
}

impl Delivered {
    /// Adds a packet.
    pub fn add(&mut self, packet: &[u8]) {
        if self.count == self.packets.len() {
            self.packets.push(Vec::with_capacity(TOGETHER));
        }
        let buffer = &mut self.packets[self.count];
        buffer.clear();
        buffer.resize(HEADROOM, 0);
        buffer.extend_from_slice(packet);
        self.count += 1;
    }

    /// Whether it must be sent before more packets are added.
    pub fn is_full(&self) -> bool {
        self.count == BATCH
    }
}

/// Octets of the largest packet that an operator may set as MTU.
const LARGEST: usize = 9_216;

/// Packets from the kernel. The default value allocates no memory, so that it can replace a batch
/// that is taken out.
#[derive(Default)]
pub struct Batch {
    raw: Vec<u8>,
    packets: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    count: usize,
}

impl Batch {
    /// A batch with memory for the largest read.
    pub fn new() -> Self {
        Self {
            raw: vec![0; HEADROOM + (1 << 16)],
            packets: vec![vec![0; LARGEST]; BATCH],
            sizes: vec![0; BATCH],
            count: 0,
        }
    }

    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let packets = self.packets.iter().zip(&self.sizes);
        packets
            .take(self.count)
            .filter_map(|(packet, &size)| packet.get(..size))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The kernel deletes routes with the interface, but not their rules.
        let routes = std::mem::take(&mut self.routes);
        for (net, table) in routes.into_iter().filter(|(_, table)| *table != MAIN) {
            let _ = self.netlink.delete_route(net, (self.index, table));
            self.netlink
                .delete_unused_rules(family(&net), net.prefix_len());
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// Routes into the interface.
pub struct Routes {
    nets: Vec<IpNet>,
    /// Whether each is in the table of its length: they are protected, or packets bypass them.
    is_separate: bool,
    /// Whether they are protected, which has set the rules for these tables.
    is_protected: bool,
}

impl Routes {
    /// The routes to these peers. Without protection the kernel itself adds a route to the network
    /// of an address.
    pub fn of<'a>(config: &Config, peers: impl IntoIterator<Item = &'a Peer>) -> Self {
        let own = &config.gateway.addresses;
        let is_protected = config.gateway.protect;
        let is_separate = is_protected || !config.bypass.is_empty();
        let is_own = |net: &IpNet| own.iter().any(|own| own.0.trunc() == *net);
        let allowed = peers.into_iter().flat_map(|peer| &peer.allowed);
        let nets = allowed.map(|prefix| prefix.0.trunc());
        Self {
            nets: nets.filter(|net| is_separate || !is_own(net)).collect(),
            is_separate,
            is_protected,
        }
    }

    /// The number of a route's table.
    fn table(&self, net: &IpNet) -> u32 {
        match net.prefix_len() {
            length if self.is_separate || length == 0 => table(length),
            _ => MAIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, Delivered, HEADROOM};

    /// Without capacity for merging, the packets of a flow are written separately.
    #[test]
    fn each_delivered_packet_has_room_for_a_whole_batch() {
        let mut delivered = Delivered::default();
        for _ in 0..2 {
            while !delivered.is_full() {
                delivered.add(&[0x45; 1_400]);
            }
            assert_eq!(delivered.packets.len(), BATCH);
            for packet in &delivered.packets {
                assert_eq!(packet.len(), HEADROOM + 1_400);
                assert!(packet.capacity() >= 2 * HEADROOM + 65_535);
            }
            delivered.count = 0;
        }
    }

    #[test]
    fn a_delivered_packet_allocates_nothing() {
        let mut delivered = Delivered::default();
        let mut fill = || {
            while !delivered.is_full() {
                delivered.add(&[0x45; 1_400]);
            }
            delivered.count = 0;
        };
        fill();
        assert_eq!(allocation_counter::measure(fill).count_total, 0);
    }
}
