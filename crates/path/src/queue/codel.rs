//! CoDel: controlled delay (RFC 8289).
//!
//! CoDel controls the waiting time, not the number of waiting packets. When the sojourn time has
//! been at or above `target` for a whole `interval`, the packet at the head is dropped at dequeue.
//! Further drops follow after `interval` ÷ √count, where count grows by one each time, until a
//! packet has waited for less. A drop at the head reaches the sender soonest. A dropping period
//! soon after another starts at the drop rate that sufficed (§5.5): the increase of count during
//! the last period.
//!
//! # Differs from Linux
//! - All options of `tc-codel(8)` are here, with its defaults: `limit`, `target`, `interval`,
//!   `ecn`, `ce_threshold`.
//! - The square root is exact. Linux takes one step of Newton's method from the last root, so its
//!   second interval is 0.5 of the first instead of 0.71 (measured:
//!   `docs/validation/kernel-queues.md`).
//!
//! # Not implemented
//! - `mtu` is a parameter; it does not follow the largest packet seen.

mod control;

use anabranch_core::{
    registry::{Meta, Source},
    units::text::Limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::control::{Control, Settings, Waiting};

use super::{
    Config, Contradiction, Init, Item, QueueContext, QueueDiscipline, QueueParams,
    bounded::{ControlTime, MarkAbove, PacketSize},
    fifos::Line,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "codel",
    title: "CoDel",
    summary: "Drops at the head, at decreasing intervals, once all packets of an `interval` have waited for `target` \
              or longer; limits the delay at any rate.",
    sources: &[Source {
        id: "RFC 8289",
        items: &["§3", "§4", "§5"],
    }],
};

/// Parameters of CoDel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets, without the packet being sent: packets, bytes or bandwidth-delay
    /// products (tc-codel(8): 1000 packets).
    pub limit: Limit,
    /// Acceptable standing sojourn time (RFC 8289 §4.4: 5 ms, or 5 to 10 % of `interval`).
    pub target: ControlTime,
    /// Time for which the sojourn time must have been at or above `target` before the first drop: a
    /// round-trip time that few flows exceed (RFC 8289 §4.3: 100 ms). Not below `target`.
    pub interval: ControlTime,
    /// Backlog up to which nothing is dropped: the link's largest packet (RFC 8289 §4.2, §5.3).
    pub mtu: PacketSize,
    /// Marks packets of ECN-capable transports instead of dropping them (RFC 8289 §3.1;
    /// tc-codel(8): false).
    pub ecn: bool,
    /// Marks every packet of an ECN-capable transport that has waited for longer than this, as
    /// DCTCP requires, or `"off"` (RFC 8290 §5.2.7: off).
    pub ce_threshold: MarkAbove,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1_000),
            target: TARGET,
            interval: INTERVAL,
            mtu: PacketSize::new(1_500),
            ecn: false,
            ce_threshold: MarkAbove(None),
        }
    }
}

/// RFC 8289 §4.4.
pub(super) const TARGET: ControlTime = ControlTime::from_millis(5);
/// RFC 8289 §4.3.
pub(super) const INTERVAL: ControlTime = ControlTime::from_millis(100);

/// Rejects a target above the interval.
pub(super) fn check(target: ControlTime, interval: ControlTime) -> Result<(), Contradiction> {
    if interval >= target {
        return Ok(());
    }
    Err(Contradiction {
        // Names the key that was written rather than the one left at its default.
        key: if interval == INTERVAL {
            &["target"]
        } else {
            &["interval"]
        },
        message: format!(
            "`interval` ({}) is below `target` ({})",
            interval.get(),
            target.get()
        ),
        expected: "an interval of ten to twenty times the target, as \"100 ms\" is of \"5 ms\""
            .to_owned(),
    })
}

impl QueueParams for Params {
    const CHANGEABLE: &'static [&'static str] =
        &["limit", "target", "interval", "mtu", "ecn", "ce_threshold"];
    fn limit(&self) -> Limit {
        self.limit
    }
    fn limit_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
    fn decides_late(&self) -> bool {
        true
    }
    fn check(&self) -> Result<(), Contradiction> {
        check(self.target, self.interval)
    }
}

impl Params {
    fn settings(&self) -> Settings {
        Settings {
            target: self.target.get(),
            interval: self.interval.get(),
            mtu: self.mtu.get().get(),
            ecn: self.ecn,
            ce_threshold: self.ce_threshold.0,
        }
    }
}

/// A CoDel queue.
#[derive(Debug)]
pub struct Codel {
    limit: Limit,
    settings: Settings,
    control: Control,
    line: Line,
}

impl Codel {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        Self {
            limit: params.limit,
            settings: params.settings(),
            control: Control::NEW,
            line: Line::default(),
        }
    }
}

impl Waiting for Line {
    #[inline]
    fn take(&mut self) -> Option<Item> {
        self.pop()
    }
    #[inline]
    fn bytes(&self) -> u64 {
        Self::bytes(self)
    }
}

impl QueueDiscipline for Codel {
    #[inline]
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        if self.line.has_room(self.limit, &item, cx) {
            self.line.push(item);
        } else {
            cx.drop(item);
        }
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.control.dequeue(&self.settings, &mut self.line, cx)
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        let passes = self.line.has_room(self.limit, item, cx);
        if passes {
            self.control.idle();
        } else {
            cx.drop(*item);
        }
        passes
    }
    #[inline]
    fn ran_out(&mut self, _cx: &mut QueueContext<'_>) {
        self.control.idle();
    }
    #[inline]
    fn len(&self) -> usize {
        self.line.len()
    }
    fn bytes(&self) -> u64 {
        self.line.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }
    fn change(&mut self, to: &Config) {
        if let Config::Codel(params) = to {
            self.limit = params.limit;
            self.settings = params.settings();
        }
    }
}
