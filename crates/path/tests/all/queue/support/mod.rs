//! A queue with a server of a constant rate; every call is checked against a ledger.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod scripted;

use std::collections::BTreeMap;

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Bytes, Duration, Instant, Rate, text::Limit},
};
use anabranch_path::queue::{
    Config, Discipline, Init, Item, Outcome, QueueContext, QueueDiscipline,
};

/// Flows of the run: connection numbers of a script are mapped to them.
pub const FLOWS: [&str; 4] = ["cubic/0", "cubic/1", "compound", "video"];

pub fn flow_names() -> Vec<String> {
    FLOWS.map(str::to_owned).to_vec()
}

/// One line of a script.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// A packet arrives this long after the last line.
    Arrive {
        gap: Duration,
        size: u32,
        connection: u32,
        ecn: Ecn,
    },
    /// The limit changes.
    SetLimit(Limit),
    /// The link's rate changes; the packet in transmission is not affected.
    SetRate(Option<Rate>),
}

/// A packet of `size` bytes that arrives `gap` after the last.
pub fn arrive(gap: Duration, size: u32, connection: u32) -> Op {
    Op::Arrive {
        gap,
        size,
        connection,
        ecn: Ecn::NotEct,
    }
}

/// The same packet from an ECN-capable transport.
pub fn arrive_capable(gap: Duration, size: u32, connection: u32) -> Op {
    Op::Arrive {
        gap,
        size,
        connection,
        ecn: Ecn::Ect0,
    }
}

/// Outcome of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    pub connection: u32,
    /// Its ECN field when it arrived.
    pub ecn: Ecn,
    pub arrived: Instant,
    /// Start of service; `None` if it was dropped or still waits.
    pub sent: Option<Instant>,
    pub dropped: Option<Instant>,
    pub marked: bool,
}

/// Conventions for calls of the queue.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    pub rate: Option<Rate>,
    pub seed: u64,
    /// Uses [`QueueDiscipline::pass`] on an idle link; otherwise enqueue and dequeue as its default
    /// does.
    pub passes: bool,
    /// Size of a packet held outside the discipline while the discipline is not empty.
    pub held_bytes: Option<u64>,
    /// Limit of the discipline at the start.
    pub limit: Option<Limit>,
    /// All packets leave in order of arrival, not only packets of one connection.
    pub fifo: bool,
    /// Packets of one connection with different ECN fields may overtake one another.
    pub separates_ecn: bool,
}

impl Calls {
    /// Conventions of a link with a queue of `config`.
    pub fn of(config: &Config, rate: Option<Rate>) -> Self {
        Self {
            rate,
            seed: 1,
            passes: true,
            held_bytes: None,
            limit: config.limit(),
            fifo: config.is_fifo(),
            separates_ecn: config.separates_ecn(),
        }
    }
}

/// Backlog of the queue, and packets held elsewhere.
#[derive(Debug, Clone, Copy)]
struct Weight {
    packets: u64,
    bytes: u64,
    held_packets: u64,
    held_bytes: u64,
}

/// A backlog above any other: disables the check of the limit.
const ANY: Weight = Weight {
    packets: u64::MAX,
    bytes: u64::MAX,
    held_packets: 0,
    held_bytes: 0,
};

/// A queue, its server, and the ledger.
#[derive(Debug)]
pub struct Bench {
    pub queue: Discipline,
    calls: Calls,
    now: Instant,
    rate: Option<Rate>,
    busy_until: Instant,
    /// Whether the queue has been notified since the link became idle.
    told: bool,
    limit: Option<Limit>,
    /// Waiting packets according to the ledger, by number of arrival.
    waiting: BTreeMap<u32, Item>,
    pub fates: Vec<Fate>,
    /// Last packets sent: of each connection, and of all.
    last_sent: BTreeMap<(u32, u8), u32>,
    last_of_all: Option<u32>,
}

impl Bench {
    pub fn new(queue: Discipline, calls: Calls) -> Self {
        Self {
            queue,
            now: Instant::START,
            rate: calls.rate,
            busy_until: Instant::START,
            told: true,
            limit: calls.limit,
            calls,
            waiting: BTreeMap::new(),
            fates: Vec::new(),
            last_sent: BTreeMap::new(),
            last_of_all: None,
        }
    }

    /// Creates a queue of these parameters with a server of this rate.
    pub fn of(config: &Config, rate: Option<Rate>) -> Self {
        let flows = flow_names();
        let queue = config.build(&Init {
            rate,
            flows: &flows,
            hosts: &[],
        });
        Self::new(queue, Calls::of(config, rate))
    }

    /// Runs a script and sends the remaining packets.
    ///
    /// # Errors
    /// Names the first law that the queue broke.
    pub fn run(mut self, script: &[Op]) -> Result<Vec<Fate>, String> {
        for &op in script {
            self.step(op)?;
        }
        self.serve_until(Instant::NEVER)?;
        if let Some((number, _)) = self.waiting.first_key_value() {
            return Err(format!("packet {number} never left"));
        }
        Ok(self.fates)
    }

    /// # Errors
    /// Names the first law that the queue broke.
    pub fn step(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Arrive {
                gap,
                size,
                connection,
                ecn,
            } => {
                let at = self.now + gap;
                self.serve_until(at)?;
                self.now = at;
                self.arrive(size, connection, ecn)
            }
            Op::SetLimit(limit) => {
                if self.queue.set_limit(limit) {
                    self.limit = Some(limit);
                }
                self.check_store(ANY)
            }
            Op::SetRate(rate) => {
                self.rate = rate;
                self.queue.set_rate(rate);
                self.check_store(ANY)
            }
        }
    }

    /// Number of waiting packets according to the ledger.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn arrive(&mut self, size: u32, connection: u32, ecn: Ecn) -> Result<(), String> {
        let number = u32::try_from(self.fates.len()).expect("scripts are short");
        let item = Item {
            packet: PacketId(number),
            size,
            flow: FlowId(connection % 4),
            connection: ConnectionId(connection),
            arrived: self.now,
            ecn,
            dscp: 0,
            has_data: true,
            direction: Direction::Forward,
            order: number,
        };
        self.fates.push(Fate {
            connection,
            ecn,
            arrived: self.now,
            sent: None,
            dropped: None,
            marked: false,
        });
        let idle = self.busy_until <= self.now;
        let before = self.weight();
        self.waiting.insert(number, item);
        if idle && self.queue.is_empty() && self.calls.passes {
            self.tell_ran_out();
            let mut passing = item;
            let passes = self.call(|queue, cx| queue.pass(&mut passing, cx))?;
            if passes {
                self.send(passing)?;
            }
        } else {
            if idle && self.queue.is_empty() {
                self.tell_ran_out();
            }
            self.call(|queue, cx| queue.enqueue(item, cx))?;
            if idle {
                self.send_next()?;
            }
        }
        self.check_store(before)
    }

    /// Sends all packets that can be sent before `end`.
    fn serve_until(&mut self, end: Instant) -> Result<(), String> {
        while self.busy_until < end && !self.queue.is_empty() {
            self.now = self.now.max(self.busy_until);
            let before = self.weight();
            self.send_next()?;
            self.check_store(before)?;
        }
        Ok(())
    }

    fn tell_ran_out(&mut self) {
        if !self.told {
            self.told = true;
            let present = self.now;
            self.now = self.busy_until;
            // Decisions of this call concern no packet.
            let _ = self.call(QueueDiscipline::ran_out);
            self.now = present;
        }
    }

    fn send_next(&mut self) -> Result<(), String> {
        match self.call(QueueDiscipline::dequeue)? {
            Some(item) => self.send(item),
            None if self.queue.is_empty() => Ok(()),
            None => Err("the link is free, something waits, and nothing is sent".to_owned()),
        }
    }

    /// Starts the service of a packet.
    fn send(&mut self, item: Item) -> Result<(), String> {
        let number = item.order;
        let Some(known) = self.waiting.remove(&number) else {
            return Err(format!("packet {number} was sent and did not wait"));
        };
        if known != item {
            return Err(format!(
                "packet {number} was changed: {known:?} to {item:?}"
            ));
        }
        let kind = if self.calls.separates_ecn {
            self.fates[number as usize].ecn as u8 & 1
        } else {
            0
        };
        let last = self.last_sent.insert((item.connection.0, kind), number);
        if last.is_some_and(|last| last > number) {
            return Err(format!("{number} overtook one of its connection"));
        }
        if self.calls.fifo && self.last_of_all.is_some_and(|last| last > number) {
            return Err(format!("{number} was overtaken"));
        }
        self.last_of_all = Some(number);
        self.fates[number as usize].sent = Some(self.now);
        let time = self.rate.map_or(Duration::ZERO, |rate| {
            Bytes::new(u64::from(item.size)) / rate
        });
        self.busy_until = (self.now + time).max(self.queue.held_until());
        self.told = false;
        Ok(())
    }

    fn call<T>(
        &mut self,
        f: impl FnOnce(&mut Discipline, &mut QueueContext<'_>) -> T,
    ) -> Result<T, String> {
        let mut outcomes = Vec::new();
        let held = self.held();
        let mut cx = QueueContext {
            now: self.now,
            held_packets: held.0,
            held_bytes: held.1,
            stream: Stream::new(self.calls.seed, "link.test.forward"),
            outcomes: &mut outcomes,
        };
        let answer = f(&mut self.queue, &mut cx);
        for outcome in outcomes {
            self.account(outcome)?;
        }
        Ok(answer)
    }

    fn account(&mut self, outcome: Outcome) -> Result<(), String> {
        match outcome {
            Outcome::Dropped(item) => {
                let Some(known) = self.waiting.remove(&item.order) else {
                    return Err(format!("{} was dropped and did not wait", item.order));
                };
                if known != item {
                    return Err(format!("{known:?} was dropped as {item:?}"));
                }
                self.fates[item.order as usize].dropped = Some(self.now);
            }
            Outcome::Marked(item) => {
                let Some(known) = self.waiting.get_mut(&item.order) else {
                    return Err(format!("{} was marked and did not wait", item.order));
                };
                if !known.ecn.is_capable() || item.ecn != Ecn::Ce {
                    return Err(format!("{known:?} was marked as {item:?}"));
                }
                known.ecn = Ecn::Ce;
                self.fates[item.order as usize].marked = true;
            }
            Outcome::Moved(item) => return Err(format!("{} was moved", item.order)),
            Outcome::Waited { packet, .. } => {
                return Err(format!("a queue reported the wait of {packet:?}"));
            }
        }
        Ok(())
    }

    fn held(&self) -> (u32, u64) {
        match self.calls.held_bytes {
            Some(bytes) if !self.queue.is_empty() => (1, bytes),
            _ => (0, 0),
        }
    }

    fn waiting_bytes(&self) -> u64 {
        self.waiting.values().map(|item| u64::from(item.size)).sum()
    }

    fn weight(&self) -> Weight {
        let held = self.held();
        Weight {
            packets: self.waiting.len() as u64,
            bytes: self.waiting_bytes(),
            held_packets: u64::from(held.0),
            held_bytes: held.1,
        }
    }

    /// Checks that discipline and ledger agree and that the limit holds, unless the backlog was as
    /// large `before`.
    fn check_store(&self, before: Weight) -> Result<(), String> {
        let Weight { packets, bytes, .. } = self.weight();
        let said = self.queue.len();
        if said as u64 != packets || self.queue.is_empty() != (packets == 0) {
            return Err(format!("{packets} packets wait, and the queue says {said}"));
        }
        if self.queue.bytes() != bytes {
            let said = self.queue.bytes();
            return Err(format!("{bytes} bytes wait, and the queue says {said}"));
        }
        let (grown, over) = match self.limit {
            Some(Limit::Packets(limit)) => (
                packets > before.packets,
                packets + before.held_packets > limit,
            ),
            Some(Limit::Bytes(limit)) => (
                bytes > before.bytes,
                bytes + before.held_bytes > limit.get(),
            ),
            _ => (false, false),
        };
        if grown && over {
            return Err(format!(
                "{packets} packets, {bytes} bytes wait: more than the limit"
            ));
        }
        Ok(())
    }
}
