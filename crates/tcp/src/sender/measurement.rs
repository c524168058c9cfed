//! What acknowledgments measure: round-trip times (RFC 6298 §3, RFC 7323 §4) and delivery rates.

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::Sender;
use crate::{clock::timestamp, recovery::tlp::Probing, scoreboard::Delivered};
use anabranch_congestion::{RateSample, rate::Delivery};
use anabranch_wire::segment::Segment;

impl<B: Body> Sender<B> {
    /// A delivery-rate sample from what an acknowledgment delivered.
    #[inline(never)]
    pub(super) fn rate_sample(
        &mut self,
        now: Instant,
        octets: u64,
        latest: Option<u64>,
    ) -> Option<RateSample> {
        let sampler = &mut self.cold.extras.as_mut()?.rate;
        sampler.on_delivered(&Delivery {
            now,
            octets,
            latest,
            gone: self.board.gone(),
            min_rtt: self.rtt.min_rtt(),
        })
    }

    /// RFC 6298 §3 and RFC 7323 §4: samples from what was sent once, or by timestamp. Returns the sample by timestamp.
    pub(crate) fn sample_rtt(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        delivered: &Delivered,
    ) -> Option<Duration> {
        if self.sample_rtt_once(now, delivered) {
            return None;
        }
        let timestamps = segment.timestamps.filter(|_| self.agreed.timestamps)?;
        let ticks = timestamp(now).wrapping_sub(timestamps.echo);
        if ticks.cast_signed() <= 0 {
            return None;
        }
        let rtt = Duration::from_millis(u64::from(ticks));
        self.take_rtt(rtt);
        Some(rtt)
    }

    /// A sample from what was sent once; `false` if some of what was delivered was retransmitted.
    pub(super) fn sample_rtt_once(&mut self, now: Instant, delivered: &Delivered) -> bool {
        let Some(once) = delivered.timed() else {
            return false;
        };
        self.rtt.note_min(now.saturating_since(once.last_sent_at));
        if self.settings.timers.count_ticks() {
            self.count_ticks(now, once.first_sent_at);
            return true;
        }
        self.take_rtt(now.saturating_since(once.first_sent_at));
        true
    }

    /// A round-trip time as a coarse clock sees it.
    #[inline(never)]
    fn count_ticks(&mut self, now: Instant, sent: Instant) {
        let tick = self.settings.clock_tick;
        let at = |time: Instant| time.as_picos() / tick.as_picos();
        let bounds = self.settings.rto_bounds();
        self.rtt.sample_ticks(at(now) - at(sent), tick, &bounds);
    }

    pub(crate) fn take_rtt(&mut self, sample: Duration) {
        if !sample.is_zero() {
            self.rtt.sample(sample, &self.settings.rto_bounds());
            if self.probing != Probing::Free {
                self.note_measured();
            }
        }
    }
}
