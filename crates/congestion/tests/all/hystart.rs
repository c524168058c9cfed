//! HyStart on constructed ACK sequences.

use crate::support;

use anabranch_congestion::{
    Ack,
    hystart::{HyStart, PlusPlus, Settings, Verdict, plus_plus},
};
use anabranch_core::units::{Duration, Instant};
use support::ack;

const RTT: Duration = Duration::from_millis(40);

const SETTINGS: Settings = Settings {
    low_window: 16.0,
    ack_delta: Duration::from_millis(2),
    ack_train_share: 0.5,
    delay_share: 0.125,
    delay_min: Duration::from_millis(4),
    delay_max: Duration::from_millis(16),
    min_samples: 8,
};

/// HyStart as published.
fn hystart() -> HyStart {
    HyStart::new(SETTINGS, false)
}

/// HyStart as in current Linux.
fn patient() -> HyStart {
    HyStart::new(SETTINGS, true)
}

/// The time at which slow start ends, in ms since the start of the round, with an ACK of these RTTs
/// (in ms) every half millisecond. The handshake took 30 ms.
fn ends(mut hystart: HyStart, rtts: impl IntoIterator<Item = u64>) -> Option<f64> {
    let start = Instant::from_millis(500);
    (0_u32..).zip(rtts).find_map(|(n, rtt)| {
        let since = Duration::from_micros(500 * u64::from(n));
        let ack = Ack {
            min_rtt: Duration::from_millis(30),
            ..ack(start + since, Duration::from_millis(rtt))
        };
        hystart
            .ends_slow_start(&ack, 40.0)
            .then(|| f64::from(n) / 2.0)
    })
}

/// Measured with Linux 6.18 at twelve rates and delays: half of the smallest RTT of data, without
/// the handshake, plus half a millisecond.
#[test]
fn linux_waits_for_half_the_data_rtt_and_half_a_millisecond() {
    assert_eq!(ends(patient(), [40; 100]), Some(20.5));
    // As published: eight samples that are 10 ms above the handshake's.
    assert_eq!(ends(hystart(), [40; 100]), Some(3.5));
}

/// Measured with Linux 6.18: the delay is 20 ms higher from the first segment of a round on.
#[test]
fn linux_reacts_at_the_ninth_sample_of_a_delay() {
    let mut hystart = patient();
    let round = |round, now, rtt| Ack {
        round,
        min_rtt: RTT,
        ..ack(Instant::from_millis(now), Duration::from_millis(rtt))
    };
    assert!(!hystart.ends_slow_start(&round(1, 500, 40), 40.0));
    let ended = (0..1_000).find(|n| hystart.ends_slow_start(&round(2, 600 + 3 * n, 60), 40.0));
    assert_eq!(ended, Some(8), "eight precede it");
}

/// A round in which a queue grows, as on two paths of unequal delay: the first samples may all be
/// above eta if a later one is not.
#[test]
fn linux_takes_the_smallest_rtt_of_the_whole_round() {
    let low_at = |mut hystart: HyStart, low: u64| {
        let first = Ack {
            round: 1,
            min_rtt: RTT,
            ..ack(Instant::from_millis(500), RTT)
        };
        assert!(!hystart.ends_slow_start(&first, 40.0));
        (0..20).find(|&at| {
            let rtt = if at == low { 41 } else { 60 };
            let ack = Ack {
                round: 2,
                min_rtt: RTT,
                ..ack(
                    Instant::from_millis(600 + 3 * at),
                    Duration::from_millis(rtt),
                )
            };
            hystart.ends_slow_start(&ack, 40.0)
        })
    };
    let taken_in = low_at(patient(), 8);
    assert_eq!(taken_in, None, "the ninth counts before it is looked at");
    assert_eq!(low_at(patient(), 9), Some(8), "too late");
    assert_eq!(
        low_at(hystart(), 8),
        Some(7),
        "as published: the first eight"
    );
}

/// The time from the start of the round to the end of slow start, with an ACK every `gap`.
fn train_ends(cwnd: f64, gap: Duration) -> Option<Duration> {
    let mut hystart = hystart();
    let start = Instant::from_millis(500);
    let mut now = start;
    while now - start < RTT {
        if hystart.ends_slow_start(&ack(now, RTT), cwnd) {
            return Some(now - start);
        }
        now = now + gap;
    }
    None
}

#[test]
fn an_ack_train_as_long_as_half_the_rtt_ends_slow_start() {
    assert_eq!(
        train_ends(40.0, Duration::from_millis(1)),
        Some(Duration::from_millis(20))
    );
    assert_eq!(
        train_ends(40.0, Duration::from_millis(2)),
        Some(Duration::from_millis(20))
    );
}

#[test]
fn acks_far_apart_form_no_train() {
    assert_eq!(train_ends(40.0, Duration::from_micros(2_001)), None);
}

#[test]
fn slow_start_continues_below_the_low_window() {
    assert_eq!(train_ends(15.9, Duration::from_millis(1)), None);
}

#[test]
fn a_train_does_not_span_rounds() {
    let mut hystart = hystart();
    for step in 0..100 {
        let now = Instant::from_millis(500 + step);
        let ack = Ack {
            round: step / 10,
            ..ack(now, RTT)
        };
        assert!(!hystart.ends_slow_start(&ack, 40.0));
    }
}

/// The ACK of the round at which slow start ends, with RTTs that exceed the smallest by `above`.
fn delay_ends(min_rtt: Duration, above: Duration) -> Option<u64> {
    let mut hystart = hystart();
    (1..=20).find(|n| {
        // Too far apart for a train.
        let now = Instant::from_millis(500 + 3 * n);
        let ack = Ack {
            min_rtt,
            ..ack(now, min_rtt + above)
        };
        hystart.ends_slow_start(&ack, 40.0)
    })
}

#[test]
fn a_delay_above_eta_ends_slow_start_after_eight_samples() {
    // An eighth of 80 ms.
    let rtt = Duration::from_millis(80);
    assert_eq!(delay_ends(rtt, Duration::from_millis(10)), Some(8));
    assert_eq!(delay_ends(rtt, Duration::from_micros(9_999)), None);
}

#[test]
fn eta_has_bounds() {
    assert_eq!(
        delay_ends(Duration::from_millis(8), Duration::from_micros(3_999)),
        None
    );
    assert_eq!(
        delay_ends(Duration::from_millis(8), Duration::from_millis(4)),
        Some(8)
    );
    assert_eq!(
        delay_ends(Duration::from_millis(800), Duration::from_micros(15_999)),
        None
    );
    assert_eq!(
        delay_ends(Duration::from_millis(800), Duration::from_millis(16)),
        Some(8)
    );
}

#[test]
fn one_short_rtt_among_the_samples_keeps_slow_start() {
    let mut hystart = hystart();
    for n in 1..=20 {
        let rtt = if n == 5 { RTT } else { RTT * 2 };
        let ack = Ack {
            min_rtt: RTT,
            ..ack(Instant::from_millis(500 + 3 * n), rtt)
        };
        assert!(!hystart.ends_slow_start(&ack, 40.0));
    }
}

#[test]
fn slow_start_continues_without_rtt_samples() {
    let mut hystart = hystart();
    for n in 0..100 {
        let ack = Ack {
            rtt: None,
            min_rtt: Duration::ZERO,
            ..ack(Instant::from_millis(n), RTT)
        };
        assert!(!hystart.ends_slow_start(&ack, 40.0));
    }
}

// HyStart++ (RFC 9406).

fn plus_plus() -> PlusPlus {
    PlusPlus::new(plus_plus::Settings::default())
}

/// Runs a round of ACKs with this RTT and returns the last verdict.
fn round_of(hystart: &mut PlusPlus, round: u64, rtt_ms: u64, acks: u32) -> Verdict {
    let mut last = Verdict::Grow(0.0);
    for _ in 0..acks {
        let mut ack = ack(
            Instant::from_millis(1000 * round),
            Duration::from_millis(rtt_ms),
        );
        ack.round = round;
        last = hystart.on_ack(&ack);
        if last == Verdict::End {
            break;
        }
    }
    last
}

#[test]
fn rfc_9406_4_2_the_threshold_is_an_eighth_between_4_and_16_ms() {
    let hystart = plus_plus();
    for (rtt_us, thresh_us) in [
        (8_000, 4_000),
        (32_000, 4_000),
        (50_000, 6_250),
        (100_000, 12_500),
        (128_000, 16_000),
        (300_000, 16_000),
    ] {
        assert_eq!(
            hystart.rtt_thresh(Duration::from_micros(rtt_us)),
            Duration::from_micros(thresh_us)
        );
    }
}

#[test]
fn a_delay_above_the_threshold_starts_five_rounds_of_css() {
    let mut hystart = plus_plus();
    assert_eq!(round_of(&mut hystart, 1, 100, 20), Verdict::Grow(1.0));
    // 12 ms more is below the threshold of 12.5 ms; seven samples are not enough.
    assert_eq!(round_of(&mut hystart, 2, 112, 20), Verdict::Grow(1.0));
    assert_eq!(round_of(&mut hystart, 3, 140, 7), Verdict::Grow(1.0));
    assert_eq!(round_of(&mut hystart, 3, 140, 1), Verdict::Grow(0.25));
    // The round in which CSS began is the first of the five (CSS_ROUNDS).
    for round in 4..=7 {
        assert_eq!(
            round_of(&mut hystart, round, 150, 20),
            Verdict::Grow(0.25),
            "{round}"
        );
    }
    assert_eq!(round_of(&mut hystart, 8, 150, 20), Verdict::End);
}

#[test]
fn a_delay_that_falls_again_resumes_slow_start() {
    let mut hystart = plus_plus();
    let _ = round_of(&mut hystart, 1, 100, 20);
    assert_eq!(round_of(&mut hystart, 2, 120, 20), Verdict::Grow(0.25));
    assert!(hystart.is_conservative());
    // Below the baseline of 120 ms, with eight samples.
    assert_eq!(round_of(&mut hystart, 3, 119, 7), Verdict::Grow(0.25));
    assert_eq!(round_of(&mut hystart, 3, 119, 1), Verdict::Grow(1.0));
    assert!(!hystart.is_conservative());
}

#[test]
fn hystart_plus_plus_applies_only_to_the_first_slow_start() {
    let mut hystart = plus_plus();
    let _ = round_of(&mut hystart, 1, 100, 20);
    hystart.end();
    for round in 2..20 {
        assert_eq!(
            round_of(&mut hystart, round, 100 + 50 * round, 20),
            Verdict::Grow(1.0)
        );
    }
}
