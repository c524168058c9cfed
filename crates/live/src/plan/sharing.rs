//! The choice among several flows between two hosts for a program's connection.
//!
//! A connection takes a flow that begins at the host that opened it and has its IP version, if
//! there is one. If several match, new connections take them in turn. Packets without ports take
//! the first.

use std::collections::HashMap;

use anabranch_core::packet::{Direction, FlowId};

use crate::plan::frame::Conversation;

/// A flow, and the direction of a packet along it.
pub type Place = (FlowId, Direction);

/// The number of connections that are remembered at least.
const REMEMBERED: usize = 1 << 16;

/// A flow between two hosts, from the perspective of a packet between them.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    pub place: Place,
    pub is_v6: bool,
}

impl Choice {
    /// How well the flow matches a connection opened by the sender of this packet.
    fn rank(&self, is_v6: bool) -> u8 {
        let is_forward = self.place.1 == Direction::Forward;
        2 * u8::from(self.is_v6 == is_v6) + u8::from(is_forward)
    }
}

/// The flows of connections.
#[derive(Debug, Default)]
pub struct Sharing {
    recent: HashMap<Conversation, FlowId>,
    /// Entries from before `recent` was started, not seen since.
    before: HashMap<Conversation, FlowId>,
    /// By the first flow between two hosts: the number of connections that have begun there.
    begun: HashMap<FlowId, usize>,
}

impl Sharing {
    /// Chooses the flow of a packet among those between its two hosts; `None` if there is none.
    pub fn of(
        &mut self,
        choices: &[Choice],
        is_v6: bool,
        conversation: impl FnOnce() -> Option<Conversation>,
    ) -> Option<Place> {
        let [first, _, ..] = choices else {
            return choices.first().map(|choice| choice.place);
        };
        let Some(conversation) = conversation() else {
            return choices
                .iter()
                .rev()
                .max_by_key(|choice| choice.is_v6 == is_v6)
                .map(|choice| choice.place);
        };
        let known = self.recent.get(&conversation);
        let known = known.or_else(|| self.before.get(&conversation)).copied();
        let known = known.and_then(|flow| choices.iter().find(|choice| choice.place.0 == flow));
        let taken = known.map_or_else(
            || self.next(choices, first.place.0, is_v6),
            |choice| choice.place,
        );
        if self.recent.len() >= REMEMBERED && !self.recent.contains_key(&conversation) {
            self.before = std::mem::take(&mut self.recent);
        }
        self.recent.insert(conversation, taken.0);
        Some(taken)
    }

    fn next(&mut self, choices: &[Choice], first: FlowId, is_v6: bool) -> Place {
        let best = choices.iter().map(|choice| choice.rank(is_v6)).max();
        let suits = |choice: &&Choice| Some(choice.rank(is_v6)) == best;
        let count = choices.iter().filter(suits).count().max(1);
        let begun = self.begun.entry(first).or_default();
        let turn = *begun % count;
        *begun += 1;
        let mut suitable = choices.iter().filter(suits);
        suitable.nth(turn).unwrap_or(&choices[0]).place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(port: u16) -> Conversation {
        let ends: [(&[u8], u16); 2] = [(&[10, 0, 0, 1], port), (&[10, 0, 0, 2], 80)];
        Conversation::of(6, ends)
    }

    fn choices(of: &[(u32, Direction, bool)]) -> Vec<Choice> {
        let choice = |&(flow, direction, is_v6): &(u32, Direction, bool)| Choice {
            place: (FlowId(flow), direction),
            is_v6,
        };
        of.iter().map(choice).collect()
    }

    #[test]
    fn connections_take_suitable_flows_in_turn() {
        use Direction::{Forward, Reverse};
        let there = choices(&[
            (0, Forward, false),
            (1, Forward, false),
            (2, Reverse, false),
            (3, Forward, true),
        ]);
        let back = choices(&[
            (0, Reverse, false),
            (1, Reverse, false),
            (2, Forward, false),
            (3, Reverse, true),
        ]);
        let mut sharing = Sharing::default();
        let mut of = |choices: &[Choice], is_v6, port| {
            let place = sharing
                .of(choices, is_v6, || Some(conversation(port)))
                .expect("there are flows");
            (place.0.0, place.1)
        };
        assert_eq!([1, 2, 3].map(|port| of(&there, false, port).0), [0, 1, 0]);
        // An answer belongs to the connection, and a connection keeps its flow.
        assert_eq!(of(&back, false, 2), (1, Reverse));
        assert_eq!(of(&there, false, 2), (1, Forward));
        // Opened by the other host; over the other IP version.
        assert_eq!(of(&back, false, 9), (2, Forward));
        assert_eq!(of(&there, true, 10), (3, Forward));
        let no_ports = sharing.of(&there, false, || None);
        assert_eq!(no_ports, Some((FlowId(0), Forward)));
    }

    #[test]
    fn one_flow_takes_everything() {
        let only = choices(&[(4, Direction::Reverse, true)]);
        let place = Sharing::default().of(&only, false, || panic!("nobody asks"));
        assert_eq!(place, Some((FlowId(4), Direction::Reverse)));
        assert_eq!(Sharing::default().of(&[], false, || None), None);
    }
}
