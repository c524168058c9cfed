//! Reads typed values from the tree, so that every error knows its place.
//!
//! An enum is a table whose `kind` picks the variant and whose other keys are the variant's
//! content, or the bare name of a variant whose content is all defaults.

use serde::{
    Deserializer, Serialize,
    de::{
        DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, VariantAccess, Visitor, value::StrDeserializer,
    },
    forward_to_deserialize_any,
};

use super::{
    error::{Fault, Place},
    tree::{Node, Value},
};

/// Marks a newtype whose content is a kind that strangers may add to: `kind:SEAM`.
pub(super) const KIND: &str = "kind:";
/// Marks a newtype that takes one key of a kind's table for itself: `beside:KEY`.
pub(super) const BESIDE: &str = "beside:";

/// The names that exist at each seam besides the built-in ones.
pub(super) trait Names {
    /// Those that strangers added.
    fn added(&self, seam: &str) -> Vec<&str>;
    /// Those of the format that this version cannot run.
    fn later(&self, seam: &str) -> &[&str];
}

/// A deserializer over one node.
#[derive(Clone, Copy)]
pub(super) struct De<'a> {
    node: &'a Node,
    names: &'a dyn Names,
    /// Keys of this table that are not for this reader.
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
    pub(super) fn new(node: &'a Node, names: &'a dyn Names) -> Self {
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

    /// The name that picks the variant and where it stands.
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

    /// A kind of a seam: a name that was added arrives as a pair of name and parameters.
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
        let noun = noun(seam);
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

/// What people call a member of the seam.
fn noun(seam: &str) -> &'static str {
    match seam {
        "cc" => "congestion control",
        "queue" => "queue",
        "impair" => "impairment",
        "workload" => "workload",
        "fec" => "error correction",
        "service" => "service",
        _ => "name",
    }
}

/// The fault of something in the format that cannot run yet.
pub(super) fn later(what: &str) -> Fault {
    Fault::new(format!(
        "{what} is part of the format but not available in this version"
    ))
}

/// Wherever a value is read from the tree.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(
    node: &Node,
    names: &dyn Names,
) -> Result<T, Fault> {
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
            Value::Table(table) => visitor.visit_map(Entries {
                de: self,
                rest: table.0.iter(),
                value: None,
            }),
        })
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
                    None => Fault::new("the key `kind` is missing here"),
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
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct Entries<'a> {
    de: De<'a>,
    rest: std::slice::Iter<'a, super::tree::Entry>,
    value: Option<&'a Node>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let hidden = self.de.hidden;
        let Some(entry) = self.rest.find(|entry| !hidden.hides(&entry.key)) else {
            return Ok(None);
        };
        self.value = Some(&entry.node);
        let key: StrDeserializer<'_, Fault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut fault| {
            if let Some(unknown) = &mut fault.unknown {
                unknown.expected.extend(hidden.names().map(str::to_owned));
            }
            fault.at(entry.key_place)
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let node = self.value.take().expect("a value follows its key");
        seed.deserialize(self.de.child(node))
            .map_err(|fault| fault.at(node.place))
    }
}

struct Items<'a> {
    de: De<'a>,
    rest: std::slice::Iter<'a, Node>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(node) = self.rest.next() else {
            return Ok(None);
        };
        seed.deserialize(self.de.child(node))
            .map(Some)
            .map_err(|fault| fault.at(node.place))
    }
}

/// A kind without the key beside it, then the value of that key.
struct Beside<'a> {
    main: Option<De<'a>>,
    beside: Option<De<'a>>,
}

impl<'de> SeqAccess<'de> for Beside<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(de) = self.main.take().or_else(|| self.beside.take()) else {
            return Ok(None);
        };
        seed.deserialize(de)
            .map(Some)
            .map_err(|fault| fault.at(de.node.place))
    }
}

/// The name of a kind from outside, then its parameters.
struct Pair<'a> {
    de: De<'a>,
    name: Option<&'a str>,
    params: bool,
}

impl<'de> SeqAccess<'de> for Pair<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        if let Some(name) = self.name.take() {
            let name: StrDeserializer<'_, Fault> = name.into_deserializer();
            return seed.deserialize(name).map(Some);
        }
        if !std::mem::take(&mut self.params) {
            return Ok(None);
        }
        self.de.content(|de| seed.deserialize(de)).map(Some)
    }
}

impl De<'_> {
    /// The keys beside `kind`; none where the bare name stands.
    fn content<T>(self, read: impl FnOnce(De<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
        let hidden = Hidden {
            kind: true,
            ..self.hidden
        };
        let place = self.node.place;
        let result = if self.node.as_table().is_some() {
            read(Self { hidden, ..self })
        } else {
            let nothing = Node::table(place);
            read(De {
                node: &nothing,
                names: self.names,
                hidden,
            })
        };
        result.map_err(|fault| fault.at(place))
    }
}

struct Variant<'a> {
    de: De<'a>,
    kind: &'a str,
    kind_place: Place,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Fault;
    type Variant = De<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, De<'a>), Fault> {
        let name: StrDeserializer<'_, Fault> = self.kind.into_deserializer();
        let value = seed
            .deserialize(name)
            .map_err(|fault| fault.at(self.kind_place))?;
        Ok((value, self.de))
    }
}

impl<'de> VariantAccess<'de> for De<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        self.content(|de| serde::Deserialize::deserialize(de))
            .map(|Nothing {}| ())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        self.content(|de| seed.deserialize(de))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::TupleVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.content(|de| de.deserialize_any(visitor))
    }
}

/// A value as the table with `kind` that reads back as it.
pub(super) fn tagged<T: Serialize>(value: &T) -> Result<serde_json::Value, serde_json::Error> {
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
