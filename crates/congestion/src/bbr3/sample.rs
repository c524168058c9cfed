//! Input of the model from one acknowledgment: RS of draft-ietf-ccwg-bbr §2.3.

use anabranch_core::units::{Duration, Instant};

use crate::Ack;

/// Amounts are in bytes, the rate in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) now: Instant,
    /// RS.delivery_rate; zero without a reliable sample.
    pub(super) rate: f64,
    /// RS.delivered
    pub(super) delivered: f64,
    /// RS.prior_delivered
    pub(super) prior_delivered: Option<f64>,
    /// RS.is_app_limited
    pub(super) app_limited: bool,
    /// RS.tx_in_flight
    pub(super) tx_in_flight: f64,
    /// RS.lost
    pub(super) lost: f64,
    /// RS.newly_acked
    pub(super) newly_acked: f64,
    /// RS.rtt
    pub(super) rtt: Option<Duration>,
    /// C.inflight
    pub(super) in_flight: f64,
}

impl Sample {
    /// `app_limited_until`: samples of data sent before this much was delivered are lower bounds,
    /// in addition to those of an application-limited sender.
    pub(super) fn new(ack: &Ack, app_limited_until: f64) -> Self {
        let mut sample = Self {
            now: ack.now,
            rate: 0.0,
            delivered: 0.0,
            prior_delivered: None,
            app_limited: ack.app_limited,
            tx_in_flight: 0.0,
            lost: 0.0,
            newly_acked: ack.delivered.get() as f64,
            rtt: ack.rtt.filter(|rtt| !rtt.is_zero()),
            in_flight: ack.in_flight.get() as f64,
        };
        if let Some(rate) = ack.reliable_rate() {
            let prior = rate.prior_delivered.get() as f64;
            sample.delivered = rate.delivered.get() as f64;
            sample.rate = sample.delivered / rate.interval.as_secs_f64();
            sample.prior_delivered = Some(prior);
            sample.app_limited = rate.app_limited || prior <= app_limited_until;
            sample.tx_in_flight = rate.tx_in_flight.get() as f64;
            sample.lost = rate.lost.get() as f64;
        }
        sample
    }
}
