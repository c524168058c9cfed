//! The table `[sweep]`: a grid of values, and the number of repetitions of each point.

use super::{
    Extensions,
    error::{Error, Fault, Sources},
    format::{File, Flow, Gateway, Group, Host, Link},
    library,
    path::{Path, no_such},
    reading::read,
    resolve,
    tree::{Entry, Node, Table, Value},
};

/// The most runs of a sweep. More are a mistake in the grid.
const MAX_RUNS: u64 = 1_000_000;

/// A grid of runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sweep {
    /// The number of seeds, from the scenario's `seed` on; 1 by default.
    pub repeat: u32,
    /// Dotted paths and their values, in the order of the file.
    pub grid: Vec<(String, Vec<serde_json::Value>)>,
}

/// Reads the table and tries every value at its path.
pub(super) fn sweep(
    root: &Node,
    sources: &Sources,
    extensions: &Extensions,
) -> Result<Sweep, Error> {
    let mut sweep = Sweep {
        repeat: 1,
        grid: Vec::new(),
    };
    let Some(node) = root.find(&["sweep"]) else {
        return Ok(sweep);
    };
    let fail = |fault: Fault| sources.fault(fault, node.place);
    let Some(table) = node.as_table() else {
        return Err(fail(
            Fault::new(format!("`sweep` is {}", node.noun())).help("expected a table"),
        ));
    };
    check_runs(table, extensions).map_err(fail)?;
    // The values are tried in a copy without the lists of values.
    let mut base = root.clone();
    if let Value::Table(top) = &mut base.value {
        top.0.retain(|entry| entry.key != "sweep");
    }
    for entry in &table.0 {
        if entry.key == "repeat" {
            let repeat: std::num::NonZeroU32 = read(&entry.node, extensions).map_err(fail)?;
            sweep.repeat = repeat.get();
            continue;
        }
        let values = values(entry).map_err(fail)?;
        let path = Path::of_key(&entry.key, entry.key_place).map_err(fail)?;
        exists(&path, root).map_err(|fault| fail(fault.at(entry.key_place)))?;
        let mut json = Vec::new();
        for value in values {
            attempt(&base, &path, value, sources, extensions)?;
            json.push(value.to_json().map_err(fail)?);
        }
        sweep.grid.push((entry.key.clone(), json));
    }
    Ok(sweep)
}

/// Counts the runs before any list is processed.
fn check_runs(table: &Table, extensions: &Extensions) -> Result<(), Fault> {
    let mut runs: u64 = 1;
    for entry in &table.0 {
        let more = if entry.key == "repeat" {
            let repeat: std::num::NonZeroU32 = read(&entry.node, extensions)?;
            u64::from(repeat.get())
        } else {
            values(entry)?.len() as u64
        };
        runs = runs.saturating_mul(more);
        if runs > MAX_RUNS {
            return Err(
                Fault::new(format!("with `{}` the sweep has {runs} runs", entry.key))
                    .help(format!(
                        "expected {MAX_RUNS} at most: all lists and `repeat`, multiplied"
                    ))
                    .at(entry.key_place),
            );
        }
    }
    Ok(())
}

fn values(entry: &Entry) -> Result<&[Node], Fault> {
    match &entry.node.value {
        Value::List(values) if values.is_empty() => {
            Err(Fault::new(format!("`{}` takes no value at all", entry.key))
                .help("expected a list of values")
                .at(entry.node.place))
        }
        Value::List(values) => Ok(values),
        Value::Table(_) => Err(Fault::new(format!("`{}` is a table", entry.key))
            .help(format!(
                "expected a path in quotation marks and a list of values, for example \"{}\" = [1, 2]",
                example(entry)
            ))
            .at(entry.key_place)),
        _ => Err(Fault::new(format!("`{}` is {} here", entry.key, entry.node.noun()))
            .help("expected a list of the values to try")
            .at(entry.node.place)),
    }
}

/// Returns the path that nested tables spell.
fn example(entry: &Entry) -> String {
    let mut path = entry.key.clone();
    let mut node = &entry.node;
    while let Some(inner) = node.as_table().and_then(|table| table.0.first()) {
        path.push('.');
        path.push_str(&inner.key);
        node = &inner.node;
    }
    path
}

/// Checks that the path begins with an existing table of the file.
fn exists(path: &Path, root: &Node) -> Result<(), Fault> {
    match path.names()[..] {
        [
            section @ ("link" | "group" | "gateway" | "host" | "flow"),
            name,
            ..,
        ] => match root.find(&[section, name]) {
            Some(_) => Ok(()),
            None => Err(no_such(section, name, root, |_| true)),
        },
        ["sweep", ..] => Err(Fault::new("a sweep does not vary itself")),
        _ => Ok(()),
    }
}

/// Sets `value` in a copy of the table at `path` and reads that table.
fn attempt(
    root: &Node,
    path: &Path,
    value: &Node,
    sources: &Sources,
    extensions: &Extensions,
) -> Result<(), Error> {
    let fail = |fault: Fault| sources.fault(fault, value.place);
    let names = path.names();
    let [
        section @ ("link" | "group" | "gateway" | "host" | "flow"),
        name,
        _,
        ..,
    ] = names[..]
    else {
        return attempt_whole(root, path, value, sources, extensions);
    };
    let one = root
        .find(&[section, name])
        .expect("it was found before")
        .clone();
    let nest = |key: &str, node: Node| Node {
        place: node.place,
        value: Value::Table(Table(vec![Entry {
            key: key.to_owned(),
            key_place: node.place,
            node,
        }])),
    };
    let mut small = nest(section, nest(name, one));
    path.set(&mut small, value.clone()).map_err(fail)?;
    let small = library::expanded(&small).map_err(fail)?;
    let node = small.find(&[section, name]).expect("it was put there");
    match section {
        "link" => read::<Link>(node, extensions).map(drop),
        "group" => read::<Group>(node, extensions).map(drop),
        "gateway" => read::<Gateway>(node, extensions).map(drop),
        "host" => read::<Host>(node, extensions).map(drop),
        _ => read::<Flow>(node, extensions).map(drop),
    }
    .map_err(fail)
}

/// The same for keys of the top level and for whole tables.
fn attempt_whole(
    root: &Node,
    path: &Path,
    value: &Node,
    sources: &Sources,
    extensions: &Extensions,
) -> Result<(), Error> {
    let mut whole = root.clone();
    path.set(&mut whole, value.clone())
        .map_err(|fault| sources.fault(fault, value.place))?;
    let whole = library::expanded(&whole).map_err(|fault| sources.fault(fault, value.place))?;
    resolve::typed(&whole, sources, extensions).map(|_: File| ())
}
