//! Limits that took a notable share of the time.

use super::{Case, Finding, MUCH};
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

/// Limits of a sender that has more to send.
const HELD: [Limit; 4] = [
    Limit::SendBuffer,
    Limit::ReceiveWindow,
    Limit::ZeroWindow,
    Limit::Bottleneck,
];

/// A sender that had more to send for most of the time is slow for that reason: a host that is late for moments is no cause
/// besides.
fn is_explained(case: &Case<'_>, seconds: f64) -> bool {
    let held: f64 = HELD
        .iter()
        .map(|limit| case.of_time(limit.meta().name))
        .sum();
    held > 0.5 && case.share(seconds) < MUCH
}

/// Why the window can be no larger.
fn unscaled(case: &Case<'_>, limit: Limit) -> String {
    let end = case
        .connection
        .unscaled_by
        .filter(|_| limit == Limit::ReceiveWindow);
    end.map_or_else(String::new, |end| {
        let syn = if end == "a" { "SYN" } else { "SYN-ACK" };
        format!(
            " The window cannot exceed 65,535 octets, because the {syn} of {} offers no window scaling; a middlebox may have stripped the option.",
            case.end(end)
        )
    })
}

pub(super) fn find<'a>(case: &'a Case<'_>) -> impl Iterator<Item = Finding> + 'a {
    // These two have rules of their own.
    let others = |limit: &Limit| !matches!(limit, Limit::CaptureGap | Limit::Reordering);
    let limits = Limit::ALL.into_iter().filter(others);
    limits.filter_map(|limit| {
        let meta = limit.meta();
        let seconds = time(case, limit);
        // Whoever sends the requests has little to send.
        let is_passed_over =
            limit == Limit::Application && (!case.is_main || is_explained(case, seconds));
        (case.is_notable(seconds) && !is_passed_over).then(|| Finding {
            cause: meta.name,
            share: case.share(seconds),
            text: format!(
                "{} to {}: {}{}",
                case.sender,
                case.receiver,
                meta.meaning,
                unscaled(case, limit)
            ),
            packets: case.pauses(meta.name, None),
        })
    })
}
