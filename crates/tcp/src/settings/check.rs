//! Bounds of the switches, and what they need of one another.

use anabranch_core::units::{Duration, text::Limit};

use super::{
    super::segment::{HEADERS, TIMESTAMPS_SIZE},
    DelayedAck, IdleRestart, Recovery, Settings,
};

/// A switch that cannot be as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Problem {
    /// The key of [`Overrides`].
    pub field: &'static str,
    /// What is wrong with it and what was expected.
    pub message: String,
}

impl Settings {
    fn check_pacing(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        for (field, ratio) in [
            ("pacing_ss_ratio", self.pacing_ss_ratio),
            ("pacing_ca_ratio", self.pacing_ca_ratio),
        ] {
            if !(1..=1000).contains(&ratio) {
                return problem(field, format!("{ratio} % is outside 1 to 1000 %"));
            }
        }
        if self.pacing_burst > Duration::from_secs(1) {
            return problem(
                "pacing_burst",
                format!("{} is outside 0 to 1 s", self.pacing_burst),
            );
        }
        Ok(())
    }

    fn check_delayed_ack(&self) -> Result<(), Problem> {
        let problem = |message: String| {
            Err(Problem {
                field: "delayed_ack",
                message,
            })
        };
        if let DelayedAck::On(delayed) = self.delayed_ack {
            if !(1..=1000).contains(&delayed.segments) {
                return problem(format!(
                    "{} segments is outside 1 to 1000",
                    delayed.segments
                ));
            }
            if delayed.timeout.is_zero() || delayed.timeout > Duration::from_secs(10) {
                return problem("the timeout must lie in 1 ps to 10 s".to_owned());
            }
            if delayed
                .max_timeout
                .is_some_and(|max| max < delayed.timeout || max > Duration::from_secs(10))
            {
                return problem(format!(
                    "max_timeout must lie in timeout, {}, to 10 s",
                    delayed.timeout
                ));
            }
            if delayed.ticking && (delayed.max_timeout.is_some() || delayed.quick_segments > 0) {
                return problem(
                    "a ticking timeout does not adapt: expected neither max_timeout nor quick_segments"
                        .to_owned(),
                );
            }
            if delayed.quick_again && delayed.quick_segments == 0 {
                return problem("quick_again needs quick_segments".to_owned());
            }
            if delayed.quick_segments > 1000 {
                return problem(format!(
                    "{} quick segments is outside 0 to 1000",
                    delayed.quick_segments
                ));
            }
        }
        Ok(())
    }

    fn check_sack_compression(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        if self.sack_compression > 1000 {
            return problem(
                "sack_compression",
                format!("{} is outside 0 to 1000", self.sack_compression),
            );
        }
        for (field, wait) in [
            ("sack_compression_delay", self.sack_compression_delay),
            ("sack_compression_slack", self.sack_compression_slack),
        ] {
            if wait > Duration::from_secs(1) {
                return problem(field, format!("{wait} is outside 0 to 1 s"));
            }
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        let most = u32::from(u16::MAX) - HEADERS - TIMESTAMPS_SIZE;
        if !(64..=most).contains(&self.mss) {
            return problem(
                "mss",
                format!("{} bytes is outside 64 to {most} bytes", self.mss),
            );
        }
        if !(1..=1_000_000).contains(&self.initial_cwnd) {
            return problem(
                "initial_cwnd",
                format!("{} is outside 1 to 1000000 segments", self.initial_cwnd),
            );
        }
        self.check_recovery()?;
        self.check_remedy()?;
        self.check_delayed_ack()?;
        self.check_sack_compression()?;
        self.check_pacing()?;
        if self.clock_tick > Duration::from_secs(1) {
            return problem(
                "clock_tick",
                format!("{} is outside 0 to 1 s", self.clock_tick),
            );
        }
        if self.challenge_ack_interval > Duration::from_secs(60) {
            return problem(
                "challenge_ack_interval",
                format!("{} is outside 0 to 1 min", self.challenge_ack_interval),
            );
        }
        if self.idle_restart == IdleRestart::Rfc7661 && !self.cwnd_validation {
            return problem(
                "idle_restart",
                "\"rfc7661\" needs cwnd_validation = true".to_owned(),
            );
        }
        if self.min_rto.is_zero() || self.min_rto > self.max_rto {
            return problem(
                "min_rto",
                format!(
                    "{} is outside 1 ps to max_rto, {}",
                    self.min_rto, self.max_rto
                ),
            );
        }
        if self.timer_tick > Duration::from_secs(10) {
            return problem(
                "timer_tick",
                format!("{} is outside 0 to 10 s", self.timer_tick),
            );
        }
        if self.syn_linear_timeouts > 127 {
            return problem(
                "syn_linear_timeouts",
                format!("{} is outside 0 to 127", self.syn_linear_timeouts),
            );
        }
        if self.retries_base_rto > self.max_rto {
            return problem(
                "retries_base_rto",
                format!(
                    "{} is outside 0 s to max_rto, {}",
                    self.retries_base_rto, self.max_rto
                ),
            );
        }
        if self.initial_rto.is_zero() || self.initial_rto > self.max_rto {
            return problem(
                "initial_rto",
                format!(
                    "{} is outside 1 ps to max_rto, {}",
                    self.initial_rto, self.max_rto
                ),
            );
        }
        for (field, limit) in [
            ("send_buffer", self.send_buffer),
            ("receive_window", self.receive_window),
            ("slow_start_limit", self.slow_start_limit),
        ] {
            if matches!(limit, Limit::Bdp(_)) {
                return problem(field, "a multiple of the bandwidth-delay product is a queue's; expected bytes, packets or \"unlimited\"".to_owned());
            }
            if self
                .bytes(limit)
                .is_some_and(|bytes| bytes < u64::from(self.mss))
            {
                return problem(
                    field,
                    format!("{limit} is less than one segment of {} bytes", self.mss),
                );
            }
        }
        Ok(())
    }

    /// What losses are found and repaired by.
    fn check_recovery(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        if !(1..=1_000_000).contains(&self.dupthresh) {
            return problem(
                "dupthresh",
                format!("{} is outside 1 to 1000000", self.dupthresh),
            );
        }
        if !(self.dupthresh..=1_000_000).contains(&self.max_dupthresh) {
            return problem(
                "max_dupthresh",
                format!(
                    "{} is outside dupthresh, {}, to 1000000",
                    self.max_dupthresh, self.dupthresh
                ),
            );
        }
        let needs = [
            (
                "recovery",
                self.recovery == Recovery::Rfc6675 && !self.sack,
                "\"rfc6675\" needs sack = true",
            ),
            (
                "recovery",
                self.recovery == Recovery::Rack && !self.sack,
                "\"rack\" needs sack = true",
            ),
            (
                "tlp",
                self.tlp && self.recovery != Recovery::Rack,
                "needs recovery = \"rack\"",
            ),
            (
                "prr",
                self.prr && !self.recovery.needs_sack(),
                "needs recovery = \"rfc6675\" or \"rack\"",
            ),
            (
                "prr_at_marks",
                self.prr_at_marks && !self.prr,
                "needs prr = true",
            ),
            (
                "rate_halving",
                self.rate_halving && !self.recovery.needs_sack(),
                "needs recovery = \"rfc6675\" or \"rack\"",
            ),
            (
                "rate_halving",
                self.rate_halving && self.prr,
                "excludes prr = true: either sets the pace of a recovery",
            ),
            (
                "counted_pipe",
                self.counted_pipe && self.recovery != Recovery::Rfc6675,
                "needs recovery = \"rfc6675\"",
            ),
            (
                "counted_pipe",
                self.counted_pipe && (self.prr || self.rate_halving),
                "excludes prr and rate_halving: each sets the pace of a recovery",
            ),
            (
                "eifel",
                self.eifel && !self.timestamps,
                "needs timestamps = true",
            ),
        ];
        if self.adapt_rto && !self.undo {
            return problem("adapt_rto", "needs undo = true".to_owned());
        }
        if let Some((field, _, message)) = needs.into_iter().find(|(_, broken, _)| *broken) {
            return problem(field, message.to_owned());
        }
        if self.dsack && !self.sack {
            return problem("dsack", "needs sack = true".to_owned());
        }
        Ok(())
    }
}
