//! A TCP connection as both of its senders saw it.

pub(crate) mod acknowledgments;
pub(crate) mod announcements;
pub(crate) mod copies;
pub(crate) mod counters;
pub(crate) mod direction;
pub(crate) mod handshake;
pub(crate) mod identifications;
pub(crate) mod limit_account;
pub(crate) mod limit_intervals;
pub(crate) mod outstanding;
pub(crate) mod path_delays;
pub(crate) mod plausibility;
pub(crate) mod ranges;
pub(crate) mod request;
pub(crate) mod route_change;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
pub(crate) mod segment_size;
pub(crate) mod sender;
pub(crate) mod sender_view;
pub(crate) mod sending_pattern;
pub(crate) mod transmission;
pub(crate) mod transmission_causes;

use anabranch_wire::Flags;

use crate::{
    control::Held,
    limit::Limit,
    path::{Facts, Model},
    retransmission::ledger::Budget,
    segment::{DirectionName, End, FIN, RST, SYN, Segment},
    time::{Nanos, from_millis},
    trace::{Trace, Tracer},
};
use announcements::Announced;
use copies::Copies;
use direction::Direction;
use handshake::Handshake;
use path_delays::Delays;
use path_delays::Turnaround;
use plausibility::Answers;

/// A connection. The first end sent the SYN, or else the first captured packet.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) ends: [End; 2],
    pub(crate) start: Nanos,
    pub(crate) last: Nanos,
    pub(crate) packets: u64,
    pub(crate) announced: [Announced; 2],
    hosts: [Turnaround; 2],
    copies: [Copies; 2],
    answers: [Answers; 2],
    pub(crate) directions: [Direction; 2],
    /// When the handshake was completed.
    open: Option<Nanos>,
    is_known_from_start: bool,
    is_tcp: bool,
    /// The first FIN or RST.
    closed: Option<Nanos>,
    tracer: Option<Box<Tracer>>,
}

impl Connection {
    pub(crate) fn new(id: u64, segment: &Segment) -> Self {
        let is_answer = segment.has(SYN) && segment.ack.is_some();
        let ends = if is_answer {
            [segment.target, segment.source]
        } else {
            [segment.source, segment.target]
        };
        Self {
            id,
            ends,
            start: segment.time,
            last: segment.time,
            packets: 0,
            announced: Default::default(),
            hosts: Default::default(),
            copies: Default::default(),
            answers: Default::default(),
            directions: [Direction::new(segment.time), Direction::new(segment.time)],
            open: None,
            is_known_from_start: segment.has(SYN),
            is_tcp: segment.quic.is_none(),
            closed: None,
            tracer: None,
        }
    }

    /// Whether only late packets are to be expected.
    pub(crate) fn is_over(&self) -> bool {
        let [a, b] = &self.announced;
        a.rst.is_some() || b.rst.is_some() || (a.fin && b.fin)
    }

    /// Whether a segment begins another connection between the same ends.
    pub(crate) fn is_another(&self, segment: &Segment) -> bool {
        let from = self.from(segment);
        let has_other_number = |first: u32| first != segment.seq.wrapping_add(1);
        let is_other = self.directions[from]
            .scoreboard
            .first()
            .is_some_and(has_other_number);
        if !segment.has(SYN) || !is_other {
            return false;
        }
        // The SYN that a SYN-ACK acknowledges may be missing from the capture.
        segment.ack.is_none_or(|ack| {
            let is_ended = self.is_over() || self.announced[1 - from].syns == 0;
            self.open.is_some()
                && is_ended
                && self.directions[1 - from].scoreboard.first() != Some(ack)
        })
    }

    /// Whether the segment's ends are the connection's.
    pub(crate) fn has(&self, segment: &Segment) -> bool {
        let [a, b] = &self.ends;
        (segment.source == *a && segment.target == *b)
            || (segment.source == *b && segment.target == *a)
    }

    /// The end that sent the segment.
    pub(crate) fn from(&self, segment: &Segment) -> usize {
        usize::from(segment.source != self.ends[0])
    }

    pub(crate) fn handshake(&self) -> Handshake {
        let [a, b] = &self.announced;
        if !self.is_known_from_start && a.syns + b.syns == 0 {
            Handshake::Missed
        } else if self.open.is_some() && a.syns > 0 && b.syns > 0 {
            Handshake::Seen
        } else if a.syns > 0 && b.syns == 0 && b.rst.is_some() {
            Handshake::Refused
        } else if a.syns > 0 && self.open.is_none() && self.directions[1].counts.packets == 0 {
            Handshake::Unanswered
        } else {
            Handshake::Partial
        }
    }

    /// The end whose packets were not captured although the other end shows that it sent some.
    pub(crate) fn not_captured(&self) -> Option<usize> {
        if matches!(self.handshake(), Handshake::Unanswered | Handshake::Refused) {
            return None;
        }
        (0..2).find(|end| {
            let other = &self.directions[1 - end].counts;
            self.directions[*end].counts.packets == 0 || 2 * other.beyond_window > other.sent
        })
    }

    /// The receiver of an end's data scales its window (RFC 7323 §2.2).
    pub(crate) fn scales_window(&self, from: usize) -> bool {
        let [a, b] = &self.announced;
        let is_scaled = a.scale.is_some() && b.scale.is_some();
        is_scaled
            && self.announced[1 - from]
                .scale
                .is_some_and(|shift| shift > 0)
    }

    /// Retransmissions that are listed.
    pub(crate) fn kept_retransmissions(&self) -> u64 {
        let ways = self.directions.iter();
        ways.map(|direction| direction.ledger.kept.len() as u64)
            .sum()
    }

    /// Counts the ECN field of data, and the echoes of the other end's.
    fn see_ecn(&mut self, segment: &Segment, from: usize) {
        if segment.has(SYN) || segment.quic.is_some() {
            return;
        }
        if segment.payload > 0 {
            self.directions[from].counts.ecn.see(segment.ecn);
        }
        let is_echo = segment.has(Flags::ECE);
        self.directions[1 - from].counts.ecn.echoes += u64::from(is_echo);
    }

    /// Whether both SYNs agree on ECN as in RFC 3168 §6.1.1: the answer to AccECN has other bits.
    fn agrees_on_ecn(&self) -> bool {
        let [a, b] = &self.announced;
        let is_offered = a.syn.has(Flags::ECE | Flags::CWR);
        is_offered && b.syn.has(Flags::ECE) && !b.syn.any(Flags::CWR | Flags::AE)
    }

    /// The end whose SYN lacks window scaling, so that neither end may scale (RFC 7323 §2.2). A
    /// SYN-ACK may not offer an option that the SYN lacked.
    pub(crate) fn unscaled(&self) -> Option<usize> {
        let is_whole = self.announced.iter().all(|end| end.syns > 0);
        let lacking = self.announced.iter().position(|end| end.lacks_scale);
        lacking.filter(|_| is_whole)
    }

    /// The minimum response time of each host.
    pub(crate) fn least_answers(&self) -> [Option<Nanos>; 2] {
        [self.hosts[0].min, self.hosts[1].min]
    }

    /// The delays of the path for the data of one end.
    pub(crate) fn delays(&self, from: usize) -> Delays {
        Delays {
            to_receiver: self.hosts[1 - from].min,
            to_sender: self.hosts[from].recent(),
            // A sender that paces also responds late: only variation that appears in round trips
            // counts.
            jitter: self.hosts[from].jitter.min(self.directions[from].rtt.step),
        }
    }

    /// The model of the path of the direction with more data.
    pub(crate) fn path(&self) -> Option<Model> {
        if self.not_captured().is_some() {
            return None;
        }
        let from = usize::from(
            self.directions[1].scoreboard.octets() > self.directions[0].scoreboard.octets(),
        );
        let (data, back) = (&self.directions[from], &self.directions[1 - from]);
        let duration = self.last - self.start;
        let share = |limits: &[Limit]| {
            let time: Nanos = limits
                .iter()
                .map(|limit| data.account.clock.shares.of(*limit))
                .sum();
            time as f64 / duration.max(1) as f64
        };
        let delays = self.delays(from);
        let [a, b] = &self.announced;
        let facts = Facts {
            direction: DirectionName::BOTH[from],
            start: self.start,
            duration,
            octets: u64::try_from(data.scoreboard.octets()).unwrap_or_default(),
            is_closed: self.announced[from].fin,
            is_from_start: self.handshake() == Handshake::Seen,
            // Without the handshake, SACK blocks appear only if segments are lost.
            sack: (a.has_sack && b.has_sack) || self.handshake() != Handshake::Seen,
            to_sender: delays.to_sender,
            to_receiver: delays.to_receiver,
            paced: share(&[Limit::Pacing]),
            window_limited: share(&[Limit::ReceiveWindow, Limit::ZeroWindow]),
            buffer_limited: share(&[Limit::SendBuffer]),
            held: Held {
                ends: share(&[
                    Limit::ReceiveWindow,
                    Limit::ZeroWindow,
                    Limit::Application,
                    Limit::RoundTrips,
                ]),
                buffer: share(&[Limit::SendBuffer]),
                pace: share(&[Limit::Pacing, Limit::Undecidable]),
            },
            highest_flight: data.sender.releases.pattern.highest,
            median_rtt: data.rtt.percentile_ms(50.0).map(from_millis),
            policed: data.policed(),
        };
        data.path.model(&facts, &back.path)
    }

    /// Records that an end's host uses one counter of identifications for several connections.
    pub(crate) fn share_counter(&mut self, from: usize) {
        self.directions[from].scoreboard.ids.share();
    }

    /// Time at the end in which neither application had more to send.
    pub(crate) fn quiet(&self) -> Nanos {
        let [one, other] = &self.directions;
        one.account.closing.min(other.account.closing)
    }

    /// The end that sent the last data.
    pub(crate) fn spoke_last(&self) -> Option<usize> {
        let [one, other] = [0, 1].map(|end| self.directions[end].counts.last_data);
        one.max(other).map(|last| usize::from(one != Some(last)))
    }

    /// Adds a segment that the end `from` sent, in order of time.
    pub(crate) fn add(&mut self, segment: &Segment, from: usize, budget: &mut Budget) {
        let time = segment.time;
        self.packets += 1;
        self.last = self.last.max(time);
        let delays = self.delays(from);
        let round_trip = || delays.to_sender.and(delays.round_trip());
        let copies = &mut self.copies[from];
        let part = copies.new_part(segment, round_trip);
        let segment = part.as_ref().unwrap_or(segment);
        if copies.is_copy(segment, round_trip) {
            self.directions[from].counts.see_copy();
            return;
        }
        self.choose_answers(segment, from);
        if self.is_foreign(segment, from) {
            self.directions[from].counts.see_foreign();
            return;
        }
        if segment.has(SYN) {
            self.add_syn(segment, from);
        } else {
            self.note_open(segment);
        }
        self.announced[from].fin |= segment.has(FIN);
        if segment.has(FIN | RST) {
            self.closed.get_or_insert(time);
        }
        if segment.has(RST) {
            let answer = self.hosts[from].min;
            let [a, b] = &mut self.announced;
            let (own, peer) = if from == 0 { (a, b) } else { (b, a) };
            own.see_rst(segment, peer, answer);
            self.directions[from].counts.packets += 1;
            return;
        }
        self.announced[from].see_packet(segment);
        self.see_ecn(segment, from);
        let flights = [1, 0].map(|peer| self.directions[peer].in_flight());
        for (direction, flight) in self.directions.iter_mut().zip(flights) {
            direction.peer_flight = flight;
        }
        let took = self.add_stamps(segment, from);
        self.directions[from].path.see_sender(segment);
        self.directions[1 - from].path.ask(segment);
        if let Some(number) = segment.ack {
            let window = self.window(segment, from);
            let delays = self.delays(1 - from);
            let sample =
                self.directions[1 - from].acknowledge(segment, number, window, delays, budget);
            if let Some(sample) = sample {
                self.hosts[from].sample(sample);
                if let Some(tracer) = &mut self.tracer {
                    tracer.round_trip(1 - from, time, sample);
                }
            }
        }
        let delays = self.delays(from);
        let peer = self.directions[1 - from].as_peer(self.directions[from].sender.last_sent());
        self.directions[from].send(segment, delays, peer, budget);
        if let Some(reaction) = self.directions[from].reaction.take()
            && segment.stamps.is_none()
        {
            self.hosts[from].react(reaction);
        }
        if self.directions[from].counts.last_data == Some(time) {
            for direction in &mut self.directions {
                direction.account.clock.see_data(time);
            }
        }
        if let Some(took) = took.filter(|_| segment.payload > 0)
            && !self.directions[from].sender.may_be_late()
        {
            let counts = self.hosts[from].busy(segment.time, took);
            self.directions[from].answer(segment.time, took, counts);
        }
    }

    /// Whether a segment belongs to another connection between the same ends, or to none.
    fn is_foreign(&mut self, segment: &Segment, from: usize) -> bool {
        let firsts = [0, 1].map(|end| self.directions[end].scoreboard.first());
        if segment.has(SYN) {
            let is_other = firsts[from].is_some_and(|first| first != segment.seq.wrapping_add(1));
            if is_other && !self.directions[from].is_confirmed() {
                self.answers[from].keep(segment);
            }
            return is_other;
        }
        let [own, peer] = [from, 1 - from].map(|end| self.announced[end].syns);
        let is_far = |first: Option<u32>, number: Option<u32>| {
            first
                .zip(number)
                .is_some_and(|(first, number)| number.wrapping_sub(first) > plausibility::NEAR)
        };
        if segment.has(RST) {
            // A RST may answer a segment of an older connection.
            let is_opening = own > 0 && self.open.is_none();
            return is_opening && is_far(firsts[from], Some(segment.seq));
        }
        // In SYN-SENT only an acknowledgment of the SYN is acceptable (RFC 9293 §3.10.7.3).
        own == 0 && peer > 0 && self.open.is_none() && is_far(firsts[1 - from], segment.ack)
    }

    /// Opens a direction with another SYN-ACK if the segment belongs to that one.
    fn choose_answers(&mut self, segment: &Segment, from: usize) {
        if segment.has(SYN | RST) {
            return;
        }
        for (end, number) in [(from, Some(segment.seq)), (1 - from, segment.ack)] {
            if let (Some(first), Some(number)) = (self.directions[end].scoreboard.first(), number)
                && !self.answers[end].others.is_empty()
                && let Some(answer) = self.answers[end].choose(first, number)
            {
                self.directions[end].scoreboard.open_again(&answer);
                self.announce(&answer, end);
            }
        }
    }

    #[cold]
    fn add_syn(&mut self, segment: &Segment, from: usize) {
        self.directions[from].scoreboard.open(segment);
        self.announced[from].syns += 1;
        self.announce(segment, from);
    }

    /// Records the options of a SYN.
    fn announce(&mut self, segment: &Segment, from: usize) {
        if let Some(mss) = segment.mss {
            // Timestamps take 12 octets of it (RFC 9293 §3.7.1).
            let stamps = if segment.stamps.is_some() { 12 } else { 0 };
            let octets = i64::from(mss) - stamps;
            self.directions[1 - from].sender.size.permit(octets);
            self.directions[from].sender.size.accepted = octets;
        }
        let own = &mut self.announced[from];
        own.scale = segment.scale;
        own.syn = segment.flags;
        own.lacks_scale = segment.scale.is_none() && segment.has_all_options;
        // The capture may end before the option.
        own.has_sack = segment.sack_permitted || !segment.has_all_options;
        self.directions[1 - from].path.announced = segment.mss.map(i64::from);
    }

    /// Records the end of the handshake: the first packet that is neither a SYN nor a RST.
    fn note_open(&mut self, segment: &Segment) {
        if self.open.is_some() {
            return;
        }
        if segment.has(RST) {
            return;
        }
        self.open = Some(segment.time);
        if self.is_known_from_start {
            for direction in &mut self.directions {
                direction.account.opened(segment.time);
            }
        }
    }

    /// Records the timestamps. Returns the host's response time to the other's.
    fn add_stamps(&mut self, segment: &Segment, from: usize) -> Option<Nanos> {
        let (stamp, _) = segment.stamps?;
        let echo = segment.ack.and_then(|_| segment.echo());
        let took = echo.and_then(|echo| self.hosts[from].answer(echo, segment.time));
        let is_new = self.announced[from]
            .last_stamp
            .is_none_or(|last| crate::retransmission::need::is_before(last, stamp));
        if is_new {
            self.announced[from].last_stamp = Some(stamp);
            self.hosts[1 - from].ask(stamp, segment.time);
        }
        took
    }

    /// The window that an end announces, if its scale is known (RFC 7323 §2.2).
    fn window(&self, segment: &Segment, from: usize) -> Option<i64> {
        if let Some(quic) = segment.quic {
            return quic.window.map(i64::from);
        }
        let raw = i64::from(segment.window);
        if segment.has(SYN) || raw == 0 {
            return Some(raw);
        }
        let [a, b] = &self.announced;
        if a.syns == 0 || b.syns == 0 {
            return None;
        }
        let is_unscaled = a.lacks_scale || b.lacks_scale;
        if is_unscaled {
            return Some(raw);
        }
        // The capture may end before the option.
        a.scale.and(b.scale)?;
        self.announced[from].scale.map(|shift| raw << shift)
    }

    /// Begins the trace.
    pub(crate) fn watch(&mut self, tracer: Tracer) {
        self.tracer = Some(Box::new(tracer));
        for direction in &mut self.directions {
            direction.account.clock.shares.trace();
        }
    }

    /// Adds a segment to the trace, if there is one.
    pub(crate) fn note(&mut self, segment: &Segment, from: usize) {
        if self.tracer.is_none() {
            return;
        }
        let window = segment.ack.and_then(|_| self.window(segment, from));
        let sequences = [from, 1 - from].map(|end| self.directions[end].scoreboard.first());
        if let Some(tracer) = &mut self.tracer {
            tracer.add(segment, from, sequences, window);
        }
    }

    /// Ends the trace, after the end of the account.
    pub(crate) fn end_trace(&mut self) -> Option<Trace> {
        let back = [0, 1].map(|from| self.delays(from).to_sender.unwrap_or(0));
        let limits = [0, 1].map(|from| self.directions[from].account.clock.shares.spans());
        self.tracer.take().map(|tracer| tracer.end(back, limits))
    }

    /// Ends the account.
    pub(crate) fn finish(&mut self, budget: &mut Budget) {
        let peers = [1, 0].map(|other| self.directions[other].as_peer(None));
        for (from, peer) in peers.into_iter().enumerate() {
            let delays = self.delays(from);
            if self.open.is_none() && self.is_known_from_start {
                self.directions[from].account.opened(self.last);
            }
            self.directions[from].finish(self.last, delays, peer, budget);
        }
        if let Some(missing) = self.not_captured() {
            for (from, direction) in self.directions.iter_mut().enumerate() {
                direction.undecide(from == missing);
            }
        }
        self.await_answer();
        let agrees = self.agrees_on_ecn();
        for direction in &mut self.directions {
            direction.counts.ecn.negotiated = agrees;
        }
    }
}
