//! On any link every octet arrives once and in order in both directions, and the connection ends.

use crate::support;

use anabranch_core::{
    body::Octets,
    units::{Bytes, Duration, text::Limit},
};
use anabranch_tcp::{
    DelayedAck, EcnMode, Profile, Recovery, RecoveryPace, Settings, State,
    remedy::{Choice, registry},
};
use proptest::prelude::*;
use support::{Link, Net, octets};

pub fn settings() -> impl Strategy<Value = Settings> {
    let base = prop_oneof![Just("rfc"), Just("ns3-2018"), Just("linux")];
    (
        base,
        200_u32..1500,
        prop_oneof![
            Just(Recovery::Reno),
            Just(Recovery::NewReno),
            Just(Recovery::Rfc6675),
            Just(Recovery::Rack)
        ],
        any::<[bool; 6]>(),
        (
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
        ),
        1_u32..12,
        prop_oneof![Just(None), (1_u64..60).prop_map(Some)],
        prop_oneof![Just(None), (1_u64..60).prop_map(Some)],
        any::<bool>(),
    )
        .prop_map(
            |(
                base,
                mss,
                recovery,
                [tlp, prr, frto, eifel, undo, adaptive],
                (sack, timestamps, scaling, nagle, limited),
                iw,
                window,
                buffer,
                delayed,
            )| {
                let mut s = Profile::named(base).expect("it exists").settings;
                s.mss = mss;
                s.sack = sack || recovery.needs_sack();
                s.tlp = tlp && recovery == Recovery::Rack;
                s.recovery_pace = if prr && recovery.permits(RecoveryPace::Prr) {
                    RecoveryPace::Prr
                } else {
                    RecoveryPace::Pipe
                };
                s.frto = frto;
                s.eifel = eifel && timestamps;
                s.undo = undo;
                s.max_dupthresh = if adaptive { 300 } else { s.dupthresh };
                s.dsack = s.sack && timestamps;
                s.recovery = recovery;
                if recovery == Recovery::Rfc6675 && s.dsack {
                    let mut remedies = registry().into_iter().map(|(_, config, _)| config);
                    s.reordering = remedies.nth(mss as usize % 8).map(Choice);
                }
                s.timestamps = timestamps;
                s.window_scaling = scaling;
                s.nagle = nagle;
                s.limited_transmit = limited;
                s.initial_cwnd = iw;
                if !delayed {
                    s.delayed_ack = DelayedAck::Off;
                }
                s.ecn = if nagle {
                    EcnMode::Rfc3168
                } else {
                    EcnMode::Off
                };
                s.retries = 100;
                s.syn_retries = 100;
                s.syn_ack_retries = 100;
                s.max_rto = Duration::from_secs(3);
                s.initial_rto = Duration::from_secs(1);
                s.receive_window = window.map_or(Limit::Unlimited, |n| {
                    Limit::Bytes(Bytes::new(n * u64::from(mss) / 2 + u64::from(mss)))
                });
                s.send_buffer = buffer.map_or(Limit::Unlimited, Limit::Packets);
                s
            },
        )
}

pub fn link() -> impl Strategy<Value = Link> {
    (
        any::<u64>(),
        0_u64..50,
        0_u64..60,
        0.0..0.3,
        0.0..0.2,
        0_u64..2000,
    )
        .prop_map(|(seed, delay, jitter, loss, duplicate, gap)| Link {
            seed,
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            loss: if seed % 3 == 0 { 0.0 } else { loss },
            duplicate: if seed % 5 == 0 { 0.0 } else { duplicate },
            lose: Vec::new(),
            gap: Duration::from_micros(gap),
        })
}

/// Drives both ends as applications that write all their data and read in pieces.
fn transfer(
    client: &Settings,
    server: &Settings,
    link: Link,
    iss: [u32; 2],
    sizes: [usize; 2],
    timed: bool,
) {
    let link_marks = link.seed.is_multiple_of(4);
    let streams = [octets(link.seed, sizes[0]), octets(!link.seed, sizes[1])];
    let mut net: Net<Octets> = Net::new(client, server, link, iss);
    if timed {
        net = net.with_timer_rule(anabranch_congestion::TimerRule {
            initial_reo_wnd: Duration::from_millis(1),
            reo_wnd_min_rtt_share: 0.25,
        });
    }
    net.mark = link_marks;
    let mut written = [0_usize; 2];
    let mut read = [Vec::new(), Vec::new()];
    let mut closed = [false; 2];
    for end in &mut net.ends {
        end.set_auto_read(false);
    }
    net.open();
    let mut going = true;
    while going {
        for i in 0..2 {
            let left = sizes[i] - written[i];
            if left > 0 {
                let chunk = left.min(5000);
                let body = Octets(streams[i].0[written[i]..written[i] + chunk].to_vec());
                written[i] += usize::try_from(net.ends[i].write(body)).unwrap();
            }
            if written[i] == sizes[i]
                && !closed[i]
                && net.ends[i].state() != State::Listen
                && net.ends[i].state() != State::SynSent
            {
                closed[i] = true;
                net.ends[i].close();
            }
            // Reads rarely and in odd pieces, so that windows close.
            if net.events % 7 == i as u64 * 3 {
                read[1 - i].extend(net.ends[i].read(net.now, 3001).0);
            }
        }
        net.flush();
        going = net.step();
        if !going {
            // No event is left, unless the applications still read or write.
            for i in 0..2 {
                let piece = net.ends[i].read(net.now, u64::MAX).0;
                going |= !piece.is_empty();
                read[1 - i].extend(piece);
                going |= written[i] < sizes[i] && net.ends[i].write_room() > 0;
            }
            net.flush();
            going |= net.step();
        }
        assert!(
            net.events < 60_000,
            "no end: {:?} {:?}",
            net.states(),
            net.ends.each_ref().map(anabranch_tcp::Endpoint::stats)
        );
    }
    for i in 0..2 {
        assert_eq!(written[i], sizes[i]);
        assert_eq!(read[i].len(), sizes[i], "direction {i} {:?}", net.states());
        assert!(read[i] == streams[i].0, "direction {i}");
        assert_eq!(net.ends[1 - i].stats().delivered_bytes, sizes[i] as u64);
        assert_eq!(
            net.ends[i].stats().malformed,
            0,
            "{:?}",
            net.ends[i].refusals()
        );
        assert_eq!(
            net.ends[i].deadline(),
            anabranch_core::units::Instant::NEVER
        );
    }
    assert_eq!(
        net.states(),
        [State::Closed; 2],
        "{:?}",
        net.ends.each_ref().map(anabranch_tcp::Endpoint::ending)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn every_octet_arrives_once_and_in_order(
        client in settings(), server in settings(), link in link(),
        iss in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 3000, u32::MAX]), Just([0, 1])],
        a in 0_usize..60_000, b in prop_oneof![Just(0_usize), 0_usize..30_000],
        timed: bool,
    ) {
        transfer(&client, &server, link, iss, [a, b], timed);
    }
}

#[test]
fn a_clean_transfer_needs_no_repair() {
    for profile in anabranch_tcp::profiles() {
        let mut net: Net<Octets> = Net::new(
            &profile.settings,
            &profile.settings,
            Link::default(),
            [7, 8],
        );
        net.open();
        net.ends[0].write_all(octets(3, 1_000_000));
        net.ends[0].close();
        net.run_until(anabranch_core::units::Instant::from_millis(5_000));
        net.ends[1].close();
        net.flush();
        net.run(100_000);
        let [client, server] = net.ends.each_ref().map(anabranch_tcp::Endpoint::stats);
        assert_eq!(server.delivered_bytes, 1_000_000, "{}", profile.meta.name);
        assert_eq!(client.retransmitted_packets, 0);
        assert_eq!(
            (
                client.timeouts,
                client.fast_recoveries,
                server.duplicate_segments
            ),
            (0, 0, 0)
        );
        assert_eq!(
            client.sent_packets,
            1_000_000_u64.div_ceil(u64::from(profile.settings.mss))
        );
        assert_eq!(net.states(), [State::Closed; 2]);
    }
}
