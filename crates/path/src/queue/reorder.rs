//! Reordering inside a queue.
//!
//! *Interval* reordering is the element of the reordering study (Fukuda, KAKENHI 16K00129, §3 (1),
//! figure 2). If more than `interval` packets wait, the packet at the head has never been moved and
//! no moved packet still waits, then the head moves back by `interval` places. While the queue is
//! long enough, one packet in every `interval` + 1 leaves `interval` places late.
//!
//! The condition is checked when the link takes its next packet. The paper leaves the time open;
//! any other would have to act on arrivals, and its example (figure 2) acts when a packet leaves.

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
    summary: "While more than `interval` packets wait, one of every `interval` + 1 packets is delayed by `interval` \
              positions.",
    sources: &[Source {
        id: "Fukuda 2019 (KAKENHI 16K00129)",
        items: &["§3 (1)", "figure 2"],
    }],
};

/// Reordering of a queue, with any discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reorder {
    /// Interval reordering (see the module).
    Interval(Interval),
}

/// Parameters of interval reordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Number of packets by which a moved packet goes back. At least one packet more must wait.
    pub interval: NonZeroU32,
}

/// The moved packet, and the number of packets that leave before it.
#[derive(Debug, Clone, Copy)]
struct Moved {
    item: Item,
    before: u32,
}

/// Queue of a link: a discipline with or without reordering.
#[derive(Debug)]
pub struct Queue {
    discipline: Discipline,
    interval: Option<u32>,
    moved: Option<Moved>,
}

impl Queue {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(discipline: Discipline, reorder: Option<Reorder>) -> Self {
        let interval = reorder.map(|Reorder::Interval(params)| params.interval.get());
        Self {
            discipline,
            interval,
            moved: None,
        }
    }
    /// Enqueues a packet that arrives.
    #[inline]
    pub fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        if let Some(moved) = self.moved {
            cx.held_packets += 1;
            cx.held_bytes += u64::from(moved.item.size);
        }
        self.discipline.enqueue(item, cx);
    }
    /// Returns whether a packet that finds a free link and an empty queue is sent at once.
    #[inline]
    pub fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.discipline.pass(item, cx)
    }
    /// Handles the end of the last transmission.
    #[inline]
    pub fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        self.discipline.ran_out(cx);
    }
    /// Returns the packet to send, if there is one.
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
            // `interval` fits a u32.
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
                // A discipline that drops at the head may become empty before the moved packet's
                // turn.
                self.discipline
                    .dequeue(cx)
                    .or_else(|| self.moved.take().map(|m| m.item))
            }
            None => self.discipline.dequeue(cx),
        }
    }
    /// Time until which the queue releases no packet ([`QueueDiscipline::held_until`]).
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
    /// Changes the limit in mid-run; returns `false` if the discipline has none.
    pub fn set_limit(&mut self, limit: Limit) -> bool {
        self.discipline.set_limit(limit)
    }
    /// Changes the parameters in mid-run; `to` is of the same kind.
    pub fn change(&mut self, to: &super::Config) {
        self.discipline.change(to);
    }
    /// Changes the link's rate.
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
