//! The next step for a connection, by the cause of its failure or slowness.
//!
//! The first of these decides: a finding with a rank, a silent peer, the finding with the largest
//! share of the time, the limit with the largest share.

use crate::{
    finding::{
        Cause, Kind, Meta,
        silence::{LEAST_TIMEOUTS, NEVER, UNACKNOWLEDGED},
    },
    limit::{LOSSES, Limit},
    report::{Connection, DirectionName, Evidence, Finding, OneWay, Retransmission, Trigger},
};

const LOSSES_BEFORE: &str =
    "find where the segments are lost: between {sender} and the capture point";
const ACKNOWLEDGMENTS: &str = "find where the acknowledgments of {receiver} are lost or delayed: between the capture \
                               point and {sender}";
const SYN_ACKS: &str =
    "find where the SYN-ACKs of {called} are lost: between the capture point and {caller}";
const ANSWERING: &str = "find out why the program at {sender} takes so long to answer";
const ASKING: &str = "find out why the client at {sender} sends its requests late";
const SILENCE: &str = "{receiver} left {copies} copies of a segment unanswered (frame {frame}): find out whether it is up, and \
                       whether a NAT or firewall dropped the connection";

/// Minimum share of the handshake at which a retransmitted SYN decides.
const LEAST_SHARE: f64 = 0.05;
/// Minimum share of the octets at which a gap in the capture decides: the rest supports no other step.
const LEAST_GAP: f64 = 0.5;
/// A connection fared badly if it lost this time and this share of its time.
const LEAST_LOST_S: f64 = 0.25;
const LEAST_LOST_SHARE: f64 = 0.2;

/// Adds to each connection its failure, its next step and the time that it lost.
pub(crate) fn add(connections: &mut [Connection]) {
    for connection in connections {
        connection.failure = failure(connection).map(Cause::from);
        connection.next = step(connection);
        connection.lost_s = lost_s(connection);
    }
}

/// The finding by which a connection failed or began late.
fn failure(connection: &Connection) -> Option<Kind> {
    let is_found = |kind: &Kind| {
        let mut findings = connection.findings.iter();
        kind.meta().is_failure && findings.any(|one| one.cause == *kind)
    };
    Kind::ALL.into_iter().find(is_found)
}

/// Time that a connection lost in its worse direction; 0 if it is little.
fn lost_s(connection: &Connection) -> f64 {
    let costly = |way: &OneWay| {
        let limits = way.limits_s.iter();
        let costly = limits.filter(|(limit, _)| limit.meta().costs_time);
        costly.map(|(_, time)| time).sum::<f64>() + way.turns_s + way.answering_s
    };
    // A connection that was never opened has no data.
    let unopened = connection.directions.a_to_b.time(Limit::Handshake);
    let ways = connection.directions.all().into_iter();
    let ways = ways.filter(|way| way.data_packets > 0 || way.bytes > 0);
    let lost = ways.map(costly).fold(unopened, f64::max);
    let least = LEAST_LOST_S.max(LEAST_LOST_SHARE * connection.active_s());
    if lost >= least { lost } else { 0.0 }
}

/// The next step for a connection, by its slower direction; `None` if it took no time.
#[must_use]
pub fn step(connection: &Connection) -> Option<String> {
    let findings = || connection.findings.iter();
    let is_small = |one: &Finding| {
        (one.cause == Kind::SynLoss && one.share < LEAST_SHARE)
            || (one.cause == Kind::CaptureGap && one.share < LEAST_GAP)
    };
    let ranked = findings().filter(|one| one.cause.meta().rank.is_some() && !is_small(one));
    if let Some(one) = ranked.min_by_key(|one| one.cause.meta().rank) {
        let request = connection.unanswered_request.as_ref();
        let text = if one.cause == Kind::SynLoss && is_syn_answered(connection) {
            SYN_ACKS
        } else if one.cause == Kind::NoResponse && request.is_some_and(|one| !one.acknowledged) {
            UNACKNOWLEDGED
        } else {
            one.cause.meta().next
        };
        return Some(filled(text, connection, one.direction));
    }
    if let Some(step) = silence(connection) {
        return Some(step);
    }
    let timed = findings().filter(|one| is_timed(one.cause.meta()));
    let weight = |one: &Finding| -weight(one, connection);
    if let Some(one) = timed.min_by(|one, other| weight(one).total_cmp(&weight(other))) {
        let text = text(one.cause, connection, one.direction);
        return Some(filled(text, connection, one.direction));
    }
    let ways = &connection.directions;
    let direction = ways.main();
    let way = ways.of(direction);
    let limits = way.limits_s.iter().map(|(limit, time)| {
        let closing = if *limit == Limit::Application {
            way.closing_s
        } else {
            0.0
        };
        (*limit, time - closing)
    });
    let (limit, time) = limits.min_by(|one, other| other.1.total_cmp(&one.1))?;
    let text = text(limit.into(), connection, direction);
    (time > 0.0 && connection.active_s() > 0.0).then(|| filled(text, connection, direction))
}

/// Whether the share of a finding is a share of the time, so that the largest one decides.
fn is_timed(meta: &Meta) -> bool {
    meta.rank.is_none() && !meta.next.is_empty()
}

/// The share that only this finding explains: Nagle's algorithm may also have delayed a request.
fn weight(finding: &Finding, connection: &Connection) -> f64 {
    if finding.cause != Kind::SlowClient {
        return finding.share;
    }
    let others = connection.findings.iter();
    let held = others
        .filter(|one| one.cause == Limit::DelayedAckNagle && one.direction != finding.direction);
    finding.share - held.map(|one| one.share).sum::<f64>()
}

/// The step for a cause in a direction.
fn text(cause: Cause, connection: &Connection, direction: DirectionName) -> &'static str {
    let way = connection.directions.of(direction);
    let is_found = |kind| {
        let mut findings = connection.findings.iter();
        findings.any(|one| one.cause == kind && one.direction == direction)
    };
    let application = way.time(Limit::Application) - way.closing_s;
    if cause == Limit::Application && 2.0 * way.receiver_application_s > application {
        return Kind::SlowClient.meta().next;
    }
    if cause == Limit::Application && 2.0 * way.answering_s > application {
        // The end that opened the connection asks.
        return match direction {
            DirectionName::AToB => ASKING,
            DirectionName::BToA => ANSWERING,
        };
    }
    let of_network = [
        Limit::Pacing,
        Limit::CongestionWindow,
        Limit::FastRecovery,
        Limit::Undecidable,
    ];
    let is_network = of_network.iter().any(|limit| cause == *limit);
    if is_network && connection.fills_path(direction) {
        return Limit::Bottleneck.meta().next;
    }
    if cause == Limit::RetransmissionTimeout && are_acknowledged(way) {
        return ACKNOWLEDGMENTS;
    }
    // Losses and reordering explain these limits.
    let explained = [
        Limit::CongestionWindow,
        Limit::FastRecovery,
        Limit::RetransmissionTimeout,
    ];
    if !explained.iter().any(|limit| cause == *limit) {
        cause.meta().next
    } else if is_found(Kind::LossBeforeCapture) {
        LOSSES_BEFORE
    } else if is_found(Kind::RandomLoss) || is_found(Kind::BurstLoss) {
        LOSSES
    } else if is_found(Kind::Reordering) {
        Limit::Reordering.meta().next
    } else {
        cause.meta().next
    }
}

/// Whether most of the retransmissions by a timer were acknowledged before they were sent: the
/// acknowledgments passed the capture point and did not arrive in time.
fn are_acknowledged(way: &OneWay) -> bool {
    let is_timed = |one: &&Retransmission| matches!(one.trigger, Trigger::Rto | Trigger::Tlp);
    let timed = || way.retransmissions.iter().filter(is_timed);
    let known = timed().filter(|one| one.evidence == Evidence::AcknowledgedBefore);
    2 * known.count() > timed().count()
}

/// Whether a SYN was retransmitted although its SYN-ACK had passed the capture point.
fn is_syn_answered(connection: &Connection) -> bool {
    let mut again = connection.directions.a_to_b.retransmissions.iter();
    again.any(|one| one.seq < 0 && one.evidence == Evidence::AcknowledgedBefore)
}

/// The step for a host that left a segment unanswered over several timeouts.
fn silence(connection: &Connection) -> Option<String> {
    if connection.not_captured.is_some() {
        return None;
    }
    DirectionName::BOTH.into_iter().find_map(|direction| {
        let way = connection.directions.of(direction);
        let is_unanswered = |one: &&Retransmission| {
            one.trigger == Trigger::Rto && NEVER.contains(&one.evidence) && one.seq >= 0
        };
        let mut timeouts: Vec<_> = way.retransmissions.iter().filter(is_unanswered).collect();
        timeouts.sort_by_key(|one| one.seq);
        let segments = timeouts.chunk_by(|one, other| one.seq == other.seq);
        // The first one of the largest.
        let timeouts = segments.min_by_key(|one| std::cmp::Reverse(one.len()))?;
        let first = timeouts
            .first()
            .filter(|_| timeouts.len() >= LEAST_TIMEOUTS)?;
        let frame = first.earlier.unwrap_or(first.packet);
        let text = filled(SILENCE, connection, direction);
        let text = text.replace("{copies}", &(timeouts.len() + 1).to_string());
        Some(text.replace("{frame}", &frame.to_string()))
    })
}

fn filled(text: &str, connection: &Connection, direction: DirectionName) -> String {
    let [sender, receiver] = connection.ends(direction);
    let text = unmarked(text)
        .replace("{sender}", sender)
        .replace("{receiver}", receiver);
    text.replace("{called}", &connection.b)
        .replace("{caller}", &connection.a)
}

/// A text without the marks of its commands.
fn unmarked(text: &str) -> String {
    text.replace('`', "")
}
