//! The cause of each segment's transmission: an acknowledgment, or an event that is not in the
//! capture.

use super::{
    path_delays::Delays,
    sender_view::{DUP_THRESH, View},
    sending_pattern::Pattern,
};
use crate::{
    segment::{Record, Segment},
    time::{MICROSECOND, MILLISECOND, Nanos},
};

/// Segments of one burst follow each other at the rate of the sender's link.
const BURST: Nanos = 200 * MICROSECOND;
/// Time in which a writer that is woken fills a buffer.
const WAKE: Nanos = 2 * MILLISECOND;

/// Maximum number of acknowledged segments to which a sender limited by its congestion window does
/// not respond.
const UNANSWERED: i64 = 3;

/// Segments that left together. The first shows the reason of the wait.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Train {
    /// An acknowledgment released the first.
    pub(crate) is_released: bool,
    /// One past the highest octet sent before it.
    pub(crate) start: i64,
    /// The window was full before it.
    is_full: bool,
    time: Nanos,
}

/// The last segment sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) time: Nanos,
    pub(crate) number: u64,
    /// It was smaller than a full segment.
    pub(crate) is_small: bool,
    /// Room in the window after it.
    pub(crate) room: Option<i64>,
    /// It was sent in a recovery, in which the window may shrink.
    pub(crate) is_recovering: bool,
    /// The amount in flight, including it.
    pub(crate) flight: i64,
    /// The sender's own record of its limits after it.
    pub(crate) record: Option<Record>,
}

/// A segment with data that is sent now, and the state of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) length: i64,
    pub(crate) is_small: bool,
    pub(crate) is_retransmission: bool,
    pub(crate) is_recovering: bool,
    /// One past the highest octet sent before.
    pub(crate) next: i64,
    pub(crate) mss: i64,
    pub(crate) round_trip: Option<Nanos>,
    pub(crate) delays: Delays,
}

/// Whether a segment waited for room in the send buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refill {
    No,
    /// It looks like a refill, but the sender has not refilled often enough.
    Perhaps,
    /// Some of the sender's waits look like refills, others do not.
    Unclear,
    Yes,
}

/// The releases of a sender's segments.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    pub(crate) pattern: Pattern,
    pub(crate) last: Option<Last>,
    pub(crate) train: Train,
    /// The last time at which the window was full after a segment.
    full_window: Option<Nanos>,
    /// The amount in flight at the last refill of the send buffer.
    refilled_at: Option<i64>,
    /// The largest amount in flight since then: a buffer may be drained in several steps.
    filled: i64,
}

impl Releases {
    /// Records the pattern of a segment. Returns whether it left together with the previous one.
    pub(crate) fn observe(&mut self, leaving: &Leaving<'_>, view: &View) -> bool {
        let time = leaving.segment.time;
        let since = self.last.map_or(0, |last| time - last.time);
        if self.last.is_some() && !leaving.is_small {
            self.pattern.see_apart(since);
        }
        // The numbers of QUIC packets are no clock.
        let clock = leaving
            .segment
            .stamps
            .filter(|_| leaving.segment.quic.is_none());
        let stamp = clock.map(|stamps| stamps.0);
        let is_same_tick = stamp.is_some_and(|stamp| self.pattern.is_same_tick(stamp));
        let is_burst =
            self.last.is_some() && (is_same_tick || since <= BURST.max(self.pattern.line()));
        if !is_burst && !leaving.is_retransmission && !leaving.is_recovering {
            let ends = |last: Last| last.is_small || leaving.is_small;
            self.pattern.ends.see(self.last.is_some_and(ends));
            let lag = view.room.map_or(Nanos::MAX, |room| time - room);
            // A much later segment waited for something else.
            if leaving
                .round_trip
                .is_some_and(|round_trip| lag < round_trip / 4)
            {
                self.pattern.see_release(lag, leaving.delays);
            }
        }
        if !is_burst && self.last.is_some() {
            self.pattern.spacing.see(since);
        }
        if let Some(stamp) = stamp.filter(|_| !is_burst) {
            self.pattern.see_stamp(stamp, time);
        }
        if stamp.is_some() && view.last.is_some_and(|last| time - last.time > BURST) {
            self.pattern.stale.see(view.is_late);
        }
        is_burst
    }

    /// Whether an acknowledgment released a segment. For segments that left together, the first
    /// decides.
    pub(crate) fn release(
        &mut self,
        leaving: &Leaving<'_>,
        view: &View,
        is_burst: bool,
        is_short: bool,
    ) -> bool {
        let time = leaving.segment.time;
        let delays = leaving.delays;
        let room = self.last.and_then(|last| last.room);
        let is_full = room.is_some_and(|room| room < leaving.mss);
        if is_full {
            // The window was full until now.
            self.full_window = Some(time);
        }
        if is_burst {
            return self.train.is_released;
        }
        let has_stamps = leaving.segment.echo().is_some();
        let is_near = leaving
            .round_trip
            .is_some_and(|round_trip| 10 * delays.back() < round_trip);
        let is_precise = is_near || (has_stamps && self.pattern.is_fresh());
        // Until the first response that echoes a timestamp, the response time is unknown.
        let is_unknown = delays.to_sender.is_none() && has_stamps;
        // An application rarely pauses between full segments: its writes end with smaller ones. The
        // delay to the sender is therefore given more tolerance.
        let is_whole = !leaving.is_small
            && self.last.is_some_and(|last| {
                !last.is_small && view.asked.is_none_or(|asked| asked < last.time)
            });
        let varies = leaving
            .round_trip
            .filter(|_| is_whole)
            .map_or(0, |round_trip| round_trip / 8);
        let latest = (delays.tolerance() + self.pattern.line()).max(varies);
        let is_prompt = |room: Nanos| is_unknown || time - room <= latest;
        // Occasionally a segment follows an acknowledgment by chance, or comes late.
        let is_released = if is_short {
            !is_precise || self.pattern.is_clocked()
        } else {
            view.room.is_some_and(is_prompt)
        };
        self.train = Train {
            is_released,
            start: leaving.next,
            is_full,
            time,
        };
        is_released
    }

    /// Whether a segment of new data is a tail loss probe: it is sent beyond the congestion window
    /// after twice the round-trip time without an acknowledgment (RFC 8985 §7.2). The sender's
    /// estimate may be smaller by a quarter.
    pub(crate) fn is_probe(&self, leaving: &Leaving<'_>, view: &View) -> bool {
        let (Some(last), Some(round_trip)) = (self.last, leaving.round_trip) else {
            return false;
        };
        let time = leaving.segment.time;
        // A sender that does not react to duplicate acknowledgments has no use for their SACK blocks.
        let heard = if view.duplicates >= DUP_THRESH {
            view.advanced
        } else {
            view.last.map(|arrival| arrival.time)
        };
        let latest = heard.map_or(last.time, |heard| heard.max(last.time));
        !leaving.is_retransmission
            && view.una < leaving.next
            && !last.is_small
            && last.room.is_none_or(|room| room >= leaving.length)
            && time - latest >= round_trip + round_trip / 2
    }

    /// Whether the window was full before this segment, or shortly before.
    pub(crate) fn was_full(&self, time: Nanos, is_burst: bool, round_trip: Nanos) -> bool {
        let follows = is_burst && self.train.is_full && time - self.train.time <= round_trip;
        let is_recent = |full: Nanos| time - full <= round_trip / 4;
        follows || self.full_window.is_some_and(is_recent)
    }

    /// Whether a segment refills a send buffer: most of the data in flight had been acknowledged,
    /// to which a congestion window would have responded, and an acknowledgment woke the writer at
    /// the same amount in flight as at earlier refills. An application that writes late does so at
    /// other times.
    pub(crate) fn refill(&mut self, leaving: &Leaving<'_>, view: &View) -> Refill {
        let (Some(last), Some(round_trip)) = (self.last, leaving.round_trip) else {
            return Refill::No;
        };
        // TSO lets a sender wait until a third of the window is free (Linux, tcp_tso_win_divisor);
        // delayed acknowledgments add a few segments. A larger fall shows a writer, which is woken
        // when a third of the buffer is free.
        let filled = self.filled.max(last.flight);
        let has_fallen = |flight: i64| {
            let (fallen, few) = (filled - flight, UNANSWERED * leaving.mss);
            fallen >= few && (2 * flight <= filled || fallen >= filled / 3 + few)
        };
        let is_other = leaving.is_retransmission
            || leaving.is_recovering
            || last.is_recovering
            || view.asked.is_some_and(|asked| asked >= last.time);
        // An application's writes fit into any congestion window, and the sender waits where they
        // end.
        let write = self.pattern.write.min(filled);
        let is_written =
            self.pattern.ends_writes() && self.pattern.fits_any_window(write, leaving.mss);
        // A full window held the segment, whatever the buffer had.
        let is_full = last
            .room
            .is_some_and(|room| room < leaving.mss.max(leaving.length));
        if leaving.is_retransmission || leaving.is_recovering || is_full || view.una >= leaving.next
        {
            self.filled = 0;
        }
        if is_other || is_written || is_full {
            return Refill::No;
        }
        // Nagle's algorithm may hold the end of a write until an acknowledgment, whatever the
        // writer waits for.
        if leaving.is_small || !has_fallen(leaving.next - view.before.max(0)) {
            // One large acknowledgment hides how much earlier the sender could have sent.
            return self.known(has_fallen(leaving.next - view.una.max(0)));
        }
        if view.una >= leaving.next {
            // A writer on a busy host is sometimes late, so that the buffer drains; that alone
            // shows nothing.
            return self.known(true);
        }
        let latest = (leaving.delays.tolerance() + WAKE).min(round_trip / 8);
        let is_prompt = view
            .room
            .is_some_and(|room| leaving.segment.time - room <= latest);
        let flight = leaving.next - view.una;
        let before = self.refilled_at.replace(flight);
        let is_level =
            before.is_none_or(|before| (flight - before).abs() <= 2 * leaving.mss + filled / 8);
        self.filled = 0;
        let is_refill = is_prompt && is_level;
        self.pattern.refills.see(is_refill);
        match (is_refill, self.pattern.refills()) {
            (_, true) => Refill::Yes,
            _ if self.pattern.may_refill() => Refill::Unclear,
            (true, false) => Refill::Perhaps,
            (false, false) => Refill::No,
        }
    }

    /// The kind of a wait that is inconclusive by itself, from the sender's other waits.
    fn known(&self, may_be: bool) -> Refill {
        if may_be && self.pattern.refills() {
            Refill::Yes
        } else if may_be && self.pattern.may_refill() {
            Refill::Unclear
        } else {
            Refill::No
        }
    }

    /// Whether the window was full after a segment at most `time` before the last one.
    pub(crate) fn was_full_lately(&self, time: Nanos) -> bool {
        let last = self.last.map(|last| last.time);
        last.zip(self.full_window)
            .is_some_and(|(last, full)| last - full <= time)
    }

    /// Records the segment as the last one sent.
    pub(crate) fn leave(&mut self, last: Last, mss: i64) {
        if last.room.is_some_and(|room| room < mss) {
            self.full_window = Some(last.time);
        }
        // In a recovery, lost data and data SACKed beyond it count as in flight by their numbers
        // only.
        self.filled = if last.is_recovering {
            0
        } else {
            self.filled.max(last.flight)
        };
        self.last = Some(last);
    }
}
