//! Losses (draft-ietf-ccwg-bbr §5.5.10, §5.5.11): the short-term model, the response to a probe
//! that lost too much, and the undo of spurious reductions.

use anabranch_core::units::Instant;

use super::{
    Model, Repair,
    sample::Sample,
    state::{Phase, State},
};
use crate::Lost;

/// The bounds that result from losses between probes; infinite without losses.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm
    pub(super) bw: f64,
    /// BBR.inflight_shortterm
    pub(super) inflight: f64,
}

impl ShortTerm {
    pub(super) const NONE: Self = Self {
        bw: f64::INFINITY,
        inflight: f64::INFINITY,
    };

    /// ResetShortTermModel
    pub(super) const fn reset(&mut self) {
        *self = Self::NONE;
    }
}

/// Maxima of the last round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latest {
    /// BBR.bw_latest
    pub(super) bw: f64,
    /// BBR.inflight_latest
    pub(super) inflight: f64,
}

/// Losses of the current round trip and the previous one.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// BBR.is_loss_in_round
    in_round: bool,
    /// BBR.loss_round_delivered
    round_delivered: f64,
    /// Runs of adjacent segments lost in this round trip, and the last lost segment.
    stretches: u32,
    last: Option<u64>,
    pub(super) stretches_of_last_round: u32,
    /// A loss, or a mark, was found since the last acknowledgment.
    pub(super) just_found: bool,
    pub(super) just_marked: bool,
}

/// The state that losses ended: BBR.undo_state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UndoState {
    Startup,
    ProbeBwUp,
}

/// The state before the losses.
#[derive(Debug)]
pub(super) struct Undo {
    pub(super) state: Option<UndoState>,
    short_term: ShortTerm,
    /// BBR.undo_inflight_longterm
    inflight_longterm: f64,
}

impl Default for Undo {
    fn default() -> Self {
        Self {
            state: None,
            short_term: ShortTerm {
                bw: 0.0,
                inflight: 0.0,
            },
            inflight_longterm: 0.0,
        }
    }
}

impl Model {
    /// UpdateLatestDeliverySignals
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        self.latest.bw = self.latest.bw.max(rs.rate);
        self.latest.inflight = self.latest.inflight.max(rs.delivered);
        self.rounds.loss_start = rs
            .prior_delivered
            .is_some_and(|prior| prior >= self.losses.round_delivered);
        if self.rounds.loss_start {
            self.losses.round_delivered = self.delivered;
            self.losses.stretches_of_last_round = self.losses.stretches;
            self.losses.stretches = 0;
            self.losses.last = None;
        }
    }

    /// AdvanceLatestDeliverySignals
    pub(super) const fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.rounds.loss_start {
            self.latest = Latest {
                bw: rs.rate,
                inflight: rs.delivered,
            };
        }
    }

    /// ResetCongestionSignals
    pub(super) fn reset_congestion_signals(&mut self) {
        self.losses.in_round = false;
        self.latest = Latest::default();
    }

    /// UpdateCongestionSignals
    pub(super) fn update_congestion_signals(&mut self, rs: &Sample) {
        self.update_max_bw(rs);
        if self.rounds.loss_start {
            self.adapt_lower_bounds();
            self.losses.in_round = false;
        }
    }

    /// AdaptLowerBoundsFromCongestion
    fn adapt_lower_bounds(&mut self) {
        if self.state.accelerates() || !self.losses.in_round {
            return;
        }
        let bounds = &mut self.short_term;
        if bounds.bw == f64::INFINITY {
            bounds.bw = self.max_bw.max();
        }
        if bounds.inflight == f64::INFINITY {
            bounds.inflight = self.cwnd;
        }
        let beta = self.params.beta.get();
        bounds.bw = self.latest.bw.max(beta * bounds.bw);
        bounds.inflight = self.latest.inflight.max(beta * bounds.inflight);
    }

    /// NoteLoss
    pub(super) fn note_loss(&mut self) {
        if !self.losses.in_round {
            self.losses.round_delivered = self.delivered;
            // A recovery in progress has saved its state before any response to its losses.
            if self.repair == Repair::No {
                self.save_state_upon_loss();
            }
        }
        self.losses.in_round = true;
        self.losses.just_found = true;
    }

    /// HandleLostPacket
    pub(super) fn handle_lost_packet(&mut self, lost: &Lost) {
        self.selective = lost.selective;
        self.note_loss();
        let losses = &mut self.losses;
        if losses.last.is_none_or(|last| lost.number != last + 1) {
            losses.stretches += 1;
        }
        losses.last = Some(lost.number);
        if !self.cycle.is_probe_sample {
            return;
        }
        let (tx_in_flight, all) = (lost.tx_in_flight.get() as f64, lost.lost.get() as f64);
        if self.is_inflight_too_high(tx_in_flight, all) {
            let size = lost.bytes.get() as f64;
            let bearable = self.inflight_at_loss(tx_in_flight - size, all - size);
            self.handle_inflight_too_high(lost.now, bearable, lost.app_limited);
        }
    }

    /// A mark counts as a loss on a connection that cannot count losses: §3.7 requires a response
    /// and does not specify it.
    pub(super) fn handle_mark(&mut self, now: Instant, in_flight: f64) {
        self.note_loss();
        self.losses.just_marked = true;
        if self.cycle.is_probe_sample {
            self.handle_inflight_too_high(now, in_flight, false);
        }
    }

    /// IsInflightTooHigh
    pub(super) fn is_inflight_too_high(&self, tx_in_flight: f64, lost: f64) -> bool {
        lost > tx_in_flight * self.params.loss_threshold.get() || (lost > 0.0 && !self.selective)
    }

    /// InflightAtLoss: the part of the flight that was sent before the share of losses exceeded the
    /// threshold.
    pub(super) fn inflight_at_loss(&self, inflight_prev: f64, lost_prev: f64) -> f64 {
        let threshold = self.params.loss_threshold.get();
        inflight_prev + (threshold * inflight_prev - lost_prev) / (1.0 - threshold)
    }

    /// HandleInflightTooHigh
    fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: f64, app_limited: bool) {
        self.cycle.too_high = true;
        self.cycle.is_probe_sample = false;
        if !app_limited {
            let least = self.target_inflight() * self.params.beta.get();
            self.inflight_longterm = tx_in_flight.max(least);
        }
        if self.state == State::ProbeBw(Phase::Up) {
            self.undo.state = Some(UndoState::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }

    /// SaveStateUponLoss
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            short_term: self.short_term,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// HandleSpuriousLossDetection
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.losses.in_round = false;
        self.full.reset(0.0);
        let undo = &mut self.undo;
        self.short_term.bw = self.short_term.bw.max(undo.short_term.bw);
        self.short_term.inflight = self.short_term.inflight.max(undo.short_term.inflight);
        self.inflight_longterm = self.inflight_longterm.max(undo.inflight_longterm);
        let in_probe_rtt = matches!(self.state, State::ProbeRtt(_));
        match undo.state.take() {
            Some(UndoState::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if !in_probe_rtt {
                    self.state = State::Startup;
                }
            }
            Some(UndoState::ProbeBwUp)
                if self.state != State::ProbeBw(Phase::Up) && !in_probe_rtt =>
            {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}
