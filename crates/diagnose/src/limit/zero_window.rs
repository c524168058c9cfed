//! Zero window.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "zero-window",
    title: "Zero window",
    meaning: "The receiver's window was closed: its application did not read.",
    evidence: "The last window was smaller than a segment and all data was acknowledged, or the sender probed.",
    confusion: "A receive buffer that is smaller than a segment.",
    next: "find out why the program at {receiver} does not read",
    party: Some(Party::Receiver),
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.window.is_some_and(|window| window < wait.mss)
        && wait.room.is_some_and(|room| room < wait.mss)
}
