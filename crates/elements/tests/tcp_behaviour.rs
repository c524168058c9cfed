//! What RFCs ask of an endpoint, one example each, on a link with a fixed delay.

mod tcp_support;

use std::sync::{Arc, Mutex};

use anabranch_core::{
    packet::Ecn,
    units::{Bytes, Duration, Instant, Rate, text::Limit},
};
use anabranch_elements::{
    body::{Body, Length},
    cc::{Ack, Congestion, CongestionControl, Control, RateSample, Rto, TimerRule, Wants},
    tcp::{
        DelayedAck, EcnMode, Endpoint, Flags, Options, Profile, Recovery, Role, SackBlock, Segment,
        Settings, State,
    },
};
use proptest::prelude::*;
use tcp_support::{Link, Net, endpoint, octets};

const MSS: u64 = 1000;

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// RFC switches with round numbers: segments of 1,000 octets and every segment acknowledged.
fn settings() -> Settings {
    let mut s = Profile::named("rfc").expect("it exists").settings;
    s.mss = 1000;
    s.delayed_ack = DelayedAck::Off;
    s
}

fn without_sack(recovery: Recovery) -> Settings {
    Settings {
        sack: false,
        dsack: false,
        recovery,
        ..settings()
    }
}

fn net(s: &Settings, link: Link) -> Net<Length> {
    Net::new(s, s, link, [u32::MAX - 5000, 77])
}

/// 10 ms each way, 0.1 ms between packets.
fn link(lose: &[u32]) -> Link {
    Link {
        lose: lose.to_vec(),
        gap: Duration::from_micros(100),
        ..Link::default()
    }
}

fn file(s: &Settings, link: Link, segments: u64) -> Net<Length> {
    let mut net = net(s, link);
    net.open();
    net.ends[0].write_all(Length(u32::try_from(segments * MSS).unwrap()));
    net
}

#[test]
fn three_segments_open_a_connection() {
    let mut net = net(&settings(), Link::default());
    net.logging = true;
    net.open();
    assert_eq!(net.states(), [State::SynSent, State::Listen]);
    net.run_until(ms(15));
    assert_eq!(net.states(), [State::SynSent, State::SynReceived]);
    net.run_until(ms(50));
    assert_eq!(net.states(), [State::Established; 2]);
    let flags: Vec<Flags> = net.log.iter().map(|entry| entry.2).collect();
    assert_eq!(flags, [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK]);
    assert_eq!(net.ends[0].srtt(), Duration::from_millis(20));
    assert_eq!(
        [net.ends[0].deadline(), net.ends[1].deadline()],
        [Instant::NEVER; 2]
    );
}

#[test]
fn two_ends_may_open_at_once() {
    let mut net = net(&settings(), Link::default());
    net.ends[1].open(Instant::START);
    net.open();
    net.ends[0].write_all(Length(5000));
    net.ends[1].write_all(Length(7000));
    net.run_until(ms(500));
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(net.ends[0].stats().delivered_bytes, 7000);
    assert_eq!(net.ends[1].stats().delivered_bytes, 5000);
}

#[test]
fn a_lost_syn_is_sent_again_and_data_then_waits_three_seconds() {
    let mut end: Endpoint<Length> = endpoint(&settings(), Role::Active, 1);
    end.open(Instant::START);
    assert!(end.poll_transmit(Instant::START).is_some());
    for (at, next) in [(1, 3), (3, 7), (7, 15)] {
        assert_eq!(end.deadline(), ms(at * 1000));
        end.on_deadline(ms(at * 1000));
        let again = end.poll_transmit(ms(at * 1000)).expect("a SYN");
        assert!(again.retransmission && again.segment.flags == Flags::SYN);
        assert_eq!(end.deadline(), ms(next * 1000));
    }
    let answer = Segment {
        seq: 9,
        ack: 2,
        window: 1000,
        flags: Flags::SYN | Flags::ACK,
        timestamps: None,
        options: Options::None,
        body: Length(0),
    };
    end.on_segment(ms(8000), &answer, Ecn::NotEct);
    assert_eq!(end.state(), State::Established);
    // RFC 6298 (5.7)
    assert_eq!(end.snapshot().rto, Duration::from_secs(3));
}

#[test]
fn a_syn_without_answer_is_given_up() {
    let mut end: Endpoint<Length> = endpoint(
        &Settings {
            syn_retries: 2,
            ..settings()
        },
        Role::Active,
        1,
    );
    end.open(Instant::START);
    let mut syns = drain(&mut end, Instant::START).len();
    while end.deadline() != Instant::NEVER {
        let now = end.deadline().min(ms(1_000_000));
        end.on_deadline(now);
        syns += drain(&mut end, now).len();
    }
    assert_eq!((syns, end.state()), (3, State::Closed));
}

#[test]
fn options_are_used_only_if_both_ends_want_them() {
    for (sack, timestamps, scaling) in [
        (false, true, true),
        (true, false, true),
        (true, true, false),
    ] {
        let peer = Settings {
            sack,
            dsack: sack,
            timestamps,
            window_scaling: scaling,
            recovery: Recovery::NewReno,
            ..settings()
        };
        let mut net: Net<Length> = Net::new(&settings(), &peer, link(&[3]), [1, 2]);
        net.open();
        net.ends[0].write_all(Length(50_000));
        net.run_until(ms(3000));
        assert_eq!(net.ends[1].stats().delivered_bytes, 50_000);
        assert_eq!(
            net.ends[0].stats().malformed + net.ends[1].stats().malformed,
            0
        );
        assert_eq!(net.ends[0].stats().fast_recoveries, 1);
    }
}

#[test]
fn states_of_a_close_by_one_end_after_the_other() {
    let s = Settings {
        time_wait: Duration::from_secs(2),
        ..settings()
    };
    let mut net = net(&s, Link::default());
    net.open();
    net.run_until(ms(100));
    net.ends[0].close();
    net.flush();
    assert_eq!(net.states(), [State::FinWait1, State::Established]);
    net.run_until(ms(115));
    assert_eq!(net.states(), [State::FinWait1, State::CloseWait]);
    net.run_until(ms(125));
    assert_eq!(net.states(), [State::FinWait2, State::CloseWait]);
    // The other direction still flows.
    net.ends[1].write_all(Length(3000));
    net.ends[1].close();
    net.flush();
    assert_eq!(net.states(), [State::FinWait2, State::LastAck]);
    net.run_until(ms(200));
    assert_eq!(net.states(), [State::TimeWait, State::Closed]);
    assert_eq!(net.ends[0].stats().delivered_bytes, 3000);
    net.run(1000);
    assert_eq!(net.states(), [State::Closed; 2]);
    assert_eq!(net.now, ms(135 + 2000));
}

#[test]
fn states_of_a_close_by_both_ends_at_once() {
    let mut net = net(&settings(), Link::default());
    net.open();
    net.run_until(ms(100));
    net.ends[0].close();
    net.ends[1].close();
    net.flush();
    assert_eq!(net.states(), [State::FinWait1; 2]);
    net.run_until(ms(110));
    assert_eq!(net.states(), [State::Closing; 2]);
    net.run_until(ms(125));
    assert_eq!(net.states(), [State::TimeWait; 2]);
    net.run(1000);
    assert_eq!(net.states(), [State::Closed; 2]);
}

#[test]
fn an_abort_resets_the_peer() {
    let mut net = net(&settings(), link(&[]));
    net.open();
    net.ends[0].write_endless();
    net.run_until(ms(200));
    net.ends[0].abort();
    net.flush();
    net.run(net.events + 10_000);
    assert_eq!(net.states(), [State::Closed; 2]);
    assert_eq!(
        net.ends[1].ending(),
        Some(anabranch_elements::tcp::Ending::Reset)
    );
    assert_eq!(
        [net.ends[0].deadline(), net.ends[1].deadline()],
        [Instant::NEVER; 2]
    );
}

#[test]
fn a_segment_for_no_connection_is_reset() {
    let mut end: Endpoint<Length> = endpoint(&settings(), Role::Active, 1);
    let stray = Segment {
        seq: 100,
        ack: 4242,
        window: 0,
        flags: Flags::ACK,
        timestamps: None,
        options: Options::None,
        body: Length(10),
    };
    end.on_segment(Instant::START, &stray, Ecn::NotEct);
    let reset = end
        .poll_transmit(Instant::START)
        .expect("an answer")
        .segment;
    assert_eq!((reset.flags, reset.seq), (Flags::RST, 4242));
    end.on_segment(
        Instant::START,
        &Segment {
            flags: Flags::NONE,
            ..stray
        },
        Ecn::NotEct,
    );
    let reset = end
        .poll_transmit(Instant::START)
        .expect("an answer")
        .segment;
    assert_eq!(
        (reset.flags, reset.seq, reset.ack),
        (Flags::RST | Flags::ACK, 0, 110)
    );
    end.on_segment(
        Instant::START,
        &Segment {
            flags: Flags::RST,
            ..stray
        },
        Ecn::NotEct,
    );
    assert_eq!(end.poll_transmit(Instant::START), None);
}

#[test]
fn delayed_acknowledgments_are_one_for_two_and_at_once_around_a_gap() {
    let mut s = settings();
    s.delayed_ack = Profile::named("rfc")
        .expect("it exists")
        .settings
        .delayed_ack;
    let mut net = file(&s, link(&[]), 101);
    net.run_until(ms(2000));
    let acks = net.ends[1].stats().sent_acks;
    // The SYN, one for each pair, and one by the timer for the odd segment of a burst.
    assert!((51..=56).contains(&acks), "{acks}");
    // RFC 5681 §4.2: each segment beyond a gap is acknowledged at once, and so is the one that
    // fills it.
    let mut net = file(
        &Settings {
            sack: false,
            dsack: false,
            recovery: Recovery::NewReno,
            ..s
        },
        link(&[0]),
        8,
    );
    net.logging = true;
    net.run_until(ms(2000));
    let acks = net
        .log
        .iter()
        .filter(|entry| entry.1 == 1 && entry.0 > ms(25))
        .count();
    assert_eq!(acks, 8, "{:?}", net.log);
}

#[test]
fn new_reno_repairs_two_losses_in_one_recovery() {
    // RFC 6582 §3.2: the partial acknowledgment repairs the second loss.
    let mut net = file(&without_sack(Recovery::NewReno), link(&[30, 35]), 200);
    net.run_until(ms(5000));
    let stats = *net.ends[0].stats();
    assert_eq!(net.ends[1].stats().delivered_bytes, 200 * MSS);
    assert_eq!(
        (
            stats.fast_recoveries,
            stats.timeouts,
            stats.retransmitted_packets
        ),
        (1, 0, 2)
    );
    // Reno leaves at the partial acknowledgment and needs another recovery or a timeout.
    let mut net = file(&without_sack(Recovery::Reno), link(&[30, 35]), 200);
    net.run_until(ms(20_000));
    let stats = *net.ends[0].stats();
    assert_eq!(net.ends[1].stats().delivered_bytes, 200 * MSS);
    assert_eq!(stats.fast_recoveries + stats.timeouts, 2, "{stats:?}");
}

#[test]
fn sack_repairs_many_losses_within_a_round_trip_or_two() {
    let lose: Vec<u32> = (0..10).map(|i| 100 + 3 * i).collect();
    let mut net = file(&settings(), link(&lose), 600);
    net.run_until(ms(5000));
    let stats = *net.ends[0].stats();
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
    assert_eq!(net.ends[0].snapshot().state, "recovery");
    while net.ends[0].snapshot().state == "recovery" {
        assert_eq!(net.ends[0].cwnd().get(), cwnd);
        assert!(net.step());
    }
}

#[test]
fn limited_transmit_saves_a_timeout() {
    // RFC 3042: of three segments the first is lost; two duplicates bring two new segments and
    // those the third duplicate.
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
fn dupthresh_is_how_much_reordering_is_forgiven() {
    // One segment comes five places late.
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

/// An end that has been opened by hand against a peer without options; its stream begins at 101,
/// the peer's at 1.
fn established(s: &Settings) -> Endpoint<Length> {
    let mut end: Endpoint<Length> = endpoint(
        &Settings {
            timestamps: false,
            ..s.clone()
        },
        Role::Active,
        100,
    );
    end.open(Instant::START);
    assert!(end.poll_transmit(Instant::START).is_some());
    let answer = Segment {
        seq: 0,
        ack: 101,
        window: 65_535,
        flags: Flags::SYN | Flags::ACK,
        timestamps: None,
        options: Options::Syn {
            mss: 1000,
            window_scale: None,
            sack_permitted: s.sack,
        },
        body: Length(0),
    };
    end.on_segment(ms(50), &answer, Ecn::NotEct);
    while end.poll_transmit(ms(50)).is_some() {}
    end
}

/// The peer acknowledges the stream up to octet `n`.
fn ack(_end: &Endpoint<Length>, n: u32) -> Segment<Length> {
    Segment {
        seq: 1,
        ack: 101 + n,
        window: 65_535,
        flags: Flags::ACK,
        timestamps: None,
        options: Options::None,
        body: Length(0),
    }
}

fn drain<B: Body>(end: &mut Endpoint<B>, now: Instant) -> Vec<Segment<B>> {
    std::iter::from_fn(|| end.poll_transmit(now))
        .map(|out| out.segment)
        .collect()
}

#[test]
fn the_timeout_doubles_and_then_gives_up() {
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
        assert_eq!(end.snapshot().state, "loss");
    }
    end.on_deadline(end.deadline());
    assert_eq!(
        (end.state(), end.deadline()),
        (State::Closed, Instant::NEVER)
    );
    assert_eq!(end.stats().timeouts, 4);
}

#[test]
fn after_a_timeout_everything_goes_again_in_slow_start() {
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
    // The others had arrived after all: what follows is new.
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
fn a_closed_window_is_probed_until_it_opens() {
    let s = Settings {
        receive_window: Limit::Bytes(Bytes::new(8000)),
        ..settings()
    };
    let mut net: Net<anabranch_elements::body::Octets> = Net::new(&s, &s, Link::default(), [1, 2]);
    net.ends[1].set_auto_read(false);
    net.open();
    net.ends[0].write_all(octets(1, 20_000));
    net.run_until(ms(20_000));
    assert_eq!(net.ends[1].readable(), 8000);
    let probes = net.ends[0].stats().window_probes;
    assert!((3..=6).contains(&probes), "1, 2, 4, 8, … s apart: {probes}");
    assert_eq!(net.ends[0].stats().timeouts, 0);
    // The window update is lost: the next probe tells.
    let first = net.ends[1].read(8000);
    while net.ends[1].poll_transmit(net.now).is_some() {}
    net.run_until(ms(60_000));
    let second = net.ends[1].read(8000);
    net.flush();
    net.run_until(ms(61_000));
    let third = net.ends[1].read(8000);
    let mut all = first.0;
    all.extend(second.0);
    all.extend(third.0);
    assert_eq!(all, octets(1, 20_000).0);
}

#[test]
fn nagle_holds_small_segments_while_data_is_outstanding() {
    for nagle in [false, true] {
        let mut end = established(&Settings {
            nagle,
            ..settings()
        });
        let mut sent = 0;
        for _ in 0..5 {
            end.write(Length(100));
            sent += drain(&mut end, ms(100)).len();
        }
        assert_eq!(sent, if nagle { 1 } else { 5 });
        end.on_segment(ms(150), &ack(&end, 100), Ecn::NotEct);
        let rest: Vec<u32> = drain(&mut end, ms(150)).iter().map(|s| s.body.0).collect();
        assert_eq!(rest, if nagle { vec![400] } else { vec![] });
    }
}

#[test]
fn the_send_buffer_limits_what_is_taken_and_what_is_outstanding() {
    let mut end = established(&Settings {
        send_buffer: Limit::Packets(4),
        ..settings()
    });
    assert_eq!(end.write(Length(10_000)), 4000);
    assert_eq!(end.write(Length(1)), 0);
    assert_eq!(drain(&mut end, ms(100)).len(), 4);
    end.on_segment(ms(150), &ack(&end, 1000), Ecn::NotEct);
    assert_eq!(end.write(Length(10_000)), 1000);
    let mut end = established(&Settings {
        send_buffer: Limit::Packets(4),
        ..settings()
    });
    end.write_endless();
    assert_eq!(drain(&mut end, ms(100)).len(), 4);
}

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

const RULE: TimerRule = TimerRule {
    initial_reo_wnd: Duration::from_millis(1),
    reo_wnd_min_rtt_share: 0.25,
};

#[test]
fn the_timer_rule_finds_a_loss_without_duplicates() {
    // Two segments, the first lost: one duplicate only, but it comes late enough.
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
    // The first segment is late; duplicates come before its time is over.
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
    assert_eq!(end.snapshot().state, "recovery");
    // A round trip and the grace time after the others left.
    end.on_segment(ms(152), &ack(&end, 1000), Ecn::NotEct);
    assert_eq!(
        (end.stats().timer_losses, end.snapshot().state),
        (1, "loss")
    );
    let again: Vec<u32> = drain(&mut end, ms(152)).iter().map(|s| s.seq).collect();
    assert!(again.starts_with(&[2101, 3101]), "{again:?}");
    // No further reduction until what was outstanding is acknowledged.
    end.on_segment(ms(230), &ack(&end, 2000), Ecn::NotEct);
    end.on_segment(ms(231), &ack(&end, 2000), Ecn::NotEct);
    assert_eq!(
        (end.stats().timer_losses, end.stats().fast_recoveries),
        (1, 1)
    );
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
        Wants { rate_samples: true }
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

/// A segment of any kind, near what the endpoint expects or far from it.
fn hostile() -> impl Strategy<Value = Segment<Length>> {
    let number = || prop_oneof![-5_000_i32..70_000, any::<i32>()];
    (
        (number(), number()),
        any::<u16>(),
        prop_oneof![Just(Flags::ACK.0), 0_u16..512],
        prop_oneof![Just(None), (any::<u32>(), any::<u32>()).prop_map(Some)],
        prop_oneof![
            Just(Options::None),
            (
                any::<u16>(),
                proptest::option::of(any::<u8>()),
                any::<bool>()
            )
                .prop_map(|(mss, window_scale, sack_permitted)| {
                    Options::Syn {
                        mss,
                        window_scale,
                        sack_permitted,
                    }
                }),
            (any::<u8>(), proptest::array::uniform4((number(), number()))).prop_map(
                |(n, blocks)| {
                    Options::Sack(
                        n,
                        blocks.map(|(left, right)| SackBlock {
                            left: 101_u32.wrapping_add_signed(left),
                            right: 101_u32.wrapping_add_signed(right),
                        }),
                    )
                }
            ),
        ],
        prop_oneof![Just(0_u32), 0_u32..3000],
    )
        .prop_map(
            |((seq, ack), window, flags, timestamps, options, len)| Segment {
                seq: 1_u32.wrapping_add_signed(seq),
                ack: 101_u32.wrapping_add_signed(ack),
                window,
                flags: Flags(flags),
                timestamps: timestamps
                    .map(|(value, echo)| anabranch_elements::tcp::Timestamps { value, echo }),
                options,
                body: Length(len),
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]
    #[test]
    fn no_segment_makes_an_endpoint_panic(
        segments in proptest::collection::vec((hostile(), 0_u64..300, any::<u8>()), 1..40),
        opened: bool, sack: bool, timed: bool, ecn: bool,
    ) {
        let mut s = if sack { settings() } else { without_sack(Recovery::NewReno) };
        s.ecn = if ecn { EcnMode::Rfc3168 } else { EcnMode::Off };
        let mut end = if opened { established(&s) } else { endpoint(&s, Role::Passive, 100) };
        if timed {
            end = end.with_timer_rule(Some(RULE));
        }
        end.write_all(Length(30_000));
        let mut now = ms(100);
        for (n, (segment, wait, codepoint)) in segments.into_iter().enumerate() {
            now = now.saturating_add(Duration::from_millis(wait));
            if end.deadline() <= now {
                end.on_deadline(now);
            }
            let before = *end.stats();
            end.on_segment(now, &segment, Ecn::from_bits(codepoint));
            prop_assert!(drain(&mut end, now).len() < 200);
            // No more is delivered than came.
            prop_assert!(end.stats().delivered_bytes <= before.delivered_bytes + 120_000);
            if n == 20 {
                end.close();
            }
        }
        // It still comes to an end.
        let mut steps = 0;
        while end.deadline() != Instant::NEVER && steps < 100 {
            now = end.deadline();
            end.on_deadline(now);
            drain(&mut end, now);
            steps += 1;
        }
    }

    #[test]
    fn strangers_do_not_disturb_a_transfer(
        segments in proptest::collection::vec((hostile(), 0_usize..2), 1..30), sack: bool,
    ) {
        // Whoever does not know the numbers (all but one in 2^16 of them) changes nothing.
        let s = if sack { settings() } else { without_sack(Recovery::NewReno) };
        let link = Link { loss: 0.05, ..link(&[]) };
        let mut net: Net<anabranch_elements::body::Octets> = Net::new(&s, &s, link, [1 << 30, 1 << 31]);
        net.ends[1].set_auto_read(false);
        net.open();
        net.run_until(ms(4000));
        let stream = octets(5, 100_000);
        net.ends[0].write_all(stream.clone());
        net.flush();
        let mut got = Vec::new();
        for (segment, to) in segments {
            for _ in 0..20 {
                net.step();
            }
            let injected = Segment {
                seq: segment.seq,
                ack: segment.ack,
                window: segment.window,
                flags: segment.flags,
                timestamps: segment.timestamps,
                options: segment.options,
                body: octets(9, segment.body.0 as usize),
            };
            let distance = |known: u32, number: u32| known.wrapping_sub(number).cast_signed().unsigned_abs();
            let (ours, theirs) = ([1_u32 << 30, 1 << 31][1 - to], [1_u32 << 30, 1 << 31][to]);
            let blind = distance(ours, injected.seq) > 1 << 29 || (distance(theirs, injected.ack) > 1 << 20 && !injected.flags.any(Flags::RST | Flags::SYN));
            if blind {
                net.inject(to, &injected);
            }
            got.extend(net.ends[1].read(u64::MAX).0);
        }
        net.run_until(ms(200_000));
        got.extend(net.ends[1].read(u64::MAX).0);
        prop_assert_eq!(got.len(), stream.0.len(), "{:?}", net.states());
        prop_assert!(got == stream.0);
    }
}
