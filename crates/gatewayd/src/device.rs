//! The TUN interface, its addresses and the routes to what is behind the peers.

use std::{
    io,
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd},
};

use anabranch_core::system::words;
use ipnet::IpNet;
use route_manager::{Route, RouteManager};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::config::Config;

/// The least MTU of an interface with IPv6 (RFC 8200 §5): the kernel takes the addresses away below it.
const LEAST_V6: u16 = 1280;

/// The interface. It is gone when this is dropped.
pub struct Device {
    tun: SyncDevice,
    mtu: u16,
    least: u16,
}

impl Device {
    /// Makes the interface that the configuration describes.
    ///
    /// # Errors
    /// A message that names the interface, and the address or the route that the kernel refused.
    pub fn new(config: &Config, mtu: u16) -> Result<Self, String> {
        let name = &config.tunnel.interface.0;
        let addresses: Vec<IpNet> = config.tunnel.address.iter().map(|own| own.0).collect();
        let has_v6 = addresses.iter().any(|own| own.addr().is_ipv6());
        let least = if has_v6 { LEAST_V6 } else { 0 };
        let mtu = mtu.max(least);
        let failed = |what: &str, error: &io::Error| format!("{name}: {what}{}", words(error));
        let tun = DeviceBuilder::new()
            .name(name)
            .mtu(mtu)
            .build_sync()
            .map_err(|error| failed("", &error))?;
        tun.set_nonblocking(true)
            .map_err(|error| failed("", &error))?;
        for own in addresses {
            add_address(&tun, own).map_err(|error| failed(&format!("address {own}: "), &error))?;
        }
        let index = tun.if_index().map_err(|error| failed("", &error))?;
        let mut routes = RouteManager::new().map_err(|error| failed("routes: ", &error))?;
        for (_, peer) in &config.peer.0 {
            for prefix in &peer.allowed {
                let net = prefix.0.trunc();
                let route = Route::new(net.addr(), net.prefix_len()).with_if_index(index);
                routes
                    .add(&route)
                    .map_err(|error| failed(&format!("route to {net}: "), &error))?;
            }
        }
        Ok(Self { tun, mtu, least })
    }

    /// The MTU in force.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Sets the MTU, so that the kernel tells senders how large their packets may be.
    pub fn set_mtu(&mut self, mtu: u16) -> io::Result<()> {
        let mtu = mtu.max(self.least);
        if mtu != self.mtu {
            self.tun.set_mtu(mtu)?;
            self.mtu = mtu;
        }
        Ok(())
    }

    /// Takes a packet from the kernel.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tun.recv(buffer)
    }

    /// Gives a packet to the kernel.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet).map(drop)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

fn add_address(tun: &SyncDevice, own: IpNet) -> io::Result<()> {
    match own.addr() {
        IpAddr::V4(address) => tun.add_address_v4(address, own.prefix_len()),
        IpAddr::V6(address) => tun.add_address_v6(address, own.prefix_len()),
    }
}
