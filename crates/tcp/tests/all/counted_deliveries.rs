//! Recovery without SACK that PRR paces: duplicates count as delivered segments.

use crate::support;

use anabranch_core::{body::Length, packet::Ecn, units::Instant};
use anabranch_tcp::{CongestionState, Endpoint, Profile, Recovery, RecoveryPace, Settings};
use proptest::prelude::*;
use support::plain::{MSS, ack, drain, established, ms, settings, without_sack};

/// Profile `linux-6.18` without SACK, with segments of 1,000 octets sent individually.
fn linux() -> Settings {
    let linux = Profile::named("linux-6.18").expect("it exists").settings;
    Settings {
        max_dupthresh: linux.max_dupthresh,
        recovery_pace: linux.recovery_pace,
        window_rules: linux.window_rules,
        reduce_from: linux.reduce_from,
        partial_ack_restarts_timer: linux.partial_ack_restarts_timer,
        ..without_sack(Recovery::NewReno)
    }
}

/// The numbers of the segments that leave at `now`, after an acknowledgment of `n` segments.
fn answer(end: &mut Endpoint<Length>, now: Instant, n: u32) -> Vec<u32> {
    end.on_segment(now, &ack(end, n * 1000), Ecn::NotEct);
    let sent = drain(end, now);
    sent.iter().map(|s| (s.seq - 101) / 1000).collect()
}

/// An endpoint that has sent its first ten segments.
fn begun(s: &Settings) -> Endpoint<Length> {
    let mut end = established(s);
    end.write_endless();
    assert_eq!(drain(&mut end, ms(100)).len(), 10);
    end
}

/// RFC 6937 §3: a duplicate delivers one segment. The recovery sends in proportion.
#[test]
fn partial_acknowledgments_do_not_bypass_the_window() {
    let mut end = begun(&linux());
    for (duplicate, sent) in [(1, vec![10]), (2, vec![11]), (3, vec![0]), (4, vec![])] {
        assert_eq!(answer(&mut end, ms(150), 0), sent, "{duplicate}");
    }
    // Six segments are in flight, one of five is lost: the ratio permits two of three.
    assert_eq!(answer(&mut end, ms(151), 5), [5]);
    assert!(answer(&mut end, ms(151), 6).is_empty());
    assert_eq!(answer(&mut end, ms(151), 7), [7]);
    assert_eq!(end.snapshot().state, CongestionState::Recovery);
    // With the window of RFC 6582 each partial acknowledgment retransmits.
    let mut end = begun(&Settings {
        recovery_pace: RecoveryPace::Pipe,
        ..linux()
    });
    for _ in 0..4 {
        answer(&mut end, ms(150), 0);
    }
    for n in 5..8 {
        assert_eq!(answer(&mut end, ms(151), n).first(), Some(&n));
    }
}

/// RFC 6582 §3.2 step 2: only an acknowledgment of more than `recover` shows that duplicates answer
/// new data.
#[test]
fn the_recovery_ends_after_recover() {
    let mut end = begun(&linux());
    for _ in 0..3 {
        answer(&mut end, ms(150), 0);
    }
    answer(&mut end, ms(200), 12);
    assert_eq!(end.snapshot().state, CongestionState::Recovery);
    let sent: Vec<_> = (0..5).map(|_| answer(&mut end, ms(200), 12)).collect();
    assert!(sent.iter().all(Vec::is_empty), "{sent:?}");
    answer(&mut end, ms(250), 13);
    assert_ne!(end.snapshot().state, CongestionState::Recovery);
    assert_eq!(end.stats().fast_recoveries, 1);
}

/// Duplicates needed for a recovery after `n` segments were answered by more than `n` duplicates.
fn threshold_after(s: &Settings, n: u32) -> u32 {
    let mut end = established(s);
    end.write_all(Length(n * 1000));
    assert_eq!(drain(&mut end, ms(100)).len(), n as usize);
    for _ in 0..=n {
        answer(&mut end, ms(150), 0);
    }
    let before = end.stats().fast_recoveries;
    // Ends a recovery, if there was one.
    answer(&mut end, ms(200), n);
    end.write_all(Length(1000));
    drain(&mut end, ms(200));
    answer(&mut end, ms(250), n + 1);
    assert_ne!(end.snapshot().state, CongestionState::Recovery);
    end.write_all(Length(40_000));
    drain(&mut end, ms(250));
    let mut duplicates = 0;
    while end.stats().fast_recoveries == before {
        answer(&mut end, ms(300), n + 1);
        duplicates += 1;
        assert!(duplicates < 40, "no recovery");
    }
    duplicates
}

/// Measured of Linux 6.12 in virtual time.
#[test]
fn more_duplicates_than_segments_set_the_threshold() {
    for n in [2, 3, 4] {
        assert_eq!(threshold_after(&linux(), n), n);
    }
    let bounded = Settings {
        max_dupthresh: 5,
        ..linux()
    };
    assert_eq!(threshold_after(&bounded, 8), 5);
    let fixed = Settings {
        max_dupthresh: 3,
        ..linux()
    };
    assert_eq!(threshold_after(&fixed, 2), 3);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Duplicate,
    Advance(u32),
    Timeout,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Duplicate),
        4 => (1_u32..6).prop_map(Step::Advance),
        1 => Just(Step::Timeout),
    ]
}

proptest! {
    /// Whatever a peer without SACK answers, the data in flight is at most the data outstanding,
    /// and data leaves only within cwnd or, in a recovery, within what was in flight. The
    /// acknowledgment of `recover` ends the count, so that more is in flight than before. It causes
    /// at most one segment more than it acknowledges, as in PRR's slow start.
    #[test]
    fn the_count_stays_within_the_outstanding_data(
        steps in proptest::collection::vec(step(), 1..150),
        is_linux in any::<bool>(),
    ) {
        let settings = if is_linux {
            linux()
        } else {
            Settings {
                sack: false,
                dsack: false,
                recovery: Recovery::NewReno,
                recovery_pace: RecoveryPace::Prr,
                ..settings()
            }
        };
        let mut end = begun(&settings);
        let (mut acked, mut nxt, mut now) = (0, 10, 150_u64);
        for step in steps {
            now += 1;
            let first = acked;
            match step {
                Step::Duplicate => {}
                Step::Advance(n) => acked = nxt.min(acked + n),
                Step::Timeout => {
                    let at = end.deadline();
                    if at == Instant::NEVER {
                        continue;
                    }
                    now = now.max(at.as_picos() / 1_000_000_000 + 1);
                    end.on_deadline(ms(now));
                    drain(&mut end, ms(now));
                    continue;
                }
            }
            let before = end.snapshot().in_flight.get();
            let newly = acked - first;
            let sent = answer(&mut end, ms(now), acked);
            nxt = sent.iter().fold(nxt, |most, n| most.max(n + 1));
            let snapshot = end.snapshot();
            let outstanding = u64::from(nxt - acked) * MSS;
            prop_assert!(snapshot.in_flight.get() <= outstanding, "{snapshot:?}");
            if !sent.is_empty() {
                let most = end.cwnd().get().max(before) + MSS;
                prop_assert!(
                    snapshot.in_flight.get() <= most || sent.len() <= newly as usize + 1,
                    "{snapshot:?} {most}"
                );
            }
        }
    }
}
