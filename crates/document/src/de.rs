//! Reads typed values from the tree, so that every error has its position.
//!
//! An enum is a table: its `kind` selects the variant, and its other keys are the variant's
//! content. The bare name selects a variant with default content.

use serde::{
    Deserializer, Serialize,
    de::{Error as _, Expected, Unexpected, Visitor},
    forward_to_deserialize_any,
};

mod access;

use self::access::{Beside, Entries, Items, Pair, Variant};
use crate::{
    error::{Fault, Place},
    tree::{Node, Table, Value},
};

/// Marks a newtype whose content is a kind that other crates may extend: `kind:SEAM`.
pub const KIND: &str = "kind:";
/// Marks a newtype that takes one key of a kind's table: `beside:KEY`.
pub const BESIDE: &str = "beside:";

/// Marks a newtype that a word may replace: `or:WORD`.
pub const OR: &str = "or:";

/// Marks a newtype that is a table, or that a plain value may replace: the table is passed as the
/// newtype, the value as `Some`.
pub const TABLE_OR_VALUE: &str = "table-or-value";

/// The names at each seam, in addition to the built-in ones.
pub trait Names {
    /// Names added by other crates.
    fn added(&self, seam: &str) -> Vec<&str>;
    /// Names of the format that this version cannot run.
    fn later(&self, seam: &str) -> &[&str];
    /// The noun for such a name in messages.
    fn noun(&self, _seam: &str) -> &'static str {
        "name"
    }
}

/// A deserializer over one node.
#[derive(Clone, Copy)]
pub struct De<'a> {
    node: &'a Node,
    names: &'a dyn Names,
    /// Keys of this table that this reader ignores.
    hidden: Hidden,
}

#[derive(Clone, Copy, Default)]
struct Hidden {
    kind: bool,
    beside: Option<&'static str>,
}

impl Hidden {
    fn hides(self, key: &str) -> bool {
        (self.kind && key == "kind") || self.beside == Some(key)
    }
    fn names(self) -> impl Iterator<Item = &'static str> {
        self.kind.then_some("kind").into_iter().chain(self.beside)
    }
}

impl<'a> De<'a> {
    /// A deserializer over this node, with these names.
    pub fn new(node: &'a Node, names: &'a dyn Names) -> Self {
        Self {
            node,
            names,
            hidden: Hidden::default(),
        }
    }

    fn child(self, node: &'a Node) -> Self {
        Self::new(node, self.names)
    }

    fn here<T>(self, result: Result<T, Fault>) -> Result<T, Fault> {
        result.map_err(|fault| fault.at(self.node.place))
    }

    /// A table for a visitor of tables, which reads nothing else.
    fn read_table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Table(table) => self.here(visitor.visit_map(self.entries(table))),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn entries(self, table: &'a Table) -> Entries<'a> {
        Entries {
            de: self,
            rest: table.0.iter(),
            value: None,
        }
    }

    /// The error for a value of another type than expected.
    #[cold]
    fn mismatch(self, expected: &dyn Expected) -> Fault {
        let found = match &self.node.value {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(n) => Unexpected::Signed(*n),
            Value::Float(n) => Unexpected::Float(*n),
            Value::Boolean(b) => Unexpected::Bool(*b),
            Value::List(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        };
        Fault::invalid_type(found, expected).at(self.node.place)
    }

    /// The name that selects the variant, and its position.
    fn kind(self) -> Option<(&'a str, Place)> {
        let node = match &self.node.value {
            Value::Table(table) => table.get("kind")?,
            _ => self.node,
        };
        match &node.value {
            Value::String(name) => Some((name, node.place)),
            _ => None,
        }
    }

    /// Reads a kind of a seam: an added name is passed as a pair of name and parameters.
    fn read_kind<'de, V: Visitor<'de>>(self, seam: &str, visitor: V) -> Result<V::Value, Fault> {
        let added = self.names.added(seam);
        let kind = self.kind();
        if let Some((name, _)) = kind
            && added.contains(&name)
        {
            return self.here(visitor.visit_seq(Pair {
                de: self,
                name: Some(name),
                params: true,
            }));
        }
        let noun = self.names.noun(seam);
        let result = visitor.visit_newtype_struct(self);
        result.map_err(|mut fault| {
            let at_kind = kind.filter(|(_, place)| fault.place == Some(*place));
            match (&mut fault.unknown, at_kind) {
                (Some(unknown), Some((name, place))) => {
                    if self.names.later(seam).contains(&name) {
                        return later(&format!("the {noun} `{name}`")).at(place);
                    }
                    unknown.noun = noun;
                    unknown
                        .expected
                        .extend(added.iter().map(ToString::to_string));
                    fault
                }
                _ => fault,
            }
        })
    }
}

/// The error for a part of the format that this version cannot run.
#[must_use]
pub fn later(what: &str) -> Fault {
    Fault::new(format!(
        "{what} is part of the format but not available in this version"
    ))
}

/// Reads a value from the tree.
///
/// # Errors
/// If the tree does not contain such a value; the fault has its position.
pub fn read<'de, T: serde::Deserialize<'de>>(node: &Node, names: &dyn Names) -> Result<T, Fault> {
    T::deserialize(De::new(node, names)).map_err(|fault| fault.at(node.place))
}

impl<'de> Deserializer<'de> for De<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.here(match &self.node.value {
            Value::String(text) => visitor.visit_str(text),
            Value::Integer(n) => visitor.visit_i64(*n),
            Value::Float(n) => visitor.visit_f64(*n),
            Value::Boolean(b) => visitor.visit_bool(*b),
            Value::List(list) => {
                let mut items = Items {
                    de: self,
                    rest: list.iter(),
                };
                visitor
                    .visit_seq(&mut items)
                    .and_then(|value| match items.rest.len() {
                        0 => Ok(value),
                        rest => Err(Fault::new(format!("this list has {} elements", list.len()))
                            .help(format!("expected a list of {} elements", list.len() - rest))),
                    })
            }
            Value::Table(table) => visitor.visit_map(self.entries(table)),
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.read_table(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.read_table(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if let Some(seam) = name.strip_prefix(KIND) {
            return self.read_kind(seam, visitor);
        }
        if let Some(key) = name.strip_prefix(BESIDE) {
            let beside = self.node.find(&[key]).map(|node| self.child(node));
            let main = Self {
                hidden: Hidden {
                    beside: Some(key),
                    ..self.hidden
                },
                ..self
            };
            return self.here(visitor.visit_seq(Beside {
                main: Some(main),
                beside,
            }));
        }
        if name == TABLE_OR_VALUE && self.node.as_table().is_none() {
            return visitor.visit_some(self);
        }
        if let Some(word) = name.strip_prefix(OR) {
            return visitor
                .visit_newtype_struct(self)
                .map_err(|fault| fault.or(word));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let names = || {
            variants
                .iter()
                .map(|v| format!("`{v}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let Some((kind, kind_place)) = self.kind() else {
            let fault = match &self.node.value {
                Value::Table(table) => match table.get("kind") {
                    Some(kind) => {
                        Fault::new(format!("`kind` is {} here", kind.noun())).at(kind.place)
                    }
                    None => Fault::missing("kind"),
                },
                _ => Fault::new(format!("this is {}", self.node.noun())),
            };
            let fault = fault.help(format!(
                "expected a name, or a table with `kind`: {}",
                names()
            ));
            return Err(fault.at(self.node.place));
        };
        self.here(visitor.visit_enum(Variant {
            de: self,
            kind,
            kind_place,
        }))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct identifier
    }
}

/// Converts a value to the table with `kind` that reads back as the same value.
///
/// # Errors
/// If the value has no JSON form.
pub fn tagged<T: Serialize>(value: &T) -> Result<serde_json::Value, serde_json::Error> {
    use serde_json::{Map, Value as Json};
    let mut out = Map::new();
    match serde_json::to_value(value)? {
        Json::Object(variant) => {
            for (kind, content) in variant {
                out.insert("kind".to_owned(), kind.into());
                if let Json::Object(content) = content {
                    out.extend(content);
                }
            }
        }
        name => {
            out.insert("kind".to_owned(), name);
        }
    }
    Ok(Json::Object(out))
}
