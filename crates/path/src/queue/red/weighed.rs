//! RED with a rule that weighs each packet's probability: the common part of the variants.

use std::fmt;

use anabranch_core::units::{Instant, Rate, text::Limit};

use super::{
    super::{Config, Init, Item, QueueContext, QueueDiscipline, drop_tail::DropTail},
    early::{Early, Factor},
    params::Common,
};

/// Rule that weighs packets' probabilities.
pub trait Weigh: fmt::Debug + Send {
    /// Returns the factors for this packet, which arrives now. `plain` is the probability that the
    /// average gave before it. Called once for each packet, in order.
    fn factor(&mut self, item: &Item, plain: f64, now: Instant) -> Factor;
    /// Sets the link's rate.
    fn set_rate(&mut self, _rate: Option<Rate>) {}
}

/// A RED queue that weighs packets' probabilities.
#[derive(Debug)]
pub struct Weighed<W> {
    early: Early,
    store: DropTail,
    weigh: W,
}

impl<W> Weighed<W> {
    pub(in crate::queue) fn with(common: &Common, weigh: W, init: &Init<'_>) -> Self {
        Self {
            early: Early::new(common, init),
            store: common.store(init),
            weigh,
        }
    }
    /// Average length, in the unit of the thresholds.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.early.average()
    }
}

impl<W: Weigh> Weighed<W> {
    #[inline]
    fn admit(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        let factor = self.weigh.factor(item, self.early.plain(), cx.now);
        self.early.admit(item, &self.store, factor, cx)
    }
}

impl<W: Weigh> QueueDiscipline for Weighed<W> {
    #[inline]
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        if self.admit(&mut item, cx) {
            self.store.enqueue(item, cx);
        }
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.admit(item, cx)
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.store.dequeue(cx)
    }
    fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        self.early.ran_out(cx.now);
    }
    #[inline]
    fn len(&self) -> usize {
        self.store.len()
    }
    fn bytes(&self) -> u64 {
        self.store.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.store.set_limit(limit)
    }
    fn change(&mut self, to: &Config) {
        let common = match to {
            Config::Red(params) => params.common(),
            Config::PreferentialRed(params) => params.common(),
            Config::ShareRed(params) => params.common(),
            _ => return,
        };
        self.store.set_limit(common.limit);
        self.early.change(&common);
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        self.early.set_rate(rate);
        self.weigh.set_rate(rate);
    }
}
