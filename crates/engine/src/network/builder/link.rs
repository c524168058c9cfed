//! A link's place in a network.

use std::collections::{BTreeMap, BinaryHeap};

use anabranch_core::{
    rng::Stream,
    units::{Instant, text::Limit},
};
use anabranch_path::{
    group::Members,
    link::{
        PlainLink, ServedLink, Window,
        served::{Impaired, Parts},
        service::AnyService,
    },
    queue,
};

use super::{
    super::fabric::{LinkKind, LinkSlot, ServedSlot},
    Elements, LinkSpec,
};

/// The context for placing a link.
pub(super) struct LinkPlacing<'a> {
    /// The limit of its queue, if the link is plain.
    pub plain: Option<Limit>,
    /// See [`super::feed::shared_rings`].
    pub rings: (u32, u32),
    pub seed: u64,
    /// The measured window.
    pub window: Window,
    /// Whether packets are logged.
    pub records_waits: bool,
    /// See [`queue::Init::flows`].
    pub flow_names: &'a [String],
    /// See [`queue::Init::hosts`].
    pub hosts: &'a [[u32; 2]],
}

impl LinkPlacing<'_> {
    pub(super) fn slot(self, spec: LinkSpec, elements: &mut Elements) -> LinkSlot {
        let Self {
            plain,
            rings: (ring, own_ring),
            seed,
            window,
            records_waits,
            flow_names,
            hosts,
        } = self;
        let element = elements.add(spec.name.clone());
        let mut kinds = BTreeMap::<String, usize>::new();
        let impairments: Vec<Impaired> = spec
            .link
            .impair
            .iter()
            .map(|config| {
                let kind = config.name().to_owned();
                let count = kinds.entry(kind.clone()).or_default();
                let name = format!("{}.impair.{kind}.{count}", spec.name);
                *count += 1;
                let stream = Stream::new(seed, &name);
                Impaired::new(elements.add(name), config.build(), stream)
            })
            .collect();
        let kind = if let Some(limit) = plain {
            LinkKind::Plain(PlainLink::new(spec.link.rate, spec.link.delay, limit))
        } else {
            let own_service =
                || (spec.link).service(Stream::new(seed, &format!("{}.service", spec.name)));
            let parts = Parts {
                queue: spec.link.queue.build(&queue::Init {
                    rate: spec.total_rate(),
                    flows: flow_names,
                    hosts,
                }),
                service: spec.service.map_or_else(own_service, AnyService::Boxed),
                impairments,
                may_change: spec.may_change,
                stream: Stream::new(seed, &spec.name),
                window,
                records_waits,
                group: spec
                    .group
                    .map(|group| Members::new(group.members, group.spread, group.idle, window)),
            };
            let link = ServedLink::new(spec.link, parts);
            LinkKind::Served(Box::new(ServedSlot {
                completion_armed: Instant::NEVER,
                unordered: link.reorders().then(BinaryHeap::new),
                armed: Instant::NEVER,
                group: None,
                link,
            }))
        };
        LinkSlot {
            ring: match &kind {
                // Packets that may overtake each other are in a separate heap.
                LinkKind::Served(slot) if slot.unordered.is_some() => own_ring,
                _ => ring,
            },
            own_ring,
            kind,
            element,
        }
    }
}
