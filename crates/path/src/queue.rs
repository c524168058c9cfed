//! Queues: packets wait and are dropped, marked or moved.
//!
//! A discipline sees sizes, flows, ECN fields and times, never a payload: the same code serves
//! simulated lengths and real bytes. A new discipline is a file in `queue/` and a line in the
//! registry below. A discipline from outside the workspace implements [`QueueDiscipline`] and is
//! stored as [`Discipline::Boxed`].

use anabranch_core::{
    component, components,
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    parameters::Contradiction,
    rng::{Draw, Stream},
    units::{Bytes, Duration, Instant, Rate, text::Limit},
};
use std::{fmt, sync::Arc};

pub mod bounded;
mod fifos;
mod flow_hash;
pub mod reorder;

pub use reorder::Reorder;

/// A packet as a queue sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its handle.
    pub packet: PacketId,
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Its connection, as addresses and ports identify connections: a transfer that replaces
    /// another in the engine has a separate number.
    pub connection: ConnectionId,
    /// Time of arrival at this queue.
    pub arrived: Instant,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its differentiated services code point.
    pub dscp: u8,
    /// Its direction along the flow.
    pub direction: Direction,
    /// Whether it carries application data.
    pub has_data: bool,
    /// Its number among the arrivals at the link, from 0; wraps.
    pub order: u32,
}

/// Event of a packet in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Dropped; it no longer waits.
    Dropped(Item),
    /// Marked Congestion Experienced; it continues to wait.
    Marked(Item),
    /// Moved back in the queue.
    Moved(Item),
    /// Dequeued after a wait. Reported by the link that owns the queue, if it records waits.
    Waited {
        /// The packet.
        packet: PacketId,
        /// Time from its arrival to the start of its transmission.
        queue_delay: Duration,
    },
}

/// Inputs and output of a discipline's calls.
#[derive(Debug)]
pub struct QueueContext<'a> {
    /// Current time.
    pub now: Instant,
    /// Waiting packets outside the discipline's own store that count against a limit.
    pub held_packets: u32,
    /// Bytes of those packets.
    pub held_bytes: u64,
    /// The element's random stream.
    pub stream: Stream,
    /// Decisions, in order.
    pub outcomes: &'a mut Vec<Outcome>,
}

impl QueueContext<'_> {
    /// Drops a packet that arrives or that was taken from the store.
    pub fn drop(&mut self, item: Item) {
        self.outcomes.push(Outcome::Dropped(item));
    }
    /// Marks a packet if its transport is ECN-capable (RFC 3168 §5); returns whether it did.
    pub fn mark(&mut self, item: &mut Item) -> bool {
        let capable = item.ecn.is_capable();
        if capable {
            item.ecn = Ecn::Ce;
            self.outcomes.push(Outcome::Marked(*item));
        }
        capable
    }
    /// Random draws of packet or time slot number `index`.
    #[must_use]
    pub fn draw(&self, index: u64) -> Draw {
        self.stream.at(index)
    }
}

/// Inputs for the construction of a discipline, in addition to its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init<'a> {
    /// Initial rate of the downstream link; `None` if transmission takes no time.
    pub rate: Option<Rate>,
    /// Names of the run's flows by number: `main`, or `main/0`, `main/1`, … if a table has several
    /// copies.
    pub flows: &'a [String],
    /// Host numbers of both ends of each flow; empty if they are unknown.
    pub hosts: &'a [[u32; 2]],
}

impl Init<'_> {
    /// Flows with this name: one flow, or all copies of a table.
    pub fn flows_named<'n>(&'n self, name: &'n str) -> impl Iterator<Item = FlowId> + 'n {
        let is_named = move |flow: &str| {
            flow.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.flows
            .iter()
            .zip(0..)
            .filter(move |(flow, _)| is_named(flow))
            .map(|(_, number)| FlowId(number))
    }
}

/// A queue discipline. It owns the order of waiting packets; the link owns the clock and the
/// transmissions.
pub trait QueueDiscipline: fmt::Debug + Send {
    /// Stores a packet that arrives, or passes it to [`QueueContext::drop`].
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>);
    /// Returns the packet to send, if there is one. Called when the link is free and packets wait.
    /// Packets dropped meanwhile are reported.
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item>;
    /// Returns whether a packet that finds a free link and an empty queue is sent at once. The
    /// discipline may replace or mark it. The default enqueues and dequeues the packet; a
    /// discipline may take a shortcut.
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.enqueue(*item, cx);
        match self.dequeue(cx) {
            Some(next) => {
                *item = next;
                true
            }
            None => false,
        }
    }
    /// Handles the end of the last transmission, at [`QueueContext::now`]: the link is idle from
    /// then on. Called at the latest before the next packet.
    fn ran_out(&mut self, _cx: &mut QueueContext<'_>) {}
    /// Time until which the discipline releases no packet, because it sends more slowly than the
    /// link. Queried after each dequeue from disciplines that shape ([`QueueParams::shapes`]).
    fn held_until(&self) -> Instant {
        Instant::START
    }
    /// Packets that wait.
    fn len(&self) -> usize;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes that wait.
    fn bytes(&self) -> u64;
    /// Changes the limit in mid-run; returns `false` if the discipline has none.
    fn set_limit(&mut self, _limit: Limit) -> bool {
        false
    }
    /// Applies the parameters that can change in mid-run ([`QueueParams::CHANGEABLE`]), and keeps
    /// state and waiting packets. `to` is of the same kind.
    fn change(&mut self, to: &Config) {
        if let Some(limit) = to.limit() {
            self.set_limit(limit);
        }
    }
    /// Notifies disciplines that depend on the link's rate of a new rate.
    fn set_rate(&mut self, _rate: Option<Rate>) {}
}

/// Constructor of a discipline from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init<'_>) -> Box<dyn QueueDiscipline> + Send + Sync>;

/// A discipline from outside the workspace, as stored in a scenario.
pub type Custom = component::Custom<Factory>;

/// Properties of the parameters of every built-in discipline.
pub trait QueueParams: Default {
    /// Keys that can change in mid-run.
    const CHANGEABLE: &'static [&'static str] = &["limit"];
    /// Limit of all waiting packets.
    fn limit(&self) -> Limit;
    /// Mutable limit.
    fn limit_mut(&mut self) -> &mut Limit;
    /// Path, from the queue's table on, of the first limit or threshold that is a multiple of the
    /// bandwidth-delay product.
    fn in_bdp(&self) -> Option<&'static [&'static str]> {
        matches!(self.limit(), Limit::Bdp(_)).then_some(&["limit"])
    }
    /// Replaces multiples of the bandwidth-delay product by sizes.
    fn set_bdp(&mut self, bdp: Bytes) {
        *self.limit_mut() = self.limit().with_bdp(bdp);
    }
    /// Whether packets leave in their order of arrival. Packets of one connection always do, except
    /// with [`Self::separates_ecn`].
    fn is_fifo(&self) -> bool {
        true
    }
    /// Whether it may send more slowly than the link ([`QueueDiscipline::held_until`]).
    fn shapes(&self) -> bool {
        false
    }
    /// Whether packets of one connection with different ECN fields may overtake one another.
    fn separates_ecn(&self) -> bool {
        false
    }
    /// Whether the discipline decides at dequeue, by waiting time or by turns. If packets are
    /// dequeued before they can be sent, as in a link group that spreads flows, such a discipline
    /// would have no effect.
    fn decides_late(&self) -> bool {
        false
    }
    /// Flow names in the parameters, and the path of their list. Each flow must exist.
    fn flows(&self) -> Option<(&'static [&'static str], &[String])> {
        None
    }
    /// Checks that the parameters are consistent. Called when no limit is a multiple of the
    /// bandwidth-delay product any more.
    ///
    /// # Errors
    /// Names the first contradiction.
    fn check(&self) -> Result<(), Contradiction> {
        Ok(())
    }
}

components! {
    enum Discipline: QueueDiscipline(init: &Init<'_>);

    drop_tail::DropTail,
    red::Red,
    preferential_red::PreferentialRed,
    share_red::ShareRed,
    codel::Codel,
    pie::Pie,
    fq_codel::FqCodel,
    drr::Drr,
    threshold_mark::ThresholdMark,
    dualpi2::Dualpi2,
    cake::Cake,
}

impl Config {
    /// Path, from the queue's table on, of the first limit or threshold that is a multiple of the
    /// bandwidth-delay product.
    #[must_use]
    pub fn in_bdp(&self) -> Option<&'static [&'static str]> {
        each!(self, params => params.in_bdp(), custom => None)
    }
    /// Limit of all waiting packets, if the discipline declares one.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        each!(self, params => Some(params.limit()), custom => None)
    }
    /// Whether packets leave in their order of arrival, if the discipline declares it.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        each!(self, params => params.is_fifo(), custom => false)
    }
    /// Whether it may send more slowly than the link. A discipline from outside the workspace may
    /// not.
    #[must_use]
    pub fn shapes(&self) -> bool {
        each!(self, params => params.shapes(), custom => false)
    }
    /// Whether packets of one connection with different ECN fields may overtake one another, if the
    /// discipline declares it.
    #[must_use]
    pub fn separates_ecn(&self) -> bool {
        each!(self, params => params.separates_ecn(), custom => false)
    }
    /// Whether it decides at dequeue, if the discipline declares it.
    #[must_use]
    pub fn decides_late(&self) -> bool {
        each!(self, params => params.decides_late(), custom => false)
    }
    /// Keys that can change in mid-run.
    #[must_use]
    pub fn changeable(&self) -> &'static [&'static str] {
        fn of<P: QueueParams>(_: &P) -> &'static [&'static str] {
            P::CHANGEABLE
        }
        each!(self, params => of(params), custom => &[])
    }
    /// Replaces multiples of the bandwidth-delay product by sizes.
    pub fn set_bdp(&mut self, bdp: Bytes) {
        each!(self, params => params.set_bdp(bdp), custom => {});
    }
    /// Flow names in the parameters, and the path of their list.
    #[must_use]
    pub fn flows(&self) -> Option<(&'static [&'static str], &[String])> {
        each!(self, params => params.flows(), custom => None)
    }
    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// Names the first contradiction.
    pub fn check(&self) -> Result<(), Contradiction> {
        each!(self, params => params.check(), custom => Ok(()))
    }
}

impl Default for Config {
    /// Drop-tail without a limit.
    fn default() -> Self {
        Self::DropTail(drop_tail::Params::default())
    }
}

/// Dispatches drop-tail, the most common queue, inline after one branch, and all others through a
/// call.
macro_rules! drop_tail_first {
    ($discipline:expr, $inner:ident => $body:expr) => {
        match $discipline {
            Self::DropTail($inner) => $body,
            other => out_of_line(|| each!(other, $inner => $body)),
        }
    };
}

#[inline(never)]
fn out_of_line<T>(work: impl FnOnce() -> T) -> T {
    work()
}

impl QueueDiscipline for Discipline {
    #[inline]
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        drop_tail_first!(self, q => q.enqueue(item, cx));
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        drop_tail_first!(self, q => q.dequeue(cx))
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        drop_tail_first!(self, q => q.pass(item, cx))
    }
    #[inline]
    fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        drop_tail_first!(self, q => q.ran_out(cx));
    }
    #[inline]
    fn len(&self) -> usize {
        drop_tail_first!(self, q => q.len())
    }
    #[inline]
    fn bytes(&self) -> u64 {
        each!(self, q => q.bytes())
    }
    fn held_until(&self) -> Instant {
        each!(self, q => q.held_until())
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        each!(self, q => q.set_limit(limit))
    }
    fn change(&mut self, to: &Config) {
        each!(self, q => q.change(to));
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        each!(self, q => q.set_rate(rate));
    }
}
