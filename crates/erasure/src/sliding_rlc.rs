//! Sliding-window random linear code over GF(2⁸) (RFC 8681): each redundant packet is a sum of the
//! last packets with random factors. In general, any pattern of losses is recovered if there are
//! enough redundant packets.
//!
//! The factors follow from the key by RFC 8681 §3.6 with the highest density: none of them is 0.
//! The windows of successive redundant packets overlap.
//!
//! # Differs from RFC 8681
//! - The code applies to packets instead of FECFRAME's symbols, without the flow identifier and the
//!   length that precede each packet there (§3.2).
//! - A window has at most 255 packets, and windows are not signalled separately: each redundant
//!   packet names the packets that it covers.
//!
//! # Not implemented
//! - Coding over GF(2) (§5) and lower densities (§3.6).

use super::{
    Code, Cover,
    linear::{Settled, settle},
};
use crate::{gf256, tinymt32::TinyMt32};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlidingRlc;

/// The factors of `count` packets in the redundant packet with this key (RFC 8681 §3.6).
#[must_use]
pub fn coefficients(key: u16, count: usize) -> Vec<u8> {
    let mut generator = TinyMt32::new(u32::from(key));
    let mut next = || {
        loop {
            let factor = generator.next_u8();
            if factor != 0 {
                break factor;
            }
        }
    };
    (0..count).map(|_| next()).collect()
}

/// The missing packets, and the equations that contain them.
struct System {
    missing: Vec<usize>,
    /// Indices of the redundant packets that contain missing packets, and the factors of all
    /// covered packets.
    equations: Vec<(usize, Vec<u8>)>,
    settled: Vec<Settled>,
}

impl System {
    fn new(present: &[bool], redundant: &[Cover]) -> Self {
        let mut missing = Vec::new();
        let mut number = vec![usize::MAX; present.len()];
        for (place, here) in present.iter().enumerate() {
            if !here {
                number[place] = missing.len();
                missing.push(place);
            }
        }
        let mut equations = Vec::new();
        let mut rows = Vec::new();
        for (k, cover) in redundant.iter().enumerate() {
            if cover.places().end > present.len() || cover.count > SlidingRlc::MOST {
                continue;
            }
            let factors = coefficients(cover.key, cover.count);
            let mut row = vec![0; missing.len()];
            for (place, factor) in cover.places().zip(&factors) {
                if !present[place] {
                    row[number[place]] = *factor;
                }
            }
            if row.iter().any(|factor| *factor != 0) {
                rows.push(row);
                equations.push((k, factors));
            }
        }
        Self {
            settled: settle(rows, missing.len()),
            missing,
            equations,
        }
    }
}

impl SlidingRlc {
    /// Maximum number of packets of a window.
    pub const MOST: usize = 255;
}

impl Code for SlidingRlc {
    fn most_sources(&self) -> u32 {
        255
    }
    fn most_redundant(&self) -> u32 {
        255
    }
    fn encode(&self, sources: &[&[u8]], key: u16, n: u16) -> Vec<Vec<u8>> {
        assert!(
            (1..=Self::MOST).contains(&sources.len()),
            "a window of 1 to 255 packets"
        );
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        (0..n)
            .map(|k| {
                let mut parity = vec![0; longest];
                let factors = coefficients(key.wrapping_add(k), sources.len());
                for (source, factor) in sources.iter().zip(factors) {
                    gf256::multiply_add(&mut parity, source, factor);
                }
                parity
            })
            .collect()
    }
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize> {
        let system = System::new(present, redundant);
        let places = system.settled.iter().map(|one| system.missing[one.unknown]);
        places.collect()
    }
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &[u8])],
    ) -> Vec<(usize, Vec<u8>)> {
        let present: Vec<_> = sources.iter().map(Option::is_some).collect();
        let covers: Vec<_> = redundant.iter().map(|(cover, _)| *cover).collect();
        let system = System::new(&present, &covers);
        // The contribution of the missing packets to each redundant packet.
        let right_sides: Vec<Vec<u8>> = system
            .equations
            .iter()
            .map(|(k, factors)| {
                let (cover, parity) = redundant[*k];
                let mut rest = parity.to_vec();
                for (place, factor) in cover.places().zip(factors) {
                    if let Some(source) = sources[place] {
                        if rest.len() < source.len() {
                            rest.resize(source.len(), 0);
                        }
                        gf256::multiply_add(&mut rest, source, *factor);
                    }
                }
                rest
            })
            .collect();
        let longest = right_sides.iter().map(Vec::len).max().unwrap_or(0);
        let rebuilt = system.settled.iter().map(|one| {
            let mut packet = vec![0; longest];
            for (side, factor) in right_sides.iter().zip(&one.factors) {
                gf256::multiply_add(&mut packet, side, *factor);
            }
            (system.missing[one.unknown], packet)
        });
        rebuilt.collect()
    }
}
