//! A stand-in for RED: first in, first out, and Congestion Experienced above a threshold.
//!
//! Every ECN-capable packet that finds so many waiting is marked (RFC 3168 §5); there is no
//! averaging and nothing random. It travels through the seam for queues from outside the
//! workspace, so a boxed call per packet is part of what is measured.
//!
//! # Not implemented
//! - RED's average, its linear law and its drops (Floyd and Jacobson 1993).

use std::{collections::VecDeque, sync::Arc};

use anabranch::{
    QueueDiscipline,
    queue::{Config, Custom, Item, QueueContext},
};

/// Marks from `threshold` waiting packets on; `limit` may wait at most.
pub fn config(threshold: u64, limit: u64) -> Config {
    Config::Custom(Custom {
        name: "marking".to_owned(),
        params: serde_json::json!({ "threshold": threshold, "limit": limit }),
        build: Arc::new(move |_init| {
            Box::new(Marking {
                threshold,
                limit,
                items: VecDeque::new(),
                bytes: 0,
            })
        }),
    })
}

#[derive(Debug)]
struct Marking {
    threshold: u64,
    limit: u64,
    items: VecDeque<Item>,
    bytes: u64,
}

impl QueueDiscipline for Marking {
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        let waiting = self.items.len() as u64 + u64::from(cx.held_packets);
        if waiting >= self.limit {
            cx.drop(item);
            return;
        }
        if waiting >= self.threshold {
            cx.mark(&mut item);
        }
        self.bytes += u64::from(item.size);
        self.items.push_back(item);
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= u64::from(item.size);
        Some(item)
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
