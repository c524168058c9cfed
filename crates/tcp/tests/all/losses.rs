//! Reports to a control that requests every loss.

use crate::support;

use std::sync::{Arc, Mutex};

use anabranch_congestion::{Ack, Congestion, CongestionControl, Control, Lost, Rto, Wants};
use anabranch_core::{body::Length, units::Bytes};
use anabranch_tcp::{Endpoint, Profile, Role, Settings};
use support::{
    Net,
    plain::{MSS, link, ms, net, settings},
};

/// An event, in the order of arrival.
#[derive(Debug, Clone, Copy)]
enum Told {
    Congestion,
    Rto,
    Lost(Lost),
    Ack(Ack),
}

/// A fixed window.
#[derive(Debug)]
struct Fixed {
    wants: bool,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Fixed {
    fn note(&self, told: Told) {
        self.told.lock().expect("one thread").push(told);
    }
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, ack: &Ack) {
        self.note(Told::Ack(*ack));
    }
    fn on_lost(&mut self, lost: &Lost) {
        self.note(Told::Lost(*lost));
    }
    fn on_congestion(&mut self, _event: &Congestion) {
        self.note(Told::Congestion);
    }
    fn on_rto(&mut self, _event: &Rto) {
        self.note(Told::Rto);
    }
    fn cwnd(&self) -> Bytes {
        Bytes::new(20 * MSS)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    fn wants(&self) -> Wants {
        Wants {
            rate_samples: true,
            losses: self.wants,
            ..Wants::default()
        }
    }
}

/// Runs a transfer for two seconds in which the network drops the named data segments.
fn told(settings: &Settings, wants: bool, lose: &[u32]) -> Vec<Told> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let fixed = Fixed {
        wants,
        told: Arc::clone(&told),
    };
    let mut net: Net<Length> = net(settings, link(lose));
    net.ends[0] = Endpoint::new(
        &Arc::new(settings.clone()),
        Control::Boxed(Box::new(fixed)),
        Role::Active,
        5,
    );
    net.open();
    net.ends[0].write_endless();
    net.run_until(ms(2_000));
    let told = told.lock().expect("one thread");
    told.clone()
}

fn losses(told: &[Told]) -> Vec<Lost> {
    let lost = |told: &Told| match told {
        Told::Lost(lost) => Some(*lost),
        _ => None,
    };
    told.iter().filter_map(lost).collect()
}

/// With and without RACK.
fn stacks() -> [Settings; 2] {
    let linux = Profile::named("linux").expect("it exists").settings;
    [
        settings(),
        Settings {
            recovery: linux.recovery,
            ..settings()
        },
    ]
}

#[test]
fn losses_are_reported_between_congestion_event_and_ack() {
    for settings in stacks() {
        let told = told(&settings, true, &[40, 41, 45]);
        let losses = losses(&told);
        let lens: u64 = losses.iter().map(|lost| lost.bytes.get()).sum();
        assert_eq!((losses.len(), lens), (3, 3 * MSS), "{losses:?}");
        // Two adjacent losses, and one apart.
        let numbers: Vec<u64> = losses.iter().map(|lost| lost.number).collect();
        assert_eq!([numbers[1] - numbers[0], numbers[2] - numbers[0]], [1, 5]);
        for (n, lost) in (1..).zip(&losses) {
            // Each was sent with a full window in flight, and all three were lost after it.
            assert_eq!(lost.tx_in_flight, Bytes::new(20 * MSS));
            assert_eq!(lost.lost, Bytes::new(n * MSS));
            assert!(lost.selective && !lost.app_limited);
        }
        let first = told.iter().position(|t| matches!(t, Told::Lost(_)));
        let congestion = told.iter().position(|t| matches!(t, Told::Congestion));
        assert!(congestion < first && congestion.is_some());
        let acknowledged: u64 = told
            .iter()
            .map(|t| match t {
                Told::Ack(ack) => ack.lost.get(),
                _ => 0,
            })
            .sum();
        assert_eq!(acknowledged, 3 * MSS);
        let Some(Told::Ack(ack)) =
            first.and_then(|first| told[first..].iter().find(|t| matches!(t, Told::Ack(_))))
        else {
            panic!("no acknowledgment after the loss");
        };
        assert!(ack.lost > Bytes::ZERO);
        // The sample includes the losses in flight and the losses just found.
        let sample = ack.rate.expect("a sample");
        assert_eq!(sample.lost, ack.lost);
        assert_eq!(
            losses[0].delivered,
            sample.prior_delivered + sample.delivered
        );
    }
}

#[test]
fn a_lost_retransmission_is_reported_with_its_flight() {
    // The first of these is retransmitted as the next packet after the current window.
    let [_, racked] = stacks();
    let all: Vec<u32> = (40..41).chain(57..75).collect();
    let losses = losses(&told(&racked, true, &all));
    assert!(losses.len() > all.len() / 2, "{losses:?}");
    let numbers: Vec<u64> = losses.iter().map(|lost| lost.number).collect();
    let again = numbers.iter().filter(|n| **n == numbers[0]).count();
    assert!(again >= 2, "{numbers:?}");
    assert!(losses.iter().all(|lost| lost.lost >= lost.bytes));
    assert!(losses.iter().all(|lost| lost.tx_in_flight >= lost.bytes));
}

#[test]
fn a_timeout_reports_every_segment_it_marks_lost() {
    // A whole window, so that no later segment shows the loss.
    let all: Vec<u32> = (40..60).collect();
    let told = told(&settings(), true, &all);
    let rto = told.iter().position(|t| matches!(t, Told::Rto));
    let rto = rto.expect("nothing arrives any more");
    let after: Vec<u64> = told[rto + 1..]
        .iter()
        .map_while(|t| match t {
            Told::Lost(lost) => Some(lost.number),
            _ => None,
        })
        .collect();
    assert_eq!(after.len(), 20, "{after:?}");
    assert!(after.is_sorted() && after[19] - after[0] == 19);
}

#[test]
fn without_sack_one_loss_is_reported_per_round_trip() {
    let settings = Settings {
        sack: false,
        ..settings()
    };
    let losses = losses(&told(&settings, true, &[40, 45]));
    assert_eq!(losses.len(), 2, "{losses:?}");
    assert_eq!(losses[1].number - losses[0].number, 5);
    assert!(losses.iter().all(|lost| !lost.selective));
}

#[test]
fn losses_are_reported_only_on_request() {
    for settings in stacks() {
        let told = told(&settings, false, &[40, 41, 45]);
        assert!(losses(&told).is_empty());
        assert!(told.iter().any(|t| matches!(t, Told::Congestion)));
        let nothing = |t: &Told| match t {
            Told::Ack(ack) => ack.rate.is_none_or(|rate| rate.lost == Bytes::ZERO),
            _ => true,
        };
        assert!(told.iter().all(nothing));
    }
}
