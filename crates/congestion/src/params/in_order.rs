//! Parameters of which one may not exceed another, however they are set.

/// Reads and writes parameters that are `remote = "Self"`, and rejects a lower bound above the
/// upper one. With `if`, the check applies only if that switch is on.
macro_rules! in_order {
    ($Params:ident: $($lower:ident <= $upper:ident $(if $switch:ident)?),+ $(,)?) => {
        impl serde::Serialize for $Params {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Params {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let params = Self::deserialize(from)?;
                $(if params.$lower > params.$upper $(&& params.$switch)? {
                    return Err(serde::de::Error::custom(format!(
                        concat!(
                            "`{}` ({}) is above `{}` ({})",
                            $(" while `", stringify!($switch), "` is true",)?
                        ),
                        stringify!($lower),
                        String::from(params.$lower),
                        stringify!($upper),
                        String::from(params.$upper)
                    )));
                })+
                Ok(params)
            }
        }
    };
}

pub(crate) use in_order;
