//! The congestion window over time: the largest amount in flight in each round trip.

use crate::time::{Nanos, seconds};

/// Maximum number of round trips that are stored; the first ones of a connection.
const MOST: usize = 1_024;

/// A segment with data, and the state of its sender's scoreboard.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one observation")]
pub(crate) struct Sent {
    pub(crate) time: Nanos,
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// One past the highest octet sent before.
    pub(crate) next: i64,
    /// The cumulative acknowledgment and the octets SACKed above it, as the sender knows them.
    pub(crate) una: i64,
    pub(crate) sacked: i64,
    pub(crate) is_recovering: bool,
    pub(crate) by_timer: bool,
    /// The segment has CWR (RFC 3168 §6.1.2).
    pub(crate) is_reduced: bool,
    /// The receiver's window has no room for another segment.
    pub(crate) is_full: bool,
    /// The sender is a TCP, whose congestion controls have known laws.
    pub(crate) is_tcp: bool,
}

/// One round trip: from a segment to the first one after its acknowledgment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Round {
    pub(super) start: f64,
    pub(super) end: f64,
    /// The largest amount in flight, in segments.
    pub(super) window: f64,
    /// Segments that were acknowledged, and acknowledgments of new data.
    pub(super) acked: f64,
    pub(super) acks: f64,
    /// Round-trip times in seconds: least, mean and largest. `None` without a sample.
    pub(super) rtt: Option<[f64; 3]>,
    pub(super) flags: Flags,
}

/// Events of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one observation")]
pub(super) struct Flags {
    /// A recovery began.
    pub(super) lost: bool,
    /// The retransmission timer expired.
    pub(super) timed_out: bool,
    /// A recovery was in progress.
    pub(super) recovering: bool,
    /// The sender reported a reduction by ECN.
    pub(super) marked: bool,
    /// Something other than the window limited the sender.
    pub(super) limited: bool,
}

impl Round {
    /// Whether the window was reduced because of a congestion signal.
    pub(super) fn is_cut(&self) -> bool {
        self.flags.lost || self.flags.marked
    }
}

/// A finished round as it is stored.
#[derive(Debug, Clone, Copy)]
struct Stored {
    start: f32,
    took: f32,
    window: f32,
    acked: f32,
    acks: f32,
    rtt: [f32; 3],
    has_rtt: bool,
    /// The same between an acknowledgment and the data that it released.
    echo: [f32; 3],
    has_echo: bool,
    flags: Flags,
}

impl Stored {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "seven digits show a window to the segment, and a time to a tenth of a millisecond"
    )]
    fn of(round: &Round, echo: Option<[f64; 3]>) -> Self {
        Self {
            start: round.start as f32,
            took: (round.end - round.start) as f32,
            window: round.window as f32,
            acked: round.acked as f32,
            acks: round.acks as f32,
            rtt: round.rtt.unwrap_or_default().map(|time| time as f32),
            has_rtt: round.rtt.is_some(),
            echo: echo.unwrap_or_default().map(|time| time as f32),
            has_echo: echo.is_some(),
            flags: round.flags,
        }
    }

    fn round(&self) -> Round {
        let start = f64::from(self.start);
        Round {
            start,
            end: start + f64::from(self.took),
            window: f64::from(self.window),
            acked: f64::from(self.acked),
            acks: f64::from(self.acks),
            rtt: self.has_rtt.then(|| self.rtt.map(f64::from)),
            flags: self.flags,
        }
    }
}

/// Sums of the round-trip times in a round.
#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    least: Nanos,
    most: Nanos,
    sum: Nanos,
    count: u32,
}

impl Samples {
    fn add(&mut self, sample: Nanos) {
        self.least = if self.count == 0 {
            sample
        } else {
            self.least.min(sample)
        };
        self.most = self.most.max(sample);
        self.sum = self.sum.saturating_add(sample);
        self.count += 1;
    }

    /// Least, mean and largest in seconds.
    fn times(&self) -> Option<[f64; 3]> {
        let mean = self.sum / Nanos::from(self.count.max(1));
        (self.count > 0).then(|| [self.least, mean, self.most].map(seconds))
    }
}

/// Collects the rounds of one direction.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    stored: Vec<Stored>,
    current: Option<Current>,
    first: Option<Nanos>,
    was_recovering: bool,
    /// Segments with the ECN-capable codepoint ECT(0) that RFC 3168 forbids: SYNs and
    /// retransmissions.
    pub(super) capable_always: u32,
    /// SYNs and retransmissions without it.
    pub(super) capable_never: u32,
}

/// The round in progress.
#[derive(Debug, Clone, Copy)]
struct Current {
    start: Nanos,
    /// The round ends when this octet is acknowledged.
    until: i64,
    una: i64,
    window: f64,
    acks: u32,
    samples: Samples,
    echoes: Samples,
    flags: Flags,
}

impl Rounds {
    #[cfg(test)]
    pub(super) fn of(rounds: &[Round]) -> Self {
        Self {
            stored: rounds.iter().map(|round| Stored::of(round, None)).collect(),
            ..Self::default()
        }
    }

    /// Processes a segment with data.
    pub(crate) fn send(&mut self, step: &Sent, mss: i64) {
        if self.stored.len() >= MOST {
            return;
        }
        let una = step.una.max(0);
        let (mss, next) = (mss.max(1) as f64, step.end.max(step.next));
        let window = (next - una - step.sacked).max(0) as f64 / mss;
        let starts = step.is_recovering && (!self.was_recovering || step.by_timer);
        self.was_recovering = step.is_recovering;
        let begin = Current {
            start: step.time,
            until: next,
            una,
            window,
            acks: 0,
            samples: Samples::default(),
            echoes: Samples::default(),
            flags: Flags::default(),
        };
        let Some(current) = &mut self.current else {
            self.current = Some(begin);
            return;
        };
        // A retransmission belongs to the round in which the loss was detected.
        current.flags.lost |= starts;
        current.flags.timed_out |= step.by_timer;
        current.flags.marked |= step.is_reduced;
        current.flags.recovering |= step.is_recovering;
        current.flags.limited |= step.is_full || una >= next;
        if una < current.until {
            current.window = current.window.max(window);
            return;
        }
        let done = *current;
        self.current = Some(Current {
            flags: Flags {
                recovering: step.is_recovering,
                ..Flags::default()
            },
            ..begin
        });
        self.finish(&done, una, step.time, mss);
    }

    fn finish(&mut self, done: &Current, una: i64, end: Nanos, mss: f64) {
        let first = *self.first.get_or_insert(done.start);
        let round = Round {
            start: seconds(done.start - first),
            end: seconds(end - first),
            window: done.window,
            acked: (una - done.una) as f64 / mss,
            acks: f64::from(done.acks),
            rtt: done.samples.times(),
            flags: done.flags,
        };
        self.stored.push(Stored::of(&round, done.echoes.times()));
    }

    /// Records an acknowledgment of new data, and a round-trip sample if it is one of the sender's.
    pub(crate) fn acknowledge(&mut self, sample: Option<Nanos>) {
        let Some(current) = &mut self.current else {
            return;
        };
        current.acks += 1;
        if let Some(sample) = sample.filter(|_| !self.was_recovering) {
            current.samples.add(sample);
        }
    }

    /// Records the time from an acknowledgment to the data that it released.
    pub(crate) fn echo(&mut self, sample: Nanos) {
        if let Some(current) = &mut self.current
            && !self.was_recovering
        {
            current.echoes.add(sample);
        }
    }

    /// Records the ECN field of a SYN or of a retransmission.
    pub(crate) fn see_ecn(&mut self, ecn: u8) {
        if ecn == 0 {
            self.capable_never += 1;
        } else if ecn == 2 || ecn == 3 {
            self.capable_always += 1;
        }
    }

    /// The finished rounds. A capture near the receiver has no samples of most of the path: the
    /// sender's sample of data is the time from the acknowledgment that released it until it passes,
    /// and it has that sample in its next round. Without timestamps, the duration of a round is its
    /// round-trip time.
    pub(super) fn seen(&self, to_sender: Nanos, to_receiver: Nanos) -> Vec<Round> {
        let is_whole = to_sender <= to_receiver / 4;
        let echoes = self.stored.iter().filter(|stored| stored.has_echo).count();
        let has_echoes = to_receiver <= to_sender / 4 && 2 * echoes > self.stored.len();
        let (back, on) = (seconds(to_sender), seconds(to_receiver));
        let mut before: Option<[f64; 3]> = None;
        let mut seen = Vec::with_capacity(self.stored.len());
        for stored in &self.stored {
            let round = stored.round();
            let echo = stored.has_echo.then(|| stored.echo.map(f64::from));
            let rtt = if is_whole {
                round.rtt.map(|rtt| rtt.map(|time| time + back))
            } else if has_echoes {
                before.map(|rtt| rtt.map(|time| time + on))
            } else {
                (!round.flags.recovering).then_some([round.end - round.start; 3])
            };
            before = echo;
            seen.push(Round { rtt, ..round });
        }
        seen
    }
}
