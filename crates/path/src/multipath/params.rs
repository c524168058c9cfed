//! Parameter types of splitters and restorers. Values out of bounds cannot be constructed.

use anabranch_core::{
    quantity,
    units::{Bytes, Duration, text::Limit},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

quantity! {
    /// Maximum time that a packet is held back.
    Wait, Duration, Duration::ZERO, Duration::from_secs(60)
}
quantity! {
    /// Time without a sign of life after which a route counts as silent.
    Silence, Duration, Duration::from_millis(1), Duration::from_secs(3_600)
}

macro_rules! millis {
    ($($Name:ident)*) => {$(
        impl $Name {
            /// # Panics
            /// If `ms` is out of bounds; in a `const` this is a compile error.
            #[must_use]
            pub const fn from_millis(ms: u64) -> Self {
                let value = Duration::from_millis(ms);
                assert!(
                    value.as_picos() >= Self::MIN.as_picos() && value.as_picos() <= Self::MAX.as_picos(),
                    "within bounds"
                );
                Self(value)
            }
        }
    )*};
}
millis!(Wait Silence);

/// Number of packets that an entrance stores per route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Keep(u16);

impl Keep {
    /// Maximum: the number of departures that a splitter stores.
    pub const MAX: u16 = 2_048;
    /// 16 Mbit/s for three quarters of a second, at 1,500 bytes.
    pub const DEFAULT: Self = Self(1_024);

    /// The number of packets.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for Keep {
    type Error = String;
    fn try_from(packets: u16) -> Result<Self, String> {
        if packets <= Self::MAX {
            Ok(Self(packets))
        } else {
            Err(format!(
                "{packets} is out of range; expected 0 to {}",
                Self::MAX
            ))
        }
    }
}

impl From<Keep> for u16 {
    fn from(keep: Keep) -> Self {
        keep.0
    }
}

impl JsonSchema for Keep {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Keep".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 0, "maximum": Self::MAX })
    }
}

/// Memory of a restorer: packets or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Limit", into = "Limit")]
pub struct Memory(Limit);

impl Memory {
    /// Maximum number of packets.
    pub const MAX_PACKETS: u64 = 1_000_000;
    /// Maximum number of bytes: [`Memory::MAX_PACKETS`] packets of 1,500 bytes.
    pub const MAX_BYTES: u64 = 1_500 * Self::MAX_PACKETS;

    /// A limit in packets.
    #[must_use]
    pub const fn packets(packets: u64) -> Self {
        Self(Limit::Packets(packets))
    }
    /// The limit.
    #[must_use]
    pub const fn get(self) -> Limit {
        self.0
    }
}

impl TryFrom<Limit> for Memory {
    type Error = String;
    fn try_from(limit: Limit) -> Result<Self, String> {
        match limit {
            Limit::Packets(packets) if packets <= Self::MAX_PACKETS => Ok(Self(limit)),
            Limit::Bytes(bytes) if bytes.get() <= Self::MAX_BYTES => Ok(Self(limit)),
            Limit::Packets(_) | Limit::Bytes(_) => Err(format!(
                "{limit} is out of range; expected {} or {} at most",
                Limit::Packets(Self::MAX_PACKETS),
                Bytes::new(Self::MAX_BYTES)
            )),
            Limit::Unlimited => Err(
                "a restorer's memory is limited; expected packets or bytes, for example \"4096 packets\""
                    .to_owned(),
            ),
            Limit::Bdp(_) => Err(
                "a restorer's memory is no multiple of the bandwidth-delay product; expected packets or bytes, for example \"4096 packets\""
                    .to_owned(),
            ),
        }
    }
}

impl From<Memory> for Limit {
    fn from(memory: Memory) -> Self {
        memory.0
    }
}

impl JsonSchema for Memory {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Memory".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Limit::json_schema(generator);
        schema.remove("description");
        let most = Limit::Packets(Self::MAX_PACKETS).to_string();
        schema.insert("x-maximum".to_owned(), most.into());
        for key in ["x-units", "pattern"] {
            let text = schema.get(key).and_then(serde_json::Value::as_str);
            let text = text.unwrap_or_default().replace("^unlimited$|", "");
            let text = text.replace("bdp, ", "").replace("|bdp", "");
            schema.insert(key.to_owned(), text.into());
        }
        schema.insert(
            "examples".to_owned(),
            serde_json::json!(["4096 packets", "4 MiB"]),
        );
        schema
    }
}
