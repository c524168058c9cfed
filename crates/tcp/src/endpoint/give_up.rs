//! Giving up (RFC 9293 §3.8.3): after a number of timeouts (R2 as a count), or after the time of
//! that number of timeouts (R2 as a time).
//!
//! # Differs from Linux
//! - A closed socket with data or a FIN outstanding is given up like an open one;
//!   `tcp_orphan_retries` is not modelled.

use anabranch_core::{body::Body, units::Instant};

use super::{Ending, Endpoint, handshake::Opening};
use crate::{
    retries::{MOST_RETRIES, Retries},
    rtt::RttEstimator,
    state::{Event, State},
};

/// State of a connection without answers, or with a reset received or to be sent.
#[derive(Debug, Default)]
pub(super) struct Failure {
    pub(super) opening: Opening,
    /// Cause and time of an end other than by FIN.
    pub(super) ended: Option<(Ending, Instant)>,
    /// A reset to send: its number, the number it acknowledges, and whether it has a timestamp.
    pub(super) reset: Option<(u32, Option<u32>, bool)>,
}

impl<B: Body> Endpoint<B> {
    /// Whether the next expiry of the retransmission timer ends the attempt, if expiries are
    /// counted.
    pub(super) fn has_no_retry_left(&self) -> bool {
        u32::from(self.snd.recovery.retries.expiries()) >= self.most_retries()
    }

    /// R2 as a count.
    fn most_retries(&self) -> u32 {
        let s = &self.settings;
        let most = match self.state {
            State::SynReceived if self.cold.passive => s.syn_ack_retries,
            State::SynSent | State::SynReceived => s.syn_retries,
            _ => s.retries,
        };
        most.min(MOST_RETRIES)
    }

    /// Ends the connection; a listener waits for the next SYN.
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.state == State::SynReceived && self.cold.passive && !self.is_early() {
            self.listen_again();
        } else {
            self.end(Ending::TimedOut, now);
        }
    }

    /// An ICMP error about our SYN-ACK: a listener waits for the next SYN (RFC 5461 §4.1).
    pub fn drop_request(&mut self) {
        if self.state == State::SynReceived && self.cold.passive && !self.is_early() {
            self.listen_again();
        }
    }

    /// RFC 9293 §3.10.7.4: a connection that was opened passively and does not open returns to
    /// LISTEN.
    pub(super) fn listen_again(&mut self) {
        self.transit(Event::PassiveReset);
        self.stop();
        self.snd.recovery.discard();
        self.snd.nxt = self.snd.peer.una();
        self.snd.recovery.retries = Retries::new();
        self.snd.rtt = RttEstimator::new(self.settings.initial_rto);
        self.cold.failure().opening = Opening::default();
        self.rcv.agreed.scaling = false;
        self.snd.peer.set_shift(0);
        self.rcv.agreed.scale = 0;
        self.rcv.window = self.settings.first_receive_window();
    }
}
