//! Every error of a scenario, not the first alone.
//!
//! Reading stops at an error. What is wrong is cut out of a copy of the tree, and the rest is read again, until nothing is
//! wrong or a further error could follow from the cut: a key that is missing since, a network without one of its links.

use super::{
    Error, Extensions,
    de::read,
    error::{Place, Sources},
    format::File,
    resolve::resolve,
    tree::{Node, Value},
};

/// The most errors that are reported at once.
pub(super) const MOST: usize = 20;

/// What [`super::Scenario::resolve`] finds wrong, in the order in which it reads; `first` is what it found first.
pub(super) fn errors(
    root: &Node,
    sources: &Sources,
    extensions: &Extensions,
    seed: Option<u64>,
    first: Error,
) -> Error {
    let mut rest = Rest {
        root: root.clone(),
        spoiled: Vec::new(),
        has_lost_tables: false,
        has_whole_network: true,
    };
    let mut found = vec![first.clone()];
    let mut place = first.place();
    while found.len() < MOST && rest.cut(place) {
        let Some(wrong) = rest.wrong(sources, extensions, seed) else {
            break;
        };
        place = wrong.error.place();
        if !rest.follows(&wrong) {
            found.push(wrong.error);
        }
    }
    Error::all(found).unwrap_or(first)
}

/// An error, and what it is about.
struct Wrong {
    error: Error,
    /// A key is missing.
    is_missing: bool,
    /// Each value is right by itself; they do not fit together.
    is_of_many: bool,
}

/// The path of a value, list elements by index.
type Keys = Vec<String>;

/// What is left of a scenario.
struct Rest {
    root: Node,
    /// The tables that have lost a value.
    spoiled: Vec<Keys>,
    /// Tables have gone whole.
    has_lost_tables: bool,
    /// No link, group, gateway or host has gone, and none has lost its ends.
    has_whole_network: bool,
}

impl Rest {
    fn wrong(
        &self,
        sources: &Sources,
        extensions: &Extensions,
        seed: Option<u64>,
    ) -> Option<Wrong> {
        let place = self.root.place;
        if let Err(fault) = read::<File>(&self.root, extensions) {
            let is_missing = fault.is_missing;
            let fault = super::resolve::mistyped_table(&self.root, fault);
            return Some(Wrong {
                error: sources.fault(fault, place),
                is_missing,
                is_of_many: false,
            });
        }
        let error = resolve(&self.root, sources, extensions, seed).err()?;
        Some(Wrong {
            error,
            is_missing: false,
            is_of_many: true,
        })
    }

    /// Whether an error may be there only because of what was cut.
    fn follows(&self, wrong: &Wrong) -> bool {
        let keys = keys_of(&self.root, wrong.error.place()).unwrap_or_default();
        if wrong.is_missing {
            return self.spoiled.contains(&keys);
        }
        if !wrong.is_of_many {
            return false;
        }
        // Nothing else depends on a value of a flow, or of a change in mid-run.
        let of_its_table = |spoiled: &Keys| spoiled.iter().zip(&keys).take(2).all(|(a, b)| a == b);
        !self.has_whole_network
            || self.spoiled.iter().any(of_its_table)
            || (self.has_lost_tables && keys.len() < 2)
    }

    /// Takes what stands at this place out; `false` if there is no such thing.
    fn cut(&mut self, place: Place) -> bool {
        let Some(mut keys) = keys_of(&self.root, place) else {
            return false;
        };
        let is_name = keys.last().is_some_and(|key| {
            let table = find(&self.root, &keys[..keys.len() - 1]).and_then(Node::as_table);
            let entry = table.and_then(|table| table.entry(key));
            entry.is_some_and(|entry| entry.key_place == place && entry.node.place != place)
        });
        // A list of a fixed length has no gaps.
        let in_list = keys.len() > 1
            && matches!(
                find(&self.root, &keys[..keys.len() - 1]).map(|node| &node.value),
                Some(Value::List(list)) if !list.iter().all(|item| item.as_table().is_some())
            );
        if in_list {
            keys.pop();
        }
        let Some((key, parents)) = keys.split_last() else {
            return false;
        };
        let is_whole_table = keys.len() == 2;
        let is_of_network = ["link", "group", "gateway", "host"].contains(&keys[0].as_str());
        if is_whole_table {
            self.has_lost_tables = true;
        } else if !is_name {
            self.spoiled.push(parents.to_vec());
        }
        if is_of_network && (is_whole_table || key == "between") {
            self.has_whole_network = false;
        }
        remove(&mut self.root, parents, key)
    }
}

fn find<'a>(root: &'a Node, keys: &[String]) -> Option<&'a Node> {
    root.find(&keys.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The innermost value, or key, that is written at this place.
fn keys_of(node: &Node, place: Place) -> Option<Keys> {
    let of = |key: String, node: &Node, is_here: bool| {
        let inner = keys_of(node, place);
        let path = inner.or_else(|| is_here.then(Keys::new))?;
        Some([vec![key], path].concat())
    };
    match &node.value {
        Value::Table(table) => table.0.iter().find_map(|entry| {
            let is_here = [entry.key_place, entry.node.place].contains(&place);
            of(entry.key.clone(), &entry.node, is_here)
        }),
        Value::List(list) => (0..)
            .zip(list)
            .find_map(|(i, item): (usize, &Node)| of(i.to_string(), item, item.place == place)),
        _ => None,
    }
}

fn remove(root: &mut Node, parents: &[String], end: &str) -> bool {
    let mut node = root;
    for key in parents {
        let inner = match &mut node.value {
            Value::Table(table) => table.get_mut(key),
            Value::List(list) => key.parse().ok().and_then(|i: usize| list.get_mut(i)),
            _ => None,
        };
        let Some(inner) = inner else { return false };
        node = inner;
    }
    match &mut node.value {
        Value::Table(table) => {
            let before = table.0.len();
            table.0.retain(|entry| entry.key != end);
            table.0.len() < before
        }
        Value::List(list) => match end.parse::<usize>() {
            Ok(i) if i < list.len() => {
                list.remove(i);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
