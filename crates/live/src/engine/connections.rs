//! Which connection a packet is of, as queues and gateways tell them apart: by protocol, addresses and ports.
//!
//! A flow of transfers and a program have many connections over one flow. The simulator numbers them as they begin, and never gives
//! a number twice; so is it here.

use std::collections::HashMap;

use anabranch_core::packet::{ConnectionId, FlowId};

use crate::plan::frame::Conversation;

/// So many connections are remembered at least: the last of which anything was seen. That is more than a host has ports.
const REMEMBERED: usize = 1 << 16;

/// A connection that has been seen.
#[derive(Debug, Clone, Copy)]
struct Seen {
    connection: ConnectionId,
    /// The number of the SYN that opened it, if it was seen.
    opened: Option<u32>,
}

/// The connections of a run. They are forgotten once [`REMEMBERED`] others have been seen since; those that have ended sooner, where
/// their ports are used again.
#[derive(Debug)]
pub struct Connections {
    /// Of each flow, the number that its packets have without any of these; `None` once a connection has taken it.
    first: Vec<Option<ConnectionId>>,
    recent: HashMap<(FlowId, Conversation), Seen>,
    /// Seen before `recent` was begun, and not since.
    before: HashMap<(FlowId, Conversation), Seen>,
    most: usize,
}

impl Connections {
    /// None yet. `first` has the numbers of the flows, each of which its first connection takes.
    pub fn new(first: Vec<ConnectionId>) -> Self {
        Self {
            first: first.into_iter().map(Some).collect(),
            recent: HashMap::new(),
            before: HashMap::new(),
            most: REMEMBERED,
        }
    }

    /// The number of a packet's connection; `next` makes one that nobody has. `opens`: the number of a SYN that asks for a
    /// connection. Another than before begins a new one on the same ports; the same is one retransmitted.
    pub fn of(
        &mut self,
        flow: FlowId,
        conversation: Conversation,
        opens: Option<u32>,
        next: impl FnOnce() -> ConnectionId,
    ) -> ConnectionId {
        let key = (flow, conversation);
        let known = self.recent.get(&key).or_else(|| self.before.get(&key));
        let is_same = |seen: &&Seen| opens.is_none() || seen.opened == opens;
        let seen = known.filter(is_same).copied().unwrap_or_else(|| Seen {
            connection: self.first[flow.0 as usize].take().unwrap_or_else(next),
            opened: opens,
        });
        if self.recent.len() >= self.most && !self.recent.contains_key(&key) {
            self.before = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, seen);
        seen.connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(1);

    fn conversation(port: u16) -> Conversation {
        Conversation::of(6, [(&[10, 0, 0, 1], port), (&[10, 0, 0, 2], 80)])
    }

    /// Numbers its connections from 7 on.
    struct Numbered {
        connections: Connections,
        next: u32,
    }

    impl Numbered {
        fn new(most: usize) -> Self {
            let mut connections = Connections::new([0, 1].map(ConnectionId).to_vec());
            connections.most = most;
            Self {
                connections,
                next: 7,
            }
        }
        fn of(&mut self, conversation: Conversation, opens: Option<u32>) -> u32 {
            let found = self.connections.of(FLOW, conversation, opens, || {
                self.next += 1;
                ConnectionId(self.next - 1)
            });
            found.0
        }
    }

    #[test]
    fn connections_are_told_by_their_ports() {
        let mut numbered = Numbered::new(REMEMBERED);
        // The first has the flow's own number; a SYN retransmitted opens nothing, and an answer is of the same connection.
        for (opens, expected) in [(Some(5), 1), (Some(5), 1), (None, 1)] {
            assert_eq!(numbered.of(conversation(40_000), opens), expected);
        }
        let answer = Conversation::of(6, [(&[10, 0, 0, 2], 80), (&[10, 0, 0, 1], 40_000)]);
        assert_eq!(numbered.of(answer, None), 1);
        assert_eq!(numbered.of(conversation(40_001), Some(9)), 7);
        // Another protocol.
        let datagrams = Conversation::of(17, [(&[10, 0, 0, 1], 40_000), (&[10, 0, 0, 2], 80)]);
        assert_eq!(numbered.of(datagrams, None), 8);
        // The ports of one that has ended.
        assert_eq!(numbered.of(conversation(40_000), Some(6)), 9);
        assert_eq!(numbered.of(conversation(40_000), None), 9);
        assert_eq!(numbered.of(conversation(40_001), None), 7);
    }

    /// Fails for a table that grows with every connection, and for one that forgets those of which packets still come.
    #[test]
    fn what_has_ended_is_forgotten() {
        let mut numbered = Numbered::new(10);
        let stays = numbered.of(conversation(1), Some(1));
        for port in 2..1000 {
            numbered.of(conversation(port), Some(1));
            assert_eq!(numbered.of(conversation(1), None), stays, "after {port}");
            let Connections { recent, before, .. } = &numbered.connections;
            assert!(recent.len() + before.len() <= 20);
        }
        // Forgotten, so that it is another.
        assert_eq!(numbered.of(conversation(2), None), 7 + 998);
    }
}
