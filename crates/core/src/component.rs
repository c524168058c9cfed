//! What congestion controls, queues and impairments have in common: each family is a list of
//! built-in entries, one file and one line each, beside which stands one from outside the workspace.

use std::fmt;

/// A component from outside the workspace, as a scenario carries it.
#[derive(Clone)]
pub struct Custom<F> {
    /// The name it goes by.
    pub name: String,
    /// The parameters written beside `kind`, for the resolved scenario.
    pub params: serde_json::Value,
    /// Makes one.
    pub build: F,
}

impl<F> fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("name", &self.name)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
/// Factories cannot be compared: two of one name and the same parameters count as one.
impl<F> PartialEq for Custom<F> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params == other.params
    }
}

/// Writes out a family: its modules, `Config` (the parameters of any of them), the enum of those at
/// work, and `registry`. After it, `each!` matches on either enum, every built-in entry treated alike.
///
/// The parentheses hold what an entry is made from besides its parameters. The calling module has
/// a `Custom` whose factory takes the same.
#[macro_export]
macro_rules! components {
    (enum $Any:ident: $Trait:ident($($arg:ident: $Arg:ty)?); $($entries:tt)*) => {
        $crate::components! {
            @write $Any $Trait ($($arg)?) ($($arg: $Arg)?) $($entries)*
        }
    };
    // The arguments once more as a whole, because they are needed inside a repetition over the entries.
    (
        @write $Any:ident $Trait:ident $arguments:tt ($($parameter:tt)*)
        $($(#[$attr:meta])* $file:ident :: $Type:ident,)*
    ) => {
        $(pub mod $file;)*

        /// Any of them with its parameters, as a scenario file names it.
        #[derive(
            Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Config {
            $(#[doc = concat!("See [`", stringify!($file), "`].")] $(#[$attr])* $Type($file::Params),)*
            /// One from outside the workspace.
            #[serde(skip)]
            Custom(Custom),
        }

        /// One of them at work. Built-in ones are dispatched without indirection.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "each is documented at its type")]
        pub enum $Any {
            $($Type($file::$Type),)*
            Boxed(Box<dyn $Trait>),
        }

        impl Config {
            /// Makes one.
            #[must_use]
            pub fn build(&self, $($parameter)*) -> $Any {
                match self {
                    $(Self::$Type(params) => {
                        $Any::$Type($crate::component_call!($file::$Type::new, params, $arguments))
                    },)*
                    Self::Custom(custom) => $Any::Boxed((custom.build) $arguments),
                }
            }
            /// The name that scenario files use.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Type(_) => $file::META.name,)*
                    Self::Custom(custom) => &custom.name,
                }
            }
        }

        /// Every built-in one's self-description and defaults, in registry order.
        #[must_use]
        pub fn registry() -> Vec<(&'static $crate::registry::Meta, Config, schemars::Schema)> {
            vec![$((&$file::META, Config::$Type($file::Params::default()), schemars::schema_for!($file::Params)),)*]
        }

        macro_rules! each {
            ($value:expr, $inner:ident => $body:expr) => {
                match $value {
                    $(Self::$Type($inner) => $body,)*
                    Self::Boxed($inner) => $body,
                }
            };
            ($value:expr, $inner:ident => $body:expr, custom => $custom:expr) => {
                match $value {
                    $(Self::$Type($inner) => $body,)*
                    Self::Custom(_) => $custom,
                }
            };
        }
    };
}

/// A call whose last arguments are one token tree in parentheses.
#[macro_export]
macro_rules! component_call {
    ($function:expr, $first:expr, ($($rest:tt)*)) => {
        $function($first, $($rest)*)
    };
}
