//! The extension points, each with lengths and with bytes.
//!
//! Every element here is custom: boxed, and outside the workspace's enums.

mod link;
mod middlebox;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use anabranch_core::{
    body::{Body, Length, Octets},
    packet::{Ecn, FlowId},
    rng::Draw,
    trace::Fate,
    units::{Duration, Instant, Rate},
};
use anabranch_engine::network::{Builder, Change, FlowSpec, LinkSpec, Network, Stop, Traffic};
use anabranch_fec::{self as fec};
use anabranch_path::{
    host::{Arrived, Departing, Host},
    link::service::{Fixed, Service},
    middlebox::{Held, Kept, Middlebox, Output},
    queue::{Config, Custom, Item, QueueContext, QueueDiscipline},
};
use anabranch_wire::Transport;

use self::link::{
    a_late_packet_that_is_doubled_is_reordered_once, a_link_retransmits,
    a_queue_drops_by_flow_and_marks, capacity_changes_under_a_packet,
};
use self::middlebox::{
    a_lost_packet_is_rebuilt, a_middlebox_that_loses_packets_is_found_out,
    two_routes_and_back_in_order,
};

/// Operations on bodies that only the tests need.
trait TestBody: Body {
    fn numbered(number: u32) -> Self;
    fn combine(&mut self, other: &Self);
}

impl TestBody for Length {
    fn numbered(number: u32) -> Self {
        Self(100 + number % 50)
    }
    /// The length of a sum is not the sum of lengths: for lengths, parity combines them by XOR.
    fn combine(&mut self, other: &Self) {
        self.0 ^= other.0;
    }
}

impl TestBody for Octets {
    fn numbered(number: u32) -> Self {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.extend((0..96).map(|i| (number.wrapping_mul(31).wrapping_add(i) % 251) as u8));
        Self(bytes)
    }
    fn combine(&mut self, other: &Self) {
        let length = self.0.len().max(other.0.len());
        self.0.resize(length, 0);
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a ^= b);
    }
}

/// Sends numbered datagrams at a fixed interval.
#[derive(Debug)]
struct Blaster<B> {
    next: u32,
    count: u32,
    every: Duration,
    due: Option<Instant>,
    ready: VecDeque<B>,
    size: u32,
    ecn: Ecn,
}

impl<B: TestBody> Host<B> for Blaster<B> {
    fn start(&mut self, now: Instant) {
        self.due = Some(now);
        self.on_timer(now);
    }
    fn on_packet(&mut self, _now: Instant, _packet: Arrived<'_, B>) {}
    fn on_timer(&mut self, now: Instant) {
        while self.next < self.count && self.due.is_some_and(|due| due <= now) {
            self.ready.push_back(B::numbered(self.next));
            self.next += 1;
            self.due = self.due.map(|due| due + self.every);
        }
    }
    fn timer(&self) -> Option<Instant> {
        self.due.filter(|_| self.next < self.count)
    }
    fn poll_transmit(&mut self, _now: Instant) -> Option<Departing<B>> {
        let body = self.ready.pop_front()?;
        Some(Departing {
            transport: Transport::Datagram(body),
            size: self.size,
            ecn: self.ecn,
            dscp: 0,
        })
    }
}

type Arrivals<B> = Arc<Mutex<Vec<(Instant, B, Ecn)>>>;

#[derive(Debug)]
struct Recorder<B>(Arrivals<B>);

impl<B: Body> Host<B> for Recorder<B> {
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, B>) {
        if let Transport::Datagram(body) = packet.transport {
            self.0
                .lock()
                .expect("one thread")
                .push((now, body.clone(), packet.ecn));
        }
    }
    fn poll_transmit(&mut self, _now: Instant) -> Option<Departing<B>> {
        None
    }
}

fn blaster<B: TestBody>(count: u32, every: Duration, ecn: Ecn) -> Box<dyn Host<B>> {
    Box::new(Blaster {
        next: 0,
        count,
        every,
        due: None,
        ready: VecDeque::new(),
        size: 1250,
        ecn,
    })
}

fn hosts<B: TestBody>(count: u32, every: Duration, ecn: Ecn) -> (Traffic<B>, Arrivals<B>) {
    let arrivals = Arrivals::default();
    let traffic = Traffic::Hosts([
        blaster(count, every, ecn),
        Box::new(Recorder(Arc::clone(&arrivals))),
    ]);
    (traffic, arrivals)
}

fn flow<B: Body>(name: &str, route: Vec<Stop>, traffic: Traffic<B>) -> FlowSpec<B> {
    FlowSpec {
        name: name.into(),
        ends: [0, 1],
        route,
        return_route: Vec::new(),
        start: Instant::START,
        stop: None,
        dscp: 0,
        traffic,
        fec: fec::Config::Off,
        read_delays: Arc::default(),
        idle_read_delays: Arc::default(),
        first_write_delays: Arc::default(),
    }
}

fn finish<B: Body>(builder: Builder<B>) -> Network<B> {
    let mut network = builder.build();
    network.run_through(network.end());
    network
}

const MS: Duration = Duration::from_millis(1);

fn builder<B: Body>() -> Builder<B> {
    Builder::new(1, Instant::START, Instant::from_millis(10_000))
}

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// 1,250 bytes take 1 ms.
const TEN_MBIT: Option<Rate> = Some(Rate::from_mbit_per_s(10));

macro_rules! on_both {
    ($($name:ident,)*) => {
        mod on_lengths {
            use super::*;
            $(#[test] fn $name() { super::$name::<Length>(); })*
        }
        mod on_bytes {
            use super::*;
            $(#[test] fn $name() { super::$name::<Octets>(); })*
        }
    };
}

on_both! {
    a_queue_drops_by_flow_and_marks,
    capacity_changes_under_a_packet,
    a_link_retransmits,
    two_routes_and_back_in_order,
    a_lost_packet_is_rebuilt,
    a_middlebox_that_loses_packets_is_found_out,
    a_late_packet_that_is_doubled_is_reordered_once,
}
