//! CAKE: common applications kept enhanced (Høiland-Jørgensen et al. 2018): shaper, tins, host and
//! flow isolation, AQM.
//!
//! The shaper sends at `rate` and adds to each packet the overhead of the link below. A packet
//! joins a tin by its DSCP. A tin has priority over lower tins while it sends less than its share
//! of the bandwidth, and yields to them above it. Within a tin, an 8-way set-associative hash
//! assigns flows to queues, which take turns by deficit round robin; queues that were idle come
//! first. A flow's turn is its part of its host's quantum. The host is the end of the flow that has
//! more flows here. Each queue has COBALT: a CoDel whose count decreases in the same way as it
//! increases, for responsive flows, and BLUE for unresponsive flows.
//!
//! # Differs from the source
//! - Flows are distinguished by connection number and hosts by host number; hosts never collide in
//!   a hash.
//! - The deficit of a flow is counted in fractions of a byte instead of random rounding.
//! - Without a bandwidth, tins share the link by their weights.
//!
//! # As in Linux (measured: `docs/validation/kernel-queues.md`)
//! - At low rates, target and interval of a tin grow by the time that 1.5 of its largest packets
//!   take. Nothing is signalled below the time that four of them take.
//! - A new queue's first signal does not wait for an interval.
//!
//! # Differs from Linux
//! - All options that `tc-cake(8)` documents are here under its names, except the ones below.
//!   `limit` is 4 MiB by default; Linux uses four times the bytes that `rtt` holds at the
//!   bandwidth, if that is more, and counts its buffers.
//! - The square root is exact. From a count of 16 on, Linux takes one step of Newton's method from
//!   the last root.
//!
//! # Not implemented
//! - The ACK filter, which needs the TCP header; NAT lookup; `autorate-ingress`, `ingress`; washing
//!   of DSCPs; `precedence`, `diffserv8`, `fwmark`.

mod blue;
mod cobalt;
mod shaper;
mod tin;

use anabranch_core::{
    packet::Direction,
    registry::{Meta, Source},
    units::{Bytes, Instant, text::Limit},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{
    cobalt::Settings,
    shaper::Shaper,
    tin::{Key, Tin, TinSettings},
};
use super::{
    Init, Item, QueueContext, QueueDiscipline, QueueParams,
    bounded::{Bandwidth, ControlTime, MinimumPacket, Overhead, QueueCount},
    fifos::Store,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "cake",
    title: "CAKE",
    summary: "The queue of home routers: a shaper, tins by DSCP, equal shares for hosts and for the flows of each, and CoDel \
              with BLUE on every flow.",
    sources: &[
        Source {
            id: "Høiland-Jørgensen et al., Piece of CAKE (LANMAN 2018)",
            items: &["§3.1", "§3.2", "§3.3"],
        },
        Source {
            id: "Morton, Proposing COBALT (codel list, 24 May 2016); Query Regarding CAKE (cake list, 24 October 2018)",
            items: &["signal schedule", "last packet"],
        },
        Source {
            id: "tc-cake(8)",
            items: &[
                "shaper",
                "overhead compensation",
                "flow isolation",
                "priority queue",
            ],
        },
    ],
};

/// Framing of packets on the link below (tc-cake(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Framing {
    /// None.
    #[default]
    Noatm,
    /// Cells of 53 bytes that carry 48 bytes each.
    Atm,
    /// 65 bytes for each 64 bytes.
    Ptm,
}

/// Entities that get equal shares (tc-cake(8), *flow isolation*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Isolation {
    /// None: one queue for all.
    Flowblind,
    /// Each source host.
    Srchost,
    /// Each destination host.
    Dsthost,
    /// Each pair of hosts.
    Hosts,
    /// Each flow.
    Flows,
    /// Each source host, and each flow of it.
    DualSrchost,
    /// Each destination host, and each flow of it.
    DualDsthost,
    /// Hosts at both ends, and each flow of them.
    #[default]
    TripleIsolate,
}

/// Set of tins (tc-cake(8), *priority queue parameters*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Diffserv {
    /// A single tin.
    Besteffort,
    /// Bulk (a sixteenth of the bandwidth), best effort, voice (a quarter).
    #[default]
    Diffserv3,
    /// Bulk (a sixteenth), best effort, video (a half), voice (a quarter).
    Diffserv4,
}

impl Diffserv {
    /// Shares of the bandwidth up to which the tins have priority, the lowest first: best effort,
    /// bulk, video, voice. Within its share bulk precedes best effort, whose share is the whole
    /// bandwidth (measured with Linux 6.12).
    const fn shares(self) -> &'static [f64] {
        match self {
            Self::Besteffort => &[1.0],
            Self::Diffserv3 => &[1.0, 1.0 / 16.0, 0.25],
            Self::Diffserv4 => &[1.0, 1.0 / 16.0, 0.5, 0.25],
        }
    }

    /// Tin of a DSCP (RFC 4594 names them).
    const fn tin(self, dscp: u8) -> usize {
        /// LE (RFC 8622) and CS1.
        const fn is_bulk(dscp: u8) -> bool {
            matches!(dscp, 1 | 8)
        }
        /// VA, EF, CS6, CS7.
        const fn is_voice(dscp: u8) -> bool {
            matches!(dscp, 44 | 46 | 48 | 56)
        }
        match self {
            Self::Diffserv3 | Self::Diffserv4 if is_bulk(dscp) => 1,
            Self::Diffserv3 if is_voice(dscp) || dscp == 4 => 2,
            // CS4 and CS5 too.
            Self::Diffserv4 if is_voice(dscp) || matches!(dscp, 32 | 40) => 3,
            // CS2, AF2x, CS3, AF3x, AF4x, and the delay bit of the former TOS field.
            Self::Diffserv4
                if matches!(
                    dscp,
                    4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38
                ) =>
            {
                2
            }
            Self::Besteffort | Self::Diffserv3 | Self::Diffserv4 => 0,
        }
    }
}

/// Parameters of CAKE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets in all queues, without the packet in transmission: packets, bytes
    /// or bandwidth-delay products (tc-cake(8) `memlimit`: at least 4 MiB). Above it the longest
    /// queue loses packets at its head.
    pub limit: Limit,
    /// Rate of the shaper, or `"unlimited"` (tc-cake(8) `bandwidth`).
    pub rate: Bandwidth,
    /// Bytes that the link below adds to each packet (tc-cake(8) `overhead`: -64 to 256).
    pub overhead: Overhead,
    /// Minimum size of a packet on the link below, including overhead (tc-cake(8) `mpu`: 0 to 256).
    pub mpu: MinimumPacket,
    /// Framing of packets on the link below: `"noatm"`, `"atm"` or `"ptm"`.
    pub framing: Framing,
    /// Round-trip time that the AQM expects: its interval, and twenty times its target (tc-cake(8)
    /// `rtt`: 100 ms).
    pub rtt: ControlTime,
    /// Entities that get equal shares.
    pub isolation: Isolation,
    /// Set of tins.
    pub diffserv: Diffserv,
    /// Number of queues among which the flows of a tin are spread (1024).
    pub queues: QueueCount,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Bytes(Bytes::new(4 << 20)),
            rate: Bandwidth(None),
            overhead: Overhead::new(0),
            mpu: MinimumPacket::new(0),
            framing: Framing::Noatm,
            rtt: ControlTime::from_millis(100),
            isolation: Isolation::TripleIsolate,
            diffserv: Diffserv::Diffserv3,
            queues: QueueCount::new(1_024),
        }
    }
}

impl QueueParams for Params {
    fn limit(&self) -> Limit {
        self.limit
    }
    fn limit_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
    fn decides_late(&self) -> bool {
        true
    }
    fn is_fifo(&self) -> bool {
        false
    }
    fn shapes(&self) -> bool {
        self.rate.0.is_some()
    }
}

/// Largest packet, for targets. Linux includes the link's header: 1,514 bytes on Ethernet.
const MTU: u64 = 1_500;
/// Maximum turn in bytes: an Ethernet frame (tc-cake(8), *examples*).
const LONGEST_QUANTUM: u64 = 1_514;
/// Minimum turn in bytes, at low bandwidths.
const LEAST_QUANTUM: u64 = 300;

/// A CAKE queue.
#[derive(Debug)]
pub struct Cake {
    limit: Limit,
    isolation: Isolation,
    diffserv: Diffserv,
    shaper: Shaper,
    store: Store,
    tins: Vec<Tin>,
    /// Hosts at the ends of each flow, by flow number.
    hosts: Vec<[u32; 2]>,
    /// Number of random draws.
    draws: u64,
}

impl Cake {
    /// Creates empty queues.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let tins = params.diffserv.shares().iter().map(|&share| {
            let rate = params.rate.0.map(|rate| rate.bits_per_s() as f64 * share);
            let packets = |count: f64| {
                let takes = rate.map_or(0.0, |rate| count * 8.0 * MTU as f64 / rate);
                shaper::seconds(takes)
            };
            // At least 1.5 packets (§3.3: the AQM is scaled at low rates).
            let target = (params.rtt.get() / 20).max(packets(1.5));
            let stretched = params.rtt.get() + target - params.rtt.get() / 20;
            let quantum = rate.map_or(LONGEST_QUANTUM, |rate| {
                // A 4096th of the bytes of a second.
                (shaper::whole(rate / 8.0) >> 12).clamp(LEAST_QUANTUM, LONGEST_QUANTUM)
            });
            Tin::new(&TinSettings {
                share,
                rate,
                quantum,
                queues: params.queues.get(),
                cobalt: Settings {
                    interval: stretched.max(target * 2),
                    target: target.max(packets(4.0)),
                    blue_spacing: target,
                },
            })
        });
        Self {
            limit: params.limit,
            isolation: params.isolation,
            diffserv: params.diffserv,
            shaper: Shaper::new(params),
            store: Store::new(),
            tins: tins.collect(),
            hosts: init.hosts.to_vec(),
            draws: 0,
        }
    }

    /// Flow and host keys of a packet.
    fn key(&self, item: &Item) -> Key {
        let ends = usize::try_from(item.flow.0)
            .ok()
            .and_then(|flow| self.hosts.get(flow));
        let [from, to] = ends.copied().unwrap_or([0, 0]);
        let (source, destination) = match item.direction {
            Direction::Forward => (from, to),
            Direction::Reverse => (to, from),
        };
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        // The two directions of a connection are separate flows.
        let flow = pair(item.connection.0, item.direction as u32);
        match self.isolation {
            Isolation::Flowblind => Key::of(0, None, None),
            Isolation::Srchost => Key::of(pair(source, 0), None, None),
            Isolation::Dsthost => Key::of(pair(0, destination), None, None),
            Isolation::Hosts => Key::of(pair(source, destination), None, None),
            Isolation::Flows => Key::of(flow, None, None),
            Isolation::DualSrchost => Key::of(flow, Some(source), None),
            Isolation::DualDsthost => Key::of(flow, None, Some(destination)),
            Isolation::TripleIsolate => Key::of(flow, Some(source), Some(destination)),
        }
    }

    fn drop_from_longest(&mut self, cx: &mut QueueContext<'_>) {
        let longest = self
            .tins
            .iter_mut()
            .filter(|tin| tin.packets() > 0)
            .reduce(|a, b| if b.longest() > a.longest() { b } else { a });
        if let Some(tin) = longest {
            tin.overflow(&mut self.store, cx);
        }
    }

    /// The next tin to serve: the highest tin within its share, or the tin that will be within it
    /// first. Without a bandwidth, the tin with the least bytes sent relative to its weight.
    fn next_tin(&self, now: Instant) -> Option<usize> {
        let waiting = self.tins.iter().enumerate();
        let mut waiting = waiting.filter(|(_, tin)| tin.packets() > 0);
        if !self.shaper.is_on() {
            let least = waiting.reduce(|a, b| if b.1.had() < a.1.had() { b } else { a });
            return least.map(|(place, _)| place);
        }
        let within = waiting.clone().rfind(|(_, tin)| tin.due() <= now);
        within
            .or_else(|| waiting.by_ref().rev().min_by_key(|(_, tin)| tin.due()))
            .map(|(place, _)| place)
    }
}

impl QueueDiscipline for Cake {
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        let key = self.key(&item);
        let place = self.diffserv.tin(item.dscp);
        let backlogged = self.tins.iter().filter(|tin| tin.packets() > 0);
        let least = backlogged.map(Tin::had).reduce(f64::min);
        if let Some(tin) = self.tins.get_mut(place) {
            tin.wake(cx.now, least);
            tin.enqueue(key, item, &mut self.store, cx);
        }
        while self.store.exceeds(self.limit, cx) {
            self.drop_from_longest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        while let Some(place) = self.next_tin(cx.now) {
            let length = self.shaper.framing();
            let sent = self.tins[place].dequeue(&mut self.store, &mut self.draws, length, cx);
            if let Some(item) = sent {
                let length = length.of(item.size);
                self.tins[place].sent(length);
                self.shaper.sent(cx.now, length);
                return Some(item);
            }
        }
        None
    }

    fn held_until(&self) -> Instant {
        self.shaper.held_until()
    }

    fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        // With a shaper the link runs out while packets are still held back. The order of the hold
        // and of the link's notification must not matter.
        if self.shaper.is_on() {
            return;
        }
        for tin in &mut self.tins {
            tin.ran_out(cx.now);
        }
    }
    #[inline]
    fn len(&self) -> usize {
        self.store.packets()
    }
    fn bytes(&self) -> u64 {
        self.store.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }
}
