//! Rate halving, used by Linux before PRR (Mathis, Semke and Mahdavi,
//! draft-mathis-tcp-ratehalving-00, 1999): one segment is sent per two acknowledgments.
//!
//! cwnd shrinks by one segment with every second acknowledgment until it has reached ssthresh. It
//! never exceeds the data in flight by more than a segment. Many losses at once, or a sender
//! without data, therefore leave a window far below ssthresh, from which slow start continues. PRR
//! corrects this (RFC 6937 §1).
//!
//! # Differs from Linux
//! - The data in flight is the pipe of RFC 6675.
//!
//! # Not implemented
//! - The draft's bounding parameters and its adjustment interval: the recovery ends as in RFC 6675.

use super::pace::RecoveryAck;

/// The state of one recovery, in octets.
#[derive(Debug, Clone, Copy)]
pub struct RateHalving {
    cwnd: u64,
    ssthresh: u64,
    smss: u64,
    /// The next acknowledgment is the second of a pair.
    second: bool,
}

impl RateHalving {
    /// Begins a recovery with `outstanding` octets to be accounted for.
    #[must_use]
    pub fn new(outstanding: u64, ssthresh: u64, smss: u32) -> Self {
        Self {
            cwnd: outstanding,
            ssthresh,
            smss: u64::from(smss),
            second: false,
        }
    }

    /// Processes an acknowledgment of this recovery. The first is the acknowledgment that begins
    /// it.
    pub fn on_ack(&mut self, ack: &RecoveryAck) {
        if ack.progress.delivered == 0 {
            return;
        }
        if self.second && self.cwnd > self.ssthresh {
            self.cwnd = (self.cwnd - self.smss.min(self.cwnd)).max(self.ssthresh);
        }
        self.second = !self.second;
        self.limit(ack.progress.in_flight + self.smss);
    }

    /// Limits the data in flight to `cwnd` until the next acknowledgment.
    pub const fn limit(&mut self, cwnd: u64) {
        if cwnd < self.cwnd {
            self.cwnd = cwnd;
        }
    }

    /// Octets that may be in flight now, and the window at the end of the recovery.
    #[must_use]
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::prr::Progress;

    fn run(halving: &mut RateHalving, pipe: &mut u64, acks: u32) -> u32 {
        let mut sent = 0;
        for _ in 0..acks {
            *pipe -= 1000;
            halving.on_ack(&RecoveryAck {
                progress: Progress {
                    delivered: 1000,
                    in_flight: *pipe,
                    safe: true,
                },
                advances: false,
                begins: false,
            });
            while *pipe + 1000 <= halving.cwnd() {
                *pipe += 1000;
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn one_segment_leaves_for_two_acknowledgments() {
        let mut halving = RateHalving::new(20_000, 10_000, 1000);
        let mut pipe = 20_000;
        assert_eq!(run(&mut halving, &mut pipe, 20), 10);
        assert_eq!((pipe, halving.cwnd()), (10_000, 10_000));
        // Then one segment per acknowledgment.
        assert_eq!(run(&mut halving, &mut pipe, 10), 10);
        assert_eq!((pipe, halving.cwnd()), (10_000, 10_000));
    }

    /// Fifteen of twenty are lost: the window ends at the little data that was in flight.
    #[test]
    fn many_losses_leave_less_than_half() {
        let mut halving = RateHalving::new(20_000, 10_000, 1000);
        let mut pipe = 5_000;
        run(&mut halving, &mut pipe, 5);
        assert_eq!(halving.cwnd(), 5_000);
    }
}
