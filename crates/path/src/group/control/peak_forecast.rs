//! Forecast of the next peak from the recent load and the distribution of the peaks' excess over
//! it.
//!
//! Bytes are counted in bins. At the end of each bin, the *base* is the mean of the last few bins.
//! The *peak* is the load that a member woken now must be awake for: the maximum of the bins within
//! the lead, and one more. The excess of peaks over their bases is stored for some time, as an
//! empirical distribution. The group gets the fewest members that carry the base plus an excess
//! that is exceeded with a probability of at most `risk`; it loses one member at a time. All
//! members stay on until an eighth of the memory is filled.
//!
//! The risk is not a parameter. Consecutive peaks overlap, members are integral, and distributions
//! change, so the share of overloaded bins does not follow from it. The risk is set by feedback.
//! The controller knows when its members become active and how much arrived, and so which bins were
//! overloaded. Each overloaded bin divides the risk by a constant; every other bin multiplies it by
//! the factor that keeps the balance at a share `overloaded` of bins. The risk stays between
//! 1/10,000 and 1/10.
//!
//! *Scales.* Senders on a link faster than the group, above all TCP with bursts of a window, fill
//! bins that not even all members carry. Such bins are too short to determine the number of
//! members, because the queue has to take the bursts anyway. The same is therefore done with bins
//! of twice the length, four times, and so on, [`SCALES`] lengths in all. The shortest length
//! decides whose bins are carried by all members, except for the share `overloaded`. With longer
//! bins the risk stays at its initial value, and members leave at intervals of at least `release`:
//! bursts that came out of more members need some round trips to spread out, and until then the
//! queue holds them.
//!
//! The controller sees only arrivals and time: neither the queue nor the network.
//!
//! Source: specific to this project. The empirical distribution of short peaks is after Y. Fukuda,
//! KAKENHI 24700071 final report, 2014, §3, where it contains absolute peaks over a control
//! interval; here it contains the excess over the recent mean.
//!
//! # Not implemented
//! Seasonality: a high load at the same time of the previous day is not stored.

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
    summary: "Forecasts the next peak from the mean of the last few milliseconds and the past excess of peaks over it, \
              and keeps enough members on. Adapts its margin to the rate of wrong forecasts.",
    sources: &[Source {
        id: "Fukuda 2014 (KAKENHI 24700071)",
        items: &["§3: an empirical distribution of short peaks"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Length of the shortest bins over which bytes are counted, and time between decisions.
    pub bin: Span,
    /// Number of bins in the mean that is the recent load.
    pub window: Count<100_000>,
    /// Time for which excesses are stored: 100 bins or more, a multiple of `bin`.
    pub memory: Span,
    /// Share of bins that may be overloaded in the long run, 0 to 1.
    pub overloaded: Share,
    /// Minimum time between members that leave, if longer bins decide: several round trips, so that
    /// bursts can spread out.
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

/// Range of the memory, in bins.
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

/// Classes of excesses per member's capacity in a bin.
const PARTS: i64 = 64;
/// Divisor of the risk after an overloaded bin.
const BACK_OFF: f64 = 1.5;
const FIRST_RISK: f64 = 0.01;
const LEAST_RISK: f64 = 0.000_1;
const MOST_RISK: f64 = 0.1;

/// Number of bin lengths, each twice the previous.
pub const SCALES: u32 = 7;

/// State of the controller.
#[derive(Debug)]
pub struct PeakForecast {
    bin: Duration,
    bin_end: Instant,
    /// Number of bins that have ended.
    bins: u64,
    members: u32,
    /// Bytes that one member carries in a bin.
    share: f64,
    bytes: u64,
    scales: Vec<Scale>,
    /// Risk of the shortest bins.
    risk: f64,
    /// Factor of the risk after a bin that is not overloaded.
    growth: f64,
    /// Share of bins that may be overloaded.
    overloaded: f64,
    active: Active,
    release: Duration,
    /// When the last member left.
    released: Instant,
}

/// Statistics of bins of one length.
#[derive(Debug)]
struct Scale {
    /// In shortest bins.
    length: u32,
    /// Load of the current bin, in members times shortest bins.
    sum: f64,
    window: usize,
    /// Number of bins over which a peak is the maximum.
    horizon: usize,
    /// Loads in members, newest last, covering window and horizon.
    loads: VecDeque<f64>,
    /// Bases of the last bins, newest last.
    bases: VecDeque<f64>,
    excesses: Excesses,
    /// For each bin in memory, whether its load exceeded all members. `beyond_count` is their
    /// number.
    beyond: VecDeque<bool>,
    beyond_count: u32,
}

/// Recent excesses of peaks over their bases.
#[derive(Debug)]
struct Excesses {
    memory: usize,
    /// Classes of the distribution, in the order of time.
    recent: VecDeque<usize>,
    counts: Vec<u32>,
    /// Class of zero excess.
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
    /// Adds an excess, in members, rounded up to its class.
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
    /// Smallest excess that at most a share `risk` of all exceed; `None` if there are too few.
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

/// Active members as the controller expects them: the requested members without those still waking
/// up.
#[derive(Debug)]
struct Active {
    /// Number of requested members.
    wanted: u32,
    /// Members that are waking up: (time at which they become active, up to which number), both
    /// ascending.
    waking: VecDeque<(Instant, u32)>,
    /// Number of active members.
    count: u32,
    lead: Duration,
}

impl Active {
    fn want(&mut self, now: Instant, members: u32) {
        if members > self.wanted {
            self.waking.push_back((now + self.lead, members));
        }
        // Waking members above the requested number are removed; the others keep their times.
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
    /// Mean number of active members from `from` to `to`.
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
    /// Updates the statistics with a bin that has ended.
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
        // The peak of the base of `horizon` bins ago is now known.
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
    /// Whether all members carry its bins, except for this share.
    fn is_carried(&self, but_for: f64) -> bool {
        f64::from(self.beyond_count) <= but_for * self.beyond.len() as f64
    }
}

impl PeakForecast {
    /// Creates the controller without measurements and with all members on.
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

    /// Updates the risk of the shortest bins, depending on whether the last bin was overloaded
    /// although all members could have carried it.
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
