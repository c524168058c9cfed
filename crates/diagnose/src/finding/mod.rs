//! Findings about a connection: one file per kind, and `time.rs` for the limits that took much of
//! the time.

mod bufferbloat;
mod burst_loss;
mod capture_gap;
mod copied_packets;
mod ecn_cleared;
mod ecn_not_echoed;
mod large_segments_lost;
mod loss_place;
pub(crate) mod no_response;
mod one_sided_capture;
mod policer;
mod queue_overflow;
mod random_loss;
mod refused;
mod reordering;
mod reset;
mod reset_by_middlebox;
mod route_change;
mod sequence_randomiser;
pub(crate) mod silent_peer;
mod slow_client;
mod slow_reader;
mod spurious_retransmission;
mod syn_loss;
mod tail_loss;
mod time;
mod unanswered;
mod window_scaling_ignored;

use std::collections::BTreeMap;

pub use crate::term::{Cause, Meta};

use crate::{
    limit::Limit,
    report::{
        self, Connection, DirectionName, EndName, Evidence, Handshake, LossSide, OneWay, Origin,
        Retransmission, Role, Sign, Trigger,
    },
    term::terms,
};

/// Maximum number of frames that a finding names.
const MOST_PACKETS: usize = 8;
/// Minimum share of the time that is reported, and minimum time in seconds unless the share is
/// large.
const LEAST_SHARE: f64 = 0.05;
const LEAST_SECONDS: f64 = 0.25;
const MUCH: f64 = 0.2;
/// Minimum number of losses, unexplained by a queue, that show a kind of loss. If a queue lost
/// segments as well, more losses and a share of all are required: a queue does not seem full when
/// an overflow begins.
const FEW: usize = 3;
const FEW_BESIDES: usize = 5;
const LEAST_BESIDES: usize = 20;

terms! {
    /// A kind of finding other than a limit.
    Kind: find(&Case<'_>) -> Option<Finding>;
    Unanswered = unanswered,
    Refused = refused,
    SynLoss = syn_loss,
    Reset = reset,
    ResetByMiddlebox = reset_by_middlebox,
    SilentPeer = silent_peer,
    NoResponse = no_response,
    SlowClient = slow_client,
    SlowReader = slow_reader,
    Bufferbloat = bufferbloat,
    Policer = policer,
    RandomLoss = random_loss,
    BurstLoss = burst_loss,
    QueueOverflow = queue_overflow,
    TailLoss = tail_loss,
    LossBeforeCapture = loss_place::before,
    LossAfterCapture = loss_place::after,
    SpuriousRetransmission = spurious_retransmission,
    Reordering = reordering,
    LargeSegmentsLost = large_segments_lost,
    WindowScalingIgnored = window_scaling_ignored,
    RouteChange = route_change,
    SequenceRandomiser = sequence_randomiser,
    EcnCleared = ecn_cleared,
    EcnNotEchoed = ecn_not_echoed,
    CaptureGap = capture_gap,
    OneSidedCapture = one_sided_capture,
    CopiedPackets = copied_packets,
}

/// The share of a cause, and the evidence.
struct Finding {
    share: f64,
    text: String,
    packets: Vec<u64>,
}

impl Finding {
    fn of(self, cause: Cause, direction: DirectionName) -> report::Finding {
        report::Finding {
            cause,
            direction,
            share: self.share,
            text: self.text,
            packets: self.packets,
        }
    }
}

/// A direction of a connection and its two ends.
struct Case<'a> {
    connection: &'a Connection,
    data: &'a OneWay,
    sender: &'a str,
    receiver: &'a str,
    /// Most of the connection's data flows in this direction.
    is_main: bool,
    /// Octets of the largest segment that arrived in any connection from this sender to this
    /// receiver.
    largest_acknowledged: u64,
}

impl<'a> Case<'a> {
    /// The connection if this is its main direction, for findings reported once.
    fn once(&self) -> Option<&'a Connection> {
        self.is_main.then_some(self.connection)
    }

    /// Whether the sender answers requests: the end that did not open the connection; without a
    /// handshake, the end with more data.
    fn is_answering(&self) -> bool {
        if self.connection.handshake == Handshake::Missed {
            self.is_main
        } else {
            self.sender == self.connection.b
        }
    }

    /// Whether this direction uses the path's rate.
    fn fills_path(&self) -> bool {
        self.is_main && self.connection.rate_used.is_some() && {
            let forward = self.sender == self.connection.a;
            let way = if forward {
                DirectionName::AToB
            } else {
                DirectionName::BToA
            };
            self.connection.fills_path(way)
        }
    }

    /// The address of `a` or `b`.
    fn end(&self, name: EndName) -> &'a str {
        match name {
            EndName::A => &self.connection.a,
            EndName::B => &self.connection.b,
        }
    }

    /// Seconds attributed to a limit.
    fn time(&self, limit: Limit) -> f64 {
        self.data.limits_s.get(&limit).copied().unwrap_or(0.0)
    }

    /// Share of the connection's time until its last data.
    fn share(&self, seconds: f64) -> f64 {
        let active = self.connection.duration_s - self.connection.quiet_s;
        if active > 0.0 {
            (seconds / active).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Whether a time is long enough to be reported.
    fn is_notable(&self, seconds: f64) -> bool {
        let share = self.share(seconds);
        share >= LEAST_SHARE && (seconds >= LEAST_SECONDS || share >= MUCH)
    }

    fn of_time(&self, limit: Limit) -> f64 {
        self.share(self.time(limit))
    }

    /// Share of the segments with data. `count` may include a SYN or FIN without data.
    fn of_segments(&self, count: usize) -> f64 {
        let bare = self
            .data
            .retransmissions
            .iter()
            .filter(|one| one.bytes == 0);
        let all = self.data.data_packets + bare.count() as u64;
        count as f64 / all.max(count as u64).max(1) as f64
    }

    /// The first retransmissions of lost segments, in the order of their data. Probes of a closed
    /// window are excluded: the receiver discards them, the path does not lose them.
    fn losses(&self) -> Vec<&'a Retransmission> {
        let all = self.data.retransmissions.iter();
        let mut lost: Vec<_> = all
            .filter(|one| {
                one.needed == Some(true) && one.seq >= 0 && one.trigger != Trigger::WindowProbe
            })
            .collect();
        lost.sort_by_key(|one| (one.seq, one.packet));
        lost.dedup_by_key(|one| one.seq);
        lost
    }

    /// The losses in runs of neighbours: those at the tail of a flight, which a timer detected, and
    /// the others.
    fn runs(&self) -> (Vec<Vec<&'a Retransmission>>, Vec<Vec<&'a Retransmission>>) {
        let mut runs: Vec<Vec<&Retransmission>> = Vec::new();
        for one in self.losses() {
            match runs.last_mut() {
                Some(run) if run.last().is_some_and(|last| end(last) == one.seq) => run.push(one),
                _ => runs.push(vec![one]),
            }
        }
        let is_tail = |run: &Vec<&Retransmission>| {
            let mut run = run.iter();
            run.any(|one| matches!(one.trigger, Trigger::Rto | Trigger::Tlp))
        };
        runs.into_iter().partition(is_tail)
    }

    /// The losses while no queue was full, if there are enough to determine their kind.
    fn unexplained_losses(&self) -> Option<Vec<Vec<&'a Retransmission>>> {
        let (_, runs) = self.runs();
        let is_hidden = |run: &&Vec<&Retransmission>| {
            self.data.hides_queue && run.iter().any(|one| one.lost == LossSide::Before)
        };
        let runs = runs.into_iter().filter(|run| !is_hidden(&run));
        let (full, runs): (Vec<_>, Vec<_>) = runs.partition(|run| is_overflow(run));
        let queued: usize = full.iter().map(Vec::len).sum();
        let is_known = self.data.policed_mbit_s.is_some() || large_segments_lost::is_stuck(self);
        let count: usize = runs.iter().map(Vec::len).sum();
        // A receiver discards late originals with an old timestamp (RFC 7323 §5.3).
        let late = self.data.reordered_packets + self.data.reordered_after_packets;
        let are_late = 4 * count as u64 <= late;
        // One run is one event, whatever its length. Gaps in the capture hide the round-trip time.
        let are_many = if runs.len() == 1 {
            false
        } else if queued > 0 && self.data.capture_gaps > 0 {
            count >= FEW_BESIDES && count > queued
        } else if queued > 0 {
            count >= FEW_BESIDES && LEAST_BESIDES * count >= count + queued
        } else {
            count >= FEW
        };
        (are_many && !is_known && !are_late).then_some(runs)
    }

    /// A finding about this direction of data.
    fn finding(&self, share: f64, text: &str) -> Finding {
        Finding {
            share,
            text: format!("{} to {}: {text}", self.sender, self.receiver),
            packets: Vec::new(),
        }
    }

    /// A finding about lost segments, with its sentence.
    fn losing(&self, losses: &[&Retransmission], text: &str) -> Finding {
        Finding {
            packets: frames(losses),
            ..self.finding(self.of_segments(losses.len()), text)
        }
    }

    /// A finding about segments that were lost in some way, if there are any.
    fn lost(&self, losses: &[&Retransmission], how: &str) -> Option<Finding> {
        let count = losses.len();
        if count == 0 {
            return None;
        }
        let part = percent(self.of_segments(count));
        let text = format!(
            "{} ({part}) {} lost {how}.",
            counted(count, "segment"),
            were(count)
        );
        Some(self.losing(losses, &text))
    }

    /// The frames around the pauses caused by a limit.
    fn pauses(&self, limit: Limit, side: Option<Role>) -> Vec<u64> {
        let stalls = self.data.stalls.iter();
        stalls
            .filter(|stall| stall.cause == limit && (side.is_none() || stall.side == side))
            .flat_map(|stall| stall.packets.iter().copied())
            .take(MOST_PACKETS)
            .collect()
    }
}

/// Whether a run of losses met a full queue. Beyond the capture point each loss shows it, so that most of
/// them decide; before it only some do.
fn is_overflow(run: &[&Retransmission]) -> bool {
    let full = run.iter().filter(|one| one.queue_full).count();
    let are_shown = run.iter().all(|one| one.lost == LossSide::After);
    full > if are_shown { run.len() / 2 } else { 0 }
}

/// The frames of retransmissions.
fn frames(of: &[&Retransmission]) -> Vec<u64> {
    let mut frames: Vec<_> = of.iter().map(|one| one.packet).collect();
    frames.sort_unstable();
    frames.truncate(MOST_PACKETS);
    frames
}

/// One past the last octet of a segment.
fn end(segment: &Retransmission) -> i64 {
    segment.seq + i64::from(segment.bytes)
}

/// Octets of the largest segment that was acknowledged, by sender and receiver.
type Largest = BTreeMap<(String, String), u64>;

/// The address of an end, without its port.
fn host(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(host, _)| host)
}

/// Adds its findings to each connection.
pub(crate) fn add(connections: &mut [Connection]) {
    let mut largest = Largest::new();
    for connection in &*connections {
        let [one, other] = connection.directions.all();
        let (a, b) = (host(&connection.a), host(&connection.b));
        for (way, from, to) in [(one, a, b), (other, b, a)] {
            let known = largest.entry((from.to_owned(), to.to_owned())).or_default();
            *known = way.largest_acknowledged_bytes.max(*known);
        }
    }
    let last = |one: &Connection| one.start_s + one.duration_s;
    let end_s = connections.iter().map(last).fold(0.0, f64::max);
    for connection in connections {
        connection.end_wait(end_s);
        connection.findings = all(connection, &largest);
    }
}

/// The findings of a connection, the largest share first.
fn all(connection: &Connection, largest: &Largest) -> Vec<report::Finding> {
    let ways = &connection.directions;
    let is_forward = ways.a_to_b.bytes >= ways.b_to_a.bytes;
    let mut findings = Vec::new();
    for direction in DirectionName::BOTH {
        let data = ways.of(direction);
        let [sender, receiver] = connection.ends(direction);
        let is_main = is_forward == (direction == DirectionName::AToB);
        let case = Case {
            connection,
            data,
            sender,
            receiver,
            is_main,
            largest_acknowledged: largest
                .get(&(host(sender).to_owned(), host(receiver).to_owned()))
                .copied()
                .unwrap_or(0),
        };
        if data.data_packets > 0 {
            let found = time::find(&case);
            findings.extend(found.map(|(limit, found)| found.of(limit.into(), direction)));
        }
        let found = Kind::ALL.into_iter().filter_map(|kind| {
            let found = kind.find(&case)?;
            Some(found.of(kind.into(), direction))
        });
        findings.extend(found);
    }
    findings.sort_by(|one, other| other.share.total_cmp(&one.share));
    findings
}

/// A count with its noun, whose plural ends in `s`.
fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The verb for a count.
const fn were(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Formats a duration.
fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

/// Formats a share in per cent, with a decimal below 10 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}
