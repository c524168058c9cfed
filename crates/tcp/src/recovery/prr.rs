//! Proportional rate reduction (RFC 9937, formerly RFC 6937): during fast recovery the window
//! shrinks to ssthresh in proportion to the data delivered.
//!
//! The congestion control sets ssthresh and its cwnd when the recovery begins. This state limits
//! transmission until the recovery ends.
//!
//! # Differs from RFC 9937
//! - The send quota is rounded up to whole segments, because the sender sends no others.
//! - RecoverFS is cwnd if reductions are computed from cwnd, as in Linux.
//!
//! # Not implemented
//! - Nothing of RFC 9937 §6.

/// The state of one recovery, in octets.
#[derive(Debug, Clone, Copy)]
pub struct Prr {
    /// RecoverFS
    recover_fs: u64,
    ssthresh: u64,
    /// prr_delivered
    delivered: u64,
    /// prr_out
    out: u64,
    /// cwnd until the next acknowledgment.
    cwnd: u64,
    smss: u64,
}

/// Delivery information of an acknowledgment.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// DeliveredData
    pub delivered: u64,
    /// In flight after it.
    pub in_flight: u64,
    /// SafeACK: it acknowledges new data and shows no further loss.
    pub safe: bool,
}

impl Prr {
    /// Begins a recovery. `recover_fs` is the data in flight plus the data delivered by the
    /// acknowledgment that begins it, or cwnd before the reduction. `cwnd` applies until
    /// [`Self::on_ack`].
    #[must_use]
    pub fn new(recover_fs: u64, ssthresh: u64, cwnd: u64, smss: u32) -> Self {
        Self {
            recover_fs: recover_fs.max(1),
            ssthresh,
            delivered: 0,
            out: 0,
            cwnd,
            smss: u64::from(smss),
        }
    }

    /// Processes an acknowledgment of this recovery. The first is the acknowledgment that begins
    /// it.
    pub fn on_ack(&mut self, progress: &Progress) {
        if progress.delivered == 0 {
            return;
        }
        self.delivered = self.delivered.saturating_add(progress.delivered);
        let mut count = if progress.in_flight > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            let share = share.div_ceil(u128::from(self.recover_fs));
            let share = u64::try_from(share).unwrap_or(u64::MAX);
            self.whole(share).saturating_sub(self.out)
        } else {
            // The conservative reduction bound, and the slow start bound after a SafeACK.
            let mut count = self
                .delivered
                .saturating_sub(self.out)
                .max(progress.delivered);
            if progress.safe {
                count += self.smss;
            }
            count.min(self.ssthresh - progress.in_flight)
        };
        if self.out == 0 && count == 0 {
            // The retransmission that begins a recovery.
            count = self.smss;
        }
        self.cwnd = progress.in_flight + count;
    }

    /// Records the transmission of `len` octets.
    pub const fn on_sent(&mut self, len: u32) {
        self.out += len as u64;
    }

    /// Limits the data in flight to `cwnd` until the next acknowledgment.
    pub const fn limit(&mut self, cwnd: u64) {
        if cwnd < self.cwnd {
            self.cwnd = cwnd;
        }
    }

    /// Octets that may be in flight now.
    #[must_use]
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    const fn whole(&self, octets: u64) -> u64 {
        octets.div_ceil(self.smss).saturating_mul(self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1000;

    /// Segments sent after each of `acks`, and the data in flight after the last.
    fn sent(prr: &mut Prr, mut pipe: u64, acks: u32, safe: bool) -> (Vec<u64>, u64) {
        let mut out = Vec::new();
        for _ in 0..acks {
            pipe -= SMSS;
            prr.on_ack(&Progress {
                delivered: SMSS,
                in_flight: pipe,
                safe,
            });
            let mut n = 0;
            while pipe + SMSS <= prr.cwnd() {
                prr.on_sent(1000);
                pipe += SMSS;
                n += 1;
            }
            out.push(n);
        }
        (out, pipe)
    }

    /// The first example of RFC 6937 §4: one loss of twenty, half of the window kept. The sender
    /// sends one segment per two acknowledgments, and the pipe ends at ssthresh.
    #[test]
    fn one_loss_halves_the_rate_evenly() {
        // Nineteen others are in flight. This acknowledgment SACKs one of them; earlier ones SACKed
        // two, in exchange for which two new segments were sent.
        let mut prr = Prr::new(20 * SMSS, 10 * SMSS, 0, 1000);
        let (out, pipe) = sent(&mut prr, 20 * SMSS, 20, false);
        assert_eq!(out[..18], [1, 0].repeat(9));
        assert_eq!(pipe, 10 * SMSS);
    }

    /// The second example: fifteen losses of twenty. Below ssthresh the sender sends the amount of
    /// data delivered, plus one segment for each SafeACK.
    #[test]
    fn below_ssthresh_the_delivered_amount_is_sent() {
        let mut prr = Prr::new(20 * SMSS, 10 * SMSS, 0, 1000);
        let (out, pipe) = sent(&mut prr, 5 * SMSS, 4, false);
        assert_eq!((out, pipe), (vec![1; 4], 5 * SMSS));
        let (out, pipe) = sent(&mut prr, pipe, 8, true);
        assert_eq!(out, [2, 2, 2, 2, 2, 1, 1, 1]);
        assert_eq!(pipe, 10 * SMSS);
    }

    #[test]
    fn unused_quota_may_be_sent_later_up_to_ssthresh() {
        let mut prr = Prr::new(20 * SMSS, 10 * SMSS, 0, 1000);
        for pipe in [8, 6, 4] {
            prr.on_ack(&Progress {
                delivered: 2 * SMSS,
                in_flight: pipe * SMSS,
                safe: false,
            });
        }
        // Six were delivered and none sent: six may be sent, and ssthresh would permit that.
        assert_eq!(prr.cwnd(), 10 * SMSS);
    }

    #[test]
    fn the_first_retransmission_leaves_whatever_the_pipe() {
        let mut prr = Prr::new(20 * SMSS, 10 * SMSS, 0, 1000);
        prr.on_ack(&Progress {
            delivered: 1,
            in_flight: 10 * SMSS,
            safe: false,
        });
        assert_eq!(prr.cwnd(), 11 * SMSS);
        let before = prr.cwnd();
        prr.on_ack(&Progress {
            delivered: 0,
            in_flight: 0,
            safe: true,
        });
        assert_eq!(prr.cwnd(), before);
    }
}
