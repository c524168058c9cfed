//! Custom middleboxes.

use super::*;

/// Sends packets through its ports in turn.
#[derive(Debug, Default)]
struct Alternate(u16);

impl<B: Body> Middlebox<B> for Alternate {
    fn on_packet(&mut self, _now: Instant, packet: Held<B>, out: &mut Output<B>) {
        out.emit(self.0, packet);
        self.0 = 1 - self.0;
    }
}

/// Restores the order of one flow; gives up on a missing packet after a timeout.
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

pub fn split_and_restored<B: TestBody>(limit: u64) -> (Vec<B>, Vec<Instant>) {
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

pub fn two_routes_and_back_in_order<B: TestBody>() {
    let (bodies, _) = split_and_restored::<B>(1_000);
    assert_eq!(bodies, (0..40).map(B::numbered).collect::<Vec<_>>());
    // At most three of the slow route's packets are in transmission or queued; packets that it
    // drops are given up.
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
    // The slow route takes 71 ms at most, and no packet waits longer than the timeout for each
    // missing packet.
    let missing = 40 - bodies.len() as u64;
    assert!(
        times.last().expect("arrivals") <= &ms(71 + 40 * missing),
        "the timer released what waited"
    );
}

/// Appends a packet that is the sum of every four packets.
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

pub fn a_lost_packet_is_rebuilt<B: TestBody>() {
    use anabranch_path::{
        impair,
        impair::{Impairment, Verdict, View},
    };
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
    // Five packets per group on the wire: the first group loses one, the second none, the third
    // two.
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

/// Forwards all packets except every tenth.
#[derive(Debug, Default)]
struct Sieve {
    count: u64,
    discarded: u64,
    /// Whether it reports the packets that it discards.
    tells: bool,
}

impl<B: Body> Middlebox<B> for Sieve {
    fn on_packet(&mut self, _now: Instant, packet: Held<B>, out: &mut Output<B>) {
        self.count += 1;
        if self.count.is_multiple_of(10) {
            self.discarded += u64::from(self.tells);
        } else {
            out.forward(packet);
        }
    }
    fn kept(&self) -> Kept {
        Kept {
            held: 0,
            discarded: self.discarded,
        }
    }
}

/// A census misses exactly the packets that a middlebox discards without reporting.
pub fn a_middlebox_that_loses_packets_is_found_out<B: TestBody>() {
    for (tells, missing) in [(true, 0), (false, 4)] {
        let mut builder = builder::<B>();
        builder.tally(true);
        let link = builder.link(LinkSpec::new("link.a.forward", TEN_MBIT, MS));
        let sieve = Sieve {
            tells,
            ..Sieve::default()
        };
        let sieve = builder.middlebox(Box::new(sieve), Vec::new());
        let (traffic, _) = hosts::<B>(40, Duration::ZERO, Ecn::NotEct);
        builder.flow(flow(
            "f",
            vec![Stop::Link(link), Stop::Middlebox(sieve)],
            traffic,
        ));
        let census = finish(builder).census().expect("fates are counted");
        assert_eq!(census.missing(), missing, "{census:?}");
        assert_eq!(census.received_packets, 36);
    }
}
