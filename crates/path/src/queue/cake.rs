//! CAKE: common applications kept enhanced (Høiland-Jørgensen et al. 2018): shaper, tins, host and flow isolation, AQM.
//!
//! The shaper sends at `rate` and counts for each packet what the link below adds to it. By its DSCP a packet joins a
//! tin. A tin has priority over those below it while it sends less than its share of the bandwidth, and none above it.
//! Within a tin, flows are hashed to queues by an 8-way set-associative hash, which take turns by deficit round robin, those
//! that were idle first. A flow's turn is its share of what its host may send, the host being whichever end of the flow has
//! more flows here. Each queue has COBALT: a CoDel whose count falls as it rises, for flows that respond, and BLUE for
//! those that do not.
//!
//! # Differs from the source
//! - Flows are distinguished by connection, and hosts by their number: hosts never collide in a hash.
//! - The deficit of a flow is counted in fractions of a byte instead of being rounded at random.
//! - Without a bandwidth, tins share the link by their weights.
//!
//! # As in Linux (measured: `docs/validation/kernel-queues.md`)
//! - Target and interval of a tin grow at low rates by what its 1.5 largest packets take; nothing is signalled below the time
//!   that four of them take.
//! - A new queue's first signal does not wait for an interval.
//!
//! # Differs from Linux
//! - What `tc-cake(8)` documents is here under its names, as far as below. `limit` is 4 MiB by default; Linux makes it four
//!   times what `rtt` holds at the bandwidth, if that is more, and counts its buffers.
//! - The square root is exact. From a count of 16 on Linux takes one step of Newton's method from the last root.
//!
//! # Not implemented
//! - The ACK filter, which needs the TCP header; NAT look-up; `autorate-ingress`, `ingress`; washing of DSCPs; `precedence`,
//!   `diffserv8`, `fwmark`.

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

/// How the link below frames packets (tc-cake(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Framing {
    /// As they are.
    #[default]
    Noatm,
    /// In cells of 53 bytes that hold 48.
    Atm,
    /// 65 bytes for each 64.
    Ptm,
}

/// Who gets an equal share (tc-cake(8), *flow isolation*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Isolation {
    /// Nobody: one queue for all.
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

/// Which tins there are (tc-cake(8), *priority queue parameters*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Diffserv {
    /// One for all.
    Besteffort,
    /// Bulk (a sixteenth of the bandwidth), best effort, voice (a quarter).
    #[default]
    Diffserv3,
    /// Bulk (a sixteenth), best effort, video (a half), voice (a quarter).
    Diffserv4,
}

impl Diffserv {
    /// Shares of the bandwidth up to which the tins have priority, the lowest first: best effort, bulk, video, voice. Within
    /// its share bulk comes before best effort, which has a share of all (measured with Linux 6.12).
    const fn shares(self) -> &'static [f64] {
        match self {
            Self::Besteffort => &[1.0],
            Self::Diffserv3 => &[1.0, 1.0 / 16.0, 0.25],
            Self::Diffserv4 => &[1.0, 1.0 / 16.0, 0.5, 0.25],
        }
    }

    /// The tin of a DSCP (RFC 4594 names them).
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
            // CS2, AF2x, CS3, AF3x, AF4x, and the delay bit of old.
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
    /// What may wait in all queues, the packet being sent not counted: packets, bytes or bandwidth-delay products
    /// (tc-cake(8) `memlimit`: at least 4 MiB). Beyond it the longest queue loses packets at its head.
    pub limit: Limit,
    /// What the shaper sends per time, or `"unlimited"` (tc-cake(8) `bandwidth`).
    pub rate: Bandwidth,
    /// Bytes that the link below adds to each packet (tc-cake(8) `overhead`: -64 to 256).
    pub overhead: Overhead,
    /// The least that a packet takes on the link below, overhead included (tc-cake(8) `mpu`: 0 to 256).
    pub mpu: MinimumPacket,
    /// How the link below frames packets: `"noatm"`, `"atm"` or `"ptm"`.
    pub framing: Framing,
    /// The round-trip time that the AQM expects: its interval, and twenty times its target (tc-cake(8) `rtt`: 100 ms).
    pub rtt: ControlTime,
    /// Who gets an equal share.
    pub isolation: Isolation,
    /// Which tins there are.
    pub diffserv: Diffserv,
    /// Among how many queues the flows of a tin are spread (1024).
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

/// The largest packet, for targets. Linux counts the link's header too: 1,514 bytes on Ethernet.
const MTU: u64 = 1_500;
/// The longest turn in bytes: an Ethernet frame (tc-cake(8), *examples*).
const LONGEST_QUANTUM: u64 = 1_514;
/// The least turn in bytes, at low bandwidths.
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
    /// The ends of each flow, by its number.
    hosts: Vec<[u32; 2]>,
    /// Draws so far.
    draws: u64,
}

impl Cake {
    /// Empty queues.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let tins = params.diffserv.shares().iter().map(|&share| {
            let rate = params.rate.0.map(|rate| rate.bits_per_s() as f64 * share);
            let packets = |count: f64| {
                let takes = rate.map_or(0.0, |rate| count * 8.0 * MTU as f64 / rate);
                shaper::seconds(takes)
            };
            // 1.5 packets at least (§3.3: the AQM is scaled at low rates).
            let target = (params.rtt.get() / 20).max(packets(1.5));
            let stretched = params.rtt.get() + target - params.rtt.get() / 20;
            let quantum = rate.map_or(LONGEST_QUANTUM, |rate| {
                // A 4096th of a second.
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

    /// What distinguishes a packet.
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
        // Both directions of a connection are flows of their own.
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

    /// The tin that is served next: the highest that is within its share, or the one that will be so first. Without a
    /// bandwidth, the one that has had least by its weight.
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
        // Behind a shaper the link runs out while packets are still held back in time: whether it says so before or after
        // the hold is its own affair, and must not matter.
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
