//! Reordering inside a queue.
//!
//! *Interval* reordering is the element of the reordering study (Fukuda, KAKENHI 16K00129, §3 (1),
//! figure 2): when more than `interval` packets wait, the one at the head has never been moved,
//! and no moved packet still waits, the head moves back by `interval` places. As long as the
//! queue is long enough, one packet in every `interval` + 1 leaves `interval` places late.
//!
//! The condition is looked at when the link takes its next packet. The paper leaves the moment
//! open; any other would have to act on arrivals, and its example (figure 2) acts when a packet
//! leaves.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Item, Outcome, QueueContext, QueueDiscipline};
use anabranch_core::{
    registry::{Meta, Source},
    units::{Instant, Rate, text::Limit},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "interval",
    title: "Interval reordering",
    summary: "While more than `interval` packets wait, one in every `interval` + 1 leaves `interval` places late.",
    sources: &[Source {
        id: "Fukuda 2019 (KAKENHI 16K00129)",
        items: &["§3 (1)", "figure 2"],
    }],
};

/// How a queue reorders, beside whatever discipline it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reorder {
    /// See the module.
    Interval(Interval),
}

/// Parameters of interval reordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Places that a moved packet goes back, in packets, and how many must wait at least (one
    /// more than this).
    pub interval: NonZeroU32,
}

/// The packet that was moved and how many are still to leave before it.
#[derive(Debug, Clone, Copy)]
struct Moved {
    item: Item,
    before: u32,
}

/// A discipline with or without reordering: what a link's queue is.
#[derive(Debug)]
pub struct Queue {
    discipline: Discipline,
    interval: Option<u32>,
    moved: Option<Moved>,
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(discipline: Discipline, reorder: Option<Reorder>) -> Self {
        let interval = reorder.map(|Reorder::Interval(params)| params.interval.get());
        Self {
            discipline,
            interval,
            moved: None,
        }
    }
    /// A packet arrives.
    #[inline]
    pub fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        if let Some(moved) = self.moved {
            cx.held_packets += 1;
            cx.held_bytes += u64::from(moved.item.size);
        }
        self.discipline.enqueue(item, cx);
    }
    /// A packet arrives where the link is free and nothing waits: whether it is sent at once.
    #[inline]
    pub fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.discipline.pass(item, cx)
    }
    /// The link has sent the last packet.
    #[inline]
    pub fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        self.discipline.ran_out(cx);
    }
    /// The packet to send, if any.
    #[inline]
    pub fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        match self.interval {
            None => self.discipline.dequeue(cx),
            Some(interval) => self.dequeue_reordering(interval as usize, cx),
        }
    }
    fn dequeue_reordering(&mut self, interval: usize, cx: &mut QueueContext<'_>) -> Option<Item> {
        if self.moved.is_none() && self.discipline.len() > interval {
            let head = self.discipline.dequeue(cx)?;
            cx.outcomes.push(Outcome::Moved(head));
            // `interval` came from a u32.
            self.moved = Some(Moved {
                item: head,
                before: u32::try_from(interval).unwrap_or(u32::MAX),
            });
        }
        match &mut self.moved {
            Some(Moved { before: 0, item }) => {
                let item = *item;
                self.moved = None;
                Some(item)
            }
            Some(moved) => {
                moved.before -= 1;
                // A discipline that drops at the head may run empty before the moved packet's turn.
                self.discipline
                    .dequeue(cx)
                    .or_else(|| self.moved.take().map(|m| m.item))
            }
            None => self.discipline.dequeue(cx),
        }
    }
    /// See [`QueueDiscipline::held_until`].
    #[must_use]
    pub fn held_until(&self) -> Instant {
        self.discipline.held_until()
    }
    /// Packets that wait.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.discipline.len() + usize::from(self.moved.is_some())
    }
    /// Whether nothing waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.discipline.bytes() + self.moved.map_or(0, |m| u64::from(m.item.size))
    }
    /// Changes the limit in mid-run; `false` if the discipline has none.
    pub fn set_limit(&mut self, limit: Limit) -> bool {
        self.discipline.set_limit(limit)
    }
    /// Takes other parameters in mid-run, of the same kind.
    pub fn change(&mut self, to: &super::Config) {
        self.discipline.change(to);
    }
    /// The link sends at another rate from now on.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.discipline.set_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Config, Init, drop_tail};
    use anabranch_core::{
        packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
        rng::Stream,
        units::Instant,
    };

    fn with<T>(f: impl FnOnce(&mut QueueContext<'_>) -> T) -> (T, Vec<Outcome>) {
        let mut outcomes = Vec::new();
        let mut cx = QueueContext {
            now: Instant::START,
            held_packets: 0,
            held_bytes: 0,
            stream: Stream::new(1, "test"),
            outcomes: &mut outcomes,
        };
        let result = f(&mut cx);
        (result, outcomes)
    }

    fn item(number: u32) -> Item {
        Item {
            packet: PacketId(number),
            size: 1500,
            flow: FlowId(0),
            connection: ConnectionId(0),
            arrived: Instant::START,
            ecn: Ecn::NotEct,
            dscp: 0,
            has_data: true,
            direction: Direction::Forward,
            order: number,
        }
    }

    fn queue(interval: u32, limit: Limit) -> Queue {
        let interval = NonZeroU32::new(interval).expect("positive");
        Queue::new(
            Config::DropTail(drop_tail::Params { limit }).build(&Init {
                rate: None,
                flows: &[],
                hosts: &[],
            }),
            Some(Reorder::Interval(Interval { interval })),
        )
    }

    fn drain(queue: &mut Queue) -> Vec<u32> {
        std::iter::from_fn(|| with(|cx| queue.dequeue(cx)).0)
            .map(|item| item.packet.0)
            .collect()
    }

    /// The study's worked example, RI = 4: 10‥20 leave as 11 12 13 14 10, then 16 17 18 19 15, 20.
    #[test]
    fn worked_example_of_the_study() {
        let mut queue = queue(4, Limit::Unlimited);
        for number in 10..=20 {
            with(|cx| queue.enqueue(item(number), cx));
        }
        assert_eq!(
            drain(&mut queue),
            [11, 12, 13, 14, 10, 16, 17, 18, 19, 15, 20]
        );
    }

    #[test]
    fn exactly_the_interval_is_not_enough() {
        let mut queue = queue(4, Limit::Unlimited);
        for number in 0..4 {
            with(|cx| queue.enqueue(item(number), cx));
        }
        assert_eq!(drain(&mut queue), [0, 1, 2, 3]);
    }

    #[test]
    fn the_moved_packet_counts_as_waiting() {
        let mut queue = queue(2, Limit::Packets(3));
        for number in 0..3 {
            with(|cx| queue.enqueue(item(number), cx));
        }
        let (first, outcomes) = with(|cx| queue.dequeue(cx));
        assert_eq!(first.map(|i| i.packet.0), Some(1));
        assert_eq!(outcomes, [Outcome::Moved(item(0))]);
        assert_eq!(queue.len(), 2);
        assert_eq!(with(|cx| queue.enqueue(item(3), cx)).1, []);
        assert_eq!(
            with(|cx| queue.enqueue(item(4), cx)).1,
            [Outcome::Dropped(item(4))]
        );
        assert_eq!(drain(&mut queue), [2, 0, 3]);
    }
}
