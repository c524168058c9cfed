//! Erasure codes recover exactly the lost octets, and their form on presence alone agrees with
//! their form on octets.

use anabranch_erasure::{
    AnyCode, Code, Cover, reed_solomon::ReedSolomon, sliding_rlc::SlidingRlc, xor::Xor,
};
use proptest::prelude::*;

const CODES: [AnyCode; 3] = [
    AnyCode::Xor(Xor),
    AnyCode::ReedSolomon(ReedSolomon),
    AnyCode::SlidingRlc(SlidingRlc),
];

fn packets(most: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let packet = prop::collection::vec(any::<u8>(), 0..80);
    prop::collection::vec(packet, 1..=most)
}

/// The redundant packets of one block over all packets.
fn block(code: AnyCode, sources: &[Vec<u8>], n: u16) -> Vec<(Cover, Vec<u8>)> {
    let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let n = n.min(u16::try_from(code.most_redundant()).expect("few"));
    (0..)
        .zip(code.encode(&slices, 0, n))
        .map(|(key, parity)| {
            let cover = Cover {
                first: 0,
                count: sources.len(),
                key,
                of: n,
            };
            (cover, parity)
        })
        .collect()
}

/// The packets that the code recovers. Both forms must agree.
fn rebuilt(
    code: AnyCode,
    sources: &[Vec<u8>],
    lost: &[bool],
    redundant: &[(Cover, Vec<u8>)],
) -> Vec<usize> {
    let left: Vec<Option<&[u8]>> = sources
        .iter()
        .zip(lost)
        .map(|(source, lost)| (!lost).then_some(source.as_slice()))
        .collect();
    let present: Vec<bool> = lost.iter().map(|lost| !lost).collect();
    let covers: Vec<Cover> = redundant.iter().map(|(cover, _)| *cover).collect();
    let borrowed: Vec<(Cover, &[u8])> = redundant.iter().map(|(c, p)| (*c, p.as_slice())).collect();
    let decoded = code.decode(&left, &borrowed);
    for (place, packet) in &decoded {
        assert!(lost[*place], "{code:?} rebuilt what was there");
        let (content, padding) = packet.split_at(sources[*place].len());
        assert_eq!(content, sources[*place], "{code:?}");
        assert!(padding.iter().all(|octet| *octet == 0), "{code:?}");
    }
    let places: Vec<usize> = decoded.into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, code.recoverable(&present, &covers), "{code:?}");
    places
}

fn lost_places(lost: &[bool]) -> Vec<usize> {
    (0..lost.len()).filter(|place| lost[*place]).collect()
}

proptest! {
    #[test]
    fn whatever_is_lost_only_sent_packets_are_recovered(
        sources in packets(40),
        n in 1_u16..8,
        lost in prop::collection::vec(prop::bool::weighted(0.2), 40),
        lost_redundant in prop::collection::vec(any::<bool>(), 8),
    ) {
        for code in CODES {
            let mut redundant = block(code, &sources, n);
            let mut fates = lost_redundant.iter();
            redundant.retain(|_| !fates.next().expect("one each"));
            rebuilt(code, &sources, &lost[..sources.len()], &redundant);
        }
    }

    #[test]
    fn a_block_code_recovers_one_packet_per_redundant_packet(
        sources in packets(40),
        n in 1_u16..8,
        order in any::<u64>(),
        lost_redundant in 0_u16..8,
    ) {
        for code in [CODES[0], CODES[1]] {
            let mut redundant = block(code, &sources, n);
            let gone = usize::from(lost_redundant).min(redundant.len());
            redundant.drain(..gone);
            // A shuffle by `order` chooses the lost packets.
            let mut places: Vec<usize> = (0..sources.len()).collect();
            places.sort_by_key(|place| (*place as u64 + 1).wrapping_mul(order | 1));
            let mut lost = vec![false; sources.len()];
            for place in places.into_iter().take(redundant.len()) {
                lost[place] = true;
            }
            prop_assert_eq!(rebuilt(code, &sources, &lost, &redundant), lost_places(&lost));
            // One more loss is too many.
            if let Some(place) = lost.iter().position(|lost| !lost) && !redundant.is_empty() {
                lost[place] = true;
                prop_assert!(rebuilt(code, &sources, &lost, &redundant).is_empty());
            }
        }
    }

    #[test]
    fn a_sliding_window_recovers_the_unknowns_that_its_equations_settle(
        sources in packets(60),
        step in 1_usize..6,
        window in 1_usize..30,
        lost in prop::collection::vec(prop::bool::weighted(0.15), 60),
    ) {
        let code = AnyCode::SlidingRlc(SlidingRlc);
        let redundant = slide(&sources, step, window);
        let lost = &lost[..sources.len()];
        let places = rebuilt(code, &sources, lost, &redundant);
        // The only missing packet of a window is always recovered, as no factor is 0.
        for (cover, _) in &redundant {
            if let [lone] = lost_places(&lost[cover.places()])[..] {
                prop_assert!(places.contains(&(cover.first + lone)));
            }
        }
    }

    #[test]
    fn forged_redundancy_neither_panics_nor_changes_present_packets(
        sources in packets(20),
        lost in prop::collection::vec(prop::bool::weighted(0.3), 20),
        forged in prop::collection::vec(
            (0_usize..25, 0_usize..300, any::<u16>(), any::<u16>(),
                prop::collection::vec(any::<u8>(), 0..90)),
            0..6,
        ),
        small in any::<bool>(),
    ) {
        let left: Vec<Option<&[u8]>> = sources.iter().zip(&lost)
            .map(|(source, lost)| (!lost).then_some(source.as_slice()))
            .collect();
        let forged: Vec<(Cover, Vec<u8>)> = forged.into_iter()
            .map(|(first, count, key, of, body)| {
                let (key, of) = if small { (key % 3, of % 4) } else { (key, of) };
                (Cover { first, count, key, of }, body)
            })
            .collect();
        let borrowed: Vec<(Cover, &[u8])> = forged.iter().map(|(c, p)| (*c, p.as_slice())).collect();
        for code in CODES {
            for (place, _) in code.decode(&left, &borrowed) {
                prop_assert!(left[place].is_none());
            }
        }
    }
}

/// A redundant packet after every `step` packets, over the last `window` packets.
fn slide(sources: &[Vec<u8>], step: usize, window: usize) -> Vec<(Cover, Vec<u8>)> {
    let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    (step..=sources.len())
        .step_by(step)
        .zip(0..)
        .map(|(end, key)| {
            let first = end.saturating_sub(window);
            let parity = SlidingRlc.encode(&slices[first..end], key, 1).remove(0);
            let cover = Cover {
                first,
                count: end - first,
                key,
                of: 1,
            };
            (cover, parity)
        })
        .collect()
}

/// A burst of `burst` packets is recovered once this number of redundant packets covers it, except
/// for singular sums: a square matrix over GF(2⁸) is regular with a probability above 1 − 1/255 −
/// 1/255² (product of 1 − 256⁻ⁱ), with or without factors of 0.
#[test]
fn bursts_within_the_window_are_recovered() {
    let sources: Vec<Vec<u8>> = (0..255_u8).map(|n| vec![n; 40]).collect();
    let redundant = slide(&sources, 4, 60);
    let (mut whole, mut tried) = (0, 0);
    for burst in [2, 3, 5, 8, 12] {
        for start in 60..150 {
            let lost: Vec<bool> = (0..sources.len())
                .map(|place| (start..start + burst).contains(&place))
                .collect();
            // The first redundant packets that cover the whole burst, one per lost packet.
            let covering: Vec<_> = redundant
                .iter()
                .filter(|(cover, _)| cover.first <= start && cover.places().end >= start + burst)
                .take(burst)
                .cloned()
                .collect();
            assert_eq!(covering.len(), burst);
            let places = rebuilt(AnyCode::SlidingRlc(SlidingRlc), &sources, &lost, &covering);
            tried += 1;
            whole += usize::from(places.len() == burst);
        }
    }
    assert!(whole * 100 >= tried * 98, "{whole} of {tried}");
}

/// The factors of RFC 8681 for key 1 are the lowest octets of the generator's numbers for seed 1,
/// the first of which RFC 8682 §2.3 lists.
#[test]
fn coefficients_follow_from_the_generator() {
    let listed: [u32; 5] = [
        2_545_341_989,
        981_918_433,
        3_715_302_833,
        2_387_538_352,
        3_591_001_365,
    ];
    let expected = listed.map(|number| number.to_le_bytes()[0]);
    assert!(!expected.contains(&0));
    let factors = anabranch_erasure::sliding_rlc::coefficients(1, 5);
    assert_eq!(factors, expected);
    let many = anabranch_erasure::sliding_rlc::coefficients(9, 255);
    assert!(!many.contains(&0));
}
