//! Limits that took a notable share of the time.

use super::{Case, Finding};
use crate::limit::Limit;

/// What of a limit is not a finding of its own.
fn time(case: &Case<'_>, limit: Limit) -> f64 {
    let all = case.time(limit.meta().name);
    match limit {
        Limit::Application => all - case.data.receiver_application_s - case.data.closing_s,
        Limit::ReceiveWindow => all - case.data.receiver_unread_s,
        _ => all,
    }
}

pub(super) fn find<'a>(case: &'a Case<'_>) -> impl Iterator<Item = Finding> + 'a {
    // These two have rules of their own.
    let others = |limit: &Limit| !matches!(limit, Limit::CaptureGap | Limit::Reordering);
    let limits = Limit::ALL.into_iter().filter(others);
    limits.filter_map(|limit| {
        let meta = limit.meta();
        let seconds = time(case, limit);
        // Whoever sends the requests has little to send.
        let is_asking = limit == Limit::Application && !case.is_main;
        (case.is_notable(seconds) && !is_asking).then(|| Finding {
            cause: meta.name,
            share: case.share(seconds),
            text: format!("{} to {}: {}", case.sender, case.receiver, meta.meaning),
            packets: case.pauses(meta.name, None),
        })
    })
}
