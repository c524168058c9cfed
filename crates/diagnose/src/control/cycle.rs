//! Probing cycles of BBR: short falls of the window without a loss, and regular peaks.

use super::rounds::Round;

/// Rounds before and after a fall that show the usual window.
const AROUND: usize = 8;
/// Rounds that a fall may take.
const SHORT: usize = 2;
/// The window falls below this share of the one before it, and of the one after it.
const FALLS: f64 = 0.62;
const RETURNS: f64 = 0.7;
/// The smallest usual window that can fall.
const LEAST: f64 = 12.0;
/// Falls closer together than this are one, in seconds.
const APART: f64 = 1.0;
/// A peak exceeds the median of the rounds around it by this share.
const PEAK: f64 = 1.1;
/// A loss leaves at least this share of the window if the control ignores it.
const KEEPS: f64 = 0.88;

/// A fall of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fall {
    pub(super) time: f64,
    /// The window, in segments and as a share of the one before.
    pub(super) window: f64,
    pub(super) share: f64,
    /// Its duration in seconds.
    pub(super) lasted: f64,
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (
        sorted.get(sorted.len().checked_sub(1)? / 2)?,
        sorted.get(sorted.len() / 2)?,
    );
    Some(f64::midpoint(*low, *high))
}

fn windows(rounds: &[Round]) -> impl Iterator<Item = f64> {
    rounds.iter().map(|round| round.window)
}

pub(super) fn is_disturbed(rounds: &[Round]) -> bool {
    rounds
        .iter()
        .any(|round| round.is_cut() || round.flags.recovering || round.flags.timed_out)
}

/// Falls of the window without a loss, from which it returns within a few rounds.
pub(super) fn falls(rounds: &[Round]) -> Vec<Fall> {
    let mut found: Vec<Fall> = Vec::new();
    let last = rounds.len().saturating_sub(AROUND - SHORT);
    for index in AROUND - SHORT..last {
        let round = &rounds[index];
        let before = median(windows(&rounds[index.saturating_sub(AROUND)..index - 1]));
        let end = rounds.len().min(index + SHORT + AROUND);
        let after = median(windows(&rounds[index + SHORT..end]));
        let (Some(before), Some(after)) = (before, after) else {
            continue;
        };
        let is_short = round.window < FALLS * before && round.window < RETURNS * after;
        let is_first = found
            .last()
            .is_none_or(|last| round.start - last.time >= APART);
        if before > LEAST
            && after > RETURNS * before
            && is_short
            && is_first
            && !is_disturbed(&rounds[index - 3..=index])
        {
            let low = rounds[index..].iter();
            let low = low.take_while(|round| round.window < FALLS * before);
            let end = low.last().map_or(round.end, |round| round.end);
            found.push(Fall {
                time: round.start,
                window: round.window,
                share: round.window / before,
                lasted: end - round.start,
            });
        }
    }
    found
}

/// The distances of peaks of the window, in rounds.
pub(super) fn peaks(rounds: &[Round]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for index in AROUND..rounds.len().saturating_sub(4) {
        let window = rounds[index].window;
        let usual = median(windows(&rounds[index - 4..=index + 4]));
        let most = windows(&rounds[index - 3..=index + 3]).fold(0.0, f64::max);
        let is_peak = usual.is_some_and(|usual| window >= PEAK * usual) && window >= most;
        let is_next = found.last().is_none_or(|last| index - last > 2);
        if is_peak && is_next && !is_disturbed(&rounds[index - 2..index + 2]) {
            found.push(index);
        }
    }
    found.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The number of losses that left the window as it was, and of all.
pub(super) fn kept(rounds: &[Round]) -> (u32, u32) {
    let (mut kept, mut all) = (0, 0);
    let mut index = AROUND + SHORT;
    while index < rounds.len() {
        if rounds[index].flags.lost {
            let before = median(windows(&rounds[index - 6..=index])).unwrap_or(0.0);
            while rounds
                .get(index)
                .is_some_and(|round| is_disturbed(&[*round]))
            {
                index += 1;
            }
            let after = rounds.iter().skip(index).take(3);
            if let Some(after) = after.map(|round| round.window).reduce(f64::max) {
                all += 1;
                kept += u32::from(after >= KEEPS * before);
            }
        }
        index += 1;
    }
    (kept, all)
}
