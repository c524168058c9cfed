//! Changes in mid-run, and the moments at which measuring begins and ends.

use anabranch_core::{
    body::Body,
    packet::FlowId,
    units::{Duration, Instant, Rate, text::Limit},
};

use super::{LinkId, Network, fabric::LinkKind};

/// Something that happens to the network at a time of its own, before all else at that instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// A link direction goes up or down.
    Up(LinkId, bool),
    /// Its rate changes, under the packet being sent.
    Rate(LinkId, Option<Rate>),
    /// Its propagation delay changes, for packets that leave from now on.
    Delay(LinkId, Duration),
    /// Its queue's limit changes.
    Limit(LinkId, Limit),
    /// The measured time of a flow begins.
    BeginMeasuring(FlowId),
    /// The measured time of a flow ends.
    EndMeasuring(FlowId),
}

impl<B: Body> Network<B> {
    /// Carries a change out, now.
    ///
    /// # Panics
    /// If a link changes that was not built as one that may.
    pub(super) fn apply(&mut self, change: Change) {
        let now = self.fabric.now;
        let link = match change {
            Change::Up(link, _)
            | Change::Rate(link, _)
            | Change::Delay(link, _)
            | Change::Limit(link, _) => link,
            Change::BeginMeasuring(flow) => return self.begin_measuring(flow),
            Change::EndMeasuring(flow) => return self.end_measuring(flow),
        };
        let index = link.0 as usize;
        let LinkKind::Served(served) = &mut self.fabric.links[index].kind else {
            unreachable!("a link that changes is built as a served link")
        };
        match change {
            Change::Up(_, up) => served.link.set_up(now, up),
            Change::Rate(_, rate) => served.link.set_rate(now, rate),
            Change::Delay(_, delay) => served.link.set_delay(delay),
            Change::Limit(_, limit) => {
                served.link.set_limit(limit);
            }
            Change::BeginMeasuring(_) | Change::EndMeasuring(_) => {}
        }
        if served.link.has_outcomes() {
            self.fabric.carry_out(index, None);
        }
        self.fabric.arm_completion(index);
    }

    /// Asks for a change at `at`, which must not be in the past.
    pub fn schedule(&mut self, at: Instant, change: Change) {
        let at = at.max(self.fabric.now);
        let place = self.changes.partition_point(|(other, _)| *other <= at);
        self.changes.insert(place, (at, change));
    }
}
