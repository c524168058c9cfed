//! Opening and closing of connections (RFC 9293).

use crate::support;

use anabranch_core::{
    body::{Body, Length},
    packet::Ecn,
    units::{Duration, Instant},
};
use anabranch_tcp::{
    Endpoint, Profile, Recovery, RetransmitCause, Role, Segmentation, Settings, State,
};
use anabranch_wire::{Flags, Options, Segment};
use support::{
    Link, Net, endpoint,
    plain::{drain, link, ms, net, settings},
};

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
fn after_a_lost_syn_the_timeout_is_three_seconds() {
    let mut end: Endpoint<Length> = endpoint(&settings(), Role::Active, 1);
    end.open(Instant::START);
    assert!(end.poll_transmit(Instant::START).is_some());
    for (at, next) in [(1, 3), (3, 7), (7, 15)] {
        assert_eq!(end.deadline(), ms(at * 1000));
        end.on_deadline(ms(at * 1000));
        let again = end.poll_transmit(ms(at * 1000)).expect("a SYN");
        assert_eq!(again.retransmission, Some(RetransmitCause::Rto));
        assert_eq!(again.segment.flags, Flags::SYN);
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

/// RFC 9293 §3.10.7.3 permits both. Detects a switch without effect, and data that waits for
/// another event.
#[test]
fn the_third_segment_carries_data_unless_tso_sends_it_alone() {
    for (segmentation, lengths) in [
        (Segmentation::None, &[500][..]),
        (Segmentation::Tso, &[0, 500]),
    ] {
        let settings = Settings {
            segmentation,
            ..settings()
        };
        let mut end: Endpoint<Length> = endpoint(&settings, Role::Active, 1);
        end.write_all(Length::filler(500));
        end.open(Instant::START);
        assert!(end.poll_transmit(Instant::START).is_some());
        let answer = Segment {
            seq: 9,
            ack: 2,
            window: 1000,
            flags: Flags::SYN | Flags::ACK,
            timestamps: None,
            options: Options::None,
            body: Length(0),
        };
        end.on_segment(ms(20), &answer, Ecn::NotEct);
        let left = std::iter::from_fn(|| end.poll_transmit(ms(20)));
        let found: Vec<u32> = left.map(|out| out.segment.body.len()).collect();
        assert_eq!(found, lengths, "{segmentation:?}");
    }
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

/// RFC 9293 §3.10.7.4: after an attempt that times out or is reset, the listener listens again.
#[test]
fn a_listener_that_gives_up_accepts_the_next_syn() {
    let segment = |flags, seq, ack| Segment {
        seq,
        ack,
        window: 1000,
        flags,
        timestamps: None,
        options: Options::None,
        body: Length(0),
    };
    let s = Settings {
        syn_ack_retries: 1,
        ..settings()
    };
    for resets in [false, true] {
        let mut end: Endpoint<Length> = endpoint(&s, Role::Passive, 1);
        end.on_segment(ms(0), &segment(Flags::SYN, 7, 0), Ecn::NotEct);
        let mut answers = drain(&mut end, ms(0)).len();
        let mut now = ms(10);
        if resets {
            end.on_segment(now, &segment(Flags::RST, 8, 0), Ecn::NotEct);
        }
        while end.deadline() != Instant::NEVER {
            now = end.deadline();
            end.on_deadline(now);
            answers += drain(&mut end, now).len();
        }
        assert_eq!(answers, if resets { 1 } else { 2 });
        assert_eq!((end.state(), end.ending()), (State::Listen, None));
        end.on_segment(now, &segment(Flags::SYN, 900, 0), Ecn::NotEct);
        assert_eq!(drain(&mut end, now).len(), 1);
        end.on_segment(now, &segment(Flags::ACK, 901, 2), Ecn::NotEct);
        assert_eq!(end.state(), State::Established);
    }
}

#[test]
fn a_reset_that_answers_the_syn_refuses_the_connection() {
    let mut end: Endpoint<Length> = endpoint(&settings(), Role::Active, 1);
    end.open(Instant::START);
    drain(&mut end, Instant::START);
    let reset = Segment {
        seq: 0,
        ack: 2,
        window: 0,
        flags: Flags::RST | Flags::ACK,
        timestamps: None,
        options: Options::None,
        body: Length(0),
    };
    end.on_segment(ms(20), &reset, Ecn::NotEct);
    let refused = Some(anabranch_tcp::Ending::Refused);
    assert_eq!((end.ending(), end.ended_at()), (refused, Some(ms(20))));
}

#[test]
fn options_are_used_only_if_both_ends_offer_them() {
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
    // Data still flows in the other direction.
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
    net.ends[0].abort(net.now);
    net.flush();
    net.run(net.events + 10_000);
    assert_eq!(net.states(), [State::Closed; 2]);
    assert_eq!(net.ends[1].ending(), Some(anabranch_tcp::Ending::Reset));
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

/// RFC 9293 §3.7.1: a peer without an MSS option receives 536 octets over IPv4 and 1,220 over IPv6.
#[test]
fn a_syn_without_mss_means_the_default_of_the_family() {
    for (ipv6, mss) in [(false, 536), (true, 1220)] {
        for role in [Role::Active, Role::Passive] {
            let settings = Profile::named("rfc").expect("it exists").settings;
            let mut end: Endpoint<Length> = endpoint(&settings, role, 100);
            if ipv6 {
                end = end.over_ipv6();
            }
            let now = Instant::from_millis(1);
            if role == Role::Active {
                end.open(now);
                end.poll_transmit(now).expect("a SYN");
            }
            let peer = |seq, ack, flags| Segment {
                seq,
                ack,
                window: 60_000,
                flags,
                timestamps: None,
                options: Options::None,
                body: Length(0),
            };
            if role == Role::Active {
                end.on_segment(now, &peer(0, 101, Flags::SYN | Flags::ACK), Ecn::NotEct);
            } else {
                end.on_segment(now, &peer(0, 0, Flags::SYN), Ecn::NotEct);
                end.poll_transmit(now).expect("SYN and acknowledgment");
                end.on_segment(now, &peer(1, 101, Flags::ACK), Ecn::NotEct);
            }
            end.write_all(Length(5000));
            let lens: Vec<u32> = std::iter::from_fn(|| end.poll_transmit(now))
                .map(|out| out.segment.body.0)
                .filter(|len| *len > 0)
                .collect();
            assert_eq!(lens[0], mss, "{role:?}");
            assert_eq!(lens.iter().sum::<u32>(), 5000);
        }
    }
}
