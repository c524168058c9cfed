//! Queues: where packets wait, and which of them are dropped, marked or moved.
//!
//! A discipline sees sizes, flows, ECN fields and times, never a payload: the same code serves
//! lengths and bytes. Adding one is a file in `queue/` and a line in the registry below; one from
//! outside the workspace implements [`QueueDiscipline`] and travels as [`Discipline::Boxed`].

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
    /// The flow it belongs to.
    pub flow: FlowId,
    /// The connection it belongs to, as addresses and ports tell connections apart: a transfer that
    /// takes another's place in the engine has a number of its own.
    pub connection: ConnectionId,
    /// When it arrived here.
    pub arrived: Instant,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its differentiated services code point.
    pub dscp: u8,
    /// Which way along its flow it goes.
    pub direction: Direction,
    /// Whether it carries application data.
    pub has_data: bool,
    /// Its number among the arrivals at the link, from 0; wraps.
    pub order: u32,
}

/// What happened to packets in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Dropped; it waits here no longer.
    Dropped(Item),
    /// Marked Congestion Experienced; it stays.
    Marked(Item),
    /// Moved behind others.
    Moved(Item),
    /// Handed out after it has waited. Reported by the link that the queue belongs to, if it records waits.
    Waited {
        /// The packet.
        packet: PacketId,
        /// From its arrival to the beginning of its transmission.
        queue_delay: Duration,
    },
}

/// What a discipline may use while it works, and where it reports.
#[derive(Debug)]
pub struct QueueContext<'a> {
    /// The present.
    pub now: Instant,
    /// Packets that wait outside the discipline's own store and count against a limit.
    pub held_packets: u32,
    /// Bytes of those packets.
    pub held_bytes: u64,
    /// The element's random stream.
    pub stream: Stream,
    /// What was decided, in order.
    pub outcomes: &'a mut Vec<Outcome>,
}

impl QueueContext<'_> {
    /// Drops a packet: one that arrives, or one taken from the store.
    pub fn drop(&mut self, item: Item) {
        self.outcomes.push(Outcome::Dropped(item));
    }
    /// Marks a packet if its transport is ECN-capable (RFC 3168 §5), and says whether it was.
    pub fn mark(&mut self, item: &mut Item) -> bool {
        let capable = item.ecn.is_capable();
        if capable {
            item.ecn = Ecn::Ce;
            self.outcomes.push(Outcome::Marked(*item));
        }
        capable
    }
    /// The draws that belong to the `index`-th packet or time slot.
    #[must_use]
    pub fn draw(&self, index: u64) -> Draw {
        self.stream.at(index)
    }
}

/// What a discipline is made from, besides its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init<'a> {
    /// How fast the link behind it sends at the start; `None` where packets take no time.
    pub rate: Option<Rate>,
    /// The flows of the run by their numbers: `main`, or `main/0`, `main/1`, … where a table has more
    /// than one copy.
    pub flows: &'a [String],
    /// The hosts at both ends of each flow, by numbers of their own; nothing where they are not known.
    pub hosts: &'a [[u32; 2]],
}

impl Init<'_> {
    /// The flows that `name` stands for: one copy, or all copies of a table.
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

/// A queue discipline. It owns the order of what waits; the link owns the clock and the wire.
pub trait QueueDiscipline: fmt::Debug + Send {
    /// A packet arrives: store it, or give it to [`QueueContext::drop`].
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>);
    /// The link is free and something waits: the packet to send, if any. Those dropped on the way are
    /// reported.
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item>;
    /// A packet arrives where the link is free and nothing waits: whether it, or what has become of it, is
    /// sent at once. The default stores it and takes it out again; a discipline may spare itself that.
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
    /// The link has sent the last packet, at [`QueueContext::now`]: it is idle from then on. Heard
    /// at the latest before the next packet.
    fn ran_out(&mut self, _cx: &mut QueueContext<'_>) {}
    /// Nothing is asked of the discipline until then, although packets wait: it sends more slowly than the link. Asked whenever
    /// a packet has been handed out, of those that shape ([`QueueParams::shapes`]).
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
    /// Changes the limit in mid-run; `false` if the discipline has none.
    fn set_limit(&mut self, _limit: Limit) -> bool {
        false
    }
    /// Takes those of the parameters that can change in mid-run ([`QueueParams::CHANGEABLE`]), and keeps its state and what
    /// waits. The kind is the same.
    fn change(&mut self, to: &Config) {
        if let Some(limit) = to.limit() {
            self.set_limit(limit);
        }
    }
    /// The link sends at another rate from now on. For those that reckon with it.
    fn set_rate(&mut self, _rate: Option<Rate>) {}
}

/// Makes a discipline from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init<'_>) -> Box<dyn QueueDiscipline> + Send + Sync>;

/// A discipline from outside the workspace, as a scenario carries it.
pub type Custom = component::Custom<Factory>;

/// What the parameters of every built-in discipline can say.
pub trait QueueParams: Default {
    /// The keys that can change in mid-run.
    const CHANGEABLE: &'static [&'static str] = &["limit"];
    /// How much may wait in all.
    fn limit(&self) -> Limit;
    /// The same, to be changed.
    fn limit_mut(&mut self) -> &mut Limit;
    /// Where the first limit or threshold stands that is a multiple of the bandwidth-delay product, from the
    /// queue's table on.
    fn in_bdp(&self) -> Option<&'static [&'static str]> {
        matches!(self.limit(), Limit::Bdp(_)).then_some(&["limit"])
    }
    /// Puts the bandwidth-delay product in.
    fn set_bdp(&mut self, bdp: Bytes) {
        *self.limit_mut() = self.limit().with_bdp(bdp);
    }
    /// Whether packets leave in the order in which they came. In any case those of one connection do, but for
    /// [`Self::separates_ecn`].
    fn is_fifo(&self) -> bool {
        true
    }
    /// Whether it may send more slowly than the link ([`QueueDiscipline::held_until`]).
    fn shapes(&self) -> bool {
        false
    }
    /// Whether packets of one connection whose ECN fields differ may overtake one another.
    fn separates_ecn(&self) -> bool {
        false
    }
    /// Whether it decides when a packet is taken out, by how long that one has waited or by whose turn it is. Where
    /// packets are taken out before they can be sent, as a link group does that spreads flows, it would decide nothing.
    fn decides_late(&self) -> bool {
        false
    }
    /// The flows that parameters name, and where the list of them stands. Each must exist.
    fn flows(&self) -> Option<(&'static [&'static str], &[String])> {
        None
    }
    /// Whether the parameters go together. Asked once no limit is a multiple of the
    /// bandwidth-delay product any more.
    ///
    /// # Errors
    /// With the first that do not.
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
    /// Whether a limit or threshold is a multiple of the bandwidth-delay product.
    #[must_use]
    pub fn needs_bdp(&self) -> bool {
        self.in_bdp().is_some()
    }
    /// Where the first of them stands, from the queue's table on.
    #[must_use]
    pub fn in_bdp(&self) -> Option<&'static [&'static str]> {
        each!(self, params => params.in_bdp(), custom => None)
    }
    /// How much may wait in all, as far as the discipline says so.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        each!(self, params => Some(params.limit()), custom => None)
    }
    /// Whether packets leave in the order in which they came, as far as the discipline says so.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        each!(self, params => params.is_fifo(), custom => false)
    }
    /// Whether it may send more slowly than the link. One from outside may not.
    #[must_use]
    pub fn shapes(&self) -> bool {
        each!(self, params => params.shapes(), custom => false)
    }
    /// Whether packets of one connection whose ECN fields differ may overtake one another, as far as the discipline says so.
    #[must_use]
    pub fn separates_ecn(&self) -> bool {
        each!(self, params => params.separates_ecn(), custom => false)
    }
    /// Whether it decides when a packet is taken out, as far as the discipline says so.
    #[must_use]
    pub fn decides_late(&self) -> bool {
        each!(self, params => params.decides_late(), custom => false)
    }
    /// The keys that can change in mid-run.
    #[must_use]
    pub fn changeable(&self) -> &'static [&'static str] {
        fn of<P: QueueParams>(_: &P) -> &'static [&'static str] {
            P::CHANGEABLE
        }
        each!(self, params => of(params), custom => &[])
    }
    /// Puts the bandwidth-delay product in.
    pub fn set_bdp(&mut self, bdp: Bytes) {
        each!(self, params => params.set_bdp(bdp), custom => {});
    }
    /// The flows that parameters name, and where the list of them stands.
    #[must_use]
    pub fn flows(&self) -> Option<(&'static [&'static str], &[String])> {
        each!(self, params => params.flows(), custom => None)
    }
    /// Whether the parameters go together.
    ///
    /// # Errors
    /// With the first that do not.
    pub fn check(&self) -> Result<(), Contradiction> {
        each!(self, params => params.check(), custom => Ok(()))
    }
}

impl Default for Config {
    /// Drop-tail without limit.
    fn default() -> Self {
        Self::DropTail(drop_tail::Params::default())
    }
}

/// Drop-tail in line, which most queues are, behind one branch; any other behind a call.
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
