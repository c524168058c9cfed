//! What the congestion control learns of an acknowledgment, and by how much its window may grow.

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::{Sender, acknowledgment::News};
use crate::send_limit::SendLimit;
use anabranch_congestion::{Ack, CongestionControl};

impl<B: Body> Sender<B> {
    /// Something that this acknowledges left before cwnd last held data back.
    #[inline]
    pub(super) fn is_cwnd_limited(&mut self, now: Instant, acked: u64) -> bool {
        !self.settings.cwnd_validation
            || self.peer.una() < self.cwnd_limited_until.saturating_add(acked)
            || (self.validating && self.validate(now))
            || self.is_half_full()
    }

    /// In slow start, more than half of the window was outstanding at once
    /// ([`WindowRules::grow_half_full`](crate::policy::WindowRules::grow_half_full)). A control that sends by a model of the
    /// path has no slow start.
    fn is_half_full(&self) -> bool {
        let Some(extras) = self.cold.extras.as_ref().filter(|_| !self.rated) else {
            return false;
        };
        let cwnd = self.control.cwnd();
        cwnd.get() < 2 * extras.unfilled.most
            && self
                .control
                .ssthresh()
                .is_none_or(|ssthresh| cwnd < ssthresh)
    }

    pub(super) fn tell_control(
        &mut self,
        now: Instant,
        news: &News,
        was_recovering: bool,
        ce_marked: bool,
    ) {
        self.forget_train();
        let delivered = news.delivered;
        let rtt = delivered
            .timed()
            .map(|once| now.saturating_since(once.last_sent_at));
        let rate = if self.rated {
            let mut rate = self.rate_sample(now, delivered.fresh, delivered.latest);
            let lost = self.report_losses(now);
            if let Some(rate) = &mut rate {
                rate.lost += lost;
            }
            rate
        } else {
            None
        };
        let acked = if self.settings.window_rules.grow_by_delivered() {
            self.growth(news)
        } else {
            news.acked - delivered.control_bits
        };
        let marked = if ce_marked {
            self.take_marked(acked + delivered.sacked)
        } else {
            0
        };
        // RFC 3168 §6.1.2: an echo lets nothing grow.
        let cwnd_limited =
            self.is_cwnd_limited(now, news.acked) && (!ce_marked || self.marks_are_exact());
        self.control.on_ack(&Ack {
            now,
            acked: Bytes::new(acked),
            sacked: Bytes::new(delivered.sacked),
            delivered: Bytes::new(delivered.fresh.saturating_sub(delivered.control_bits)),
            lost: Bytes::new(news.lost),
            ce_marked: Bytes::new(marked),
            prior_in_flight: Bytes::new(news.prior_in_flight),
            in_flight: Bytes::new(self.board.in_flight()),
            rtt,
            rtt_by_timestamp: news.rtt_by_timestamp,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate,
            round: self.round,
            cwnd_limited,
            app_limited: self.limit == SendLimit::Application,
            in_recovery: was_recovering || self.recovery.phase.reduces(),
        });
    }

    /// The octets of an acknowledgment by which a window may grow
    /// ([`WindowRules::grow_by_delivered`](crate::policy::WindowRules::grow_by_delivered)).
    pub(super) fn growth(&self, news: &News) -> u64 {
        let fresh = news.delivered.fresh - news.delivered.control_bits;
        if !self.agreed.guided {
            // Duplicates before it told of a segment each; at least one fills the gap.
            let told = u64::from(news.prior_dup_acks) * u64::from(self.smss);
            return fresh
                .saturating_sub(told)
                .max(fresh.min(u64::from(self.smss)));
        }
        let reorders = self.dupthresh() > self.settings.dupthresh;
        // What arrived although it was retransmitted has been delivered as well.
        let again = news
            .duplicate
            .filter(|_| reorders)
            .map_or(0, |(left, right)| {
                right.since(left).min(u64::from(self.smss))
            });
        if news.acked > 0 || reorders {
            fresh + again
        } else {
            0
        }
    }
}
