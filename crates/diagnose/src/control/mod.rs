//! The congestion control of a sender, by its behaviour.
//!
//! The largest amount in flight in a round trip is the congestion window, if nothing else limits
//! the sender. Each loss-based or delay-based control is a law for the growth of this window and
//! for its reduction. The laws are replayed over the observed round trips, and their deviations
//! compared: the law with the smallest one is named if it explains the windows and no other law
//! does. BBR is recognized by its cycle: it empties the pipe every five or ten seconds, and probes
//! for bandwidth.

mod cycle;
mod law;
mod probe;
mod replay;
mod rounds;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub(crate) use rounds::{Rounds, Sent};

use self::{
    cycle::{Fall, falls, kept, peaks},
    law::Tolerance,
    probe::Probes,
    replay::{Deviation, replay},
    rounds::Round,
};
use crate::time::Nanos;

/// Minimum number of stretches and losses for a verdict.
const LEAST: f64 = 5.0;
/// Numbers of stretches, and the mean deviations above which they exclude the nearest law.
const EXCLUDED: [(f64, f64); 2] = [(8.0, 3.0), (16.0, 2.0)];
/// Difference of the summed deviations, and ratio of the means, by which the best law precedes
/// another one.
const AHEAD: f64 = 12.0;
const TIMES: f64 = 2.0;
/// A mean deviation above this one excludes the other law, whatever the ratio.
const FAR: f64 = 2.0;
/// BBR's window while it measures the least round trip, at most, in segments.
const PROBE_WINDOW: f64 = 5.0;
/// BBR keeps that window for 200 ms, or a round trip if that is longer, less the rounds at its edges. A
/// pause of the application is rarely as long while data is in flight.
const PROBE_LEAST_S: f64 = 0.15;
/// BBR measures it every 10 s, or later if it is measured otherwise.
const PROBE_INTERVAL_S: f64 = 9.0;
/// Rounds of BBR's cycle of gains, as far as the sender's rounds agree with those of the capture.
const CYCLE: std::ops::RangeInclusive<usize> = 6..=8;
/// Share of the time in which other limits hide the window.
const MOST_HELD: f64 = 0.5;
const HIDDEN: &str =
    "Other limits than the congestion window held the sender for most of the time.";
/// Controls with a law that keeps the window nearly constant, as a send buffer or a pace does.
const STEADY: [&str; 2] = ["vegas", "dctcp"];
/// Minimum number of peaks, and share of them at the distance of the cycle.
const LEAST_PEAKS: usize = 6;
const MOST_PEAKS: f64 = 0.6;

/// The verdict about the congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// One control explains the windows.
    Named,
    /// No known control does.
    NoneOfThese,
    /// Several do, or the connection shows too little.
    Undecided,
}

/// The congestion control.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// Whether it is known.
    pub verdict: Verdict,
    /// Its name, if it is known: `cubic`, `reno`, `bbr`, `bbr3`, `vegas`, `westwood-plus`, `dctcp`,
    /// `htcp`, `illinois`, `yeah` or `bic`.
    pub name: Option<&'static str>,
    /// The controls that explain the windows, if several do.
    pub candidates: Vec<&'static str>,
    /// Sentences.
    pub evidence: Vec<String>,
}

impl Control {
    fn named(name: &'static str, evidence: Vec<String>) -> Self {
        Self {
            verdict: Verdict::Named,
            name: Some(name),
            candidates: Vec::new(),
            evidence,
        }
    }

    fn undecided(candidates: Vec<&'static str>, evidence: String) -> Self {
        Self {
            verdict: Verdict::Undecided,
            name: None,
            candidates,
            evidence: vec![evidence],
        }
    }
}

/// Shares of the time in which the congestion window did not limit the sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    /// The receiver or the applications did.
    pub(crate) ends: f64,
    /// The send buffer did, or the window was as constant as with one.
    pub(crate) buffer: f64,
    /// The sender paced its segments, or may have. BBR does so.
    pub(crate) pace: f64,
}

/// A law and its deviation.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    name: &'static str,
    tolerance: Tolerance,
    deviation: Deviation,
}

impl Candidate {
    fn fits(&self) -> bool {
        let (growth, reduction) = self.deviation.means();
        growth <= self.tolerance.growth
            && reduction <= self.tolerance.reduction
            && (self.deviation.losses > 0.0 || !self.tolerance.needs_loss)
    }

    /// Whether this law explains the windows clearly better than another.
    fn precedes(&self, other: &Self) -> bool {
        let (own, others) = (self.deviation, other.deviation);
        others.sum() - own.sum() >= AHEAD
            && (others.mean() >= TIMES * own.mean() || others.mean() >= FAR)
    }
}

impl Rounds {
    /// The control. Times are those from the capture point to both ends.
    pub(crate) fn control(&self, to_sender: Nanos, to_receiver: Nanos, held: Held) -> Control {
        let rounds = self.seen(to_sender, to_receiver);
        let probes = Probes::of(&rounds);
        if probes.is_regular() {
            return Control::named("bbr3", probes.evidence());
        }
        let is_held = |share: f64| share > MOST_HELD;
        if !is_held(held.ends + held.buffer)
            && let Some(found) = bbr(&rounds)
        {
            return found;
        }
        let found = self.by_law(&rounds);
        let is_hidden = is_held(held.ends + held.buffer + held.pace);
        let is_steady = found.name.is_some_and(|name| STEADY.contains(&name));
        if is_held(held.ends) || (is_hidden && !is_steady) {
            return Control::undecided(Vec::new(), HIDDEN.into());
        }
        found
    }

    /// The control whose law explains the windows.
    fn by_law(&self, rounds: &[Round]) -> Control {
        let laws = law::all().into_iter();
        let mut found: Vec<Candidate> = laws
            .map(|(name, tolerance, mut law)| Candidate {
                name,
                tolerance,
                deviation: replay(law.as_mut(), rounds),
            })
            .collect();
        found.sort_by(|one, other| one.deviation.mean().total_cmp(&other.deviation.mean()));
        let Some((best, others)) = found.split_first() else {
            return Control::undecided(Vec::new(), "There is no law.".into());
        };
        let count = best.deviation.stretches + best.deviation.losses;
        if count < LEAST {
            return Control::undecided(
                Vec::new(),
                "The window grew for too few round trips without other limits.".into(),
            );
        }
        if let Some(reno) = found.iter().find(|one| one.name == "reno")
            && self.is_always_capable()
            && reno.fits()
        {
            return Control::named(
                "dctcp",
                vec![
                    "SYNs and retransmissions are ECN-capable, as DCTCP sends them.".into(),
                    format!("Between reductions, Reno {}.", words(reno.deviation)),
                ],
            );
        }
        if !best.fits() {
            let Deviation { stretches, .. } = best.deviation;
            let mean = best.deviation.mean();
            if EXCLUDED
                .iter()
                .any(|(least, most)| stretches >= *least && mean > *most)
            {
                return Control {
                    verdict: Verdict::NoneOfThese,
                    name: None,
                    candidates: Vec::new(),
                    evidence: vec![format!(
                        "No known control explains the window; the nearest one is {}, which {}.",
                        title(best.name),
                        words(best.deviation)
                    )],
                };
            }
            return Control::undecided(
                Vec::new(),
                format!(
                    "{} is nearest and does not explain the window: it {}.",
                    title(best.name),
                    words(best.deviation)
                ),
            );
        }
        let near = others.iter().filter(|other| !best.precedes(other));
        let near: Vec<&str> = near.map(|other| other.name).collect();
        if !near.is_empty() {
            let candidates = std::iter::once(best.name).chain(near).collect();
            return Control::undecided(
                candidates,
                "These controls behave alike on this path.".into(),
            );
        }
        let mut evidence = vec![format!("{} {}.", title(best.name), words(best.deviation))];
        if let Some(next) = others.first() {
            evidence.push(format!(
                "The next one, {}, {}.",
                title(next.name),
                words(next.deviation)
            ));
        }
        Control::named(best.name, evidence)
    }

    /// Whether SYNs and retransmissions are ECN-capable.
    fn is_always_capable(&self) -> bool {
        self.capable_always > self.capable_never
    }
}

/// BBR, if the window shows its cycle.
fn bbr(rounds: &[Round]) -> Option<Control> {
    let (falls, peaks) = (falls(rounds), peaks(rounds));
    let (kept, losses) = kept(rounds);
    let ignores = 2 * kept >= losses;
    let deep: Vec<&Fall> = falls
        .iter()
        .filter(|fall| fall.window <= PROBE_WINDOW && fall.lasted >= PROBE_LEAST_S)
        .collect();
    let is_regular = 2 * deep.len() > falls.len()
        && deep
            .windows(2)
            .all(|pair| pair[1].time - pair[0].time >= PROBE_INTERVAL_S);
    let cyclic = peaks.iter().filter(|apart| CYCLE.contains(apart)).count();
    let is_cyclic = peaks.len() >= LEAST_PEAKS && cyclic as f64 >= MOST_PEAKS * peaks.len() as f64;
    let mut evidence = Vec::new();
    if is_regular && ignores {
        evidence.push(format!(
            "The window fell to {:.0} segments without a loss at {} and returned, as while BBR measures the least round trip.",
            deep[0].window,
            times(deep.iter().map(|fall| fall.time))
        ));
    }
    if is_cyclic && ignores {
        evidence.push(format!(
            "{cyclic} of {} peaks of the window follow each other after 6 to 8 round trips, as BBR's cycle of eight gains.",
            peaks.len()
        ));
    }
    if !evidence.is_empty() {
        if losses > 0 {
            evidence.push(format!(
                "{kept} of {losses} losses left the window as it was."
            ));
        }
        return Some(Control::named("bbr", evidence));
    }
    None
}

fn times(times: impl Iterator<Item = f64>) -> String {
    let all: Vec<String> = times.take(4).map(|time| format!("{time:.1} s")).collect();
    all.join(", ")
}

/// The deviation in words.
fn words(deviation: Deviation) -> String {
    let (growth, reduction) = deviation.means();
    let grown = format!(
        "deviates by {:.1} standard deviations in {:.0} stretches of growth",
        growth.sqrt(),
        deviation.stretches
    );
    if deviation.losses > 0.0 {
        format!(
            "{grown}, and by {:.1} at {:.0} losses",
            reduction.sqrt(),
            deviation.losses
        )
    } else {
        grown
    }
}

/// A control's name in sentences.
#[must_use]
pub fn title(name: &str) -> &str {
    match name {
        "cubic" => "CUBIC",
        "reno" => "Reno",
        "bbr" => "BBR",
        "bbr3" => "BBR version 3",
        "vegas" => "Vegas",
        "westwood-plus" => "Westwood+",
        "dctcp" => "DCTCP",
        "htcp" => "H-TCP",
        "illinois" => "Illinois",
        "yeah" => "YeAH",
        "bic" => "BIC",
        other => other,
    }
}
