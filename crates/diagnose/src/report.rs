//! The result, which the command prints as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

pub use crate::{
    connection::{
        announcements::{Origin, Sign},
        handshake::Handshake,
    },
    entries::{Counts, Ecn, Role, RoundTrips, Stall, UnscaledWindow},
    figures::{Fairness, Responsiveness},
    path::LossKind,
    quic::{QuicFlow, QuicLog},
    retransmission::{Evidence, LossSide, Retransmission, Trigger},
    segment::{DirectionName, EndName},
};

use crate::{
    connection::{self, direction::Direction, request::is_missing, route_change::Route, rtt::Rtt},
    figures,
    limit::Limit,
    path::{Estimate, Model, Seen},
    segment::End,
    term::Cause,
    time::{Nanos, seconds},
};

/// The diagnosis of a capture.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// The file's name.
    pub file: String,
    /// The kind of the file: `capture` or `qlog`. The frames of a qlog are its events.
    pub source: Source,
    /// The earliest time of an IP packet.
    pub start_s: Option<f64>,
    /// Frames of all kinds.
    pub packets: u64,
    /// Frames that are not used as TCP segments, by reason.
    pub passed_over: BTreeMap<String, u64>,
    /// Frames counted as `no-ip`, by reason.
    pub without_ip: BTreeMap<String, u64>,
    /// Packets whose time is before that of the previous packet.
    pub time_went_back: u64,
    /// The ordering of packets: `file`, `nearby`, `sorted` or `clock-set-back`.
    pub order: Order,
    /// Packets that could not be put in order: their time is damaged, or the capture cannot be read
    /// again.
    pub not_put_in_order: u64,
    /// How often the clock was set back. The order of the file is kept, and times continue from the
    /// previous packet.
    pub clock_set_back: u64,
    /// The capture ends within a record.
    pub cut_off: bool,
    /// Bytes after the last record.
    pub trailing_bytes: u64,
    /// The reason for which reading ended before the end of the file.
    pub damaged: Option<String>,
    /// Connections, in the order of their first packets.
    pub connections: Vec<Connection>,
    /// Jain's index of connections that competed: to or from one host, at the same time.
    pub fairness: Vec<Fairness>,
    /// Connections of QUIC in a capture, by their unencrypted headers.
    pub quic: Vec<QuicFlow>,
    /// Datagrams that begin connections of QUIC that are not listed.
    pub quic_not_listed: u64,
    /// Totals of the connections that are not listed.
    pub omitted: Omitted,
    /// Connections that were ended because too many were open.
    pub ended_early: u64,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Packets: pcap or pcapng.
    #[default]
    Capture,
    /// Events of QUIC.
    Qlog,
}

/// The transport protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// QUIC.
    Quic,
}

/// How the packets of a capture were put in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// They were in order in the file.
    #[default]
    File,
    /// Neighbouring packets were swapped.
    Nearby,
    /// All packets were sorted: files were joined, or queues or interfaces were written in turn.
    Sorted,
    /// The packets stayed in the order of the file: the clock was set back.
    ClockSetBack,
}

/// Totals of the connections that are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Omitted {
    /// Connections.
    pub connections: u64,
    /// Their packets.
    pub packets: u64,
    /// Their retransmissions.
    pub retransmissions: u64,
}

impl Omitted {
    pub(crate) fn add(&mut self, packets: u64, retransmissions: u64) {
        self.connections += 1;
        self.packets += packets;
        self.retransmissions += retransmissions;
    }
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Connection {
    /// Its number, from 1, by its first packet.
    pub id: u64,
    /// `tcp` or `quic`.
    pub transport: Transport,
    /// Properties of QUIC; `None` for TCP.
    pub quic: Option<QuicLog>,
    /// The end that sent the SYN, or else the first packet.
    pub a: String,
    /// The other end.
    pub b: String,
    /// The time of the first packet.
    pub start_s: f64,
    /// From the first to the last packet.
    pub duration_s: f64,
    /// Packets of both directions.
    pub packets: u64,
    /// Time after the last data of both ends, in which neither had more to send. Shares of the time
    /// exclude it.
    pub quiet_s: f64,
    /// The end that sent the last data: `a` or `b`.
    pub spoke_last: Option<EndName>,
    /// The last request, if it was never answered.
    pub unanswered_request: Option<UnansweredRequest>,
    /// The part of the handshake that was captured.
    pub handshake: Handshake,
    /// The end whose packets were not captured although it sent some: `a` or `b`. No limit is then
    /// decided for either end.
    pub not_captured: Option<EndName>,
    /// The end whose SYN or SYN-ACK lacks window scaling, so that no window exceeds 65,535 octets:
    /// `a` or `b`.
    pub unscaled_by: Option<EndName>,
    /// SYNs beyond the first.
    pub syn_retransmissions: u32,
    /// The first RST.
    pub reset: Option<Reset>,
    /// The place of the capture: `near-a`, `near-b`, `middle` or `unknown`.
    pub capture_point: CapturePoint,
    /// Both directions of data.
    pub directions: Directions,
    /// Findings about the connection.
    pub findings: Vec<Finding>,
    /// The finding by which the connection failed or began late.
    pub failure: Option<Cause>,
    /// The next step, in words.
    pub next: Option<String>,
    /// Time that the connection lost to limits that delay a transfer, to its requests' round trips
    /// and to answers, in the direction that lost more; 0 if it is little.
    pub lost_s: f64,
    /// Goodput of the direction with more data ÷ the rate of the path, if that was measured.
    /// Headers are part of the rate and not of the goodput.
    pub rate_used: Option<f64>,
    /// The model of the path.
    pub path: Path,
    /// Remedies.
    pub advice: Vec<Advice>,
}

/// A request that was never answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnansweredRequest {
    /// When its last data passed, as in the file.
    pub sent_s: f64,
    /// Time until the connection was closed, or else until the last packet of the capture.
    pub waited_s: f64,
    /// A FIN or RST ended the wait.
    pub closed: bool,
    /// The other end's TCP acknowledged all of it.
    pub acknowledged: bool,
    /// The mean time of the earlier answers of the other end's program; 0 without any.
    pub mean_answer_s: f64,
}

impl UnansweredRequest {
    fn of(from: &connection::Connection) -> Option<Self> {
        let request = from.last_request()?;
        let until = request.closed.unwrap_or(from.last);
        Some(Self {
            sent_s: seconds(request.sent),
            waited_s: seconds(until - request.sent),
            closed: request.closed.is_some(),
            acknowledged: request.is_acknowledged,
            mean_answer_s: request.mean_answer_s,
        })
    }
}

/// A cause, its share of the time, and the evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Its name.
    pub cause: Cause,
    /// The direction whose sender and receiver are concerned: `a_to_b` or `b_to_a`.
    pub direction: DirectionName,
    /// Share of the connection's time without `quiet_s`; of the segments with data if no time is
    /// known.
    pub share: f64,
    /// A sentence.
    pub text: String,
    /// Frames that show it.
    pub packets: Vec<u64>,
}

/// A RST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// `a` or `b`.
    pub by: EndName,
    /// Its frame.
    pub packet: u64,
    /// Its origin: `host`, `middlebox` or `unknown`.
    pub origin: Origin,
    /// Signs of a device on the path: `hops`, `ip-identification`, `no-timestamps`, `sequence`,
    /// `too-soon` or `goes-on`.
    pub signs: Vec<Sign>,
}

/// The position of the capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapturePoint {
    /// At `a`, or near it.
    NearA,
    /// At `b`, or near it.
    NearB,
    /// Between the two.
    Middle,
    /// Too few responses.
    Unknown,
}

/// The model of the path; empty if there is too little data.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Path {
    /// The model of the direction with more data.
    #[serde(flatten)]
    pub model: Option<Box<Model>>,
}

/// A remedy. Simulations find remedies; this crate does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {}

/// Data from `a` to `b`, and back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Directions {
    /// Data sent by `a`.
    pub a_to_b: OneWay,
    /// Data sent by `b`.
    pub b_to_a: OneWay,
}

impl Directions {
    /// The direction with more data.
    pub(crate) const fn main(&self) -> DirectionName {
        DirectionName::BOTH[(self.b_to_a.bytes > self.a_to_b.bytes) as usize]
    }

    pub(crate) fn all(&self) -> [&OneWay; 2] {
        DirectionName::BOTH.map(|way| self.of(way))
    }

    pub(crate) const fn of(&self, way: DirectionName) -> &OneWay {
        match way {
            DirectionName::AToB => &self.a_to_b,
            DirectionName::BToA => &self.b_to_a,
        }
    }
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneWay {
    /// Octets of data, each counted once: from the first to the last that was captured or
    /// acknowledged.
    pub bytes: u64,
    /// Octets of data that were captured, each counted once.
    pub captured_bytes: u64,
    /// Octets of data that were not captured: acknowledgments or later data show that they were
    /// sent.
    pub uncaptured_bytes: u64,
    /// Packets, with data or without.
    pub packets: u64,
    /// Packets with data.
    pub data_packets: u64,
    /// Octets from the first to the last that was captured ÷ the time from the first to the last
    /// segment with data.
    pub goodput_mbit_s: Option<f64>,
    /// Round trips.
    pub rtt_ms: RoundTrips,
    /// Round trips per minute, idle and under load.
    pub responsiveness: Responsiveness,
    /// Retransmissions, in the order of the capture.
    pub retransmissions: Vec<Retransmission>,
    /// Their number, listed or not.
    pub retransmission_counts: Counts,
    /// Their number, by trigger.
    pub triggers: BTreeMap<Trigger, u64>,
    /// Packets that passed the capture point after later ones.
    pub reordered_packets: u64,
    /// Packets that arrived at the receiver after later ones, reordered downstream of the capture
    /// point.
    pub reordered_after_packets: u64,
    /// Copies made by the network or by the capture.
    pub duplicated_packets: u64,
    /// Gaps in the capture.
    pub capture_gaps: u64,
    /// Octets in these gaps.
    pub capture_gap_bytes: u64,
    /// Acknowledgments that announced a closed window.
    pub zero_windows: u64,
    /// SACK blocks that were used.
    pub sack_blocks: u64,
    /// SACK blocks that were ignored: they lie beyond the captured data, or no receiver of it would
    /// send them.
    pub ignored_sack_blocks: u64,
    /// SACK blocks that no receiver of this data would send.
    pub wrong_sack_blocks: u64,
    /// ECN of the data, and its echoes.
    pub ecn: Ecn,
    /// Segments far outside any window.
    pub implausible_packets: u64,
    /// Time by limit; the sum is the connection's duration.
    pub limits_s: BTreeMap<Limit, f64>,
    /// Part of `application` in which the receiver's application had not yet sent its message: a
    /// request.
    pub receiver_application_s: f64,
    /// Part of `application` after the FIN, or after the last data of both ends.
    pub closing_s: f64,
    /// Part of `application` between a message of the receiver and the first segment of the answer.
    pub answering_s: f64,
    /// Messages of the receiver that this end waited for and answered, each at the cost of a round
    /// trip.
    pub turns: u64,
    /// Part of `round-trips` that these messages took, at most one round trip each. Long requests
    /// and answers took the rest.
    pub turns_s: f64,
    /// Part of `receive-window` in which the window was less than half of its earlier size: the
    /// receiver's application had not read.
    pub receiver_unread_s: f64,
    /// Octets of the largest segment that was acknowledged.
    pub largest_acknowledged_bytes: u64,
    /// Segments counted by their position in the receiver's window, taken without its scale.
    pub unscaled_window: Option<UnscaledWindow>,
    /// Changes of the route.
    pub route_changes: Vec<RouteChange>,
    /// The rate of a policer.
    pub policed_mbit_s: Option<f64>,
    /// Pauses of more than a round trip.
    pub stalls: Vec<Stall>,
    /// Pauses that are not listed.
    pub stalls_not_listed: u64,
    /// A queue before the capture point appears in no round trip.
    pub hides_queue: bool,
}

/// A change of the route: the minimum round-trip time of one part of the path steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteChange {
    /// Time as in the file.
    pub time_s: f64,
    /// The end towards which the route changed: `sender` or `receiver`.
    pub towards: Role,
    /// The minimum round-trip time between the capture point and that end before the change.
    pub before_ms: f64,
    /// The same after the change.
    pub after_ms: f64,
}

/// Formats an address and a port as in URLs.
fn end((address, port): End) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

/// Maximum share of the round trip at which a host is near the capture point.
const NEAR: f64 = 0.1;

/// Largest share of the path's rate that the goodput has, if the rate varies.
const MOST_USED: f64 = 1.2;
/// Share of the path's rate from which on the path is full.
const FULL: f64 = 0.9;

fn capture_point(from: &connection::Connection) -> CapturePoint {
    match from.least_answers() {
        [Some(to_a), Some(to_b)] => {
            let all = (to_a + to_b).max(1) as f64;
            if to_a as f64 / all < NEAR {
                CapturePoint::NearA
            } else if to_b as f64 / all < NEAR {
                CapturePoint::NearB
            } else {
                CapturePoint::Middle
            }
        }
        _ => CapturePoint::Unknown,
    }
}

impl Connection {
    /// Ends the wait for an answer with the capture, and discards it if it is short.
    pub(crate) fn end_wait(&mut self, end_s: f64) {
        self.unanswered_request = self.unanswered_request.take().and_then(|request| {
            let waited_s = if request.closed {
                request.waited_s
            } else {
                end_s - request.sent_s
            };
            is_missing(waited_s, request.mean_answer_s).then_some(UnansweredRequest {
                waited_s,
                ..request
            })
        });
    }

    pub(crate) fn of(from: &connection::Connection) -> Self {
        let duration = from.last - from.start;
        let [a_to_b, b_to_a] = &from.directions;
        let [to_a, to_b] = from.least_answers();
        let mut directions = Directions {
            a_to_b: OneWay::of(a_to_b, to_a),
            b_to_a: OneWay::of(b_to_a, to_b),
        };
        for (from_end, way) in [&mut directions.a_to_b, &mut directions.b_to_a]
            .into_iter()
            .enumerate()
        {
            way.unscaled_window = way.unscaled_window.filter(|_| from.scales_window(from_end));
        }
        let mut model = from.path();
        let fastest = model.as_ref().map(|model| model.rate_mbit_s);
        let fastest = fastest
            .filter(|rate| rate.seen == Seen::Measured)
            .and_then(|rate| rate.value);
        directions.a_to_b.compare_rate(fastest);
        directions.b_to_a.compare_rate(fastest);
        if let Some(model) = &mut model {
            let rate = directions.of(model.direction).policed_mbit_s;
            model.policer = model.policer.filter(|_| rate.is_some());
        }
        let reset = |by, end: usize| {
            let host = &from.announced[end];
            host.rst.map(|packet| Reset {
                by,
                packet,
                origin: host.reset_origin(),
                signs: host.reset_signs(),
            })
        };
        let first = match (reset(EndName::A, 0), reset(EndName::B, 1)) {
            (Some(a), Some(b)) => Some(if a.packet < b.packet { a } else { b }),
            (one, other) => one.or(other),
        };
        let mut made = Self {
            id: from.id,
            transport: Transport::Tcp,
            quic: None,
            a: end(from.ends[0]),
            b: end(from.ends[1]),
            start_s: seconds(from.start),
            duration_s: seconds(duration),
            packets: from.packets,
            quiet_s: seconds(from.quiet()),
            spoke_last: from.spoke_last().map(|end| EndName::BOTH[end]),
            unanswered_request: UnansweredRequest::of(from),
            handshake: from.handshake(),
            not_captured: from.not_captured().map(|end| EndName::BOTH[end]),
            unscaled_by: from.unscaled().map(|end| EndName::BOTH[end]),
            syn_retransmissions: from
                .announced
                .iter()
                .map(|end| end.syns.saturating_sub(1))
                .sum(),
            reset: first,
            capture_point: capture_point(from),
            directions,
            findings: Vec::new(),
            failure: None,
            next: None,
            lost_s: 0.0,
            rate_used: None,
            path: Path {
                model: model.map(Box::new),
            },
            advice: Vec::new(),
        };
        made.rate_used = made.path.model.as_mut().and_then(|model| {
            let goodput = made.directions.of(model.direction).goodput_mbit_s;
            let used = figures::rate_used(model, goodput);
            if used.is_some_and(|used| used > MOST_USED) {
                // The sender's own pace was taken for the rate of the path.
                model.rate_mbit_s = Estimate::at_least(goodput.unwrap_or_default());
                return None;
            }
            used
        });
        made
    }

    /// Whether the data of a direction uses the path's rate, whatever the sender waits for: BBR paces
    /// its segments at that rate, and a lossy path may be full all the same.
    pub(crate) fn fills_path(&self, direction: DirectionName) -> bool {
        let model = self.path.model.as_ref();
        model.is_some_and(|model| model.direction == direction)
            && self.rate_used.is_some_and(|used| used >= FULL)
    }

    /// Time until the last data.
    pub(crate) fn active_s(&self) -> f64 {
        self.duration_s - self.quiet_s
    }

    /// Sender and receiver of a direction.
    pub(crate) fn ends(&self, direction: DirectionName) -> [&str; 2] {
        match direction {
            DirectionName::AToB => [&self.a, &self.b],
            DirectionName::BToA => [&self.b, &self.a],
        }
    }

    /// All retransmissions.
    pub(crate) fn retransmissions(&self) -> u64 {
        let all = self.directions.all().into_iter();
        all.map(|direction| direction.retransmission_counts.all)
            .sum()
    }

    /// Retransmissions that are listed.
    pub(crate) fn kept_retransmissions(&self) -> u64 {
        let listed = self.directions.all();
        listed
            .into_iter()
            .map(|direction| direction.retransmissions.len() as u64)
            .sum()
    }
}

/// A policer's path carries bursts at least this much faster than the policer's rate; a
/// bottleneck's path does not.
const FASTER: f64 = 1.25;

impl OneWay {
    /// Seconds attributed to a limit.
    pub(crate) fn time(&self, limit: Limit) -> f64 {
        self.limits_s.get(&limit).copied().unwrap_or(0.0)
    }

    /// Drops the policer's rate if the path carries bursts at about that rate: then a busy
    /// bottleneck explains the losses.
    fn compare_rate(&mut self, fastest_mbit_s: Option<f64>) {
        let is_slower = |rate: &f64| fastest_mbit_s.is_none_or(|fastest| fastest >= FASTER * rate);
        self.policed_mbit_s = self.policed_mbit_s.filter(is_slower);
    }

    fn of(from: &Direction, to_sender: Option<Nanos>) -> Self {
        let counts = &from.counts;
        let bytes = u64::try_from(from.scoreboard.octets()).unwrap_or_default();
        let captured = u64::try_from(from.scoreboard.captured()).unwrap_or_default();
        let time = counts.first_data.zip(counts.last_data);
        let time = time
            .map(|(first, last)| last - first)
            .filter(|time| *time > 0);
        let ledger = &from.ledger;
        let back_ms = crate::time::millis(to_sender.unwrap_or(0));
        let limits = Limit::ALL.into_iter();
        let limits = limits.map(|limit| (limit, seconds(from.account.clock.shares.of(limit))));
        Self {
            bytes,
            captured_bytes: captured,
            uncaptured_bytes: bytes.saturating_sub(captured),
            packets: counts.packets,
            data_packets: counts.data_packets,
            goodput_mbit_s: time
                .map(|time| from.scoreboard.octets.span() as f64 * 8e3 / time as f64),
            rtt_ms: RoundTrips::of(&from.rtt, back_ms),
            responsiveness: Responsiveness::of(&from.rtt, back_ms),
            retransmissions: ledger.kept.clone(),
            retransmission_counts: ledger.counts,
            triggers: ledger.by_trigger.clone(),
            reordered_packets: counts.reordered,
            reordered_after_packets: counts.late,
            duplicated_packets: counts.duplicated,
            capture_gaps: counts.capture_gaps,
            capture_gap_bytes: counts.unseen_octets,
            zero_windows: counts.zero_windows,
            sack_blocks: from.scoreboard.acknowledged.sack_check.used,
            ignored_sack_blocks: from.scoreboard.acknowledged.sack_check.ignored,
            wrong_sack_blocks: from.scoreboard.acknowledged.sack_check.wrong,
            ecn: counts.ecn,
            implausible_packets: counts.implausible,
            limits_s: limits.collect(),
            receiver_application_s: seconds(from.account.clock.peers),
            closing_s: seconds(from.account.closing),
            answering_s: seconds(from.account.answering),
            turns: from.account.turns,
            turns_s: seconds(from.account.latency),
            receiver_unread_s: seconds(from.account.unread.time()),
            largest_acknowledged_bytes: u64::try_from(from.delivered.largest).unwrap_or_default(),
            unscaled_window: Some(from.delivered.counts),
            route_changes: RouteChange::all(&from.routes),
            policed_mbit_s: from.policed().map(|found| found.rate * 8e-6),
            stalls: from.account.clock.stalls.clone(),
            stalls_not_listed: from.account.clock.stalls_not_kept,
            hides_queue: from.rtt.hides_queue(),
        }
    }
}

impl RoundTrips {
    /// A coarse clock shows round trips of 0, which are treated as unknown. Percentiles come from
    /// bins.
    fn of(rtt: &Rtt, back_ms: f64) -> Self {
        let whole = |ms: f64| Some(ms + back_ms).filter(|ms| *ms > 0.0);
        let min = rtt.min.map(crate::time::millis).and_then(whole);
        let at_least = |ms: f64, least: Option<f64>| ms.max(least.unwrap_or(0.0));
        let median = rtt.percentile_ms(50.0).and_then(whole);
        let median = median.map(|ms| at_least(ms, min));
        let p95 = rtt.percentile_ms(95.0).and_then(whole);
        Self {
            min,
            median,
            p95: p95.map(|ms| at_least(ms, median.or(min))),
        }
    }
}

impl RouteChange {
    fn all(routes: &[Route; 2]) -> Vec<Self> {
        let mut found = Vec::new();
        for (route, towards) in routes.iter().zip([Role::Receiver, Role::Sender]) {
            found.extend(route.changes.iter().map(|change| Self {
                time_s: seconds(change.time),
                towards,
                before_ms: crate::time::millis(change.before),
                after_ms: crate::time::millis(change.after),
            }));
        }
        found.sort_by(|one, other| one.time_s.total_cmp(&other.time_s));
        found
    }
}
