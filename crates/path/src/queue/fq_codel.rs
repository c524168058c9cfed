//! FQ-CoDel: flow queueing with CoDel on each queue (RFC 8290).
//!
//! Connections are hashed to `queues` queues, which take turns by deficit round robin over bytes. A
//! queue that was idle joins the new queues, which precede the old queues for one quantum: a sparse
//! flow hardly waits. Each queue has its own CoDel. If the total exceeds the limit, the queue with
//! most bytes loses half of its packets, at most 64, from its head.
//!
//! # Differs from Linux
//! - `quantum` is 1,500 bytes by default instead of the 1,514 of RFC 8290 §5.2.4: packets here are
//!   IP packets, without an Ethernet header.
//! - `memory_limit` (tc-fq_codel(8)) counts the bytes of packets, not of buffers, and is off by
//!   default.
//! - Linux compares `mtu` with the backlog of all queues, takes half of the bytes of the fattest
//!   queue instead of half of its packets, and adds packets dropped at the limit to `count`
//!   (measured: `docs/validation/kernel-queues.md`). Its CoDel also differs.
//! - A connection is identified by its number, not by addresses and ports. The connections that
//!   share a queue differ from seed to seed and stay the same within a run.
//!
//! # Not implemented
//! - Other classifiers (§4.1.1), `drop_batch`, `ce_threshold_selector`.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, text::Limit},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Config, Contradiction, Init, Item, QueueContext, QueueDiscipline, QueueParams,
    bounded::{ControlTime, MarkAbove, MemoryLimit, PacketSize, Quantum, QueueCount},
    codel::{self, Control, Settings, Waiting},
    fifos::{Fifo, List, Store},
    flow_hash::Perturbed,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "fq-codel",
    title: "FQ-CoDel",
    summary: "A queue with CoDel for each hash of a connection, served in turn by bytes, newly active queues first: \
              fair shares, low delay, and sparse flows hardly wait.",
    sources: &[
        Source {
            id: "RFC 8290",
            items: &["§3", "§4", "§5.2"],
        },
        Source {
            id: "RFC 8289",
            items: &["§5"],
        },
    ],
};

/// Maximum number of packets dropped at once at the limit (RFC 8290 §4.1).
const DROP_BATCH: u32 = 64;

/// Parameters of FQ-CoDel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets in all queues, without the packet being sent: packets, bytes or
    /// bandwidth-delay products (RFC 8290 §5.2.3: 10240 packets).
    pub limit: Limit,
    /// Additional limit of all queues: a size, or `"unlimited"` (tc-fq_codel(8) `memory_limit`).
    pub memory_limit: MemoryLimit,
    /// Number of queues among which connections are spread (RFC 8290 §5.2.5: 1024).
    pub queues: QueueCount,
    /// Bytes that a queue may send per round (RFC 8290 §5.2.4: the largest packet).
    pub quantum: Quantum,
    /// Acceptable standing sojourn time (RFC 8290 §5.2.2: 5 ms).
    pub target: ControlTime,
    /// Time for which the sojourn time must have been at or above `target` before the first drop
    /// (RFC 8290 §5.2.1: 100 ms). Not below `target`.
    pub interval: ControlTime,
    /// Backlog of a queue up to which CoDel drops nothing from it (RFC 8289 §4.2, §5.3).
    pub mtu: PacketSize,
    /// Marks packets of ECN-capable transports instead of dropping them (RFC 8290 §5.2.6: true).
    /// Packets are still dropped at the limit.
    pub ecn: bool,
    /// Marks every packet of an ECN-capable transport that has waited for longer than this, as
    /// DCTCP requires, or `"off"` (RFC 8290 §5.2.7: off).
    pub ce_threshold: MarkAbove,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(10_240),
            memory_limit: MemoryLimit(None),
            queues: QueueCount::new(1_024),
            quantum: Quantum::new(1_500),
            target: codel::TARGET,
            interval: codel::INTERVAL,
            mtu: PacketSize::new(1_500),
            ecn: true,
            ce_threshold: MarkAbove(None),
        }
    }
}

impl QueueParams for Params {
    const CHANGEABLE: &'static [&'static str] = &[
        "limit",
        "memory_limit",
        "quantum",
        "target",
        "interval",
        "mtu",
        "ecn",
        "ce_threshold",
    ];
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
    fn check(&self) -> Result<(), Contradiction> {
        codel::check(self.target, self.interval)
    }
}

impl Params {
    fn memory_limit(&self) -> Limit {
        self.memory_limit.0.map_or(Limit::Unlimited, Limit::Bytes)
    }
    fn quantum(&self) -> i64 {
        // At most a million.
        i64::try_from(self.quantum.get().get()).unwrap_or(i64::MAX)
    }
    fn settings(&self) -> Settings {
        Settings {
            target: self.target.get(),
            interval: self.interval.get(),
            mtu: self.mtu.get().get(),
            ecn: self.ecn,
            ce_threshold: self.ce_threshold.0,
        }
    }
}

/// Queue of a hash value.
#[derive(Debug, Clone, Copy)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
    /// Bytes that it may still send; a packet may take it below zero.
    credits: i64,
    /// Whether it is in the new or the old list.
    listed: bool,
}

/// An FQ-CoDel queue.
#[derive(Debug)]
pub struct FqCodel {
    limit: Limit,
    memory_limit: Limit,
    quantum: i64,
    settings: Settings,
    hash: Option<Perturbed>,
    store: Store,
    queues: Vec<FlowQueue>,
    links: Vec<u32>,
    new: List,
    old: List,
}

/// Packets of one queue, for its CoDel.
struct Own<'a> {
    store: &'a mut Store,
    fifo: &'a mut Fifo,
}

impl Waiting for Own<'_> {
    #[inline]
    fn take(&mut self) -> Option<Item> {
        self.store.pop(self.fifo)
    }
    #[inline]
    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

impl FqCodel {
    /// Creates empty queues.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        let count = params.queues.get() as usize;
        let empty = FlowQueue {
            fifo: Fifo::EMPTY,
            control: Control::NEW,
            credits: 0,
            listed: false,
        };
        Self {
            limit: params.limit,
            memory_limit: params.memory_limit(),
            quantum: params.quantum(),
            settings: params.settings(),
            hash: None,
            store: Store::new(),
            queues: vec![empty; count],
            links: vec![0; count],
            new: List::EMPTY,
            old: List::EMPTY,
        }
    }

    /// Replaces the target. The interval is at least twice as long.
    pub fn set_target(&mut self, target: Duration) {
        self.settings.target = target;
        self.settings.interval = codel::INTERVAL.get().max(target * 2);
    }

    fn line_of(&mut self, item: &Item, cx: &QueueContext<'_>) -> u32 {
        let hash = *self.hash.get_or_insert_with(|| Perturbed::new(cx.stream));
        // At most 65,536.
        hash.line(
            item.connection,
            u32::try_from(self.queues.len()).unwrap_or(u32::MAX),
        )
    }

    fn is_over(&self, cx: &QueueContext<'_>) -> bool {
        self.store.exceeds(self.limit, cx) || self.store.exceeds(self.memory_limit, cx)
    }

    /// Drops half of the packets of the queue with most bytes, at most 64, from its head (RFC 8290
    /// §4.1). Dropping a batch amortizes the search.
    fn drop_from_fattest(&mut self, cx: &mut QueueContext<'_>) {
        let Some(fattest) = self.queues.iter_mut().reduce(|a, b| {
            if b.fifo.bytes() > a.fifo.bytes() {
                b
            } else {
                a
            }
        }) else {
            return;
        };
        for _ in 0..(fattest.fifo.packets() / 2).clamp(1, DROP_BATCH) {
            if let Some(item) = self.store.pop(&mut fattest.fifo) {
                cx.drop(item);
            }
        }
    }
}

impl QueueDiscipline for FqCodel {
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        let line = self.line_of(&item, cx);
        let queue = &mut self.queues[line as usize];
        self.store.push(&mut queue.fifo, item);
        if !queue.listed {
            queue.listed = true;
            queue.credits = self.quantum;
            self.new.push(&mut self.links, line);
        }
        while self.is_over(cx) {
            self.drop_from_fattest(cx);
        }
    }

    /// RFC 8290 §4.2.
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        loop {
            let is_new = self.new.first().is_some();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let line = list.first()?;
            let queue = &mut self.queues[line as usize];
            if queue.credits <= 0 {
                queue.credits += self.quantum;
                list.pop(&self.links);
                self.old.push(&mut self.links, line);
                continue;
            }
            let mut own = Own {
                store: &mut self.store,
                fifo: &mut queue.fifo,
            };
            if let Some(item) = queue.control.dequeue(&self.settings, &mut own, cx) {
                queue.credits -= i64::from(item.size);
                return Some(item);
            }
            queue.control.idle();
            list.pop(&self.links);
            if is_new {
                // Otherwise its next packet would make it new again, and it would precede the old
                // queues for ever.
                self.old.push(&mut self.links, line);
            } else {
                queue.listed = false;
            }
        }
    }

    /// Empties the lists, as a dequeue that finds no packet does (RFC 8290 §4.2).
    fn ran_out(&mut self, _cx: &mut QueueContext<'_>) {
        for list in [&mut self.new, &mut self.old] {
            while let Some(line) = list.pop(&self.links) {
                let queue = &mut self.queues[line as usize];
                queue.listed = false;
                queue.control.idle();
            }
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
    fn change(&mut self, to: &Config) {
        if let Config::FqCodel(params) = to {
            self.limit = params.limit;
            self.memory_limit = params.memory_limit();
            self.quantum = params.quantum();
            self.settings = params.settings();
        }
    }
}
