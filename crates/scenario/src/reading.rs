//! Reads values of a scenario; removed switches of older versions have a helpful fault.

use anabranch_document::{de, error::Fault, tree::Node};
use anabranch_tcp::settings::REMOVED;

use super::Extensions;

/// Splitters that are modes of the tunnel, and how to write them.
const MODES: [(&str, &str); 2] = [
    (
        "lowest-delay",
        "`kind = \"tunnel\"` without `split` and `restore`, and a class of `mode = \"interactive\"`",
    ),
    (
        "standby",
        "`kind = \"tunnel\"` without `split` and `restore`, and `policies = { ROUTE = \"backup\" }`",
    ),
];

/// Reads a value of the tree. The fault of a removed name states its replacement.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(
    node: &Node,
    names: &Extensions,
) -> Result<T, Fault> {
    de::read(node, names).map_err(|mut fault| {
        let Some(unknown) = &fault.unknown else {
            return fault;
        };
        // Only `transport` has this key, and only the splitters this name.
        let has = |key: &str| unknown.expected.iter().any(|name| name == key);
        let find =
            |names: &'static [(&str, &str)]| names.iter().find(|(name, _)| *name == unknown.name);
        let (noun, removed) = if has("recovery_pace") {
            ("switch", find(REMOVED))
        } else if has("weighted-round-robin") {
            ("splitter", find(&MODES))
        } else {
            return fault;
        };
        let Some((name, instead)) = removed else {
            return fault;
        };
        fault.message = format!("the {noun} `{name}` was removed");
        fault.help = vec![format!("instead: {instead}")];
        fault.unknown = None;
        fault
    })
}
