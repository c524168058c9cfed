//! Reads values of a scenario; removed switches of older versions have a helpful fault.

use anabranch_document::{de, error::Fault, tree::Node};
use anabranch_tcp::settings::REMOVED;

use super::Extensions;

/// Reads a value of the tree. The fault of a removed switch names its replacement.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(
    node: &Node,
    names: &Extensions,
) -> Result<T, Fault> {
    de::read(node, names).map_err(|fault| {
        let removed = fault.unknown.as_ref().and_then(|unknown| {
            // Only `transport` has this key.
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
