//! XOR: one redundant packet, the sum of a group, brings back any one packet of it.
//!
//! Source: Sato, Koga and Ikenaga §3.1; RFC 5109 §8 is the same parity for RTP.
//!
//! # Not implemented
//! - More than one redundant packet for a group, as interleaved parity has.

use super::{Code, Cover, Parity, cut, length_of};
use crate::fec::gf256;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Xor;

/// The sum of the packets so far, in the room of one packet: what both ends keep of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sum(Parity);

impl Sum {
    /// Adds a packet; adding it again takes it away.
    pub fn add(&mut self, packet: &[u8]) {
        let Parity { lengths, body } = &mut self.0;
        gf256::add(lengths, &length_of(packet));
        if body.len() < packet.len() {
            body.resize(packet.len(), 0);
        }
        gf256::add(body, packet);
    }
    /// Adds a redundant packet.
    pub fn add_parity(&mut self, parity: &Parity) {
        let Parity { lengths, body } = &mut self.0;
        gf256::add(lengths, &parity.lengths);
        if body.len() < parity.body.len() {
            body.resize(parity.body.len(), 0);
        }
        gf256::add(body, &parity.body);
    }
    /// The redundant packet of what was added.
    #[must_use]
    pub fn parity(&self) -> &Parity {
        &self.0
    }
    /// What is missing from the sum for it to be nothing, if that can be a packet.
    #[must_use]
    pub fn into_missing(self) -> Option<Vec<u8>> {
        cut(self.0.lengths, self.0.body)
    }
    /// Forgets what was added and keeps the room.
    pub fn clear(&mut self) {
        self.0.lengths = [0; 2];
        self.0.body.clear();
    }
}

impl Code for Xor {
    fn most_sources(&self) -> u32 {
        u32::from(u16::MAX)
    }
    fn most_redundant(&self, _sources: u32) -> u32 {
        1
    }
    fn encode(&self, sources: &[&[u8]], _key: u16, n: u16) -> Vec<Parity> {
        assert!(n == 1 && !sources.is_empty(), "one sum of something");
        let mut sum = Sum::default();
        for source in sources {
            sum.add(source);
        }
        vec![sum.0]
    }
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize> {
        let lone = redundant.iter().filter_map(|cover| {
            let mut missing = cover
                .places()
                .filter(|place| present.get(*place) == Some(&false));
            let first = missing.next()?;
            (cover.places().end <= present.len() && missing.next().is_none()).then_some(first)
        });
        let mut places: Vec<_> = lone.collect();
        places.sort_unstable();
        places.dedup();
        places
    }
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &Parity)],
    ) -> Vec<(usize, Vec<u8>)> {
        let present: Vec<_> = sources.iter().map(Option::is_some).collect();
        let mut rebuilt: Vec<(usize, Vec<u8>)> = Vec::new();
        for (cover, parity) in redundant {
            let [place] = self.recoverable(&present, &[*cover])[..] else {
                continue;
            };
            let mut sum = Sum::default();
            sum.add_parity(parity);
            for source in sources[cover.places()].iter().flatten() {
                sum.add(source);
            }
            if !rebuilt.iter().any(|(known, _)| *known == place)
                && let Some(packet) = sum.into_missing()
            {
                rebuilt.push((place, packet));
            }
        }
        rebuilt.sort_unstable_by_key(|(place, _)| *place);
        rebuilt
    }
}
