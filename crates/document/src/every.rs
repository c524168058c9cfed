//! All errors of a document, not only the first.
//!
//! Reading stops at an error. The erroneous value is removed from a copy of the tree, and the rest
//! is read again. This ends when no error is left, or when a further error could result from a
//! removal: a key that is now missing, a network without one of its links.

use crate::{
    error::{Error, MOST, Place},
    tree::{Node, Value},
};

/// An error and its type.
#[derive(Debug, Clone)]
pub struct Wrong {
    /// The error.
    pub error: Error,
    /// A key is missing.
    pub is_missing: bool,
    /// Each value is valid, but they contradict each other.
    pub is_of_many: bool,
}

/// Tables and keys that other tables depend on: if one of these was removed, contradictions between
/// values may be consequences.
#[derive(Debug, Clone, Copy)]
pub struct Joints<'a> {
    /// Sections whose tables others name.
    pub sections: &'a [&'a str],
    /// Keys of these tables that others depend on.
    pub keys: &'a [&'a str],
}

/// All errors of a document, in the order in which `wrong` finds them. `first` is the first error.
pub fn errors(
    root: &Node,
    first: Error,
    joints: Joints<'_>,
    wrong: &dyn Fn(&Node) -> Option<Wrong>,
) -> Error {
    let mut rest = Rest {
        root: root.clone(),
        joints,
        spoiled: Vec::new(),
        emptied: Vec::new(),
        has_lost_tables: false,
        has_all_joints: true,
    };
    let mut found = vec![first.clone()];
    let mut place = first.place();
    while found.len() < MOST && rest.cut(place) {
        let Some(next) = wrong(&rest.root) else { break };
        place = next.error.place();
        // An error in two tables that results from one line counts once.
        if !rest.follows(&next) && !found.contains(&next.error) {
            found.push(next.error);
        }
    }
    Error::all(found).unwrap_or(first)
}

/// The path of a value, list elements by index.
type Keys = Vec<String>;

/// The rest of a document.
struct Rest<'a> {
    root: Node,
    joints: Joints<'a>,
    /// The tables from which a value was removed.
    spoiled: Vec<Keys>,
    /// The tables from which all keys were removed, none of which was valid.
    emptied: Vec<Keys>,
    /// Whole tables were removed.
    has_lost_tables: bool,
    has_all_joints: bool,
}

impl Rest<'_> {
    /// Whether an error may be a consequence of the removals.
    fn follows(&self, wrong: &Wrong) -> bool {
        let keys = keys_of(&self.root, wrong.error.place()).unwrap_or_default();
        if wrong.is_missing {
            return self.spoiled.contains(&keys);
        }
        if !wrong.is_of_many {
            return false;
        }
        // Any other value affects only its own table.
        let of_its_table = |spoiled: &Keys| spoiled.iter().zip(&keys).take(2).all(|(a, b)| a == b);
        !self.has_all_joints
            || self.spoiled.iter().any(of_its_table)
            || self.emptied.contains(&keys)
            || (self.has_lost_tables && keys.len() < 2)
    }

    /// Removes the value or key at this position; `false` if there is none.
    fn cut(&mut self, place: Place) -> bool {
        let Some(mut keys) = keys_of(&self.root, place) else {
            return false;
        };
        let is_name = keys.last().is_some_and(|key| {
            let table = find(&self.root, &keys[..keys.len() - 1]).and_then(Node::as_table);
            let entry = table.and_then(|table| table.entry(key));
            entry.is_some_and(|entry| entry.key_place == place && entry.node.place != place)
        });
        // A list of fixed length is removed as a whole, because it cannot have gaps.
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
        let is_whole_table = keys.len() == 2
            && find(&self.root, &keys).is_some_and(|node| node.as_table().is_some());
        let is_joint = self.joints.sections.contains(&keys[0].as_str());
        let holds_more = find(&self.root, parents)
            .and_then(Node::as_table)
            .is_none_or(|table| table.0.len() > 1);
        if is_whole_table {
            self.has_lost_tables = true;
        } else if !is_name {
            self.spoiled.push(parents.to_vec());
        } else if !holds_more {
            self.emptied.push(parents.to_vec());
        }
        if is_joint && (is_whole_table || self.joints.keys.contains(&key.as_str())) {
            self.has_all_joints = false;
        }
        remove(&mut self.root, parents, key)
    }
}

fn find<'a>(root: &'a Node, keys: &[String]) -> Option<&'a Node> {
    root.find(&keys.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The path of the innermost value, or key, at this position.
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
