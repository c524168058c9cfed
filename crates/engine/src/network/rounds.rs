//! Synchronized clients: the next round begins when each of them has its response.

use anabranch_core::{body::Body, units::Duration};
use anabranch_scenario::workload::RequestResponse;

use super::{App, Network};

/// The clients of one flow's copies.
#[derive(Debug)]
pub(super) struct Round {
    /// Their connections.
    members: Vec<u32>,
    /// The number of clients with the response of this round.
    answered: usize,
    response: u64,
    think: Duration,
}

impl Round {
    pub(super) fn new(what: &RequestResponse) -> Self {
        Self {
            members: Vec::new(),
            answered: 0,
            response: what.response.get(),
            think: what.think,
        }
    }
    pub(super) fn join(&mut self, connection: u32) {
        self.members.push(connection);
    }
}

impl<B: Body> Network<B> {
    /// Records that a client of a round has its response.
    #[cold]
    pub(super) fn response_is_complete(&mut self, round: u32) {
        let round = &mut self.rounds[round as usize];
        round.answered += 1;
        if round.answered < round.members.len() {
            return;
        }
        round.answered = 0;
        let at = self.fabric.now.saturating_add(round.think);
        for &connection in &round.members {
            let conn = &mut self.connections[connection as usize];
            conn.size = conn.size.saturating_add(round.response);
            // The client is the far end of the flow.
            let index = connection as usize * 2 + 1;
            let slot = &mut self.agents[index];
            if let Some((_, App::Scripted(script))) = slot.end.tcp_mut() {
                script.release(at);
                slot.start = at;
                slot.arm_timer(index, &mut self.fabric);
            }
        }
    }
}
