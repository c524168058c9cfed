//! Compares the observed windows with the prediction of a law.

use super::{
    law::{Law, Shares},
    rounds::Round,
};

/// Rounds over which growth is compared.
const STRETCH: u32 = 8;
/// Growth is also compared over this many rounds, in which a small difference becomes a large one.
const LONG: u32 = 32;
/// A larger deviation counts as this one, squared.
const MOST: f64 = 16.0;
/// Share of the acknowledged segments by which the window grows in slow start, at least.
const SLOW_START: f64 = 0.6;
/// Slow start has ended if the window grows by less than this share.
const ENDED: f64 = 0.3;
/// Reductions in one recovery, at most.
const MOST_REDUCTIONS: usize = 4;
/// The window falls in a round by this many segments at least, and by this share.
const LEAST_FALL: f64 = 6.0;
const FALL: f64 = 0.08;
/// Rounds that a comparison needs after a loss, for the loss to have ended slow start.
const SETTLED: u32 = 4;

/// The deviation of a law: squared, in standard deviations, and capped.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Deviation {
    pub(super) growth: f64,
    pub(super) stretches: f64,
    pub(super) reduction: f64,
    /// Reductions: by losses, and without a loss.
    pub(super) losses: f64,
    pub(super) falls: f64,
}

impl Deviation {
    /// The sum.
    pub(super) fn sum(&self) -> f64 {
        self.growth + self.reduction
    }

    /// The mean.
    pub(super) fn mean(&self) -> f64 {
        self.sum() / (self.stretches + self.losses).max(1.0)
    }

    /// The mean of growth, and of reductions.
    pub(super) fn means(&self) -> (f64, f64) {
        (
            self.growth / self.stretches.max(1.0),
            self.reduction / self.losses.max(1.0),
        )
    }
}

/// The state of a replay.
#[derive(Default)]
struct Replay {
    deviation: Deviation,
    /// Slow start at the beginning of the connection is not compared.
    is_starting: bool,
    /// A stretch of growth, and the rounds since the last loss.
    stretch: Option<Stretch>,
    long: Option<Stretch>,
    settled: u32,
    has_settled: bool,
    /// The window falls for a round trip after a mark.
    is_falling: bool,
    /// A loss whose effect has not appeared.
    pending: Option<Loss>,
}

/// A loss, and the ones that followed before the recovery ended.
#[derive(Clone, Copy)]
struct Loss {
    /// The window before it.
    window: f64,
    /// Shares of the window that may remain, by the number of reductions.
    shares: [[Shares; 2]; MOST_REDUCTIONS],
    /// Number of reductions, at most.
    reductions: usize,
}

#[derive(Clone, Copy)]
struct Stretch {
    from: f64,
    rounds: u32,
    /// Predicted, and observed in the last round.
    predicted: [f64; 2],
    last: f64,
    /// The largest squared deviation of a round's growth.
    step: f64,
}

impl Stretch {
    fn at(window: f64) -> Self {
        Self {
            from: window,
            rounds: 0,
            predicted: [window; 2],
            last: window,
            step: 0.0,
        }
    }

    /// Adds a round with the growth of the law.
    fn add(&mut self, grown: [f64; 2], window: f64) {
        // A share of an empty window is no number.
        let grown = grown.map(|grown| if grown.is_nan() { 0.0 } else { grown });
        let own = window - self.last;
        let law = own.clamp(grown[0].min(grown[1]), grown[0].max(grown[1]));
        let squares = [2.0, 0.5 * law, 0.01 * window].map(|part| part * part);
        let step = (own - law) * (own - law) / squares.iter().sum::<f64>();
        self.step = self.step.max(step);
        for (predicted, grown) in self.predicted.iter_mut().zip(grown) {
            *predicted = (*predicted + grown).max(1.0);
        }
        self.last = window;
        self.rounds += 1;
    }

    /// The squared deviation of the growth. A window is known to a segment, and a rate of growth to
    /// an eighth, because rounds do not end at the sender's own.
    fn deviation(&self) -> f64 {
        let [low, high] = self.predicted;
        let law = self.last.clamp(low.min(high), high.max(low));
        let apart = self.last - law;
        let grown = law - self.from;
        let squares = [1.2, 0.12 * grown, 0.004 * self.last].map(|part| part * part);
        self.step.max(apart * apart / squares.iter().sum::<f64>())
    }
}

/// Replays the rounds.
pub(super) fn replay(law: &mut dyn Law, rounds: &[Round]) -> Deviation {
    let mut replay = Replay {
        is_starting: true,
        ..Replay::default()
    };
    for (index, round) in rounds.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| rounds.get(before));
        replay.add(law, before, round, rounds.get(index + 1));
    }
    replay.deviation
}

impl Replay {
    fn add(
        &mut self,
        law: &mut dyn Law,
        before: Option<&Round>,
        round: &Round,
        next: Option<&Round>,
    ) {
        if let Some(loss) = self.pending
            && !round.flags.recovering
            && !round.is_cut()
            && !climbs(round, next)
        {
            self.pending = None;
            self.reduce(law, round, next, loss);
        }
        if round.is_cut() || round.flags.timed_out {
            // The sender's round trips are not those of the capture: its last one may end before the
            // loss, or with it.
            let left =
                |law: &dyn Law| [1, 2, 3, 4].map(|losses| law.remaining(round.window, losses));
            let before = left(law);
            law.see(round);
            let with = left(law);
            let is_clear = !round.flags.timed_out && !round.flags.marked;
            // The losses at the end of slow start take several round trips to appear.
            let loss = self.pending.unwrap_or(Loss {
                window: round.window,
                shares: std::array::from_fn(|losses| [before[losses], with[losses]]),
                reductions: usize::from(!self.has_settled),
            });
            // A timeout leaves one segment, and a mark leaves a share that depends on others.
            self.pending = is_clear.then_some(Loss {
                reductions: loss.reductions + 1,
                ..loss
            });
            law.lose(round, round.window);
            self.has_settled |= self.settled >= SETTLED;
            (self.stretch, self.long, self.settled) = (None, None, 0);
            self.is_starting = round.flags.timed_out;
            self.is_falling = round.flags.marked && !round.flags.lost;
            return;
        }
        let is_falling = std::mem::take(&mut self.is_falling);
        if round.flags.recovering || self.pending.is_some() || is_falling {
            if !round.flags.recovering {
                law.see(round);
            }
            return;
        }
        if self.is_starting {
            law.see(round);
            let grown = before.map_or(f64::INFINITY, |before| round.window - before.window);
            self.is_starting = round.acked <= 4.0 || grown > ENDED * round.acked;
            return;
        }
        self.settled += 1;
        let Some(stretch) = &mut self.stretch else {
            law.start(round, round.window);
            self.stretch = Some(Stretch::at(round.window));
            self.long = self.stretch;
            law.see(round);
            return;
        };
        if falls(stretch.last, round, next) {
            // The stretch ends without a comparison: part of its last round is the fall's. In the first
            // round it is the rest of a reduction by a loss.
            if stretch.rounds > 0 {
                let left = law.lowered(stretch.last).unwrap_or(f64::INFINITY);
                let apart = (left - round.window).max(0.0);
                self.deviation.reduction += (apart * apart / variance(stretch.last)).min(MOST);
                self.deviation.losses += 1.0;
                self.deviation.falls += 1.0;
            }
            self.stretch = None;
            law.see(round);
            return;
        }
        let from = if law.follows() {
            stretch.last
        } else {
            f64::midpoint(stretch.predicted[0], stretch.predicted[1])
        };
        let grown = law.range(round, from);
        for stretch in std::iter::once(stretch).chain(&mut self.long) {
            stretch.add(grown, round.window);
        }
        let ends =
            next.is_none_or(|next| next.is_cut() || next.flags.recovering || next.flags.timed_out);
        let again = Some(Stretch::at(round.window));
        if round.flags.limited {
            (self.stretch, self.long) = (again, again);
        }
        for (stretch, least, most) in [
            (&mut self.stretch, 1, STRETCH),
            (&mut self.long, STRETCH + 1, LONG),
        ] {
            let Some(done) = stretch.filter(|done| done.rounds >= if ends { least } else { most })
            else {
                continue;
            };
            self.deviation.growth += done.deviation().min(MOST);
            self.deviation.stretches += 1.0;
            *stretch = again;
        }
        law.see(round);
    }

    /// Compares the window after a loss. In the first round it has grown by a round's growth
    /// already. A reduction at the end of a recovery appears a round later.
    fn reduce(&mut self, law: &mut dyn Law, round: &Round, next: Option<&Round>, loss: Loss) {
        let growth = law.grow(round, round.window).max(0.0);
        let before = loss.window;
        let deviation = |window: f64| {
            let shares = loss.shares.iter().take(loss.reductions).flatten().flatten();
            let deviation = |share: &f64| {
                let law = share * before;
                let apart = (law - window).max(window - law - 2.0 * growth).max(0.0);
                apart * apart / variance(before)
            };
            shares.map(deviation).fold(MOST, f64::min)
        };
        let mut left = (deviation(round.window), round.window);
        if let Some(next) = next.filter(|next| !next.is_cut() && falls_to(round.window, next)) {
            let later = (deviation(next.window), next.window);
            if later.0 < left.0 {
                left = later;
                self.is_falling = true;
            }
        }
        self.deviation.reduction += left.0;
        self.deviation.losses += 1.0;
        law.left(left.1, before);
    }
}

/// The variance of the window that a reduction from `window` leaves.
fn variance(window: f64) -> f64 {
    1.5 * 1.5 + 0.03 * 0.03 * window * window
}

/// Whether the window falls in a round without a signal, and not only in this round.
fn falls(last: f64, round: &Round, next: Option<&Round>) -> bool {
    let most = f64::midpoint(last, round.window);
    falls_to(last, round) && next.is_some_and(|next| !next.flags.limited && next.window < most)
}

fn falls_to(last: f64, round: &Round) -> bool {
    last - round.window > LEAST_FALL.max(FALL * last) && !round.flags.limited
}

/// Whether the window climbs to its value after the loss, as in slow start.
fn climbs(round: &Round, next: Option<&Round>) -> bool {
    next.is_some_and(|next| {
        !next.is_cut() && next.acked > 4.0 && next.window - round.window > SLOW_START * next.acked
    })
}
