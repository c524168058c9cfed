//! Loss of listed packets: by number, by time or both.
//!
//! For experiments with single losses, such as a sender's reaction to the loss of the tenth packet
//! of a transfer, or of the first packet after 2 s. `packets` counts every packet sent in that
//! direction of the link, including SYN, pure acknowledgments, FIN and retransmissions. The number
//! of the first packet with data therefore depends on the stack: a client may acknowledge the
//! SYN-ACK with its first data (the profile `rfc`: SYN 0, data 1) or with a separate segment before
//! it (`linux`: SYN 0, ACK 1, data 2). `data_packets` counts only packets with data, which does not
//! depend on the stack.
//!
//! # Differs from Linux
//! - `tc netem` has no such list; `ip6tables -m statistic --mode nth` loses every n-th packet.
//!
//! # Not implemented
//! - Numbers within one flow if several flows share the link.

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
    summary: "Loses the packets that a list names, by number or by time: to study a single loss.",
    sources: &[Source {
        id: "Fall and Floyd, Simulation-based Comparisons of Tahoe, Reno and SACK TCP (ACM CCR 26-3, 1996)",
        items: &["one to four packets dropped"],
    }],
};

/// Parameters of a loss list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Packet numbers in this direction of the link, from 0, each number once. All packets count,
    /// including the handshake and pure acknowledgments: the first packet with data is 1 with the
    /// stack `rfc`, whose client acknowledges the SYN-ACK with it, and 2 with `linux`, whose client
    /// acknowledges it separately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<u64>,
    /// Numbers among the packets with data (TCP segments with payload, datagrams), from 0, each
    /// number once: `[2]` loses the third packet with data, whatever the stack. Retransmissions
    /// also count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_packets: Vec<u64>,
    /// Times from the start of the run. For each, the next packet at or after it is lost; a time
    /// given twice loses two packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Duration>,
    /// Text file with additional `packets` and `times`, one per line: a bare number for a packet, a
    /// time with its unit. Its path is relative to the scenario file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FileName")]
    pub file: Option<String>,
}

impl ImpairParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        let lists: [(&'static [&'static str], _); 2] = [
            (&["packets"], &self.packets),
            (&["data_packets"], &self.data_packets),
        ];
        for (key, list) in lists {
            let sorted = sorted(list);
            let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
            if let Some((twice, _)) = pairs.find(|(one, next)| one == next) {
                return Err(Contradiction {
                    key,
                    message: format!("packet {twice} is to be lost twice"),
                    expected: "each number once".to_owned(),
                });
            }
        }
        let lists = [self.packets.is_empty(), self.data_packets.is_empty()];
        if lists == [true; 2] && self.times.is_empty() && self.file.is_none() {
            return Err(Contradiction {
                key: &[],
                message: "`loss-list` names nothing to lose".to_owned(),
                expected:
                    "`packets`, for example packets = [10, 11], `data_packets`, `times` or `file`"
                        .to_owned(),
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

/// Numbers to lose, in ascending order.
#[derive(Debug)]
struct Numbers {
    list: Vec<u64>,
    /// Number of list entries passed.
    passed: usize,
}

impl Numbers {
    fn new(list: &[u64]) -> Self {
        Self {
            list: sorted(list),
            passed: 0,
        }
    }

    /// Whether the list has `number`; numbers come in ascending order.
    fn has(&mut self, number: u64) -> bool {
        while let Some(next) = self.list.get(self.passed)
            && *next < number
        {
            self.passed += 1;
        }
        self.list.get(self.passed) == Some(&number)
    }
}

/// State of a loss list.
#[derive(Debug)]
pub struct LossList {
    packets: Numbers,
    data_packets: Numbers,
    /// Packets with data seen.
    data_seen: u64,
    times: Vec<Duration>,
    times_met: usize,
}

impl LossList {
    /// Creates the impairment with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            packets: Numbers::new(&params.packets),
            data_packets: Numbers::new(&params.data_packets),
            data_seen: 0,
            times: sorted(&params.times),
            times_met: 0,
        }
    }

    /// Continues in mid-run from the state of `before`.
    pub(super) const fn follow(&mut self, before: &Self) {
        self.data_seen = before.data_seen;
    }
}

impl Impairment for LossList {
    fn judge(&mut self, now: Instant, packet: View, _draw: &mut Draw) -> Verdict {
        let mut is_named = self.packets.has(packet.index);
        if packet.has_data {
            is_named |= self.data_packets.has(self.data_seen);
            self.data_seen += 1;
        }
        // A packet that matches a number and a time uses only its number; the time remains for the
        // next packet.
        if is_named {
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
