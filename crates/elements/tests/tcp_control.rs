//! What an endpoint tells its congestion control, and that it obeys.

mod tcp_support;

use std::sync::{Arc, Mutex};

use anabranch_core::units::{Bytes, Rate};
use anabranch_elements::{
    body::Length,
    cc::{Ack, Congestion, CongestionControl, Control, RateSample, Rto, Wants},
    tcp::{EcnMode, Endpoint, Role, Settings},
};
use tcp_support::{
    Net,
    plain::{MSS, link, ms, net, settings},
};

#[test]
fn marks_are_echoed_and_halve_the_window_once_per_round_trip() {
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
    let stats = *net.ends[0].stats();
    assert!(net.ends[1].stats().ce_segments > 3);
    assert_eq!(stats.ecn_reductions, 1, "{before:?}");
    assert_eq!((stats.fast_recoveries, stats.retransmitted_packets), (0, 0));
}

/// A user's control: a fixed window, a fixed rate, and what it was told.
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
fn a_control_that_wants_rate_samples_gets_the_rate_of_the_link() {
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
