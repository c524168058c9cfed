//! Handshakes that do not complete although datagrams arrive, as far as an end can know the reason.

use core::fmt;

use super::Tunnel;

/// Initiations of the other end that were answered in vain before this is a hindrance. The other end
/// begins another one each 5 s.
const IN_VAIN: u32 = 2;

/// The reason why there is no session.
///
/// The pre-shared key enters the answer: the end that begins cannot open an answer under another
/// key. The end that answers sees only that its answers have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// Answers arrive and cannot be opened.
    PresharedKey,
    /// The other end repeats its handshake although it was answered.
    Unanswered,
}

impl Hindrance {
    /// Its name, for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::PresharedKey => "preshared_key",
            Self::Unanswered => "answers_in_vain",
        }
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PresharedKey => {
                "its answers cannot be opened: the pre-shared keys of the two ends differ"
            }
            Self::Unanswered => {
                "it repeats its handshake although it was answered: the pre-shared keys of the two \
                 ends differ, or the answers do not reach it"
            }
        })
    }
}

/// The observations since the last session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Observed {
    /// Whether an answer to this end's initiation could not be opened.
    pub(super) is_unreadable: bool,
    /// Initiations that were replaced by another one after they had been answered.
    pub(super) in_vain: u32,
}

impl Tunnel {
    /// The reason why no session begins, if one is known.
    #[must_use]
    pub fn hindrance(&self) -> Option<Hindrance> {
        let observed = self.handshakes.observed;
        if self.is_up() {
            None
        } else if observed.is_unreadable {
            Some(Hindrance::PresharedKey)
        } else {
            (observed.in_vain >= IN_VAIN).then_some(Hindrance::Unanswered)
        }
    }
}
