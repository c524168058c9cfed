//! One round of measurement, and its evaluation.

use super::{
    BEHIND, BUSY, CLEAR, DOUBT, KEEPS_UP, KEEPS_UP_AT_START, LOSSES_LEAST, MANY_OCTETS,
    RateControl, UNUSUAL, UNUSUAL_SHARE, USUAL_OCTETS,
};
use crate::time::Instant;

/// One round of measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) since: Instant,
    /// Arrival times of the first and the newest packet, by the receiver's clock in microseconds.
    pub(super) from: Option<u32>,
    pub(super) to: u32,
    pub(super) sent: usize,
    pub(super) arrived: usize,
    pub(super) lost: usize,
    pub(super) losses: u32,
    pub(super) least_queue_s: f64,
}

/// The evaluation of a round.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one answer, and none excludes another"
)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) delivery: f64,
    /// The least queue, and the target queue.
    pub(super) queue: f64,
    pub(super) target: f64,
    pub(super) is_busy: bool,
    /// Whether the path always had data to carry, so that delivery is its capacity.
    pub(super) is_fed: bool,
    pub(super) is_much: bool,
    pub(super) is_long: bool,
    pub(super) is_loss: bool,
    pub(super) keeps_up: bool,
    /// Octets that arrived, if they are far fewer than were sent; otherwise 0.
    pub(super) full: usize,
}

/// Consecutive rounds with a long queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Long {
    /// The queue in the first of them.
    pub(super) queue_s: f64,
    /// The part of it that must have drained since.
    pub(super) drained_s: f64,
}

/// Octets sent and arrived since the first of consecutive rounds with a long queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Behind {
    pub(super) rounds: u32,
    pub(super) sent: f64,
    pub(super) arrived: f64,
}

impl Round {
    pub(super) const fn new(since: Instant, from: Option<u32>) -> Self {
        Self {
            since,
            from,
            to: 0,
            sent: 0,
            arrived: 0,
            lost: 0,
            losses: 0,
            least_queue_s: f64::INFINITY,
        }
    }

    pub(super) fn loss(&self) -> f64 {
        let decided = self.arrived + self.lost;
        if decided == 0 {
            0.0
        } else {
            self.lost as f64 / decided as f64
        }
    }
}

impl RateControl {
    /// Measures how much the least delay differs from round to round.
    pub(super) fn follow_least(&mut self, round: &Round) {
        if !round.least_queue_s.is_finite() {
            return;
        }
        let least = round.least_queue_s + self.base();
        let flight = self.flight_then;
        if let Some((before, flight_before)) = self.least.replace((least, flight))
            && self.delivery > 0.0
        {
            let change = least - before;
            let own = (flight - flight_before) / self.delivery;
            let sway = (change - own).abs().min(change.abs());
            self.sway_s += (sway - self.sway_s) / 8.0;
        }
    }

    /// Whether the path delivers less than it is sent throughout several rounds with a long queue:
    /// jitter delays the packets of one round.
    pub(super) fn falls_behind(&mut self, is_queued: bool, sent: f64, round: &Round) -> bool {
        if !is_queued {
            self.behind = None;
            return false;
        }
        let Some(behind) = &mut self.behind else {
            self.behind = Some(Behind::default());
            return false;
        };
        behind.rounds += 1;
        behind.sent += sent;
        behind.arrived += round.arrived as f64;
        behind.rounds >= BEHIND && behind.arrived < KEEPS_UP_AT_START * behind.sent
    }

    /// Evaluates a round.
    pub(super) fn judge(&mut self, round: &Round, past_s: f64, sent: f64) -> Seen {
        let delivery = round.arrived as f64 / self.took(round, past_s);
        let sent_least = sent.min(std::mem::replace(&mut self.sent_before, sent));
        let (queue, target) = (round.least_queue_s, self.target_s());
        let is_busy = sent > BUSY * self.rate;
        let is_much = round.arrived > MANY_OCTETS;
        let keeps_up = delivery > (KEEPS_UP - self.jitter_s / past_s) * sent_least;
        let is_queued = queue.is_finite() && queue > target;
        // A queue after little was sent is jitter, or caused by others, unless the path falls behind.
        let is_behind = self.falls_behind(is_queued, sent_least * past_s, round);
        let is_long = is_queued && (is_busy || is_much || is_behind);
        let loss = round.loss();
        let is_loss =
            round.losses >= LOSSES_LEAST && loss > UNUSUAL * self.usual_loss + UNUSUAL_SHARE;
        // A round of few packets hardly measures a small share.
        let part = (round.arrived + round.lost) as f64 / USUAL_OCTETS;
        self.usual_loss += (loss - self.usual_loss) * if is_loss { 0.25 } else { part.min(0.125) };
        Seen {
            delivery,
            queue,
            target,
            is_busy,
            is_much,
            // Packets sent in a round arrive in the next.
            is_fed: is_long && (is_busy || !keeps_up) || sent_least > BUSY * self.rate,
            is_long,
            is_loss,
            keeps_up,
            full: if is_much && delivery < KEEPS_UP_AT_START * sent_least {
                round.arrived
            } else {
                0
            },
        }
    }

    /// The time in seconds in which a round's packets arrived.
    pub(super) fn took(&self, round: &Round, past_s: f64) -> f64 {
        let Some(from) = round.from.filter(|_| past_s > CLEAR * self.jitter_s) else {
            return past_s;
        };
        let took_s = f64::from(round.to.wrapping_sub(from)) * 1e-6;
        // Reports may have been lost, or the other end's clock may have stopped.
        if (0.5..2.0).contains(&(took_s / past_s)) {
            took_s
        } else {
            past_s
        }
    }

    /// Raises the base delay if a queue does not shrink while less is sent than arrives: either it
    /// is not caused by this end, or the path has become longer.
    pub(super) fn doubt_the_base(&mut self, seen: &Seen, drained_s: f64) {
        if !seen.is_long {
            self.long = None;
            return;
        }
        let base = self.base();
        let long = self.long.get_or_insert(Long {
            queue_s: seen.queue,
            drained_s: 0.0,
        });
        long.drained_s += drained_s.max(0.0);
        if long.drained_s > DOUBT * long.queue_s {
            self.base_s = [base + seen.queue.min(long.queue_s); 2];
            self.long = None;
        }
    }
}
