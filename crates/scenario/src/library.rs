//! The library of ready paths: links by name, each with the figures of its source.
//!
//! A link with `path = "NAME"` takes the values of that path for keys that it omits. A path is a
//! file in `paths/` of this crate and a line in the list below. Its traces are files in the same
//! folder, and scenarios name them with the prefix `anabranch:`. A file of the user cannot replace
//! a path of the library.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};

use crate::{
    error::{Fault, Place, choice},
    tree::{Entry, Node, Table, Value, parse_document},
};

/// The prefix of names of library files.
const PREFIX: &str = "anabranch:";

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../paths/", $name)))),*] };
}

/// The paths in the order of listing.
const PATHS: &[(&str, &str)] = files![
    "adsl.toml",
    "vdsl.toml",
    "cable.toml",
    "wifi.toml",
    "lte-drive.toml",
    "5g-drive.toml",
    "starlink.toml",
    "geo.toml",
    "transatlantic.toml",
    "data-centre.toml",
];

/// Their traces.
const TRACES: &[(&str, &str)] = files![
    "lte-drive-down.csv",
    "lte-drive-up.csv",
    "5g-drive-down.csv",
    "5g-drive-up.csv",
    "starlink-down.csv",
    "starlink-up.csv",
];

const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// The names of all paths.
fn names() -> impl Iterator<Item = &'static str> {
    PATHS
        .iter()
        .map(|(file, _)| file.strip_suffix(".toml").unwrap_or(file))
}

/// Parses the file of the path `name`.
fn path(name: &str) -> Option<Node> {
    let at = names().position(|known| known == name)?;
    // A test parses all of them.
    parse_document(PATHS[at].1).ok()
}

/// Returns the content of a file of the library if `file` has the library's prefix. The error is
/// the help that lists the existing files.
pub(crate) fn file(file: &str) -> Option<Result<&'static str, Vec<String>>> {
    let name = file.strip_prefix(PREFIX)?;
    let known = TRACES.iter().find(|(known, _)| *known == name);
    Some(known.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<String> = TRACES
            .iter()
            .map(|(name, _)| format!("{PREFIX}{name}"))
            .collect();
        choice(file, &names)
    }))
}

/// A path as listed in the catalog.
pub(crate) struct Described {
    pub name: &'static str,
    pub title: String,
    pub summary: String,
    /// Each source and the values taken from it.
    pub sources: Vec<(String, Vec<String>)>,
    /// Its values by key, and its assumptions.
    pub details: Map<String, Json>,
}

/// Lists every path.
pub(crate) fn described() -> Vec<Described> {
    names()
        .filter_map(|name| Some((name, path(name)?)))
        .map(|(name, node)| Described {
            name,
            title: text(&node, "title"),
            summary: text(&node, "summary"),
            sources: list(&node, "source")
                .iter()
                .map(|source| (text(source, "id"), texts(source, "items")))
                .collect(),
            details: details(&node),
        })
        .collect()
}

fn text(node: &Node, key: &str) -> String {
    match node.find(&[key]).map(|node| &node.value) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match node.find(&[key]).map(|node| &node.value) {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

fn texts(node: &Node, key: &str) -> Vec<String> {
    let said = list(node, key).iter().filter_map(|node| match &node.value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    });
    said.collect()
}

fn details(node: &Node) -> Map<String, Json> {
    let mut details = Map::new();
    let mut add = |prefix: &str, table: &Table| {
        for entry in &table.0 {
            if !DIRECTIONS.contains(&entry.key.as_str()) {
                let value = entry.node.to_json().unwrap_or_default();
                details.insert(format!("{prefix}{}", entry.key), value);
            }
        }
    };
    if let Some(link) = node.find(&["link"]).and_then(Node::as_table) {
        add("", link);
        for direction in DIRECTIONS {
            if let Some(table) = link.get(direction).and_then(Node::as_table) {
                add(&format!("{direction}."), table);
            }
        }
    }
    let assumed = texts(node, "assumed");
    if !assumed.is_empty() {
        details.insert("assumed".to_owned(), assumed.into());
    }
    details
}

/// Returns the values of the path that this link names.
pub(crate) fn values(link: &Node) -> Option<Node> {
    match &link.find(&["path"])?.value {
        Value::String(name) => path(name)?.find(&["link"]).cloned(),
        _ => None,
    }
}

/// Merges the values of each link's path into the scenario.
///
/// # Errors
/// If a link names an unknown path.
pub(crate) fn expanded(root: &Node) -> Result<Cow<'_, Node>, Fault> {
    let links = root.find(&["link"]).and_then(Node::as_table);
    let has_path = |entry: &Entry| entry.node.find(&["path"]).is_some();
    if !links.is_some_and(|links| links.0.iter().any(has_path)) {
        return Ok(Cow::Borrowed(root));
    }
    let mut root = root.clone();
    if let Value::Table(sections) = &mut root.value
        && let Some(links) = sections.get_mut("link")
        && let Value::Table(links) = &mut links.value
    {
        for entry in &mut links.0 {
            if let Value::Table(link) = &mut entry.node.value {
                expand(link)?;
            }
        }
    }
    Ok(Cow::Owned(root))
}

/// Adds the values of the link's path under the link's values.
fn expand(link: &mut Table) -> Result<(), Fault> {
    let Some(Node {
        value: Value::String(name),
        place,
    }) = link.get("path")
    else {
        // The reader of the format refuses other types.
        return Ok(());
    };
    let place = *place;
    let Some(found) = path(name) else {
        return Err(unknown(name).at(place));
    };
    let Some(values) = found.find(&["link"]).and_then(Node::as_table).cloned() else {
        return Ok(());
    };
    let (own, directed): (Vec<Entry>, Vec<Entry>) = values
        .0
        .into_iter()
        .partition(|entry| !DIRECTIONS.contains(&entry.key.as_str()));
    settle_capacity(link, place);
    let mut spread: Vec<(String, [bool; 2])> = Vec::new();
    for entry in directed {
        let way = usize::from(entry.key == DIRECTIONS[1]);
        let Value::Table(table) = entry.node.value else {
            continue;
        };
        for value in table.0 {
            let value = placed(value, place);
            let value = match link.get(&value.key) {
                None => value,
                Some(over) if adds_to(over) => {
                    match spread.iter_mut().find(|(known, _)| *known == value.key) {
                        Some((_, ways)) => ways[way] = true,
                        None => {
                            spread.push((value.key.clone(), std::array::from_fn(|at| at == way)));
                        }
                    }
                    merged(over.clone(), &value)
                }
                Some(_) => continue,
            };
            // The reader of the format refuses a direction that is not a table.
            if let Some(table) = direction(link, DIRECTIONS[way], place) {
                table.add_under(value);
            }
        }
    }
    // A value merged into both directions is removed from the link itself.
    link.0.retain(|entry| {
        !spread
            .iter()
            .any(|(key, ways)| *key == entry.key && *ways == [true; 2])
    });
    for entry in own {
        link.add_under(placed(entry, place));
    }
    Ok(())
}

fn unknown(name: &str) -> Fault {
    let mut fault = Fault::new(format!("there is no path `{name}`"));
    fault.help = choice(name, &names().collect::<Vec<_>>());
    fault
}

/// Resolves the contradiction of `rate` and a trace in `service`: if a link gives one of them, the
/// other is reset, so that the path's value does not apply.
fn settle_capacity(link: &mut Table, place: Place) {
    let settle = |table: &mut Table| {
        for (given, other, none) in [
            ("rate", "service", "fixed"),
            ("service", "rate", "unlimited"),
        ] {
            if table.get(given).is_some() && table.get(other).is_none() {
                table.0.push(Entry {
                    key: other.to_owned(),
                    key_place: place,
                    node: Node {
                        value: Value::String(none.to_owned()),
                        place,
                    },
                });
            }
        }
    };
    for entry in &mut link.0 {
        if DIRECTIONS.contains(&entry.key.as_str())
            && let Value::Table(table) = &mut entry.node.value
        {
            settle(table);
        }
    }
    settle(link);
}

/// Whether a value of the link is merged over the path's: a table without `kind`.
fn adds_to(node: &Node) -> bool {
    node.as_table()
        .is_some_and(|table| table.get("kind").is_none())
}

/// Returns the entry with its value under `over`.
fn merged(over: Node, entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    match (&mut entry.node.value, over.value) {
        (Value::Table(under), Value::Table(over)) => {
            for value in over.0 {
                match under.get_mut(&value.key) {
                    Some(known) => *known = value.node,
                    None => under.0.push(value),
                }
            }
        }
        (under @ Value::String(_), Value::Table(mut over)) => {
            // A bare name is a table with that kind.
            let kind = Node {
                value: under.clone(),
                place: entry.key_place,
            };
            over.0.push(Entry {
                key: "kind".to_owned(),
                key_place: entry.key_place,
                node: kind,
            });
            *under = Value::Table(over);
        }
        (under, over) => *under = over,
    }
    entry
}

/// Returns the entry with every position set to `place`.
fn placed(mut entry: Entry, place: Place) -> Entry {
    fn put(node: &mut Node, place: Place) {
        node.place = place;
        match &mut node.value {
            Value::Table(table) => {
                for entry in &mut table.0 {
                    entry.key_place = place;
                    put(&mut entry.node, place);
                }
            }
            Value::List(list) => list.iter_mut().for_each(|node| put(node, place)),
            _ => {}
        }
    }
    entry.key_place = place;
    put(&mut entry.node, place);
    entry
}

/// Returns the table of this direction, creating it if missing.
fn direction<'a>(link: &'a mut Table, name: &str, place: Place) -> Option<&'a mut Table> {
    if link.get(name).is_none() {
        link.0.push(Entry {
            key: name.to_owned(),
            key_place: place,
            node: Node::table(place),
        });
    }
    match &mut link.get_mut(name)?.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

trait AddUnder {
    /// Adds the entry unless its key exists; if the existing value is a partial table, the entry's
    /// value is merged under it.
    fn add_under(&mut self, entry: Entry);
}

impl AddUnder for Table {
    fn add_under(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|own| own.key == entry.key) {
            Some(own) if adds_to(&own.node) => {
                let key_place = own.key_place;
                own.node = merged(own.node.clone(), &entry).node;
                own.key_place = key_place;
            }
            Some(_) => {}
            None => self.0.push(entry),
        }
    }
}
