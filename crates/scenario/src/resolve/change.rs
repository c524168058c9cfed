//! Changes in mid-run.

use std::collections::BTreeMap;

use anabranch_core::{
    packet::Direction,
    units::{Instant, text::LinkRate},
};

use super::{
    Change, Hop, ResolvedDirection, ResolvedGateway, ResolvedLink, Resolver, What,
    link::{self, Kept},
    round_trip,
    route::Routes,
    wire::Wire,
};
use crate::{
    error::{Error, Fault, nearest},
    format::{Anything, At, File, Group, Named, Queue},
    kind::Kind,
    path::{Path, no_such},
    reading::read,
    tree::{Entry, Node},
    types::queue,
};

/// All changes. Each is set in the tree like a value on the command line; what then differs on
/// the link is what changes.
pub(super) fn changes(
    resolver: &Resolver<'_>,
    file: &File,
    links: &[ResolvedLink],
    gateways: &[ResolvedGateway],
    routes: &[Routes],
) -> Result<Vec<Change>, Error> {
    if file.at.is_empty() {
        return Ok(Vec::new());
    }
    let mut order: Vec<(usize, &At)> = file.at.iter().enumerate().collect();
    order.sort_by_key(|(_, at)| at.time);
    let mut tree = resolver.root.clone();
    let mut now: Vec<[ResolvedDirection; 2]> =
        links.iter().map(|link| link.directions.clone()).collect();
    let mut changes = Vec::new();
    for (nth, &(position, at)) in order.iter().enumerate() {
        let index = position.to_string();
        if at.time >= file.duration {
            return Err(resolver.error(
                &["at", &index, "time"],
                format!(
                    "this change at {} is never made: the run ends at {}",
                    at.time, file.duration
                ),
                vec!["expected a time before `duration`".to_owned()],
            ));
        }
        let set = resolver
            .root
            .find(&["at", &index, "set"])
            .and_then(Node::as_table);
        let mut given = Given::default();
        for entry in set.into_iter().flat_map(|table| &table.0) {
            let place = entry.key_place;
            let fail = |fault: Fault| resolver.sources.fault(fault, place);
            let path = Path::of_key(&entry.key, place).map_err(fail)?;
            let link_index = changeable(&path, entry, links, resolver.root)
                .map_err(|fault| fail(fault.at(place)))?;
            given
                .add(&path, entry)
                .map_err(|fault| fail(fault.at(place)))?;
            path.set(&mut tree, entry.node.clone()).map_err(fail)?;
            let later = Resolver {
                root: &tree,
                ..*resolver
            };
            let link = &links[link_index];
            let name = &link.name;
            let node = tree
                .find(&[link.section(), name])
                .expect("the link is there");
            let wire = if link.group.is_some() {
                let table: Group = read(node, resolver.extensions).map_err(fail)?;
                Wire::of_group(name, &table)
            } else {
                Wire::of_link(name, read(node, resolver.extensions).map_err(fail)?)
            };
            for direction in Direction::BOTH {
                let before = &mut now[link_index][direction as usize];
                let kept = Kept {
                    trace: before.trace.clone(),
                    impair: std::mem::take(&mut before.impair),
                };
                let mut after =
                    link::direction(&later, &wire, direction, before.base_rtt, Some(kept))?;
                if !path.names().contains(&"queue") {
                    // A limit of one bdp stays the bytes that it was when it was set.
                    after.queue = before.queue.clone();
                }
                let differences =
                    differences(before, &after).map_err(|what| fail(cannot(&what).at(place)))?;
                changes.extend(differences.into_iter().map(|what| Change {
                    time: Instant::START.saturating_add(at.time),
                    link: link_index,
                    direction,
                    what,
                }));
                *before = after;
            }
        }
        let more_at_once = order
            .get(nth + 1)
            .is_some_and(|(_, next)| next.time == at.time);
        let direction = |hop: &Hop| &now[hop.link][hop.direction as usize];
        if let Some(flow) = round_trip::without_time(file, gateways, routes, direction)
            && !more_at_once
        {
            return Err(resolver.error(
                &["at", &index],
                format!("from here on the round trip of the flow `{flow}` takes no time"),
                vec![round_trip::HELP.to_owned()],
            ));
        }
    }
    Ok(changes)
}

/// What one `[[at]]` sets, by section, link and key of the link.
#[derive(Default)]
struct Given<'a>(BTreeMap<[String; 3], Vec<Setting<'a>>>);

/// A direction, if any, the rest of the path, and the entry.
type Setting<'a> = (Option<String>, Vec<String>, &'a Entry);

impl<'a> Given<'a> {
    /// Refuses what contradicts an earlier entry: a table has no order that would say which of them holds. Equal values
    /// do not contradict each other.
    fn add(&mut self, path: &Path, entry: &'a Entry) -> Result<(), Fault> {
        let mut names = path.names().into_iter().map(str::to_owned);
        let mut next = || names.next().unwrap_or_default();
        let (section, link, mut key) = (next(), next(), next());
        let mut direction = None;
        if key == "forward" || key == "reverse" {
            direction = Some(std::mem::replace(&mut key, next()));
        }
        let rest: Vec<String> = names.collect();
        let others = self.0.entry([section, link, key]).or_default();
        for (other_direction, other_rest, other) in &*others {
            let meet =
                direction.is_none() || other_direction.is_none() || direction == *other_direction;
            let shared = rest.len().min(other_rest.len());
            let nested = rest[..shared] == other_rest[..shared];
            let same = rest.len() == other_rest.len() && entry.node.says(&other.node);
            if meet && nested && !same {
                return Err(Fault::new(format!(
                    "`{}` contradicts `{}`, which changes at the same time",
                    entry.key, other.key
                ))
                .help("expected each value once in one `[[at]]`"));
            }
        }
        others.push((direction, rest, entry));
        Ok(())
    }
}

/// The link that `path` changes, if it names something that can change.
fn changeable(
    path: &Path,
    entry: &Entry,
    links: &[ResolvedLink],
    root: &Node,
) -> Result<usize, Fault> {
    let names = path.names();
    if names.len() < 3 && entry.node.as_table().is_some() {
        return Err(Fault::new(format!("`{}` is a table", entry.key)).help(
            "expected the whole path in quotation marks, for example \"link.NAME.up\" = false",
        ));
    }
    let [section @ ("link" | "group"), name, rest @ ..] = &names[..] else {
        return Err(cannot(&path.text()));
    };
    let link = links
        .iter()
        .position(|link| link.name == **name && link.section() == *section)
        .ok_or_else(|| no_such(section, name, root, |_| true))?;
    match rest
        .strip_prefix(&["forward"])
        .or(rest.strip_prefix(&["reverse"]))
        .unwrap_or(rest)
    {
        ["rate"] if links[link].group.is_some() => Err(cannot(&path.text())),
        ["up" | "rate" | "delay" | "queue"] | ["queue", "limit"] => Ok(link),
        key @ [_, ..] => {
            let mut fault = cannot(&path.text());
            fault.help.extend(
                nearest(&key.join("."), CHANGEABLE).map(|near| format!("did you mean `{near}`?")),
            );
            Err(fault)
        }
        [] => Err(cannot(&path.text())),
    }
}

/// The keys of a link, or of one direction, that a change may set.
const CHANGEABLE: &[&str] = &["up", "rate", "delay", "queue.limit"];

fn cannot(what: &str) -> Fault {
    Fault::new(format!("`{what}` cannot change in mid-run"))
        .help("what can: `up`, `rate`, `delay` and `queue.limit` of a link or of its `forward` or `reverse`; of a group all but `rate`")
}

fn differences(before: &ResolvedDirection, after: &ResolvedDirection) -> Result<Vec<What>, String> {
    let mut what = Vec::new();
    if before.up != after.up {
        what.push(What::Up(after.up));
    }
    if before.rate != after.rate {
        if before.wifi.is_some() {
            return Err("rate of a Wi-Fi station".to_owned());
        }
        what.push(What::Rate(after.rate));
    }
    if before.delay != after.delay {
        what.push(What::Delay(after.delay));
    }
    if before.queue != after.queue {
        if before.queue.name() != after.queue.name() {
            return Err("queue.kind".to_owned());
        }
        if let Some(key) = other_difference(&before.queue, &after.queue) {
            return Err(key);
        }
        what.push(What::Queue(Box::new(after.queue.clone())));
    }
    if before.reorder != after.reorder {
        return Err("queue.reorder".to_owned());
    }
    Ok(what)
}

/// What differs between two queues of one kind besides the limit: nothing else can change.
fn other_difference(before: &queue::Config, after: &queue::Config) -> Option<String> {
    let table = |queue: &queue::Config| {
        let table = serde_json::to_value(Kind::BuiltIn(queue.clone()));
        table.expect("parameters are made of text, numbers and tables")
    };
    let (before, after) = (table(before), table(after));
    let keys = |table: &serde_json::Value| -> Vec<String> {
        let table = table.as_object();
        table
            .into_iter()
            .flat_map(|table| table.keys().cloned())
            .collect()
    };
    keys(&before)
        .into_iter()
        .chain(keys(&after))
        .find(|key| key != "limit" && before.get(key) != after.get(key))
        .map(|key| format!("queue.{key}"))
}

/// Puts the changes into the tables, each for the direction that it touches: the tables of links
/// write out every direction, so that a path to a whole link would touch none.
pub(super) fn write_out(file: &mut File, changes: &[Change], links: &[ResolvedLink]) {
    let mut at: Vec<At> = Vec::new();
    for change in changes {
        let link = &links[change.link];
        let way = change.direction;
        let (key, value) = match &change.what {
            What::Up(up) => ("up", serde_json::to_value(up)),
            What::Rate(rate) => (
                "rate",
                serde_json::to_value(rate.map_or(LinkRate::Unlimited, LinkRate::Rate)),
            ),
            What::Delay(delay) => ("delay", serde_json::to_value(delay)),
            What::Queue(queue) => (
                "queue",
                serde_json::to_value(Queue {
                    discipline: Kind::BuiltIn((**queue).clone()),
                    reorder: link.directions[way as usize].reorder,
                }),
            ),
        };
        let value = Anything(value.expect("values are made of text, numbers and tables"));
        let path = format!(
            "{}.{}.{}.{key}",
            link.section(),
            quoted(&link.name),
            way.name()
        );
        let time = change.time - Instant::START;
        match at.last_mut().filter(|last| last.time == time) {
            Some(last) => last.set.0.push((path, value)),
            None => at.push(At {
                time,
                set: Named(vec![(path, value)]),
            }),
        }
    }
    file.at = at;
}

/// The name as a part of a path.
fn quoted(name: &str) -> String {
    if name
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    {
        name.to_owned()
    } else {
        // Names of links have no control characters.
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
