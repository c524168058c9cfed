//! A link's place in a network.

use std::collections::{BTreeMap, BinaryHeap};

use anabranch_core::{
    rng::Stream,
    trace::ElementId,
    units::{Instant, text::Limit},
};
use anabranch_elements::{
    link::{
        PlainLink, ServedLink, Window,
        served::{Impaired, Parts},
        service::{AnyService, Fixed},
    },
    queue::reorder::Queue,
};

use super::{
    super::fabric::{LinkKind, LinkSlot, ServedSlot},
    LinkSpec,
};

pub(super) fn link_slot(
    spec: LinkSpec,
    plain: Option<Limit>,
    seed: u64,
    window: Window,
    (ring, own_ring): (u32, u32),
    next_element: &mut impl FnMut() -> ElementId,
    names: &mut Vec<String>,
) -> LinkSlot {
    let element = next_element();
    names.push(spec.name.clone());
    let mut kinds = BTreeMap::<String, usize>::new();
    let impairments: Vec<Impaired> = spec
        .impairments
        .iter()
        .map(|config| {
            let kind = config.name().to_owned();
            let count = kinds.entry(kind.clone()).or_default();
            let name = format!("{}.impair.{kind}.{count}", spec.name);
            *count += 1;
            let impaired = Impaired::new(next_element(), config.build(), Stream::new(seed, &name));
            names.push(name);
            impaired
        })
        .collect();
    let kind = if let Some(limit) = plain {
        LinkKind::Plain(PlainLink::new(spec.rate, spec.delay, limit))
    } else {
        let link = ServedLink::new(Parts {
            queue: Queue::new(spec.queue.build(), spec.reorder),
            service: spec
                .service
                .map_or(AnyService::Fixed(Fixed::new(spec.rate)), AnyService::Boxed),
            delay: spec.delay,
            impairments,
            up: spec.up,
            may_change: spec.may_change,
            stream: Stream::new(seed, &spec.name),
            window,
        });
        LinkKind::Served(Box::new(ServedSlot {
            completion_armed: Instant::NEVER,
            unordered: link.reorders().then(BinaryHeap::new),
            armed: Instant::NEVER,
            link,
        }))
    };
    LinkSlot {
        ring: match &kind {
            // What may overtake waits in a heap of its own.
            LinkKind::Served(slot) if slot.unordered.is_some() => own_ring,
            _ => ring,
        },
        own_ring,
        kind,
        element,
    }
}
