//! Changes in mid-run.

use std::collections::BTreeMap;

use anabranch_core::{
    packet::Direction,
    units::{Duration, Instant, text::LinkRate},
};
use anabranch_path::{impair::Impairment as _, link::Properties};

use super::{
    Change, Hop, ResolvedGateway, ResolvedLink, Resolver, What,
    link::{self, Kept, TracedDelay, Traces},
    round_trip,
    route::Routes,
    wire::{Table, Wire},
};
use crate::{
    error::{Error, Fault, Place, nearest},
    format::{Anything, At, File, Group, Named, Queue},
    kind::Kind,
    path::{Path, no_such},
    reading::read,
    tree::{Entry, Node},
    types::{impair, queue},
};

/// Resolves all changes. Each is set in the tree like a value of the command line; the resulting
/// differences of the link are the changes.
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
    let order = occurrences(resolver, file)?;
    let mut tree = resolver.root.clone();
    let mut now: Vec<[Properties; 2]> = links.iter().map(|link| link.directions.clone()).collect();
    let mut files: Vec<_> = links.iter().map(|link| link.delay_files.clone()).collect();
    let mut changes = Vec::new();
    for (nth, &(time, position)) in order.iter().enumerate() {
        let index = position.to_string();
        let set = resolver
            .root
            .find(&["at", &index, "set"])
            .and_then(Node::as_table);
        if set.is_some_and(|set| set.0.is_empty()) {
            return Err(resolver.error(
                &["at", &index, "set"],
                "this change sets nothing".to_owned(),
                vec![
                    "expected a value to change, for example `\"link.NAME.up\" = false`".to_owned(),
                ],
            ));
        }
        let mut given = Given::default();
        let mut touched: Vec<Touched> = Vec::new();
        // All values are set before any is read, because one alone may contradict an old value.
        for entry in set.into_iter().flat_map(|table| &table.0) {
            let place = entry.key_place;
            let fail = |fault: Fault| resolver.sources.fault(fault, place);
            let path = Path::of_key(&entry.key, place).map_err(fail)?;
            let link = changeable(&path, entry, links, resolver.root)
                .map_err(|fault| fail(fault.at(place)))?;
            given
                .add(&path, entry)
                .map_err(|fault| fail(fault.at(place)))?;
            for path in over_library(&path, &tree) {
                path.set(&mut tree, entry.node.clone()).map_err(fail)?;
            }
            Touched::add(&mut touched, link, place, &path);
        }
        let later = Resolver {
            root: &tree,
            ..*resolver
        };
        for touched in touched {
            let place = touched.place;
            let fail = |fault: Fault| resolver.sources.fault(fault, place);
            let link = &links[touched.link];
            let name = &link.name;
            let node = tree
                .find(&[link.section(), name])
                .expect("the link is there");
            let wire = if link.group.is_some() {
                let table: Group = read(node, resolver.extensions).map_err(fail)?;
                Wire::of_group(name, &table)
            } else {
                let link = read(node, resolver.extensions).map_err(fail)?;
                Wire::of_link(name, Table::Made(Box::new(link)))
            };
            for direction in Direction::BOTH {
                let way = direction as usize;
                let before = &mut now[touched.link][way];
                let file = &mut files[touched.link][way];
                let delays = file.take().zip(before.delays.clone());
                let kept = Kept {
                    traces: Traces {
                        capacity: before.trace.clone(),
                        delays: delays.map(|(file, table)| TracedDelay { file, table }),
                    },
                    impair: (!touched.impair).then(|| before.impair.clone()),
                };
                let (mut after, after_file) =
                    link::direction(&later, &wire, direction, link.base_rtt[way], kept)?;
                if !touched.queue {
                    // A limit of one bdp keeps the bytes that it had when it was set.
                    after.queue = before.queue.clone();
                }
                let differences =
                    differences(before, &after).map_err(|what| fail(cannot(&what).at(place)))?;
                changes.extend(differences.into_iter().map(|what| Change {
                    time: Instant::START.saturating_add(time),
                    link: touched.link,
                    direction,
                    what,
                }));
                (*before, *file) = (after, after_file);
            }
        }
        let more_at_once = order.get(nth + 1).is_some_and(|(next, _)| *next == time);
        let direction = |hop: &Hop| &now[hop.link][hop.direction as usize];
        if let Some(flow) = round_trip::without_time(file, gateways, routes, direction)
            && !more_at_once
        {
            return Err(resolver.error(
                &["at", &index],
                format!("from here on the round-trip time of the flow `{flow}` is 0"),
                vec![round_trip::HELP.to_owned()],
            ));
        }
    }
    Ok(changes)
}

/// Returns the paths to set for a change. If the ready path of the link gives a value for each
/// direction, both directions are set, because a value of the link overrides both.
fn over_library(path: &Path, tree: &Node) -> Vec<Path> {
    let names = path.names();
    let [section, name, key, ..] = names[..] else {
        return vec![path.clone()];
    };
    let from_library = |direction: Direction| {
        let given = tree.find(&[section, name, direction.name(), key]);
        let library = tree.find(&[section, name, "path"]);
        given.is_some_and(|given| library.is_some_and(|path| path.place == given.place))
    };
    let directed: Vec<Path> = Direction::BOTH
        .into_iter()
        .filter(|direction| from_library(*direction))
        .map(|direction| path.with(2, direction.name()))
        .collect();
    match directed.len() {
        2 => directed,
        _ => directed.into_iter().chain([path.clone()]).collect(),
    }
}

/// A link that an `[[at]]` changes.
struct Touched {
    link: usize,
    /// The first key that changes it.
    place: Place,
    queue: bool,
    impair: bool,
}

impl Touched {
    fn add(all: &mut Vec<Self>, link: usize, place: Place, path: &Path) {
        let position = all.iter().position(|one| one.link == link);
        let at = position.unwrap_or_else(|| {
            all.push(Self {
                link,
                place,
                queue: false,
                impair: false,
            });
            all.len() - 1
        });
        let names = path.names();
        all[at].queue |= names.contains(&"queue");
        all[at].impair |= names.contains(&"impair");
    }
}

/// The most changes of one run. All are computed before the run begins.
const MAX_CHANGES: u64 = 100_000;

/// The time of each `[[at]]`, in order of time; changes at one time keep the order of the file.
fn occurrences(resolver: &Resolver<'_>, file: &File) -> Result<Vec<(Duration, usize)>, Error> {
    let mut order = Vec::new();
    let mut left = MAX_CHANGES;
    for (position, at) in file.at.iter().enumerate() {
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
        let Some(every) = at.every else {
            order.push((at.time, position));
            continue;
        };
        let wrong = |message: String, help: String| {
            Err(resolver.error(&["at", &index, "every"], message, vec![help]))
        };
        if every.is_zero() {
            return wrong(
                "this change is made every 0 s".to_owned(),
                "expected a duration above zero, for example \"15 s\"".to_owned(),
            );
        }
        let span = (file.duration - at.time).as_picos();
        let count = span.div_ceil(every.as_picos());
        if count > left {
            return wrong(
                format!("with this entry there are more than {MAX_CHANGES} changes"),
                "expected a longer `every`, or a trace for such frequent changes".to_owned(),
            );
        }
        left -= count;
        order.extend((0..count).map(|n| (at.time + every * n, position)));
    }
    order.sort();
    Ok(order)
}

/// The values that one `[[at]]` sets, by section, link and key of the link.
#[derive(Default)]
struct Given<'a>(BTreeMap<[String; 3], Vec<Setting<'a>>>);

/// A direction, if any, the rest of the path, and the entry.
type Setting<'a> = (Option<String>, Vec<String>, &'a Entry);

impl<'a> Given<'a> {
    /// Refuses an entry that contradicts an earlier one: a table has no order that would decide
    /// between them. Equal values do not contradict each other.
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

/// Returns the link that `path` changes, if the key can change.
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
        ["up" | "rate" | "delay" | "queue"] => Ok(link),
        ["queue", key, ..] if !["kind", "reorder"].contains(key) => Ok(link),
        ["impair", _, key, ..] if *key != "kind" => Ok(link),
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
const CHANGEABLE: &[&str] = &["up", "rate", "delay", "queue.limit", "impair.0.rate"];

fn cannot(what: &str) -> Fault {
    Fault::new(format!("`{what}` cannot change in mid-run"))
        .help("expected `up`, `rate`, `delay`, parameters of the queue and of impairments (`queue.limit`, `impair.0.rate`) of a link or of its `forward` or `reverse`; of a group all but `rate`")
}

fn differences(before: &Properties, after: &Properties) -> Result<Vec<What>, String> {
    let mut what = Vec::new();
    if before.up != after.up {
        what.push(What::Up(after.up));
    }
    if before.rate != after.rate {
        if let Some(medium) = &before.medium {
            return Err(format!("rate of a {}", medium.noun()));
        }
        what.push(What::Rate(after.rate));
    }
    if (before.delay, &before.delays) != (after.delay, &after.delays) {
        what.push(What::Delay(after.delay));
    }
    if before.queue != after.queue {
        if before.queue.name() != after.queue.name() {
            return Err("queue.kind".to_owned());
        }
        if let Some(key) = fixed_difference(&before.queue, &after.queue) {
            return Err(key);
        }
        what.push(What::Queue(Box::new(after.queue.clone())));
    }
    if before.reorder != after.reorder {
        return Err("queue.reorder".to_owned());
    }
    for (place, (before, after)) in before.impair.iter().zip(&after.impair).enumerate() {
        if before == after {
            continue;
        }
        // The ability of packets to overtake each other is built into the link.
        if before.build().reorders() != after.build().reorders() {
            return Err(format!("impair.{place}.reorder"));
        }
        what.push(What::Impair(place, Box::new(after.clone())));
    }
    Ok(what)
}

/// The first key that differs between two queues of one kind and cannot change.
fn fixed_difference(before: &queue::Config, after: &queue::Config) -> Option<String> {
    let table = |queue: &queue::Config| {
        let table = serde_json::to_value(Kind::BuiltIn(queue.clone()));
        table.expect("parameters are made of text, numbers and tables")
    };
    let changeable = before.changeable();
    let (before, after) = (table(before), table(after));
    // The running average is in packets or in bytes, like the thresholds, so the unit cannot
    // change.
    let other_unit = |key: &str| {
        let in_packets = |table: &serde_json::Value| {
            let text = table.get(key).and_then(serde_json::Value::as_str);
            text.is_some_and(|text| text.ends_with("packets"))
        };
        key == "min_threshold" && in_packets(&before) != in_packets(&after)
    };
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
        .find(|key| {
            let may = changeable.contains(&key.as_str()) && !other_unit(key);
            !may && before.get(key) != after.get(key)
        })
        .map(|key| format!("queue.{key}"))
}

/// Writes the changes into the tables, each for its direction. The tables of links write out every
/// direction, so a path to a whole link would have no effect.
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
            What::Impair(place, config) => {
                impairment(&mut at, change, link, (*place, config));
                continue;
            }
            What::Queue(queue) => (
                "queue",
                serde_json::to_value(Queue {
                    discipline: Kind::BuiltIn((**queue).clone()),
                    reorder: link.directions[way as usize].reorder,
                }),
            ),
        };
        let value = value.expect("values are made of text, numbers and tables");
        add(&mut at, change, link, key, value);
    }
    file.at = at;
}

/// Adds an entry to the table of its time.
fn add(
    at: &mut Vec<At>,
    change: &Change,
    link: &ResolvedLink,
    key: &str,
    value: serde_json::Value,
) {
    let (section, name, way) = (link.section(), quoted(&link.name), change.direction.name());
    let entry = (format!("{section}.{name}.{way}.{key}"), Anything(value));
    let time = change.time - Instant::START;
    match at.last_mut().filter(|last| last.time == time) {
        Some(last) => last.set.0.push(entry),
        None => at.push(At {
            time,
            every: None,
            set: Named(vec![entry]),
        }),
    }
}

/// Adds each parameter of an impairment separately: its kind cannot be set.
fn impairment(
    at: &mut Vec<At>,
    change: &Change,
    link: &ResolvedLink,
    (place, config): (usize, &impair::Config),
) {
    let table = serde_json::to_value(Kind::BuiltIn(config.clone()));
    let table = table.expect("parameters are made of text, numbers and tables");
    for (key, value) in table.as_object().into_iter().flatten() {
        if key != "kind" {
            add(
                at,
                change,
                link,
                &format!("impair.{place}.{key}"),
                value.clone(),
            );
        }
    }
}

/// Returns the name as a part of a path.
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
