//! The restorer of order: packets delivered once, in order while no gap is given up, within bounds
//! of time and memory.

use anabranch_core::units::Duration;
use anabranch_gateway::{order::Order, pool::Pool, time::Instant, wire::Place};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::START + MS * ms
}

fn arrive(order: &mut Order, flow: u16, number: u32, now: Instant) {
    let content = [&flow.to_be_bytes()[..], &number.to_be_bytes()].concat();
    order.on_packet(Place { flow, number }, &content, now, &mut Pool::default());
}

fn delivered(order: &mut Order) -> Vec<(u16, u32)> {
    std::iter::from_fn(|| order.pop())
        .map(|packet| {
            let flow = u16::from_be_bytes([packet[0], packet[1]]);
            (
                flow,
                u32::from_be_bytes([packet[2], packet[3], packet[4], packet[5]]),
            )
        })
        .collect()
}

#[test]
fn a_gap_delays_only_its_flow() {
    let mut order = Order::default();
    arrive(&mut order, 1, 1, at(0));
    arrive(&mut order, 2, 0, at(0));
    assert_eq!(delivered(&mut order), [(2, 0)]);
    arrive(&mut order, 1, 0, at(5));
    assert_eq!(delivered(&mut order), [(1, 0), (1, 1)]);
}

#[test]
fn packets_of_a_gap_that_is_given_up_are_late() {
    let mut order = Order::default();
    arrive(&mut order, 1, 1, at(0));
    let due = order.timeout().expect("a gap");
    assert!(due > at(0) && due <= at(350));
    order.advance(due);
    assert_eq!(delivered(&mut order), [(1, 1)]);
    arrive(&mut order, 1, 0, due);
    assert_eq!(delivered(&mut order), [(1, 0)]);
    assert_eq!((order.stats().late, order.stats().given_up), (1, 1));
}

#[test]
fn packets_do_not_wait_if_gaps_are_never_filled() {
    let mut order = Order::default();
    let mut held = 0;
    for gap in 0..300 {
        let now = at(1_000 * u64::from(gap));
        arrive(&mut order, 1, 2 * gap + 1, now);
        held += u32::from(delivered(&mut order).is_empty());
        order.advance(now + MS * 400);
        delivered(&mut order);
    }
    assert!(
        (60..120).contains(&held),
        "{held} of 300 gaps were waited for"
    );
}

#[test]
fn a_gap_can_be_filled_however_many_packets_wait() {
    let mut order = Order::default();
    for number in 1..4_000 {
        arrive(&mut order, 1, number, at(0));
    }
    arrive(&mut order, 1, 0, at(5));
    let expected: Vec<(u16, u32)> = (0..4_000).map(|number| (1, number)).collect();
    assert_eq!(delivered(&mut order), expected);
    arrive(&mut order, 1, 0, at(5));
    arrive(&mut order, 1, 3_999, at(5));
    assert_eq!(delivered(&mut order), []);
    assert_eq!(order.stats().duplicates, 2);
}

#[test]
fn the_number_of_waiting_packets_is_bounded() {
    let mut order = Order::default();
    for number in 1..20_000 {
        arrive(&mut order, 1, number, at(0));
        assert!(order.waiting() <= 4_096);
    }
    assert!(delivered(&mut order).len() >= 15_000);
}

#[test]
fn numbers_wrap() {
    let mut order = Order::default();
    let mut now = at(0);
    // In steps, to just before the end of the number space.
    for number in [0, 1 << 30, 1 << 31, 3 << 30, u32::MAX - 1] {
        arrive(&mut order, 1, number, now);
        now = now + MS * 400;
        order.advance(now);
        assert_eq!(delivered(&mut order), [(1, number)]);
    }
    for number in [u32::MAX, 1, 0, 2] {
        arrive(&mut order, 1, number, now);
    }
    arrive(&mut order, 1, u32::MAX, now);
    assert_eq!(
        delivered(&mut order),
        [(1, u32::MAX), (1, 0), (1, 1), (1, 2)]
    );
    assert_eq!(order.stats().duplicates, 1);
}

proptest! {
    #![proptest_config(super::cases(64))]

    #[test]
    fn arrivals_are_delivered_once_and_in_order_except_late_ones(
        arrivals in proptest::collection::vec((0_u16..3, 0_u32..60, 0_u64..30), 1..300),
    ) {
        let mut order = Order::default();
        let mut now = at(0);
        let mut distinct = BTreeSet::new();
        let mut out = Vec::new();
        for (flow, number, pause) in arrivals {
            now = now + MS * pause;
            order.advance(now);
            arrive(&mut order, flow, number, now);
            distinct.insert((flow, number));
            out.extend(delivered(&mut order));
            prop_assert!(order.timeout().is_none_or(|due| due > now));
        }
        while let Some(due) = order.timeout() {
            prop_assert!(due.saturating_since(now) <= MS * 350);
            order.advance(due);
            now = due;
        }
        out.extend(delivered(&mut order));
        prop_assert_eq!(order.waiting(), 0);
        let mut highest: BTreeMap<u16, u32> = BTreeMap::new();
        let mut late = 0;
        for &(flow, number) in &out {
            let before = highest.entry(flow).or_insert(number);
            late += u64::from(number < *before);
            *before = number.max(*before);
        }
        prop_assert_eq!(late, order.stats().late);
        let out_set: BTreeSet<_> = out.iter().copied().collect();
        prop_assert_eq!(out.len(), out_set.len());
        prop_assert_eq!(out_set, distinct);
    }
}
