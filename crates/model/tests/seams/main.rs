//! The seams that later parts stand on, each on lengths and on bytes.
//!
//! Every element here is a user's: boxed, outside the workspace's own enums.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use anabranch_core::{
    packet::{Ecn, FlowId},
    rng::Draw,
    trace::Fate,
    units::{Duration, Instant, Rate},
};
use anabranch_elements::{
    body::{Body, Length, Octets},
    host::{Arrived, Departing, Host},
    link::service::{Fixed, Service},
    middlebox::{Held, Middlebox, Output},
    queue::{Config, Custom, Item, QueueContext, QueueDiscipline},
    transport::Transport,
};
use anabranch_model::network::{Builder, Change, FlowSpec, LinkSpec, Network, Stop, Traffic};

/// What the tests need of a body besides what the engine needs.
trait TestBody: Body {
    fn numbered(number: u32) -> Self;
    fn combine(&mut self, other: &Self);
}

impl TestBody for Length {
    fn numbered(number: u32) -> Self {
        Self(100 + number % 50)
    }
    /// The length of a sum is not the sum of lengths: for lengths, parity adds and subtracts them.
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
        route,
        return_route: Vec::new(),
        start: Instant::START,
        stop: None,
        traffic,
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

// --- A queue that drops by flow and marks ECN -----------------------------------------------

/// Lets every second packet of one flow go, and marks every packet of the others.
#[derive(Debug, Default)]
struct Picky {
    items: VecDeque<Item>,
    seen: u32,
}

impl QueueDiscipline for Picky {
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        if item.flow == FlowId(0) {
            self.seen += 1;
            if self.seen.is_multiple_of(2) {
                return cx.drop(item);
            }
        } else {
            cx.mark(&mut item);
        }
        self.items.push_back(item);
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.items.pop_front()
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        self.items.iter().map(|item| u64::from(item.size)).sum()
    }
}

fn a_queue_drops_by_flow_and_marks<B: TestBody>() {
    let mut builder = builder::<B>();
    let queue = Config::Custom(Custom {
        name: "picky".into(),
        params: serde_json::Value::Null,
        build: Arc::new(|| Box::new(Picky::default())),
    });
    let link = builder.link(LinkSpec::new("link.a.forward", TEN_MBIT, MS).queue(queue));
    let (first, unlucky) = hosts::<B>(10, MS * 3, Ecn::Ect0);
    let (second, marked) = hosts::<B>(10, MS * 3, Ecn::Ect0);
    let (third, unmarkable) = hosts::<B>(10, MS * 3, Ecn::NotEct);
    for (name, traffic) in [
        ("unlucky", first),
        ("marked", second),
        ("unmarkable", third),
    ] {
        builder.flow(flow(name, vec![Stop::Link(link)], traffic));
    }
    let mut network = finish(builder);
    let of = |arrivals: &Arrivals<B>| arrivals.lock().expect("one thread").clone();
    assert_eq!(of(&unlucky).len(), 5);
    assert!(of(&unlucky).iter().all(|(_, _, ecn)| *ecn == Ecn::Ect0));
    assert_eq!(of(&marked).len(), 10);
    assert!(of(&marked).iter().all(|(_, _, ecn)| *ecn == Ecn::Ce));
    assert!(
        of(&unmarkable)
            .iter()
            .all(|(_, _, ecn)| *ecn == Ecn::NotEct)
    );
    let report = network.link_statistics(link);
    assert_eq!(
        (
            report.statistics.dropped_packets,
            report.statistics.marked_packets
        ),
        (5, 10)
    );
    assert_eq!(network.packets_in_flight(), 0);
}

// --- A link whose capacity changes under packets in flight -----------------------------------

fn capacity_changes_under_a_packet<B: TestBody>() {
    let mut builder = builder::<B>();
    let link = builder.link(LinkSpec::new("link.a.forward", TEN_MBIT, MS * 5));
    let (traffic, arrivals) = hosts::<B>(3, MS * 20, Ecn::NotEct);
    builder.flow(flow("f", vec![Stop::Link(link)], traffic));
    // The second packet starts at 20 ms. Half of it is sent when the rate falls to a tenth: the
    // other half takes 5 ms instead of 0.5. In the middle of those the link is off for 100 ms.
    builder.change(
        Instant::from_nanos(20_500_000),
        Change::Rate(link, Some(Rate::from_mbit_per_s(1))),
    );
    builder.change(ms(23), Change::Up(link, false));
    builder.change(ms(123), Change::Up(link, true));
    let mut network = finish(builder);
    let times: Vec<_> = arrivals
        .lock()
        .expect("one thread")
        .iter()
        .map(|(at, ..)| *at)
        .collect();
    // The third, sent at 40 ms, found the link off.
    assert_eq!(times, [ms(6), Instant::from_nanos(130_500_000)]);
    assert_eq!(network.link_statistics(link).statistics.dropped_packets, 1);
    let capacity = network
        .link_statistics(link)
        .capacity_bits
        .expect("it has a rate");
    let expected = 20.5e-3 * 10e6 + (10.0 - 20.5e-3 - 0.1) * 1e6;
    assert!((capacity - expected).abs() < 1.0, "{capacity} {expected}");
}

// --- A link that retransmits at its own layer -------------------------------------------------

/// Every transmission whose draw is below a half fails and is repeated after 2 ms.
#[derive(Debug)]
struct Stubborn(Fixed, Arc<Mutex<u64>>);

impl Service for Stubborn {
    fn finish(&self, now: Instant, bits: u64) -> Instant {
        self.0.finish(now, bits)
    }
    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        self.0.capacity(from, to)
    }
    fn retransmit(&mut self, _now: Instant, draw: &mut Draw) -> Option<Duration> {
        draw.chance(0.5).then(|| {
            *self.1.lock().expect("one thread") += 1;
            MS * 2
        })
    }
}

fn a_link_retransmits<B: TestBody>() {
    let mut builder = builder::<B>();
    let failures = Arc::new(Mutex::new(0));
    let service = Stubborn(Fixed::new(TEN_MBIT), Arc::clone(&failures));
    let link =
        builder.link(LinkSpec::new("link.wifi.forward", TEN_MBIT, MS).service(Box::new(service)));
    let (traffic, arrivals) = hosts::<B>(50, Duration::ZERO, Ecn::NotEct);
    builder.flow(flow("f", vec![Stop::Link(link)], traffic));
    let mut network = finish(builder);
    let arrivals = arrivals.lock().expect("one thread");
    let failures = *failures.lock().expect("one thread");
    assert!(failures > 10, "{failures}");
    let bodies: Vec<_> = arrivals.iter().map(|(_, body, _)| body.clone()).collect();
    assert_eq!(
        bodies,
        (0..50).map(B::numbered).collect::<Vec<_>>(),
        "nothing lost, nothing out of order"
    );
    // 50 transmissions and `failures` more of 1 ms each, `failures` pauses of 2 ms, 1 ms of delay.
    assert_eq!(
        arrivals.last().map(|(at, ..)| *at),
        Some(ms(50 + 3 * failures + 1))
    );
    assert_eq!(
        network.link_statistics(link).statistics.sent_packets,
        50 + failures
    );
}

// --- A splitter with two outputs and a resequencer with a timer ------------------------------

/// Puts packets into its ports in turn.
#[derive(Debug, Default)]
struct Alternate(u16);

impl<B: Body> Middlebox<B> for Alternate {
    fn on_packet(&mut self, _now: Instant, packet: Held<B>, out: &mut Output<B>) {
        out.emit(self.0, packet);
        self.0 = 1 - self.0;
    }
}

/// Restores the order of one flow; gives up on a missing packet after a while.
#[derive(Debug)]
struct Resequencer<B: Body> {
    next: u32,
    waiting: BTreeMap<u32, Held<B>>,
    patience: Duration,
    due: Option<Instant>,
}

impl<B: Body> Resequencer<B> {
    fn release(&mut self, now: Instant, out: &mut Output<B>) {
        while let Some(packet) = self.waiting.remove(&self.next) {
            out.forward(packet);
            self.next += 1;
        }
        self.due = if self.waiting.is_empty() {
            None
        } else {
            self.due.or(Some(now + self.patience))
        };
    }
}

impl<B: Body> Middlebox<B> for Resequencer<B> {
    fn on_packet(&mut self, now: Instant, packet: Held<B>, out: &mut Output<B>) {
        let before = self.next;
        self.waiting.insert(packet.index, packet);
        self.release(now, out);
        if self.next != before && !self.waiting.is_empty() {
            self.due = Some(now + self.patience);
        }
    }
    fn on_timer(&mut self, now: Instant, out: &mut Output<B>) {
        self.due = None;
        if let Some((&first, _)) = self.waiting.first_key_value() {
            self.next = first;
        }
        self.release(now, out);
    }
    fn timer(&self) -> Option<Instant> {
        self.due
    }
}

fn split_and_restored<B: TestBody>(limit: u64) -> (Vec<B>, Vec<Instant>) {
    let mut builder = builder::<B>();
    let before = builder.link(LinkSpec::new(
        "link.lan1.forward",
        Some(Rate::from_mbit_per_s(100)),
        Duration::ZERO,
    ));
    let fast = builder.link(LinkSpec::new("link.isp1.forward", TEN_MBIT, MS * 5));
    let slow = builder.link(LinkSpec::new("link.isp2.forward", TEN_MBIT, MS * 30).limit(limit));
    let after = builder.link(LinkSpec::new("link.lan2.forward", None, Duration::ZERO));
    let splitter = builder.middlebox(Box::new(Alternate::default()), vec![fast, slow]);
    let resequencer = builder.middlebox(
        Box::new(Resequencer::<B> {
            next: 0,
            waiting: BTreeMap::new(),
            patience: MS * 40,
            due: None,
        }),
        Vec::new(),
    );
    let (traffic, arrivals) = hosts::<B>(40, Duration::ZERO, Ecn::NotEct);
    let route = vec![
        Stop::Link(before),
        Stop::Middlebox(splitter),
        Stop::Middlebox(resequencer),
        Stop::Link(after),
    ];
    builder.flow(flow("f", route, traffic));
    let network = finish(builder);
    assert_eq!(network.packets_in_flight(), 0);
    let arrivals = arrivals.lock().expect("one thread");
    (
        arrivals.iter().map(|(_, body, _)| body.clone()).collect(),
        arrivals.iter().map(|(at, ..)| *at).collect(),
    )
}

fn two_routes_and_back_in_order<B: TestBody>() {
    let (bodies, _) = split_and_restored::<B>(1_000);
    assert_eq!(bodies, (0..40).map(B::numbered).collect::<Vec<_>>());
    // Three of the slow route's packets are sent or waiting at a time; what it drops is given up.
    let (bodies, times) = split_and_restored::<B>(2);
    assert!(bodies.len() < 40);
    assert!(times.is_sorted());
    let order: Vec<usize> = bodies
        .iter()
        .map(|body| {
            (0..40)
                .position(|n| B::numbered(n) == *body)
                .expect("a body that was sent")
        })
        .collect();
    assert!(order.is_sorted(), "{order:?}");
    // The slow route takes 71 ms at most, and nobody waits longer than the patience for each missing packet.
    let missing = 40 - bodies.len() as u64;
    assert!(
        times.last().expect("arrivals") <= &ms(71 + 40 * missing),
        "the timer released what waited"
    );
}

// --- An element that injects packets, and one that rebuilds a lost one ------------------------

/// After every fourth packet, one that is their sum.
#[derive(Debug)]
struct Encoder<B> {
    sum: B,
    count: u32,
}

impl<B: TestBody> Middlebox<B> for Encoder<B> {
    fn on_packet(&mut self, _now: Instant, packet: Held<B>, out: &mut Output<B>) {
        let Transport::Datagram(body) = &packet.payload else {
            return;
        };
        self.sum.combine(body);
        self.count += 1;
        out.forward(packet.clone());
        if self.count.is_multiple_of(4) {
            let mut parity = packet;
            parity.index = u32::MAX - self.count / 4;
            parity.payload = Transport::Datagram(std::mem::take(&mut self.sum));
            out.create(None, parity, Fate::Injected);
        }
    }
}

/// Rebuilds one lost packet of four.
#[derive(Debug, Default)]
struct Decoder<B> {
    group: BTreeMap<u32, B>,
}

impl<B: TestBody> Middlebox<B> for Decoder<B> {
    fn on_packet(&mut self, _now: Instant, packet: Held<B>, out: &mut Output<B>) {
        let Transport::Datagram(body) = packet.payload.clone() else {
            return;
        };
        if packet.index < u32::MAX / 2 {
            self.group.insert(packet.index, body);
            return out.forward(packet);
        }
        let last = (u32::MAX - packet.index) * 4;
        let missing: Vec<u32> = (last - 4..last)
            .filter(|index| !self.group.contains_key(index))
            .collect();
        if let [index] = missing[..] {
            let mut rebuilt = body;
            self.group.values().for_each(|other| rebuilt.combine(other));
            let packet = Held {
                index,
                payload: Transport::Datagram(rebuilt),
                ..packet
            };
            out.create(None, packet, Fate::Rebuilt);
        }
        self.group.clear();
    }
}

fn a_lost_packet_is_rebuilt<B: TestBody>() {
    use anabranch_elements::impair::{self, Impairment, Verdict, View};
    /// Loses the packets with these numbers.
    #[derive(Debug)]
    struct List(Vec<u64>);
    impl Impairment for List {
        fn judge(&mut self, _now: Instant, packet: View, _draw: &mut Draw) -> Verdict {
            if self.0.contains(&packet.index) {
                Verdict::Lose
            } else {
                Verdict::Pass
            }
        }
    }
    let mut builder = builder::<B>();
    // Five packets a group on the wire: the first group loses one, the second none, the third two.
    let list = impair::Config::Custom(impair::Custom {
        name: "list".into(),
        params: serde_json::Value::Null,
        build: Arc::new(|| Box::new(List(vec![1, 10, 12]))),
    });
    let link = builder.link(LinkSpec::new("link.a.forward", TEN_MBIT, MS).impair(list));
    let encoder = builder.middlebox(
        Box::new(Encoder {
            sum: B::default(),
            count: 0,
        }),
        Vec::new(),
    );
    let decoder = builder.middlebox(Box::new(Decoder::default()), Vec::new());
    let (traffic, arrivals) = hosts::<B>(12, MS * 3, Ecn::NotEct);
    let route = vec![
        Stop::Middlebox(encoder),
        Stop::Link(link),
        Stop::Middlebox(decoder),
    ];
    builder.flow(flow("f", route, traffic));
    let mut network = finish(builder);
    let mut got: Vec<_> = arrivals
        .lock()
        .expect("one thread")
        .iter()
        .map(|(_, body, _)| body.clone())
        .collect();
    let mut expected: Vec<_> = (0..12)
        .filter(|n| ![8, 10].contains(n))
        .map(B::numbered)
        .collect();
    assert_eq!(
        got.remove(3),
        B::numbered(1),
        "rebuilt when the parity arrived"
    );
    expected.remove(1);
    assert_eq!(got, expected);
    assert_eq!(network.link_statistics(link).statistics.lost_packets, 3);
    assert_eq!(network.packets_in_flight(), 0);
}

/// RFC 4737: of a packet that arrives twice only the first copy is looked at.
fn a_late_packet_that_is_doubled_is_reordered_once<B: TestBody>() {
    use anabranch_elements::impair::{self, Impairment, Verdict, View};
    /// One verdict for the packets with these numbers.
    #[derive(Debug)]
    struct Only(Vec<u64>, Verdict);
    impl Impairment for Only {
        fn judge(&mut self, _now: Instant, packet: View, _draw: &mut Draw) -> Verdict {
            if self.0.contains(&packet.index) {
                self.1
            } else {
                Verdict::Pass
            }
        }
        fn reorders(&self) -> bool {
            true
        }
    }
    let only = |packets: Vec<u64>, verdict| {
        impair::Config::Custom(impair::Custom {
            name: "only".into(),
            params: serde_json::Value::Null,
            build: Arc::new(move || Box::new(Only(packets.clone(), verdict))),
        })
    };
    let late = Verdict::Delay {
        by: MS * 20,
        may_overtake: true,
    };
    let mut builder = builder::<B>();
    // Number 2 is late and doubled, 4 is late, 9 is doubled and on time.
    let link = builder.link(
        LinkSpec::new("link.a.forward", TEN_MBIT, MS)
            .impair(only(vec![2, 4], late))
            .impair(only(vec![2, 9], Verdict::Duplicate)),
    );
    let (traffic, arrivals) = hosts::<B>(20, MS * 3, Ecn::NotEct);
    builder.flow(flow("f", vec![Stop::Link(link)], traffic));
    let mut network = finish(builder);
    assert_eq!(arrivals.lock().expect("one thread").len(), 22);
    let counted = network.link_statistics(link).statistics.reordered_packets;
    assert_eq!(counted, 2);
}

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
    a_late_packet_that_is_doubled_is_reordered_once,
}
