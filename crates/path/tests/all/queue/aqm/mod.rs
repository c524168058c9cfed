//! A queue in front of a link of constant rate, fed with arrivals from a script.
#![allow(dead_code, reason = "each test file uses its own part")]

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Duration, Instant, Rate},
};
use anabranch_path::queue::{Config, Init, Item, Outcome, QueueContext, QueueDiscipline};

/// An arrival of the script.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at: Instant,
    pub size: u32,
    pub connection: u32,
    pub ecn: Ecn,
}

/// Outcome of a packet, by its number among the arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Sent,
    Dropped,
    Marked,
}

#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub at: Instant,
    pub packet: u32,
    pub connection: u32,
    pub size: u32,
    pub fate: Fate,
    /// Time since its arrival.
    pub sojourn: Duration,
    pub ecn: Ecn,
}

pub fn ms(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

pub fn us(us: u64) -> Instant {
    Instant::START + Duration::from_micros(us)
}

/// A packet of 1,500 bytes of connection 0, not ECN-capable.
pub fn packet(at: Instant) -> Arrival {
    Arrival {
        at,
        size: 1_500,
        connection: 0,
        ecn: Ecn::NotEct,
    }
}

/// A rate at which 1,500 bytes take a millisecond.
pub fn a_packet_per_ms() -> Rate {
    Rate::from_mbit_per_s(12)
}

pub fn build(config: &Config) -> anabranch_path::queue::Discipline {
    config.build(&Init {
        rate: Some(a_packet_per_ms()),
        flows: &[],
        hosts: &[],
    })
}

/// A queue and its link.
pub struct Link<Q> {
    pub queue: Q,
    rate: Rate,
    stream: Stream,
    outcomes: Vec<Outcome>,
    busy_until: Option<Instant>,
    arrivals: u32,
    pub events: Vec<Event>,
}

impl<Q: QueueDiscipline> Link<Q> {
    pub fn new(queue: Q, rate: Rate, seed: u64) -> Self {
        Self {
            queue,
            rate,
            stream: Stream::new(seed, "link.test.forward"),
            outcomes: Vec::new(),
            busy_until: None,
            arrivals: 0,
            events: Vec::new(),
        }
    }

    fn call<T>(&mut self, now: Instant, f: impl FnOnce(&mut Q, &mut QueueContext<'_>) -> T) -> T {
        let mut cx = QueueContext {
            now,
            held_packets: 0,
            held_bytes: 0,
            stream: self.stream,
            outcomes: &mut self.outcomes,
        };
        let result = f(&mut self.queue, &mut cx);
        for outcome in std::mem::take(&mut self.outcomes) {
            match outcome {
                Outcome::Dropped(item) => self.log(now, &item, Fate::Dropped),
                Outcome::Marked(item) => self.log(now, &item, Fate::Marked),
                Outcome::Moved(_) | Outcome::Waited { .. } => panic!("neither happens here"),
            }
        }
        result
    }

    fn log(&mut self, at: Instant, item: &Item, fate: Fate) {
        self.events.push(Event {
            at,
            packet: item.packet.0,
            connection: item.connection.0,
            size: item.size,
            fate,
            sojourn: at.saturating_since(item.arrived),
            ecn: item.ecn,
        });
    }

    /// Starts the transmission of a packet.
    fn send(&mut self, at: Instant, item: &Item) {
        self.log(at, item, Fate::Sent);
        let bytes = anabranch_core::units::Bytes::new(u64::from(item.size));
        self.busy_until = Some(at + bytes / self.rate);
    }

    /// Sends waiting packets until `end`; transmissions that end exactly then are complete.
    pub fn run_until(&mut self, end: Instant, seen: &mut impl FnMut(Instant, &Q)) {
        while let Some(free) = self.busy_until
            && free <= end
        {
            self.busy_until = None;
            if self.queue.is_empty() {
                self.call(free, Q::ran_out);
            } else if let Some(item) = self.call(free, Q::dequeue) {
                self.send(free, &item);
                seen(free, &self.queue);
            }
        }
    }

    /// Runs the script; `seen` is called after each arrival and each departure.
    pub fn run_watched(
        &mut self,
        script: impl IntoIterator<Item = Arrival>,
        end: Instant,
        mut seen: impl FnMut(Instant, &Q),
    ) {
        for arrival in script {
            self.run_until(arrival.at, &mut seen);
            let mut item = Item {
                packet: PacketId(self.arrivals),
                size: arrival.size,
                flow: FlowId(arrival.connection),
                connection: ConnectionId(arrival.connection),
                arrived: arrival.at,
                ecn: arrival.ecn,
                dscp: 0,
                has_data: true,
                direction: Direction::Forward,
                order: self.arrivals,
            };
            self.arrivals += 1;
            if self.busy_until.is_none() && self.queue.is_empty() {
                if self.call(arrival.at, |queue, cx| queue.pass(&mut item, cx)) {
                    self.send(arrival.at, &item);
                }
            } else {
                self.call(arrival.at, |queue, cx| queue.enqueue(item, cx));
            }
            seen(arrival.at, &self.queue);
        }
        self.run_until(end, &mut seen);
    }

    pub fn run(&mut self, script: impl IntoIterator<Item = Arrival>, end: Instant) {
        self.run_watched(script, end, |_, _| {});
    }

    pub fn with(&self, fate: Fate) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.fate == fate)
    }

    pub fn times(&self, fate: Fate) -> Vec<Instant> {
        self.with(fate).map(|event| event.at).collect()
    }

    pub fn bytes_sent(&self, connection: u32, from: Instant, to: Instant) -> u64 {
        self.with(Fate::Sent)
            .filter(|event| event.connection == connection && event.at >= from && event.at < to)
            .map(|event| u64::from(event.size))
            .sum()
    }
}
