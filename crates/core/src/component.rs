//! Common frame of congestion controls, queues and impairments. Each family is a list of built-in
//! entries, one file and one line each, and an entry from outside the workspace.

use std::fmt;

/// A component from outside the workspace, as part of a scenario.
#[derive(Clone)]
pub struct Custom<F> {
    /// The name of the component.
    pub name: String,
    /// The parameters written beside `kind`, for the resolved scenario.
    pub params: serde_json::Value,
    /// Builds an instance.
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
/// Factories cannot be compared: two with equal names and parameters are equal.
impl<F> PartialEq for Custom<F> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params == other.params
    }
}

/// Declares a family: its modules, `Config` (the parameters of any entry), the enum of instances,
/// and `registry`. The macro also defines `each!`, which matches on either enum and treats all
/// built-in entries alike.
///
/// The parentheses contain the inputs of an entry in addition to its parameters. The calling module
/// has a `Custom` whose factory takes the same inputs. `file::Type | Other` declares an entry whose
/// instances are of several types.
#[macro_export]
macro_rules! components {
    (enum $Any:ident: $Trait:ident($($arg:ident: $Arg:ty)?); $($entries:tt)*) => {
        $crate::components! {
            @write $Any $Trait ($($arg)?) ($($arg: $Arg)?) $($entries)*
        }
    };
    // The arguments are also passed as a whole, because they are needed inside a repetition over
    // the entries.
    (
        @write $Any:ident $Trait:ident $arguments:tt ($($parameter:tt)*)
        $($(#[$attr:meta])* $file:ident :: $Type:ident $(| $Form:ident)*,)*
    ) => {
        $(pub mod $file;)*

        /// Any entry with its parameters, as named in a scenario file.
        #[derive(
            Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Config {
            $(#[doc = concat!("See [`", stringify!($file), "`].")] $(#[$attr])* $Type($file::Params),)*
            /// An entry from outside the workspace.
            #[serde(skip)]
            Custom(Custom),
        }

        /// An instance of any entry. Built-in entries are dispatched without indirection.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "each is documented at its type")]
        pub enum $Any {
            $($Type($file::$Type), $($Form($file::$Form),)*)*
            Boxed(Box<dyn $Trait>),
        }

        impl Config {
            /// Builds an instance.
            #[must_use]
            pub fn build(&self, $($parameter)*) -> $Any {
                match self {
                    $(Self::$Type(params) => {
                        $crate::component_build!($Any $file $Type [$($Form)*] params $arguments)
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
            /// The built-in entry of this name with its default parameters.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                $(if name == $file::META.name {
                    return Some(Self::$Type($file::Params::default()));
                })*
                None
            }
        }

        /// The self-description and defaults of every built-in entry, in registry order.
        #[must_use]
        pub fn registry() -> Vec<(&'static $crate::registry::Meta, Config, schemars::Schema)> {
            vec![$((&$file::META, Config::$Type($file::Params::default()), schemars::schema_for!($file::Params)),)*]
        }

        macro_rules! each {
            ($value:expr, $inner:ident => $body:expr) => {
                match $value {
                    $(Self::$Type($inner) => $body, $(Self::$Form($inner) => $body,)*)*
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

/// Builds an instance. Of several types, `build` in the file of the entry selects one.
#[macro_export]
macro_rules! component_build {
    ($Any:ident $file:ident $Type:ident [] $params:ident ($($input:ident)?)) => {
        $Any::$Type($file::$Type::new($params, $($input)?))
    };
    ($Any:ident $file:ident $Type:ident [$($Form:ident)+] $params:ident ($($input:ident)?)) => {
        $file::build($params, $($input)?)
    };
}
