//! Findings about a connection: the table of their kinds, and the rules by subject.

mod capture;
mod loss;
mod opening;
mod path;
pub(crate) mod silence;
mod time;

use std::{collections::BTreeMap, fmt::Display};

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
    Unanswered {
        name: "unanswered",
        title: "No answer",
        meaning: "Nothing answered the SYN.",
        evidence: "The capture has SYNs and no packet of the other end.",
        confusion: "Answers that take a way past the capture point.",
        next: "find out whether {called} is up and a firewall lets the SYN through; capture there",
        rank: Some(1),
        is_failure: true,
    } => opening::unanswered;
    Refused {
        name: "refused",
        title: "Refused",
        meaning: "A RST answered the SYN.",
        evidence: "The only answer to a SYN is a RST.",
        confusion: "A firewall that refuses in the name of the host.",
        next: "find out whether a program listens at {called}, or a firewall refuses",
        rank: Some(2),
        is_failure: true,
    } => opening::refused;
    SynLoss {
        name: "syn-loss",
        title: "SYN lost",
        meaning: "A SYN or its answer was lost, or answered too late.",
        evidence: "A SYN or SYN-ACK was retransmitted.",
        confusion: "A server whose queue of connections is full; a SYN that was lost before the capture point shows nowhere.",
        next: "find out whether {called} accepts fast enough (`ss -lnt`, ListenOverflows), or the path loses",
        rank: Some(4),
        is_failure: true,
    } => opening::syn_loss;
    Reset {
        name: "reset",
        title: "Reset by a host",
        meaning: "One end reset the connection.",
        evidence: "No two independent signs show that a device on the path sent the RST.",
        confusion: "A middlebox as many hops away as the host, or on the same machine.",
        is_failure: true,
    } => opening::reset;
    ResetByMiddlebox {
        name: "reset-by-middlebox",
        title: "Reset by a middlebox",
        meaning: "A device on the path reset the connection in the name of an end.",
        evidence: "Two independent signs or more: another number of hops; another numbering of packets or no timestamps; a sequence number \
             that the host does not use; an answer sooner than the host can give it; packets of the host that go on.",
        confusion: "A proxy or load balancer that answers for the host.",
        next: "look for a firewall or proxy between the hosts; capture on both sides of it",
        rank: Some(5),
        is_failure: true,
    } => opening::reset_by_middlebox;
    SilentPeer {
        name: "silent-peer",
        title: "Silent peer",
        meaning: "A host that had answered before left a segment unanswered over three timeouts or more, to the end of the capture.",
        evidence: "The retransmission timer sent the same segment three times or more, and no copy was acknowledged.",
        confusion: "An outage of the path that outlasts the capture; a capture that lacks the answers.",
    } => silence::silent_peer;
    NoResponse {
        name: "no-response",
        title: "No response",
        meaning: "The other end never answered the last request.",
        evidence: "The end that opened the connection sent the last data, and no data follows for a second or more, and four times the mean \
                   time of earlier answers. The other end's TCP acknowledged the request, or did not.",
        confusion: "A protocol without answers whose client sends a single message.",
        next: "find out why the program at {receiver} does not answer: its TCP acknowledged the request",
        rank: Some(11),
        is_failure: true,
    } => silence::no_response;
    SlowClient {
        name: "slow-client",
        title: "Slow client",
        meaning: "The sender waited for a request that the other end had not sent.",
        evidence: "All data was acknowledged, the next segment follows data of the other end, and that end had waited longer than a round trip before it sent it.",
        confusion: "A server that computes: its time begins with the request. A path whose delay exceeds its least one.",
        next: "find out why the client at {receiver} sends its requests late",
    } => time::slow_client;
    SlowReader {
        name: "slow-reader",
        title: "Slow reader",
        meaning: "The receiver's application read more slowly than data came.",
        evidence: "The window that was full had been more than twice as large.",
        confusion: "A receiver that shrinks its buffer because it lacks memory.",
        next: Limit::ZeroWindow.meta().next,
    } => time::slow_reader;
    Bufferbloat {
        name: "bufferbloat",
        title: "Bufferbloat",
        meaning: "A queue on the path holds more than the path itself.",
        evidence: "The sender filled the path for most of the time, and the median round trip was three times the least one or more.",
        confusion: "Cross traffic that fills the queue; a route that became longer.",
        next: Limit::Bottleneck.meta().next,
    } => path::bufferbloat;
    Policer {
        name: "policer",
        title: "Policer",
        meaning: "A device drops what exceeds a rate, instead of queuing it.",
        evidence: "Between losses as much data got through as one rate permits, the path carries more at once, and no queue built up before them.",
        confusion: "A bottleneck whose queue holds a few packets.",
        next: "ask for the contract's rate; a sender that shapes to it loses nothing",
        rank: Some(9),
    } => loss::policer;
    RandomLoss {
        name: "random-loss",
        title: "Random loss",
        meaning: "The path loses single segments.",
        evidence: "Segments were lost while the queue was not full, seldom two in a row.",
        confusion: "A policer that leaves few tokens; a queue that other traffic fills for moments.",
    } => loss::random;
    BurstLoss {
        name: "burst-loss",
        title: "Burst loss",
        meaning: "The path loses several segments in a row.",
        evidence: "Segments were lost while the queue was not full, half as many again as there were gaps, or more.",
        confusion: "A queue that other traffic fills for moments; a handover.",
    } => loss::burst;
    QueueOverflow {
        name: "queue-overflow",
        title: "Full queue",
        meaning: "A queue on the path was full and dropped segments.",
        evidence: "Segments were lost while the round trip was near its longest.",
        confusion: "Random losses on a path whose queue is always full.",
    } => loss::queue_overflow;
    TailLoss {
        name: "tail-loss",
        title: "Tail loss",
        meaning: "The last segments of a flight were lost, so that no acknowledgment showed it.",
        evidence: "A timer or a tail loss probe retransmitted a segment for the first time.",
        confusion: "Acknowledgments that were lost.",
    } => loss::tail;
    LossBeforeCapture {
        name: "loss-before-capture",
        title: "Loss before the capture point",
        meaning: "Segments were lost between the capture point and the sender.",
        evidence: "The capture has no earlier copy of what was retransmitted.",
        confusion: "A capture that drops packets, if the acknowledgment comes before the retransmission can.",
    } => loss::before_capture;
    LossAfterCapture {
        name: "loss-after-capture",
        title: "Loss after the capture point",
        meaning: "Segments were lost between the capture point and the receiver.",
        evidence: "The capture has an earlier copy of what was retransmitted, and it did not arrive.",
        confusion: "A capture behind the place of the loss that sees a copy on another way.",
    } => loss::after_capture;
    SpuriousRetransmission {
        name: "spurious-retransmission",
        title: "Spurious retransmissions",
        meaning: "Segments were retransmitted although their data had arrived, or was only late.",
        evidence: "An acknowledgment, a timestamp or a duplicate SACK shows that an earlier copy arrived.",
        confusion: "Acknowledgments that were lost.",
    } => loss::spurious_retransmission;
    Reordering {
        name: "reordering",
        title: "Reordering",
        meaning: "The path delivers segments after later ones.",
        evidence: "Segments came after later ones and were no retransmissions, or SACKs named a gap that its own segment filled.",
        confusion: "Several members of a link group, or a retransmission below IP.",
    } => loss::reordering;
    LargeSegmentsLost {
        name: "large-segments-lost",
        title: "MTU black hole",
        meaning: "Large segments never arrive: the path's MTU is smaller than the sender believes, and no ICMP message says so.",
        evidence: "A segment was retransmitted three times or more and never acknowledged, or only in smaller segments; smaller ones \
             were, from the handshake on, and none as large was in any connection between the hosts.",
        confusion: "A host or path that fails when the first large segment is sent.",
        next: "let ICMP pass, or clamp the MSS to the path's MTU",
        rank: Some(7),
        is_failure: true,
    } => silence::large_segments_lost;
    WindowScalingIgnored {
        name: "window-scaling-ignored",
        title: "Window scaling ignored on the path",
        meaning: "A device on the path takes the receiver's window without its scale and drops segments that end beyond it.",
        evidence: "Every segment beyond the window as the header has it was lost, none of them arrived at once, and segments of that size \
             within it did.",
        confusion: "A host or path that fails between the first flight and the second.",
        next: "look for a firewall between the hosts that ignores window scaling (RFC 7323 §2.3)",
        rank: Some(8),
        is_failure: true,
    } => silence::window_scaling_ignored;
    RouteChange {
        name: "route-change",
        title: "Route change",
        meaning: "The route became longer or shorter.",
        evidence: "The least round trip to one end stepped and stayed, while no more was in flight.",
        confusion: "A link that changes its coding or its scheduling, as radio links do.",
    } => path::route_change;
    SequenceRandomiser {
        name: "sequence-randomiser",
        title: "SACK blocks of other sequence numbers",
        meaning: "A firewall rewrites the sequence numbers of the connection and leaves those in the SACK option as they are. The \
                  sender ignores such blocks, so that it recovers lost segments without SACK, mostly by timeouts.",
        evidence: "SACK blocks lie beyond the receiver's window, below the first octet, in data that is sent for the first time later, \
                   or in data that is not acknowledged although data sent after the block is.",
        confusion: "A receiver whose SACK option is wrong. Blocks of data that the capture lost are not counted.",
        next: "let the firewall before {receiver} keep sequence numbers, or rewrite SACK options as well",
        rank: Some(6),
    } => path::sequence_randomiser;
    EcnCleared {
        name: "ecn-cleared",
        title: "ECN field cleared",
        meaning: "A device clears the ECN field, so that no queue can mark packets instead of dropping them.",
        evidence: "Both ends negotiated ECN, and the data passed the capture point as not ECN-capable, far from its sender.",
        confusion: "A sender that negotiates ECN and does not use it: captures at two points show the difference.",
        next: "find the device between {sender} and the capture point that clears the ECN field (the lowest two bits of the traffic class)",
    } => path::ecn_cleared;
    EcnNotEchoed {
        name: "ecn-not-echoed",
        title: "ECN marks not echoed",
        meaning: "Congestion marks (CE) pass, and the sender does not learn of them: it fills the queue until packets are dropped.",
        evidence: "Marked data passed the capture point, and no acknowledgment had ECE, although both ends negotiated it (RFC 3168 §6.1.3).",
        confusion: "A capture that lacks acknowledgments. Ends that negotiated AccECN are not judged.",
        next: "find out whether a device clears the marks or ECE on the way to and from {receiver}: capture there as well",
    } => path::ecn_not_echoed;
    CaptureGap {
        name: "capture-gap",
        title: "Capture gap",
        meaning: "The capture lost packets that the network delivered.",
        evidence: "Acknowledgments cover data that the capture does not have.",
        confusion: "Packets that took another way.",
        next: Limit::CaptureGap.meta().next,
        rank: Some(10),
    } => capture::gap;
    OneSidedCapture {
        name: "one-sided-capture",
        title: "Capture of one direction",
        meaning: "The capture has the packets of one end only.",
        evidence: "It has no packet of the other end, although there are acknowledgments of them; or most of the data exceeds the last window that it has of the other end.",
        confusion: "Replies to spoofed packets: there is no other end.",
        next: "capture where the packets of both ends pass: at one of the hosts, or on both of their ways",
        rank: Some(3),
    } => capture::one_sided;
    CopiedPackets {
        name: "copied-packets",
        title: "Copied packets",
        meaning: "The capture has packets more than once: a mirror port (SPAN) of both sides of a switch, a bridge, or a capture on \
                  several interfaces. Copies are counted as neither retransmissions nor duplicate acknowledgments.",
        evidence: "Equal packets, or the same data in other segments, follow sooner than any sender retransmits. Equal packets have \
                   the same IP identification if the sender counts its packets.",
        confusion: "A link that duplicates packets: the receiver then reports duplicate SACKs.",
    } => capture::copied_packets;
}

/// The share of a cause, and the evidence.
struct Finding {
    share: f64,
    text: String,
    packets: Vec<u64>,
}

impl Finding {
    fn new(share: f64, text: String) -> Self {
        Self {
            share,
            text,
            packets: Vec::new(),
        }
    }

    /// The finding with the frames that show it.
    fn at(self, packets: Vec<u64>) -> Self {
        Self { packets, ..self }
    }

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
    direction: DirectionName,
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

    /// The address of `a` or `b`.
    fn end(&self, name: EndName) -> &'a str {
        match name {
            EndName::A => &self.connection.a,
            EndName::B => &self.connection.b,
        }
    }

    /// Share of the connection's time until its last data.
    fn share(&self, seconds: f64) -> f64 {
        let active = self.connection.active_s();
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
        self.share(self.data.time(limit))
    }

    /// Share of the segments with data. `count` may include a SYN or FIN without data.
    fn of_segments(&self, count: u64) -> f64 {
        let sent = self.data.retransmissions.iter();
        let bare = sent.filter(|one| one.bytes == 0).count() as u64;
        let all = self.data.data_packets + bare;
        count as f64 / all.max(count).max(1) as f64
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
        // Without usable SACK blocks a sender repeats data that has arrived.
        let is_known = self.data.policed_mbit_s.is_some()
            || silence::is_stuck(self)
            || path::is_randomised(self.data);
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
    fn finding(&self, share: f64, text: impl Display) -> Finding {
        Finding::new(
            share,
            format!("{} to {}: {text}", self.sender, self.receiver),
        )
    }

    /// A finding about lost segments, with its sentence.
    fn losing(&self, losses: &[&Retransmission], text: impl Display) -> Finding {
        let share = self.of_segments(losses.len() as u64);
        self.finding(share, text).at(frames(losses))
    }

    /// A finding about segments that were lost in some way, if there are any.
    fn lost(&self, losses: &[&Retransmission], how: &str) -> Option<Finding> {
        let count = losses.len() as u64;
        let part = percent(self.of_segments(count));
        let segments = counted(count, "segment");
        let text = format!("{segments} ({part}) {} lost {how}.", were(count));
        (count > 0).then(|| self.losing(losses, text))
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
    let mut findings = Vec::new();
    for direction in DirectionName::BOTH {
        let data = ways.of(direction);
        let [sender, receiver] = connection.ends(direction);
        let is_main = ways.main() == direction;
        let case = Case {
            connection,
            direction,
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
const fn were(count: u64) -> &'static str {
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
