//! XOR: one redundant packet, the sum of a group, recovers any one packet of it.
//!
//! Source: Sato, Koga and Ikenaga §3.1; RFC 5109 §8 is the same parity for RTP.
//!
//! # Not implemented
//! - More than one redundant packet per group (interleaved parity).

use super::{Code, Cover};
use crate::gf256;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Xor;

/// The running sum of a group, in the memory of one packet. Both ends store it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sum(Vec<u8>);

impl Sum {
    /// Adds a packet. Adding it again removes it.
    pub fn add(&mut self, packet: &[u8]) {
        if self.0.len() < packet.len() {
            self.0.resize(packet.len(), 0);
        }
        gf256::add(&mut self.0, packet);
    }
    /// The octets of the sum.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
    /// Clears the sum and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Code for Xor {
    fn most_sources(&self) -> u32 {
        u32::from(u16::MAX)
    }
    fn most_redundant(&self) -> u32 {
        1
    }
    fn encode(&self, sources: &[&[u8]], _key: u16, n: u16) -> Vec<Vec<u8>> {
        assert!(n == 1 && !sources.is_empty(), "one sum of something");
        let mut sum = Sum::default();
        for source in sources {
            sum.add(source);
        }
        vec![sum.0]
    }
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize> {
        let lone = redundant.iter().filter_map(|cover| {
            let covered = present.get(cover.places())?;
            let mut missing = (cover.first..).zip(covered).filter(|(_, here)| !**here);
            let (place, _) = missing.next()?;
            missing.next().is_none().then_some(place)
        });
        let mut places: Vec<_> = lone.collect();
        places.sort_unstable();
        places.dedup();
        places
    }
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &[u8])],
    ) -> Vec<(usize, Vec<u8>)> {
        let present: Vec<_> = sources.iter().map(Option::is_some).collect();
        let mut rebuilt: Vec<(usize, Vec<u8>)> = Vec::new();
        for (cover, parity) in redundant {
            let [place] = self.recoverable(&present, &[*cover])[..] else {
                continue;
            };
            let mut sum = Sum::default();
            sum.add(parity);
            for source in sources[cover.places()].iter().flatten() {
                sum.add(source);
            }
            if !rebuilt.iter().any(|(known, _)| *known == place) {
                rebuilt.push((place, sum.0));
            }
        }
        rebuilt.sort_unstable_by_key(|(place, _)| *place);
        rebuilt
    }
}
