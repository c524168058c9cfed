//! Limits and findings as declared: each is an entry of a table ([`terms`]), with its description
//! and its rule. rustfmt skips declarations in a macro: rules of several lines are functions.

use serde::{Serialize, Serializer};

/// The description of a limit or a finding. The documentation and the next steps come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Its name in results.
    pub name: &'static str,
    /// Its name in text.
    pub title: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// Its evidence in the capture.
    pub evidence: &'static str,
    /// Other causes that look the same.
    pub confusion: &'static str,
    /// The next step for a connection. `{sender}` and `{receiver}` are the ends of its direction,
    /// `{called}` the end that did not open the connection. A command is between backticks, which
    /// results omit. Empty if others decide the step.
    pub next: &'static str,
    /// The rank of a finding whose step precedes the step of each limit. The lowest rank decides.
    pub rank: Option<u8>,
    /// The finding's connection failed, or began late.
    pub is_failure: bool,
    /// The party to which a limit's time is attributed.
    pub party: Option<Party>,
    /// The limit delays a transfer. Other limits are usual, or there was no data.
    pub costs_time: bool,
}

impl Meta {
    /// No step, no failure and no party.
    pub const PLAIN: Self = Self {
        name: "",
        title: "",
        meaning: "",
        evidence: "",
        confusion: "",
        next: "",
        rank: None,
        is_failure: false,
        party: None,
        costs_time: false,
    };
}

/// A party of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Party {
    /// The path, and what TCP makes of it.
    Network,
    /// The sender's host.
    Sender,
    /// The receiver's host.
    Receiver,
}

/// A limit or another finding as a cause. It is serialized as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause(pub(crate) &'static Meta);

impl Cause {
    /// Its description.
    #[must_use]
    pub const fn meta(self) -> &'static Meta {
        self.0
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name)
    }
}

/// Declares an enum whose variants each have a description and a rule. It is serialized as its name,
/// and ordered by it.
macro_rules! terms {
    ($(#[$doc:meta])* $name:ident: $rule:ident($of:ty) -> $result:ty;
     $($variant:ident { $($field:ident: $value:expr,)* } => $holds:expr;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("The entry `", stringify!($variant), "` of the table.")] $variant,)*
        }

        impl $name {
            /// All, in the order of the table.
            pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];

            /// Its description.
            #[must_use]
            pub const fn meta(self) -> &'static Meta {
                match self {
                    $(Self::$variant => &const { Meta { $($field: $value,)* ..Meta::PLAIN } },)*
                }
            }

            fn $rule(self, of: $of) -> $result {
                match self {
                    $(Self::$variant => {
                        let rule: fn($of) -> $result = $holds;
                        rule(of)
                    })*
                }
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.meta().name.cmp(other.meta().name)
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                crate::term::Cause::from(*self).serialize(to)
            }
        }

        impl From<$name> for crate::term::Cause {
            fn from(term: $name) -> Self {
                Self(term.meta())
            }
        }

        impl PartialEq<$name> for crate::term::Cause {
            fn eq(&self, term: &$name) -> bool {
                *self == Self::from(*term)
            }
        }
    };
}

pub(crate) use terms;
