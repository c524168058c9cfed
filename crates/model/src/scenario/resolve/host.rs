//! What end hosts add.

use std::collections::BTreeSet;

use anabranch_core::units::Duration;

use super::{Resolver, route::Graph};
use crate::scenario::{
    error::{Error, choice},
    format::File,
};

/// How long each node takes over a packet that it sends, at most.
pub(super) fn processing_jitter(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
) -> Result<Vec<Duration>, Error> {
    let mut longest = vec![Duration::ZERO; graph.nodes.len()];
    for (name, host) in &file.host.0 {
        let Some(node) = graph.find(name) else {
            return Err(resolver.error(
                &["host", name],
                format!("no link leads to a node `{name}`"),
                choice(name, &graph.nodes),
            ));
        };
        let ends = file
            .flow
            .0
            .iter()
            .flat_map(|(_, flow)| [&flow.from, &flow.to]);
        if !host.processing_jitter.is_zero() && !ends.clone().any(|end| end == name) {
            return Err(resolver.error(
                &["host", name, "processing_jitter"],
                format!("no flow begins or ends at `{name}`: it sends no packet of its own"),
                choice(
                    name,
                    &ends
                        .collect::<BTreeSet<_>>()
                        .into_iter()
                        .collect::<Vec<_>>(),
                ),
            ));
        }
        longest[node] = host.processing_jitter;
    }
    Ok(longest)
}
