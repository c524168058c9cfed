//! Rate halving, Linux's pace in a recovery before PRR (Mathis, Semke and Mahdavi,
//! draft-mathis-tcp-ratehalving-00, 1999): a segment leaves for every second acknowledgment.
//!
//! cwnd shrinks by a segment with every second acknowledgment until it has reached ssthresh, and is
//! never more than a segment above what is in flight. So many losses at once, or a sender with
//! nothing to send, leave a window far below ssthresh, from which slow start goes on: what PRR was
//! made to mend (RFC 6937 §1).
//!
//! # Differs from Linux
//! - What is in flight is RFC 6675's.
//!
//! # Not implemented
//! - The draft's bounding parameters and its adjustment interval: the recovery ends as RFC 6675 has it.

use super::pace::RecoveryAck;

/// The state of one recovery, in octets.
#[derive(Debug, Clone, Copy)]
pub struct RateHalving {
    cwnd: u64,
    ssthresh: u64,
    smss: u64,
    /// The next acknowledgment is a second one.
    second: bool,
}

impl RateHalving {
    /// A recovery begins with `outstanding` octets to be accounted for.
    #[must_use]
    pub fn new(outstanding: u64, ssthresh: u64, smss: u32) -> Self {
        Self {
            cwnd: outstanding,
            ssthresh,
            smss: u64::from(smss),
            second: false,
        }
    }

    /// An acknowledgment of this recovery, the one that begins it included.
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

    /// No more than `cwnd` may be in flight until the next acknowledgment.
    pub const fn limit(&mut self, cwnd: u64) {
        if cwnd < self.cwnd {
            self.cwnd = cwnd;
        }
    }

    /// What may be in flight now, and what the recovery leaves.
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
        // From then on one for each.
        assert_eq!(run(&mut halving, &mut pipe, 10), 10);
        assert_eq!((pipe, halving.cwnd()), (10_000, 10_000));
    }

    /// Fifteen of twenty are lost: the window ends at what little was in flight.
    #[test]
    fn many_losses_leave_less_than_half() {
        let mut halving = RateHalving::new(20_000, 10_000, 1000);
        let mut pipe = 5_000;
        run(&mut halving, &mut pipe, 5);
        assert_eq!(halving.cwnd(), 5_000);
    }
}
