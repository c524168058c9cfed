//! Collects the data of one direction about its path.

use std::collections::VecDeque;

use anabranch_core::histogram::Histogram;

use super::{
    lost::{Lost, Place, Reductions, Run},
    side::{Prompt, Side},
    summaries::Octets,
};
use crate::{
    control::{Rounds, Sent},
    entries::Role,
    retransmission::need::is_before,
    segment::{SYN, Segment},
    time::{MICROSECOND, MILLISECOND, Nanos},
};

/// Octets of the announced MSS that the timestamp option takes (RFC 6691).
const STAMPS: i64 = 12;
/// IPv4 and TCP headers; IPv6's is longer by 20.
const HEADERS: i64 = 40;
/// The payload of an Ethernet frame, used if no MSS was announced and segments are larger.
const USUAL_MSS: i64 = 1448;
/// Larger segments are segmented by the network card.
const LARGEST_MSS: i64 = 9_000;

/// The shortest timer of delayed acknowledgments.
const LEAST_DELAY: Nanos = 35 * MILLISECOND;

/// The largest distance of packets in a burst, at the slowest rate of 1 Mbit/s.
const MOST_APART: Nanos = 13 * MILLISECOND;

/// Maximum number of packets without data that are examined.
const MOST_BARE: u8 = 4;
/// A host whose share of the round trip is below 1/`NEAR` has no queue before the capture point.
const NEAR: Nanos = 32;

/// Whether the capture point is so close to a host that a queue between them does not matter.
fn is_near(sample: Nanos, other: &Side) -> bool {
    other.least.min().is_some_and(|least| sample < least / NEAR)
}

/// Number of full segments for this many octets; the last one may be smaller. Most often it is one
/// or two.
fn segments(octets: i64, mss: i64) -> i64 {
    match octets {
        _ if octets <= mss => 1,
        _ if octets <= 2 * mss => 2,
        _ => (octets + mss - 1) / mss,
    }
}

/// Octets of the headers of IPv4 and UDP.
const UDP: i64 = 28;

/// The data of one direction.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub(super) before: Side,
    pub(crate) after: Side,
    pub(super) lost: Lost,
    pub(super) reductions: Reductions,
    pub(super) rounds: Rounds,
    echo: Echo,
    /// Packets of the sender without data that were examined for an echo.
    bare: u8,
    /// When the last packet of the sender passed that gave a sample.
    sender_at: Option<Nanos>,
    /// The MSS that the receiver announced.
    pub(crate) announced: Option<i64>,
    largest: i64,
    pub(super) has_stamps: bool,
    is_v6: bool,
    /// Octets of a full QUIC packet other than stream data.
    overhead: Option<i64>,
    /// Octets that came late, how many octets had overtaken them, and their lateness.
    pub(super) late: u64,
    pub(super) extents: Histogram,
    pub(super) lateness: Histogram,
    /// The time since which later data has arrived above a hole.
    pub(crate) hole: Option<Nanos>,
    /// Octets that were missing when later ones passed.
    gaps: i64,
    acknowledged_at: Option<Nanos>,
    /// Octets that have arrived, by acknowledgments.
    arrived: Option<i64>,
    /// Acknowledgments that advance outside recoveries, and the octets that they acknowledge.
    pub(super) acks: u64,
    pub(super) acked: i64,
    pub(super) goodput: Octets,
    /// When the first segment with data passed.
    pub(super) first: Option<Nanos>,
    pub(super) largest_window: i64,
    pub(super) initial_flight: i64,
}

impl Observer {
    pub(crate) fn window(&mut self, window: Option<i64>) {
        self.largest_window = self.largest_window.max(window.unwrap_or(0));
    }

    /// Octets of payload of a full segment.
    pub(super) fn mss(&self) -> i64 {
        let options = if self.has_stamps { STAMPS } else { 0 };
        let announced = self.announced.map(|mss| (mss - options).max(1));
        match (announced, self.largest) {
            (Some(announced), 1..) => announced.min(self.largest),
            (Some(announced), _) => announced,
            (None, 1..=LARGEST_MSS) => self.largest,
            (None, _) => USUAL_MSS,
        }
    }

    /// Octets of headers of IP and TCP.
    pub(super) fn headers(&self) -> i64 {
        if let Some(overhead) = self.overhead {
            return overhead + UDP + i64::from(self.is_v6) * 20;
        }
        HEADERS + i64::from(self.is_v6) * 20 + i64::from(self.has_stamps) * STAMPS
    }

    /// Converts octets of data to octets of IP packets.
    fn wire(mss: i64, headers: i64) -> impl Fn(i64) -> i64 {
        move |octets| octets + segments(octets, mss) * headers
    }

    /// Records an acknowledgment, whose timestamp the sender of the data will echo.
    pub(crate) fn ask(&mut self, segment: &Segment) {
        if self.bare >= MOST_BARE && self.largest == 0 {
            return;
        }
        if let Some((stamp, _)) = segment.stamps {
            self.echo.ask(stamp, segment.time);
        }
    }

    /// Processes a packet of the sender of the data.
    pub(crate) fn see_sender(&mut self, segment: &Segment) {
        self.is_v6 = segment.source.0.is_ipv6();
        if segment.payload > 0 {
            self.has_stamps = segment.stamps.is_some();
            let payload = i64::from(segment.payload);
            if let Some(quic) = segment.quic
                && payload >= self.largest
            {
                self.overhead = Some(quic.overhead.into());
            }
            self.largest = self.largest.max(payload);
        }
        // The handshake gives the minimum time. Later on, only data waits in the queue.
        if segment.payload == 0 && self.bare >= MOST_BARE {
            return;
        }
        self.bare = self.bare.saturating_add(u8::from(segment.payload == 0));
        let echo = segment.ack.and_then(|_| segment.echo());
        let sample = echo.and_then(|echo| self.echo.answer(echo, segment.time));
        let Some(sample) = sample else {
            return;
        };
        let is_full = i64::from(segment.payload) >= self.mss();
        if is_near(sample.time, &self.after) {
            self.before.see_least(sample.time, is_full);
            return;
        }
        if !sample.is_further {
            self.rounds.echo(sample.time);
        }
        // Later data with the same echo may have been sent much later; within a burst it follows at
        // the queue's pace.
        let is_burst = segment.time - self.sender_at.unwrap_or(segment.time) <= MOST_APART;
        if sample.is_further && !is_burst {
            return;
        }
        self.before
            .settle(segment.time, sample.time, self.mss() + self.headers());
        self.sender_at = Some(segment.time);
        self.before
            .sample(segment.time, sample.time, is_full, 1, Prompt::Yes);
    }

    /// Records the ECN field of a SYN or of a retransmission.
    pub(crate) fn see_ecn(&mut self, segment: &Segment, is_again: bool) {
        if is_again || segment.has(SYN) {
            self.rounds.see_ecn(segment.ecn);
        }
    }

    /// Processes data.
    pub(crate) fn data(&mut self, sent: Sent) {
        self.first.get_or_insert(sent.time);
        if sent.is_tcp {
            self.rounds.send(&sent, self.mss());
        }
        self.reductions.see(
            sent.end.max(sent.next),
            sent.una.max(0),
            sent.is_recovering,
            sent.by_timer,
        );
        if sent.una <= 0 {
            self.initial_flight = self.initial_flight.max(sent.end);
        }
        if sent.end <= sent.next {
            self.before.touch(sent.time);
            return;
        }
        let wire = Self::wire(self.mss(), self.headers());
        // Earlier data is contiguous: a gap makes `sent.end` exceed the octets received.
        let gap = (sent.start - sent.next).max(0);
        self.gaps += gap;
        let octets = sent.end - self.gaps;
        self.before.hold(sent.time, sent.end, octets, wire);
    }

    /// Processes an acknowledgment: the highest octet that has arrived, the number of octets that
    /// have, and a round-trip sample.
    ///
    /// If it covers all outstanding data, the receiver may have waited for more.
    pub(crate) fn acknowledge(
        &mut self,
        time: Nanos,
        top: i64,
        octets: i64,
        sample: Option<Nanos>,
        is_open: bool,
        is_all: bool,
    ) {
        let since = self.acknowledged_at.map_or(0, |before| time - before);
        self.acknowledged_at = Some(time);
        let (mss, headers) = (self.mss(), self.headers());
        let new = self.arrived.map_or(0, |before| octets - before);
        self.arrived = Some(octets.max(self.arrived.unwrap_or(octets)));
        if is_open && new > 0 {
            self.acks += 1;
            self.acked += new;
        }
        self.hole = (top > octets).then(|| self.hole.unwrap_or(time));
        if new > 0 {
            self.goodput.see(time, new);
            self.rounds.acknowledge(sample.filter(|_| top == octets));
        }
        // A receiver may have waited for a second segment.
        let is_delayed = is_all || (new < 2 * mss && top == octets && since >= LEAST_DELAY);
        if let Some(sample) = sample {
            let segments = u32::try_from(segments(new, mss)).unwrap_or(u32::MAX);
            let prompt = match (is_delayed, top > octets) {
                (true, _) => Prompt::No,
                (false, true) => Prompt::Almost,
                (false, false) => Prompt::Yes,
            };
            if is_near(sample, &self.before) {
                self.after.see_least(sample, new >= mss);
                return;
            }
            self.after
                .sample(time - sample, sample, new >= mss, segments, prompt);
        }
        if is_delayed {
            self.after.lose();
        } else {
            let wire = Self::wire(mss, headers);
            self.after
                .advance(time, top, octets, sample, mss + headers, wire);
        }
    }

    /// Forgets the route towards an end that another one, with this least time, has replaced: its longer or
    /// shorter round trips are no queue.
    pub(crate) fn change_route(&mut self, towards: Role, least: Nanos) {
        let mut side = Side::default();
        side.see_least(least, true);
        match towards {
            Role::Receiver => self.after = side,
            Role::Sender => self.before = side,
        }
    }

    /// Records original data of `octets` that came late, after `beyond` octets of later data.
    pub(crate) fn late(&mut self, octets: i64, beyond: i64, by: Option<Nanos>) {
        let mss = self.mss();
        self.late += u64::try_from((octets + mss - 1) / mss).unwrap_or_default();
        self.extents
            .record(u64::try_from((beyond + mss - 1) / mss).unwrap_or_default());
        if let Some(by) = by {
            self.lateness
                .record(u64::try_from(by / MICROSECOND).unwrap_or_default());
        }
    }

    /// The round-trip time to the receiver of data sent just before this time.
    pub(crate) fn met(&self, time: Nanos) -> Option<Nanos> {
        self.after.recent.around(time)
    }

    /// The longest time for which an original that passed at this time and was lost can have waited in a
    /// queue.
    pub(crate) fn longest_wait(&self, first: Nanos) -> Option<Nanos> {
        let most = self.after.recent.most_after(first)?;
        Some((most - self.after.least.min()?).max(0))
    }

    /// Whether a queue before the capture point was about full when a packet was lost there: the packet that
    /// shows the gap, at `gap`, followed the lost one through it. `round_trip` is the least of the whole path.
    pub(crate) fn was_full_before(&self, gap: Nanos, round_trip: Nanos) -> bool {
        let around = self.before.recent.around(gap - 1);
        let wait = around.zip(self.before.least.min());
        wait.is_some_and(|(around, least)| {
            around - least > round_trip / 4 && 2 * (around - least) >= self.before.swing()
        })
    }

    /// Records the first retransmission of an original, which passed at `first`; if it was not
    /// captured, its neighbours passed at `gap`.
    pub(crate) fn suspect(
        &mut self,
        (start, end): (i64, i64),
        first: Option<Nanos>,
        gap: Option<Nanos>,
    ) {
        let (place, around) = match first {
            Some(first) => (Place::After, self.after.recent.around(first)),
            // The packet that shows the gap followed the lost one.
            None => (
                Place::Before,
                gap.and_then(|gap| self.before.recent.around(gap - 1)),
            ),
        };
        let run = Run {
            place,
            start,
            sent: first.or(gap),
            around,
            segments: 0,
        };
        self.lost.suspect(end, run);
    }

    /// Whether most runs of losses were before the capture point.
    pub(crate) fn loses_before(&self) -> bool {
        let (runs, _) = self.lost.runs();
        2 * runs.iter().filter(|run| run.place == Place::Before).count() > runs.len()
    }

    /// Records whether an original was lost.
    pub(crate) fn decide(&mut self, start: i64, end: i64, is_lost: bool) {
        self.lost.decide(start, end, is_lost, self.mss());
    }
}

/// Maximum number of timestamps that wait for an echo.
const MOST_ASKED: usize = 256;

/// A timestamp that was sent to a host.
#[derive(Debug, Clone, Copy)]
struct Asked {
    stamp: u32,
    /// When the first packet with it passed.
    time: Nanos,
    /// Several packets carry it: a later one may have released the data that echoes it.
    is_shared: bool,
}

/// Timestamps sent to a host, with the time at which each passed first.
#[derive(Debug, Default)]
pub(super) struct Echo {
    asked: VecDeque<Asked>,
    /// The latest timestamp, stored or not: only the first packet with a timestamp is used.
    latest: Option<u32>,
    answered: Option<Asked>,
    /// The minimum time between two stored timestamps, so that the timestamps of one round trip
    /// fit.
    apart: Nanos,
}

/// The time from an acknowledgment to data that echoes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) time: Nanos,
    /// Earlier data has echoed it as well.
    pub(super) is_further: bool,
}

impl Echo {
    /// Records a packet to the host with this `TSval`.
    pub(super) fn ask(&mut self, stamp: u32, time: Nanos) {
        if self.latest.is_some_and(|latest| !is_before(latest, stamp)) {
            let kept = self.asked.back_mut().filter(|last| last.stamp == stamp);
            if let Some(last) = kept {
                last.is_shared = true;
            }
            return;
        }
        self.latest = Some(stamp);
        let last = self.asked.back();
        if last.is_some_and(|last| time - last.time < self.apart) {
            return;
        }
        if self.asked.len() >= MOST_ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked {
            stamp,
            time,
            is_shared: false,
        });
    }

    /// Records a packet from the host with this `TSecr`. Returns the time since the packet with
    /// that timestamp.
    pub(super) fn answer(&mut self, echo: u32, time: Nanos) -> Option<Answer> {
        if let Some(answered) = self.answered
            && answered.stamp == echo
        {
            return (!answered.is_shared).then_some(Answer {
                time: time - answered.time,
                is_further: true,
            });
        }
        let mut found = None;
        while let Some(asked) = self.asked.front().copied() {
            if is_before(echo, asked.stamp) {
                break;
            }
            found = (asked.stamp == echo).then_some(asked);
            self.asked.pop_front();
        }
        self.answered = found.or(self.answered);
        let time = time - found?.time;
        self.apart = time / 128;
        Some(Answer {
            time,
            is_further: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn answer(time: Nanos, is_further: bool) -> Answer {
        Answer { time, is_further }
    }

    #[test]
    fn an_echo_is_timed_from_the_first_packet_with_its_stamp() {
        let mut echo = Echo::default();
        echo.ask(7, 100);
        echo.ask(7, 150);
        assert_eq!(echo.answer(7, 1_000), Some(answer(900, false)));
        // It is unknown which of the two released it.
        assert_eq!(echo.answer(7, 1_200), None);
    }

    #[test]
    fn data_of_one_burst_is_timed_from_the_same_packet() {
        let mut echo = Echo::default();
        echo.ask(7, 100);
        assert_eq!(echo.answer(7, 1_000), Some(answer(900, false)));
        assert_eq!(echo.answer(7, 1_200), Some(answer(1_100, true)));
        assert_eq!(echo.answer(6, 1_300), None);
    }

    #[test]
    fn a_loss_before_the_capture_met_the_queue_of_its_time() {
        let mut observer = Observer::default();
        // The queue grows from 10 to 59 ms, and is empty when the loss is repaired.
        for ms in (10..60).chain(std::iter::repeat_n(10, 50)) {
            let time = observer.sender_at.unwrap_or(0) + 20 * MILLISECOND;
            observer.sender_at = Some(time);
            observer
                .before
                .sample(time, ms * MILLISECOND, true, 1, Prompt::Yes);
        }
        let at = |sample: i64| sample * 20 * MILLISECOND + 1;
        let is_full = |sample| observer.was_full_before(at(sample), 20 * MILLISECOND);
        assert_eq!([5, 49, 90].map(is_full), [false, true, false]);
        assert!(!observer.was_full_before(at(49), 1_000 * MILLISECOND));
    }
}
