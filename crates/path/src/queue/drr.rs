//! DRR: deficit round robin (Shreedhar and Varghese 1995).
//!
//! Each connection has a separate queue, and queues take turns. A turn adds `quantum` bytes to the
//! queue's deficit counter. The queue sends packets while they fit the counter, and keeps the
//! remainder for its next turn unless it is empty. Shares are thus fair by bytes, whatever the
//! packet sizes, and the cost of a turn does not depend on the number of queues. If there is no
//! room, the longest queue loses a packet (§III, after McKenney's buffer stealing).
//!
//! # Differs from Linux
//! - `tc-drr(8)` has classes that filters assign packets to, each with its own qdisc; here a queue
//!   belongs to a connection or to a hash value.
//!
//! # Differs from the paper
//! - Queues are per connection by default; a number in `queues` hashes them as the paper does.
//! - The longest queue is the queue with most bytes, and it loses the packet at its head; the paper
//!   leaves both open.
//!
//! # Not implemented
//! - Weights: each queue has the same quantum. DRR+ for flows with bounded delay (§VI).

use anabranch_core::{
    packet::ConnectionId,
    registry::{Meta, Source},
    units::text::Limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Config, Init, Item, QueueContext, QueueDiscipline, QueueParams,
    bounded::{Quantum, Queues},
    fifos::{Fifo, List, Store},
    flow_hash::{Index, Perturbed},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "drr",
    title: "Deficit round robin",
    summary: "A queue for each connection, served in turn by bytes: fair shares at any load; when the buffer is full, \
              the longest queue loses a packet.",
    sources: &[Source {
        id: "Shreedhar and Varghese, SIGCOMM 1995",
        items: &["§III"],
    }],
};

/// Parameters of deficit round robin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets in all queues, without the packet being sent: packets, bytes or
    /// bandwidth-delay products (by default 1000 packets, as for `codel` and `pie`).
    pub limit: Limit,
    /// Bytes that a turn adds to a queue's deficit counter (§III: at least the largest packet, so
    /// that each turn sends one).
    pub quantum: Quantum,
    /// `"per-connection"`, or the number of queues among which connections are spread (§III).
    pub queues: Queues,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1_000),
            quantum: Quantum::new(1_500),
            queues: Queues::PerConnection,
        }
    }
}

impl QueueParams for Params {
    const CHANGEABLE: &'static [&'static str] = &["limit", "quantum"];
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
}

/// Queue of a connection or hash value.
#[derive(Debug, Clone, Copy)]
struct FlowQueue {
    fifo: Fifo,
    /// `DC_i` of the paper, in bytes.
    deficit: u64,
    /// Its connection, if it belongs to one.
    connection: ConnectionId,
    /// Whether it is in the active list.
    listed: bool,
}

/// Mapping of packets to queues.
#[derive(Debug)]
enum Lines {
    Hashed(u32, Option<Perturbed>),
    PerConnection { index: Index, free: Vec<u32> },
}

/// A DRR queue.
#[derive(Debug)]
pub struct Drr {
    limit: Limit,
    quantum: u64,
    lines: Lines,
    store: Store,
    queues: Vec<FlowQueue>,
    links: Vec<u32>,
    active: List,
    /// Whether the queue at the head of the active list has received its quantum for this turn.
    granted: bool,
}

impl Drr {
    /// Creates empty queues.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        let lines = match params.queues {
            Queues::Hashed(count) => Lines::Hashed(count.get(), None),
            Queues::PerConnection => Lines::PerConnection {
                index: Index::new(),
                free: Vec::new(),
            },
        };
        let mut drr = Self {
            limit: params.limit,
            quantum: params.quantum.get().get(),
            lines,
            store: Store::new(),
            queues: Vec::new(),
            links: Vec::new(),
            active: List::EMPTY,
            granted: false,
        };
        if let Queues::Hashed(count) = params.queues {
            for _ in 0..count.get() {
                drr.add(ConnectionId(0));
            }
        }
        drr
    }

    /// Adds a queue.
    fn add(&mut self, connection: ConnectionId) -> u32 {
        self.queues.push(FlowQueue {
            fifo: Fifo::EMPTY,
            deficit: 0,
            connection,
            listed: false,
        });
        self.links.push(0);
        u32::try_from(self.queues.len() - 1).expect("connections have 32-bit numbers")
    }

    fn line_of(&mut self, item: &Item, cx: &QueueContext<'_>) -> u32 {
        match &mut self.lines {
            Lines::Hashed(count, hash) => hash
                .get_or_insert_with(|| Perturbed::new(cx.stream))
                .line(item.connection, *count),
            Lines::PerConnection { index, free } => {
                if let Some(line) = index.get(item.connection) {
                    return line;
                }
                let line = free.pop();
                let line = line.unwrap_or_else(|| self.add(item.connection));
                self.queues[line as usize].connection = item.connection;
                if let Lines::PerConnection { index, .. } = &mut self.lines {
                    index.insert(item.connection, line);
                }
                line
            }
        }
    }

    /// Removes the empty queue at the head of the active list: its turn ends, and its deficit is
    /// discarded.
    fn retire_first(&mut self) {
        let Some(line) = self.active.pop(&self.links) else {
            return;
        };
        self.granted = false;
        let queue = &mut self.queues[line as usize];
        queue.deficit = 0;
        queue.listed = false;
        if let Lines::PerConnection { index, free } = &mut self.lines {
            index.remove(queue.connection);
            free.push(line);
        }
    }

    fn drop_from_longest(&mut self, cx: &mut QueueContext<'_>) {
        let longest = self.queues.iter_mut().reduce(|a, b| {
            if b.fifo.bytes() > a.fifo.bytes() {
                b
            } else {
                a
            }
        });
        if let Some(item) = longest.and_then(|queue| self.store.pop(&mut queue.fifo)) {
            cx.drop(item);
        }
    }
}

impl QueueDiscipline for Drr {
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        let line = self.line_of(&item, cx);
        let queue = &mut self.queues[line as usize];
        self.store.push(&mut queue.fifo, item);
        if !queue.listed {
            queue.listed = true;
            self.active.push(&mut self.links, line);
        }
        while self.store.exceeds(self.limit, cx) {
            self.drop_from_longest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        let _ = cx;
        loop {
            let line = self.active.first()?;
            let queue = &mut self.queues[line as usize];
            let Some(first) = self.store.first(&queue.fifo) else {
                // Drops at the limit have emptied it.
                self.retire_first();
                continue;
            };
            if !self.granted {
                self.granted = true;
                queue.deficit += self.quantum;
            }
            if u64::from(first.size) > queue.deficit {
                self.granted = false;
                self.active.pop(&self.links);
                self.active.push(&mut self.links, line);
                continue;
            }
            let item = self.store.pop(&mut queue.fifo)?;
            queue.deficit -= u64::from(item.size);
            if queue.fifo.is_empty() {
                self.retire_first();
            }
            return Some(item);
        }
    }

    fn ran_out(&mut self, _cx: &mut QueueContext<'_>) {
        while self.active.first().is_some() {
            self.retire_first();
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
        if let Config::Drr(params) = to {
            (self.limit, self.quantum) = (params.limit, params.quantum.get().get());
        }
    }
}
