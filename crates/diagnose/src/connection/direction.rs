//! One direction of a connection: data of one end, and the acknowledgments of the other.

use super::{
    acknowledgments::{Ack, AckSummary},
    counters::{Counts, Delivered},
    limit_account::Account,
    path_delays::{Acks, Conditions, Delays, Peer},
    route_change::{Route, Sample},
    rtt::Rtt,
    scoreboard::Scoreboard,
    sender::Sender,
    sender_view::{Arrival, Due, FURTHEST, UNKNOWN},
    transmission::{Entry, Repeated, Transmission},
};
use crate::{
    control::Sent,
    entries::Role,
    limit::{Limit, Wait},
    path::{Observer, Policed, Policing},
    retransmission::{
        Retransmission, Trigger,
        ledger::{Budget, Ledger},
        need::Path,
        piece::{Piece, Room},
    },
    segment::{CWR, SYN, Segment},
    time::{MICROSECOND, MILLISECOND, Nanos},
};

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    pub(crate) scoreboard: Scoreboard,
    pub(crate) sender: Sender,
    pub(crate) rtt: Rtt,
    /// The minimum round-trip times to the receiver and to the sender.
    pub(crate) routes: [Route; 2],
    /// Octets of the peer's data that are not acknowledged.
    pub(crate) peer_flight: i64,
    pub(crate) policing: Policing,
    pub(crate) ledger: Ledger,
    pub(crate) account: Account,
    pub(crate) counts: Counts,
    pub(crate) path: Observer,
    acks: Acks,
    /// Time from an isolated acknowledgment to the next segment.
    pub(crate) reaction: Option<Nanos>,
    pub(crate) delivered: Delivered,
}

impl Direction {
    pub(crate) fn new(start: Nanos) -> Self {
        Self {
            account: Account::new(start),
            ..Self::default()
        }
    }

    /// Whether data or an acknowledgment belongs to the SYN that opened this direction.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.counts.data_packets > 0 || self.scoreboard.acknowledged.una >= 0
    }

    /// The policer. Pauses of the application would change the rate, so that there is none for an idle sender.
    pub(crate) fn policed(&self) -> Option<Policed> {
        let shares = &self.account.clock.shares;
        let round_trip = self.rtt.smoothed().map_or(0, |(srtt, _)| srtt);
        let idle = shares.of(Limit::Application) + shares.of(Limit::RoundTrips);
        let is_busy = 4 * idle < shares.all();
        // A queue before the capture point may be full at each loss.
        let is_hidden = self.rtt.hides_queue() && self.path.loses_before();
        self.policing
            .found(round_trip)
            .filter(|_| is_busy && !is_hidden)
    }

    /// The part of this end in the other end's waits. `since` is when the other end sent its last
    /// data.
    pub(crate) fn as_peer(&self, since: Option<Nanos>) -> Peer {
        Peer {
            held: self.account.clock.held(),
            last_data: self.counts.last_data,
            queue: since.map_or(0, |since| self.rtt.queued_since(since)),
        }
    }

    /// Records the sender's response time to an acknowledgment.
    pub(crate) fn answer(&mut self, time: Nanos, took: Nanos, counts: bool) {
        self.rtt.answer(took, counts);
        if self.sender.is_released() && self.is_route_clear() {
            let least = took + self.rtt.min.unwrap_or(0);
            let next = self.scoreboard.next;
            let change = self.routes[1].see(
                Sample {
                    time,
                    took,
                    flight: next - self.sender.view.una.max(0),
                    passed: next,
                },
                least,
            );
            if let Some(change) = change {
                self.path.change_route(Role::Sender, change.after);
            }
        }
    }

    /// Processes a segment of this direction's sender.
    pub(crate) fn send(
        &mut self,
        segment: &Segment,
        delays: Delays,
        peer: Peer,
        budget: &mut Budget,
    ) {
        self.counts.packets += 1;
        self.scoreboard.ids.see(segment);
        if let Some(ack) = segment.ack {
            // All earlier packets of the peer have arrived.
            self.sender.view.prove(ack);
        }
        self.arrive(segment.time, segment.echo(), delays);
        self.sender.view.was_drained = self.sender.view.una >= self.scoreboard.next;
        self.settle(segment.time, delays, budget);
        let Some(sent) = self.scoreboard.range(segment) else {
            self.counts.implausible += 1;
            return;
        };
        if sent.end > sent.start {
            self.transmit(&sent, delays, peer, budget);
        } else {
            self.scoreboard.see_bare(&sent);
        }
    }

    fn transmit(
        &mut self,
        sent: &Transmission<'_>,
        delays: Delays,
        peer: Peer,
        budget: &mut Budget,
    ) {
        let segment = sent.segment;
        if segment.payload > 0 {
            self.counts.sent += u64::from(segment.payload);
            self.counts.data_packets += 1;
            self.sender.size.see(segment);
            self.delivered
                .send(sent.start, sent.start + i64::from(segment.payload));
        }
        let drain = self.sender.last_sent();
        let conditions = Conditions {
            drain: drain.map_or(0, |since| self.rtt.queued_since(since)),
            ..Conditions::of(&self.rtt, delays, peer.queue)
        };
        let trigger = self.enter(sent, &conditions, budget);
        self.path.see_ecn(segment, trigger.is_some());
        if segment.has(SYN) {
            self.scoreboard.pass(sent);
            return;
        }
        if trigger == Some(Trigger::Keepalive) {
            // It ends no wait: the application has sent no data.
            return;
        }
        if segment.payload > 0 {
            self.counts.see_data(segment.time);
            if self.sender.exceeds_window(sent.end) {
                self.counts.beyond_window += u64::from(segment.payload);
            }
        }
        let (last, round_trip) = (self.sender.last_sent(), self.rtt.smoothed());
        let round_trip = round_trip.map(|(srtt, _)| srtt);
        let reaction = self
            .acks
            .reaction(sent.segment.time, last, delays, round_trip);
        self.reaction = reaction.filter(|_| trigger.is_none());
        let next = self.scoreboard.next;
        let interval = self.sender.interval(sent, next, trigger, &conditions);
        let recovery = self.account.close(&interval, peer.held);
        if self.sender.see_pattern(sent, next, trigger.is_some()) {
            self.account.clock.start_level();
        }
        self.change_phase(sent, trigger, &conditions);
        self.account.go_on(recovery, trigger.is_some());
        self.path.data(Sent {
            time: sent.segment.time,
            start: sent.start,
            end: sent.end,
            next,
            una: self.sender.view.una,
            is_recovering: self.sender.is_recovering(),
            by_timer: trigger == Some(Trigger::Rto),
            sacked: self.sender.view.sacked,
            is_reduced: segment.has(CWR),
            is_full: self.sender.is_window_full(next.max(sent.end)),
            is_tcp: segment.quic.is_none(),
        });
        self.scoreboard.move_to(sent);
        self.sender.leave(segment, self.scoreboard.next);
    }

    /// Updates the phase. A retransmission begins or continues a recovery, to which the time before
    /// it is attributed.
    fn change_phase(
        &mut self,
        sent: &Transmission<'_>,
        trigger: Option<Trigger>,
        conditions: &Conditions,
    ) {
        let time = sent.segment.time;
        let mut start = time;
        if self.sender.begins_recovery(trigger) {
            if let Some(round_trip) = conditions.round_trip()
                && sent.start <= self.sender.view.una
            {
                let patience = round_trip + round_trip / 2;
                start = self
                    .account
                    .clock
                    .settle_missed(time, patience)
                    .unwrap_or(time);
            }
            let left = self.scoreboard.left_at(sent.start).unwrap_or(time);
            self.policing
                .lose(left, sent.start.max(0), conditions.is_queued);
        }
        if self.sender.change_phase(trigger, self.scoreboard.next) {
            self.account.episodes.begin(start);
        }
    }

    /// Enters a segment into the scoreboard. Returns its trigger if it is a retransmission.
    fn enter(
        &mut self,
        sent: &Transmission<'_>,
        conditions: &Conditions,
        budget: &mut Budget,
    ) -> Option<Trigger> {
        let timer = self.sender.timer(sent.segment.time, conditions);
        let mss = self.sender.mss();
        match self.scoreboard.enter(sent, timer, mss, conditions.delays) {
            Entry::New => {
                if self.sender.is_probing(sent) {
                    self.scoreboard.probe = Some(sent.start);
                }
                self.policing.send(sent.segment.time, sent.start.max(0));
                None
            }
            Entry::Late(late) => {
                self.counts.reordered += 1;
                self.path.late(late.octets, late.beyond, late.by);
                None
            }
            Entry::Retransmission(repeated) => {
                let trigger = if repeated.ends_tail {
                    // A timeout retransmits the first segment, a probe the last (RFC 8985 §7.3).
                    Trigger::Tlp
                } else {
                    let history = self.scoreboard.history(sent);
                    self.sender.trigger(sent, history, conditions)
                };
                let trigger = sent
                    .segment
                    .quic
                    .map_or(trigger, |quic| trigger.recorded(quic));
                self.retransmit(sent, repeated, trigger, conditions, budget);
                Some(trigger)
            }
        }
    }

    #[cold]
    fn retransmit(
        &mut self,
        sent: &Transmission<'_>,
        repeated: Repeated,
        trigger: Trigger,
        conditions: &Conditions,
        budget: &mut Budget,
    ) {
        let number = self.ledger.next();
        let (is_unseen, is_acknowledged) = (repeated.is_unseen(), repeated.is_acknowledged);
        // A burst longer than the buffer fills it, and the queue is empty again when the loss is
        // detected.
        let back = conditions.delays.back();
        let left = self.scoreboard.sent_at(sent.start);
        let met = left.and_then(|left| self.path.met(left));
        let most = left.and_then(|left| self.path.longest_wait(left));
        let is_queued = (self.rtt.is_full(back)
            || met.is_some_and(|met| self.rtt.was_full(met, back)))
            && !most.is_some_and(|most| self.rtt.excludes_full(most));
        let marked = self.scoreboard.mark(sent, repeated, number);
        let round_trip = self.rtt.min.map_or(Nanos::MAX, |min| min + back);
        let mut gaps = marked.suspects.iter().filter_map(|one| one.gap);
        let is_queued = is_queued || gaps.any(|gap| self.path.was_full_before(gap, round_trip));
        for suspect in marked.suspects {
            let range = (suspect.start, suspect.end);
            self.path.suspect(range, suspect.first, suspect.gap);
        }
        self.ledger.add(
            Retransmission {
                queue_full: is_queued,
                earlier: marked.earlier,
                ..Retransmission::new(sent.segment, sent.start, trigger)
            },
            sent.segment.time,
            marked.parts,
            is_unseen,
            budget,
        );
        if is_acknowledged {
            self.ledger.decide_acknowledged(number, budget);
        }
    }

    /// Delivers acknowledgments to the sender.
    fn arrive(&mut self, now: Nanos, echo: Option<u32>, delays: Delays) {
        // Times are rounded, and an acknowledgment is faster than the longer SYN-ACK that gave the
        // delay.
        let latest = now.saturating_add(30 * MICROSECOND + delays.back() / 500);
        let patience = self
            .rtt
            .smoothed()
            .map_or(0, |(srtt, _)| srtt + delays.back());
        let (next, mss) = (self.scoreboard.next, self.sender.mss());
        let due = Due {
            now,
            latest,
            echo,
            patience,
        };
        while let Some(arrival) = self.sender.arrive(&due) {
            let is_closed = arrival.window < mss && arrival.una + arrival.window < next + mss;
            let is_closed = is_closed && arrival.una >= next;
            self.account.learn(now, &arrival, &self.sender, is_closed);
        }
    }

    /// Processes a segment of the peer that acknowledges data of this direction. `window` is
    /// scaled.
    pub(crate) fn acknowledge(
        &mut self,
        segment: &Segment,
        number: u32,
        window: Option<i64>,
        delays: Delays,
        budget: &mut Budget,
    ) -> Option<Nanos> {
        let Some(una) = self.scoreboard.acknowledgment(number) else {
            self.counts.implausible += 1;
            return None;
        };
        let (time, before) = (segment.time, self.scoreboard.acknowledged.una);
        let round_trip = delays
            .round_trip()
            .or(self.rtt.smoothed.map(|(srtt, _)| srtt));
        let summary = self.scoreboard.acknowledge(&Ack {
            segment,
            una,
            next: self.scoreboard.next,
            highest: self.scoreboard.acknowledged.sacked.end().unwrap_or(UNKNOWN),
            window,
            mss: self.sender.mss(),
            has_data: self.counts.data_packets > 0,
            hole: self.path.hole,
            round_trip: round_trip.unwrap_or(0),
        });
        self.take(&summary);
        if summary.advances {
            self.acks.see(time);
        }
        if let Some(sample) = summary.sample {
            self.sample(time, sample, delays);
        }
        let is_current = una >= self.scoreboard.acknowledged.una;
        let is_prompt = segment.payload == 0 && una - before >= 2 * self.sender.mss();
        if let Some(sample) = summary.sample.filter(|_| is_prompt) {
            self.rtt.see_prompt(time, sample);
        }
        self.deliver(segment, una, is_current);
        if segment.has(SYN) {
            if let Some(sample) = summary.sample {
                self.path.after.least.see(sample);
            }
        } else if is_current {
            let top = self.scoreboard.top(una);
            let octets = una + self.scoreboard.acknowledged.sacked.octets();
            let is_open = summary.advances && !self.sender.is_recovering();
            let is_all = top >= self.scoreboard.next;
            self.path
                .acknowledge(time, top, octets, summary.sample, is_open, is_all);
            self.path.window(window);
        }
        if is_current {
            self.counts.zero_windows += u64::from(window == Some(0));
            let least = delays.to_receiver.or(self.rtt.min).unwrap_or(0);
            self.sender.view.push(Arrival {
                time: time + delays.back(),
                una,
                sacked: self.scoreboard.acknowledged.sacked.octets(),
                window: window.unwrap_or(FURTHEST),
                stamp: segment.stamps.map(|stamps| stamps.0),
                is_duplicate: summary.is_duplicate,
                data_end: (segment.payload > 0).then(|| segment.seq.wrapping_add(segment.payload)),
                is_delayed: summary
                    .sample
                    .is_some_and(|rtt| rtt > least + 30 * MILLISECOND),
            });
        }
        self.settle(time, delays, budget);
        summary.sample
    }

    /// Records the segments that an acknowledgment covers, and the window as in the header.
    fn deliver(&mut self, segment: &Segment, una: i64, is_current: bool) {
        self.delivered.acknowledge(una);
        for block in segment.blocks() {
            let unwrapped = self.scoreboard.unwrap(block.0, una);
            let length = i64::from(block.1.wrapping_sub(block.0));
            // A device may have changed the block.
            let is_sent = |start: &i64| start + length <= self.scoreboard.next;
            if let Some(start) = unwrapped.filter(is_sent) {
                self.delivered.select(start, start + length);
            }
        }
        if is_current {
            self.delivered.announce(una, segment.window);
        }
    }

    /// Distributes the information derived from an acknowledgment.
    fn take(&mut self, summary: &AckSummary) {
        if summary.is_sack_new {
            // Data arrived above a gap: the window need not grow with such acknowledgments.
            self.sender.releases.pattern.disturb();
        }
        for late in &summary.late {
            self.path.late(late.octets, late.beyond, late.by);
        }
        self.counts.late += summary.late_packets;
        if summary.holes > 0 {
            self.counts.capture_gaps += summary.holes;
            self.counts.unseen_octets += u64::try_from(summary.unseen_octets).unwrap_or_default();
            self.account.has_gap = true;
        }
    }

    /// Octets that are not acknowledged.
    pub(crate) fn in_flight(&self) -> i64 {
        self.scoreboard.next - self.scoreboard.acknowledged.una.max(0)
    }

    /// Whether a longer round trip is the route's: the acknowledgments do not wait in a queue of
    /// the peer's data.
    fn is_route_clear(&self) -> bool {
        self.peer_flight < 2 * self.sender.mss()
    }

    /// Records a round-trip sample between the capture point and the receiver.
    fn sample(&mut self, time: Nanos, took: Nanos, delays: Delays) {
        let is_loaded = self.account.clock.last == Some(Limit::Bottleneck);
        self.rtt.sample(took, is_loaded);
        if !self.is_route_clear() {
            return;
        }
        let una = self.scoreboard.acknowledged.una.max(0);
        let change = self.routes[0].see(
            Sample {
                time,
                took,
                flight: self.scoreboard.next - una,
                passed: una,
            },
            took + delays.back(),
        );
        if let Some(change) = change {
            self.path.change_route(Role::Receiver, change.after);
        }
    }

    /// Judges pieces whose waiting time is over.
    fn settle(&mut self, now: Nanos, delays: Delays, budget: &mut Budget) {
        while let Some(piece) = self.scoreboard.settling.take_due(now) {
            self.judge(&piece, delays, budget);
        }
    }

    #[cold]
    fn judge(&mut self, piece: &Piece, delays: Delays, budget: &mut Budget) {
        if piece.again.is_empty() {
            return;
        }
        let ceiling = self.rtt.smoothed;
        let path = Path {
            floor: delays.to_receiver,
            ceiling: ceiling.map(|(srtt, var)| srtt + (4 * var).max(srtt / 4)),
            last_ack: self.scoreboard.acknowledged.last,
        };
        let is_lost = self.ledger.judge(piece, path, budget);
        self.path
            .decide(piece.start, piece.end, is_lost == Some(true));
        // Later data had arrived before the original.
        let is_late = piece.overtaken
            && piece.room == Room::Enough
            && piece.first.is_some()
            && is_lost == Some(false);
        self.counts.late += u64::from(is_late);
        self.account.decide(self.ledger.decided.drain(..));
    }

    /// Makes limits undecidable because one end was not captured. The handshake remains known, and
    /// zero windows do if the receiver's packets were captured.
    pub(crate) fn undecide(&mut self, has_receiver: bool) {
        self.account.undecide(has_receiver);
        self.policing = Policing::default();
    }

    /// Ends the direction with the connection or the capture.
    pub(crate) fn finish(&mut self, end: Nanos, delays: Delays, peer: Peer, budget: &mut Budget) {
        self.arrive(end, None, delays);
        self.settle(Nanos::MAX, delays, budget);
        while let Some(piece) = self.scoreboard.pieces.take_lowest() {
            self.judge(&piece, delays, budget);
        }
        self.ledger.finish(budget);
        self.delivered.finish();
        self.scoreboard.finish();
        let wait = Wait {
            is_last: true,
            is_idle: self.sender.view.una >= self.scoreboard.next,
            is_small: self.sender.ends_small(),
            ..Wait::default()
        };
        let has_fin = self.scoreboard.has_fin;
        let asked = peer
            .last_data
            .filter(|time| self.counts.last_data.is_some_and(|own| own < *time));
        let asked = asked.map(|time| (time + delays.back(), peer));
        self.account.finish(end, &wait, has_fin, asked);
    }
}
