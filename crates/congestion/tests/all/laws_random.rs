//! Laws of every registered congestion control under random events.

use crate::support;

use anabranch_congestion::{CongestionControl, Family, Signal, registry};
use anabranch_core::units::{Bytes, Duration};
use proptest::prelude::*;
use support::{Path, SMSS, WINDOWS, segments};

const RTT: Duration = Duration::from_millis(50);

/// Any event of a control.
#[derive(Debug, Clone, Copy)]
enum Happens {
    RoundTrip,
    Ack {
        segments: u64,
        in_recovery: bool,
        cwnd_limited: bool,
    },
    Pause {
        ms: u64,
    },
    Idle {
        ms: u64,
    },
    Loss {
        in_flight_share: f64,
        mark: bool,
    },
    Rto {
        consecutive: u32,
    },
    TimerLoss,
    Recovered,
    Spurious {
        timeout: bool,
    },
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::RoundTrip),
        8 => (1..100_u64, any::<bool>(), any::<bool>()).prop_map(
            |(segments, in_recovery, cwnd_limited)| Happens::Ack { segments, in_recovery, cwnd_limited }
        ),
        2 => (0..100_000_u64).prop_map(|ms| Happens::Pause { ms }),
        1 => (0..100_000_u64).prop_map(|ms| Happens::Idle { ms }),
        2 => (0.0..2.0, any::<bool>())
            .prop_map(|(in_flight_share, mark)| Happens::Loss { in_flight_share, mark }),
        1 => (1..4_u32).prop_map(|consecutive| Happens::Rto { consecutive }),
        1 => Just(Happens::TimerLoss),
        1 => Just(Happens::Recovered),
        1 => any::<bool>().prop_map(|timeout| Happens::Spurious { timeout }),
    ]
}

fn apply(path: &mut Path, event: Happens) {
    match event {
        // Rounds of huge windows take long and show nothing more.
        Happens::RoundTrip if path.cwnd() > 5_000.0 => path.ack(),
        Happens::RoundTrip => {
            path.round_trip();
        }
        Happens::Ack {
            segments: n,
            in_recovery,
            cwnd_limited,
        } => path.ack_as(|ack| {
            ack.acked = segments(n);
            ack.in_recovery = in_recovery;
            ack.cwnd_limited = cwnd_limited;
        }),
        Happens::Pause { ms } => path.pause(Duration::from_millis(ms)),
        Happens::Idle { ms } => path.idle(Duration::from_millis(ms)),
        Happens::Loss {
            in_flight_share,
            mark,
        } => {
            let signal = if mark { Signal::EcnCe } else { Signal::Loss };
            path.congestion(signal, path.control.cwnd().mul_f64(in_flight_share));
        }
        Happens::Rto { consecutive } => path.rto(consecutive),
        Happens::TimerLoss => path.timer_loss(),
        Happens::Recovered => path.recovered(),
        Happens::Spurious { timeout } => path.spurious(timeout),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(80) })]

    #[test]
    fn the_same_events_give_the_same_windows(
        events in prop::collection::vec(happens(), 1..60), initial in 0..WINDOWS.len(),
    ) {
        for (_, config, _) in registry() {
            let mut twins = [0, 1].map(|_| Path::new(&config, WINDOWS[initial], RTT));
            for event in &events {
                for twin in &mut twins {
                    apply(twin, *event);
                }
                let [one, other] = &twins;
                prop_assert_eq!(one.control.cwnd(), other.control.cwnd());
                prop_assert_eq!(one.control.ssthresh(), other.control.ssthresh());
                prop_assert_eq!(one.control.state(), other.control.state());
            }
        }
    }

    #[test]
    fn windows_keep_their_floors_and_stay_finite_under_any_events(
        events in prop::collection::vec(happens(), 1..60), initial in 0..WINDOWS.len(),
    ) {
        for (meta, config, _) in registry() {
            let mut path = Path::new(&config, WINDOWS[initial], RTT);
            for event in &events {
                let before = path.control.cwnd();
                apply(&mut path, *event);
                let cwnd = path.control.cwnd();
                prop_assert!(cwnd >= SMSS, "{}: {:?}", meta.name, cwnd);
                prop_assert!(cwnd < Bytes::new(u64::MAX / 2), "{}: {:?}", meta.name, cwnd);
                if let Some(ssthresh) = path.control.ssthresh() {
                    prop_assert!(ssthresh >= segments(2), "{}: {:?}", meta.name, ssthresh);
                }
                for (name, value) in path.control.state() {
                    prop_assert!(value.is_finite(), "{}: {} = {}", meta.name, name, value);
                }
                if config.family() == Some(Family::ModelBased) {
                    continue;
                }
                match event {
                    Happens::Ack { segments: n, .. }
                        if config.family() == Some(Family::LossBased) =>
                    {
                        // Never down, and up by at most the amount acknowledged.
                        prop_assert!(cwnd >= before, "{}", meta.name);
                        prop_assert!(cwnd <= before + segments(*n) + Bytes::new(1), "{}", meta.name);
                    }
                    Happens::Loss { .. } => prop_assert!(cwnd <= before.max(segments(2)), "{}", meta.name),
                    Happens::Rto { .. } => prop_assert_eq!(cwnd, SMSS),
                    Happens::Idle { .. } | Happens::TimerLoss => {
                        prop_assert!(cwnd <= before, "{}", meta.name);
                    }
                    Happens::Spurious { .. } => prop_assert!(cwnd >= before, "{}", meta.name),
                    Happens::Ack { .. }
                    | Happens::RoundTrip
                    | Happens::Pause { .. }
                    | Happens::Recovered => {}
                }
            }
        }
    }
}
