//! In-order delivery of each inner flow at the receiver: every packet at most once, with a bounded
//! wait.
//!
//! A packet after a gap waits until the gap is filled, or a little longer than nearly all late
//! packets took. If fewer than a tenth of the gaps are filled at all, waiting does not help, and
//! packets do not wait. A packet that arrives after its gap was given up is delivered late.

use anabranch_core::units::Duration;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use crate::{
    blocks::NearPlace,
    inner::{self, FLOWS},
    pool::Pool,
    time::Instant,
    wire::Place,
};

/// The largest number of packets and octets that wait, over all flows.
const PACKETS: usize = 4_096;
const OCTETS: usize = 4 << 20;
/// The number of sequence numbers before the next one to deliver that are remembered to drop
/// copies. Numbers after it are known from the waiting packets, so a gap can be filled however many
/// packets wait.
const REMEMBERED: u64 = 64 * WORDS as u64;
const WORDS: usize = 16;
/// Bounds and initial value of the wait, in seconds.
const WAIT_LEAST: f64 = 0.005;
const WAIT_MOST: f64 = 0.350;
const WAIT_FIRST: f64 = 0.100;
/// The quantile of late packets' delays for which a flow waits. A TCP sender treats a gap that is
/// given up as a loss and halves its window. In other flows, such as calls, packets after a lost
/// one should not wait for it.
const QUANTILE_TCP: f64 = 0.998;
const QUANTILE_OTHERS: f64 = 0.98;
/// Ratio of TCP's wait to the quantile.
const MARGIN_TCP: f64 = 1.25;
/// Step size of the estimate per sample.
const STEP: f64 = 0.1;
/// The share of gaps that must be filled for waiting to help.
const FILLED_LEAST: f64 = 0.1;
/// If waiting does not help, one in this many gaps is waited for nevertheless, to notice when it
/// does.
const TRIAL: u64 = 16;

/// A flow's buffer is not shrunk below capacity for this many packets: 10 MB if all flows reach it.
const ROOM: usize = 256;

#[derive(Debug)]
struct Waiting {
    number: u64,
    packet: Vec<u8>,
    since: Instant,
}

#[derive(Debug)]
struct Flow {
    /// The next number to deliver. Numbers here do not wrap.
    next: u64,
    /// One past the highest number received.
    end: u64,
    /// Bitmap of the numbers before `next` that arrived.
    seen: Box<[u64; WORDS]>,
    /// By number. Most packets are added at the end.
    waiting: VecDeque<Waiting>,
    /// The time at which the present gap is given up.
    deadline: Option<Instant>,
    is_tcp: bool,
}

impl Flow {
    fn new() -> Self {
        Self {
            next: 0,
            end: 0,
            seen: Box::new([0; WORDS]),
            waiting: VecDeque::new(),
            deadline: None,
            is_tcp: false,
        }
    }

    /// Extends 32 transmitted bits to a full number: the one nearest to the highest received.
    fn whole(&self, number: u32) -> Option<u64> {
        let end = u32::try_from(self.end & u64::from(u32::MAX)).unwrap_or(0);
        let difference = number.wrapping_sub(end).cast_signed();
        self.end.checked_add_signed(i64::from(difference))
    }

    fn bit(number: u64) -> (usize, u64) {
        let place = number % REMEMBERED;
        (usize::try_from(place / 64).unwrap_or(0), 1 << (place % 64))
    }

    /// Whether the number is new. A number too old to be remembered is not.
    fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            let found = self.waiting.binary_search_by_key(&number, |one| one.number);
            return found.is_err();
        }
        let (word, bit) = Self::bit(number);
        self.next - number <= REMEMBERED && self.seen[word] & bit == 0
    }

    /// Records the arrival of a number before `next`.
    fn mark(&mut self, number: u64) {
        let (word, bit) = Self::bit(number);
        self.seen[word] |= bit;
    }

    /// Continues delivery after this number; the numbers between `next` and it are missing.
    fn pass(&mut self, number: u64) {
        let missing = number.saturating_sub(self.next).min(REMEMBERED);
        for place in number - missing..number {
            let (word, bit) = Self::bit(place);
            self.seen[word] &= !bit;
        }
        self.mark(number);
        self.next = number.saturating_add(1);
    }
}

impl Flow {
    fn insert(&mut self, waiting: Waiting) {
        let after = self
            .waiting
            .iter()
            .rev()
            .take_while(|other| other.number > waiting.number)
            .count();
        self.waiting.insert(self.waiting.len() - after, waiting);
    }

    /// Takes the first packet. Releases excess capacity.
    fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front();
        if self.waiting.capacity() > ROOM && self.waiting.len() < self.waiting.capacity() / 8 {
            self.waiting.shrink_to(self.waiting.capacity() / 2);
        }
        first
    }
}

/// The wait for gaps, for flows of one kind.
#[derive(Debug)]
struct Patience {
    quantile: f64,
    margin: f64,
    wait_s: f64,
    /// The lower bound of the wait.
    least_s: f64,
    /// The smoothed share of gaps that are filled.
    filled: f64,
    gaps: u64,
}

impl Patience {
    const fn new(quantile: f64, margin: f64) -> Self {
        Self {
            quantile,
            margin,
            wait_s: WAIT_FIRST,
            least_s: 0.0,
            filled: 1.0,
            gaps: 0,
        }
    }

    fn wait(&self) -> Duration {
        if self.filled < FILLED_LEAST && !self.gaps.is_multiple_of(TRIAL) {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(self.wait_s.max(self.least_s))
    }

    fn on_given_up(&mut self) {
        self.gaps += 1;
        self.filled -= self.filled / 32.0;
    }

    /// Records a gap that was filled after this time, or (`None`) after it was given up.
    fn learn(&mut self, took: Option<Duration>) {
        self.gaps += u64::from(took.is_some());
        self.filled += (1.0 - self.filled) / 32.0;
        // A stochastic step towards the quantile. A packet that came after the gap was given up
        // took longer.
        let is_longer = took.is_none_or(|took| took.as_secs_f64() * self.margin > self.wait_s);
        let share = if is_longer {
            self.quantile
        } else {
            self.quantile - 1.0
        };
        self.wait_s *= 1.0 + STEP * share;
        self.wait_s = self.wait_s.clamp(WAIT_LEAST, WAIT_MOST);
    }
}

/// Counters of the restorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderStats {
    /// Packets delivered.
    pub delivered: u64,
    /// Delivered packets that arrived after a later packet of their flow.
    pub late: u64,
    /// Dropped copies, and packets too old to be distinguished from copies.
    pub duplicates: u64,
    /// Gaps given up.
    pub given_up: u64,
    /// Packets that the sender has given up.
    pub abandoned: u64,
    /// The largest number of packets that waited.
    pub max_waiting: usize,
}

/// The restorer of order.
#[derive(Debug)]
pub struct Order {
    flows: BTreeMap<u16, Flow>,
    /// Deadlines of flows, earliest first. An entry that differs from its flow's deadline is stale;
    /// the first entry never is.
    deadlines: BinaryHeap<Reverse<(Instant, u16)>>,
    ready: VecDeque<Vec<u8>>,
    packets: usize,
    octets: usize,
    tcp: Patience,
    others: Patience,
    stats: OrderStats,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            flows: BTreeMap::new(),
            deadlines: BinaryHeap::new(),
            ready: VecDeque::new(),
            packets: 0,
            octets: 0,
            tcp: Patience::new(QUANTILE_TCP, MARGIN_TCP),
            others: Patience::new(QUANTILE_OTHERS, 1.0),
            stats: OrderStats::default(),
        }
    }
}

impl Order {
    /// The counters so far.
    #[must_use]
    pub const fn stats(&self) -> OrderStats {
        self.stats
    }

    /// Sets the time that a retransmission takes. TCP flows wait at least this long: a sender would
    /// treat a loss that is being repaired as congestion.
    pub fn set_repair_time(&mut self, time: Duration) {
        self.tcp.least_s = time.as_secs_f64();
    }

    /// Packets that wait for others.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.packets
    }

    /// The full number of a place: the one nearest to the highest of its flow.
    #[must_use]
    pub fn near(&self, place: NearPlace) -> u32 {
        let end = self.flows.get(&place.flow).map_or(0, |flow| flow.end);
        let end = u32::try_from(end & u64::from(u32::MAX)).unwrap_or(0);
        let low = u16::try_from(end & u32::from(u16::MAX)).unwrap_or(0);
        end.wrapping_add_signed(place.low.wrapping_sub(low).cast_signed().into())
    }

    /// Handles a packet that arrived. Drops it if its flow number is not below [`FLOWS`].
    pub fn on_packet(&mut self, place: Place, packet: &[u8], now: Instant, pool: &mut Pool) {
        if place.flow >= FLOWS {
            return;
        }
        let flow = self.flows.entry(place.flow).or_insert_with(Flow::new);
        flow.is_tcp |= inner::is_tcp(packet);
        let Some(number) = flow
            .whole(place.number)
            .filter(|&number| flow.is_new(number))
        else {
            self.stats.duplicates += 1;
            return;
        };
        flow.end = flow.end.max(number.saturating_add(1));
        if number < flow.next {
            flow.mark(number);
            self.stats.late += 1;
            self.patience(place.flow).learn(None);
            self.release(pool.copy(packet));
        } else {
            if number == flow.next && flow.waiting.is_empty() {
                flow.pass(number);
                return self.release(pool.copy(packet));
            }
            let waiting = Waiting {
                number,
                packet: pool.copy(packet),
                since: now,
            };
            self.octets += waiting.packet.len();
            self.packets += 1;
            flow.insert(waiting);
            self.stats.max_waiting = self.stats.max_waiting.max(self.packets);
            self.drain(place.flow, now, false);
        }
        while self.packets > PACKETS || self.octets > OCTETS {
            self.forget_stale();
            let Some(flow) = self.most_urgent().map(|(_, flow)| flow) else {
                break;
            };
            self.drain(flow, now, true);
        }
        self.forget_stale();
    }

    /// Delivers the packets that are in order. With `give_up`, first gives up the gap before the
    /// next packet.
    fn drain(&mut self, id: u16, now: Instant, give_up: bool) {
        let mut give_up = give_up;
        loop {
            let Some(flow) = self.flows.get_mut(&id) else {
                return;
            };
            let Some(waiting) = flow.waiting.front() else {
                flow.deadline = None;
                return;
            };
            let first = waiting.number;
            if first != flow.next {
                if !give_up {
                    let patience = if flow.is_tcp { &self.tcp } else { &self.others };
                    let deadline = flow.deadline.unwrap_or(waiting.since + patience.wait());
                    if flow.deadline.is_none() && deadline > now {
                        self.deadlines.push(Reverse((deadline, id)));
                    }
                    flow.deadline = Some(deadline);
                    if deadline > now {
                        return;
                    }
                }
                give_up = false;
                self.stats.given_up += 1;
                flow.deadline = None;
                self.patience(id).on_given_up();
            } else if flow.deadline.take().is_some() {
                let took = now.saturating_since(waiting.since);
                let filled = flow.waiting.get(1).map(|next| next.since);
                let took = filled.map_or(took, |since| now.saturating_since(since));
                self.patience(id).learn(Some(took));
                continue;
            }
            if let Some(flow) = self.flows.get_mut(&id)
                && let Some(waiting) = flow.pop()
            {
                flow.pass(first);
                self.packets -= 1;
                self.octets -= waiting.packet.len();
                self.release(waiting.packet);
            }
        }
    }

    fn release(&mut self, packet: Vec<u8>) {
        if packet.is_empty() {
            self.stats.abandoned += 1;
            return;
        }
        self.stats.delivered += 1;
        self.ready.push_back(packet);
    }

    fn patience(&mut self, flow: u16) -> &mut Patience {
        match self.flows.get(&flow) {
            Some(flow) if flow.is_tcp => &mut self.tcp,
            _ => &mut self.others,
        }
    }

    fn most_urgent(&self) -> Option<(Instant, u16)> {
        self.deadlines.peek().map(|&Reverse(first)| first)
    }

    /// Removes stale deadlines: from the front, or all of them if there are many.
    fn forget_stale(&mut self) {
        let is_current = |flows: &BTreeMap<u16, Flow>, (deadline, id): (Instant, u16)| {
            flows.get(&id).and_then(|flow| flow.deadline) == Some(deadline)
        };
        while let Some(&Reverse(first)) = self.deadlines.peek()
            && !is_current(&self.flows, first)
        {
            self.deadlines.pop();
        }
        if self.deadlines.len() > 4 * usize::from(FLOWS) {
            let flows = &self.flows;
            self.deadlines
                .retain(|&Reverse(one)| is_current(flows, one));
        }
    }

    /// The time at which a gap is given up next.
    #[must_use]
    pub fn timeout(&self) -> Option<Instant> {
        self.most_urgent().map(|(deadline, _)| deadline)
    }

    /// Handles the passage of time.
    pub fn advance(&mut self, now: Instant) {
        while let Some((deadline, flow)) = self.most_urgent() {
            if deadline > now {
                return;
            }
            self.drain(flow, now, false);
            self.forget_stale();
        }
    }

    /// The next packet to deliver.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    /// Restarts all flows, because the other end has restarted. Waiting packets are delivered in
    /// order.
    pub fn restart(&mut self) {
        for (_, flow) in std::mem::take(&mut self.flows) {
            for waiting in flow.waiting {
                self.release(waiting.packet);
            }
        }
        self.deadlines.clear();
        (self.packets, self.octets) = (0, 0);
    }
}
