//! The connection of each packet, as queues and gateways distinguish connections: by protocol,
//! addresses and ports.
//!
//! A flow of transfers and a program have many connections over one flow. As in the simulator, they
//! are numbered in the order of their start, and no number is reused.

use std::collections::HashMap;

use anabranch_core::packet::{ConnectionId, FlowId};

use crate::plan::frame::Conversation;

/// The number of most recently seen connections that are remembered at least. It exceeds the number
/// of ports of a host.
const REMEMBERED: usize = 1 << 16;

/// A connection that has been seen.
#[derive(Debug, Clone, Copy)]
struct Seen {
    connection: ConnectionId,
    /// The sequence number of the SYN that opened it, if it was seen.
    opened: Option<u32>,
}

/// The connections of a run. An entry is dropped after at least [`REMEMBERED`] other connections
/// have been seen since its last packet, or when a new connection uses its ports.
#[derive(Debug)]
pub struct Connections {
    /// The number that each flow's packets have by default; `None` after a connection has taken it.
    first: Vec<Option<ConnectionId>>,
    recent: HashMap<(FlowId, Conversation), Seen>,
    /// Entries from before `recent` was started, not seen since.
    before: HashMap<(FlowId, Conversation), Seen>,
    most: usize,
}

impl Connections {
    /// Creates an empty table. `first` has the numbers of the flows; the first connection of a flow
    /// takes its number.
    pub fn new(first: Vec<ConnectionId>) -> Self {
        Self {
            first: first.into_iter().map(Some).collect(),
            recent: HashMap::new(),
            before: HashMap::new(),
            most: REMEMBERED,
        }
    }

    /// The number of a packet's connection; `next` returns a new number. `opens` is the sequence
    /// number of a SYN that opens a connection. A different one begins a new connection on the same
    /// ports; an equal one is a retransmission.
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
    fn connections_are_distinguished_by_their_ports() {
        let mut numbered = Numbered::new(REMEMBERED);
        // The first connection has the flow's number. A retransmitted SYN and an answer belong to
        // the same connection.
        for (opens, expected) in [(Some(5), 1), (Some(5), 1), (None, 1)] {
            assert_eq!(numbered.of(conversation(40_000), opens), expected);
        }
        let answer = Conversation::of(6, [(&[10, 0, 0, 2], 80), (&[10, 0, 0, 1], 40_000)]);
        assert_eq!(numbered.of(answer, None), 1);
        assert_eq!(numbered.of(conversation(40_001), Some(9)), 7);
        // Another protocol.
        let datagrams = Conversation::of(17, [(&[10, 0, 0, 1], 40_000), (&[10, 0, 0, 2], 80)]);
        assert_eq!(numbered.of(datagrams, None), 8);
        // Ports of a connection that has ended.
        assert_eq!(numbered.of(conversation(40_000), Some(6)), 9);
        assert_eq!(numbered.of(conversation(40_000), None), 9);
        assert_eq!(numbered.of(conversation(40_001), None), 7);
    }

    /// Detects a table that grows with every connection, and one that drops connections still in
    /// use.
    #[test]
    fn ended_connections_are_dropped() {
        let mut numbered = Numbered::new(10);
        let stays = numbered.of(conversation(1), Some(1));
        for port in 2..1000 {
            numbered.of(conversation(port), Some(1));
            assert_eq!(numbered.of(conversation(1), None), stays, "after {port}");
            let Connections { recent, before, .. } = &numbered.connections;
            assert!(recent.len() + before.len() <= 20);
        }
        // This entry was dropped, so the packet belongs to a new connection.
        assert_eq!(numbered.of(conversation(2), None), 7 + 998);
    }
}
