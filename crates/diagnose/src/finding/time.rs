//! Limits that took a notable share of the time.

use super::{
    Case, EndName, Finding, MUCH, Role, counted, milliseconds, opening::syn_loss, percent,
};
use crate::limit::Limit;

/// Time of a limit that no other finding reports.
fn time(case: &Case<'_>, limit: Limit) -> f64 {
    let all = case.data.time(limit);
    match limit {
        Limit::Application => {
            all - case.data.receiver_application_s - case.data.closing_s - unanswered(case)
        }
        Limit::ReceiveWindow => all - case.data.receiver_unread_s,
        Limit::RoundTrips => case.data.turns_s,
        _ => all,
    }
}

/// Time in which the sender's program did not answer the last request.
fn unanswered(case: &Case<'_>) -> f64 {
    let request = case.connection.unanswered_request.as_ref();
    let request = request.filter(|one| one.acknowledged && case.sender == case.connection.b);
    // The connection's account ends with its last packet.
    let end_s = case.connection.start_s + case.connection.duration_s;
    request.map_or(0.0, |one| one.waited_s.min(end_s - one.sent_s))
}

/// Limits of a sender that has more data to send.
const HELD: [Limit; 4] = [
    Limit::SendBuffer,
    Limit::ReceiveWindow,
    Limit::ZeroWindow,
    Limit::Bottleneck,
];

/// Whether other limits explain the slowness. If the sender had more to send for most of the time,
/// a host that is sometimes late is not reported as well.
fn is_explained(case: &Case<'_>, seconds: f64) -> bool {
    let held: f64 = HELD.iter().map(|limit| case.of_time(*limit)).sum();
    held > 0.5 && case.share(seconds) < MUCH
}

/// Describes the round trips that the programs cost, and the time saved by fewer.
fn turns(case: &Case<'_>, seconds: f64) -> String {
    let of = if case.data.turns == 1 {
        ""
    } else {
        ", one after the other"
    };
    let each = case
        .data
        .rtt_ms
        .median
        .map_or_else(String::new, |ms| format!(" of {}", milliseconds(ms)));
    format!(
        "{} answered {} of {}{of}. The round trips{each} took {} of the time; half as many would save {:.2} s.",
        case.sender,
        counted(case.data.turns, "request"),
        case.receiver,
        percent(case.share(seconds)),
        seconds / 2.0
    )
}

/// Describes the program's response time.
fn answers(case: &Case<'_>) -> String {
    if case.data.turns <= 1 {
        let took = milliseconds(case.data.answering_s * 1e3);
        return format!(
            "{} to {}: The application took {took} to answer a request.",
            case.sender, case.receiver
        );
    }
    let mean = case.data.answering_s * 1e3 / case.data.turns as f64;
    format!(
        "{} to {}: The application took {} on average to answer {}.",
        case.sender,
        case.receiver,
        milliseconds(mean),
        counted(case.data.turns, "request")
    )
}

/// Whether most of the application's time passed between requests and their answers.
fn is_late_answer(case: &Case<'_>, seconds: f64) -> bool {
    case.is_answering() && 2.0 * case.data.answering_s > seconds
}

/// The sentence about a limit.
fn text(case: &Case<'_>, limit: Limit, seconds: f64) -> String {
    match limit {
        Limit::RoundTrips => turns(case, seconds),
        Limit::Application if is_late_answer(case, seconds) => answers(case),
        Limit::CongestionWindow | Limit::Pacing if case.connection.fills_path(case.direction) => {
            let how = if limit == Limit::Pacing {
                "paced its segments, and"
            } else {
                "was limited by its congestion window, and"
            };
            let used = percent(case.connection.rate_used.unwrap_or_default().min(1.0));
            format!(
                "{} to {}: The sender {how} used {used} of the path's rate.",
                case.sender, case.receiver
            )
        }
        _ => format!(
            "{} to {}: {}{}",
            case.sender,
            case.receiver,
            limit.meta().meaning,
            unscaled(case, limit)
        ),
    }
}

/// Explains why the window cannot be larger, if window scaling is missing.
fn unscaled(case: &Case<'_>, limit: Limit) -> String {
    let end = case
        .connection
        .unscaled_by
        .filter(|_| limit == Limit::ReceiveWindow);
    end.map_or_else(String::new, |end| {
        let syn = if end == EndName::A { "SYN" } else { "SYN-ACK" };
        format!(
            " The window cannot exceed 65,535 octets, because the {syn} of {} offers no window scaling; a middlebox may have stripped the option.",
            case.end(end)
        )
    })
}

pub(super) fn find<'a>(case: &'a Case<'_>) -> impl Iterator<Item = (Limit, Finding)> + 'a {
    // Separate findings report these two.
    let others = |limit: &Limit| !matches!(limit, Limit::CaptureGap | Limit::Reordering);
    let limits = Limit::ALL.into_iter().filter(others);
    limits.filter_map(|limit| {
        let seconds = time(case, limit);
        // The end that sends the requests has little to send.
        let is_passed_over = match limit {
            Limit::Application => {
                !(case.is_main || is_late_answer(case, seconds)) || is_explained(case, seconds)
            }
            // Both ends wait for the same handshake. A lost SYN explains it.
            Limit::Handshake => {
                !case.is_main
                    || syn_loss(case).is_some()
                    || case.connection.unanswered_request.is_some()
            }
            // Both ends wait for the same round trips.
            Limit::RoundTrips => !case.is_answering(),
            Limit::Undecidable => case.connection.not_captured.is_some(),
            _ => false,
        };
        (case.is_notable(seconds) && !is_passed_over).then(|| {
            let found = Finding::new(case.share(seconds), text(case, limit, seconds));
            (limit, found.at(case.pauses(limit, None)))
        })
    })
}

/// An application that waits for requests from the other end.
pub(super) fn slow_client(case: &Case<'_>) -> Option<Finding> {
    let seconds = case.data.receiver_application_s;
    let share = case.share(seconds);
    // A server that answers late is reported for the direction of its data.
    let waits_for_client = case.is_main && case.is_answering();
    let text = format!(
        "{} was idle {} of the time, waiting for the next request from {}.",
        case.sender,
        percent(share),
        case.receiver
    );
    let pauses = || case.pauses(Limit::Application, Some(Role::Receiver));
    (waits_for_client && case.is_notable(seconds)).then(|| Finding::new(share, text).at(pauses()))
}

/// A receiver's application that reads more slowly than data arrives.
pub(super) fn slow_reader(case: &Case<'_>) -> Option<Finding> {
    let seconds = case.data.receiver_unread_s;
    let share = case.share(seconds);
    let text = format!(
        "in {} of the time the window was full because the application of {} had not read.",
        percent(share),
        case.receiver
    );
    let pauses = || case.pauses(Limit::ReceiveWindow, None);
    (case.is_notable(seconds)).then(|| case.finding(share, text).at(pauses()))
}
