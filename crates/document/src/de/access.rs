//! Access to the content of tables, lists and kinds.

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, VariantAccess, Visitor, value::StrDeserializer,
    },
};

use super::{
    super::{
        error::{Fault, Place},
        tree::{Entry, Node},
    },
    De, Hidden,
};

pub(super) struct Entries<'a> {
    pub de: De<'a>,
    pub rest: std::slice::Iter<'a, Entry>,
    pub value: Option<&'a Node>,
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

pub(super) struct Items<'a> {
    pub de: De<'a>,
    pub rest: std::slice::Iter<'a, Node>,
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

/// A kind without the key beside it, followed by the value of that key.
pub(super) struct Beside<'a> {
    pub main: Option<De<'a>>,
    pub beside: Option<De<'a>>,
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

/// The name of an added kind, followed by its parameters.
pub(super) struct Pair<'a> {
    pub de: De<'a>,
    pub name: Option<&'a str>,
    pub params: bool,
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
    /// The keys beside `kind`; none after a bare name.
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

pub(super) struct Variant<'a> {
    pub de: De<'a>,
    pub kind: &'a str,
    pub kind_place: Place,
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
