//! The pipe of the first TCP with SACK (Fall and Floyd, "Simulation-based comparisons of Tahoe,
//! Reno, and SACK TCP", CCR 26 (3), 1996, §3.4): a count of segments, without a decision for each.
//!
//! When a recovery begins, the pipe is the outstanding data minus the duplicate acknowledgments
//! that triggered it. A duplicate removes one segment from the pipe; a partial acknowledgment
//! removes two (the retransmission and the segment it replaces). Each transmission adds to it. A
//! segment may be sent while the pipe is smaller than cwnd; the next hole below the highest SACKed
//! octet goes before new data.
//!
//! A lost segment leaves this pipe only by the partial acknowledgment that fills its hole. After
//! many losses a recovery therefore starts to send later than by RFC 6675, and then sends two
//! segments per acknowledgment.
//!
//! # Differs from Linux
//! - Linux judges each segment, and spreads the reduction over the recovery.
//!
//! # Not implemented
//! - Nothing of the paper's pipe.

use super::pace::RecoveryAck;

/// The pipe of one recovery, in octets.
#[derive(Debug, Clone, Copy)]
pub struct CountedPipe {
    pipe: u64,
    smss: u64,
}

impl CountedPipe {
    /// Begins a recovery with `outstanding` octets unacknowledged, after `dupthresh` duplicates.
    #[must_use]
    pub fn new(outstanding: u64, dupthresh: u32, smss: u32) -> Self {
        let smss = u64::from(smss);
        Self {
            pipe: outstanding.saturating_sub(u64::from(dupthresh) * smss),
            smss,
        }
    }

    /// Processes an acknowledgment.
    pub const fn on_ack(&mut self, ack: &RecoveryAck) {
        if ack.begins {
            return;
        }
        let segments = if ack.advances { 2 } else { 1 };
        self.pipe = self.pipe.saturating_sub(segments * self.smss);
    }

    /// Records the transmission of `len` octets.
    pub const fn on_sent(&mut self, len: u32) {
        self.pipe += len as u64;
    }

    /// Octets that may be sent with a window of `cwnd`, in whole segments.
    #[must_use]
    pub const fn room(&self, cwnd: u64) -> u64 {
        let room = cwnd.saturating_sub(self.pipe);
        room.div_ceil(self.smss).saturating_mul(self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::prr::Progress;

    fn ack(begins: bool, advances: bool) -> RecoveryAck {
        RecoveryAck {
            progress: Progress {
                delivered: 1000,
                in_flight: 0,
                safe: false,
            },
            advances,
            begins,
        }
    }

    /// Measured in ns-2.35: one loss, 49 segments outstanding at the third duplicate, cwnd then
    /// 23.87. The 24th duplicate after it is the first that allows a segment; each later one allows
    /// another.
    #[test]
    fn one_loss_waits_for_half_of_the_duplicates() {
        let mut pipe = CountedPipe::new(49_000, 3, 1000);
        pipe.on_ack(&ack(true, false));
        pipe.on_sent(1000);
        for duplicate in 1..=30 {
            pipe.on_ack(&ack(false, false));
            let leaves = pipe.room(23_870) > 0;
            assert_eq!(leaves, duplicate >= 24, "{duplicate}");
            if leaves {
                pipe.on_sent(1000);
                assert_eq!(pipe.room(23_870), 0);
            }
        }
    }

    #[test]
    fn a_partial_acknowledgment_makes_room_for_two() {
        let mut pipe = CountedPipe::new(13_000, 3, 1000);
        assert_eq!(pipe.room(10_000), 0);
        pipe.on_ack(&ack(false, true));
        assert_eq!(pipe.room(10_000), 2000);
    }
}
