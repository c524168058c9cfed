//! The sender as the capture shows it: its knowledge, its phase, and the pattern of its segments.

use super::{
    path_delays::Conditions,
    segment_size::SegmentSize,
    sender_view::{Arrival, DUP_THRESH, Due, View},
    transmission::{History, Scene, Transmission},
    transmission_causes::{Last, Leaving, Refill, Releases},
};
use crate::{
    limit::Wait,
    retransmission::{Phase, Trigger},
    segment::{PSH, Segment},
    time::{MILLISECOND, Nanos},
};

/// Linux starts no timer shorter than two ticks of its clock.
const LEAST_TIMER: Nanos = 2 * MILLISECOND;
/// Even a busy host sends within this time after an acknowledgment if it has data.
const LONG_PAUSE: Nanos = 200 * MILLISECOND;

/// Whether a segment leaves with the previous one, so that both have the same wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    No,
    /// Only if both belong to one write: the last wait was the application's or the send buffer's.
    IfWritten,
    Yes,
}

/// The interval before a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    pub(crate) wait: Wait,
    /// When the message of the peer that the segment answers reached the sender.
    pub(crate) asked: Option<Nanos>,
    /// Minimum round-trip times: `back` from the capture point to the sender, `least` of the whole
    /// path.
    pub(crate) back: Nanos,
    /// Queueing delay of the sender's last data.
    pub(crate) drain: Nanos,
    pub(crate) least: Option<Nanos>,
    /// The round-trip time as the sender measures it.
    pub(crate) whole: Option<Nanos>,
    /// The end of the time in which the receive window was full, if an acknowledgment of all data
    /// opened it.
    pub(crate) opened: Option<Nanos>,
    pub(crate) since: Option<Nanos>,
    pub(crate) until: Nanos,
    /// The frames before and after it.
    pub(crate) packets: [Option<u64>; 2],
    pub(crate) follows: Follows,
    /// The round-trip time, if the sender's part of it is known.
    pub(crate) round_trip: Option<Nanos>,
}

/// The sender's state and pattern.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pub(crate) view: View,
    phase: Phase,
    pub(crate) size: SegmentSize,
    pub(crate) releases: Releases,
}

impl Sender {
    pub(crate) fn mss(&self) -> i64 {
        self.size.mss()
    }

    /// Whether the receiver's window has no room for a segment after `next`.
    pub(crate) fn is_window_full(&self, next: i64) -> bool {
        self.view
            .room_from(next)
            .is_some_and(|room| room < self.mss())
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.phase != Phase::Open
    }

    pub(crate) fn is_in_fast_recovery(&self) -> bool {
        matches!(self.phase, Phase::Recovery(_))
    }

    /// The time of the last segment that ended a wait.
    pub(crate) fn last_sent(&self) -> Option<Nanos> {
        self.releases.last.map(|last| last.time)
    }

    /// Whether data up to `end` exceeds the receiver's window by more than a segment.
    pub(crate) fn exceeds_window(&self, end: i64) -> bool {
        self.view
            .room_from(end)
            .is_some_and(|room| room < -self.mss())
    }

    /// Whether the last segment was smaller than a full one.
    pub(crate) fn ends_small(&self) -> bool {
        self.releases.last.is_some_and(|last| last.is_small)
    }

    /// Whether the last segment may have waited for the application: all data had been acknowledged
    /// when it was sent.
    pub(crate) fn may_be_late(&self) -> bool {
        self.view.was_drained && !self.has_more()
    }

    /// Whether an acknowledgment released the last segments, or the sender had more data to send.
    pub(crate) fn is_released(&self) -> bool {
        self.releases.train.is_released || self.has_more()
    }

    /// Delivers the next acknowledgment that is due.
    pub(crate) fn arrive(&mut self, due: &Due) -> Option<Arrival> {
        let arrival = self.view.next(due)?;
        self.phase = self.phase.at(arrival.una);
        Some(arrival)
    }

    /// Whether the sender has enough duplicate acknowledgments to begin a recovery.
    pub(crate) fn may_recover(&self) -> bool {
        self.phase == Phase::Open && self.view.duplicates >= DUP_THRESH
    }

    /// The shortest timer that may have sent the segment, if it follows a pause of that length. A
    /// timer starts when data is sent and when it is acknowledged (RFC 6298 §5, RFC 8985 §7.2).
    /// Data after a full window was not sent before the window opened.
    pub(crate) fn timer(&self, time: Nanos, conditions: &Conditions) -> Option<Nanos> {
        let armed = self
            .releases
            .last
            .map(|last| last.time)
            .max(self.view.room)?;
        let round_trip = conditions.round_trip()?;
        let timer = LEAST_TIMER.max(round_trip + round_trip / 2);
        (time - armed > timer).then_some(timer)
    }

    /// Whether a segment is one octet that does not fit the receiver's window.
    pub(crate) fn is_probing(&self, sent: &Transmission<'_>) -> bool {
        let room = self.view.room_from(sent.start);
        sent.end - sent.start == 1 && room.is_some_and(|room| room <= 0)
    }

    /// The trigger of a retransmission.
    pub(crate) fn trigger(
        &self,
        sent: &Transmission<'_>,
        history: History,
        conditions: &Conditions,
    ) -> Trigger {
        let delays = conditions.delays;
        let scene = Scene {
            sent,
            history,
            view: &self.view,
            phase: self.phase,
            mss: self.mss(),
            last_sent: self.last_sent(),
            rtt: conditions.rtt,
            // The delay from the capture point to the sender may exceed its earlier values.
            tolerance: delays.tolerance().max(2 * delays.back()).max(MILLISECOND),
        };
        scene.trigger()
    }

    /// Whether the sender has long had more data than it may send. If each segment ends a write,
    /// this is assumed only if the window was full after one.
    fn has_more(&self) -> bool {
        let releases = &self.releases;
        let is_full = || self.size.is_permitted() && releases.was_full_lately(LONG_PAUSE);
        releases.pattern.is_whole() && (!releases.pattern.is_pushed() || is_full())
    }

    /// Whether the sender always has data to send and has not been silent for long.
    fn is_bulk(&self, time: Nanos, round_trip: Option<Nanos>) -> bool {
        let longest = round_trip.unwrap_or(0).max(LONG_PAUSE);
        let is_short = |arrival: Arrival| time - arrival.time <= longest;
        self.has_more() && self.view.last.is_some_and(is_short)
    }

    /// Whether the amount in flight is constant, and whether it fills the receiver's window.
    fn level(&self, mss: i64) -> (bool, bool) {
        let pattern = &self.releases.pattern;
        let is_level = pattern.is_level(mss);
        let fills = |window: i64| pattern.level() + mss + window / 8 >= window;
        (is_level, is_level && self.view.window.is_some_and(fills))
    }

    /// Whether a constant amount in flight is a pace: it is spread over each round trip, and a send
    /// buffer holds the sender's bursts together. Only beside the sender is the spacing its own.
    fn is_even(&self, conditions: &Conditions) -> bool {
        !conditions.is_queued
            && conditions.delays.is_near(conditions.round_trip())
            && self.releases.pattern.is_even()
    }

    /// The interval before a segment, when all data below `next` had been sent.
    pub(crate) fn interval(
        &mut self,
        sent: &Transmission<'_>,
        next: i64,
        trigger: Option<Trigger>,
        conditions: &Conditions,
    ) -> Interval {
        let (time, mss, delays) = (sent.segment.time, self.mss(), conditions.delays);
        let last = self.releases.last;
        let round_trip = conditions.round_trip();
        let since = last.map_or(0, |last| time - last.time);
        let leaving = Leaving {
            segment: sent.segment,
            length: sent.end - sent.start,
            is_small: self.size.is_small(sent.segment),
            is_retransmission: trigger.is_some(),
            is_recovering: self.is_recovering(),
            next,
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
        // A queue of the peer's data delays the end of its message.
        let asked_at = self.view.asked.map(|asked| asked + conditions.queue);
        let asked = asked_at.is_some_and(|asked| time - asked <= delays.tolerance());
        let all_acknowledged = self.view.una >= next;
        let is_small = self.ends_small();
        // If several requests are outstanding, one is answered before the answer to another is
        // acknowledged.
        let is_delayed = self.view.last.is_some_and(|last| last.is_delayed);
        let is_answer = asked && is_small && !is_delayed;
        let is_idle = last.is_none() || is_answer || (all_acknowledged && (!released || asked));
        let is_probe = !released && self.releases.is_probe(&leaving, &self.view);
        let ends_with_timer = is_probe
            || matches!(
                trigger,
                Some(Trigger::Rto | Trigger::Tlp | Trigger::WindowProbe)
            );
        // The answer may come sooner than the minimum time to the sender permits.
        let asked = asked_at
            .filter(|asked| is_idle && last.is_none_or(|last| *asked > last.time))
            .map(|asked| asked.min(time));
        let (is_level, fills_window) = self.level(mss);
        // Far from the sender, paced segments look like segments released by acknowledgments.
        // Refills indicate a buffer.
        let is_pace_or_buffer = is_level
            && !fills_window
            && !conditions.is_queued
            && !delays.is_near(round_trip)
            && !pattern.may_refill();
        let is_held = is_short && !is_small && !all_acknowledged;
        let is_even = is_held && is_level && !fills_window && self.is_even(conditions);
        let wait = Wait {
            mss,
            is_bulk: asked.is_none() && self.is_bulk(time, round_trip),
            window: self.view.window,
            room: last.and_then(|last| last.room),
            next_length: leaving.length,
            was_full: round_trip
                .is_some_and(|round_trip| self.releases.was_full(time, is_burst, round_trip)),
            is_idle,
            is_blocked: released && !is_idle && !is_even,
            is_small,
            is_next_small: leaving.is_small,
            ends_with_timer,
            is_recovering: leaving.is_recovering || trigger.is_some(),
            is_ack_delayed: is_delayed && next - self.view.before <= 2 * mss,
            is_paced: is_even || (is_held && !pattern.is_pushed()),
            is_level,
            is_pace_or_buffer,
            ends_writes: pattern.ends_writes(),
            is_refill: refill == Refill::Yes,
            may_refill: matches!(refill, Refill::Perhaps | Refill::Unclear),
            is_unclear: refill == Refill::Unclear,
            fills_window,
            is_unfilled: pattern.is_below_any_window(mss),
            is_queued: conditions.is_queued,
            ..Wait::default()
        };
        let wait = self.recorded(wait, sent.segment, since);
        let follows = match (is_burst, released) {
            (true, false) => Follows::Yes,
            (true, true) if self.view.una <= self.releases.train.start => Follows::IfWritten,
            (false, _) | (true, true) => Follows::No,
        };
        Interval {
            wait,
            asked,
            back: delays.back(),
            drain: conditions.drain,
            least: delays.round_trip(),
            whole: round_trip,
            opened: self.opened_full(is_idle).map(|opened| opened.min(time)),
            since: last.map(|last| last.time),
            until: time,
            packets: [last.map(|last| last.number), Some(sent.segment.number)],
            follows,
            round_trip: round_trip.filter(|_| delays.to_sender.is_some()),
        }
    }

    /// The interval, corrected by a QUIC sender's record after the last segment.
    fn recorded(&self, wait: Wait, segment: &Segment, since: Nanos) -> Wait {
        match self.releases.last.and_then(|last| last.record) {
            Some(record) => {
                let is_full = i64::from(record.free) < 2 * wait.mss;
                wait.with_record(is_full, record.may_take(since))
            }
            // The other end's window and queue are not in the log.
            None if segment.quic.is_some_and(|quic| !quic.is_local) => Wait {
                is_pace_or_buffer: true,
                ..wait
            },
            None => wait,
        }
    }

    /// When an acknowledgment of all data opened a window that was full.
    fn opened_full(&self, is_idle: bool) -> Option<Nanos> {
        let last = self.releases.last?;
        let is_full = last.room.is_some_and(|room| room < self.mss());
        let opened = self.view.room?;
        (is_idle && is_full && opened > last.time).then_some(opened)
    }

    /// Updates the pattern with a segment. Returns whether another amount in flight begins.
    pub(crate) fn see_pattern(
        &mut self,
        sent: &Transmission<'_>,
        next: i64,
        is_retransmission: bool,
    ) -> bool {
        let (mss, una) = (self.mss(), self.view.una.max(0));
        let is_small = self.size.is_small(sent.segment);
        let is_offloaded = self.size.is_offloaded(sent.segment);
        let pattern = &mut self.releases.pattern;
        if !is_offloaded {
            pattern.pushed.see(sent.segment.has(PSH));
        }
        pattern.see_size(!is_small);
        if is_small {
            pattern.see_write(sent.end);
        }
        if self.phase != Phase::Open {
            return false;
        }
        if is_retransmission {
            pattern.lose();
            false
        } else if self.view.was_drained {
            // A send buffer that limits is never empty.
            pattern.disturb();
            false
        } else {
            pattern.see_flight(next.max(sent.end), una, mss)
        }
    }

    /// Whether a retransmission begins a recovery.
    pub(crate) fn begins_recovery(&self, trigger: Option<Trigger>) -> bool {
        trigger.is_some_and(|trigger| trigger != Trigger::Tlp) && self.phase == Phase::Open
    }

    /// Updates the phase after a segment. Returns whether a fast recovery begins.
    pub(crate) fn change_phase(&mut self, trigger: Option<Trigger>, next: i64) -> bool {
        match trigger {
            Some(Trigger::Rto) => {
                self.phase = Phase::Loss(next);
                false
            }
            Some(Trigger::FastRetransmit | Trigger::Rack | Trigger::Sack)
                if self.phase == Phase::Open =>
            {
                self.phase = Phase::Recovery(next);
                true
            }
            _ => false,
        }
    }

    /// Records the segment as sent; all data below `next` has been sent.
    pub(crate) fn leave(&mut self, segment: &Segment, next: i64) {
        let mss = self.mss();
        self.releases.leave(
            Last {
                time: segment.time,
                number: segment.number,
                is_small: self.size.is_small(segment),
                room: self.view.room_from(next),
                is_recovering: self.is_recovering(),
                flight: next - self.view.una.max(0),
                record: segment.quic.and_then(|quic| quic.record),
            },
            mss,
        );
    }
}
