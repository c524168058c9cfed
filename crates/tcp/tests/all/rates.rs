//! Pacing, ECN feedback, autotuned buffers and delayed acknowledgments: the effect of their
//! switches.

use crate::support;

use std::sync::{Arc, Mutex};

use anabranch_congestion::{
    Ack, Config, Congestion, CongestionControl, Control, Rto, Signal, cubic, dctcp,
};
use anabranch_core::{
    body::Length,
    units::{Bytes, Duration, Instant, Rate, text::Limit},
};
use anabranch_tcp::{
    DelayedAck, EcnMode, Endpoint, Profile, Recovery, Role, Segmentation, Settings,
};
use anabranch_wire::Flags;
use support::{Link, Net};

const MSS: u64 = 1000;
/// The link's round-trip time in ms: 10 ms each way.
const RTT: u64 = 20;

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn settings() -> Settings {
    Settings {
        mss: 1000,
        delayed_ack: DelayedAck::Off,
        ..Profile::named("rfc").expect("it exists").settings
    }
}

fn link() -> Link {
    Link {
        gap: Duration::from_micros(10),
        ..Link::default()
    }
}

/// A fixed window that counts the marks reported to it.
#[derive(Debug)]
struct Fixed {
    segments: u64,
    marked: Arc<Mutex<(u64, u32)>>,
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, ack: &Ack) {
        self.marked.lock().expect("one thread").0 += ack.ce_marked.get();
    }
    fn on_congestion(&mut self, event: &Congestion) {
        assert_eq!(event.signal, Signal::EcnCe);
        self.marked.lock().expect("one thread").1 += 1;
    }
    fn on_rto(&mut self, _event: &Rto) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.segments * MSS)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
}

type Marked = Arc<Mutex<(u64, u32)>>;

fn with_fixed(client: &Settings, server: &Settings, segments: u64) -> (Net<Length>, Marked) {
    let marked = Marked::default();
    let fixed = Fixed {
        segments,
        marked: Arc::clone(&marked),
    };
    let mut net = Net::new(client, server, link(), [5, 77]);
    net.ends[0] = Endpoint::new(
        &Arc::new(client.clone()),
        Control::Boxed(Box::new(fixed)),
        Role::Active,
        5,
    );
    net.logging = true;
    net.open();
    net.ends[0].write_endless();
    (net, marked)
}

fn ecn(mode: EcnMode, segments_per_ack: u32) -> Settings {
    let mut s = Settings {
        ecn: mode,
        ..settings()
    };
    if segments_per_ack > 1 {
        s.delayed_ack = Profile::named("rfc")
            .expect("it exists")
            .settings
            .delayed_ack;
    }
    s
}

/// AE, CWR and ECE of a segment as a number.
fn ace(flags: Flags) -> u8 {
    u8::from(flags.any(Flags::AE)) << 2
        | u8::from(flags.any(Flags::CWR)) << 1
        | u8::from(flags.any(Flags::ECE))
}

#[test]
fn rfc_9768_the_handshake_of_every_pair() {
    use EcnMode::{Accecn, Dctcp, Off, Rfc3168};
    // The SYN, the SYN-ACK, the third segment, and whether marks reach the sender. No SYN is
    // ECN-capable, so AccECN answers 010. The third segment carries data and counts from 101.
    for (client, server, expected, tells) in [
        (Accecn, Accecn, [0b111, 0b010, 0b101], true),
        (Accecn, Rfc3168, [0b111, 0b001, 0b000], true),
        (Accecn, Off, [0b111, 0b000, 0b000], false),
        (Rfc3168, Accecn, [0b011, 0b001, 0b000], true),
        (Rfc3168, Rfc3168, [0b011, 0b001, 0b000], true),
        (Rfc3168, Off, [0b011, 0b000, 0b000], false),
        (Off, Accecn, [0b000, 0b000, 0b000], false),
        (Dctcp, Dctcp, [0b011, 0b001, 0b000], true),
    ] {
        let (mut net, marked) = with_fixed(&ecn(client, 1), &ecn(server, 1), 10);
        net.run_until(ms(100));
        let flags: Vec<u8> = net.log.iter().take(3).map(|entry| ace(entry.2)).collect();
        assert_eq!(flags, expected, "{client:?} to {server:?}");
        net.mark = true;
        net.run_until(ms(200));
        assert_eq!(
            net.ends[1].stats().ce_segments > 0,
            tells,
            "{client:?} to {server:?}"
        );
        assert_eq!(marked.lock().expect("one thread").1 > 0, tells);
    }
}

#[test]
fn exact_feedback_counts_every_marked_octet_despite_delayed_acks() {
    for mode in [EcnMode::Dctcp, EcnMode::Accecn] {
        for per_ack in [1, 2] {
            let (mut net, marked) = with_fixed(&ecn(mode, per_ack), &ecn(mode, per_ack), 7);
            // Marks also begin and end between the two segments of an acknowledgment.
            for step in 0..200 {
                net.mark = step % 3 == 0;
                net.run_until(ms(50) + Duration::from_micros(1700) * step);
            }
            net.mark = false;
            net.run_until(ms(600));
            let told = marked.lock().expect("one thread").0;
            let received = net.ends[1].stats().ce_segments;
            assert!(received > 30);
            assert_eq!(told, received * MSS, "{mode:?}, {per_ack}");
        }
    }
}

#[test]
fn classic_feedback_overcounts_marked_octets() {
    // The same marks through RFC 3168 cover more octets, hence the need for exact feedback.
    let (mut net, marked) = with_fixed(&ecn(EcnMode::Rfc3168, 1), &ecn(EcnMode::Rfc3168, 1), 7);
    for step in 0..200 {
        net.mark = step % 50 == 0;
        net.run_until(ms(50) + Duration::from_micros(1700) * step);
    }
    net.run_until(ms(600));
    let told = marked.lock().expect("one thread").0;
    let received = net.ends[1].stats().ce_segments;
    assert!(told > received * MSS, "{told} for {received}");
}

#[test]
fn retransmissions_and_pure_acknowledgments_are_not_ecn_capable() {
    for mode in [EcnMode::Rfc3168, EcnMode::Accecn] {
        let s = ecn(mode, 1);
        let mut net: Net<Length> = Net::new(&s, &s, link(), [5, 77]);
        net.open();
        net.run_until(ms(30));
        net.ends[0].write_all(Length(5000));
        let first = net.ends[0].poll_transmit(net.now).expect("data");
        assert!(first.ecn.is_capable() && first.retransmission.is_none());
        while net.ends[0].poll_transmit(net.now).is_some() {}
        // Nothing arrives, so the timer expires.
        let at = net.ends[0].deadline();
        net.ends[0].on_deadline(at);
        let again = net.ends[0].poll_transmit(at).expect("again");
        assert!(again.retransmission.is_some() && !again.ecn.is_capable());
        net.ends[1].on_segment(at, &first.segment, first.ecn);
        let ack = net.ends[1].poll_transmit(at).expect("an acknowledgment");
        assert!(!ack.ecn.is_capable());
    }
}

#[test]
fn dctcp_gives_up_little_where_little_is_marked() {
    let s = Settings {
        receive_window: Limit::Packets(40),
        ..ecn(EcnMode::Dctcp, 1)
    };
    let mut net: Net<Length> = Net::new(&s, &s, link(), [5, 77]);
    let control = Config::Dctcp(dctcp::Params::default()).build(&s.init());
    net.ends[0] = Endpoint::new(&Arc::new(s), control, Role::Active, 5);
    net.open();
    net.ends[0].write_endless();
    net.run_until(ms(130));
    // Marks in one round trip of ten: alpha falls from 1 by a sixteenth per round trip without
    // marks, to at most 1/16 ÷ (1 − (15/16)¹⁰) = 0.13.
    for round in 0..80 {
        net.mark = round % 10 == 0;
        net.run_until(net.now + Duration::from_millis(RTT));
    }
    let alpha = net.ends[0].control().state()[0].1;
    assert!(alpha < 0.2, "{alpha}");
    assert!(net.ends[0].stats().ecn_reductions >= 4);
}

/// Numbers of data segments that the sender sent at the same time.
fn bursts(net: &Net<Length>, from: Instant) -> Vec<u64> {
    let mut bursts: Vec<(Instant, u64)> = Vec::new();
    for (at, end, _, _, _, len) in &net.log {
        if *end != 0 || *len == 0 || *at < from {
            continue;
        }
        match bursts.last_mut() {
            Some((last, n)) if last == at => *n += 1,
            _ => bursts.push((*at, 1)),
        }
    }
    bursts.into_iter().map(|(_, n)| n).collect()
}

#[test]
fn pacing_sends_the_window_in_bursts_of_a_millisecond() {
    let s = Settings {
        pacing: true,
        delayed_ack: Profile::named("rfc")
            .expect("it exists")
            .settings
            .delayed_ack,
        ..settings()
    };
    // 100 segments per 20 ms; slow start, so twice that: 10 segments per millisecond.
    let (mut net, _) = with_fixed(&s, &settings(), 100);
    net.run_until(ms(RTT + 5));
    let (burst, rest) = (bursts(&net, ms(RTT)), 100 - 6 * 10);
    assert!(burst.iter().all(|n| *n <= 10), "{burst:?}");
    assert_eq!(burst.iter().sum::<u64>(), 100 - rest, "{burst:?}");
    // Without pacing the window is sent at once, up to the SYN's unscaled window.
    let (mut net, _) = with_fixed(&settings(), &settings(), 100);
    net.run_until(ms(RTT + 5));
    assert_eq!(bursts(&net, ms(RTT)), [65]);
}

/// Linux's `tcp_pacing_ss_ratio`: 200 % of cwnd ÷ srtt. 100 segments of 8,000 bits in 20 ms are 40
/// Mbit/s.
#[test]
fn the_pacing_rate_in_slow_start_is_twice_the_windows() {
    let s = Settings {
        pacing: true,
        ..settings()
    };
    let (mut net, _) = with_fixed(&s, &settings(), 100);
    net.run_until(ms(RTT + 3));
    let rate = net.ends[0].snapshot().pacing_rate.expect("paced");
    assert!((rate.as_mbit_per_s() / 80.0 - 1.0).abs() < 0.02, "{rate:?}");
}

/// Two segments of a millisecond each are sent together. Detects a pacer that gives no credit for
/// unused time, and one that gives more than half of a burst.
#[test]
fn a_tso_burst_that_leaves_late_takes_less_time() {
    let us = Duration::from_micros;
    for (segmentation, [first, second]) in [
        // The first burst is long overdue and earns half. The second is late by 40 us; the third is
        // sent that much sooner.
        (Segmentation::Tso, [1000 + 40, 1960]),
        (Segmentation::None, [2000 + 40, 2000]),
    ] {
        let s = Settings {
            pacing: true,
            segmentation,
            ..settings()
        };
        let mut net: Net<Length> = Net::new(&s, &settings(), link(), [5, 77]);
        let fixed = Fixed {
            segments: 10,
            marked: Marked::default(),
        };
        net.ends[0] = Endpoint::new(
            &Arc::new(s),
            Control::Boxed(Box::new(fixed)),
            Role::Active,
            5,
        );
        net.logging = true;
        net.open();
        net.run_until(ms(100));
        net.ends[0].write_all(Length(2000));
        net.flush();
        net.run_until(ms(100) + us(first));
        net.ends[0].write_all(Length(4000));
        net.flush();
        net.run_until(ms(110));
        let left: Vec<Instant> = net
            .log
            .iter()
            .filter(|(_, end, _, _, _, len)| *end == 0 && *len > 0)
            .map(|(at, ..)| *at)
            .collect();
        let bursts: Vec<Instant> = left.chunks(2).map(|burst| burst[0]).collect();
        assert_eq!(bursts.len(), 3, "{left:?}");
        // The second was written 40 us after its time, and sent at once.
        assert_eq!(bursts[1] - bursts[0], us(first), "{segmentation:?}");
        let apart = (bursts[2] - bursts[1]).as_millis_f64() * 1e3;
        assert!((apart - second as f64).abs() < 20.0, "{apart} us");
    }
}

/// A control with only a pacing rate.
#[derive(Debug)]
struct AtRate(Rate);

impl CongestionControl for AtRate {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_congestion(&mut self, _event: &Congestion) {}
    fn on_rto(&mut self, _event: &Rto) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(100 * MSS)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.0)
    }
}

/// One segment per millisecond, in bursts of two. Detects a retransmission that is sent as soon as
/// the loss is detected.
#[test]
fn a_retransmission_waits_for_its_time() {
    let s = Settings {
        segmentation: Segmentation::Tso,
        recovery: Recovery::Rack,
        ..settings()
    };
    let link = Link {
        lose: vec![8],
        ..link()
    };
    let mut net: Net<Length> = Net::new(&s, &settings(), link, [5, 77]);
    let control = AtRate(Rate::from_mbit_per_s(8));
    net.ends[0] = Endpoint::new(
        &Arc::new(s),
        Control::Boxed(Box::new(control)),
        Role::Active,
        5,
    );
    net.logging = true;
    net.open();
    net.ends[0].write_all(Length(100_000));
    net.run_until(ms(150));
    assert_eq!(net.ends[0].stats().retransmitted_packets, 1);
    let left = net.log.iter();
    let left = left.filter(|(_, end, _, _, _, len)| *end == 0 && *len > 0);
    let left = left.map(|(at, ..)| *at);
    let mut bursts: Vec<(Instant, u64)> = Vec::new();
    for at in left {
        match bursts.last_mut() {
            Some((last, segments)) if *last == at => *segments += 1,
            _ => bursts.push((at, 1)),
        }
    }
    // The first burst was late and takes half the time.
    for pair in bursts[1..].windows(2) {
        let least = Duration::from_micros(990) * pair[0].1;
        assert!(pair[1].0 - pair[0].0 >= least, "{pair:?}");
    }
}

#[test]
fn the_receive_window_follows_the_application_up_to_its_limit() {
    let limit = 500_000;
    let tuned = Settings {
        receive_autotuning: true,
        receive_window: Limit::Bytes(Bytes::new(limit)),
        ..settings()
    };
    let (mut net, _) = with_fixed(&settings(), &tuned, 1000);
    net.run_until(ms(RTT + 15));
    let first = net.ends[0].snapshot().in_flight.get();
    assert!((60_000..=65_536).contains(&first), "{first}");
    net.run_until(ms(20 * RTT));
    let grown = net.ends[0].snapshot().in_flight.get();
    assert!(grown > 400_000 && grown <= limit, "{grown}");
    // A sender that sends little receives a small window.
    let (mut net, _) = with_fixed(&settings(), &tuned, 20);
    net.run_until(ms(50 * RTT));
    let edge = Endpoint::snapshot(&net.ends[0]).in_flight.get();
    assert!(edge <= 20 * MSS);
}

#[test]
fn a_growing_receive_window_does_not_limit_slow_start() {
    let plain = settings();
    let tuned = Settings {
        receive_autotuning: true,
        ..settings()
    };
    let windows = [&plain, &tuned].map(|server| {
        let mut net: Net<Length> = Net::new(&plain, server, link(), [5, 77]);
        net.open();
        net.ends[0].write_endless();
        (2..9)
            .map(|round| {
                net.run_until(ms(round * (RTT + 1)));
                net.ends[0].cwnd()
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(windows[0], windows[1]);
}

#[test]
fn the_send_buffer_holds_two_windows_up_to_its_limit() {
    let s = Settings {
        send_autotuning_start: Bytes::new(16 << 10),
        send_buffer: Limit::Bytes(Bytes::new(200_000)),
        ..settings()
    };
    let mut net: Net<Length> = Net::new(&s, &settings(), link(), [5, 77]);
    // Two initial windows.
    assert_eq!(net.ends[0].write_room(), 20_000);
    net.open();
    let mut most = 0;
    for round in 1..30 {
        net.run_until(ms(round * RTT));
        let (room, cwnd) = (net.ends[0].write_room(), net.ends[0].cwnd().get());
        assert!(room <= (2 * cwnd).max(most), "{room}");
        let taken = net.ends[0].write(Length(u32::MAX));
        assert_eq!(taken, room);
        most = most.max(room);
        net.flush();
    }
    assert!(net.ends[0].cwnd().get() > 100_000);
    assert!(most <= 200_000);
}

#[test]
fn the_window_after_a_pause_follows_the_idle_rule() {
    use anabranch_tcp::settings::IdleRestart::{Off, Rfc2861, Rfc5681};
    for (rule, seconds, expected) in [
        (Off, 60, None),
        (Rfc5681, 60, Some(10)),
        (Rfc2861, 60, Some(10)),
        // The timeout is 1 s: two have passed, and each halves the window.
        (Rfc2861, 2, Some(40)),
        (Rfc5681, 2, Some(10)),
    ] {
        let s = Settings {
            idle_restart: rule,
            ..settings()
        };
        let mut net: Net<Length> = Net::new(&s, &s, link(), [5, 77]);
        net.open();
        net.ends[0].write_all(Length(150_000));
        net.run_until(ms(10 * RTT));
        assert!(net.ends[0].all_acknowledged());
        // Ten, plus one for each of 150 segments: windows of 10, 20, 40 and 80 were filled, the
        // last of them exactly.
        let full = net.ends[0].cwnd().get() / MSS;
        assert_eq!(full, 160);
        // The last segment was sent within the first 200 ms.
        net.run_until(ms(100) + Duration::from_millis(1000 * seconds));
        net.ends[0].write_all(Length(1));
        net.flush();
        let window = net.ends[0].cwnd().get() / MSS;
        assert_eq!(
            window,
            expected.unwrap_or(full),
            "{rule:?} after {seconds} s"
        );
    }
}

#[test]
fn linux_acknowledges_the_first_16_segments_individually() {
    let linux = Settings {
        mss: 1000,
        ..Profile::named("linux").expect("it exists").settings
    };
    let (mut net, _) = with_fixed(&linux, &linux, 100);
    net.run_until(ms(RTT + 15));
    // 65 segments arrived (the first window): 16 were acknowledged individually and the others in
    // pairs.
    let acks = net.ends[1].stats().sent_acks - 1;
    let segments = net.ends[1].stats().received_packets - 2;
    assert_eq!(acks, 16 + (segments - 16) / 2, "{segments}");
}

#[test]
fn hystart_of_the_stack_reaches_the_control() {
    use anabranch_tcp::settings::HyStart;
    // A link of one segment per 0.1 ms with an unlimited queue: only the delay indicates
    // congestion.
    let ended = |hystart, config: &Config| {
        let s = Settings {
            hystart,
            ..settings()
        };
        let slow = Link {
            gap: Duration::from_micros(100),
            ..Link::default()
        };
        let mut net: Net<Length> = Net::new(&s, &s, slow, [5, 77]);
        net.ends[0] = Endpoint::new(
            &Arc::new(s.clone()),
            config.build(&s.init()),
            Role::Active,
            5,
        );
        net.open();
        net.ends[0].write_endless();
        net.run_until(ms(1500));
        net.ends[0].snapshot().ssthresh.is_some()
    };
    let cubic = Config::Cubic(cubic::Params::default());
    let reno = Config::Reno(anabranch_congestion::reno::Params::default());
    assert!(!ended(HyStart::Off, &cubic));
    assert!(ended(HyStart::Linux, &cubic));
    assert!(ended(HyStart::Rfc9406, &cubic));
    assert!(ended(HyStart::Rfc9406, &reno));
    // Linux's variant is a part of CUBIC.
    assert!(!ended(HyStart::Linux, &reno));
}

/// RFC 7661 §4.3 and §4.4: the window of an application that pauses, under each rule.
mod validation {
    use super::*;
    use anabranch_tcp::settings::IdleRestart;

    fn new_cwv() -> Settings {
        Settings {
            idle_restart: IdleRestart::Rfc7661,
            ..settings()
        }
    }

    /// 150 segments at full speed, which grow the window to 160; then a pause until `pause` ms
    /// after the beginning.
    fn paused(s: &Settings, pause: u64) -> Net<Length> {
        let mut net: Net<Length> = Net::new(s, s, link(), [5, 77]);
        net.open();
        net.ends[0].write_all(Length(150_000));
        net.run_until(ms(pause));
        net
    }

    fn window<B: anabranch_core::body::Body>(net: &Net<B>) -> u64 {
        net.ends[0].cwnd().get() / MSS
    }

    #[test]
    fn a_pause_of_over_five_minutes_halves_the_window() {
        for (seconds, expected) in [(2, 160), (299, 160), (303, 80), (603, 40), (10_000, 10)] {
            let mut net = paused(&new_cwv(), 1000 * seconds);
            net.ends[0].write_all(Length(1));
            net.flush();
            assert_eq!(window(&net), expected, "after {seconds} s");
            // ssthresh keeps at least three quarters of the window; there was no threshold before,
            // so there is still none.
            assert_eq!(net.ends[0].snapshot().ssthresh, None);
        }
    }

    #[test]
    fn only_a_window_filled_by_a_write_counts_as_used() {
        // The fourth window holds 80 segments. With one octet less it is still full, and grows by
        // the data acknowledged. With one segment less, the last acknowledgment does not increase
        // it, because it is for data sent when no more was waiting.
        for (octets, expected) in [(150_000, 160), (149_999, 159), (149_000, 158)] {
            let s = settings();
            let mut net: Net<Length> = Net::new(&s, &s, link(), [5, 77]);
            net.open();
            net.ends[0].write_all(Length(octets));
            net.run_until(ms(10 * RTT));
            assert_eq!(window(&net), expected, "{octets}");
        }
    }

    /// One segment per round trip: far less than half of the window.
    fn trickle(net: &mut Net<Length>, rounds: u64) {
        for _ in 0..rounds {
            net.ends[0].write_all(Length(1000));
            net.flush();
            net.run_until(net.now + Duration::from_millis(RTT));
        }
    }

    #[test]
    fn a_window_that_is_not_in_use_does_not_grow() {
        // Longer than the sampling period.
        let mut net = paused(&new_cwv(), 3000);
        trickle(&mut net, 200);
        assert_eq!(window(&net), 160);
        // When fully used again it grows: at first because it is the limit, then because it is
        // validated.
        net.ends[0].write_all(Length(2_000_000));
        net.flush();
        net.run_until(net.now + Duration::from_millis(4 * RTT));
        assert!(window(&net) > 300, "{}", window(&net));
    }

    #[test]
    fn a_validated_window_grows_without_being_the_limit() {
        // 60 % of the window per round trip: pipeACK is more than half of it.
        let grown = |s: &Settings| {
            let mut net = paused(s, 10 * RTT);
            let before = window(&net);
            net.ends[0].write_all(Length(95_000));
            net.flush();
            net.run_until(net.now + Duration::from_millis(2 * RTT));
            window(&net) - before
        };
        assert!(grown(&new_cwv()) > 0);
        assert_eq!(grown(&settings()), 0);
    }

    /// §4.4.1: pipeACK is one segment, ten are in flight, one is lost and retransmitted. (10 - 1) /
    /// 2 segments remain; a window in use would be halved instead.
    #[test]
    fn a_loss_reduces_the_window_in_use() {
        let s = Settings {
            sack: false,
            dsack: false,
            recovery: Recovery::NewReno,
            ..new_cwv()
        };
        let mut net = paused(&s, 3000);
        trickle(&mut net, 40);
        net.link.lose = vec![net.data_sent[0]];
        net.ends[0].write_all(Length(10_000));
        net.flush();
        net.run_until(net.now + Duration::from_millis(4 * RTT));
        assert_eq!(net.ends[0].stats().fast_recoveries, 1);
        assert_eq!(net.ends[0].stats().retransmitted_packets, 1);
        assert_eq!(net.ends[0].cwnd().get(), 4500);
        assert_eq!(net.ends[0].snapshot().ssthresh.map(Bytes::get), Some(4500));
    }

    #[test]
    fn it_needs_the_rule_that_unused_windows_do_not_grow() {
        use anabranch_tcp::Overrides;
        let over = Overrides {
            idle_restart: Some(IdleRestart::Rfc7661),
            cwnd_validation: Some(false),
            ..Overrides::default()
        };
        let problem = settings().with(&over).expect_err("it contradicts");
        assert_eq!(
            problem.to_string(),
            "idle_restart: \"rfc7661\" needs cwnd_validation = true"
        );
    }
}
