//! The addresses and ports of a flow's packets inside the tunnel.

use core::net::IpAddr;
use std::sync::Arc;

use anabranch_core::packet::FlowId;
use anabranch_scenario::Resolved;

/// A host's address of each version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) v4: [u8; 4],
    pub(super) v6: [u8; 16],
}

impl Addresses {
    /// The default addresses of a host, by the end of the flow. The IPv6 addresses are not routed
    /// beyond a site (RFC 4193 §3.1).
    const fn of_end(end: u8) -> Self {
        let mut v6 = [0; 16];
        (v6[0], v6[15]) = (0xfd, end + 1);
        Self {
            v4: [10, 0, 0, end + 1],
            v6,
        }
    }

    fn new(end: u8, given: &[IpAddr]) -> Self {
        let own = Self::of_end(end);
        let v4 = given.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(address.octets()),
            IpAddr::V6(_) => None,
        });
        let v6 = given.iter().find_map(|address| match address {
            IpAddr::V6(address) => Some(address.octets()),
            IpAddr::V4(_) => None,
        });
        Self {
            v4: v4.unwrap_or(own.v4),
            v6: v6.unwrap_or(own.v6),
        }
    }
}

/// The addresses and port of a flow's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    /// The addresses of `from` and of `to`.
    pub(super) hosts: [Addresses; 2],
    /// The port at `to`; `None` for a port derived from the connection.
    pub(super) port: Option<u16>,
}

impl Label {
    const PLAIN: Self = Self {
        hosts: [Addresses::of_end(0), Addresses::of_end(1)],
        port: None,
    };
}

/// By flow; empty if no flow differs from [`Label::PLAIN`].
#[derive(Debug, Clone)]
pub struct Labels(Arc<[Label]>);

impl Labels {
    /// The labels of a scenario's flows.
    #[must_use]
    pub fn new(resolved: &Resolved) -> Self {
        let flows = resolved.flows.iter().map(|flow| {
            let [from, to] = flow.ends.map(|node| &resolved.attached[node].addresses[..]);
            Label {
                hosts: [Addresses::new(0, from), Addresses::new(1, to)],
                port: flow.port,
            }
        });
        let labels: Vec<Label> = flows.collect();
        let is_plain = labels.iter().all(|label| *label == Label::PLAIN);
        Self(if is_plain {
            Arc::default()
        } else {
            labels.into()
        })
    }

    pub(super) fn of(&self, flow: FlowId) -> Label {
        let label = self.0.get(flow.0 as usize);
        label.copied().unwrap_or(Label::PLAIN)
    }
}
