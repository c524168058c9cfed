//! A TOML document as a tree with the position of every key and value.

use toml::de::{DeTable, DeValue};

use crate::error::{Fault, MOST, Place};

/// A value and its position.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Position; that of a table is its header, or its key.
    pub place: Place,
}

/// A value of TOML; dates are texts.
#[derive(Debug, Clone)]
pub enum Value {
    /// A text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Keys in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Table(pub Vec<Entry>);

/// A key of a table and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Position of the key.
    pub key_place: Place,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The entry of this key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }
    /// The value of this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }
    /// The value of this key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node)
    }
}

impl Node {
    /// An empty table.
    #[must_use]
    pub fn table(place: Place) -> Self {
        Self {
            value: Value::Table(Table::default()),
            place,
        }
    }
    /// The table, if the node is one.
    #[must_use]
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
    /// The node at `path`, list elements by index.
    #[must_use]
    pub fn find(&self, path: &[&str]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |node, segment| match &node.value {
                Value::Table(table) => table.get(segment),
                Value::List(list) => list.get(segment.parse::<usize>().ok()?),
                _ => None,
            })
    }
    /// Position of `path`, or of the longest part of it that exists.
    #[must_use]
    pub fn locate(&self, path: &[&str]) -> Place {
        (0..=path.len())
            .rev()
            .find_map(|length| self.find(&path[..length]))
            .map_or(self.place, |node| node.place)
    }
    /// Whether two values are equal, independent of their positions.
    #[must_use]
    pub fn says(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::String(one), Value::String(other)) => one == other,
            (Value::Integer(one), Value::Integer(other)) => one == other,
            (Value::Float(one), Value::Float(other)) => one.total_cmp(other).is_eq(),
            (Value::Boolean(one), Value::Boolean(other)) => one == other,
            (Value::List(one), Value::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.says(b))
            }
            (Value::Table(one), Value::Table(other)) => {
                let has = |entry: &Entry| {
                    let same = other.get(&entry.key);
                    same.is_some_and(|node| node.says(&entry.node))
                };
                one.0.len() == other.0.len() && one.0.iter().all(has)
            }
            _ => false,
        }
    }
    /// The noun for the value, for messages.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self.value {
            Value::String(_) => "a text",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
    /// Converts to JSON; kinds and quantities remain as written.
    ///
    /// # Errors
    /// If a number is not finite.
    pub fn to_json(&self) -> Result<serde_json::Value, Fault> {
        Ok(match &self.value {
            Value::String(text) => text.as_str().into(),
            Value::Integer(n) => (*n).into(),
            Value::Float(n) => serde_json::Number::from_f64(*n)
                .ok_or_else(|| Fault::new(format!("{n} is no finite number")).at(self.place))?
                .into(),
            Value::Boolean(b) => (*b).into(),
            Value::List(list) => list
                .iter()
                .map(Self::to_json)
                .collect::<Result<Vec<_>, _>>()?
                .into(),
            Value::Table(table) => table
                .0
                .iter()
                .map(|entry| Ok((entry.key.clone(), entry.node.to_json()?)))
                .collect::<Result<serde_json::Map<_, _>, Fault>>()?
                .into(),
        })
    }
}

/// Reads a whole file, the first of the sources. For a line that is not TOML, the first fault is
/// reported.
///
/// # Errors
/// If it is not TOML, or a number is too large.
pub fn parse_document(text: &str) -> Result<Node, Vec<Fault>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut lines = Vec::new();
    let mut faults: Vec<Fault> = errors
        .iter()
        .filter(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            let is_new = !lines.contains(&line);
            lines.push(line);
            is_new
        })
        .take(MOST)
        .map(|error| syntax(0, 0, text, error))
        .collect();
    faults.sort_by_key(|fault| fault.place);
    if !faults.is_empty() {
        return Err(faults);
    }
    let place = Place::new(0, 0..text.len().min(1));
    let value = table(0, 0, document.get_ref()).map_err(|fault| vec![fault])?;
    Ok(Node {
        value: Value::Table(value),
        place,
    })
}

/// Reads one value that begins at byte `offset` of source `source`.
///
/// # Errors
/// Those of [`parse_document`].
pub fn parse_value(source: u32, offset: usize, text: &str) -> Result<Node, Fault> {
    let value = DeValue::parse(text).map_err(|e| syntax(source, offset, text, &e))?;
    node(source, offset, value.span(), value.get_ref())
}

fn syntax(source: u32, offset: usize, text: &str, error: &toml::de::Error) -> Fault {
    let range = error.span().unwrap_or(0..0);
    let written = text.get(range.clone()).unwrap_or("");
    let place = Place::new(source, range.start + offset..range.end + offset);
    let message = error.message();
    let fault = match message {
        "duplicate key" => Fault::new(format!("`{written}` is here for the second time"))
            .help("expected each key once"),
        "string values must be quoted, expected literal string" if written.is_empty() => {
            Fault::new("this is not TOML: there is no value after `=`")
        }
        "string values must be quoted, expected literal string" => Fault::new(format!(
            "this is not TOML: `{written}` needs quotation marks"
        ))
        .help(format!("expected {:?}", written.trim())),
        _ => match message.split_once(", expected ") {
            Some((what, expected)) => {
                Fault::new(format!("this is not TOML: {what}")).help(format!("expected {expected}"))
            }
            None => Fault::new(format!("this is not TOML: {message}")),
        },
    };
    fault.at(place)
}

fn table(source: u32, offset: usize, from: &DeTable<'_>) -> Result<Table, Fault> {
    from.iter()
        .map(|(key, value)| {
            Ok(Entry {
                key: key.get_ref().to_string(),
                key_place: Place::new(source, key.span().start + offset..key.span().end + offset),
                node: node(source, offset, value.span(), value.get_ref())?,
            })
        })
        .collect::<Result<_, _>>()
        .map(Table)
}

fn node(
    source: u32,
    offset: usize,
    span: std::ops::Range<usize>,
    from: &DeValue<'_>,
) -> Result<Node, Fault> {
    let place = Place::new(source, span.start + offset..span.end + offset);
    let value = match from {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(digits) => Value::Integer(
            i64::from_str_radix(digits.as_str(), digits.radix()).map_err(|_| {
                Fault::new(format!("{digits} is too large"))
                    .help(format!("expected a whole number up to {}", i64::MAX))
                    .at(place)
            })?,
        ),
        DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Float(number),
            _ => {
                return Err(Fault::new(format!("`{digits}` is no finite number")).at(place));
            }
        },
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => {
            return Err(
                Fault::new("dates and times of day are no part of the format")
                    .help("expected a duration in quotation marks, for example \"15 ms\"")
                    .at(place),
            );
        }
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|v| node(source, offset, v.span(), v.get_ref()))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(source, offset, inner)?),
    };
    Ok(Node { value, place })
}

/// Reads `text` as TOML if it is TOML. Anything else is a string, unless it begins like a table, a
/// list or a quoted text, which is an error.
///
/// # Errors
/// If it begins with a quote or bracket of TOML, but is not TOML.
pub fn parse_set_value(source: u32, offset: usize, text: &str) -> Result<Node, Fault> {
    let trimmed = text.trim();
    let offset = offset + (text.len() - text.trim_start().len());
    let plain = Node {
        value: Value::String(trimmed.to_owned()),
        place: Place::new(source, offset..offset + trimmed.len()),
    };
    if trimmed.starts_with(|c: char| c.is_ascii_digit())
        && matches!(DeValue::parse(trimmed), Ok(v) if v.get_ref().is_datetime())
    {
        return Ok(plain);
    }
    // A whole number that is too large is not read as a text.
    let is_whole = matches!(DeValue::parse(trimmed), Ok(v) if v.get_ref().is_integer());
    match parse_value(source, offset, trimmed) {
        Err(_) if !is_whole && !trimmed.starts_with(['{', '[', '"', '\'']) => Ok(plain),
        read => read,
    }
}
