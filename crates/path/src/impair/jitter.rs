//! Jitter: each packet is late by a random time, drawn for it alone or for all packets of one time slot.
//!
//! With `every` = 0 s each packet's delay is drawn by its number. Otherwise time is cut into slots of that
//! length, counted from the start of the run, and a packet is late by what was drawn for the slot in which it
//! comes: the delay of a route that changes now and then (Hayashi et al., §4: every second).
//!
//! With `reorder` = false packets leave in the order in which they were sent: one whose own delay would bring
//! it in before an earlier packet waits for that one. The delays that packets see are then larger than those
//! drawn, the more so the closer packets follow each other.
//!
//! With `after_pause` only a packet that comes after a pause is late: a radio, a processor or a thread has to wake
//! up first. With `reorder` = false what comes meanwhile waits with it, so that a burst is compressed. With `packets` only
//! those of these numbers are: what is done for the first time takes longer.
//!
//! # Differs from Linux
//! - `tc netem delay TIME JITTER` draws around TIME, to both sides; here the delay of the link is the least, and
//!   jitter adds to it. netem lets packets overtake each other unless a rate or a FIFO below it keeps them apart.
//! - netem's tables are normalized deviations; a table here holds delays.
//!
//! # Not implemented
//! - Correlation between one packet's delay and the next (`netem delay … CORRELATION`); see `every`.

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
    summary: "Delays packets at random, each by itself or all of one time slot alike, with or without reordering.",
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
    /// How the delays are distributed: `"exponential"`, `"normal"`, `"pareto"` or `"table"`.
    pub distribution: Distribution,
    /// The mean of the delays that are drawn, on top of the link's own delay; must be given, but with
    /// `distribution = "table"`, which has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration")]
    pub mean: Option<Duration>,
    /// Standard deviation of `"normal"`: a third of `mean` at most, so that no more than 0.14 % of the draws lie
    /// below 0 s, which they then count as; without one a quarter of `mean`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration")]
    pub deviation: Option<Duration>,
    /// Exponent of the tail of `"pareto"`: P(delay > x) falls as x to the minus `shape`. The least delay is
    /// `mean` × (`shape` − 1) ÷ `shape`. The variance is finite above 2.
    pub shape: Shape,
    /// The delays of `"table"`, of which each is drawn as often as any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<Duration>,
    /// A text file with these delays instead, one to a line with its unit; its path counts from where the scenario's
    /// file is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FileName")]
    pub file: Option<String>,
    /// How long a delay that was drawn holds for all packets; 0 s: each packet has its own.
    pub every: Duration,
    /// Only a packet that comes at least so long after the one before it is late, as is the first of all; 0 s: every
    /// packet.
    pub after_pause: Duration,
    /// Numbers of packets among those that come here, from 0: only these are late; none: all.
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

/// Jitter at work.
#[derive(Debug)]
pub struct Jitter {
    sampler: Sampler,
    every: Duration,
    after_pause: Duration,
    /// In ascending order.
    packets: Box<[u64]>,
    /// When the last packet came.
    came: Option<Instant>,
    reorder: bool,
    /// The slot that was drawn for last, and its delay.
    slot: Option<(u64, Duration)>,
    /// When the latest packet leaves, where order is kept.
    latest: Instant,
}

impl Jitter {
    /// With these parameters.
    ///
    /// # Panics
    /// If they do not go together ([`ImpairParams::check`]).
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

    /// Goes on where `before` ends.
    pub(super) fn follow(&mut self, before: &Self) {
        (self.came, self.latest) = (before.came, before.latest);
    }

    /// The delay that is drawn for a packet of this number that comes at `now`.
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
