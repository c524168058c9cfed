//! Startup and Drain (draft-ietf-ccwg-bbr §5.3.1, §5.3.2), and the full-pipe estimator, which
//! ProbeBW_UP also uses.

use super::{Model, Repair, congestion::UndoState, sample::Sample, state::State};

/// Estimator of a delivery rate that no longer grows (§5.3.1.2).
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached
    pub(super) reached: bool,
    /// BBR.full_bw_now
    pub(super) now: bool,
    /// BBR.full_bw
    bw: f64,
    /// BBR.full_bw_count
    count: u32,
}

impl FullPipe {
    /// ResetFullBW, with the rate that later samples are compared with.
    pub(super) const fn reset(&mut self, bw: f64) {
        self.bw = bw;
        self.count = 0;
        self.now = false;
    }
}

impl Model {
    /// CheckFullBWReached
    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        if self.full.now || !self.rounds.start || rs.app_limited {
            return;
        }
        if rs.rate >= self.full.bw * self.params.full_bw_growth.get() {
            self.full.reset(rs.rate);
            return;
        }
        self.full.count += 1;
        self.full.now = self.full.count >= self.params.full_bw_rounds.get();
        self.full.reached |= self.full.now;
    }

    /// CheckStartupDone
    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain {
                since_round: self.rounds.count,
            };
        }
    }

    /// CheckStartupHighLoss (§5.3.1.3). A mark ends Startup as a single loss does on a connection
    /// without SACK.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        if self.full.reached {
            return;
        }
        let too_high = match self.repair {
            Repair::Fast { .. } if !self.selective => self.losses.just_found,
            Repair::Fast { began, .. } => {
                self.rounds.loss_start
                    && rs.prior_delivered.is_some_and(|prior| prior >= began)
                    && self.is_inflight_too_high(rs.tx_in_flight, rs.lost)
                    && self.losses.stretches_of_last_round >= self.params.startup_full_losses.get()
            }
            Repair::No | Repair::Timeout { .. } => false,
        };
        if too_high || self.losses.just_marked {
            self.undo.state = Some(UndoState::Startup);
            self.full.reached = true;
            self.full.now = true;
            let bdp = self.bdp_multiple(self.bw(), 1.0);
            self.inflight_longterm = bdp.max(self.latest.inflight).max(self.min_window());
        }
    }

    /// CheckDrainDone
    pub(super) fn check_drain_done(&mut self, rs: &Sample) {
        if let State::Drain { since_round } = self.state
            && (rs.in_flight <= self.inflight(self.bw(), 1.0)
                || self.rounds.count > since_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(rs.now);
        }
    }
}

/// Drain ends after this number of round trips, whatever is in flight (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;
