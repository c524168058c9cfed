//! The data of one direction of a connection, from its sender's point of view.

use std::collections::VecDeque;

use super::{
    board::Board,
    clock::Clock,
    pattern::Pattern,
    policing::Policing,
    ranges::Ranges,
    route::Route,
    rtt::Rtt,
    unread::Unread,
    view::{Arrival, UNKNOWN, View},
};
use crate::{
    limit::{Limit, Wait},
    path::{Observer, Sent},
    retransmission::{
        Evidence, Place, Retransmission, Trigger,
        ledger::{Budget, Ledger},
        need::{self, Verdict},
        piece::{Copy, Cover, Piece},
        recognition::{Filler, Gap, is_reordered},
        trigger::{Phase, Scene},
    },
    segment::{FIN, PSH, SYN, Segment},
    sequence::Sequence,
    time::{MICROSECOND, MILLISECOND, Nanos},
};

/// An acknowledgment further ahead than any window is a damaged one.
const FURTHEST: i64 = 1 << 30;
/// Gaps that a late segment may still fill.
const MOST_GAPS: usize = 256;
/// Acknowledged pieces that wait for a duplicate SACK, at most.
const MOST_SETTLING: usize = 4096;
/// The least time that a duplicate SACK is waited for.
const LEAST_SETTLING: Nanos = 500 * MILLISECOND;
/// Segments of one burst follow each other as fast as the sender's link permits.
const BURST: Nanos = 200 * MICROSECOND;
/// Recoveries whose verdicts are open, at most.
const MOST_EPISODES: usize = 64;
/// The MSS until one is known (RFC 9293 §3.7.1).
const DEFAULT_MSS: i64 = 536;

/// What both hosts' answers tell about the path, for this direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delays {
    /// From data to its acknowledgment, at least.
    pub(crate) to_receiver: Option<Nanos>,
    /// From an acknowledgment to the data that it releases, at least.
    pub(crate) to_sender: Option<Nanos>,
    /// By how much that varies.
    pub(crate) jitter: Nanos,
}

impl Delays {
    fn round_trip(self) -> Option<Nanos> {
        Some(self.to_receiver? + self.to_sender.unwrap_or(0))
    }

    fn back(self) -> Nanos {
        self.to_sender.unwrap_or(0)
    }

    /// How precisely an acknowledgment and what it releases are timed together.
    fn tolerance(self) -> Nanos {
        let back = self.back();
        200 * MICROSECOND + (2 * self.jitter).clamp(back / 50, back / 2)
    }
}

/// What a direction counts.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) data_packets: u64,
    /// Octets of payload, retransmissions included.
    pub(crate) sent: u64,
    pub(crate) reordered: u64,
    /// Segments that arrived after later ones and were not retransmitted.
    pub(crate) late: u64,
    /// Copies of a packet that the network or the capture made.
    pub(crate) duplicated: u64,
    /// Holes in the capture: data that was acknowledged and never seen.
    pub(crate) capture_gaps: u64,
    pub(crate) unseen_octets: u64,
    pub(crate) zero_windows: u64,
    pub(crate) implausible: u64,
    pub(crate) first_data: Option<Nanos>,
    pub(crate) last_data: Option<Nanos>,
}

/// A piece that is acknowledged, and until when its verdict waits.
#[derive(Debug)]
struct Settling {
    piece: Piece,
    until: Nanos,
}

/// A fast recovery.
#[derive(Debug)]
struct Episode {
    start: Nanos,
    end: Option<Nanos>,
    /// Time given to fast recovery.
    spent: Nanos,
    /// Its retransmissions, and those with a verdict.
    sent: u32,
    decided: u32,
    is_spurious: bool,
}

impl Episode {
    fn covers(&self, time: Nanos) -> bool {
        self.start <= time && self.end.is_none_or(|end| time <= end)
    }
}

/// How a sender's identifications go on.
#[derive(Debug, Default)]
struct Ids {
    last: Option<u16>,
    steps: u32,
    jumps: u32,
    /// Steps of exactly one.
    ones: u32,
    /// How many numbers the last step left out.
    skipped: u16,
}

impl Ids {
    fn see(&mut self, id: u16) {
        if let Some(last) = self.last {
            let step = id.wrapping_sub(last);
            match step {
                1..=64 => self.steps += 1,
                _ => self.jumps += 1,
            }
            self.ones += u32::from(step == 1);
            self.skipped = step.wrapping_sub(1);
        }
        self.last = Some(id);
    }

    fn grow(&self) -> bool {
        self.steps >= 4 && self.steps > 4 * self.jumps
    }

    /// Packets of this connection that the last packet shows to be missing before it: a sender that counts packets by
    /// connection leaves out none.
    fn missing(&self) -> u16 {
        let counts_each = self.grow() && self.ones > 9 * (self.steps + self.jumps - self.ones);
        if counts_each && self.skipped < 64 {
            self.skipped
        } else {
            0
        }
    }
}

fn time_since(earlier: Nanos, later: Nanos) -> Nanos {
    (later - earlier).max(0)
}

/// Smaller than a full segment, whatever options it has.
fn is_below(length: i64, mss: i64) -> bool {
    length + length / 8 < mss
}

/// How large segments are.
#[derive(Debug, Default)]
struct Size {
    largest: i64,
    /// A segment was seen that did not end a write.
    has_full: bool,
    /// What the receiver permits.
    permitted: i64,
}

impl Size {
    /// The largest segment that was seen; while each of them ended a write, what the receiver permits.
    fn mss(&self) -> i64 {
        let permitted = if self.has_full { 0 } else { self.permitted };
        match self.largest.max(permitted) {
            0 => DEFAULT_MSS,
            mss => mss,
        }
    }
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Direction {
    sequence: Option<Sequence>,
    /// Behind the highest octet that was sent.
    next: i64,
    /// What has been acknowledged where the capture is.
    una: i64,
    /// Duplicate acknowledgments since then, and when the last one of all passed.
    duplicates: u32,
    last_duplicate: Option<Nanos>,
    board: Board,
    sacked: Ranges,
    has_sack: bool,
    /// Behind the highest octet that was SACKed, and so before the acknowledgment at hand.
    sacked_top: i64,
    sacked_before: i64,
    /// When the last acknowledgment passed that says what has arrived.
    last_ack: Option<Nanos>,
    /// `next` lies behind a FIN.
    has_fin: bool,
    gaps: VecDeque<Gap>,
    settling: VecDeque<Settling>,
    view: View,
    phase: Phase,
    size: Size,
    ids: Ids,
    pattern: Pattern,
    episodes: VecDeque<Episode>,
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
    last_send: Option<Last>,
    /// The capture has lost packets since the last segment.
    has_gap: bool,
    train: Train,
    /// When the window was full behind a segment for the last time.
    full_window: Option<Nanos>,
}

/// Segments that left together, of which the first shows what they waited for.
#[derive(Debug, Clone, Copy, Default)]
struct Train {
    /// An acknowledgment released the first.
    is_released: bool,
    /// What had been sent before it.
    start: i64,
    /// The window was full before it.
    is_full: bool,
    time: Nanos,
}

/// The segment that was sent last.
#[derive(Debug, Clone, Copy)]
struct Last {
    time: Nanos,
    number: u64,
    length: i64,
    /// Room in the window behind it.
    room: Option<i64>,
}

impl Direction {
    pub(crate) fn new(start: Nanos) -> Self {
        Self {
            sequence: None,
            next: 0,
            una: UNKNOWN,
            duplicates: 0,
            last_duplicate: None,
            board: Board::default(),
            sacked: Ranges::default(),
            has_sack: false,
            sacked_top: 0,
            sacked_before: 0,
            last_ack: None,
            has_fin: false,
            gaps: VecDeque::new(),
            settling: VecDeque::new(),
            view: View::new(),
            phase: Phase::Open,
            size: Size::default(),
            ids: Ids::default(),
            pattern: Pattern::default(),
            episodes: VecDeque::new(),
            rtt: Rtt::default(),
            routes: Default::default(),
            policing: Policing::default(),
            unread: Unread::default(),
            closing: 0,
            ledger: Ledger::default(),
            clock: Clock::new(start),
            counts: Counts::default(),
            path: Observer::default(),
            last_send: None,
            has_gap: false,
            train: Train::default(),
            full_window: None,
        }
    }

    fn mss(&self) -> i64 {
        self.size.mss()
    }

    /// The receiver permits segments of this size (RFC 9293 §3.7.1); timestamps take 12 octets of it.
    pub(crate) fn permit(&mut self, mss: u16, has_stamps: bool) {
        self.size.permitted = i64::from(mss) - if has_stamps { 12 } else { 0 };
    }

    /// Octets of data, from the first to the last that was sent or acknowledged.
    pub(crate) fn octets(&self) -> i64 {
        (self.next - i64::from(self.has_fin)).max(0)
    }

    /// The most in flight.
    pub(crate) fn highest_flight(&self) -> i64 {
        self.pattern.highest()
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

    /// All had been acknowledged when the last segment was sent: it may have waited for the application.
    pub(crate) fn is_drained(&self) -> bool {
        self.view.was_drained
    }

    /// The sender took so long to answer an acknowledgment.
    pub(crate) fn answer(&mut self, time: Nanos, took: Nanos) {
        self.rtt.answer(took);
        if self.train.is_released {
            let least = took + self.rtt.min().unwrap_or(0);
            self.routes[1].see(time, took, self.next - self.view.una.max(0), least);
        }
    }

    /// A segment of this direction's sender.
    pub(crate) fn send(&mut self, segment: &Segment, delays: Delays, budget: &mut Budget) {
        self.counts.packets += 1;
        if let Some(id) = segment.id {
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
        self.gaps.push_back(Gap {
            start: UNKNOWN,
            end: 0,
            time: segment.time,
            stamp: segment.stamps.map(|stamps| stamps.0),
            id: segment.id,
        });
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
        let copy = Copy {
            time,
            number: segment.number,
            stamp: segment.stamps.map(|stamps| stamps.0),
            id: segment.id,
            retransmission: None,
        };
        if self.is_duplicated(&copy, start, end) {
            self.counts.duplicated += 1;
            return;
        }
        if segment.payload > 0 {
            self.counts.data_packets += 1;
            self.counts.sent += u64::from(segment.payload);
            self.counts.first_data.get_or_insert(time);
            self.counts.last_data = Some(time);
            self.size.has_full |= !segment.has(PSH);
            self.size.largest = self.size.largest.max(i64::from(segment.payload));
        }
        let trigger = self.place(segment, copy, start, end, delays, budget);
        if segment.has(SYN) {
            self.next = self.next.max(end);
            return;
        }
        let spent = self.close_wait(segment, end - start, trigger, delays);
        self.see_pattern(segment, end, trigger);
        self.change_phase(time, trigger, spent, delays.back());
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
        let room = self.view.room_from(self.next);
        if room.is_some_and(|room| room < self.mss()) {
            self.full_window = Some(time);
        }
        self.last_send = Some(Last {
            time,
            number: segment.number,
            length: end - start,
            room,
        });
        self.has_gap = false;
    }

    fn see_pattern(&mut self, segment: &Segment, end: i64, trigger: Option<Trigger>) {
        self.pattern.see_push(segment.has(PSH));
        if self.phase != Phase::Open {
            return;
        }
        if trigger.is_some() {
            self.pattern.lose();
        } else if self.view.was_drained {
            // A buffer that limits is never empty.
            self.pattern.disturb();
        } else {
            let una = self.view.una.max(0);
            if self.pattern.see_flight(self.next.max(end), una, self.mss()) {
                self.clock.start_level();
            }
        }
    }

    /// A retransmission begins a recovery or goes on with one, to which the time before it belongs.
    fn change_phase(&mut self, time: Nanos, trigger: Option<Trigger>, spent: Nanos, back: Nanos) {
        if trigger.is_some_and(|trigger| trigger != Trigger::Tlp) && self.phase == Phase::Open {
            self.policing
                .lose(time, self.una.max(0), self.rtt.is_queued(back));
        }
        match trigger {
            Some(Trigger::Rto) => self.phase = Phase::Loss(self.next),
            Some(Trigger::FastRetransmit | Trigger::Rack | Trigger::Sack)
                if self.phase == Phase::Open =>
            {
                self.phase = Phase::Recovery(self.next);
                self.episodes.push_back(Episode {
                    start: time,
                    end: None,
                    spent: 0,
                    sent: 0,
                    decided: 0,
                    is_spurious: true,
                });
            }
            _ => {}
        }
        if let Some(episode) = self.episodes.back_mut().filter(|one| one.end.is_none()) {
            episode.spent += spent;
            episode.sent += u32::from(trigger.is_some());
        }
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
                self.note_gap(start, &copy);
            }
            self.insert(start, end, Some(copy), None, budget);
            return None;
        }
        if start > self.next {
            self.note_gap(start, &copy);
        }
        // The capture has no copy of a tail that was lost before it.
        let known = if start >= self.next { end } else { self.next };
        let old = (start.max(self.una), end.min(known));
        let holes = self.holes(old.0, old.1);
        let is_acknowledged = start < self.una;
        let hole_octets: i64 = holes.iter().map(|(from, to)| to - from).sum();
        let is_filler = !is_acknowledged && hole_octets == old.1 - old.0;
        let filled = holes.first().copied().unwrap_or(old);
        if is_filler && self.is_late(&copy, filled, delays) {
            self.counts.reordered += 1;
            let gap = self
                .gap_at(filled.0)
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
        let earlier = self
            .board
            .at(old.0)
            .and_then(Piece::latest)
            .map(|copy| copy.number);
        let overtaken = self.sacked.octets_above(end) > 0 || self.duplicates > 0;
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
                is_queued: self.rtt.is_full(delays.back()),
                earlier,
            },
            pieces + u32::try_from(holes.len()).unwrap_or(u32::MAX),
            unseen,
            budget,
        );
        for (from, to) in holes {
            let gap = self.gap_at(from).map(|gap| gap.time);
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
        let pause = self.last_send.map(|last| copy.time - last.time);
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

    fn note_gap(&mut self, end: i64, copy: &Copy) {
        if self.gaps.len() >= MOST_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(Gap {
            start: self.next,
            end,
            time: copy.time,
            stamp: copy.stamp,
            id: copy.id,
        });
    }

    fn gap_at(&self, at: i64) -> Option<&Gap> {
        let mut gaps = self.gaps.iter().rev();
        gaps.find(|gap| gap.start <= at && at < gap.end)
    }

    /// Whether a segment that fills a hole is a late original.
    fn is_late(&self, copy: &Copy, hole: (i64, i64), delays: Delays) -> bool {
        let gap = self.gap_at(hole.0);
        let filler = Filler {
            time: copy.time,
            stamp: copy.stamp,
            id: copy.id,
            ids_grow: self.ids.grow(),
            round_trip: delays.round_trip(),
            is_missed: self.duplicates >= 3,
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
            sacked_above: self.sacked.octets_above(end).min(self.view.sacked),
            has_sack: self.has_sack,
            room: self.view.room_from(self.next),
            window: self.view.window,
            since_ack: self.view.last.map(|last| (copy.time - last.time).max(0)),
            since_send: self.last_send.map(|last| copy.time - last.time),
            since_advance: self.view.advanced.map(|time| (copy.time - time).max(0)),
            since_copy: latest.map(|latest| copy.time - latest.time),
            is_repeated: piece.is_some_and(|piece| !piece.again.is_empty()),
            rtt: rtt.map(|(srtt, var)| (srtt + delays.back(), var)),
            // The way from the capture point to the sender may take longer than it ever did.
            tolerance: delays.tolerance().max(2 * delays.back()).max(MILLISECOND),
        }
    }

    /// What a segment shows of how its sender's segments follow each other; whether it left together with the one before.
    fn observe(
        &mut self,
        segment: &Segment,
        length: i64,
        trigger: Option<Trigger>,
        delays: Delays,
    ) -> bool {
        let time = segment.time;
        let since = self.last_send.map_or(0, |last| time - last.time);
        if self.last_send.is_some() && !is_below(length, self.mss()) {
            self.pattern.see_apart(since);
        }
        let stamp = segment.stamps.map(|stamps| stamps.0);
        let is_same_tick = stamp.is_some_and(|stamp| self.pattern.is_same_tick(stamp));
        let is_burst =
            self.last_send.is_some() && (is_same_tick || since <= BURST.max(self.pattern.line()));
        if !is_burst && trigger.is_none() && self.phase == Phase::Open {
            let lag = self.view.room.map_or(Nanos::MAX, |room| time - room);
            let round_trip = self.rtt.smoothed().map(|(srtt, _)| srtt + delays.back());
            // What comes much later has waited for something else.
            if round_trip.is_some_and(|round_trip| lag < round_trip / 4) {
                self.pattern.see_release(lag, delays.jitter);
            }
        }
        if let Some(stamp) = stamp.filter(|_| !is_burst) {
            self.pattern.see_stamp(stamp, time);
        }
        if stamp.is_some() && self.view.last.is_some_and(|last| time - last.time > BURST) {
            self.pattern.see_echo(self.view.is_late);
        }
        is_burst
    }

    /// Whether an acknowledgment released a segment. Of segments that left together the first shows it.
    fn release(
        &mut self,
        segment: &Segment,
        is_burst: bool,
        is_short: bool,
        delays: Delays,
    ) -> bool {
        let time = segment.time;
        let mss = self.mss();
        let room = self.last_send.and_then(|last| last.room);
        let is_full = room.is_some_and(|room| room < mss);
        if is_full {
            // Until now.
            self.full_window = Some(time);
        }
        if is_burst {
            return self.train.is_released;
        }
        let round_trip = self.rtt.smoothed().map(|(srtt, _)| srtt + delays.back());
        let is_near = round_trip.is_some_and(|round_trip| 10 * delays.back() < round_trip);
        let is_precise = is_near || (segment.stamps.is_some() && self.pattern.is_fresh());
        // Before the first answer that echoes a timestamp it is not known how long one takes.
        let is_unknown = delays.to_sender.is_none() && segment.stamps.is_some();
        let latest = delays.tolerance() + self.pattern.line();
        let is_prompt = |room: Nanos| is_unknown || time - room <= latest;
        // A segment now and then follows an acknowledgment by chance, or comes late.
        let is_released = if is_short {
            !is_precise || self.pattern.is_clocked()
        } else {
            self.view.room.is_some_and(is_prompt)
        };
        self.train = Train {
            is_released,
            start: self.next,
            is_full,
            time,
        };
        is_released
    }

    /// The window was full before this segment, or a moment ago.
    fn was_full(&self, time: Nanos, is_burst: bool, round_trip: Nanos) -> bool {
        let follows = is_burst && self.train.is_full && time - self.train.time <= round_trip;
        let is_recent = |full: Nanos| time - full <= round_trip / 4;
        follows || self.full_window.is_some_and(is_recent)
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
        let last = self.last_send;
        let mss = self.mss();
        let round_trip = self.rtt.smoothed().map(|(srtt, _)| srtt + delays.back());
        let since = last.map_or(0, |last| time - last.time);
        let is_burst = self.observe(segment, length, trigger, delays);
        let is_short = round_trip.is_some_and(|round_trip| since < round_trip / 2);
        let released = self.release(segment, is_burst, is_short, delays);
        let asked = self
            .view
            .asked
            .is_some_and(|asked| time - asked <= tolerance);
        let all_acknowledged = self.view.una >= self.next;
        let is_small = last.is_some_and(|last| is_below(last.length, mss));
        let is_idle = last.is_none() || (all_acknowledged && (!released || asked));
        let ends_with_timer = matches!(
            trigger,
            Some(Trigger::Rto | Trigger::Tlp | Trigger::WindowProbe)
        );
        let asked_at = self.view.asked.filter(|asked| {
            is_idle && last.is_none_or(|last| *asked > last.time) && *asked <= time
        });
        let wait = Wait {
            mss,
            is_peers: false,
            window: self.view.window,
            room: last.and_then(|last| last.room),
            next_length: length,
            was_full: round_trip
                .is_some_and(|round_trip| self.was_full(time, is_burst, round_trip)),
            is_opening: false,
            has_gap: self.has_gap,
            is_idle,
            is_last: false,
            is_blocked: released && !is_idle,
            is_small,
            is_next_small: is_below(length, mss),
            ends_with_timer,
            is_recovering: self.phase != Phase::Open || trigger.is_some(),
            is_ack_delayed: self.view.last.is_some_and(|last| last.is_delayed)
                && self.next - self.view.before <= 2 * mss,
            is_paced: !self.pattern.is_pushed() && is_short && !is_small && !all_acknowledged,
            is_level: self.pattern.is_level(mss),
            fills_window: self
                .view
                .window
                .is_some_and(|window| self.pattern.level() + mss + window / 8 >= window),
            is_unfilled: self.pattern.is_below_any_window(mss),
            is_queued: self.rtt.is_queued(delays.back()),
        };
        if let Some(asked) = asked_at {
            let wait = Wait {
                is_peers: true,
                ..wait
            };
            self.clock.spend(asked, &wait);
        }
        let packets = [last.map(|last| last.number), Some(segment.number)];
        let since = last.map(|last| last.time);
        let is_one_write =
            self.clock.last() == Some(Limit::Application) && self.view.una <= self.train.start;
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

    fn end_episode(&mut self, now: Nanos) {
        if let Some(episode) = self.episodes.back_mut() {
            episode.end.get_or_insert(now);
        }
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
            if !matches!(self.phase, Phase::Recovery(_)) {
                self.end_episode(now);
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
        let near = if self.una == UNKNOWN {
            self.next
        } else {
            self.una
        };
        let una = sequence.unwrap(number, near);
        if (una - near).abs() > FURTHEST {
            self.counts.implausible += 1;
            return None;
        }
        let time = segment.time;
        self.last_ack = Some(time);
        self.sacked_before = self.sacked_top;
        // What had arrived before later data.
        let highest = self.sacked.end().unwrap_or(UNKNOWN);
        let mut sample = self.selective(segment, una, sequence, highest);
        if una > self.una {
            sample = self.advance(segment, una, delays, highest).or(sample);
        }
        let is_pure = segment.payload == 0 && !segment.has(SYN | FIN);
        let is_duplicate = una == self.una && is_pure && self.next > self.una;
        let advances = una > self.una;
        if advances {
            self.una = una;
            self.next = self.next.max(una);
            self.duplicates = 0;
            self.sacked.remove(UNKNOWN, una);
        } else if is_duplicate {
            self.duplicates += 1;
            self.last_duplicate = Some(time);
        }
        if let Some(sample) = sample {
            self.rtt.sample(sample);
            let least = sample + delays.back();
            self.routes[0].see(time, sample, self.next - self.una.max(0), least);
        }
        if segment.has(SYN) {
            if let Some(sample) = sample {
                self.path.opened(sample);
            }
        } else if una >= self.una {
            let top = self.sacked.end().map_or(una, |end| end.max(una));
            let is_open = advances && self.phase == Phase::Open;
            let octets = una + self.sacked.octets();
            let is_all = top >= self.next;
            self.path
                .acknowledge(time, top, octets, sample, is_open, is_all);
            self.path.window(window);
        }
        if window == Some(0) && una >= self.una {
            self.counts.zero_windows += 1;
        }
        if una >= self.una {
            let least = delays.to_receiver.or(self.rtt.min()).unwrap_or(0);
            self.view.push(Arrival {
                time: time + delays.back(),
                una,
                sacked: self.sacked.octets(),
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

    /// SACK blocks; a round trip if one of them acknowledges a segment that was sent once.
    fn selective(
        &mut self,
        segment: &Segment,
        una: i64,
        sequence: Sequence,
        highest: i64,
    ) -> Option<Nanos> {
        let blocks = segment.blocks();
        if blocks.is_empty() {
            return None;
        }
        self.has_sack = true;
        let time = segment.time;
        let unwrapped = |block: &(u32, u32)| {
            let start = sequence.unwrap(block.0, una);
            (start, start + i64::from(block.1.wrapping_sub(block.0)))
        };
        let second = blocks.get(1).map(unwrapped);
        let mut sample = None;
        for (k, block) in blocks.iter().enumerate() {
            let (start, end) = unwrapped(block);
            if end <= start || end - start > FURTHEST {
                continue;
            }
            // RFC 2883 §4.
            let is_within = second.is_some_and(|(from, to)| from <= start && end <= to);
            if k == 0 && (end <= una || is_within) {
                self.duplicate(start, end);
                continue;
            }
            let (start, end) = (start.max(una), end.min(self.next));
            if self.sacked.overlap(start, end) == end - start {
                continue;
            }
            for (from, to) in self.sacked.missing(start, end) {
                for piece in self.board.touching(from, to) {
                    if piece.cover.is_some() || piece.start < start || piece.end > end {
                        continue;
                    }
                    if piece.again.is_empty() {
                        sample = piece.first.map(|first| time - first.time);
                        // Further blocks may have gone unreported.
                        if k == 0 && piece.end < highest {
                            let by = self.path.hole().map(|hole| time - hole);
                            let octets = piece.end - piece.start;
                            self.path.late(octets, highest - piece.end, by);
                        }
                    }
                    piece.cover = Some(Cover {
                        time,
                        echo: None,
                        reaches_beyond: false,
                        is_at_once: false,
                    });
                }
            }
            self.sacked.add(start, end);
            self.sacked_top = self.sacked_top.max(end);
            // With a gap the window need not grow.
            self.pattern.disturb();
        }
        sample
    }

    /// The receiver has got a range twice.
    fn duplicate(&mut self, start: i64, end: i64) {
        let settling = self.settling.iter_mut().map(|one| &mut one.piece);
        for piece in settling.filter(|piece| piece.start < end && start < piece.end) {
            piece.duplicates += 1;
        }
        for piece in self.board.touching(start, end) {
            piece.duplicates += 1;
        }
    }

    /// The cumulative acknowledgment advances; a round trip if the newest segment that it covers was sent once.
    fn advance(
        &mut self,
        segment: &Segment,
        una: i64,
        delays: Delays,
        highest: i64,
    ) -> Option<Nanos> {
        let time = segment.time;
        let echo = segment.stamps.map(|stamps| stamps.1);
        // Before the first acknowledgment it is not known what the capture lacks.
        let is_first = self.una == UNKNOWN;
        let mut at = self.una;
        let is_at_once = !self.has_sack && una - self.una > 3 * self.mss();
        let mut late = (0, 0);
        // When the gap was filled that held the rest back.
        let mut filled: Option<Nanos> = None;
        let mut newest = None;
        let mut is_clean = true;
        let mut again = Vec::new();
        let (mut holes, mut unseen) = (0, 0);
        // Data that was not SACKed, and when it was sent.
        let mut beyond: Option<(i64, Nanos)> = None;
        while let Some(mut piece) = self.board.take_below(una) {
            if at < piece.start && !is_first {
                holes += 1;
                unseen += piece.start - at;
            }
            let is_front = piece.start <= self.una;
            at = piece.end;
            if piece.again.is_empty() {
                // Later data had arrived when it had not.
                self.counts.late +=
                    u64::from(piece.cover.is_none() && piece.end <= self.sacked_before);
                if piece.cover.is_none() {
                    if piece.end < highest {
                        late.0 += piece.end - piece.start;
                        late.1 = late.1.max(highest - piece.end);
                    }
                    newest = piece.first.map(|first| time - first.time);
                    beyond = piece.first.map(|first| (piece.start, first.time));
                }
                continue;
            }
            is_clean = false;
            piece.cover.get_or_insert(Cover {
                time,
                echo: echo.filter(|_| is_front),
                reaches_beyond: false,
                is_at_once: is_at_once
                    && !is_front
                    && filled
                        .is_some_and(|filled| piece.again.iter().all(|copy| copy.time >= filled)),
            });
            if is_front {
                filled = piece.again.last().map(|copy| copy.time);
            }
            again.push(piece);
        }
        // A retransmission that fills a gap reveals what the receiver has not reported.
        if late.0 > 0 && again.is_empty() {
            let by = self.path.hole().map(|hole| time - hole);
            self.path.late(late.0, late.1, by);
        }
        if at < una {
            // A FIN's octet is not data, and the capture may lack the FIN.
            let is_fin = una == at + 1 && at >= self.next;
            if !is_fin && !is_first && self.counts.data_packets > 0 {
                holes += 1;
                unseen += una - at;
            }
        }
        if holes > 0 {
            self.counts.capture_gaps += holes;
            self.counts.unseen_octets += u64::try_from(unseen).unwrap_or_default();
            self.has_gap = true;
            is_clean = false;
        }
        let wait = delays
            .round_trip()
            .or(self.rtt.to_receiver().map(|(srtt, _)| srtt))
            .unwrap_or(0);
        for mut piece in again {
            let last = piece.latest().map_or(time, |copy| copy.time);
            // Without duplicate acknowledgments nothing had arrived beside the gap.
            let is_quiet = self
                .last_duplicate
                .is_none_or(|duplicate| piece.first.is_some_and(|first| duplicate < first.time));
            if let (Some((start, sent)), Some(cover)) = (beyond, piece.cover.as_mut()) {
                cover.reaches_beyond =
                    cover.time == time && start >= piece.end && sent < last && is_quiet;
            }
            if self.settling.len() >= MOST_SETTLING
                && let Some(oldest) = self.settling.front_mut()
            {
                oldest.until = Nanos::MIN;
            }
            self.settling.push_back(Settling {
                until: time.max(last) + LEAST_SETTLING.max(2 * wait),
                piece,
            });
        }
        while self.gaps.front().is_some_and(|gap| gap.end <= una) {
            self.gaps.pop_front();
        }
        newest.filter(|_| is_clean)
    }

    /// Judges what has waited long enough.
    fn settle(&mut self, now: Nanos, delays: Delays, budget: &mut Budget) {
        while self.settling.front().is_some_and(|one| one.until <= now) {
            if let Some(one) = self.settling.pop_front() {
                self.judge(&one.piece, delays, budget);
            }
        }
    }

    fn judge(&mut self, piece: &Piece, delays: Delays, budget: &mut Budget) {
        let path = need::Path {
            floor: delays.to_receiver,
            ceiling: self
                .rtt
                .to_receiver()
                .map(|(srtt, var)| srtt + (4 * var).max(srtt / 4)),
            last_ack: self.last_ack,
        };
        if piece.again.is_empty() {
            return;
        }
        let verdicts = need::judge(piece, path);
        let is_lost = verdicts.first().and_then(|verdict| verdict.needed);
        self.path
            .decide(piece.start, piece.end, is_lost == Some(true));
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
            let episode = self.episodes.iter_mut();
            let episode = episode.rev().find(|episode| episode.covers(decided.time));
            if let Some(episode) = episode {
                episode.is_spurious &= decided.needed == Some(false);
                episode.decided += 1;
            }
        }
        while let Some(oldest) = self.episodes.front()
            && (oldest.decided >= oldest.sent && oldest.end.is_some()
                || self.episodes.len() > MOST_EPISODES)
        {
            if oldest.is_spurious && oldest.decided >= oldest.sent {
                self.clock
                    .settle_recovery(oldest.start, oldest.end, oldest.spent);
            }
            self.episodes.pop_front();
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
            ..Wait::default()
        };
        let before = self.clock.shares.of(Limit::Application);
        self.clock.spend(end, &wait);
        if self.has_fin {
            self.closing = self.clock.shares.of(Limit::Application) - before;
        }
    }
}
