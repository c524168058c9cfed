//! The reordering study's pattern: the head of the bottleneck's queue repeatedly moves back by a
//! fixed number of positions, and nothing is lost.

use crate::support;

use std::collections::{BTreeMap, VecDeque};

use anabranch_congestion::TimerRule;
use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Duration, Instant, text::Limit},
};
use anabranch_tcp::{DelayedAck, Endpoint, Profile, Role, Settings, Stats};
use anabranch_wire::Segment;
use support::endpoint;

const SERVICE: Duration = Duration::from_micros(1200);

#[derive(Debug)]
enum Event {
    /// A segment arrives at the bottleneck's queue.
    Queue(Segment<Length>),
    /// The bottleneck is free.
    Free,
    Data(Segment<Length>),
    Ack(Segment<Length>),
}

/// The queue of the study with reorder interval `ri`.
struct Bottleneck {
    ri: usize,
    /// The queued segments; `true` for one that has been moved.
    waiting: VecDeque<(Segment<Length>, bool)>,
    busy: bool,
    moved: u32,
    peak: usize,
}

impl Bottleneck {
    fn next(&mut self) -> Option<Segment<Length>> {
        if self.waiting.len() > self.ri && !self.waiting.iter().any(|w| w.1) {
            let (head, _) = self.waiting.pop_front()?;
            self.waiting.insert(self.ri, (head, true));
            self.moved += 1;
        }
        Some(self.waiting.pop_front()?.0)
    }
}

/// Ten seconds of bulk transfer over the study's path.
fn run(settings: &Settings, ri: usize, rule: Option<TimerRule>) -> (Stats, Stats, Bottleneck) {
    let mut sender: Endpoint<Length> = endpoint(settings, Role::Active, 1).with_timer_rule(rule);
    let mut receiver: Endpoint<Length> = endpoint(settings, Role::Passive, 2);
    let mut queue = Bottleneck {
        ri,
        waiting: VecDeque::new(),
        busy: false,
        moved: 0,
        peak: 0,
    };
    let mut events = BTreeMap::new();
    let mut count = 0_u64;
    let mut now = Instant::START;
    let after =
        |events: &mut BTreeMap<(Instant, u64), Event>, count: &mut u64, at: Instant, event| {
            *count += 1;
            events.insert((at, *count), event);
        };
    sender.write_endless();
    sender.open(now);
    loop {
        while let Some(out) = sender.poll_transmit(now) {
            after(
                &mut events,
                &mut count,
                now + Duration::from_millis(15),
                Event::Queue(out.segment),
            );
        }
        while let Some(out) = receiver.poll_transmit(now) {
            after(
                &mut events,
                &mut count,
                now + Duration::from_millis(35),
                Event::Ack(out.segment),
            );
        }
        let deadline = sender.deadline().min(receiver.deadline());
        let next = events.keys().next().map_or(Instant::NEVER, |key| key.0);
        now = next.min(deadline).max(now);
        if now > Instant::from_millis(10_000) {
            return (sender.stats(), receiver.stats(), queue);
        }
        if next > deadline {
            sender.on_deadline(now);
            receiver.on_deadline(now);
            continue;
        }
        match events.pop_first().map(|event| event.1) {
            Some(Event::Queue(segment)) => {
                queue.waiting.push_back((segment, false));
                queue.peak = queue.peak.max(queue.waiting.len());
            }
            Some(Event::Free) => queue.busy = false,
            Some(Event::Data(segment)) => receiver.on_segment(now, &segment, Ecn::NotEct),
            Some(Event::Ack(segment)) => sender.on_segment(now, &segment, Ecn::NotEct),
            None => {}
        }
        if !queue.busy
            && let Some(segment) = queue.next()
        {
            queue.busy = true;
            after(&mut events, &mut count, now + SERVICE, Event::Free);
            after(
                &mut events,
                &mut count,
                now + SERVICE + Duration::from_millis(20),
                Event::Data(segment),
            );
        }
    }
}

fn settings() -> Settings {
    let mut s = Profile::named("ns3-2018").expect("it exists").settings;
    s.delayed_ack = DelayedAck::Off;
    s.receive_window = Limit::Packets(158);
    s.send_buffer = Limit::Unlimited;
    s
}

const RULE: TimerRule = TimerRule {
    initial_reo_wnd: Duration::from_millis(1),
    reo_wnd_min_rtt_share: 0.25,
};

#[test]
fn without_reordering_nothing_is_repaired() {
    for rule in [None, Some(RULE)] {
        let (sender, receiver, queue) = run(&settings(), 1000, rule);
        assert_eq!(
            (
                sender.fast_recoveries,
                sender.timeouts,
                sender.retransmitted_packets
            ),
            (0, 0, 0)
        );
        assert_eq!((queue.moved, receiver.out_of_order_segments), (0, 0));
        assert!(queue.peak <= 100, "{}", queue.peak);
    }
}

#[test]
fn moved_segments_are_mistaken_for_losses() {
    let (sender, receiver, queue) = run(&settings(), 30, None);
    assert!(queue.moved > 10);
    assert!(sender.fast_recoveries > 5);
    // Nothing was lost: every retransmission except those in flight is unnecessary.
    assert!(receiver.duplicate_segments + 80 >= sender.retransmitted_packets);
}

#[test]
fn the_timer_rule_fires_during_recoveries() {
    let (plain, plain_receiver, _) = run(&settings(), 70, None);
    let (timed, timed_receiver, queue) = run(&settings(), 70, Some(RULE));
    assert_eq!(plain.timer_losses, 0);
    assert!(queue.moved > 0 && timed.timer_losses > 0, "{timed:?}");
    for (sender, receiver) in [(plain, plain_receiver), (timed, timed_receiver)] {
        assert!(
            receiver.delivered_bytes > 2_000_000,
            "{sender:?} {receiver:?}"
        );
        assert_eq!((sender.malformed, receiver.malformed), (0, 0));
    }
}
