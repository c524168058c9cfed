//! A forecast of the next peak: the recent load, and by how much peaks have exceeded it.
//!
//! Bytes are counted in bins. At the end of each, the *base* is the mean of the last few bins. What a member that
//! is woken now must be awake for is the *peak*, the largest of the bins until it is: those within the lead, and
//! one more. By how much peaks exceeded their bases is remembered for some time, an empirical distribution. The
//! group gets the fewest members that carry the base and an excess that is exceeded with a probability of
//! `risk` at most; it loses one at a time. Until an eighth of the memory is filled all members stay on.
//!
//! The risk is not a parameter. Consecutive peaks overlap, members come in whole numbers, and distributions
//! change, so how often bins are overloaded does not follow from it. It is found by feedback: the
//! controller knows when its members come and how much arrived, and so which bins were overloaded. Each of these
//! divides the risk by a constant, and every other bin multiplies it by as much as keeps the balance if the share
//! `overloaded` of bins is. It stays between 1/10,000 and 1/10.
//!
//! *Scales.* Senders behind a link that is faster than the group, above all TCP in bursts of a window, fill bins
//! that not even all members carry. Bins are then too short to say how many members are needed: the queue has to
//! take the bursts anyway. So the same is done with bins of twice the length, of four times, and so on up to
//! [`SCALES`] of them, and the shortest counts whose bins are carried by all members but for the share
//! `overloaded`. With longer bins the risk stays at its first value, and a member leaves at most every `release`: bursts
//! that came out of more members need some round trips to spread out, and until then the queue holds them.
//!
//! It needs to see nothing but arrivals and time: neither the queue nor the network.
//!
//! Source: ours. The empirical distribution of short peaks is after Y. Fukuda, KAKENHI 24700071 final report, 2014,
//! §3; there it is of absolute peaks over a control interval, here of what is above the recent mean.
//!
//! # Not implemented
//! Seasons: that a load was high at the same time yesterday is not remembered.

use std::collections::VecDeque;

use anabranch_core::{
    math,
    parameters::Count,
    registry::{Meta, Source},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contradiction, ControlParams, Controller, Init, Span, check_spans, params::Share};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "peak-forecast",
    title: "Forecast of peaks",
    summary: "The mean of the last few milliseconds, and by how much peaks have exceeded it, decide how many members are on \
              when the next peak comes. Learns how much risk it may take from how often it was wrong.",
    sources: &[Source {
        id: "Fukuda 2014 (KAKENHI 24700071)",
        items: &["§3: an empirical distribution of short peaks"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The shortest time over which arriving bytes are counted, and from one decision to the next.
    pub bin: Span,
    /// How many bins the recent load is the mean of.
    pub window: Count<100_000>,
    /// How long it is remembered by how much peaks exceeded the load: 100 bins or more, a multiple of `bin`.
    pub memory: Span,
    /// The share of bins that may be overloaded in the long run, 0 to 1.
    pub overloaded: Share,
    /// From one member's leaving to the next one's where longer bins decide: several round trips, so that bursts
    /// can spread out.
    pub release: Span,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            bin: Span::from_micros(1_000),
            window: Count::new(4),
            memory: Span::from_micros(8_000_000),
            overloaded: Share::new(0.0007),
            release: Span::from_micros(100_000),
        }
    }
}

/// The least and the largest memory, in bins.
const MEMORY: std::ops::RangeInclusive<u64> = 100..=10_000_000;

impl ControlParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        check_spans(("bin", self.bin), (&["memory"], self.memory))?;
        let bins = self.memory.get().as_picos() / self.bin.get().as_picos();
        if MEMORY.contains(&bins) {
            return Ok(());
        }
        Err(Contradiction {
            key: &["memory"],
            message: format!(
                "{} are {bins} bins of {}",
                self.memory.get(),
                self.bin.get()
            ),
            expected: format!("{} to {} bins", MEMORY.start(), MEMORY.end()),
        })
    }
}

/// Excesses are counted in this share of what a member carries in a bin.
const PARTS: i64 = 64;
/// What an overloaded bin divides the risk by.
const BACK_OFF: f64 = 1.5;
const FIRST_RISK: f64 = 0.01;
const LEAST_RISK: f64 = 0.000_1;
const MOST_RISK: f64 = 0.1;

/// How many lengths of bins there are, each twice the one before.
pub const SCALES: u32 = 7;

/// The controller at work.
#[derive(Debug)]
pub struct PeakForecast {
    bin: Duration,
    bin_end: Instant,
    /// Bins that have ended.
    bins: u64,
    members: u32,
    /// What one member carries in a bin, in bytes.
    share: f64,
    bytes: u64,
    scales: Vec<Scale>,
    /// Of the shortest bins.
    risk: f64,
    /// What a bin that is not overloaded multiplies the risk by.
    growth: f64,
    /// The share of bins that may be overloaded.
    overloaded: f64,
    active: Active,
    release: Duration,
    /// When the last member left.
    released: Instant,
}

/// What is known of bins of one length.
#[derive(Debug)]
struct Scale {
    /// In shortest bins.
    length: u32,
    /// Of the bin that has not ended, in members times shortest bins.
    sum: f64,
    window: usize,
    /// Bins that a peak is the largest of.
    horizon: usize,
    /// In members; the newest last, as many as window and horizon need.
    loads: VecDeque<f64>,
    /// The bases of the last bins, the newest last.
    bases: VecDeque<f64>,
    excesses: Excesses,
    /// Of the bins in memory, which not even all members carried, and how many.
    beyond: VecDeque<bool>,
    beyond_count: u32,
}

/// By how much peaks exceeded their bases, lately.
#[derive(Debug)]
struct Excesses {
    memory: usize,
    /// Of the distribution's classes, in the order of time.
    recent: VecDeque<usize>,
    counts: Vec<u32>,
    /// The class of no excess.
    zero: i64,
}

impl Excesses {
    fn new(memory: usize, members: u32) -> Self {
        let zero = PARTS * i64::from(members);
        let classes = usize::try_from(3 * zero).expect("64 members at most");
        Self {
            memory,
            recent: VecDeque::new(),
            counts: vec![0; classes],
            zero,
        }
    }
    /// An excess, in members, rounded up to its class.
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the classes")]
    fn add(&mut self, excess: f64) {
        let class = (excess * PARTS as f64).ceil() as i64 + self.zero;
        let class = usize::try_from(class)
            .unwrap_or(0)
            .min(self.counts.len() - 1);
        self.counts[class] += 1;
        self.recent.push_back(class);
        if self.recent.len() > self.memory
            && let Some(old) = self.recent.pop_front()
        {
            self.counts[old] -= 1;
        }
    }
    /// The smallest excess that at most this share of all exceed; `None` as long as there are too few.
    fn quantile(&self, risk: f64) -> Option<f64> {
        if self.recent.len() < self.memory / 8 {
            return None;
        }
        let may = risk * self.recent.len() as f64;
        let mut above = 0;
        let mut class = self.counts.len() - 1;
        while class > 0 {
            above += self.counts[class];
            if f64::from(above) > may {
                break;
            }
            class -= 1;
        }
        let class = i64::try_from(class).expect("a few thousand classes");
        Some((class - self.zero) as f64 / PARTS as f64)
    }
}

/// Which members are active, as the controller may expect: those that it wants less those that wake up.
#[derive(Debug)]
struct Active {
    /// How many are wanted.
    wanted: u32,
    /// (from when they are active, up to which number), both ascending.
    waking: VecDeque<(Instant, u32)>,
    /// Those below this number are.
    count: u32,
    lead: Duration,
}

impl Active {
    fn want(&mut self, now: Instant, members: u32) {
        if members > self.wanted {
            self.waking.push_back((now + self.lead, members));
        }
        // Of those that wake up only as many stay as are wanted; they keep their times.
        while let Some(&(at, up_to)) = self.waking.back()
            && up_to > members
        {
            self.waking.pop_back();
            if self.waking.back().map_or(self.count, |last| last.1) < members {
                self.waking.push_back((at, members));
            }
        }
        self.count = self.count.min(members);
        self.wanted = members;
    }
    /// Member-seconds from `from` to `to`, over its length.
    fn mean(&mut self, from: Instant, to: Instant) -> f64 {
        let mut sum = u64::from(self.count) * (to - from).as_picos();
        while let Some(&(at, up_to)) = self.waking.front() {
            if at >= to {
                break;
            }
            let more = up_to.saturating_sub(self.count);
            sum += u64::from(more) * (to - at.max(from)).as_picos();
            self.count = self.count.max(up_to);
            self.waking.pop_front();
        }
        sum as f64 / (to - from).as_picos() as f64
    }
}

impl Scale {
    /// A bin has ended: what it says of the past.
    fn learn(&mut self, load: f64, members: u32) {
        let beyond = load > f64::from(members);
        self.beyond.push_back(beyond);
        self.beyond_count += u32::from(beyond);
        if self.beyond.len() > self.excesses.memory
            && let Some(old) = self.beyond.pop_front()
        {
            self.beyond_count -= u32::from(old);
        }
        self.loads.push_back(load);
        if self.loads.len() > self.window.max(self.horizon) {
            self.loads.pop_front();
        }
        // The base of `horizon` bins ago has seen its peak.
        if self.bases.len() == self.horizon
            && let Some(base) = self.bases.pop_front()
        {
            let peak = self.loads.iter().rev().take(self.horizon);
            self.excesses.add(peak.copied().fold(0.0, f64::max) - base);
        }
        self.bases.push_back(self.base());
    }
    fn base(&self) -> f64 {
        let recent = self.loads.iter().rev().take(self.window);
        recent.sum::<f64>() / self.loads.len().clamp(1, self.window) as f64
    }
    /// Whether all members carry its bins, but for this share.
    fn is_carried(&self, but_for: f64) -> bool {
        f64::from(self.beyond_count) <= but_for * self.beyond.len() as f64
    }
}

impl PeakForecast {
    /// With nothing counted and all members on.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a memory of 10,000,000 bins at most"
    )]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let bin = params.bin.get();
        let memory = params.memory.get().as_picos();
        let overloaded = params.overloaded.get();
        let scale = |number: u32| {
            let length = 1_u32 << number;
            let picos = bin.as_picos() * u64::from(length);
            Scale {
                length,
                sum: 0.0,
                window: params.window.get() as usize,
                horizon: (init.lead.as_picos().div_ceil(picos) as usize).saturating_add(1),
                loads: VecDeque::new(),
                bases: VecDeque::new(),
                excesses: Excesses::new((memory / picos) as usize, init.members),
                beyond: VecDeque::new(),
                beyond_count: 0,
            }
        };
        Self {
            bin,
            bin_end: Instant::START + bin,
            bins: 0,
            members: init.members,
            share: super::moving_average::bytes_in(init.rate, bin),
            bytes: 0,
            scales: (0..SCALES).map(scale).collect(),
            risk: FIRST_RISK,
            growth: math::powf(BACK_OFF, overloaded / (1.0 - overloaded).max(1e-9)),
            overloaded,
            release: params.release.get(),
            released: Instant::START,
            active: Active {
                wanted: init.members,
                waking: VecDeque::new(),
                count: init.members,
                lead: init.lead,
            },
        }
    }

    /// The shortest bins' risk, by whether the last was overloaded without need.
    fn adapt(&mut self, load: f64) {
        let begin = Instant::from_picos(self.bin_end.as_picos() - self.bin.as_picos());
        let carried = self.active.mean(begin, self.bin_end);
        let overloaded = load > carried && load <= f64::from(self.members);
        let factor = if overloaded {
            1.0 / BACK_OFF
        } else {
            self.growth
        };
        self.risk = (self.risk * factor).clamp(LEAST_RISK, MOST_RISK);
    }
}

impl Controller for PeakForecast {
    #[inline]
    fn on_arrival(&mut self, _now: Instant, bytes: u32) {
        self.bytes += u64::from(bytes);
    }
    fn next_decision(&self) -> Instant {
        self.bin_end
    }
    fn decide(&mut self, now: Instant) -> u32 {
        let load = std::mem::take(&mut self.bytes) as f64 / self.share;
        self.adapt(load);
        self.bin_end = self.bin_end + self.bin;
        self.bins += 1;
        for scale in &mut self.scales {
            scale.sum += load;
            if self.bins.is_multiple_of(u64::from(scale.length)) {
                let load = std::mem::take(&mut scale.sum) / f64::from(scale.length);
                scale.learn(load, self.members);
            }
        }
        let carried = |scale: &&Scale| scale.is_carried(self.overloaded);
        let chosen = self.scales.iter().find(carried).or(self.scales.last());
        let wanted = self.active.wanted;
        let members = match chosen {
            Some(scale) if !self.bins.is_multiple_of(u64::from(scale.length)) => wanted,
            Some(scale) => {
                let risk = if scale.length == 1 {
                    self.risk
                } else {
                    FIRST_RISK
                };
                scale
                    .excesses
                    .quantile(risk)
                    .map_or(self.members, |excess| {
                        super::moving_average::whole(scale.base() + excess, self.members)
                    })
            }
            None => self.members,
        };
        let at_once = chosen.is_none_or(|scale| scale.length == 1);
        let members = if members >= wanted {
            members
        } else if at_once || now.saturating_since(self.released) >= self.release {
            self.released = now;
            wanted - 1
        } else {
            wanted
        };
        self.active.want(now, members);
        members
    }
}
