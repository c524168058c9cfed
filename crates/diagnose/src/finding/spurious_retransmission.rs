//! Retransmissions of data that had arrived.

use super::{Case, Finding, Meta, counted, frames, were};

pub(super) const META: Meta = Meta {
    name: "spurious-retransmission",
    title: "Spurious retransmissions",
    meaning: "Segments were retransmitted although their data had arrived, or was only late.",
    evidence: "An acknowledgment, a timestamp or a duplicate SACK shows that an earlier copy arrived.",
    confusion: "Acknowledgments that were lost.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let counts = &case.data.retransmission_counts;
    if counts.spurious == 0 {
        return None;
    }
    let spurious = case.data.retransmissions.iter();
    let spurious: Vec<_> = spurious.filter(|one| one.needed == Some(false)).collect();
    let count = usize::try_from(counts.spurious).unwrap_or(usize::MAX);
    let all = counted(counts.all, "retransmission");
    let text = format!(
        "of {all}, {count} {} spurious: the data had arrived or was only late.",
        were(count)
    );
    Some(Finding {
        packets: frames(&spurious),
        ..case.finding(case.of_segments(count), &text)
    })
}
