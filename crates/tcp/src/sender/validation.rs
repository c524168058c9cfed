//! The congestion window is validated (RFC 7661), where the stack wants it:
//! [`IdleRestart::Rfc7661`](anabranch_congestion::IdleRestart::Rfc7661).

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::Sender;
use crate::{scoreboard::Record, window_validation::Validation};
use anabranch_congestion::{CongestionControl, Unvalidated};

impl<B: Body> Sender<B> {
    fn validation(&mut self) -> &mut Validation {
        self.cold.extras().validation.get_or_insert_default()
    }

    /// A round trip has ended.
    #[inline(never)]
    pub(super) fn validate_round(&mut self, now: Instant) {
        let first = self.cold.first_octet;
        let acked = self.peer.una().max(first).since(first);
        self.validation().on_round(now, acked);
        self.validate(now);
    }

    /// Whether the window is validated, and what follows if it has not been for too long.
    #[inline(never)]
    pub(super) fn validate(&mut self, now: Instant) -> bool {
        let srtt = self.rtt.srtt();
        loop {
            let cwnd = self.control.cwnd().get();
            let validation = self.validation();
            let validated = validation.look(now, srtt, cwnd);
            if !validation.period_is_over(now) {
                return validated;
            }
            self.control.on_unvalidated(&Unvalidated::PeriodOver);
        }
    }

    /// What a reduction is taken from, where `flight` is in flight. `repairs`: a recovery begins.
    #[inline(never)]
    pub(super) fn validated_flight(&mut self, now: Instant, flight: u64, repairs: bool) -> u64 {
        self.validate(now);
        let srtt = self.rtt.srtt();
        self.validation().on_congestion(now, srtt, flight, repairs)
    }

    /// `record` is retransmitted.
    #[cold]
    pub(super) fn validate_retransmission(&mut self, record: &Record) {
        if !record.is_retransmitted() {
            self.validation().on_resent(u64::from(record.payload()));
        }
    }

    /// The retransmission timer has expired.
    #[cold]
    pub(super) fn validate_timeout(&mut self) {
        self.validation().on_timeout();
    }

    /// The last reduction was spurious.
    #[cold]
    pub(super) fn validate_undo(&mut self) {
        self.validation().on_spurious();
    }

    /// A recovery is over, also one after a timeout, or one that proved spurious.
    #[cold]
    pub(super) fn validate_recovered(&mut self) {
        if let Some(window) = self.validation().on_recovered() {
            let window = Bytes::new(window);
            self.control
                .on_unvalidated(&Unvalidated::Recovered { window });
        }
    }
}
