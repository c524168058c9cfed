//! Bounds of the switches, and their dependencies on each other.

use anabranch_core::units::{Duration, text::Limit};
use anabranch_wire::segment::{HEADERS, TIMESTAMPS_SIZE};

use super::{DelayedAck, IdleRestart, Recovery, RecoveryPace, Settings};

/// A switch with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Problem {
    /// The key of [`Overrides`](super::Overrides).
    pub field: &'static str,
    /// The fault, and the value expected.
    pub message: String,
}

impl Settings {
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

    pub(super) fn check(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        let most = u32::from(u16::MAX) - HEADERS - TIMESTAMPS_SIZE;
        if !(64..=most).contains(&self.mss) {
            return problem(
                "mss",
                format!("{} bytes is outside 64 to {most} bytes", self.mss),
            );
        }
        self.check_bounds()?;
        self.check_recovery()?;
        self.check_remedy()?;
        self.check_delayed_ack()?;
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
        if self.timers.count_ticks() && self.clock_tick.is_zero() {
            return problem(
                "clock_tick",
                "timers = \"bsd\" count ticks, which cannot have 0 s".to_owned(),
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

    /// Checks loss detection and repair.
    fn check_recovery(&self) -> Result<(), Problem> {
        let problem = |field, message: String| Err(Problem { field, message });
        if self.max_dupthresh < self.dupthresh {
            return problem(
                "max_dupthresh",
                format!(
                    "{} is less than dupthresh, {}",
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
                "recovery_pace",
                self.recovery_pace == RecoveryPace::CountedPipe
                    && !self.recovery.permits(self.recovery_pace),
                "\"counted-pipe\" needs recovery = \"rfc6675\"",
            ),
            (
                "recovery_pace",
                !self.recovery.permits(self.recovery_pace),
                match self.recovery_pace {
                    RecoveryPace::Prr => "\"prr\" needs a recovery other than \"reno\"",
                    _ => "needs recovery = \"rfc6675\" or \"rack\"",
                },
            ),
            (
                "eifel",
                self.eifel && !self.timestamps,
                "needs timestamps = true",
            ),
        ];
        if let Some((field, _, message)) = needs.into_iter().find(|(_, broken, _)| *broken) {
            return problem(field, message.to_owned());
        }
        if self.dsack && !self.sack {
            return problem("dsack", "needs sack = true".to_owned());
        }
        Ok(())
    }
}
