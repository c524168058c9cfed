//! The scenario language. One TOML file describes the network, its flows and the duration of the
//! run.
//!
//! A file goes through three steps. [`Scenario::parse`] reads TOML into a tree in which every key
//! and value has its position in the text. [`Scenario::set`] edits that tree. [`Scenario::resolve`]
//! reads it as the types of [`format`], which are the only source of the format, and derives the
//! input of the engine: routes, copies of flows, limits in bytes, changes in mid-run. Every error
//! gives its position and the nearest valid name.
//!
//! [`catalog`] lists every registered component; [`workload`] holds the traffic of applications.
#![forbid(unsafe_code)]

pub mod catalog;
mod classes;
mod extensions;
pub mod format;
mod kind;
mod library;
mod path;
mod reading;
mod resolve;
mod schema;
mod sweep;
mod text;
pub mod types;
mod unavailable;
pub mod workload;

pub use anabranch_document::{Error, class::Mode, nearest, synonyms};
pub use classes::gateway_classes;
pub use extensions::Extensions;
pub use format::{Family, Match, Policy, Protocol};
pub use kind::{Choice, Kind, Seam};
pub use resolve::{
    Attached, Change, GatewayEnds, Hop, Replayed, Resolved, ResolvedClass, ResolvedFlow,
    ResolvedGateway, ResolvedGroup, ResolvedLink, Step, What, Written,
};
pub use sweep::Sweep;
pub use text::ResolvedText;

use anabranch_document::{de, error, tree};
use error::{Fault, Place, Sources};
use format::File;
use path::Path;
use schemars::SchemaGenerator;
use serde_json::Value;
use tree::Node;

/// Returns the JSON Schema of scenario files (draft 2020-12), for editors and for the reference.
#[must_use]
pub fn schema() -> Value {
    let mut schema: Value = SchemaGenerator::default()
        .into_root_schema_for::<File>()
        .into();
    // Removes definitions that no other part refers to.
    loop {
        let text = schema.to_string();
        let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) else {
            break;
        };
        let before = definitions.len();
        definitions.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if definitions.len() == before {
            break;
        }
    }
    schema
}

/// The largest scenario file, in bytes: 4 MiB. Thousands of flows fit in a few lines (`count`), so
/// a larger file is not a scenario.
pub const MAX_BYTES: usize = 4 << 20;

/// The longest text of one `--set`, in bytes.
const MAX_SET_BYTES: usize = 1 << 20;

/// A scenario file and the values set over it.
#[derive(Debug, Clone)]
pub struct Scenario {
    root: Node,
    sources: Sources,
    extensions: Extensions,
}

impl Scenario {
    /// Parses the text of the file called `file` as TOML. [`Self::resolve`] checks the rest, so
    /// that [`Self::set`] can complete a file. If the text is not TOML, up to 20 errors are
    /// reported.
    ///
    /// # Errors
    /// If the text is larger than [`MAX_BYTES`] or not TOML.
    pub fn parse(text: &str, file: &str, extensions: &Extensions) -> Result<Self, Error> {
        check_size(text.len(), file)?;
        let sources = Sources::new(file, text);
        let start = Place::new(0, 0..0);
        let mut root =
            tree::parse_document(text).map_err(|faults| sources.faults(faults, start))?;
        keep_releases(&mut root, 0, text);
        Ok(Self {
            root,
            sources,
            extensions: extensions.clone(),
        })
    }

    /// Parses the bytes of a file like [`Self::parse`].
    ///
    /// # Errors
    /// As [`Self::parse`], and if the bytes are not UTF-8.
    pub fn parse_bytes(bytes: &[u8], file: &str, extensions: &Extensions) -> Result<Self, Error> {
        check_size(bytes.len(), file)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text, file, extensions),
            Err(error) => {
                let valid = error.valid_up_to();
                let text = String::from_utf8_lossy(bytes);
                let place = Place::new(0, valid..valid + '\u{fffd}'.len_utf8());
                Err(Sources::new(file, &text).error(
                    place,
                    format!("byte {valid} is not UTF-8"),
                    vec!["expected a TOML file in UTF-8".to_owned()],
                ))
            }
        }
    }

    /// The same scenario with other extensions.
    #[must_use]
    pub fn with_extensions(&self, extensions: Extensions) -> Self {
        Self {
            root: self.root.clone(),
            sources: self.sources.clone(),
            extensions,
        }
    }

    /// Sets a value: `PATH=VALUE`. The path is a TOML dotted key, with list elements by number from
    /// 0; the value is TOML or else a string. Missing tables are created. A path into a value that
    /// a direction inherits from its link copies the value first.
    ///
    /// # Errors
    /// If the text has another form, or the path leads through a value that is not a table.
    pub fn set(&mut self, text: &str) -> Result<(), Error> {
        let source = self
            .sources
            .add_set(text.get(..MAX_SET_BYTES).unwrap_or(text));
        let whole = Place::new(source, 0..text.len().min(MAX_SET_BYTES));
        let fault = |sources: &Sources, fault: Fault| sources.fault(fault, whole);
        if text.len() > MAX_SET_BYTES {
            let problem = Fault::new(format!("this is {} bytes long", text.len()));
            return Err(fault(
                &self.sources,
                problem.help(format!("expected {MAX_SET_BYTES} at most")),
            ));
        }
        let Some((path, value_at)) = path::split_set(text) else {
            let problem = Fault::new("there is no `=`");
            let problem = problem.help("expected PATH=VALUE, for example flow.main.cc=cubic");
            return Err(fault(&self.sources, problem));
        };
        Path::parse(source, 0, path)
            .and_then(|path| {
                let value = tree::parse_set_value(source, value_at, &text[value_at..])?;
                path.set(&mut self.root, value)
            })
            .map_err(|problem| fault(&self.sources, problem))?;
        keep_releases(&mut self.root, source, text);
        Ok(())
    }

    /// Resolves the scenario for the engine; `seed` overrides the file's.
    ///
    /// # Errors
    /// If a key, a name or a value is wrong, if the parts contradict each other, or if this version
    /// does not implement a part of the format. All independent errors are reported, up to 20.
    pub fn resolve(&self, seed: Option<u64>) -> Result<Resolved, Error> {
        let (sources, extensions) = (&self.sources, &self.extensions);
        let expanded = library::expanded(&self.root);
        let root = &*expanded.map_err(|fault| sources.fault(fault, self.root.place))?;
        resolve::resolve(root, sources, extensions, seed)
            .map_err(|first| resolve::every_error(root, sources, extensions, seed, first))
    }

    /// An error at the value with this path, for an engine that cannot run it.
    #[must_use]
    pub fn refusal(&self, path: &[&str], message: &str, help: &str) -> Error {
        let place = self.root.locate(path);
        self.sources.error(place, message, vec![help.to_owned()])
    }

    /// The grid of the file's `[sweep]`.
    ///
    /// # Errors
    /// If a path leads nowhere, or a value is invalid for its path.
    pub fn sweep(&self) -> Result<Sweep, Error> {
        sweep::sweep(&self.root, &self.sources, &self.extensions)
    }
}

/// Replaces numbers of `kernel`, in a sweep too, by their text: `6.1` and `6.10` are different
/// releases. `text` is that of `source`.
fn keep_releases(root: &mut Node, source: u32, text: &str) {
    let tree::Value::Table(top) = &mut root.value else {
        return;
    };
    let keep = |node: &mut Node| {
        let (at, number) = (node.place, node.noun() == "a number");
        if number && at.source == source {
            node.value = tree::Value::String(text[at.start as usize..at.end as usize].to_owned());
        }
    };
    if let Some(node) = top.get_mut("kernel") {
        keep(node);
    }
    if let Some(tree::Value::Table(sweep)) = top.get_mut("sweep").map(|node| &mut node.value)
        && let Some(tree::Value::List(list)) = sweep.get_mut("kernel").map(|node| &mut node.value)
    {
        list.iter_mut().for_each(keep);
    }
}

fn check_size(bytes: usize, file: &str) -> Result<(), Error> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Sources::new(file, "").error(
        Place::new(0, 0..0),
        format!("the file has {bytes} bytes"),
        vec![format!(
            "expected a scenario of {} MiB at most",
            MAX_BYTES >> 20
        )],
    ))
}
