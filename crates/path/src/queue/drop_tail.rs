//! Drop-tail: first in, first out, with a limit.
//!
//! The limit counts waiting packets, not the packet being sent.
//!
//! # Differs from Linux
//! - `pfifo` does not count the packet that the driver has already taken, and neither does this
//!   queue. A real driver ring (BQL) after it has no counterpart here.
//!
//! # Not implemented
//! - Nothing.

use std::collections::VecDeque;

use anabranch_core::{
    registry::{Meta, Source},
    units::text::Limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Item, QueueContext, QueueDiscipline, QueueParams};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "drop-tail",
    title: "Drop-tail",
    summary: "First in, first out; drops packets that arrive at a full queue.",
    sources: &[Source {
        id: "RFC 7567",
        items: &["§2.1"],
    }],
};

/// Parameter of drop-tail.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets, without the packet being sent: packets, bytes or bandwidth-delay
    /// products (`"100 packets"`, `"64 KiB"`, `"1 bdp"`). By default there is no limit.
    pub limit: Limit,
}

impl QueueParams for Params {
    fn limit(&self) -> Limit {
        self.limit
    }
    fn limit_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
}

/// A drop-tail queue.
#[derive(Debug)]
pub struct DropTail {
    limit: Limit,
    items: VecDeque<Item>,
    bytes: u64,
}

impl DropTail {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        Self {
            limit: params.limit,
            items: VecDeque::new(),
            bytes: 0,
        }
    }
    #[inline]
    pub(super) fn has_room(&self, item: &Item, cx: &QueueContext<'_>) -> bool {
        let packets = self.items.len() as u64 + u64::from(cx.held_packets);
        let bytes = self.bytes + cx.held_bytes + u64::from(item.size);
        self.limit.admits(packets, bytes)
    }
}

impl QueueDiscipline for DropTail {
    #[inline]
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        if self.has_room(&item, cx) {
            self.bytes += u64::from(item.size);
            self.items.push_back(item);
        } else {
            cx.drop(item);
        }
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        let passes = self.has_room(item, cx);
        if !passes {
            cx.drop(*item);
        }
        passes
    }
    #[inline]
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= u64::from(item.size);
        Some(item)
    }
    #[inline]
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }
}
