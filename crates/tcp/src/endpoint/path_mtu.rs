//! What routers report of packets of ours.

use anabranch_core::{body::Body, units::Instant};

use super::Endpoint;
use crate::state::State;

impl<B: Body> Endpoint<B> {
    /// A router answers that it could not pass the segment with the number `seq` on, because a packet may have at most `mtu`
    /// bytes there: ICMP "fragmentation needed" (RFC 1191), ICMPv6 "packet too big" (RFC 8201). Whether segments are smaller
    /// from here on.
    pub fn on_packet_too_big(&mut self, now: Instant, seq: u32, mtu: u32) -> bool {
        let synchronized = !matches!(
            self.state,
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait
        );
        if !synchronized {
            return false;
        }
        let start = self.snd.peer.una().near(seq);
        let lowered = self.snd.on_packet_too_big(now, start, mtu);
        if lowered {
            // What is added to a segment of ours has no more room than this.
            self.rcv.smss = self.rcv.smss.min(self.snd.smss);
        }
        lowered
    }
}
