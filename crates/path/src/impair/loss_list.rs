//! Loss of the packets that a list names: by number, by time or both.
//!
//! For experiments in which one loss is looked at: what a sender does when the tenth packet of a transfer is
//! missing, or the first after 2 s. What counts is every packet of that direction of the link that has been sent,
//! from 0, pure acknowledgments included.
//!
//! # Differs from Linux
//! - `tc netem` has no such list; `ip6tables -m statistic --mode nth` loses every n-th.
//!
//! # Not implemented
//! - Numbers within one flow where several share the link.

use std::collections::BTreeSet;

use anabranch_core::{
    registry::{Meta, Source},
    rng::Draw,
    side_file::{FileName, lines},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contradiction, ImpairParams, Impairment, Misread, Verdict, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "loss-list",
    title: "Loss list",
    summary: "Loses the packets that a list names, by number or by time: for a look at one loss.",
    sources: &[Source {
        id: "Fall and Floyd, Simulation-based Comparisons of Tahoe, Reno and SACK TCP (ACM CCR 26-3, 1996)",
        items: &["one to four packets dropped"],
    }],
};

/// Parameters of a loss list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Numbers of packets among those that come here, from 0, each number once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<u64>,
    /// Times from the start of the run: for each the next packet to come at or after it is lost; a time that stands there
    /// twice loses two packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Duration>,
    /// A text file with more of both, one to a line: a bare number for a packet, a time with its unit. Its path counts
    /// from where the scenario's file is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FileName")]
    pub file: Option<String>,
}

impl ImpairParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        let sorted = sorted(&self.packets);
        let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
        if let Some((twice, _)) = pairs.find(|(one, next)| one == next) {
            return Err(Contradiction {
                key: &["packets"],
                message: format!("packet {twice} is to be lost twice"),
                expected: "each number once".to_owned(),
            });
        }
        if self.packets.is_empty() && self.times.is_empty() && self.file.is_none() {
            return Err(Contradiction {
                key: &[],
                message: "`loss-list` names nothing to lose".to_owned(),
                expected: "`packets`, for example packets = [10, 11], `times` or `file`".to_owned(),
            });
        }
        Ok(())
    }
    fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
    fn take_file(&mut self, text: &str) -> Result<(), Misread> {
        self.file = None;
        let mut known: BTreeSet<u64> = self.packets.iter().copied().collect();
        for (at, word) in lines(text) {
            if let Ok(packet) = word.parse::<u64>() {
                if !known.insert(packet) {
                    let message = format!("packet {packet} is to be lost twice");
                    return Err(Misread::new(at, message, "each number once"));
                }
                self.packets.push(packet);
            } else if let Ok(time) = word.parse::<Duration>() {
                self.times.push(time);
            } else {
                let message = format!("{word:?} is neither a packet's number nor a time");
                return Err(Misread::new(at, message, "for example 10, or 2.5 s"));
            }
        }
        if self.packets.is_empty() && self.times.is_empty() {
            return Err(Misread::new(
                text.len()..text.len(),
                "the list has no packet and no time",
                "a packet's number or a time on each line, for example 10, or 2.5 s",
            ));
        }
        Ok(())
    }
}

fn sorted<T: Ord + Copy>(list: &[T]) -> Vec<T> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted
}

/// A loss list at work.
#[derive(Debug)]
pub struct LossList {
    /// In ascending order.
    packets: Vec<u64>,
    times: Vec<Duration>,
    /// How many of each have been met.
    packets_met: usize,
    times_met: usize,
}

impl LossList {
    /// With these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            packets: sorted(&params.packets),
            times: sorted(&params.times),
            packets_met: 0,
            times_met: 0,
        }
    }
}

impl Impairment for LossList {
    fn judge(&mut self, now: Instant, packet: View, _draw: &mut Draw) -> Verdict {
        // A packet that is named by both takes its number only: the time is left for the next one.
        if self.packets.get(self.packets_met) == Some(&packet.index) {
            self.packets_met += 1;
            return Verdict::Lose;
        }
        let time = self.times.get(self.times_met);
        if time.is_some_and(|time| *time <= now - Instant::START) {
            self.times_met += 1;
            return Verdict::Lose;
        }
        Verdict::Pass
    }
}
