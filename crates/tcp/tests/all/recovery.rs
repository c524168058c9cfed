//! Loss detection and repair, one example for each rule.

use crate::support;

use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};
use anabranch_tcp::{CongestionState, Recovery, Settings, State};
use support::plain::{MSS, RULE, ack, drain, established, file, link, ms, settings, without_sack};

#[test]
fn new_reno_repairs_two_losses_in_one_recovery() {
    // RFC 6582 §3.2: the partial acknowledgment repairs the second loss.
    let mut net = file(&without_sack(Recovery::NewReno), link(&[30, 35]), 200);
    net.run_until(ms(5000));
    let stats = net.ends[0].stats();
    assert_eq!(net.ends[1].stats().delivered_bytes, 200 * MSS);
    assert_eq!(
        (
            stats.fast_recoveries,
            stats.timeouts,
            stats.retransmitted_packets
        ),
        (1, 0, 2)
    );
    // Reno ends the recovery at the partial acknowledgment and needs another recovery or a timeout.
    let mut net = file(&without_sack(Recovery::Reno), link(&[30, 35]), 200);
    net.run_until(ms(20_000));
    let stats = net.ends[0].stats();
    assert_eq!(net.ends[1].stats().delivered_bytes, 200 * MSS);
    assert_eq!(stats.fast_recoveries + stats.timeouts, 2, "{stats:?}");
}

#[test]
fn sack_repairs_many_losses_within_a_round_trip_or_two() {
    let lose: Vec<u32> = (0..10).map(|i| 100 + 3 * i).collect();
    let mut net = file(&settings(), link(&lose), 600);
    net.run_until(ms(5000));
    let stats = net.ends[0].stats();
    assert_eq!(net.ends[1].stats().delivered_bytes, 600 * MSS);
    assert_eq!(
        (
            stats.fast_recoveries,
            stats.timeouts,
            stats.retransmitted_packets
        ),
        (1, 0, 10)
    );
    assert_eq!(net.ends[1].stats().duplicate_segments, 0);
}

#[test]
fn a_recovery_halves_the_window_once() {
    let mut net = file(&settings(), link(&[40, 41, 42]), 2000);
    let mut largest = 0;
    while net.ends[0].stats().fast_recoveries == 0 {
        largest = net.ends[0].snapshot().in_flight.get();
        assert!(net.step());
    }
    let cwnd = net.ends[0].cwnd().get();
    let half = largest / 2;
    assert!(cwnd.abs_diff(half) <= 3 * MSS, "{cwnd} {half}");
    assert_eq!(net.ends[0].snapshot().state, CongestionState::Recovery);
    while net.ends[0].snapshot().state == CongestionState::Recovery {
        assert_eq!(net.ends[0].cwnd().get(), cwnd);
        assert!(net.step());
    }
}

#[test]
fn limited_transmit_saves_a_timeout() {
    // RFC 3042: of three segments the first is lost. Two duplicates permit two new segments, and
    // these cause the third duplicate.
    for recovery in [Recovery::NewReno, Recovery::Rfc6675] {
        let base = if recovery == Recovery::Rfc6675 {
            settings()
        } else {
            without_sack(recovery)
        };
        let s = Settings {
            initial_cwnd: 3,
            ..base
        };
        let run = |limited_transmit| {
            let mut net = file(
                &Settings {
                    limited_transmit,
                    ..s.clone()
                },
                link(&[0]),
                10,
            );
            net.run_until(ms(10_000));
            assert_eq!(net.ends[1].stats().delivered_bytes, 10 * MSS);
            let stats = net.ends[0].stats();
            (stats.fast_recoveries, stats.timeouts)
        };
        assert_eq!(run(true), (1, 0), "{recovery:?}");
        assert_eq!(run(false), (0, 1), "{recovery:?}");
    }
}

#[test]
fn dupthresh_sets_the_reordering_tolerated() {
    // One segment arrives five places late.
    let run = |dupthresh| {
        let mut end = established(&Settings {
            dupthresh,
            ..without_sack(Recovery::NewReno)
        });
        end.write_endless();
        let (mut sent, mut at) = (Vec::new(), ms(100));
        while let Some(out) = end.poll_transmit(at) {
            sent.push(out.segment);
        }
        for _ in 0..5 {
            at = at.saturating_add(Duration::from_millis(1));
            end.on_segment(at, &ack(&end, 0), Ecn::NotEct);
        }
        end.stats().fast_recoveries
    };
    assert_eq!([run(3), run(5), run(6)], [1, 1, 0]);
}

#[test]
fn the_timeout_doubles_until_the_connection_is_aborted() {
    let mut end = established(&Settings {
        retries: 3,
        ..settings()
    });
    end.write_all(Length(1000));
    assert_eq!(drain(&mut end, ms(100)).len(), 1);
    // SRTT is 50 ms, so the lower bound of 1 s holds.
    let mut now = ms(100);
    for wait in [1000, 2000, 4000] {
        now = now.saturating_add(Duration::from_millis(wait));
        assert_eq!(end.deadline(), now);
        end.on_deadline(now);
        assert_eq!(drain(&mut end, now).len(), 1);
        assert_eq!(end.cwnd(), Bytes::new(1000));
        assert_eq!(end.snapshot().state, CongestionState::Loss);
    }
    end.on_deadline(end.deadline());
    assert_eq!(
        (end.state(), end.deadline()),
        (State::Closed, Instant::NEVER)
    );
    // The last expiry retransmits nothing.
    assert_eq!(end.stats().timeouts, 3);
}

#[test]
fn after_a_timeout_all_data_is_retransmitted_in_slow_start() {
    let mut end = established(&without_sack(Recovery::NewReno));
    end.write_endless();
    assert_eq!(drain(&mut end, ms(100)).len(), 10);
    end.on_deadline(ms(1100));
    assert_eq!(
        drain(&mut end, ms(1100))
            .iter()
            .map(|s| s.seq)
            .collect::<Vec<_>>(),
        [101]
    );
    end.on_segment(ms(1150), &ack(&end, 1000), Ecn::NotEct);
    assert_eq!(
        drain(&mut end, ms(1150))
            .iter()
            .map(|s| s.seq)
            .collect::<Vec<_>>(),
        [1101, 2101]
    );
    // The others had arrived: only new data follows.
    end.on_segment(ms(1200), &ack(&end, 10_000), Ecn::NotEct);
    assert!(drain(&mut end, ms(1200)).iter().all(|s| s.seq >= 10_101));
    assert_eq!(end.stats().retransmitted_packets, 3);
}

#[test]
fn karn_an_ambiguous_acknowledgment_gives_no_sample() {
    let mut end = established(&without_sack(Recovery::NewReno));
    end.write_all(Length(1000));
    drain(&mut end, ms(100));
    end.on_deadline(ms(1100));
    drain(&mut end, ms(1100));
    let before = end.snapshot();
    end.on_segment(ms(1110), &ack(&end, 1000), Ecn::NotEct);
    let after = end.snapshot();
    assert_eq!((after.srtt, after.rto), (before.srtt, before.rto));
    assert_eq!(after.rto, Duration::from_secs(2));
}

#[test]
fn the_timer_rule_finds_a_loss_without_duplicates() {
    // Two segments, the first lost: only one duplicate, but it arrives late enough.
    let mut end = established(&without_sack(Recovery::NewReno)).with_timer_rule(Some(RULE));
    end.write_all(Length(1000));
    drain(&mut end, ms(100));
    end.on_segment(ms(150), &ack(&end, 1000), Ecn::NotEct);
    end.write_all(Length(2000));
    drain(&mut end, ms(200));
    end.on_segment(ms(251), &ack(&end, 1000), Ecn::NotEct);
    assert_eq!(
        end.stats().fast_recoveries,
        0,
        "51 ms are not more than 50 + 1"
    );
    end.on_segment(ms(252), &ack(&end, 1000), Ecn::NotEct);
    assert_eq!(end.stats().fast_recoveries, 1);
    let again: Vec<u32> = drain(&mut end, ms(252)).iter().map(|s| s.seq).collect();
    assert_eq!(again, [1101, 2101]);
}

#[test]
fn the_timer_rule_in_a_recovery_leads_to_slow_start() {
    let mut end = established(&without_sack(Recovery::NewReno)).with_timer_rule(Some(RULE));
    end.write_endless();
    assert_eq!(drain(&mut end, ms(100)).len(), 10);
    // The first segment is late; duplicates arrive before its time has passed.
    end.on_segment(ms(150), &ack(&end, 1000), Ecn::NotEct);
    drain(&mut end, ms(150));
    for i in 0..3 {
        end.on_segment(
            Instant::from_nanos(150_100_000 + i),
            &ack(&end, 1000),
            Ecn::NotEct,
        );
    }
    assert_eq!(end.stats().fast_recoveries, 1);
    assert_eq!(drain(&mut end, ms(150)).first().map(|s| s.seq), Some(1101));
    assert_eq!(end.snapshot().state, CongestionState::Recovery);
    // A round trip and the grace time after the transmission of the others.
    end.on_segment(ms(152), &ack(&end, 1000), Ecn::NotEct);
    assert_eq!(
        (end.stats().timer_losses, end.snapshot().state),
        (1, CongestionState::Loss)
    );
    let again: Vec<u32> = drain(&mut end, ms(152)).iter().map(|s| s.seq).collect();
    assert!(again.starts_with(&[2101, 3101]), "{again:?}");
    // No further reduction until the data outstanding then is acknowledged.
    end.on_segment(ms(230), &ack(&end, 2000), Ecn::NotEct);
    end.on_segment(ms(231), &ack(&end, 2000), Ecn::NotEct);
    assert_eq!(
        (end.stats().timer_losses, end.stats().fast_recoveries),
        (1, 1)
    );
}

/// Ten segments of which the first is lost: `duplicates` duplicates arrive, then the retransmission
/// is acknowledged together with all others. Returns the resulting window in segments.
fn window_after_a_full_acknowledgment(s: &Settings, duplicates: u64, more: u32) -> u64 {
    let mut end = established(s);
    end.write_all(Length(10_000 + more));
    assert_eq!(drain(&mut end, ms(100)).len(), 10);
    for n in 0..duplicates {
        end.on_segment(ms(150 + n), &ack(&end, 0), Ecn::NotEct);
        drain(&mut end, ms(150 + n));
    }
    assert_eq!(end.snapshot().state, CongestionState::Recovery);
    // Data sent by limited transmit is part of the outstanding data.
    let outstanding = 10_000 + more.min(2_000);
    end.on_segment(ms(200), &ack(&end, outstanding), Ecn::NotEct);
    assert_ne!(end.snapshot().state, CongestionState::Recovery);
    assert_eq!(end.stats().timeouts, 0);
    assert_eq!(end.snapshot().ssthresh, Some(Bytes::new(5_000)));
    end.cwnd().get() / MSS
}

/// RFC 6582 §3.2 step 3, the second option, and RFC 5681 §3.2 step 6: ssthresh, independent of the
/// data in flight.
#[test]
fn a_full_acknowledgment_leaves_the_window_at_ssthresh() {
    for recovery in [Recovery::NewReno, Recovery::Reno] {
        for (duplicates, more) in [(3, 0), (9, 50_000), (11, 50_000)] {
            let found =
                window_after_a_full_acknowledgment(&without_sack(recovery), duplicates, more);
            assert_eq!(found, 5, "{duplicates} duplicates, {more} octets more");
        }
    }
}
