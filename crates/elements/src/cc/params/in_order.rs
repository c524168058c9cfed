//! Parameters of which one may not exceed another, whoever writes them.

/// Reads and writes parameters that are `remote = "Self"`, and refuses those whose lower bound is above
/// the upper one.
macro_rules! in_order {
    ($Params:ident: $lower:ident <= $upper:ident) => {
        impl serde::Serialize for $Params {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Params {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let params = Self::deserialize(from)?;
                if params.$lower > params.$upper {
                    return Err(serde::de::Error::custom(format!(
                        "`{}` ({}) is above `{}` ({})",
                        stringify!($lower),
                        String::from(params.$lower),
                        stringify!($upper),
                        String::from(params.$upper)
                    )));
                }
                Ok(params)
            }
        }
    };
}

pub(in crate::cc) use in_order;
