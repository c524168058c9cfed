//! The AccECN option (RFC 9768 §3.2.3) between two endpoints: the sender counts the octets that
//! were marked.

use crate::support;

use std::sync::{Arc, Mutex};

use anabranch_congestion::{Ack, Congestion, CongestionControl, Control, Rto};
use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};
use anabranch_tcp::{DelayedAck, EcnMode, Endpoint, Overrides, Profile, Role, Settings};
use anabranch_wire::{Flags, Options, SackBlock, Segment, accecn::Counter};
use proptest::prelude::*;
use support::{Link, Net, endpoint};

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn settings(option: bool) -> Settings {
    Settings {
        mss: 1000,
        ecn: if option {
            EcnMode::Accecn
        } else {
            EcnMode::AccecnWithoutOption
        },
        ..Profile::named("rfc").expect("it exists").settings
    }
}

/// A fixed window that sums up the octets reported as marked.
#[derive(Debug)]
struct Fixed(Arc<Mutex<u64>>);

impl CongestionControl for Fixed {
    fn on_ack(&mut self, ack: &Ack) {
        *self.0.lock().expect("one thread") += ack.ce_marked.get();
    }
    fn on_congestion(&mut self, _event: &Congestion) {}
    fn on_rto(&mut self, _event: &Rto) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(20_000)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
}

fn net(s: &Settings, link: Link) -> (Net<Length>, Arc<Mutex<u64>>) {
    let told = Arc::default();
    let mut net = Net::new(s, s, link, [5, 77]);
    let control = Control::Boxed(Box::new(Fixed(Arc::clone(&told))));
    net.ends[0] = Endpoint::new(&Arc::new(s.clone()), control, Role::Active, 5);
    (net, told)
}

/// Transfers pieces of these sizes, some of them marked. Returns the octets reported as marked, the
/// octets marked, and the octets of full segments in the same number of marked packets.
fn transfer(s: &Settings, link: Link, strip: bool, pieces: &[(u32, bool)]) -> (u64, u64, u64) {
    let (mut net, told) = net(s, link);
    net.strip = strip;
    net.open();
    net.run_until(ms(15_000));
    for &(octets, mark) in pieces {
        net.mark = mark;
        net.ends[0].write_all(Length(octets));
        net.flush();
        // The wait covers the whole piece, so that either all or none of it is marked.
        let wait = if octets > 3_000 { 25 } else { 3 };
        net.run_until(net.now + Duration::from_millis(wait));
    }
    net.mark = false;
    // The next acknowledgment that arrives reports the last marks.
    for _ in 0..20 {
        net.run_until(net.now + Duration::from_secs(20));
        net.ends[0].write_all(Length(10));
        net.flush();
    }
    net.run_until(net.now + Duration::from_secs(300));
    assert!(net.ends[0].all_acknowledged());
    let told = *told.lock().expect("one thread");
    let packets = net.ends[1].stats().ce_segments;
    (told, net.marked[1], packets * 1000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Segments of any size: the octets reported equal the octets marked. If acknowledgments are
    /// lost and the next carries no option, the ACE field is used until an option arrives. The
    /// report is then at least the octets marked, and at most the ACE field's value. Detects an end
    /// that counts packets (the test below), omits octets that an option without room should have
    /// reported, or reports them twice.
    #[test]
    fn with_the_option_the_octets_reported_equal_the_marked(
        pieces in proptest::collection::vec((1_u32..3_000, any::<bool>()), 1..80),
        seed: u64, loss in prop_oneof![Just(0.0), Just(0.05)], sack: bool, timestamps: bool, delayed: bool,
    ) {
        let mut s = settings(true);
        if !delayed {
            s.delayed_ack = DelayedAck::Off;
        }
        let over = Overrides {
            sack: Some(sack),
            timestamps: Some(timestamps),
            ..Overrides::default()
        };
        let s = s.with(&over).expect("they go together");
        let (told, marked, most) = transfer(&s, Link { seed, loss, ..Link::default() }, false, &pieces);
        if loss > 0.0 {
            prop_assert!(marked <= told && told <= most, "{} of {}, {} at most", told, marked, most);
        } else {
            prop_assert_eq!(told, marked);
        }
    }
}

#[test]
fn without_the_option_short_segments_count_as_full() {
    let pieces = [(300, true); 20];
    let (told, marked, _) = transfer(&settings(false), Link::default(), false, &pieces);
    assert_eq!((told, marked), (20_000, 6_000));
    let (told, marked, _) = transfer(&settings(true), Link::default(), false, &pieces);
    assert_eq!((told, marked), (6_000, 6_000));
}

#[test]
fn without_the_option_on_the_path_ace_is_used() {
    for pieces in [[(300, true); 20], [(1000, true); 20], [(1000, false); 20]] {
        let link = Link::default;
        let stripped = transfer(&settings(true), link(), true, &pieces);
        let without = transfer(&settings(false), link(), false, &pieces);
        assert_eq!(stripped, without);
    }
}

/// RFC 9768 §3.2.3.1: the counters travel as 24 bits, 16 MiB.
#[test]
fn counters_wrap_without_loss_of_an_octet() {
    let pieces = vec![(20_000, true); 2_000];
    let (told, marked, _) = transfer(&settings(true), Link::default(), false, &pieces);
    assert_eq!(marked, 40_000_000);
    assert_eq!(told, marked);
}

/// An older field that arrives late is one less than the newer field, not seven more.
#[test]
fn reordered_duplicates_report_no_marks() {
    for option in [false, true] {
        let s = Settings {
            timestamps: false,
            ..settings(option)
        };
        let told: Arc<Mutex<u64>> = Arc::default();
        let control = Control::Boxed(Box::new(Fixed(Arc::clone(&told))));
        let mut end: Endpoint<Length> = Endpoint::new(&Arc::new(s), control, Role::Passive, 100);
        let syn = Segment {
            window: 60_000,
            flags: Flags::SYN | Flags::ECE | Flags::CWR | Flags::AE,
            options: Options::Syn {
                mss: 1000,
                window_scale: Some(7),
                sack_permitted: true,
                accecn: None,
                fast_open: None,
            },
            ..Segment::default()
        };
        let answer = |ace, right| Segment {
            seq: 1,
            ack: 101,
            window: 60_000,
            flags: Flags::ACK | ace,
            options: match right {
                0 => Options::None,
                right => Options::Sack(1, [SackBlock { left: 1101, right }; 4]),
            },
            ..Segment::default()
        };
        let mut comes = |at: u64, segment: &Segment<Length>| {
            end.on_segment(ms(at), segment, Ecn::NotEct);
            while end.poll_transmit(ms(at)).is_some() {}
            end.write_all(Length(5_000));
            while end.poll_transmit(ms(at)).is_some() {}
            *told.lock().expect("one thread")
        };
        comes(0, &syn);
        comes(40, &answer(Flags::CWR, 0));
        let (five, six) = (Flags::AE | Flags::ECE, Flags::AE | Flags::CWR);
        assert_eq!(comes(80, &answer(five, 2101)), 0);
        assert_eq!(comes(82, &answer(six, 4101)), 1000);
        assert_eq!(comes(83, &answer(five, 3101)), 1000);
        assert_eq!(comes(84, &answer(six, 5101)), 1000);
    }
}

/// RFC 9768 §3.2.3.2.1: no option in the SYN, one in the SYN-ACK and one in the third segment; none
/// in a retransmitted SYN-ACK (§3.2.3.2.2).
#[test]
fn the_handshake_tests_the_path() {
    let s = settings(true);
    let mut client: Endpoint<Length> = endpoint(&s, Role::Active, 5);
    let mut server: Endpoint<Length> = endpoint(&s, Role::Passive, 77);
    client.open(ms(0));
    let syn = client.poll_transmit(ms(0)).expect("a SYN").segment;
    assert!(syn.options.accecn().is_none());
    server.on_segment(ms(0), &syn, Ecn::NotEct);
    let answer = server.poll_transmit(ms(0)).expect("an answer").segment;
    let counts = answer.options.accecn().expect("an option");
    let fields = [Counter::Ect0, Counter::Ce, Counter::Ect1].map(|counter| counts.field(counter));
    assert_eq!(fields, [Some(1), Some(0), Some(1)]);
    let at = server.deadline();
    server.on_deadline(at);
    let again = server
        .poll_transmit(at)
        .expect("it is retransmitted")
        .segment;
    assert!(again.flags.has(Flags::SYN | Flags::ACK));
    assert!(matches!(again.options, Options::Syn { accecn: None, .. }));
    client.on_segment(at, &answer, Ecn::NotEct);
    let third = client.poll_transmit(at).expect("the third segment").segment;
    assert!(third.options.accecn().is_some());
    // No further option while no marks arrive.
    server.on_segment(at, &third, Ecn::NotEct);
    client.write_all(Length(100));
    let data = client.poll_transmit(at).expect("data").segment;
    assert!(data.options.accecn().is_none());
}

/// RFC 9768 §3.2.3.3: two SACK blocks go first.
#[test]
fn the_option_leaves_room_for_two_sack_blocks() {
    for timestamps in [false, true] {
        let s = settings(true).with(&Overrides {
            timestamps: Some(timestamps),
            ..Overrides::default()
        });
        let (mut net, _) = net(&s.expect("they go together"), Link::default());
        net.open();
        net.run_until(ms(100));
        net.ends[0].write_all(Length(15_000));
        let mut segments = Vec::new();
        while let Some(out) = net.ends[0].poll_transmit(net.now) {
            segments.push(out.segment);
        }
        // Every third segment arrives, all marked, so that there are gaps and new counts.
        let mut most = 0;
        for segment in segments.iter().skip(1).step_by(3) {
            net.ends[1].on_segment(net.now, segment, Ecn::Ce);
            while let Some(out) = net.ends[1].poll_transmit(net.now) {
                let (blocks, size) = (
                    out.segment.options.sack_blocks().len(),
                    out.segment.options.size(),
                );
                assert!(out.segment.options.accecn().is_some());
                assert!(size + if timestamps { 12 } else { 0 } <= 40);
                most = most.max(blocks);
            }
        }
        assert_eq!(most, if timestamps { 2 } else { 3 });
    }
}
