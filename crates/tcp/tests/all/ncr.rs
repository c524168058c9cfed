//! TCP-NCR: the equations of RFC 4653 against an independent closed form, and the behavior of a
//! sender with it.

use crate::support;

use std::sync::Arc;

use anabranch_congestion::params::ReductionBase;
use anabranch_core::{body::Octets, units::Duration};
use anabranch_tcp::{
    Settings,
    remedy::{Config, Custom, Init, Policy, Progress, Remedy, View, ncr},
};
use anabranch_wire::Seq;
use support::{
    Link, Net, octets,
    remedies::{SMSS, build, settings, view},
};

fn remedy_of(variant: ncr::Variant, restart: ncr::Restart) -> Remedy {
    build(&Config::Ncr(ncr::Params { variant, restart }))
}

const VARIANTS: [ncr::Variant; 2] = [ncr::Variant::Careful, ncr::Variant::Aggressive];

/// `acked` segments are acknowledged; `reports`: others are SACKed above a gap.
fn progress(acked: u64, reports: bool) -> Progress {
    Progress {
        acked: acked * SMSS,
        open: true,
        reports,
        rtt: None,
    }
}

/// A minimal sender with only the remedy, in whole segments.
struct Sender {
    remedy: Remedy,
    cwnd: u64,
    flight: u64,
    pipe: u64,
}

impl Sender {
    fn full(remedy: Remedy, cwnd: u64) -> Self {
        Self {
            remedy,
            cwnd,
            flight: cwnd,
            pipe: cwnd,
        }
    }
    fn view(&self) -> View {
        view(self.cwnd, self.flight, self.pipe)
    }
    /// One more segment is SACKed. Returns the number of segments sent in response.
    fn duplicate(&mut self) -> u64 {
        self.pipe -= 1;
        self.remedy.on_duplicate(&self.view());
        self.send()
    }
    /// `acked` segments are acknowledged cumulatively; `fresh` of them had not been SACKed.
    fn advance(&mut self, acked: u64, fresh: u64, reports: bool) {
        self.flight -= acked;
        self.pipe -= fresh;
        self.remedy
            .on_progress(&progress(acked, reports), &self.view());
    }
    fn send(&mut self) -> u64 {
        let mut sent = 0;
        while self.remedy.room(&self.view()) >= SMSS {
            self.flight += 1;
            self.pipe += 1;
            sent += 1;
            self.remedy.on_sent(Seq::first(0), &self.view());
        }
        sent
    }
}

/// RFC 4653 §3: for 30 windows the threshold is met when the number of duplicates equals the number
/// of segments, up to rounding. Careful sends half of them, aggressive all.
#[test]
fn the_threshold_is_about_a_window_of_duplicates() {
    for window in 6_u64..36 {
        for variant in VARIANTS {
            let mut sender = Sender::full(remedy_of(variant, ncr::Restart::Keep), window);
            let (mut duplicates, mut limited) = (0, 0);
            loop {
                duplicates += 1;
                sender.pipe -= 1;
                sender.remedy.on_duplicate(&sender.view());
                if duplicates >= u64::from(sender.remedy.dupthresh()) {
                    break;
                }
                limited += sender.send();
            }
            assert!(
                duplicates.abs_diff(window) <= 2,
                "{variant:?} {window}: {duplicates}"
            );
            let share = match variant {
                ncr::Variant::Careful => 2,
                ncr::Variant::Aggressive => 1,
            };
            assert!((limited * share).abs_diff(duplicates) <= 2, "{variant:?}");
        }
    }
}

/// The threshold by I.3 and E.6 for `flight` segments in flight.
fn threshold(variant: ncr::Variant, flight: u64) -> u64 {
    let share = match variant {
        ncr::Variant::Careful => flight - flight.div_ceil(3),
        ncr::Variant::Aggressive => flight - flight.div_ceil(2),
    };
    share.max(3)
}

/// RFC 4653 in closed form, for windows `w` and numbers `k` of duplicates. By E.2 with E.3 and E.4
/// the sender sends `s` segments until `w - k + 2 s` (careful) or `w - k + s` (aggressive) exceeds
/// `w - 1`: in total half of `k`, rounded up, or `k`. Then §3.2, §3.4, and E.2 again after T.4.
#[test]
fn ncr_follows_the_equations_of_rfc_4653() {
    use ncr::Variant::{Aggressive, Careful};
    let mut points = 0;
    for window in [4_u64, 5, 7, 10, 16, 20, 33, 60, 158] {
        for k in [1, 2, 3, 5, 8, 13, 21, 55] {
            for variant in VARIANTS {
                if k >= window {
                    continue;
                }
                let mut sender = Sender::full(remedy_of(variant, ncr::Restart::Keep), window);
                let mut sent = 0;
                for n in 1..=k {
                    let before = window + sent;
                    sent += sender.duplicate();
                    let expected = match variant {
                        Careful => n.div_ceil(2),
                        Aggressive => n,
                    };
                    assert_eq!(sent, expected, "E.2: {variant:?} {window} {n}");
                    // The flight at its arrival determines the threshold for the n-th.
                    assert_eq!(
                        u64::from(sender.remedy.dupthresh()),
                        threshold(variant, before),
                        "I.3 or E.6: {variant:?} {window} {n}"
                    );
                }
                // §3.4: the flight at the first duplicate, independent of the current flight.
                let mut lost = remedy_of(variant, ncr::Restart::Keep);
                lost.on_duplicate(&view(window, window, window - 1));
                lost.on_duplicate(&view(window, window + sent, window - k + sent));
                assert_eq!(lost.on_loss(), Some(window * SMSS));
                assert_eq!((lost.on_loss(), lost.ramp()), (None, None));

                // T.1 and T.2: the gap closes up to the last SACKed segment.
                let flight = window + sent - (k + 1);
                let mut closed = Sender::full(remedy_of(variant, ncr::Restart::Keep), window);
                for _ in 0..k {
                    closed.duplicate();
                }
                closed.advance(k + 1, 1, false);
                let cwnd = (flight + 1).min(window);
                let ramp = closed.remedy.ramp().map(|octets| octets / SMSS);
                assert_eq!(ramp, (cwnd < window).then_some(cwnd), "T.1: {window} {k}");

                // T.4: only half of the gap closes, up to a second gap.
                if k < 3 {
                    continue;
                }
                let acked = k / 2 + 1;
                sender.advance(acked, 1, true);
                let (flight, pipe) = (sender.flight, sender.pipe);
                assert_eq!(
                    u64::from(sender.remedy.dupthresh()),
                    threshold(variant, flight),
                    "I.3 at T.4: {variant:?} {window} {k}"
                );
                let first = u64::from(flight < window);
                let left = (window - pipe).saturating_sub(first);
                let expected = first
                    + match variant {
                        Careful => left.div_ceil(2),
                        Aggressive => left,
                    };
                assert_eq!(
                    sender.send(),
                    expected,
                    "T.3, I.2: {variant:?} {window} {k}"
                );
                assert_eq!(
                    sender.remedy.on_loss(),
                    Some(window * SMSS),
                    "T.4 keeps I.1"
                );
                points += 1;
            }
        }
    }
    assert!(points >= 20, "{points}");
}

/// `restart = "anew"`, which is not in the RFC: from T.4 on the current window of the control is
/// kept.
#[test]
fn the_alternative_restart_begins_with_the_current_window() {
    for variant in VARIANTS {
        let mut sender = Sender::full(remedy_of(variant, ncr::Restart::Anew), 20);
        for _ in 0..6 {
            sender.duplicate();
        }
        assert!(!sender.remedy.holds());
        sender.cwnd = 24;
        sender.advance(3, 1, true);
        assert_eq!(sender.remedy.on_loss(), Some(24 * SMSS));
    }
}

/// RFC 4653 §3.2: no burst when the gap closes; slow start up to the flight from before and
/// congestion avoidance beyond, even if the control's window is larger.
#[test]
fn the_bound_grows_back_from_the_current_flight() {
    let mut remedy = remedy_of(ncr::Variant::Careful, ncr::Restart::Keep);
    remedy.on_duplicate(&view(20, 20, 19));
    assert_eq!((remedy.ramp(), remedy.holds()), (None, true));
    remedy.on_progress(&progress(11, false), &view(20, 14, 14));
    let mut ramps = vec![remedy.ramp().map(|octets| octets / SMSS)];
    while remedy.ramp().is_some() {
        assert!(remedy.holds());
        remedy.on_progress(&progress(11, false), &view(20, 14, 14));
        ramps.push(remedy.ramp().map(|octets| octets / SMSS));
    }
    assert_eq!(
        ramps,
        [Some(15), Some(16), Some(17), Some(18), Some(19), None]
    );
    // The flight was 20 and the control's window is 40: beyond 20 the bound grows by one segment
    // per window.
    remedy.on_duplicate(&view(40, 20, 19));
    remedy.on_progress(&progress(11, false), &view(40, 14, 14));
    let mut acks = 0;
    while remedy.ramp().is_some_and(|ramp| ramp < 23 * SMSS) {
        remedy.on_progress(&progress(1, false), &view(40, 20, 20));
        acks += 1;
    }
    // Five to reach 20, then 20, 21 and 22, each possibly one more for the rest of a segment.
    assert!((5 + 63..=5 + 63 + 3).contains(&acks), "{acks}");
    // Acknowledgments during a repair do not increase it.
    let before = remedy.ramp();
    let repair = Progress {
        open: false,
        ..progress(5, false)
    };
    remedy.on_progress(&repair, &view(40, 20, 20));
    assert_eq!(remedy.ramp(), before);
}

/// A wrong TCP-NCR: it counts data that it holds back itself as limited by cwnd.
#[derive(Debug)]
struct Unheld(Remedy);

impl Policy for Unheld {
    fn dupthresh(&self) -> u32 {
        self.0.dupthresh()
    }
    fn on_duplicate(&mut self, view: &View) {
        self.0.on_duplicate(view);
    }
    fn on_progress(&mut self, progress: &Progress, view: &View) {
        self.0.on_progress(progress, view);
    }
    fn on_sent(&mut self, end: Seq, view: &View) {
        self.0.on_sent(end, view);
    }
    fn room(&self, view: &View) -> u64 {
        self.0.room(view)
    }
    fn extends(&self) -> bool {
        self.0.extends()
    }
    fn ramp(&self) -> Option<u64> {
        self.0.ramp()
    }
    fn holds(&self) -> bool {
        false
    }
    fn attends(&self) -> bool {
        true
    }
}

fn custom(build: impl Fn(&Init) -> Box<dyn Policy> + Send + Sync + 'static) -> Config {
    Config::Custom(Custom {
        name: String::from("double"),
        params: serde_json::Value::Null,
        build: Arc::new(build),
    })
}

/// TCP-NCR, not cwnd, limits the data it holds back. Over a path that reorders without end the
/// window is therefore at most twice the largest flight, as after slow start.
#[test]
fn data_held_back_does_not_raise_cwnd() {
    let cwnd_and_flight = |config: &Config| {
        let settings = settings(config);
        let link = Link {
            jitter: Duration::from_millis(4),
            gap: Duration::from_micros(400),
            ..Link::default()
        };
        let mut net: Net<Octets> = Net::new(&settings, &settings, link, [0, 77]);
        net.open();
        net.ends[0].write_all(Octets(octets(7, 2_000_000).0));
        net.flush();
        let mut most = 0;
        while net.step() && !net.ends[0].all_acknowledged() {
            most = most.max(net.ends[0].snapshot().in_flight.get());
        }
        (net.ends[0].cwnd().get(), most)
    };
    let (cwnd, flight) = cwnd_and_flight(&Config::Ncr(ncr::Params::default()));
    assert!(cwnd <= 2 * flight, "{cwnd} {flight}");
    let wrong = custom(|_| Box::new(Unheld(build(&Config::Ncr(ncr::Params::default())))));
    let (cwnd, flight) = cwnd_and_flight(&wrong);
    assert!(cwnd > 2 * flight, "{cwnd} {flight}");
}

/// A remedy with a constant threshold, with which a loss reduces a window of eight segments.
#[derive(Debug)]
struct Eight;

impl Policy for Eight {
    fn dupthresh(&self) -> u32 {
        3
    }
    fn on_loss(&mut self) -> Option<u64> {
        Some(8 * SMSS)
    }
}

/// RFC 4653 §3.4: a loss halves the window that the remedy returns, even if the control's window is
/// larger and the control reduces from cwnd.
#[test]
fn a_loss_reduces_the_window_the_remedy_returns() {
    for reduce_from in [ReductionBase::FlightSize, ReductionBase::Cwnd] {
        let settings = Settings {
            reduce_from,
            ..settings(&custom(|_| Box::new(Eight)))
        };
        let link = Link {
            lose: vec![30],
            gap: Duration::from_micros(500),
            ..Link::default()
        };
        let mut net: Net<Octets> = Net::new(&settings, &settings, link, [0, 77]);
        net.ends[0].keep_window_log();
        net.open();
        net.ends[0].write_all(Octets(octets(7, 200_000).0));
        net.flush();
        while net.step() && !net.ends[0].all_acknowledged() {}
        let log = net.ends[0].take_window_log();
        assert!(log[0].cwnd.0.get() > 8 * SMSS, "{log:?}");
        assert_eq!(log[0].cwnd.1.get(), 4 * SMSS, "{log:?}");
        assert_eq!(log[0].ssthresh.1, Some(log[0].cwnd.1), "{log:?}");
    }
}
