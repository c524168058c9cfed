//! Custom queues, services and impairments.

use super::*;

/// Passes every second packet of one flow, and marks every packet of the others.
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

pub fn a_queue_drops_by_flow_and_marks<B: TestBody>() {
    let mut builder = builder::<B>();
    let queue = Config::Custom(Custom {
        name: "picky".into(),
        params: serde_json::Value::Null,
        build: Arc::new(|_| Box::new(Picky::default())),
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

pub fn capacity_changes_under_a_packet<B: TestBody>() {
    let mut builder = builder::<B>();
    let link = builder.link(LinkSpec::new("link.a.forward", TEN_MBIT, MS * 5));
    let (traffic, arrivals) = hosts::<B>(3, MS * 20, Ecn::NotEct);
    builder.flow(flow("f", vec![Stop::Link(link)], traffic));
    // The second packet starts at 20 ms. Half of it is sent when the rate falls to a tenth: the
    // other half takes 5 ms instead of 0.5. In the middle of these the link is down for 100 ms.
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
    // The third, sent at 40 ms, arrived while the link was down.
    assert_eq!(times, [ms(6), Instant::from_nanos(130_500_000)]);
    assert_eq!(network.link_statistics(link).statistics.dropped_packets, 1);
    let capacity = network
        .link_statistics(link)
        .capacity_bits
        .expect("it has a rate");
    let expected = 20.5e-3 * 10e6 + (10.0 - 20.5e-3 - 0.1) * 1e6;
    assert!((capacity - expected).abs() < 1.0, "{capacity} {expected}");
}

/// Every transmission with a draw below a half fails and is repeated after 2 ms.
#[derive(Debug)]
struct Stubborn(Fixed, Arc<Mutex<u64>>);

impl Service for Stubborn {
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
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

pub fn a_link_retransmits<B: TestBody>() {
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

/// RFC 4737: of a packet that arrives twice, only the first copy counts.
pub fn a_late_packet_that_is_doubled_is_reordered_once<B: TestBody>() {
    use anabranch_path::{
        impair,
        impair::{Impairment, Verdict, View},
    };
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
    // Number 2 is late and duplicated, 4 is late, 9 is duplicated and on time.
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
