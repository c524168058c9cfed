//! Parameters of which one may not exceed another, whoever writes them.

/// Reads and writes parameters that are `remote = "Self"`, and refuses those whose lower bound is above
/// the upper one; with `if`, only where that switch is on.
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
