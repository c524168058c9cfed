//! Undecidable.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "undecidable",
    title: "Undecidable",
    meaning: "The capture does not show what the sender waited for.",
    evidence: "No rule holds. Far from the sender, an even flow of full segments may be a pace or a small send buffer.",
    confusion: "",
    next: "capture nearer to {sender}",
    ..Meta::PLAIN
};

pub(super) fn holds(_: &Wait) -> bool {
    true
}
