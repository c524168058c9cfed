//! Window inflation of fast recovery without SACK (RFC 5681 §3.2, RFC 6582 §3.2).
//!
//! # Differs from Linux
//! - Linux counts deliveries by duplicates and sends by its estimate of the data in flight, as
//!   [`counted_deliveries`](super::counted_deliveries) does; here the window is inflated and
//!   deflated as RFC 6582 specifies.
//!
//! # Not implemented
//! - The acknowledgment and timestamp heuristics of RFC 6582 §4.1 and §4.2.

use super::RecoveryState;

impl RecoveryState {
    /// RFC 5681 §3.2 step 3: adds one segment per duplicate, because that segment has left the
    /// network.
    pub const fn inflate_at_entry(&mut self, smss: u32) {
        self.inflation = (self.dup_acks as u64 * smss as u64).cast_signed();
    }
    /// RFC 5681 §3.2 step 4: adds one segment for this duplicate.
    pub const fn inflate(&mut self, smss: u32) {
        self.inflation += smss as i64;
    }
    /// RFC 6582 §3.2 step 3: a partial acknowledgment of `acked` octets.
    pub const fn deflate(&mut self, acked: u64, smss: u32) {
        self.inflation -= acked.cast_signed();
        if acked >= smss as u64 {
            self.inflation += smss as i64;
        }
        self.partial_acks = self.partial_acks.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::seq::Seq;

    #[test]
    fn rfc_6582_window() {
        let smss = 1000;
        let mut state = RecoveryState::new(Seq::first(0));
        state.dup_acks = 3;
        state.enter(Seq::first(20_000));
        state.inflate_at_entry(smss);
        assert_eq!(state.window(10_000, smss), 13_000);
        for _ in 0..16 {
            state.inflate(smss);
        }
        assert_eq!(state.window(10_000, smss), 29_000);
        // A partial acknowledgment of five segments: less five, plus one.
        state.deflate(5_000, smss);
        assert_eq!(state.window(10_000, smss), 25_000);
        // A partial acknowledgment of less than a segment adds none back.
        state.deflate(400, smss);
        assert_eq!(state.window(10_000, smss), 24_600);
        state.open();
        assert_eq!(state.window(10_000, smss), 10_000);
    }

    #[test]
    fn the_window_never_closes() {
        let mut state = RecoveryState::new(Seq::first(0));
        state.deflate(1_000_000, 1000);
        assert_eq!(state.window(10_000, 1000), 1000);
    }
}
