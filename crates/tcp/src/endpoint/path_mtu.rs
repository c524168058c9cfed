//! ICMP reports of packets that were too big.

use anabranch_core::{body::Body, units::Instant};

use super::Endpoint;
use crate::state::State;

impl<B: Body> Endpoint<B> {
    /// A router could not forward the segment with the number `seq`, because a packet may have at
    /// most `mtu` bytes there: ICMP "fragmentation needed" (RFC 1191), ICMPv6 "packet too big" (RFC
    /// 8201). Returns whether segments are smaller from now on.
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
            // Options added to a segment of ours have no more room than this.
            self.rcv.smss = self.rcv.smss.min(self.snd.smss);
        }
        lowered
    }
}
