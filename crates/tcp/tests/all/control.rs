//! Events that an endpoint delivers to its congestion control, and its compliance with the control.

use crate::support;

use std::sync::{Arc, Mutex};

use anabranch_congestion::{
    Ack, Config, Congestion, CongestionControl, Control, Family, RateSample, Recovered, Rto,
    Signal, Wants, registry,
};
use anabranch_core::{
    body::Length,
    units::{Bytes, Rate},
};
use anabranch_tcp::{EcnMode, Endpoint, Recovery, Role, Settings};
use support::{
    Net,
    plain::{MSS, link, ms, net, settings, without_sack},
};

#[test]
fn echoed_marks_halve_the_window_once_per_round_trip() {
    let s = Settings {
        ecn: EcnMode::Rfc3168,
        ..settings()
    };
    let mut net = net(&s, link(&[]));
    net.open();
    net.run_until(ms(50));
    net.ends[0].write_endless();
    net.flush();
    net.run_until(ms(65));
    let before = net.ends[0].cwnd();
    net.mark = true;
    net.run_until(ms(75));
    net.mark = false;
    net.run_until(ms(300));
    let stats = net.ends[0].stats();
    assert!(net.ends[1].stats().ce_segments > 3);
    assert_eq!(stats.ecn_reductions, 1, "{before:?}");
    assert_eq!((stats.fast_recoveries, stats.retransmitted_packets), (0, 0));
}

/// A user's control with a fixed window and a fixed rate, which records the samples it receives.
#[derive(Debug)]
struct Fixed {
    cwnd: u64,
    rate: Option<Rate>,
    samples: Arc<Mutex<Vec<RateSample>>>,
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, ack: &Ack) {
        self.samples.lock().expect("one thread").extend(ack.rate);
    }
    fn on_congestion(&mut self, _event: &Congestion) {}
    fn on_rto(&mut self, _event: &Rto) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
    fn wants(&self) -> Wants {
        Wants {
            rate_samples: true,
            ..Wants::default()
        }
    }
}

fn with_fixed(rate: Option<Rate>) -> (Net<Length>, Arc<Mutex<Vec<RateSample>>>) {
    let samples = Arc::new(Mutex::new(Vec::new()));
    let fixed = Fixed {
        cwnd: 400 * MSS,
        rate,
        samples: Arc::clone(&samples),
    };
    let mut net = net(&settings(), link(&[]));
    net.ends[0] = Endpoint::new(
        &Arc::new(settings()),
        Control::Boxed(Box::new(fixed)),
        Role::Active,
        5,
    );
    net.open();
    net.ends[0].write_endless();
    net.run_until(ms(1000));
    (net, samples)
}

#[test]
fn rate_samples_show_the_rate_of_the_link() {
    // 1,000 octets each 0.1 ms.
    let (_, samples) = with_fixed(None);
    let samples = samples.lock().expect("one thread");
    for sample in &samples[samples.len() - 100..] {
        let rate = Rate::from_bytes_per(sample.delivered, sample.interval).expect("not zero");
        assert!((79.0..81.0).contains(&rate.as_mbit_per_s()), "{rate:?}");
        assert!(!sample.app_limited);
    }
}

#[test]
fn a_control_that_paces_is_obeyed() {
    let (net, samples) = with_fixed(Some(Rate::from_mbit_per_s(8)));
    // 8 Mbit/s for 0.98 s.
    let sent = net.ends[0].stats().sent_packets;
    assert!((975..=985).contains(&sent), "{sent}");
    let last = *samples.lock().expect("one thread").last().expect("samples");
    let rate = Rate::from_bytes_per(last.delivered, last.interval).expect("not zero");
    assert!((7.9..8.1).contains(&rate.as_mbit_per_s()), "{rate:?}");
}

/// The events of a registered control and its reductions, in the first recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Course {
    /// Congestion events received.
    asked: u32,
    /// Events after which the window or ssthresh was smaller than before.
    reduced: u32,
    over: bool,
}

/// A registered control under observation.
#[derive(Debug)]
struct Watched {
    inner: Control,
    /// A wrong system: it treats the loss shown by a partial acknowledgment as a new one.
    twice: bool,
    seen: Arc<Mutex<Course>>,
}

impl Watched {
    fn tell(&mut self, event: impl FnOnce(&mut Control)) {
        let windows = |c: &Control| (c.cwnd(), c.ssthresh().unwrap_or(Bytes::new(u64::MAX)));
        let before = windows(&self.inner);
        event(&mut self.inner);
        let after = windows(&self.inner);
        let mut seen = self.seen.lock().expect("one thread");
        if seen.asked > 0 && !seen.over {
            seen.reduced += u32::from(after.0 < before.0 || after.1 < before.1);
        }
    }
    fn asked(&self) -> u32 {
        self.seen.lock().expect("one thread").asked
    }
}

impl CongestionControl for Watched {
    fn on_ack(&mut self, ack: &Ack) {
        if self.twice && ack.in_recovery && ack.acked > Bytes::ZERO && self.asked() == 1 {
            self.on_congestion(&Congestion {
                now: ack.now,
                signal: Signal::Loss,
                in_flight: self.inner.cwnd(),
            });
        }
        self.tell(|control| control.on_ack(ack));
    }
    fn on_congestion(&mut self, event: &Congestion) {
        {
            let mut seen = self.seen.lock().expect("one thread");
            seen.asked += u32::from(!seen.over);
        }
        self.tell(|control| control.on_congestion(event));
    }
    fn on_rto(&mut self, event: &Rto) {
        self.tell(|control| control.on_rto(event));
    }
    fn on_recovered(&mut self, event: &Recovered) {
        self.seen.lock().expect("one thread").over = true;
        self.tell(|control| control.on_recovered(event));
    }
    fn cwnd(&self) -> Bytes {
        self.inner.cwnd()
    }
    fn ssthresh(&self) -> Option<Bytes> {
        self.inner.ssthresh()
    }
    fn wants(&self) -> Wants {
        self.inner.wants()
    }
}

/// Segments 40 and 60 of one flight are lost. The second loss is detected only in the recovery that
/// the first began.
fn two_losses(settings: &Settings, config: &Config, twice: bool) -> Course {
    let seen = Arc::new(Mutex::new(Course::default()));
    let watched = Watched {
        inner: config.build(&settings.init()),
        twice,
        seen: Arc::clone(&seen),
    };
    let mut net = net(settings, link(&[40, 60]));
    net.ends[0] = Endpoint::new(
        &Arc::new(settings.clone()),
        Control::Boxed(Box::new(watched)),
        Role::Active,
        5,
    );
    net.open();
    net.ends[0].write_endless();
    while !seen.lock().expect("one thread").over {
        assert!(net.step() && net.now < ms(2_000), "no recovery ends");
    }
    let stats = net.ends[0].stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));
    assert_eq!(stats.retransmitted_packets, 2);
    *seen.lock().expect("one thread")
}

/// Without the timer rule of Cubic+, which treats a second loss differently (see
/// `cc_cubic_plus.rs`).
#[test]
fn a_second_loss_of_the_same_flight_reduces_nothing_again() {
    let rack = Settings {
        recovery: Recovery::Rack,
        ..settings()
    };
    let stacks = [settings(), without_sack(Recovery::NewReno), rack];
    let once = Course {
        asked: 1,
        reduced: 1,
        over: true,
    };
    let (mut tried, mut found_out) = (0, Vec::new());
    for (meta, config, _) in registry() {
        if config.family() == Some(Family::ModelBased) {
            continue;
        }
        for stack in &stacks {
            let name = (meta.name, stack.recovery);
            assert_eq!(two_losses(stack, &config, false), once, "{name:?}");
            // The same control also receives the second loss.
            let wrong = two_losses(stack, &config, true);
            assert_eq!(wrong.asked, 2, "{name:?}");
            if wrong.reduced == 2 {
                found_out.push(meta.name);
            }
            tried += 1;
        }
    }
    // Only Westwood+ reduces to its own measurement, which a second loss does not change.
    found_out.dedup();
    assert_eq!((tried, found_out.len()), (3 * 10, 9), "{found_out:?}");
    assert!(!found_out.contains(&"westwood-plus"));
}
