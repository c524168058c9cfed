//! Arguments `KEY=VALUE`, read as the keys of a table in a scenario file.

use anabranch_document::{
    de::{self, Names},
    error::{Fault, Place, Sources},
    tree::{Entry, Node, Table, Value, parse_set_value},
};
use serde::Deserialize;

/// The key that names a component.
const KIND: &str = "kind";

/// No component has parameters here, so only the types have names.
struct NoNames;

impl Names for NoNames {
    fn added(&self, _seam: &str) -> Vec<&str> {
        Vec::new()
    }
    fn later(&self, _seam: &str) -> &[&str] {
        &[]
    }
}

/// The values of a repeated option.
pub struct Pairs<'a> {
    option: &'static str,
    texts: &'a [String],
    table: Table,
}

impl<'a> Pairs<'a> {
    /// Splits the texts.
    ///
    /// # Errors
    /// A text has no key or no value, or a key is given twice.
    pub fn new(option: &'static str, texts: &'a [String]) -> Result<Self, String> {
        let mut table = Table::default();
        for (source, text) in (1..).zip(texts) {
            let wrong = || format!("{option} {text}: expected KEY=VALUE");
            let (key, value) = text.split_once('=').ok_or_else(wrong)?;
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(wrong());
            }
            if table.entry(key).is_some() {
                return Err(format!("{option} {text}: `{key}` is given twice"));
            }
            let node = parse_set_value(source, 0, value)
                .map_err(|fault| explained(&format!("{option} {text}"), fault))?;
            table.0.push(Entry {
                key: key.to_owned(),
                key_place: Place::new(source, 0..0),
                node,
            });
        }
        Ok(Self {
            option,
            texts,
            table,
        })
    }

    /// Adds the name of the component whose parameters these are.
    ///
    /// # Errors
    /// It is given as a parameter.
    pub fn of(mut self, component: &str) -> Result<Self, String> {
        if self.table.entry(KIND).is_some() {
            return Err(format!(
                "{} {KIND}: the component is given already; its option is --method",
                self.option
            ));
        }
        self.or_insert(KIND, component);
        Ok(self)
    }

    /// Adds a key, unless it is given.
    pub fn or_insert(&mut self, key: &str, value: &str) {
        if self.table.entry(key).is_none() {
            let place = Place::new(0, 0..0);
            self.table.0.push(Entry {
                key: key.to_owned(),
                key_place: place,
                node: Node {
                    value: Value::String(value.to_owned()),
                    place,
                },
            });
        }
    }

    /// Reads the table.
    ///
    /// # Errors
    /// A key or a value is wrong: the argument, the expected value, and the nearest valid name.
    pub fn read<T: for<'de> Deserialize<'de>>(self) -> Result<T, String> {
        let node = Node {
            value: Value::Table(self.table),
            place: Place::new(0, 0..0),
        };
        de::read(&node, &NoNames).map_err(|mut fault: Fault| {
            if let Some(unknown) = &mut fault.unknown {
                unknown.expected.retain(|key| key != KIND);
            }
            let source = fault.place.map_or(0, |place| place.source);
            let index = usize::try_from(source).ok().and_then(|n| n.checked_sub(1));
            let argument = match index.and_then(|index| self.texts.get(index)) {
                Some(text) => format!("{} {text}", self.option),
                None => self.option.to_owned(),
            };
            explained(&argument, fault)
        })
    }
}

/// The message of an argument.
fn explained(argument: &str, mut fault: Fault) -> String {
    fault.place = None;
    let error = Sources::new(argument, "").fault(fault, Place::new(0, 0..0));
    [format!("{argument}: {}", error.message)]
        .into_iter()
        .chain(error.help)
        .collect::<Vec<_>>()
        .join("; ")
}
