//! HyStart++ (RFC 9406): a growing delay starts conservative slow start (CSS), which grows a
//! quarter as fast. Five round trips of CSS lead to congestion avoidance, unless the delay falls
//! again.
//!
//! It applies only to the first slow start (§4.3).
//!
//! # Differs from Linux
//! - Linux has no HyStart++.
//!
//! # Not implemented
//! - Nothing of §4.2.

use anabranch_core::units::Duration;

use super::Verdict;
use crate::Ack;

/// The constants (§4.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// MIN_RTT_THRESH
    pub min_rtt_thresh: Duration,
    /// MAX_RTT_THRESH
    pub max_rtt_thresh: Duration,
    /// MIN_RTT_DIVISOR
    pub min_rtt_divisor: u64,
    /// N_RTT_SAMPLE
    pub n_rtt_sample: u32,
    /// CSS_GROWTH_DIVISOR
    pub css_growth_divisor: f64,
    /// CSS_ROUNDS
    pub css_rounds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            min_rtt_thresh: Duration::from_millis(4),
            max_rtt_thresh: Duration::from_millis(16),
            min_rtt_divisor: 8,
            n_rtt_sample: 8,
            css_growth_divisor: 4.0,
            css_rounds: 5,
        }
    }
}

/// L of §4.2 for a sender without pacing; a pacing sender has no limit.
pub const L: f64 = 8.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    SlowStart,
    /// cssBaselineMinRtt, and the number of rounds begun in CSS.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
    Over,
}

/// State of HyStart++.
#[derive(Debug, Clone)]
pub struct PlusPlus {
    settings: Settings,
    phase: Phase,
    round: Option<u64>,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u32,
}

impl PlusPlus {
    /// Before the first acknowledgment.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::SlowStart,
            round: None,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_sample_count: 0,
        }
    }

    /// The first slow start ended.
    pub fn end(&mut self) {
        self.phase = Phase::Over;
    }

    /// Whether CSS is in progress.
    #[must_use]
    pub fn is_conservative(&self) -> bool {
        matches!(self.phase, Phase::Conservative { .. })
    }

    /// RttThresh (§4.2).
    #[must_use]
    pub fn rtt_thresh(&self, last_round_min_rtt: Duration) -> Duration {
        (last_round_min_rtt / self.settings.min_rtt_divisor)
            .min(self.settings.max_rtt_thresh)
            .max(self.settings.min_rtt_thresh)
    }

    /// Takes an ACK of slow start.
    #[must_use]
    pub fn on_ack(&mut self, ack: &Ack) -> Verdict {
        if self.phase == Phase::Over {
            return Verdict::Grow(1.0);
        }
        if self.round != Some(ack.round) {
            let began = self.round.replace(ack.round).is_some();
            self.last_round_min_rtt = self.current_round_min_rtt.take();
            self.rtt_sample_count = 0;
            if let Phase::Conservative { rounds, .. } = &mut self.phase
                && began
            {
                // The round in which CSS began counts, although only part of it was in CSS.
                if *rounds >= self.settings.css_rounds {
                    self.phase = Phase::Over;
                    return Verdict::End;
                }
                *rounds += 1;
            }
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min_rtt =
                Some(self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.rtt_sample_count += 1;
        }
        if self.rtt_sample_count >= self.settings.n_rtt_sample
            && let Some(current) = self.current_round_min_rtt
        {
            self.judge(current);
        }
        Verdict::Grow(if self.is_conservative() {
            1.0 / self.settings.css_growth_divisor
        } else {
            1.0
        })
    }

    /// Evaluates a round that has enough samples.
    fn judge(&mut self, current: Duration) {
        match self.phase {
            Phase::SlowStart => {
                if let Some(last) = self.last_round_min_rtt
                    && current >= last + self.rtt_thresh(last)
                {
                    self.phase = Phase::Conservative {
                        baseline: current,
                        rounds: 1,
                    };
                }
            }
            Phase::Conservative { baseline, .. } if current < baseline => {
                self.phase = Phase::SlowStart;
            }
            Phase::Conservative { .. } | Phase::Over => {}
        }
    }
}
