//! Round-trip times as the sender measures them, and their distribution.

use anabranch_core::histogram::Histogram;

use crate::time::{MICROSECOND, Nanos, SECOND, millis};

/// Longer times come from a damaged or hostile capture.
pub(super) const LONGEST: Nanos = 86_400 * SECOND;
/// If a queue fills repeatedly, this percentile of the round-trip times is near the longest.
const LONG: f64 = 95.0;
/// Mean differences of consecutive samples by which two samples of a full queue may differ.
const STEPS: Nanos = 8;
/// Responses of the sender whose minimum counts: an application that writes late makes single ones
/// long.
const ANSWERS: usize = 4;

/// The estimator of RFC 6298 over samples by Karn's rule, and a histogram in microseconds.
///
/// A sample is the time from data to its acknowledgment at the capture point. The delay of a queue
/// between the sender and the capture point appears in the time from an acknowledgment to the data
/// that echoes it.
#[derive(Debug, Default)]
pub(crate) struct Rtt {
    answers: [Nanos; ANSWERS],
    answered: usize,
    least_answer: Option<Nanos>,
    latest_answer: Nanos,
    /// The delay that a queue between the sender and the capture point adds to the round trip.
    queued_before: Nanos,
    /// The smoothed time from data to its acknowledgment at the capture point, and its variation.
    pub(crate) smoothed: Option<(Nanos, Nanos)>,
    latest: Nanos,
    /// The mean difference of consecutive samples: a queue changes more slowly.
    pub(crate) step: Nanos,
    /// The last sample without a delayed acknowledgment, and its time.
    prompt: Option<(Nanos, Nanos)>,
    pub(crate) min: Option<Nanos>,
    most: Nanos,
    all: Histogram,
    /// Samples while the sender filled the path.
    pub(crate) loaded: Histogram,
}

impl Rtt {
    /// Records a round trip. `is_loaded`: the sender filled the path.
    pub(crate) fn sample(&mut self, rtt: Nanos, is_loaded: bool) {
        let rtt = rtt.clamp(0, LONGEST);
        if self.smoothed.is_some() {
            self.step += ((rtt - self.latest).abs() - self.step) / 16;
        }
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            // RFC 6298 §2.3.
            Some((srtt, var)) => (
                srtt + (rtt - srtt) / 8,
                var + ((rtt - srtt).abs() - var) / 4,
            ),
        });
        let whole = rtt + self.queued_before;
        self.most = self.most.max(whole);
        let micros = u64::try_from(whole / MICROSECOND).unwrap_or_default();
        self.all.record(micros);
        if is_loaded {
            self.loaded.record(micros);
        }
    }

    /// Records an acknowledgment at `time` without data that covered two full segments, so that the
    /// receiver did not delay it (RFC 9293 §3.8.6.3).
    pub(crate) fn see_prompt(&mut self, time: Nanos, rtt: Nanos) {
        self.prompt = Some((time, rtt));
    }

    /// Queueing delay after the capture point, by the last prompt sample since `since`.
    pub(crate) fn queued_since(&self, since: Nanos) -> Nanos {
        let recent = self.prompt.filter(|(time, _)| *time >= since);
        recent
            .zip(self.min)
            .map_or(0, |((_, rtt), min)| (rtt - min).max(0))
    }

    /// Records the sender's response time to an acknowledgment, including the path there and back.
    /// `counts`: a round trip has passed since the last response that counted.
    pub(crate) fn answer(&mut self, took: Nanos, counts: bool) {
        let took = took.clamp(0, LONGEST);
        self.latest_answer = took;
        if !counts {
            return;
        }
        self.answers[self.answered % ANSWERS] = took;
        self.answered += 1;
        let ever = self.least_answer.map_or(took, |least| least.min(took));
        self.least_answer = Some(ever);
        let recent = &self.answers[..self.answered.min(ANSWERS)];
        self.queued_before = recent.iter().min().map_or(0, |least| least - ever);
    }

    /// Whether a queue before the capture point is hidden, because no timestamp shows the sender's
    /// response time.
    pub(crate) fn hides_queue(&self) -> bool {
        self.answered == 0
    }

    /// The smoothed round-trip time and its variation, without the sender's minimum response time.
    pub(crate) fn smoothed(&self) -> Option<(Nanos, Nanos)> {
        self.smoothed
            .map(|(srtt, var)| (srtt + self.queued_before, var))
    }

    /// Whether the round-trip time exceeds the minimum by a quarter. `back` is the sender's part of
    /// the minimum.
    pub(crate) fn is_queued(&self, back: Nanos) -> bool {
        let whole = self.latest + back + self.queued_before;
        self.min
            .is_some_and(|min| whole > min + back + (min + back) / 4)
    }

    /// Whether a queue is about full: the round-trip time is near the longest, which exceeds the
    /// minimum.
    pub(crate) fn is_full(&self, back: Nanos) -> bool {
        let Some(min) = self.min else {
            return false;
        };
        let recent = &self.answers[..self.answered.min(ANSWERS)];
        let longest = recent.iter().copied().chain([self.latest_answer]).max();
        let before = longest.zip(self.least_answer);
        let before = before.map_or(0, |(now, least)| (now - least).max(0));
        self.fills(self.latest + before - min, min, back)
    }

    /// The same for the round trip of a segment sent just before one that was lost after the
    /// capture point.
    pub(crate) fn was_full(&self, sample: Nanos, back: Nanos) -> bool {
        self.min
            .is_some_and(|min| self.fills(sample - min, min, back))
    }

    /// Whether a queue in which a packet waited for no more than `wait` cannot have been full: it drops a
    /// packet only if it is, after the longest wait. Late packets of a reordering path take longer, so that
    /// a high percentile counts. Samples vary by their step from one to the next.
    pub(crate) fn excludes_full(&self, wait: Nanos) -> bool {
        self.min
            .is_some_and(|min| wait + STEPS * self.step < self.long_wait(min))
    }

    fn fills(&self, queue: Nanos, min: Nanos, back: Nanos) -> bool {
        queue > (min + back) / 4 && 2 * queue >= self.longest_wait(min)
    }

    /// The excess of the longest round-trip time over the minimum. A host that stops for a moment
    /// makes the round trips of one flight more than twice as long as any queue does.
    fn longest_wait(&self, min: Nanos) -> Nanos {
        let (most, long) = (self.most - min, self.long_wait(min));
        if most / 2 > long { long } else { most }
    }

    /// The excess of a long round-trip time over the minimum.
    fn long_wait(&self, min: Nanos) -> Nanos {
        let micros = self.all.percentile(LONG).unwrap_or_default();
        let long = i64::try_from(micros)
            .unwrap_or(i64::MAX)
            .saturating_mul(MICROSECOND);
        (long - min).max(0)
    }

    /// A percentile, in milliseconds.
    pub(crate) fn percentile_ms(&self, p: f64) -> Option<f64> {
        let micros = self.all.percentile(p)?;
        let nanos = i64::try_from(micros).unwrap_or_default() * MICROSECOND;
        Some(millis(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    /// A queue that grows from 20 to 60 ms repeatedly, and round trips of `stopped` ms while a host
    /// stops once.
    fn sawtooth(stopped: i64) -> Rtt {
        let mut rtt = Rtt::default();
        for _ in 0..20 {
            for ms in 20..60 {
                rtt.sample(ms * MILLISECOND, true);
            }
        }
        for _ in 0..20 {
            rtt.sample(stopped * MILLISECOND, true);
        }
        rtt
    }

    #[test]
    fn a_host_that_stops_does_not_hide_a_full_queue() {
        for stopped in [30, 59, 300] {
            let mut rtt = sawtooth(stopped);
            rtt.sample(55 * MILLISECOND, true);
            assert!(rtt.is_full(0), "{stopped}");
            rtt.sample(22 * MILLISECOND, true);
            assert!(!rtt.is_full(0), "{stopped}");
        }
    }
}
