//! CoDel on scripted arrivals: RFC 8289's control law in closed form.

use crate::queue::aqm;

use anabranch_core::{
    packet::Ecn,
    units::{Bytes, Duration, Instant, Rate, text::Limit},
};
use anabranch_path::queue::{
    Config, Discipline,
    bounded::{ControlTime, MarkAbove},
    codel::Params,
};
use aqm::{Arrival, Fate, Link, a_packet_per_ms, build, ms, packet};

fn codel(params: Params) -> Link<Discipline> {
    Link::new(build(&Config::Codel(params)), a_packet_per_ms(), 1)
}

fn roomy() -> Params {
    Params {
        limit: Limit::Unlimited,
        ..Params::default()
    }
}

/// A burst of `packets`: packet n waits n ms if none is dropped.
fn burst(at: Instant, packets: usize) -> impl Iterator<Item = Arrival> {
    std::iter::repeat_n(packet(at), packets)
}

/// Times of drops after the first at `first`: at intervals of `interval` ÷ √count, from `count` on
/// (RFC 8289 §5.5, §5.6). Each happens at the next departure, on a grid of a millisecond.
fn due(first: u64, count: u32, drops: usize) -> Vec<Instant> {
    let mut exact = first as f64;
    let mut count = f64::from(count);
    let (mut times, mut slot) = (Vec::new(), first);
    for _ in 0..drops {
        // A rounding error of a picosecond must not cost a slot.
        while (slot as f64) < exact - 1e-6 {
            slot += 1;
        }
        times.push(ms(slot));
        exact += 100.0 / count.sqrt();
        count += 1.0;
    }
    times
}

/// The queue's delay grows from 0: it reaches 5 ms at 5 ms, and has been above for 100 ms at 105
/// ms.
#[test]
fn drops_follow_the_control_law_under_a_standing_queue() {
    let mut link = codel(roomy());
    link.run(burst(ms(0), 5_000), ms(2_000));
    let drops = link.times(Fate::Dropped);
    let expected = due(105, 1, 100);
    assert!(drops.len() >= 100, "{}", drops.len());
    assert_eq!(drops[..100], expected);
    // A constant interval, and an interval proportional to 1 / count, differ at once.
    assert_ne!(expected[3], ms(405));
    assert_ne!(expected[3], ms(105 + 100 + 50 + 33));
}

/// The head is dropped at dequeue, and the next packet is sent instead. A CoDel that drops arrivals
/// has nothing to drop here after time 0.
#[test]
fn the_head_is_dropped_when_it_leaves() {
    let mut link = codel(roomy());
    link.run(burst(ms(0), 1_000), ms(300));
    let fates: Vec<_> = link.events.iter().map(|e| (e.packet, e.fate)).collect();
    let (first, _) = fates
        .iter()
        .zip(0_u32..)
        .find(|((_, fate), _)| *fate == Fate::Dropped)
        .expect("one is dropped");
    assert_eq!(first.0, 105);
    for (number, (packet, _)) in (0..).zip(&fates) {
        assert_eq!(*packet, number, "in order of arrival, dropped or sent");
    }
    // The link is never idle: one packet is sent every millisecond.
    let sent = link.times(Fate::Sent);
    assert_eq!(sent, (0..=300).map(ms).collect::<Vec<_>>());
}

/// A permanent queue of `waiting` packets: `waiting` at once, then one for each departure.
fn standing(params: Params, rate: Rate, waiting: usize, end: Instant) -> Link<Discipline> {
    let mut link = Link::new(build(&Config::Codel(params)), rate, 1);
    let one = Bytes::new(1_500) / rate;
    // The first packet leaves at once, so one more is needed.
    let arrivals = burst(ms(0), waiting + 1).chain((1_u64..).map(move |n| {
        let half = Duration::from_picos(one.as_picos() / 2);
        packet(ms(0) + Duration::from_picos(one.as_picos() * n) + half)
    }));
    link.run(arrivals.take_while(|arrival| arrival.at < end), end);
    link
}

/// Packet n of a standing queue waits for n transmissions, minus the half by which it arrives late.
#[test]
fn packets_are_dropped_at_the_target_but_not_below() {
    let below = standing(roomy(), a_packet_per_ms(), 5, ms(5_000));
    assert_eq!(below.times(Fate::Dropped), []);
    let longest = below.with(Fate::Sent).map(|event| event.sojourn).max();
    assert!(longest >= Some(Duration::from_micros(4_500)), "{longest:?}");
    let above = standing(roomy(), a_packet_per_ms(), 6, ms(5_000));
    assert_eq!(above.times(Fate::Dropped)[0], ms(105));
}

/// A packet takes 12 ms: two or three waiting packets are far above the target. The last packet is
/// never dropped, nor is a packet if at most one would remain after it.
#[test]
fn the_last_packet_is_never_dropped() {
    let slow = Rate::from_mbit_per_s(1);
    let two = standing(roomy(), slow, 2, ms(20_000));
    assert_eq!(two.times(Fate::Dropped), []);
    let longest = two.with(Fate::Sent).map(|event| event.sojourn).max();
    assert!(longest >= Some(Duration::from_millis(18)), "{longest:?}");
    let three = standing(roomy(), slow, 4, ms(20_000));
    assert!(!three.times(Fate::Dropped).is_empty());
    let larger = Params {
        mtu: anabranch_path::queue::bounded::PacketSize::new(6_000),
        ..roomy()
    };
    assert_eq!(
        standing(larger, slow, 4, ms(20_000)).times(Fate::Dropped),
        []
    );
}

/// Three bursts. The second follows soon, so its drops begin with the count increase of the first
/// (RFC 8289 §5.5). The third follows more than 16 intervals later, and begins with a count of one.
#[test]
fn the_count_resumes_soon_after_a_period_but_not_late() {
    let mut link = codel(roomy());
    let (second, third) = (1_000, 4_000);
    let script = burst(ms(0), 600)
        .chain(burst(ms(second), 600))
        .chain(burst(ms(third), 600));
    link.run(script, ms(6_000));
    let drops = link.times(Fate::Dropped);
    let of = |from: u64, to: u64| -> Vec<Instant> {
        let all = drops.iter().copied();
        all.filter(|&at| at >= ms(from) && at < ms(to)).collect()
    };
    let first = of(0, second);
    assert_eq!(first, due(105, 1, first.len()));
    let delta = u32::try_from(first.len() - 1).expect("few");
    assert!(delta > 3, "{delta}");
    let again = of(second, third);
    assert_eq!(again, due(second + 105, delta, again.len()));
    // Neither from one nor from the whole count.
    assert_ne!(again, due(second + 105, 1, again.len()));
    assert_ne!(again, due(second + 105, delta + 1, again.len()));
    let late = of(third, 6_000);
    assert_eq!(late, due(third + 105, 1, late.len()));
    assert!(again.len() > 5 && late.len() > 5);
}

#[test]
fn ecn_marks_where_it_would_have_dropped() {
    let capable = |arrival: Arrival| Arrival {
        ecn: Ecn::Ect0,
        ..arrival
    };
    let mut link = codel(Params {
        ecn: true,
        ..roomy()
    });
    link.run(burst(ms(0), 3_000).map(capable), ms(1_000));
    assert_eq!(link.times(Fate::Dropped), []);
    let marks = link.times(Fate::Marked);
    assert_eq!(marks, due(105, 1, marks.len()));
    assert!(marks.len() > 20);
    let carried = link.with(Fate::Sent).filter(|event| event.ecn == Ecn::Ce);
    assert_eq!(carried.count(), marks.len());
    // If ECN is off or the transport is not ECN-capable, packets are dropped.
    for (ecn, transport) in [(false, Ecn::Ect0), (true, Ecn::NotEct)] {
        let mut link = codel(Params { ecn, ..roomy() });
        let script = burst(ms(0), 3_000).map(|arrival| Arrival {
            ecn: transport,
            ..arrival
        });
        link.run(script, ms(1_000));
        assert_eq!(link.times(Fate::Marked), []);
        assert_eq!(link.times(Fate::Dropped)[..20], due(105, 1, 20));
    }
}

#[test]
fn the_ce_threshold_marks_packets_that_waited_longer() {
    let threshold = MarkAbove(Some(Duration::from_millis(3)));
    let mut link = codel(Params {
        ce_threshold: threshold,
        ..roomy()
    });
    let script = burst(ms(0), 50).enumerate().map(|(n, arrival)| Arrival {
        ecn: if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct },
        ..arrival
    });
    link.run(script, ms(60));
    let marked: Vec<_> = link.with(Fate::Marked).map(|e| e.packet).collect();
    assert_eq!(marked, (4..50).step_by(2).collect::<Vec<_>>());
    assert_eq!(link.times(Fate::Dropped), []);
}

/// The limit counts waiting packets.
#[test]
fn the_limit_holds() {
    let mut link = codel(Params {
        limit: Limit::Packets(10),
        ..Params::default()
    });
    link.run(burst(ms(0), 15), ms(0));
    let dropped: Vec<_> = link.with(Fate::Dropped).map(|e| e.packet).collect();
    assert_eq!(dropped, [11, 12, 13, 14]);
}

/// Target and interval scale the control law.
#[test]
fn target_and_interval_scale_the_law() {
    let time = ControlTime::from_millis;
    let mut link = codel(Params {
        target: time(20),
        interval: time(400),
        ..roomy()
    });
    link.run(burst(ms(0), 3_000), ms(1_200));
    // 420 ms, then 400 ms, then 400 / √2 ms.
    assert_eq!(
        link.times(Fate::Dropped)[..3],
        [ms(420), ms(820), ms(1_103)]
    );
}
