//! Giving up (RFC 9293 §3.8.3): after a number of timeouts (R2 as a count), or after the time that they take (R2 as a
//! time).
//!
//! # Differs from Linux
//! - A closed socket with data or a FIN outstanding is given up like an open one; `tcp_orphan_retries` is not modelled.

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Ending, Endpoint, handshake::Opening};
use crate::{
    rtt::RttEstimator,
    settings::Settings,
    state::{Event, State},
};

/// More retries than this are as many as this.
const MOST_RETRIES: u32 = u16::MAX as u32 - 1;

/// How long `retries` timeouts and the one that gives up take together, the first of which is `base` and each twice
/// the last, up to `max_rto`; counted from the end of the first, with which the first retransmission leaves.
fn patience(base: Duration, max_rto: Duration, retries: u32) -> Duration {
    let (mut sum, mut rto, mut left) = (0_u64, base, retries);
    while left > 0 && rto < max_rto {
        rto = rto.saturating_mul(2).min(max_rto);
        sum = sum.saturating_add(rto.as_picos());
        left -= 1;
    }
    let rest = max_rto.saturating_mul(u64::from(left));
    Duration::from_picos(sum.saturating_add(rest.as_picos()))
}

/// What is known of a connection that gets no answer, is reset or resets.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    pub(super) opening: Opening,
    /// When the retransmission timer expired first since the last progress.
    retransmitting_since: Instant,
    /// Window probes since anything came.
    pub(super) unanswered: u16,
    /// How the connection ended other than by FIN, and when.
    pub(super) ended: Option<(Ending, Instant)>,
    /// A reset to send: its number, and what it acknowledges.
    pub(super) reset: Option<(u32, Option<u32>)>,
}

impl<B: Body> Endpoint<B> {
    /// The retransmission timer has expired, [`Self::expiries`] times since the last progress. Whether that ends the
    /// attempt.
    pub(super) fn gives_up(&mut self, now: Instant) -> bool {
        let open = !matches!(self.state, State::SynSent | State::SynReceived);
        if open && let Some(base_rto) = self.settings.timers.retries_base_rto() {
            return self.is_out_of_patience(now, base_rto);
        }
        u32::from(self.expiries) > self.most_retries()
    }

    /// Whether the next expiry of the retransmission timer ends the attempt, where expiries are counted.
    pub(super) fn has_no_retry_left(&self) -> bool {
        u32::from(self.expiries) >= self.most_retries()
    }

    /// R2 as a count.
    fn most_retries(&self) -> u32 {
        let s = &self.settings;
        let most = match self.state {
            State::SynSent => s.syn_retries.saturating_add(s.timers.syn_linear_timeouts()),
            State::SynReceived if self.cold.passive => s.syn_ack_retries,
            State::SynReceived => s.syn_retries,
            _ => s.retries,
        };
        most.min(MOST_RETRIES)
    }

    /// R2 as a time: Linux compares the time since the first retransmission, not the number of timeouts.
    fn is_out_of_patience(&mut self, now: Instant, base_rto: Duration) -> bool {
        let trouble = self.cold.trouble();
        if self.expiries <= 1 {
            trouble.retransmitting_since = now;
        }
        let since = trouble.retransmitting_since;
        let Settings {
            max_rto, retries, ..
        } = *self.settings;
        now.saturating_since(since) >= patience(base_rto, max_rto, retries)
    }

    /// Ends the connection; a listener waits for the next SYN.
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.state == State::SynReceived && self.cold.passive {
            self.listen_again();
        } else {
            self.end(Ending::TimedOut, now);
        }
    }

    /// RFC 9293 §3.10.7.4: a connection that was opened passively and does not open returns to LISTEN.
    pub(super) fn listen_again(&mut self) {
        self.transit(Event::PassiveReset);
        self.stop();
        self.snd.board = super::Scoreboard::default();
        self.snd.nxt = self.snd.una;
        self.expiries = 0;
        self.snd.rtt = RttEstimator::new(self.settings.initial_rto);
        self.cold.trouble().opening = Opening::default();
        self.agreed.scaling = false;
        (self.agreed.snd_scale, self.agreed.rcv_scale) = (0, 0);
        self.rcv.window = self.settings.first_receive_window();
    }

    /// What came in answer ends the count of probes.
    #[cold]
    pub(super) fn note_probe_answered(&mut self) {
        if let Some(trouble) = &mut self.cold.trouble {
            trouble.unanswered = 0;
        }
    }

    /// A probe of a closed window is due. Whether as many have gone unanswered as the connection lasts: only answers
    /// keep it open (RFC 9293 §3.8.6.1).
    pub(super) fn gives_up_probing(&mut self) -> bool {
        let most = self.settings.retries.min(MOST_RETRIES);
        let trouble = self.cold.trouble();
        let over = u32::from(trouble.unanswered) >= most;
        trouble.unanswered = trouble.unanswered.saturating_add(1);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// `tcp_retries2` = 15 stands for 924.6 s from the first transmission (ip-sysctl).
    #[test]
    fn fifteen_retries_from_200_ms_take_924_s() {
        let whole = |retries| ms(200) + patience(ms(200), Duration::from_secs(120), retries);
        assert_eq!(whole(15), ms(924_600));
        assert_eq!(whole(8), ms(102_200));
        assert_eq!(whole(5), ms(12_600));
        assert_eq!(whole(0), ms(200));
    }

    #[test]
    fn patience_without_bound_does_not_overflow() {
        let long = patience(ms(200), Duration::from_secs(120), u32::MAX);
        assert!(long > Duration::from_secs(1_000_000));
        assert_eq!(patience(ms(200), ms(200), 3), ms(600));
    }
}
