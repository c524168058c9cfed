//! Undecidable.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "undecidable",
    title: "Undecidable",
    meaning: "The capture does not show what the sender waited for.",
    evidence: "No rule holds.",
    confusion: "",
};

pub(super) fn holds(_: &Wait) -> bool {
    true
}
