//! ICMP reports of packets that were too big.

use anabranch_core::{body::Body, units::Instant};

use std::sync::Arc;

use super::{Endpoint, handshake::LEAST_MSS};
use crate::state::State;
use anabranch_wire::segment::{HEADERS, TIMESTAMPS_SIZE};

impl<B: Body> Endpoint<B> {
    /// A router could not forward the segment with the number `seq`, because a packet may have at
    /// most `mtu` bytes there: ICMP "fragmentation needed" (RFC 1191), ICMPv6 "packet too big" (RFC
    /// 8201). Returns whether segments are smaller from now on.
    pub fn on_packet_too_big(&mut self, now: Instant, seq: u32, mtu: u32) -> bool {
        let synchronized = !matches!(
            self.state,
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait
        );
        if self.state == State::SynSent {
            return self.on_syn_too_big(seq, mtu);
        }
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

    /// A router could not forward our SYN because of its data: retransmits it without data (RFC 7413
    /// §4.2.1), with the MSS of the path.
    fn on_syn_too_big(&mut self, seq: u32, mtu: u32) -> bool {
        let is_ours = self.snd.peer.una().wire() == seq;
        let stamps = if self.settings.timestamps {
            TIMESTAMPS_SIZE
        } else {
            0
        };
        let most = mtu.saturating_sub(HEADERS + stamps);
        if !is_ours || self.carried() == 0 || most >= self.settings.mss || most < LEAST_MSS {
            return false;
        }
        Arc::make_mut(&mut self.settings).mss = most;
        self.want_syn();
        self.snd.wake = true;
        true
    }
}
