//! Decision at an arrival: average, probability, spacing, and drop or mark.

use anabranch_core::{
    rng::Draw,
    units::{Instant, Rate},
};

use super::{
    super::{Init, Item, QueueContext, QueueDiscipline, drop_tail::DropTail},
    adaptive::{Adapting, Adaptive},
    average::Average,
    params::{Common, Spacing},
};

/// Factors of a packet's probability.
#[derive(Debug, Clone, Copy)]
pub struct Factor {
    /// Factor of the probability given by the average.
    pub plain: f64,
    /// Factor of the probability after spacing.
    pub spaced: f64,
}

impl Factor {
    /// No change.
    pub const NONE: Self = Self {
        plain: 1.0,
        spaced: 1.0,
    };
}

/// Decision for an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Pass,
    /// Drop or mark.
    Signal,
    /// The average is in the range in which every packet is dropped.
    Certain,
}

/// RED without the packet store.
#[derive(Debug)]
pub(in crate::queue) struct Early {
    average: Average,
    in_bytes: bool,
    min: f64,
    max: f64,
    /// Average from which on the probability is 1: `max`, or twice that.
    certain: f64,
    max_probability: f64,
    spacing: Spacing,
    /// Packets admitted since the last drop.
    count: u64,
    /// Random number of this gap, if the spacing draws one for each gap.
    drawn: Option<f64>,
    /// State of [`Spacing::Summed`].
    sum: Sum,
    /// Probability per byte, if it depends on sizes.
    per_byte: Option<f64>,
    ecn: bool,
    hard_drop: bool,
    arrivals: u64,
    adapting: Option<Box<Adapting>>,
}

impl Early {
    pub(in crate::queue) fn new(common: &Common, init: &Init<'_>) -> Self {
        let (min, max) = (common.min(), common.max());
        let in_bytes = common.in_bytes();
        let scales = in_bytes && common.scale_by_size;
        Self {
            average: Average::new(common.weight.get(), common.idle_packet.bytes(), init.rate),
            in_bytes,
            min,
            max,
            certain: if common.gentle { 2.0 * max } else { max },
            max_probability: common.max_probability.get(),
            spacing: common.spacing,
            count: 0,
            drawn: None,
            sum: Sum::NEW,
            per_byte: scales.then(|| 1.0 / common.reference_packet.bytes().get() as f64),
            ecn: common.ecn,
            hard_drop: common.hard_drop,
            arrivals: 0,
            adapting: match common.adaptive {
                Adaptive::Off => None,
                Adaptive::On(table) => Some(Box::new(Adapting::new(table, min, max))),
            },
        }
    }

    /// Applies the parameters that can change in mid-run ([`super::CHANGEABLE`]). Thresholds in
    /// another unit are ignored.
    pub(super) fn change(&mut self, common: &Common) {
        if common.in_bytes() == self.in_bytes {
            (self.min, self.max) = (common.min(), common.max());
            self.certain = if common.gentle {
                2.0 * self.max
            } else {
                self.max
            };
        }
        if let Some(adapting) = &mut self.adapting {
            adapting.set_thresholds(self.min, self.max);
        }
        self.max_probability = common.max_probability.get();
        self.average.set_weight(common.weight.get());
        (self.ecn, self.hard_drop) = (common.ecn, common.hard_drop);
    }

    pub(in crate::queue) fn average(&self) -> f64 {
        self.average.get()
    }
    /// Probability for the current average.
    #[inline]
    pub(super) fn plain(&self) -> f64 {
        let average = self.average.get();
        if average < self.min {
            0.0
        } else if average < self.certain {
            self.curve(average)
        } else {
            1.0
        }
    }
    pub(in crate::queue) fn set_rate(&mut self, rate: Option<Rate>) {
        self.average.set_rate(rate);
    }
    pub(in crate::queue) fn ran_out(&mut self, now: Instant) {
        self.average.ran_out(now);
    }

    /// Returns whether an arriving packet may join the packets in `store`, possibly marked;
    /// otherwise it has been dropped.
    #[inline]
    pub(in crate::queue) fn admit(
        &mut self,
        item: &mut Item,
        store: &DropTail,
        factor: Factor,
        cx: &mut QueueContext<'_>,
    ) -> bool {
        let waiting = if self.in_bytes {
            (store.bytes() + cx.held_bytes) as f64
        } else {
            (store.len() as u64 + u64::from(cx.held_packets)) as f64
        };
        let idle = self.average.update(cx.now, waiting);
        if let Some(adapting) = &mut self.adapting {
            self.max_probability = adapting.adapt(cx.now, self.average.get(), self.max_probability);
        }
        let index = self.arrivals;
        self.arrivals += 1;
        let admitted = if store.has_room(item, cx) {
            match self.judge(item.size, factor, index, cx) {
                Verdict::Pass => true,
                Verdict::Signal => self.ecn && cx.mark(item),
                Verdict::Certain => self.ecn && !self.hard_drop && cx.mark(item),
            }
        } else {
            self.begin_gap();
            false
        };
        if !admitted {
            cx.drop(*item);
            if idle {
                self.average.ran_out(cx.now);
            }
        }
        admitted
    }

    #[inline]
    fn judge(&mut self, size: u32, factor: Factor, index: u64, cx: &QueueContext<'_>) -> Verdict {
        let average = self.average.get();
        if average < self.min {
            self.begin_gap();
            self.sum = Sum::NEW;
            return Verdict::Pass;
        }
        if average >= self.certain {
            self.begin_gap();
            self.sum = Sum::NEW;
            return Verdict::Certain;
        }
        let mut plain = self.curve(average);
        if let Some(per_byte) = self.per_byte {
            plain *= f64::from(size) * per_byte;
        }
        let plain = (plain * factor.plain).min(1.0);
        let signals = if self.spacing == Spacing::Summed {
            self.sum.passes(plain * factor.spaced, || cx.draw(index))
        } else {
            let probability = self.spacing.probability(plain, self.count) * factor.spaced;
            probability > 0.0 && self.number(index, cx) < probability
        };
        if signals {
            self.begin_gap();
            return Verdict::Signal;
        }
        self.count += 1;
        Verdict::Pass
    }

    /// Starts a gap, after a drop or while the average is below the minimum threshold.
    fn begin_gap(&mut self) {
        (self.count, self.drawn) = (0, None);
    }

    /// Random number that is compared with a packet's probability.
    #[inline]
    fn number(&mut self, index: u64, cx: &QueueContext<'_>) -> f64 {
        let fresh = || cx.draw(index).uniform();
        match self.spacing {
            Spacing::Drawn => *self.drawn.get_or_insert_with(fresh),
            _ => fresh(),
        }
    }

    /// Probability for an average between `min` and `certain`.
    #[inline]
    fn curve(&self, average: f64) -> f64 {
        if average < self.max {
            self.max_probability * (average - self.min) / (self.max - self.min)
        } else {
            self.max_probability + (1.0 - self.max_probability) * (average - self.max) / self.max
        }
    }
}

impl Spacing {
    /// Probability for a packet after `count` admitted packets since the last drop, if the average
    /// gives `plain`.
    #[inline]
    fn probability(self, plain: f64, count: u64) -> f64 {
        let passed = count as f64 * plain;
        match self {
            Self::Geometric | Self::Summed => plain,
            Self::Uniform if passed < 1.0 => (plain / (1.0 - passed)).min(1.0),
            Self::Waiting if passed < 1.0 => 0.0,
            Self::Waiting if passed < 2.0 => (plain / (2.0 - passed)).min(1.0),
            Self::Uniform | Self::Waiting => 1.0,
            Self::Drawn => passed + plain,
        }
    }
}

/// Sum of the packets' probabilities since the last drop, and its limit.
#[derive(Debug)]
struct Sum {
    reached: f64,
    limit: f64,
}

impl Sum {
    /// The first limit is 1, which is also the mean.
    const NEW: Self = Self {
        reached: 0.0,
        limit: 1.0,
    };

    /// Adds a packet's probability; returns whether the sum reaches the limit. The excess counts
    /// for the next sum.
    #[inline]
    fn passes(&mut self, probability: f64, draw: impl FnOnce() -> Draw) -> bool {
        self.reached += probability;
        let passes = self.reached >= self.limit;
        if passes {
            self.reached -= self.limit;
            self.limit = 0.5 + draw().uniform();
        }
        passes
    }
}
