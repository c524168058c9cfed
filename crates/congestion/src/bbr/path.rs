//! The model of the path: its bandwidth, and the data that arrives beyond it (draft 00 §4.1).

use anabranch_core::units::Instant;

use super::{Ack, Model, RateSample, Rounds, filter::MaxFilter};

/// Data that arrives beyond the bandwidth (draft 02, BBRUpdateACKAggregation).
#[derive(Debug, Default)]
pub(super) struct ExtraAcked {
    pub since: Option<Instant>,
    pub delivered: f64,
    pub max: MaxFilter,
}

impl Model {
    /// The rate sample of an acknowledgment that updates rounds and BtlBw.
    pub(super) fn round_sample(&self, ack: &Ack) -> Option<RateSample> {
        match self.params.rounds {
            Rounds::ReliableSamples => ack.reliable_rate().copied(),
            Rounds::Acknowledgments => ack.rate,
        }
    }

    /// Draft 00 §4.1.1: updates rounds and BtlBw. Returns whether a round begins.
    pub(super) fn update_btl_bw(&mut self, sample: &RateSample) -> bool {
        let prior = sample.prior_delivered.get() as f64;
        let round_start = prior >= self.next_round_delivered;
        if round_start {
            self.next_round_delivered = self.delivered;
            self.round_count += 1;
        }
        if sample.is_reliable {
            self.delivery_rate = sample.delivered.get() as f64 / sample.interval.as_secs_f64();
        }
        let bw = self.delivery_rate;
        let lower_bound = sample.app_limited || prior <= self.app_limited_until;
        if bw >= self.btl_bw.max() || !lower_bound {
            let rounds = u64::from(self.params.bw_window_rounds.get());
            self.btl_bw.update(self.round_count, rounds, bw);
        }
        if round_start && !lower_bound {
            self.check_full_pipe();
        }
        round_start
    }

    /// Draft 00 §4.3.2.2
    pub(super) fn check_full_pipe(&mut self) {
        if self.filled_pipe {
            return;
        }
        let bw = self.btl_bw.max();
        if bw >= self.full_bw * self.params.full_bw_growth.get() {
            self.full_bw = bw;
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= self.params.full_bw_rounds.get();
    }

    pub(super) fn update_extra_acked(&mut self, ack: &Ack, delivered: f64) {
        let extra = &mut self.extra;
        let since = *extra.since.get_or_insert(ack.now);
        let bw = self.btl_bw.max();
        let mut expected = bw * ack.now.saturating_since(since).as_secs_f64();
        if extra.delivered <= expected {
            extra.delivered = 0.0;
            extra.since = Some(ack.now);
            expected = 0.0;
        }
        extra.delivered += delivered;
        // At most the data of a tenth of a second: a guard of draft 02 against outliers.
        let beyond = (extra.delivered - expected).min(self.cwnd).min(bw * 0.1);
        let rounds = u64::from(self.params.bw_window_rounds.get());
        extra.max.update(self.round_count, rounds, beyond.max(0.0));
    }
}
