//! The streaming measurement against the definitions, evaluated over the whole sequence at once, on
//! random arrivals with reordering, loss and duplication.

use anabranch_core::{
    reordering::{Params, Reordering, Summary},
    rng::{Draw, Stream},
};

/// Result of the definitions for one first arrival.
struct Judged {
    extent: Option<u64>,
    degree: u64,
}

/// RFC 4737 §3.3, §4.2 and §5.3 over the first arrivals.
fn judge(first_arrivals: &[u64]) -> Vec<Judged> {
    (0..first_arrivals.len())
        .map(|i| {
            let index = first_arrivals[i];
            let before = &first_arrivals[..i];
            Judged {
                extent: before
                    .iter()
                    .position(|&other| other > index)
                    .map(|j| (i - j) as u64),
                degree: before
                    .iter()
                    .rev()
                    .take_while(|&&other| other > index)
                    .count() as u64,
            }
        })
        .collect()
}

/// RFC 5236's density: the number of packets for every displacement within the threshold. It
/// processes one packet at a time, with plain sets of the packets ahead and the early packets.
fn displacements(arrivals: &[u64], threshold: u64) -> Vec<(i64, u64)> {
    let mut counts = std::collections::BTreeMap::new();
    let mut source = arrivals.iter().copied();
    let mut window: Vec<u64> = Vec::new();
    let mut early: Vec<u64> = Vec::new();
    let mut receive_index = arrivals.first().map_or(0, |i| i.saturating_sub(threshold));
    loop {
        while window.len() as u64 <= threshold {
            let Some(next) = source.next() else { break };
            if next >= receive_index && !window.contains(&next) && !early.contains(&next) {
                window.push(next);
            }
        }
        if window.is_empty() {
            return counts.into_iter().collect();
        }
        while !window.contains(&receive_index) && !early.contains(&receive_index) {
            receive_index += 1;
        }
        let index = window.remove(0);
        let displacement = receive_index.cast_signed() - index.cast_signed();
        if displacement.unsigned_abs() <= threshold {
            *counts.entry(displacement).or_insert(0) += 1;
            early.retain(|&other| other != receive_index);
            if displacement < 0 {
                early.push(index);
            }
            receive_index += 1;
        }
    }
}

fn without_duplicates(arrivals: &[u64]) -> Vec<u64> {
    let mut seen = std::collections::BTreeSet::new();
    arrivals
        .iter()
        .copied()
        .filter(|&index| seen.insert(index))
        .collect()
}

fn below(draw: &mut Draw, bound: u32) -> u64 {
    u64::from(draw.bits() % bound)
}

fn pick<T: Copy>(draw: &mut Draw, choices: &[T]) -> T {
    choices[draw.bits() as usize % choices.len()]
}

/// Packets sent one per tick from some index on, each with an independent delay, some lost
/// (individually or in bursts), some duplicated.
fn arrivals(draw: &mut Draw, duplicates: bool) -> Vec<u64> {
    let start = pick(draw, &[0, 0, 3, 1_000_000]);
    let sent = 1 + below(draw, 200);
    let spread = pick(draw, &[1, 3, 10, 60, 400]);
    let rarely_late = below(draw, 2) == 0;
    let loss = pick(draw, &[0, 0, 3, 30]);
    let doubled = if duplicates { below(draw, 2) * 10 } else { 0 };
    let mut burst = 0;
    let mut timed = Vec::new();
    for index in start..start + sent {
        if burst == 0 && below(draw, 100) < loss {
            burst = 1 + below(draw, 12) * below(draw, 2);
        }
        if burst > 0 {
            burst -= 1;
            continue;
        }
        let copies = 1 + u64::from(below(draw, 100) < doubled);
        for _ in 0..copies {
            let late = !rarely_late || below(draw, 8) == 0;
            let delay = if late { below(draw, spread) } else { 0 };
            timed.push((index + delay, index));
        }
    }
    // Stable, so that packets of the same tick stay in the order of transmission.
    timed.sort_by_key(|&(time, _)| time);
    timed.into_iter().map(|(_, index)| index).collect()
}

/// Ratios result from the same division, so they are compared exactly.
fn check(arrivals: &[u64], params: &Params, summary: &Summary, case: u64) {
    let first_arrivals = without_duplicates(arrivals);
    let judged = judge(&first_arrivals);
    let total = first_arrivals.len() as f64;
    let mut extents: Vec<u64> = judged.iter().filter_map(|packet| packet.extent).collect();
    extents.sort_unstable();
    assert_eq!(summary.arrived, first_arrivals.len() as u64, "case {case}");
    assert_eq!(summary.reordered, extents.len() as u64, "case {case}");
    assert_eq!(
        summary.duplicates,
        (arrivals.len() - first_arrivals.len()) as u64
    );
    assert_eq!(summary.uncertain, 0);
    match summary.extent {
        None => assert!(extents.is_empty(), "case {case}"),
        Some(extent) => {
            // Fewer than 256 arrivals: exact.
            let rank = |percent: usize| extents[(extents.len() * percent).div_ceil(100) - 1];
            assert_eq!(
                (extent.p50, extent.p95, extent.max),
                (rank(50), rank(95), rank(100)),
                "case {case}"
            );
        }
    }
    let largest = judged.iter().map(|packet| packet.degree).max().unwrap_or(0);
    let expected: Vec<(u32, f64)> = (1..=params.max_n)
        .take_while(|&n| u64::from(n) <= largest)
        .map(|n| {
            let packets = judged.iter().filter(|p| p.degree >= u64::from(n)).count();
            (n, packets as f64 / total)
        })
        .collect();
    assert_eq!(summary.n_reordering, expected, "case {case}");
    let counts = displacements(arrivals, u64::from(params.displacement_threshold));
    let whole = counts.iter().map(|&(_, packets)| packets).sum::<u64>() as f64;
    let density: Vec<(i64, f64)> = counts
        .into_iter()
        .map(|(displacement, packets)| (displacement, packets as f64 / whole))
        .collect();
    assert_eq!(summary.density, density, "case {case}: {arrivals:?}");
}

#[test]
fn the_measurement_agrees_with_the_definitions() {
    let stream = Stream::new(1, "reordering");
    let (mut reordered, mut duplicates) = (0, 0);
    for case in 0..6_000 {
        let mut draw = stream.at(case);
        let params = Params {
            displacement_threshold: pick(&mut draw, &[0, 1, 2, 5, 30, 128]),
            ..Params::default()
        };
        let arrivals = arrivals(&mut draw, true);
        let mut reordering = Reordering::new(&params);
        let first_arrivals = without_duplicates(&arrivals);
        let mut judged = judge(&first_arrivals).into_iter();
        let mut seen = std::collections::BTreeSet::new();
        // A summary in between must be right and must not disturb later results.
        let between = draw.bits() as usize % 200;
        for (n, &index) in arrivals.iter().enumerate() {
            let arrival = reordering.on_arrival(index);
            assert_eq!(arrival.duplicate, !seen.insert(index), "case {case}");
            if !arrival.duplicate {
                let extent = judged.next().expect("one for each first arrival").extent;
                assert_eq!(arrival.reordered, extent.is_some(), "case {case}");
                assert_eq!(arrival.extent, extent.unwrap_or(0), "case {case}");
            }
            if n == between {
                check(&arrivals[..=n], &params, &reordering.summary(), case);
            }
        }
        let summary = reordering.summary();
        check(&arrivals, &params, &summary, case);
        reordered += summary.reordered;
        duplicates += summary.duplicates;
    }
    // The cases contain enough reordering and duplicates.
    assert!(reordered > 50_000, "{reordered}");
    assert!(duplicates > 5_000, "{duplicates}");
}

/// With too little memory for the gaps, the count of reordered packets stays exact, and extents and
/// n-reordering are lower bounds.
#[test]
fn discarded_gaps_give_lower_bounds() {
    let stream = Stream::new(2, "reordering");
    let mut uncertain = 0;
    for case in 0..3_000 {
        let mut draw = stream.at(case);
        let params = Params {
            max_gaps: pick(&mut draw, &[0, 1, 2, 3, 4, 5]),
            ..Params::default()
        };
        let arrivals = arrivals(&mut draw, false);
        let mut reordering = Reordering::new(&params);
        let judged = judge(&arrivals);
        for (&index, judged) in arrivals.iter().zip(&judged) {
            let arrival = reordering.on_arrival(index);
            assert!(!arrival.duplicate, "case {case}");
            assert_eq!(arrival.reordered, judged.extent.is_some(), "case {case}");
            assert!(arrival.extent <= judged.extent.unwrap_or(0), "case {case}");
        }
        let summary = reordering.summary();
        uncertain += summary.uncertain;
        for &(n, ratio) in &summary.n_reordering {
            let packets = judged.iter().filter(|p| p.degree >= u64::from(n)).count();
            assert!(
                ratio <= packets as f64 / arrivals.len() as f64,
                "case {case}"
            );
        }
        let counts = displacements(&arrivals, 128);
        assert_eq!(
            summary.density.iter().map(|&(d, _)| d).collect::<Vec<_>>(),
            counts.iter().map(|&(d, _)| d).collect::<Vec<_>>(),
            "forgetting gaps does not touch the density"
        );
    }
    assert!(uncertain > 1_000, "{uncertain}");
}
