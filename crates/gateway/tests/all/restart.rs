//! A path after a restart of the other end or a new address: its numbers begin again.

use super::network::{Network, Wire};
use anabranch_core::units::Duration;
use anabranch_gateway::{
    path::{Path, RateControl, Worth},
    policy::Role,
    time::Instant,
    tunnel::Hindrance,
};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_smaller_path_mtu_is_noticed_after_the_other_end_has_restarted() {
    let mut network = Network::new(1, vec![[Wire::default(); 2]], false);
    network.size = 1_432;
    network.run(MS * 3_000);
    network.flow(0, 1, MS, MS * 20_000);
    network.run(MS * 20_000);
    network.restart(1);
    network.run(MS * 3_000);
    assert_eq!(network.stats(0).paths[0].mtu, 1_472);
    for wire in &mut network.wires[0] {
        wire.mtu = 1_300;
    }
    network.flow(0, 2, MS * 5, MS * 5_000);
    network.run(MS * 5_000);
    let mtu = network.stats(0).paths[0].mtu;
    assert!((1_292..=1_300).contains(&mtu), "{mtu}");
}

#[test]
fn the_rate_is_estimated_again_after_the_other_end_has_restarted() {
    let now = Instant::START + MS * 1_000;
    let mut path = Path::new(None, Role::Active);
    path.train.on_delay(1_000, now, 60, 0.01);
    assert!(path.train.is_due(RateControl::ENOUGH, now));
    path.train.begin(now);
    for number in 1_001..1_011 {
        path.train.on_sent(number);
    }
    path.restart();
    assert!(!path.train.is_under_way());
    path.train.on_delay(0, now + MS * 500, 60, 0.01);
    assert!(path.train.is_due(RateControl::ENOUGH, now + MS * 500));
}

/// A path with a new address begins again, but its earlier deliveries count in a trial of another.
#[test]
fn the_octets_that_a_path_delivered_remain_after_a_new_address() {
    let mut rate = RateControl::default();
    rate.on_arrived(5_000);
    assert_eq!(rate.renewed().total(), 5_000);
}

#[test]
fn a_trial_is_measured_again_if_the_sum_of_the_octets_decreased() {
    let at = |ms: u64| Instant::START + MS * ms;
    let (faster, round_trip) = (1e6, MS * 10);
    let mut worth = Worth::default();
    worth.on_used(at(0));
    worth.judge(1_000_000, faster, round_trip, at(20));
    worth.on_used(at(60));
    worth.judge(10_000, faster, round_trip, at(60));
    assert!(worth.is_on_trial() && worth.may_try(at(60)));
    // 10 kB in 40 ms.
    worth.on_used(at(100));
    worth.judge(20_000, faster, round_trip, at(100));
    assert!(!worth.is_on_trial() && !worth.may_try(at(100)));
}

#[test]
fn a_slow_path_that_is_first_used_obeys_its_limit() {
    const LIMIT: f64 = 1e5;
    let mut rate = RateControl::default();
    rate.set_limit(LIMIT);
    rate.on_first_estimate(5e5);
    assert!(rate.capacity() <= LIMIT, "{}", rate.capacity());
    rate.on_use();
    assert!(!rate.is_starting());
    assert!(rate.rate() <= LIMIT, "{}", rate.rate());
    assert!(rate.capacity() <= LIMIT, "{}", rate.capacity());
}

/// The end that begins cannot open the answers; the other one sees that its answers are in vain.
#[test]
fn differing_preshared_keys_are_named() {
    let mut network = Network::new(5, vec![[Wire::default(); 2]; 2], false);
    let restart = |network: &mut Network, psks| {
        network.psks = psks;
        network.restart(0);
        network.restart(1);
        network.run(MS * 1_000);
    };
    restart(&mut network, [Some([1; 32]), Some([2; 32])]);
    let hindrance = |network: &mut Network, end| network.tunnel(end).hindrance();
    assert_eq!(hindrance(&mut network, 0), Some(Hindrance::PresharedKey));
    assert_eq!(hindrance(&mut network, 1), None);
    network.run(MS * 12_000);
    assert_eq!(hindrance(&mut network, 1), Some(Hindrance::Unanswered));
    restart(&mut network, [Some([2; 32]); 2]);
    for end in [0, 1] {
        assert!(network.tunnel(end).is_up());
        assert_eq!(hindrance(&mut network, end), None);
    }
}
