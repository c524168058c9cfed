//! The data of one direction of a connection, from its sender's point of view.

use super::{
    acknowledged::{Ack, Acknowledged},
    board::Board,
    clock::Clock,
    counts::Counts,
    delays::Delays,
    episodes::Episodes,
    gaps::Gaps,
    identifications::Identifications,
    policing::Policing,
    releases::{Last, Leaving, Refill, Releases},
    route::{Route, Sample},
    rtt::Rtt,
    segment_size::SegmentSize,
    settling::Settling,
    unread::Unread,
    view::{Arrival, FURTHEST, UNKNOWN, View},
};
use crate::{
    limit::{Limit, Wait},
    path::{Observer, Sent},
    retransmission::{
        Evidence, Place, Retransmission, Trigger,
        ledger::{Budget, Ledger},
        need::{self, Verdict},
        piece::{Copy, Piece},
        recognition::{Filler, is_reordered},
        trigger::{Phase, Scene},
    },
    segment::{FIN, PSH, SYN, Segment},
    sequence::Sequence,
    time::{MICROSECOND, MILLISECOND, Nanos},
};

/// Duplicate acknowledgments that begin a recovery (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;
/// A host with something to send does so within this time after an acknowledgment, on a busy host too.
const LONG_PAUSE: Nanos = 200 * MILLISECOND;

fn time_since(earlier: Nanos, later: Nanos) -> Nanos {
    (later - earlier).max(0)
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Direction {
    sequence: Option<Sequence>,
    /// Behind the highest octet that was sent.
    next: i64,
    board: Board,
    acknowledged: Acknowledged,
    settling: Settling,
    /// `next` lies behind a FIN.
    has_fin: bool,
    gaps: Gaps,
    view: View,
    phase: Phase,
    size: SegmentSize,
    ids: Identifications,
    releases: Releases,
    episodes: Episodes,
    pub(crate) rtt: Rtt,
    /// The least round trips to the receiver, and to the sender.
    pub(crate) routes: [Route; 2],
    pub(crate) policing: Policing,
    pub(crate) unread: Unread,
    /// Time of the application behind the FIN.
    pub(crate) closing: Nanos,
    pub(crate) ledger: Ledger,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) path: Observer,
    /// The capture has lost packets since the last segment.
    has_gap: bool,
}

impl Direction {
    pub(crate) fn new(start: Nanos) -> Self {
        Self {
            sequence: None,
            next: 0,
            board: Board::default(),
            acknowledged: Acknowledged::default(),
            settling: Settling::default(),
            has_fin: false,
            gaps: Gaps::default(),
            view: View::new(),
            phase: Phase::Open,
            size: SegmentSize::default(),
            ids: Identifications::default(),
            releases: Releases::default(),
            episodes: Episodes::default(),
            rtt: Rtt::default(),
            routes: Default::default(),
            policing: Policing::default(),
            unread: Unread::default(),
            closing: 0,
            ledger: Ledger::default(),
            clock: Clock::new(start),
            counts: Counts::default(),
            path: Observer::default(),
            has_gap: false,
        }
    }

    fn mss(&self) -> i64 {
        self.size.mss()
    }

    /// The receiver permits segments of this size (RFC 9293 §3.7.1); timestamps take 12 octets of it.
    pub(crate) fn permit(&mut self, mss: u16, has_stamps: bool) {
        self.size
            .permit(i64::from(mss) - if has_stamps { 12 } else { 0 });
    }

    /// Octets of data, from the first to the last that was sent or acknowledged.
    pub(crate) fn octets(&self) -> i64 {
        (self.next - i64::from(self.has_fin)).max(0)
    }

    /// The most in flight.
    pub(crate) fn highest_flight(&self) -> i64 {
        self.releases.pattern.highest()
    }

    /// The number of the first octet of data, once it is known.
    pub(crate) fn first(&self) -> Option<u32> {
        self.sequence.map(Sequence::first)
    }

    /// The segment opens this direction: its number is the one before the first octet.
    pub(crate) fn open(&mut self, segment: &Segment) {
        if self.sequence.is_none() {
            self.sequence = Some(Sequence::new(segment.seq.wrapping_add(1)));
            self.next = -1;
        }
    }

    /// The handshake is over.
    pub(crate) fn opened(&mut self, time: Nanos) {
        let wait = Wait {
            is_opening: true,
            ..Wait::default()
        };
        self.clock.spend(time, &wait);
    }

    /// The last segment may have waited for the application: all had been acknowledged when it was sent.
    pub(crate) fn may_be_late(&self) -> bool {
        self.view.was_drained && !self.has_more()
    }

    /// The rate of a policer in octets per second. An application that pauses has a rate of its own.
    pub(crate) fn policed(&self) -> Option<f64> {
        let shares = &self.clock.shares;
        let round_trip = self.rtt.smoothed().map_or(0, |(srtt, _)| srtt);
        let is_busy = 4 * shares.of(Limit::Application) < shares.all();
        self.policing.rate(round_trip).filter(|_| is_busy)
    }

    /// The sender took so long to answer an acknowledgment.
    pub(crate) fn answer(&mut self, time: Nanos, took: Nanos, counts: bool) {
        self.rtt.answer(took, counts);
        if self.releases.train.is_released || self.has_more() {
            let least = took + self.rtt.min().unwrap_or(0);
            self.routes[1].see(
                Sample {
                    time,
                    took,
                    flight: self.next - self.view.una.max(0),
                    passed: self.next,
                },
                least,
            );
        }
    }

    /// A segment of this direction's sender.
    pub(crate) fn send(&mut self, segment: &Segment, delays: Delays, budget: &mut Budget) {
        self.counts.packets += 1;
        // A SYN-ACK may be sent before the connection counts (Linux gives it 0).
        if let Some(id) = segment.id.filter(|_| !segment.has(SYN)) {
            self.ids.see(id);
        }
        self.arrive(segment.time, segment.stamps.map(|stamps| stamps.1), delays);
        self.view.was_drained = self.view.una >= self.next;
        self.settle(segment.time, delays, budget);
        let sequence = self.begin(segment);
        // A SYN comes before the first octet of data, a FIN behind the last.
        let start = sequence.unwrap(segment.seq, self.next);
        let controls = i64::from(segment.has(SYN)) + i64::from(segment.has(FIN));
        let end = start + i64::from(segment.payload) + controls;
        if start - self.next > FURTHEST || self.next - end > FURTHEST {
            self.counts.implausible += 1;
            return;
        }
        if end > start {
            self.transmit(segment, start, end, delays, budget);
        }
    }

    /// The origin of the sequence numbers. A capture that begins in mid-flow may have later segments first.
    fn begin(&mut self, segment: &Segment) -> Sequence {
        if let Some(sequence) = self.sequence {
            return sequence;
        }
        let sequence = Sequence::new(segment.seq);
        self.sequence = Some(sequence);
        self.gaps.note(UNKNOWN, 0, &copy_of(segment));
        sequence
    }

    fn transmit(
        &mut self,
        segment: &Segment,
        start: i64,
        end: i64,
        delays: Delays,
        budget: &mut Budget,
    ) {
        let time = segment.time;
        let copy = copy_of(segment);
        if self.is_duplicated(&copy, start, end) {
            self.counts.duplicated += 1;
            return;
        }
        if segment.payload > 0 {
            self.counts.data_packets += 1;
            self.counts.sent += u64::from(segment.payload);
            self.counts.first_data.get_or_insert(time);
            self.counts.last_data = Some(time);
            self.size.see(segment);
        }
        let trigger = self.place(segment, copy, start, end, delays, budget);
        if segment.has(SYN) {
            self.next = self.next.max(end);
            return;
        }
        let spent = self.close_wait(segment, end - start, trigger, delays);
        self.see_pattern(segment, end, trigger);
        self.change_phase((time, start), trigger, spent, delays.back());
        self.path.data(Sent {
            time,
            start,
            end,
            next: self.next,
            una: self.view.una,
            is_recovering: self.phase != Phase::Open,
            by_timer: trigger == Some(Trigger::Rto),
        });
        if end > self.next {
            self.next = end;
            self.has_fin = segment.has(FIN);
        }
        let mss = self.mss();
        self.releases.leave(
            Last {
                time,
                number: segment.number,
                is_small: self.size.is_small(segment),
                room: self.view.room_from(self.next),
                is_recovering: self.phase != Phase::Open,
                flight: self.next - self.view.una.max(0),
            },
            mss,
        );
        self.has_gap = false;
    }

    fn see_pattern(&mut self, segment: &Segment, end: i64, trigger: Option<Trigger>) {
        let (mss, una) = (self.mss(), self.view.una.max(0));
        let pattern = &mut self.releases.pattern;
        pattern.see_push(segment.has(PSH));
        let is_small = self.size.is_small(segment);
        pattern.see_size(!is_small);
        if is_small {
            pattern.see_write(end);
        }
        if self.phase != Phase::Open {
            return;
        }
        if trigger.is_some() {
            pattern.lose();
        } else if self.view.was_drained {
            // A buffer that limits is never empty.
            pattern.disturb();
        } else if pattern.see_flight(self.next.max(end), una, mss) {
            self.clock.start_level();
        }
    }

    /// A retransmission begins a recovery or goes on with one, to which the time before it belongs.
    fn change_phase(
        &mut self,
        (time, start): (Nanos, i64),
        trigger: Option<Trigger>,
        spent: Nanos,
        back: Nanos,
    ) {
        let begins =
            trigger.is_some_and(|trigger| trigger != Trigger::Tlp) && self.phase == Phase::Open;
        let round_trip = self.rtt.smoothed().map(|(srtt, _)| srtt + back);
        let missed = round_trip
            .filter(|_| begins && start <= self.view.una)
            .and_then(|round_trip| self.clock.settle_missed(time, round_trip + round_trip / 2));
        if begins {
            let original = self.board.at(start).and_then(|piece| piece.first);
            let left = original
                .map(|copy| copy.time)
                .or(self.gaps.at(start).map(|gap| gap.time))
                .unwrap_or(time);
            self.policing
                .lose(left, start.max(0), self.rtt.is_queued(back));
        }
        match trigger {
            Some(Trigger::Rto) => self.phase = Phase::Loss(self.next),
            Some(Trigger::FastRetransmit | Trigger::Rack | Trigger::Sack)
                if self.phase == Phase::Open =>
            {
                self.phase = Phase::Recovery(self.next);
                self.episodes.begin(missed.unwrap_or(time));
            }
            _ => {}
        }
        self.episodes.go_on(spent, trigger.is_some());
    }

    /// The network or the capture has made a copy: a sender gives each packet an identification of its own.
    fn is_duplicated(&self, copy: &Copy, start: i64, end: i64) -> bool {
        let Some(piece) = self.board.at(start) else {
            return false;
        };
        self.ids.grow()
            && (piece.start, piece.end) == (start, end)
            && piece
                .latest()
                .is_some_and(|latest| latest.id == copy.id && latest.stamp == copy.stamp)
    }

    /// Enters a segment into the scoreboard; its trigger if it is a retransmission.
    fn place(
        &mut self,
        segment: &Segment,
        copy: Copy,
        start: i64,
        end: i64,
        delays: Delays,
        budget: &mut Budget,
    ) -> Option<Trigger> {
        let is_tail = self.is_repeated_tail(&copy, start, delays);
        if start >= self.next && !is_tail {
            if start > self.next {
                self.gaps.note(self.next, start, &copy);
            }
            self.insert(start, end, Some(copy), None, budget);
            return None;
        }
        if start > self.next {
            self.gaps.note(self.next, start, &copy);
        }
        // The capture has no copy of a tail that was lost before it.
        let known = if start >= self.next { end } else { self.next };
        let old = (start.max(self.acknowledged.una), end.min(known));
        let holes = self.holes(old.0, old.1);
        let is_acknowledged = start < self.acknowledged.una;
        let hole_octets: i64 = holes.iter().map(|(from, to)| to - from).sum();
        let is_filler = !is_acknowledged && hole_octets == old.1 - old.0;
        let filled = holes.first().copied().unwrap_or(old);
        if is_filler && self.is_late(&copy, filled, delays) {
            self.counts.reordered += 1;
            let gap = self
                .gaps
                .at(filled.0)
                .map(|gap| time_since(gap.time, copy.time));
            self.path
                .late(filled.1 - filled.0, self.next - filled.1, gap);
            for (from, to) in holes {
                self.insert(from, to, Some(copy), None, budget);
            }
            self.insert(self.next.max(start), end, Some(copy), None, budget);
            return None;
        }
        let trigger = if is_tail && start > self.next {
            // A timeout retransmits the first segment, a probe the last (RFC 8985 §7.3).
            Trigger::Tlp
        } else {
            self.scene(segment, &copy, start, end, delays).trigger()
        };
        let number = self.ledger.next();
        let again = Copy {
            retransmission: Some(number),
            ..copy
        };
        let piece = self.board.at(old.0);
        let earlier = piece.and_then(Piece::latest).map(|copy| copy.number);
        // A burst that is longer than the buffer fills it, and it is empty again when the loss shows.
        let met = piece.and_then(|piece| self.path.met(piece.first?.time));
        let is_queued = self.rtt.is_full(delays.back())
            || met.is_some_and(|met| self.rtt.was_full(met, delays.back()));
        let overtaken =
            self.acknowledged.sacked.octets_above(end) > 0 || self.acknowledged.duplicates > 0;
        let mut pieces = u32::from(is_acknowledged);
        for piece in self.board.within(old.0, old.1) {
            if piece.again.is_empty() {
                let first = piece.first.map(|first| first.time);
                self.path.suspect(piece.start, piece.end, first, None);
            }
            piece.overtaken |= piece.again.is_empty() && overtaken;
            piece.again.push(again);
            pieces += 1;
        }
        let unseen = !holes.is_empty();
        self.ledger.add(
            Retransmission {
                packet: segment.number,
                time: copy.time,
                seq: start,
                bytes: segment.payload,
                needed: None,
                evidence: Evidence::NeverAcknowledged,
                trigger,
                place: Place::Unknown,
                is_queued,
                earlier,
            },
            pieces + u32::try_from(holes.len()).unwrap_or(u32::MAX),
            unseen,
            budget,
        );
        for (from, to) in holes {
            let gap = self.gaps.at(from).map(|gap| gap.time);
            self.path.suspect(from, to, None, gap);
            self.insert(from, to, None, Some(again), budget);
        }
        if is_acknowledged {
            let verdict = Verdict {
                needed: Some(false),
                evidence: Evidence::AcknowledgedBefore,
            };
            self.ledger.decide(number, verdict, budget);
        }
        self.insert(known.max(start), end, Some(copy), None, budget);
        Some(trigger)
    }

    /// A segment that follows without a gap in the data, after a pause as long as a timer's and a gap in the
    /// identifications: the original was lost before the capture point.
    fn is_repeated_tail(&self, copy: &Copy, start: i64, delays: Delays) -> bool {
        let pause = self.releases.last.map(|last| copy.time - last.time);
        let round_trip = self.rtt.smoothed().map(|(srtt, _)| srtt + delays.back());
        // A probe of a longer tail retransmits its last segment: those before it are missing as well.
        let unseen = (start - self.next + self.mss() - 1) / self.mss();
        start >= self.next
            && i64::from(self.ids.missing()) > unseen
            && pause
                .zip(round_trip)
                .is_some_and(|(pause, round_trip)| pause > round_trip + round_trip / 2)
    }

    /// Parts of a range that the capture has not seen.
    fn holes(&mut self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let mut holes = Vec::new();
        let mut at = start;
        for piece in self.board.touching(start, end) {
            if at < piece.start {
                holes.push((at, piece.start));
            }
            at = at.max(piece.end);
        }
        if at < end {
            holes.push((at, end));
        }
        holes
    }

    /// Whether a segment that fills a hole is a late original.
    fn is_late(&self, copy: &Copy, hole: (i64, i64), delays: Delays) -> bool {
        let gap = self.gaps.at(hole.0);
        let filler = Filler {
            time: copy.time,
            stamp: copy.stamp,
            id: copy.id,
            ids_grow: self.ids.grow(),
            round_trip: delays.round_trip(),
            is_missed: self.acknowledged.duplicates >= 3,
        };
        gap.is_some_and(|gap| is_reordered(&filler, gap))
    }

    fn insert(
        &mut self,
        start: i64,
        end: i64,
        first: Option<Copy>,
        again: Option<Copy>,
        budget: &mut Budget,
    ) {
        if end <= start {
            return;
        }
        let piece = Piece {
            start,
            end,
            first,
            again: again.into_iter().collect(),
            cover: None,
            duplicates: 0,
            overtaken: again.is_some(),
        };
        if let Some(given_up) = self.board.insert(piece) {
            self.judge(&given_up, Delays::default(), budget);
        }
    }

    fn scene(&self, segment: &Segment, copy: &Copy, start: i64, end: i64, delays: Delays) -> Scene {
        let piece = self.board.at(start);
        let latest = piece.and_then(Piece::latest);
        let rtt = self.rtt.smoothed();
        Scene {
            start,
            end,
            is_fin: segment.has(FIN),
            una: self.view.una,
            next: self.next,
            phase: self.phase,
            mss: self.mss(),
            duplicates: self.view.duplicates,
            sacked_above: self
                .acknowledged
                .sacked
                .octets_above(end)
                .min(self.view.sacked),
            has_sack: self.acknowledged.has_sack,
            room: self.view.room_from(self.next),
            window: self.view.window,
            since_ack: self.view.last.map(|last| (copy.time - last.time).max(0)),
            since_send: self.releases.last.map(|last| copy.time - last.time),
            since_advance: self.view.advanced.map(|time| (copy.time - time).max(0)),
            since_copy: latest.map(|latest| copy.time - latest.time),
            is_repeated: piece.is_some_and(|piece| !piece.again.is_empty()),
            rtt: rtt.map(|(srtt, var)| (srtt + delays.back(), var)),
            // The way from the capture point to the sender may take longer than it ever did.
            tolerance: delays.tolerance().max(2 * delays.back()).max(MILLISECOND),
        }
    }

    /// The sender has had more to send than it might for long. A segment that ends a write each time is no sign of it, unless
    /// the window was full behind one.
    fn has_more(&self) -> bool {
        let releases = &self.releases;
        let is_full = || self.size.is_permitted() && releases.was_full_lately(LONG_PAUSE);
        releases.pattern.is_whole() && (!releases.pattern.is_pushed() || is_full())
    }

    /// The sender always has something to send, and has not been silent for long.
    fn is_bulk(&self, time: Nanos, round_trip: Option<Nanos>) -> bool {
        let longest = round_trip.unwrap_or(0).max(LONG_PAUSE);
        let is_short = |arrival: Arrival| time - arrival.time <= longest;
        self.has_more() && self.view.last.is_some_and(is_short)
    }

    /// Whether the amount in flight stays the same, and whether it fills the receiver's window.
    fn level(&self, mss: i64) -> (bool, bool) {
        let pattern = &self.releases.pattern;
        let is_level = pattern.is_level(mss);
        let fills = |window: i64| pattern.level() + mss + window / 8 >= window;
        (is_level, is_level && self.view.window.is_some_and(fills))
    }

    /// The interval before a segment ends; what of it belongs to fast recovery.
    fn close_wait(
        &mut self,
        segment: &Segment,
        length: i64,
        trigger: Option<Trigger>,
        delays: Delays,
    ) -> Nanos {
        let time = segment.time;
        let tolerance = delays.tolerance();
        let last = self.releases.last;
        let mss = self.mss();
        let round_trip = self.rtt.smoothed().map(|(srtt, _)| srtt + delays.back());
        let since = last.map_or(0, |last| time - last.time);
        let leaving = Leaving {
            segment,
            length,
            is_small: self.size.is_small(segment),
            is_retransmission: trigger.is_some(),
            is_recovering: self.phase != Phase::Open,
            next: self.next,
            mss,
            round_trip,
            delays,
        };
        let is_burst = self.releases.observe(&leaving, &self.view);
        let is_short = round_trip.is_some_and(|round_trip| since < round_trip / 2);
        let released = self
            .releases
            .release(&leaving, &self.view, is_burst, is_short);
        let refill = if is_burst {
            Refill::No
        } else {
            self.releases.refill(&leaving, &self.view)
        };
        let pattern = &self.releases.pattern;
        let asked = self
            .view
            .asked
            .is_some_and(|asked| time - asked <= tolerance);
        let all_acknowledged = self.view.una >= self.next;
        let is_small = last.is_some_and(|last| last.is_small);
        let is_idle = last.is_none() || (all_acknowledged && (!released || asked));
        let is_probe = !released && self.releases.is_probe(&leaving, &self.view);
        let ends_with_timer = is_probe
            || matches!(
                trigger,
                Some(Trigger::Rto | Trigger::Tlp | Trigger::WindowProbe)
            );
        // The answer may come sooner than the least time to the sender says.
        let asked_at = self
            .view
            .asked
            .filter(|asked| is_idle && last.is_none_or(|last| *asked > last.time))
            .map(|asked| asked.min(time));
        let (is_level, fills_window) = self.level(mss);
        let wait = Wait {
            mss,
            is_bulk: asked_at.is_none() && self.is_bulk(time, round_trip),
            is_peers: false,
            window: self.view.window,
            room: last.and_then(|last| last.room),
            next_length: length,
            was_full: round_trip
                .is_some_and(|round_trip| self.releases.was_full(time, is_burst, round_trip)),
            is_opening: false,
            has_gap: self.has_gap,
            is_idle,
            is_last: false,
            is_blocked: released && !is_idle,
            is_small,
            is_next_small: leaving.is_small,
            ends_with_timer,
            is_recovering: self.phase != Phase::Open || trigger.is_some(),
            is_ack_delayed: self.view.last.is_some_and(|last| last.is_delayed)
                && self.next - self.view.before <= 2 * mss,
            is_paced: !pattern.is_pushed() && is_short && !is_small && !all_acknowledged,
            is_level,
            ends_writes: pattern.ends_writes(),
            is_refill: refill == Refill::Yes,
            may_refill: matches!(refill, Refill::Perhaps | Refill::Unclear),
            is_unclear: refill == Refill::Unclear,
            fills_window,
            is_unfilled: pattern.is_below_any_window(mss),
            is_queued: self.rtt.is_queued(delays.back()),
        };
        self.spend_first(&wait, asked_at, time);
        let packets = [last.map(|last| last.number), Some(segment.number)];
        let since = last.map(|last| last.time);
        let is_handed_over = matches!(
            self.clock.last(),
            Some(Limit::Application | Limit::SendBuffer)
        );
        let is_one_write = is_handed_over && self.view.una <= self.releases.train.start;
        let follows = is_burst && (!released || is_one_write);
        // Without the sender's part no round trip is known.
        let round_trip = round_trip.filter(|_| delays.to_sender.is_some());
        let spent = self
            .clock
            .segment(time, since, &wait, round_trip, packets, follows);
        self.unread
            .wait(time, self.clock.shares.of(Limit::ReceiveWindow));
        spent
    }

    /// The part of a wait that has a reason of its own: until the peer's application asks, or until an acknowledgment of
    /// everything opens a window that was full. Only what follows may be the application's.
    fn spend_first(&mut self, wait: &Wait, asked: Option<Nanos>, time: Nanos) {
        if let Some(asked) = asked {
            let wait = Wait {
                is_peers: true,
                ..*wait
            };
            self.clock.spend(asked, &wait);
        } else if let Some(opened) = self.opened_full(wait.is_idle) {
            let wait = Wait {
                is_idle: false,
                ..*wait
            };
            self.clock.spend(opened.min(time), &wait);
        }
    }

    fn opened_full(&self, is_idle: bool) -> Option<Nanos> {
        let last = self.releases.last?;
        let is_full = last.room.is_some_and(|room| room < self.mss());
        let opened = self.view.room?;
        (is_idle && is_full && opened > last.time).then_some(opened)
    }

    /// Acknowledgments reach the sender.
    fn arrive(&mut self, now: Nanos, echo: Option<u32>, delays: Delays) {
        // Times are rounded, and an acknowledgment is faster than the longer SYN-ACK that the delay was measured with.
        let latest = now.saturating_add(30 * MICROSECOND + delays.back() / 500);
        let patience = self
            .rtt
            .smoothed()
            .map_or(0, |(srtt, _)| srtt + delays.back());
        while let Some(arrival) = self.view.next(latest, echo, patience) {
            if arrival.window < FURTHEST {
                self.unread.see_window(arrival.window);
            }
            self.phase = self.phase.at(arrival.una);
            let may_recover = self.phase == Phase::Open && self.view.duplicates >= DUP_THRESH;
            self.clock.may_recover(arrival.time.min(now), may_recover);
            if !matches!(self.phase, Phase::Recovery(_)) {
                self.episodes.end(now);
            }
            let time = arrival.time.min(now);
            let is_closed = arrival.window < self.mss()
                && arrival.una + arrival.window < self.next + self.mss();
            self.clock
                .window(time, is_closed && arrival.una >= self.next);
            self.unread
                .wait(time, self.clock.shares.of(Limit::ReceiveWindow));
        }
    }

    /// A segment of the peer acknowledges data of this direction; `window` is scaled.
    pub(crate) fn acknowledge(
        &mut self,
        segment: &Segment,
        number: u32,
        window: Option<i64>,
        delays: Delays,
        budget: &mut Budget,
    ) -> Option<Nanos> {
        let sequence = *self.sequence.get_or_insert(Sequence::new(number));
        let near = if self.acknowledged.una == UNKNOWN {
            self.next
        } else {
            self.acknowledged.una
        };
        let una = sequence.unwrap(number, near);
        if (una - near).abs() > FURTHEST {
            self.counts.implausible += 1;
            return None;
        }
        let time = segment.time;
        self.acknowledged.begin(time);
        let ack = Ack {
            segment,
            sequence,
            una,
            next: self.next,
            // What had arrived before later data.
            highest: self.acknowledged.sacked.end().unwrap_or(UNKNOWN),
            mss: self.mss(),
            has_data: self.counts.data_packets > 0,
        };
        let (mut sample, is_sack_new) =
            self.acknowledged
                .selective(&ack, &mut self.board, &mut self.settling, &mut self.path);
        if is_sack_new {
            // With a gap the window need not grow.
            self.releases.pattern.disturb();
        }
        let advances = una > self.acknowledged.una;
        if advances {
            sample = self.advance(&ack, delays).or(sample);
        }
        let is_pure = segment.payload == 0 && !segment.has(SYN | FIN);
        let is_duplicate = una == self.acknowledged.una && is_pure && self.next > una;
        if advances {
            self.acknowledged.move_to(una);
            self.next = self.next.max(una);
        } else if is_duplicate {
            self.acknowledged.repeat(time);
        }
        if let Some(sample) = sample {
            self.rtt.sample(sample);
            let least = sample + delays.back();
            let una = self.acknowledged.una.max(0);
            self.routes[0].see(
                Sample {
                    time,
                    took: sample,
                    flight: self.next - una,
                    passed: una,
                },
                least,
            );
        }
        if segment.has(SYN) {
            if let Some(sample) = sample {
                self.path.opened(sample);
            }
        } else if una >= self.acknowledged.una {
            let top = self
                .acknowledged
                .sacked
                .end()
                .map_or(una, |end| end.max(una));
            let is_open = advances && self.phase == Phase::Open;
            let octets = una + self.acknowledged.sacked.octets();
            let is_all = top >= self.next;
            self.path
                .acknowledge(time, top, octets, sample, is_open, is_all);
            self.path.window(window);
        }
        if window == Some(0) && una >= self.acknowledged.una {
            self.counts.zero_windows += 1;
        }
        if una >= self.acknowledged.una {
            let least = delays.to_receiver.or(self.rtt.min()).unwrap_or(0);
            self.view.push(Arrival {
                time: time + delays.back(),
                una,
                sacked: self.acknowledged.sacked.octets(),
                window: window.unwrap_or(FURTHEST),
                stamp: segment.stamps.map(|stamps| stamps.0),
                is_duplicate,
                has_data: segment.payload > 0,
                is_delayed: sample.is_some_and(|rtt| rtt > least + 30 * MILLISECOND),
            });
        }
        self.settle(time, delays, budget);
        sample
    }

    /// The cumulative acknowledgment advances; a round trip if it shows one.
    fn advance(&mut self, ack: &Ack<'_>, delays: Delays) -> Option<Nanos> {
        let time = ack.segment.time;
        let advance = self.acknowledged.advance(ack, &mut self.board);
        self.counts.late += advance.late_packets;
        if let Some((octets, beyond)) = advance.late {
            let by = self.path.hole().map(|hole| time - hole);
            self.path.late(octets, beyond, by);
        }
        if advance.holes > 0 {
            self.counts.capture_gaps += advance.holes;
            self.counts.unseen_octets += u64::try_from(advance.unseen_octets).unwrap_or_default();
            self.has_gap = true;
        }
        let round_trip = delays
            .round_trip()
            .or(self.rtt.to_receiver().map(|(srtt, _)| srtt))
            .unwrap_or(0);
        for piece in advance.again {
            self.settling.push(piece, time, round_trip);
        }
        self.gaps.acknowledge(ack.una);
        advance.sample
    }

    /// Judges what has waited long enough.
    fn settle(&mut self, now: Nanos, delays: Delays, budget: &mut Budget) {
        while let Some(piece) = self.settling.take_due(now) {
            self.judge(&piece, delays, budget);
        }
    }

    fn judge(&mut self, piece: &Piece, delays: Delays, budget: &mut Budget) {
        let path = need::Path {
            floor: delays.to_receiver,
            ceiling: self
                .rtt
                .to_receiver()
                .map(|(srtt, var)| srtt + (4 * var).max(srtt / 4)),
            last_ack: self.acknowledged.last,
        };
        if piece.again.is_empty() {
            return;
        }
        let verdicts = need::judge(piece, path);
        let is_lost = verdicts.first().and_then(|verdict| verdict.needed);
        self.path
            .decide(piece.start, piece.end, is_lost == Some(true));
        // Later data had arrived, and then the original did.
        let is_late = piece.overtaken && piece.first.is_some() && is_lost == Some(false);
        self.counts.late += u64::from(is_late);
        for (copy, verdict) in piece.again.iter().zip(verdicts) {
            if let Some(number) = copy.retransmission {
                self.ledger.decide(number, verdict, budget);
            }
        }
        self.close_episodes();
    }

    /// The time of a recovery of which every retransmission was spurious belongs to reordering.
    fn close_episodes(&mut self) {
        for decided in self.ledger.decided.drain(..) {
            self.episodes
                .decide(decided.time, decided.needed == Some(false));
        }
        while let Some(oldest) = self.episodes.take_closed() {
            if oldest.was_spurious() {
                self.clock
                    .settle_recovery(oldest.start, oldest.end, oldest.spent);
            }
        }
    }

    /// The connection has ended, or the capture has.
    pub(crate) fn finish(&mut self, end: Nanos, delays: Delays, budget: &mut Budget) {
        self.arrive(end, None, delays);
        self.settle(Nanos::MAX, delays, budget);
        while let Some(piece) = self.board.take_lowest() {
            self.judge(&piece, delays, budget);
        }
        self.ledger.finish(budget);
        let wait = Wait {
            is_last: true,
            is_idle: self.view.una >= self.next,
            is_small: self.releases.last.is_some_and(|last| last.is_small),
            ..Wait::default()
        };
        let before = self.clock.shares.of(Limit::Application);
        // A host that has answered requests waits for the next one.
        let is_peers = 2 * self.clock.peers > before;
        self.clock.spend(end, &Wait { is_peers, ..wait });
        if self.has_fin {
            self.closing = self.clock.shares.of(Limit::Application) - before;
        }
    }
}

/// A transmission of a segment.
fn copy_of(segment: &Segment) -> Copy {
    Copy {
        time: segment.time,
        number: segment.number,
        stamp: segment.stamps.map(|stamps| stamps.0),
        id: segment.id,
        retransmission: None,
    }
}
