//! Reads values of a scenario, with what its readers should know of older versions.

use anabranch_document::{de, error::Fault, tree::Node};
use anabranch_tcp::settings::REMOVED;

use super::Extensions;

/// A value of the tree. A switch that was removed is a fault that names its replacement.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(
    node: &Node,
    names: &Extensions,
) -> Result<T, Fault> {
    de::read(node, names).map_err(|fault| {
        let removed = fault.unknown.as_ref().and_then(|unknown| {
            // Only `transport` has it.
            let is_switch = unknown.expected.iter().any(|name| name == "recovery_pace");
            let removed = REMOVED.iter().find(|(name, _)| *name == unknown.name);
            removed.filter(|_| is_switch)
        });
        match removed {
            Some((name, instead)) => Fault {
                message: format!("the switch `{name}` was removed"),
                help: vec![format!("instead: {instead}")],
                unknown: None,
                ..fault
            },
            None => fault,
        }
    })
}
