//! Paths such as `link.bottleneck.forward.queue.reorder.interval`: parsing, and setting the value
//! at a path.

use std::ops::Range;

use anabranch_path::queue;

use super::{
    error::{Fault, Place, choice},
    library,
    tree::{Entry, Node, Table, Value, parse_value},
};

/// The maximum depth of a path; no path of the format has half of it.
const MAX_DEPTH: usize = 32;

/// Keys with a list as value. If such a key is missing, a path cannot lead to an element of it.
const LISTS: &[&str] = &["impair", "route", "return_route", "routes"];

/// A parsed TOML dotted key.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub name: String,
    pub place: Place,
}

impl Path {
    /// Parses `text`, which begins at byte `offset` of source `source`.
    pub(super) fn parse(source: u32, offset: usize, text: &str) -> Result<Self, Fault> {
        let place =
            |range: Range<usize>| Place::new(source, range.start + offset..range.end + offset);
        let mut segments = Vec::new();
        let mut at = 0;
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            let (name, length) = segment(&text[at..]).ok_or_else(|| {
                let fault = Fault::new(format!("{text:?} is no path"))
                    .help("expected names joined by dots, for example `flow.main.cc`");
                quoted(text)
                    .into_iter()
                    .fold(fault, Fault::help)
                    .at(place(at..text.len()))
            })?;
            segments.push(Segment {
                name,
                place: place(at..at + length),
            });
            at += length;
            let rest = text[at..].trim_start();
            if rest.is_empty() {
                break;
            }
            let Some(after) = rest.strip_prefix('.') else {
                let fault = Fault::new(format!("{text:?} is no path"))
                    .help("expected a dot between two names");
                return Err(quoted(text)
                    .into_iter()
                    .fold(fault, Fault::help)
                    .at(place(at..text.len())));
            };
            at = text.len() - after.len();
        }
        if segments.len() > MAX_DEPTH {
            return Err(Fault::new(format!("a path has at most {MAX_DEPTH} names"))
                .at(place(0..text.len())));
        }
        Ok(Self { segments })
    }

    /// Parses a key of the file; the position of every segment is the whole key.
    pub(super) fn of_key(key: &str, key_place: Place) -> Result<Self, Fault> {
        let mut path = Self::parse(key_place.source, 0, key).map_err(|mut fault| {
            fault.place = Some(key_place);
            fault
        })?;
        for segment in &mut path.segments {
            segment.place = key_place;
        }
        Ok(path)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.segments.iter().map(|s| s.name.as_str()).collect()
    }

    /// Returns the path with one more name, inserted before the one at `position`.
    pub(super) fn with(&self, position: usize, name: &str) -> Self {
        let mut segments = self.segments.clone();
        let place = segments[position].place;
        segments.insert(
            position,
            Segment {
                name: name.to_owned(),
                place,
            },
        );
        Self { segments }
    }

    /// The plain spelling.
    pub(super) fn text(&self) -> String {
        self.names().join(".")
    }

    /// Sets `value` at the path. Missing tables are created. A value that a direction inherits from
    /// its link is copied before a part of it changes. A bare name becomes a table with that `kind`
    /// before a parameter is added.
    pub(super) fn set(&self, root: &mut Node, value: Node) -> Result<(), Fault> {
        let library = self.library(root);
        if let Some(library) = &library {
            self.copy_list(root, library);
        }
        self.copy_inherited(root);
        let unknown = self.unknown_table(root);
        let (last, way) = self.segments.split_last().expect("a path has a segment");
        let mut node = root;
        for (depth, segment) in way.iter().enumerate() {
            if LISTS.contains(&segment.name.as_str())
                && node
                    .as_table()
                    .is_some_and(|table| table.get(&segment.name).is_none())
            {
                return Err(unknown.unwrap_or_else(|| self.empty_list(depth)));
            }
            let next = &self.segments[depth + 1];
            let kind = self
                .default_kind(depth)
                .filter(|_| next.name != "kind" && !library.as_ref().is_some_and(has_queue));
            node = step(node, segment, next, kind.as_deref())?;
        }
        match &mut node.value {
            Value::Table(table) => {
                match table.get_mut(&last.name) {
                    Some(old) => *old = value,
                    None => table.0.push(Entry {
                        key: last.name.clone(),
                        key_place: last.place,
                        node: value,
                    }),
                }
                Ok(())
            }
            Value::List(elements) => {
                let index = index(elements, last)?;
                elements[index] = value;
                Ok(())
            }
            _ => unreachable!("a step ends in a table or a list"),
        }
    }

    /// The default `kind` of the table at `depth`, if the file omits it.
    fn default_kind(&self, depth: usize) -> Option<String> {
        let names = self.segments[..=depth].iter().map(|s| s.name.as_str());
        let names: Vec<&str> = names.collect();
        let queue = matches!(
            names[..],
            ["link" | "group", _, "queue"] | ["link" | "group", _, "forward" | "reverse", "queue"]
        );
        queue.then(|| queue::Config::default().name().to_owned())
    }

    /// The values of the ready path of the link that this path leads into.
    fn library(&self, root: &Node) -> Option<Node> {
        match self.names()[..] {
            ["link", name, _, _, ..] => library::values(root.find(&["link", name])?),
            _ => None,
        }
    }

    /// Copies the list of a link's ready path into the link, for a path `link.NAME.impair.…`.
    fn copy_list(&self, root: &mut Node, library: &Node) {
        let names = self.names();
        let Some(depth) = names.iter().position(|name| LISTS.contains(name)) else {
            return;
        };
        let inherited = (depth == 3).then(|| library.find(&[names[3]])).flatten();
        let list = library.find(&names[2..=depth]).or(inherited);
        if let Some(list) = list.filter(|_| root.find(&names[..=depth]).is_none()) {
            let whole = Self {
                segments: self.segments[..=depth].to_vec(),
            };
            // If this fails, so does setting the whole path, with the better position.
            let _ = whole.set(root, list.clone());
        }
    }

    /// The fault of a path into a link, a flow, … that does not exist. It is only used for paths
    /// that cannot create it.
    fn unknown_table(&self, root: &Node) -> Option<Fault> {
        let [section, table, ..] = &self.segments[..] else {
            return None;
        };
        let tables = root.find(&[&section.name])?.as_table()?;
        tables.get(&table.name).is_none().then(|| {
            no_such(&section.name, &table.name, root, |other| {
                other.node.place.is_in_file()
            })
            .at(table.place)
        })
    }

    /// The fault of a path into a list that does not exist.
    fn empty_list(&self, depth: usize) -> Fault {
        let whole = self.names()[..=depth].join(".");
        let segment = &self.segments[depth];
        Fault::new(format!("`{}` is empty; set the whole list", segment.name))
            .help(format!("expected a list, `{whole} = […]`"))
            .at(segment.place)
    }

    /// Copies `link.NAME.KEY` into the direction, for a path such as `link.NAME.forward.KEY.…`.
    fn copy_inherited(&self, root: &mut Node) {
        let names = self.names();
        let [
            "link" | "group",
            name,
            direction @ ("forward" | "reverse"),
            key,
            _,
            ..,
        ] = names[..]
        else {
            return;
        };
        let Some(link) = root.find(&[names[0], name]) else {
            return;
        };
        if link.find(&[direction, key]).is_some() {
            return;
        }
        let Some(inherited) = link.find(&[key]).cloned() else {
            return;
        };
        let short = Self {
            segments: self.segments[..4].to_vec(),
        };
        // If this fails, so does setting the whole path, with the better position.
        let _ = short.set(root, inherited);
    }
}

/// Whether a ready path has a queue, so that a path sets a part of it.
fn has_queue(library: &Node) -> bool {
    [&["queue"][..], &["forward", "queue"], &["reverse", "queue"]]
        .iter()
        .any(|path| library.find(path).is_some())
}

/// Moves from `node` to the child `segment`, and turns it into a table or a list that can hold
/// `next`. A missing child becomes a table, with `kind` if given.
fn step<'a>(
    node: &'a mut Node,
    segment: &Segment,
    next: &Segment,
    kind: Option<&str>,
) -> Result<&'a mut Node, Fault> {
    let child = match &mut node.value {
        Value::Table(table) => {
            let known = table.0.iter().position(|entry| entry.key == segment.name);
            let at = known.unwrap_or_else(|| {
                let mut node = Node::table(segment.place);
                if let (Some(kind), Value::Table(made)) = (kind, &mut node.value) {
                    made.0.push(kind_entry(kind, segment.place));
                }
                table.0.push(Entry {
                    key: segment.name.clone(),
                    key_place: segment.place,
                    node,
                });
                table.0.len() - 1
            });
            &mut table.0[at].node
        }
        Value::List(list) => {
            let index = index(list, segment)?;
            &mut list[index]
        }
        _ => unreachable!("the step before made this a table or a list"),
    };
    match &child.value {
        Value::Table(_) | Value::List(_) => {}
        Value::String(name) => {
            *child = Node {
                value: Value::Table(Table(vec![kind_entry(name, child.place)])),
                place: segment.place,
            };
        }
        _ => {
            return Err(Fault::new(format!(
                "`{}` is {} and has no `{}`",
                segment.name,
                child.noun(),
                next.name
            ))
            .help("expected a path to a value, or into a table or a list")
            .at(next.place));
        }
    }
    Ok(child)
}

/// `kind = NAME`
fn kind_entry(name: &str, place: Place) -> Entry {
    Entry {
        key: "kind".to_owned(),
        key_place: place,
        node: Node {
            value: Value::String(name.to_owned()),
            place,
        },
    }
}

fn index(list: &[Node], segment: &Segment) -> Result<usize, Fault> {
    match segment.name.parse::<usize>() {
        Ok(index) if index < list.len() => Ok(index),
        Ok(index) => Err(
            Fault::new(format!("there is no element {index} in this list"))
                .help(match list.len() {
                    0 => "the list is empty: set it as a whole".to_owned(),
                    1 => "the list has one element, 0".to_owned(),
                    n => format!("expected an index from 0 to {}", n - 1),
                })
                .at(segment.place),
        ),
        Err(_) => Err(
            Fault::new(format!("`{}` is no index into a list", segment.name))
                .help("expected a whole number, 0 for the first element")
                .at(segment.place),
        ),
    }
}

/// Returns the name at the beginning of `text`, and its length as written.
fn segment(text: &str) -> Option<(String, usize)> {
    let quote = text.chars().next()?;
    if quote == '"' || quote == '\'' {
        let mut escaped = false;
        let close = text[1..].find(|c| {
            let closes = c == quote && !escaped;
            escaped = c == '\\' && !escaped && quote == '"';
            closes
        })?;
        let written = &text[..close + 2];
        return match parse_value(0, 0, written).ok()?.value {
            Value::String(name) => Some((name, written.len())),
            _ => None,
        };
    }
    let length = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(text.len());
    (length > 0).then(|| (text[..length].to_owned(), length))
}

/// Help for a path of names that need quotation marks; `None` if quoting would not make it valid.
fn quoted(text: &str) -> Option<String> {
    let names: Vec<_> = text.split('.').map(str::trim).collect();
    let fits = |name: &&str| {
        !name.is_empty() && !name.contains(['"', '\'', '\\']) && !name.contains(char::is_control)
    };
    let is_bare = |name: &str| segment(name).is_some_and(|(_, length)| length == name.len());
    // The first name is a section or a key of the format: if it is not bare, the mistake is
    // another.
    if !names.iter().all(fits) || !is_bare(names[0]) {
        return None;
    }
    let written: Vec<_> = names
        .iter()
        .map(|name| {
            if is_bare(name) {
                (*name).to_owned()
            } else {
                format!("\"{name}\"")
            }
        })
        .collect();
    Some(format!(
        "other characters need quotation marks: `{}`",
        written.join(".")
    ))
}

/// Splits `PATH=VALUE` at the first `=` outside quotation marks.
pub(super) fn split_set(text: &str) -> Option<(&str, usize)> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) => {
                if c == open && !escaped {
                    quote = None;
                }
                escaped = c == '\\' && !escaped && open == '"';
            }
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '=' => return Some((&text[..at], at + 1)),
            None => {}
        }
    }
    None
}

/// The fault of an unknown name in the table `section`; `offer` filters the suggestions.
pub(super) fn no_such(
    section: &str,
    name: &str,
    root: &Node,
    offer: impl Fn(&Entry) -> bool,
) -> Fault {
    let names: Vec<&str> = root
        .find(&[section])
        .and_then(Node::as_table)
        .map(|table| {
            table
                .0
                .iter()
                .filter(|entry| offer(entry))
                .map(|entry| entry.key.as_str())
                .collect()
        })
        .unwrap_or_default();
    let mut fault = Fault::new(format!("there is no {section} `{name}`"));
    fault.help = choice(name, &names);
    fault
}
