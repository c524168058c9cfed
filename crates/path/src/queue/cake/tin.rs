//! A tin: flows in queues of an 8-way set-associative hash, which take turns (Høiland-Jørgensen et
//! al. 2018 §3.2).

use anabranch_core::units::Instant;

use super::{
    cobalt::{Cobalt, Settings},
    shaper::Length,
};
use crate::queue::{
    Item, QueueContext,
    fifos::{Fifo, List, Store},
    flow_hash::Perturbed,
};

/// Queues of one set of the hash.
const WAYS: usize = 8;
/// One byte in the unit of deficits. A turn is divided by the number of a host's flows, so it needs
/// fractions.
const BYTE: i64 = 1 << 16;

/// Flow and host keys of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    flow: u64,
    source: Option<u32>,
    destination: Option<u32>,
}

impl Key {
    /// Key of a flow, and of the hosts whose quantum it shares.
    pub const fn of(flow: u64, source: Option<u32>, destination: Option<u32>) -> Self {
        Self {
            flow,
            source,
            destination,
        }
    }
}

/// Parameters of a tin.
#[derive(Debug)]
pub(super) struct TinSettings {
    /// Share of the bandwidth up to which it has priority; its weight if there is no bandwidth.
    pub share: f64,
    /// Share in bits per second.
    pub rate: Option<f64>,
    /// A flow's turn in bytes.
    pub quantum: u64,
    pub queues: u32,
    pub cobalt: Settings,
}

/// Queue of a flow.
#[derive(Debug, Clone, Copy)]
struct FlowQueue {
    fifo: Fifo,
    cobalt: Cobalt,
    /// Key of its last flow; `None` before the first.
    key: Option<Key>,
    /// In fractions of a byte; a packet may take it below zero.
    deficit: i64,
    /// Whether it is in the new or the old list.
    listed: bool,
    /// Whether it counts among its hosts' flows.
    counted: bool,
}

/// Number of flows with a backlog, by host.
#[derive(Debug, Default)]
struct Hosts(Vec<u32>);

impl Hosts {
    fn of(&mut self, host: u32) -> &mut u32 {
        let place = host as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        &mut self.0[place]
    }
    fn flows(&self, host: Option<u32>) -> u32 {
        let flows = host.and_then(|host| self.0.get(host as usize));
        flows.copied().unwrap_or(0)
    }
}

/// A tin.
#[derive(Debug)]
pub(super) struct Tin {
    share: f64,
    rate: Option<f64>,
    /// In fractions of a byte.
    quantum: i64,
    cobalt: Settings,
    hash: Option<Perturbed>,
    queues: Vec<FlowQueue>,
    links: Vec<u32>,
    new: List,
    old: List,
    sources: Hosts,
    destinations: Hosts,
    packets: usize,
    /// When the tin is within its share again.
    due: Instant,
    /// Bytes sent relative to its weight.
    had: f64,
}

impl Tin {
    pub fn new(settings: &TinSettings) -> Self {
        let count = settings.queues as usize;
        let empty = FlowQueue {
            fifo: Fifo::EMPTY,
            cobalt: Cobalt::NEW,
            key: None,
            deficit: 0,
            listed: false,
            counted: false,
        };
        Self {
            share: settings.share,
            rate: settings.rate,
            // At most 1,514.
            quantum: i64::try_from(settings.quantum).unwrap_or(i64::MAX / BYTE) * BYTE,
            cobalt: settings.cobalt,
            hash: None,
            queues: vec![empty; count],
            links: vec![0; count],
            new: List::EMPTY,
            old: List::EMPTY,
            sources: Hosts::default(),
            destinations: Hosts::default(),
            packets: 0,
            due: Instant::START,
            had: 0.0,
        }
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.packets
    }
    /// When the tin is within its share again.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Bytes sent relative to its weight.
    pub fn had(&self) -> f64 {
        self.had
    }

    /// Prepares for a packet that joins: an empty tin earns no credit for unused time. `least` is
    /// the minimum of [`Tin::had`] over the tins with a backlog.
    pub fn wake(&mut self, now: Instant, least: Option<f64>) {
        if self.packets == 0 {
            self.due = self.due.max(now);
            self.had = least.map_or(self.had, |least| least.max(self.had));
        }
    }

    /// Charges a packet of this length that has left.
    pub fn sent(&mut self, length: u32) {
        if let Some(rate) = self.rate {
            let takes = super::shaper::seconds(8.0 * f64::from(length) / rate);
            self.due = self.due.saturating_add(takes);
        }
        self.had += f64::from(length) / self.share;
    }

    /// Queue of a flow: the flow's queue in its set if there is one, else an unused queue of the
    /// set, else a shared one.
    fn line_of(&mut self, key: Key, cx: &QueueContext<'_>) -> u32 {
        let hash = *self.hash.get_or_insert_with(|| Perturbed::new(cx.stream));
        let count = u32::try_from(self.queues.len()).unwrap_or(u32::MAX);
        let home = hash.line_of(key.flow, count);
        let first = home as usize / WAYS * WAYS;
        let ways = WAYS.min(self.queues.len() - first);
        // The search starts at the flow's own place and wraps around the set.
        let set = || (0..ways).map(|k| first + (home as usize - first + k) % ways);
        let own = set().find(|&at| self.queues[at].key == Some(key));
        let place = own.or_else(|| set().find(|&at| !self.queues[at].listed));
        let place = place.unwrap_or(home as usize);
        if own.is_none() && !self.queues[place].listed {
            self.queues[place].key = Some(key);
        }
        u32::try_from(place).unwrap_or(home)
    }

    pub fn enqueue(&mut self, key: Key, item: Item, store: &mut Store, cx: &QueueContext<'_>) {
        let line = self.line_of(key, cx);
        let queue = &mut self.queues[line as usize];
        store.push(&mut queue.fifo, item);
        self.packets += 1;
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum;
            self.new.push(&mut self.links, line);
        }
    }

    /// Adds the flow to its hosts' flows, or removes it.
    fn count(&mut self, line: u32, counts: bool) {
        let queue = &mut self.queues[line as usize];
        if queue.counted == counts {
            return;
        }
        queue.counted = counts;
        let key = queue.key;
        let change = |flows: &mut u32| {
            *flows = if counts {
                *flows + 1
            } else {
                flows.saturating_sub(1)
            };
        };
        if let Some(source) = key.and_then(|key| key.source) {
            change(self.sources.of(source));
        }
        if let Some(destination) = key.and_then(|key| key.destination) {
            change(self.destinations.of(destination));
        }
    }

    /// A flow's turn: the quantum divided by the number of flows of the end that has more.
    fn turn(&self, line: u32) -> i64 {
        let key = self.queues[line as usize].key;
        let source = self.sources.flows(key.and_then(|key| key.source));
        let destination = self.destinations.flows(key.and_then(|key| key.destination));
        (self.quantum / i64::from(source.max(destination).max(1))).max(1)
    }

    /// Takes the next packet, unless the AQM drops all waiting packets.
    pub fn dequeue(
        &mut self,
        store: &mut Store,
        draws: &mut u64,
        length: Length,
        cx: &mut QueueContext<'_>,
    ) -> Option<Item> {
        loop {
            let is_new = self.new.first().is_some();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let line = list.first()?;
            if self.queues[line as usize].deficit <= 0 {
                list.pop(&self.links);
                self.old.push(&mut self.links, line);
                self.count(line, true);
                let turn = self.turn(line);
                self.queues[line as usize].deficit += turn;
                continue;
            }
            if let Some(item) = self.take(line, store, draws, cx) {
                self.queues[line as usize].deficit -= i64::from(length.of(item.size)) * BYTE;
                return Some(item);
            }
            self.queues[line as usize]
                .cobalt
                .blue
                .is_empty(cx.now, self.cobalt.blue_spacing);
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop(&self.links);
            if is_new {
                // As in FQ-CoDel: otherwise it would precede the old queues for ever.
                self.old.push(&mut self.links, line);
            } else {
                self.queues[line as usize].listed = false;
                self.count(line, false);
            }
        }
    }

    /// Takes the next packet of a queue that the AQM does not drop. It never drops the last packet
    /// of a queue, because only a timeout would detect that loss (Morton, 24 October 2018).
    fn take(
        &mut self,
        line: u32,
        store: &mut Store,
        draws: &mut u64,
        cx: &mut QueueContext<'_>,
    ) -> Option<Item> {
        let queue = &mut self.queues[line as usize];
        while let Some(mut item) = store.pop(&mut queue.fifo) {
            self.packets -= 1;
            let delay = cx.now.saturating_since(item.arrived);
            let signals = queue.cobalt.signals(&self.cobalt, cx.now, delay);
            let mut drops = signals;
            if signals && cx.mark(&mut item) {
                queue.cobalt.marked(cx.now);
                drops = false;
            }
            let probability = queue.cobalt.blue.probability();
            if probability > 0.0 {
                *draws += 1;
                drops |= cx.draw(*draws).chance(probability);
            }
            if !drops || queue.fifo.packets() == 0 {
                return Some(item);
            }
            cx.drop(item);
        }
        None
    }

    /// Bytes of its longest queue.
    pub fn longest(&self) -> u64 {
        let bytes = self.queues.iter().map(|queue| queue.fifo.bytes());
        bytes.max().unwrap_or(0)
    }

    /// Drops the packet at the head of the longest queue, because there is no room.
    pub fn overflow(&mut self, store: &mut Store, cx: &mut QueueContext<'_>) {
        let longest = self.queues.iter_mut().reduce(|a, b| {
            if b.fifo.bytes() > a.fifo.bytes() {
                b
            } else {
                a
            }
        });
        let Some(queue) = longest else {
            return;
        };
        if let Some(item) = store.pop(&mut queue.fifo) {
            self.packets -= 1;
            queue
                .cobalt
                .blue
                .overflows(cx.now, self.cobalt.blue_spacing);
            cx.drop(item);
        }
    }

    /// Empties the lists when no tin has a backlog.
    pub fn ran_out(&mut self, now: Instant) {
        loop {
            let line = self.new.pop(&self.links);
            let Some(line) = line.or_else(|| self.old.pop(&self.links)) else {
                return;
            };
            let queue = &mut self.queues[line as usize];
            queue.listed = false;
            queue.cobalt.blue.is_empty(now, self.cobalt.blue_spacing);
            self.count(line, false);
        }
    }
}
