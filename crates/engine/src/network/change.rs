//! Changes in mid-run, and the times at which measuring begins and ends.

use anabranch_core::{
    body::Body,
    packet::FlowId,
    units::{Duration, Instant, Rate, text::Limit},
};

use anabranch_path::{impair, queue};

use super::{LinkId, Network, fabric::LinkKind};

/// A scheduled change of the network, which precedes all other events of its instant.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A link direction goes up or down.
    Up(LinkId, bool),
    /// Its rate changes, including for the packet in transmission.
    Rate(LinkId, Option<Rate>),
    /// Its propagation delay changes, for packets that depart from now on.
    Delay(LinkId, Duration),
    /// Its queue's limit changes.
    Limit(LinkId, Limit),
    /// The parameters of its queue change; the kind stays.
    Queue(LinkId, Box<queue::Config>),
    /// The parameters of the impairment at this index of its list change; the kind stays.
    Impair(LinkId, usize, Box<impair::Config>),
    /// The measured time of a flow begins.
    BeginMeasuring(FlowId),
    /// The measured time of a flow ends.
    EndMeasuring(FlowId),
}

impl Change {
    /// The link that changes.
    pub(super) const fn link(&self) -> Option<LinkId> {
        match self {
            Self::Up(link, _)
            | Self::Rate(link, _)
            | Self::Delay(link, _)
            | Self::Limit(link, _)
            | Self::Queue(link, _)
            | Self::Impair(link, _, _) => Some(*link),
            Self::BeginMeasuring(_) | Self::EndMeasuring(_) => None,
        }
    }
}

impl<B: Body> Network<B> {
    /// Carries out a change now.
    ///
    /// # Panics
    /// If the link was not built to permit changes.
    pub(super) fn apply(&mut self, change: Change) {
        let now = self.fabric.now;
        let link = match change {
            Change::BeginMeasuring(flow) => return self.begin_measuring(flow),
            Change::EndMeasuring(flow) => return self.end_measuring(flow),
            ref change => change.link().expect("all others are of a link"),
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
            Change::Queue(_, queue) => served.link.set_queue(&queue),
            Change::Impair(_, place, config) => served.link.set_impairment(place, &config),
            Change::BeginMeasuring(_) | Change::EndMeasuring(_) => {}
        }
        if served.link.has_outcomes() {
            self.fabric.carry_out(index, None);
        }
        self.fabric.arm_completion(index);
    }

    /// Schedules a change at `at`, which must not be in the past.
    pub fn schedule(&mut self, at: Instant, change: Change) {
        let at = at.max(self.fabric.now);
        let place = self.changes.partition_point(|(other, _)| *other <= at);
        self.changes.insert(place, (at, change));
    }
}
