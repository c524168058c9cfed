//! Delayed acknowledgments, closed windows, small segments, and the send buffer.

use crate::support;

use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, text::Limit},
};
use anabranch_tcp::{Profile, Recovery, Settings};
use support::{
    Link, Net, octets,
    plain::{ack, drain, established, file, link, ms, settings},
};

#[test]
fn delayed_acknowledgments_cover_pairs_except_around_a_gap() {
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
    // RFC 5681 §4.2: each segment beyond a gap is acknowledged at once, and so is the segment that
    // fills the gap.
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
fn a_closed_window_is_probed_until_it_opens() {
    let s = Settings {
        receive_window: Limit::Bytes(Bytes::new(8000)),
        ..settings()
    };
    let mut net: Net<anabranch_core::body::Octets> = Net::new(&s, &s, Link::default(), [1, 2]);
    net.ends[1].set_auto_read(false);
    net.open();
    net.ends[0].write_all(octets(1, 20_000));
    net.run_until(ms(20_000));
    assert_eq!(net.ends[1].readable(), 8000);
    let probes = net.ends[0].stats().window_probes;
    assert!((3..=6).contains(&probes), "1, 2, 4, 8, … s apart: {probes}");
    assert_eq!(net.ends[0].stats().timeouts, 0);
    // The window update is lost: the answer to the next probe repeats it.
    let first = net.ends[1].read(net.now, 8000);
    while net.ends[1].poll_transmit(net.now).is_some() {}
    net.run_until(ms(60_000));
    let second = net.ends[1].read(net.now, 8000);
    net.flush();
    net.run_until(ms(61_000));
    let third = net.ends[1].read(net.now, 8000);
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
fn the_send_buffer_limits_writes_and_outstanding_data() {
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
