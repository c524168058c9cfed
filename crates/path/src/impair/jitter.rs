//! Jitter: each packet is delayed by a random time, drawn for the packet alone or for all packets
//! of a time slot.
//!
//! With `every` = 0 s each packet's delay is drawn by its number. Otherwise time is divided into
//! slots of that length from the start of the run, and a packet is delayed by the value drawn for
//! the slot in which it arrives. This models the delay of a route that changes at intervals
//! (Hayashi et al., §4: every second).
//!
//! With `reorder` = false packets leave in the order in which they were sent: a packet that would
//! overtake an earlier packet waits for it. The observed delays are then larger than those drawn,
//! the more so the closer packets follow each other.
//!
//! With `after_pause` only a packet that arrives after a pause is delayed, as by a radio, a
//! processor or a thread that has to wake up. With `reorder` = false, packets that arrive meanwhile
//! wait for it, so that a burst is compressed. With `packets` only the packets with these numbers
//! are delayed, for example because an operation takes longer the first time.
//!
//! # Differs from Linux
//! - `tc netem delay TIME JITTER` draws symmetrically around TIME; here the delay of the link is
//!   the minimum, and jitter adds to it. netem lets packets overtake each other unless a rate or a
//!   FIFO below it keeps them in order.
//! - netem's tables are normalized deviations; a table here contains delays.
//!
//! # Not implemented
//! - Correlation between one packet's delay and the next (`netem delay … CORRELATION`); see
//!   `every`.

mod distribution;

use anabranch_core::{
    registry::{Meta, Source},
    rng::Draw,
    side_file::{FileName, lines},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::distribution::{Distribution, Shape};

use self::distribution::Sampler;
use super::{Contradiction, ImpairParams, Impairment, Misread, Verdict, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "jitter",
    title: "Jitter",
    summary: "Delays packets at random, each separately or all packets of a time slot equally, with or without \
              reordering.",
    sources: &[
        Source {
            id: "Hayashi et al., Performance Evaluation of TCP Communication using Multiple Routes",
            items: &["a delay drawn every second"],
        },
        Source {
            id: "tc-netem(8)",
            items: &["delay", "distribution"],
        },
    ],
};

/// Parameters of jitter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Distribution of the delays: `"exponential"`, `"normal"`, `"pareto"` or `"table"`.
    pub distribution: Distribution,
    /// Mean of the delays, in addition to the link's own delay. Required, except with
    /// `distribution = "table"`, whose mean follows from its delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration")]
    pub mean: Option<Duration>,
    /// Standard deviation of `"normal"`: at most a third of `mean`, so that at most 0.14 % of the
    /// draws are below 0 s and count as 0 s. The default is a quarter of `mean`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration")]
    pub deviation: Option<Duration>,
    /// Exponent of the tail of `"pareto"`: P(delay > x) falls as x to the minus `shape`. The
    /// minimum delay is `mean` × (`shape` − 1) ÷ `shape`. The variance is finite above 2.
    pub shape: Shape,
    /// Delays of `"table"`, drawn with equal probability.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<Duration>,
    /// Text file with these delays instead, one per line with its unit. Its path is relative to the
    /// scenario file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FileName")]
    pub file: Option<String>,
    /// Time for which a drawn delay holds for all packets; 0 s: each packet has a separate delay.
    pub every: Duration,
    /// Only packets that arrive at least this long after the previous packet are delayed, and the
    /// first packet; 0 s: every packet.
    pub after_pause: Duration,
    /// Numbers of packets at this element, from 0: only these are delayed; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<u64>,
    /// Whether packets may overtake each other; otherwise the route stays FIFO.
    pub reorder: bool,
}

impl ImpairParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        self.check_distribution()
    }
    fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
    fn take_file(&mut self, text: &str) -> Result<(), Misread> {
        self.file = None;
        for (at, word) in lines(text) {
            let delay = word.parse::<Duration>();
            let delay = delay.map_err(|wrong| {
                let expected = wrong.help.strip_prefix("expected ").unwrap_or(&wrong.help);
                Misread::new(at.clone(), wrong.message.clone(), expected)
            })?;
            self.table.push(delay);
        }
        if self.table.is_empty() {
            let end = text.len();
            return Err(Misread::new(
                end..end,
                "there are no delays to draw from",
                "a delay on each line, for example 5 ms",
            ));
        }
        Ok(())
    }
}

/// State of a jitter.
#[derive(Debug)]
pub struct Jitter {
    sampler: Sampler,
    every: Duration,
    after_pause: Duration,
    /// In ascending order.
    packets: Box<[u64]>,
    /// Arrival time of the last packet.
    came: Option<Instant>,
    reorder: bool,
    /// The last slot with a draw, and its delay.
    slot: Option<(u64, Duration)>,
    /// Departure time of the latest packet, if order is kept.
    latest: Instant,
}

impl Jitter {
    /// Creates the impairment with these parameters.
    ///
    /// # Panics
    /// If they are not consistent ([`ImpairParams::check`]).
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let mut packets = params.packets.clone();
        packets.sort_unstable();
        Self {
            sampler: Sampler::new(params),
            every: params.every,
            after_pause: params.after_pause,
            packets: packets.into(),
            came: None,
            reorder: params.reorder,
            slot: None,
            latest: Instant::START,
        }
    }

    /// Continues from the state of `before`.
    pub(super) fn follow(&mut self, before: &Self) {
        (self.came, self.latest) = (before.came, before.latest);
    }

    /// Delay for packet number `index`, which arrives at `now`.
    fn drawn(&mut self, now: Instant, index: u64, draw: &mut Draw) -> Duration {
        let before = self.came.replace(now);
        if before.is_some_and(|before| now.saturating_since(before) < self.after_pause) {
            return Duration::ZERO;
        }
        if !self.packets.is_empty() && self.packets.binary_search(&index).is_err() {
            return Duration::ZERO;
        }
        if self.every.is_zero() {
            return self.sampler.sample(draw);
        }
        let slot = now.as_picos() / self.every.as_picos();
        match self.slot {
            Some((last, delay)) if last == slot => delay,
            _ => {
                let delay = self.sampler.sample(&mut draw.of_slot(slot));
                self.slot = Some((slot, delay));
                delay
            }
        }
    }
}

impl Impairment for Jitter {
    fn judge(&mut self, now: Instant, packet: View, draw: &mut Draw) -> Verdict {
        let mut by = self.drawn(now, packet.index, draw);
        if !self.reorder {
            self.latest = self.latest.max(now.saturating_add(by));
            by = self.latest - now;
        }
        if by.is_zero() {
            return Verdict::Pass;
        }
        Verdict::Delay {
            by,
            may_overtake: self.reorder,
        }
    }

    fn reorders(&self) -> bool {
        self.reorder
    }
}
