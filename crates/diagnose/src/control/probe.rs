//! The cycle of BBR version 3 (draft-ietf-ccwg-bbr-06).
//!
//! The window is the path's capacity most of the time, whatever is lost (§5.3.3.2). Every two to three
//! seconds it rises by a quarter per round trip, until a queue or a loss ends the probe, and falls back
//! (§5.3.3.5 and §5.3.3.8). Every five seconds or later it is half of the capacity for 200 ms (§5.3.4).

use super::{
    cycle::{is_disturbed, median},
    rounds::Round,
    times,
};

/// Rounds that show the capacity, and the share and segments by which they differ at most.
const LEVEL: usize = 3;
const SPREAD: f64 = 0.04;
const SEGMENTS: f64 = 2.0;
/// The window is above the capacity from this share on, and a probe reaches that one.
const ABOVE: f64 = 1.06;
const REACHES: f64 = 1.18;
/// Growth per round trip during a probe: a quarter, of which a round of the capture may show a part.
const GROWTH: std::ops::RangeInclusive<f64> = 1.12..=1.33;
/// Maximum number of rounds of a rise, and of all rounds above the capacity.
const RISE: usize = 8;
const WHOLE: usize = 40;
/// Share of the capacity while the least round trip is measured, and for how long, in seconds and rounds.
const HALF: std::ops::RangeInclusive<f64> = 0.42..=0.58;
const LASTS_S: f64 = 0.2;
const LOW: usize = 5;
/// The window returns to this share of the capacity.
const RETURNS: f64 = 0.9;
/// The time between two measurements of the least round trip, less a margin.
const APART_S: f64 = 4.5;
/// The time from the end of a probe to the next one. It is shorter if 63 round trips, or as many as the
/// window has segments, are shorter.
const WAIT_S: (f64, f64) = (2.0, 3.0);
const WAIT_ROUNDS: f64 = 63.0;
/// Round trips by which the capture shows the end of a probe, and the beginning of the next, too early or
/// too late.
const EARLY: f64 = 2.0;
const LATE: f64 = 5.0;
/// Rounds after which the capacity may not have changed, and by how many segments and which share it may.
const STEADY: usize = 6;
const DRIFT: (f64, f64) = (1.5, 0.006);
/// Share of the rounds between probes in which the capacity has not changed, at least.
const MOST_STEADY: f64 = 0.6;
/// Minimum number of events at the times of the cycle, and of others per event.
const LEAST: usize = 3;
const OTHERS: usize = 4;

/// The probes of a connection.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// When each rise began that the cycle explains, and the number of others.
    rises: Vec<f64>,
    /// When each measurement of the least round trip began.
    falls: Vec<f64>,
    others: usize,
    /// Rounds between probes, and those in which the capacity had not changed.
    between: usize,
    steady: usize,
}

impl Probes {
    pub(super) fn of(rounds: &[Round]) -> Self {
        let mut probes = Self::default();
        let mut capacity = None;
        // The end of the last probe or measurement.
        let mut last: Option<f64> = None;
        let mut since = 0;
        let mut index = LEVEL;
        while index < rounds.len() {
            let is_settled = index >= since + LEVEL;
            if is_settled {
                capacity = level(&rounds[index - LEVEL..index]).or(capacity);
            }
            let Some(level) = capacity else {
                index += 1;
                continue;
            };
            let round = &rounds[index];
            if let Some(after) = low(rounds, index, level) {
                let is_next = probes
                    .falls
                    .last()
                    .is_none_or(|fall| round.start - fall >= APART_S);
                if is_next {
                    probes.falls.push(round.start);
                } else {
                    probes.others += 1;
                }
                last = Some(rounds[after].start);
                (index, since) = (after, after);
                continue;
            }
            if is_settled && round.window > ABOVE * level && round.window > level + SEGMENTS {
                let rise = Rise::of(rounds, index, level);
                if let Some(last) = last
                    && rise.is_probe
                {
                    let took = median(
                        rounds[since..=index]
                            .iter()
                            .map(|round| round.end - round.start),
                    );
                    if is_timely(round.start - last, level, took.unwrap_or(0.0)) {
                        probes.rises.push(round.start);
                    } else {
                        probes.others += 1;
                    }
                } else if !rise.is_probe {
                    probes.others += 1;
                }
                last = Some(rise.end);
                (index, since) = (rise.after, rise.after);
                continue;
            }
            if index >= since + STEADY && !is_disturbed(&rounds[index - STEADY..=index]) {
                let change = (round.window - rounds[index - STEADY].window).abs();
                probes.between += 1;
                probes.steady += usize::from(change <= DRIFT.0.max(DRIFT.1 * round.window));
            }
            index += 1;
        }
        probes
    }

    /// Whether the window follows the cycle.
    pub(super) fn is_regular(&self) -> bool {
        let events = self.rises.len() + self.falls.len();
        events >= LEAST
            && OTHERS * self.others <= events
            && self.steady as f64 >= MOST_STEADY * self.between as f64
    }

    pub(super) fn evidence(&self) -> Vec<String> {
        let mut evidence = Vec::new();
        if !self.rises.is_empty() {
            evidence.push(format!(
                "The window was constant and rose by a quarter per round trip at {}, 2 to 3 s after the probe before, as while BBR version 3 probes for bandwidth.",
                times(self.rises.iter().copied())
            ));
        }
        if !self.falls.is_empty() {
            evidence.push(format!(
                "The window fell to half without a loss at {} and returned, as while BBR version 3 measures the least round trip.",
                times(self.falls.iter().copied())
            ));
        }
        evidence
    }
}

/// The capacity, if these rounds agree.
fn level(rounds: &[Round]) -> Option<f64> {
    let windows = || rounds.iter().map(|round| round.window);
    let (least, most) = (
        windows().fold(f64::INFINITY, f64::min),
        windows().fold(0.0, f64::max),
    );
    (most - least <= SEGMENTS.max(SPREAD * most)).then(|| median(windows()))?
}

/// The round after a measurement of the least round trip, if one begins in this round.
fn low(rounds: &[Round], index: usize, level: f64) -> Option<usize> {
    let is_low =
        |round: &&Round| HALF.contains(&(round.window / level)) && !is_disturbed(&[**round]);
    let count = rounds[index..].iter().take_while(is_low).count();
    let after = index + count;
    // The time ends in the round in which the window returns.
    let lasted = rounds.get(after)?.end - rounds[index].start;
    let returns = rounds[after..]
        .iter()
        .take(2)
        .any(|round| round.window >= RETURNS * level);
    ((1..=LOW).contains(&count) && lasted >= LASTS_S && returns).then_some(after)
}

/// The rounds above the capacity.
struct Rise {
    is_probe: bool,
    /// The end of the largest window, and the round after the rise.
    end: f64,
    after: usize,
}

impl Rise {
    fn of(rounds: &[Round], start: usize, level: f64) -> Self {
        let end = rounds.len().min(start + WHOLE);
        let is_above = |round: &&Round| round.window > ABOVE * level;
        let count = rounds[start..end].iter().take_while(is_above).count();
        let mut peak = start;
        for index in start..start + count {
            if rounds[index].window > ABOVE * rounds[peak].window {
                peak = index;
            }
        }
        let rising = &rounds[start - 1..=peak];
        // A round with a loss takes longer than the sender's.
        let pairs = || rising.windows(2).filter(|pair| !is_disturbed(&pair[1..]));
        let ratios = || pairs().map(|pair| pair[1].window / pair[0].window);
        let is_largest = |round: &&Round| ABOVE * round.window > rounds[peak].window;
        let last = rounds[start..start + count].iter().rfind(is_largest);
        let is_probe = peak - start <= RISE
            && count < WHOLE
            && rounds[peak].window >= REACHES * level
            && ratios().all(|ratio| ratio <= *GROWTH.end())
            && ratios().any(|ratio| GROWTH.contains(&ratio));
        Self {
            is_probe,
            end: last.unwrap_or(&rounds[peak]).end,
            after: start + count.max(1),
        }
    }
}

/// Whether a probe begins at the time of the cycle, after the last one.
fn is_timely(gap: f64, level: f64, round_trip: f64) -> bool {
    let least = WAIT_S.0.min((WAIT_ROUNDS.min(level) - 1.0) * round_trip);
    (least - EARLY * round_trip..=WAIT_S.1 + LATE * round_trip).contains(&gap)
}
