//! The hot path of acknowledgments during the repair of losses: see [`super::hot`].

use anabranch_core::{body::Body, packet::PacketId, trace::Fate, units::Instant};
use anabranch_wire::Transport;

use super::{
    Network,
    agent::{AgentSlot, End},
};

impl<B: Body> AgentSlot<B> {
    /// Whether the end is ours and has data beyond a gap: the next segment may deliver more than its
    /// own octets.
    pub(super) fn has_gaps(&self) -> bool {
        matches!(&self.end, End::Tcp(endpoint, _) if endpoint.has_gaps())
    }
}

impl<B: Body> Network<B> {
    /// Passes an acknowledgment that arrives at `at`, and that [`Self::acknowledge`] has left, to the
    /// hot sender of the connection at `place`: `reach_any_end`. Returns `false` if it is left to
    /// that.
    #[inline(never)]
    pub(super) fn acknowledge_otherwise(
        &mut self,
        place: usize,
        id: PacketId,
        at: Instant,
    ) -> bool {
        let index = place * 2;
        let Self { fabric, agents, .. } = self;
        let slot = &mut agents[index];
        let packet = &mut fabric.pool[id];
        let (End::Tcp(endpoint, _), Transport::Tcp(segment)) = (&mut slot.end, &packet.payload)
        else {
            return false;
        };
        if !endpoint.hot_other_ack(at, segment, packet.ecn) {
            return false;
        }
        fabric
            .probe
            .observe(at, slot.element, packet, Fate::Received);
        fabric.free(id);
        let now = std::mem::replace(&mut fabric.now, at);
        self.after_agent(index);
        self.fabric.now = now;
        true
    }
}
