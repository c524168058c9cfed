//! Differences between the stack profiles on the wire, and the constancy of released profiles.

use crate::support;

use std::fmt::Write as _;

use anabranch_core::{
    body::Octets,
    units::{Duration, Instant},
};
use anabranch_tcp::{Ending, Profile, RecoveryPace, Settings, profiles};
use anabranch_wire::Flags;

use support::{Link, Net, octets};

fn settings(name: &str) -> Settings {
    Profile::named(name).expect("it is registered").settings
}

fn net(name: &str, link: Link) -> Net<Octets> {
    let settings = settings(name);
    let mut net = Net::new(&settings, &settings, link, [7, 8]);
    net.logging = true;
    net
}

const fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// A profile stays readable: few policies instead of many switches.
#[test]
fn there_are_at_most_46_switches() {
    assert!(Settings::SWITCHES.len() <= 46);
}

/// Every switch of every released profile, none of which may change. A new switch comes with the
/// value that keeps the behavior of these profiles.
#[test]
fn switches() {
    let mut text = String::new();
    for profile in profiles() {
        if profile.meta.name == "linux-6.18" {
            continue;
        }
        let Profile {
            meta, cc, settings, ..
        } = &profile;
        writeln!(text, "{} (cc {cc}) {settings:#?}", meta.name).expect("a string takes it");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn reasons_name_switches_and_omissions_are_listed() {
    for profile in profiles() {
        let all = format!("{:#?}", profile.settings);
        for (switch, reason) in profile.reasons {
            let name = profile.meta.name;
            assert!(
                all.contains(&format!("\n    {switch}: ")),
                "{name}: {switch}"
            );
            assert!(!reason.is_empty());
        }
    }
    for name in ["linux-2.6.35", "windows-7", "ns2-sack1"] {
        let profile = Profile::named(name).expect("it is registered");
        assert!(profile.not_modelled.len() >= 3, "{name}");
        assert!(profile.reasons.len() >= 15, "{name}");
    }
}

/// Payload and headers fill packets of 1,500 bytes; 4.4BSD sends 512 bytes on an unknown path.
#[test]
fn full_packets_are_1500_bytes() {
    for profile in profiles() {
        let s = &profile.settings;
        let headers = if s.timestamps { 52 } else { 40 };
        let name = profile.meta.name;
        let packet = if name == "bsd44-lite" { 552 } else { 1500 };
        assert_eq!(s.mss + headers, packet, "{name}");
    }
}

/// Three segments by RFC 3390, two in Windows and ns-2, ten by RFC 6928.
#[test]
fn segments_sent_before_the_first_acknowledgment() {
    for (name, segments) in [
        ("linux-2.6.35", 3),
        ("windows-7", 2),
        ("ns2-sack1", 2),
        ("linux-6.18", 10),
        ("ns3-2018", 1),
    ] {
        let mut net = net(name, Link::default());
        net.open();
        net.ends[0].write_all(octets(1, 100_000));
        // 10 ms each way: the handshake takes 20, the first acknowledgment arrives at 40.
        net.run_until(ms(39));
        assert_eq!(net.data_sent[0], segments, "{name}");
    }
}

/// The times of the SYNs if none arrives, in seconds, and whether the connection has timed out by
/// then.
fn syns(name: &str, until: u64) -> (Vec<u64>, bool) {
    let link = Link {
        loss: 1.0,
        ..Link::default()
    };
    let mut net = net(name, link);
    net.open();
    net.run_until(ms(1000 * until));
    let times = net.log.iter().filter(|sent| sent.2.any(Flags::SYN));
    let seconds = times.map(|sent| sent.0.as_picos() / 1_000_000_000_000);
    let ended = net.ends[0].ending() == Some(Ending::TimedOut);
    (seconds.collect(), ended)
}

/// 3 s, doubled: five retransmissions on Linux (189 s in total), two on Windows (21 s).
#[test]
fn a_lost_syn() {
    assert_eq!(
        syns("linux-2.6.35", 188),
        (vec![0, 3, 9, 21, 45, 93], false)
    );
    assert!(syns("linux-2.6.35", 190).1);
    assert_eq!(syns("windows-7", 20), (vec![0, 3, 9], false));
    assert!(syns("windows-7", 22).1);
    assert_eq!(syns("ns2-sack1", 100), (vec![0, 3, 9, 21, 45, 93], false));
    assert_eq!(syns("linux-6.18", 8), (vec![0, 1, 2, 3, 4, 5, 7], false));
}

/// The time from a lost segment to its retransmission, on a path with a round-trip time of 20 ms.
fn timeout(name: &str) -> Duration {
    let mut net = net(name, Link::default());
    net.open();
    for round in 1..100 {
        net.run_until(ms(300 * round));
        net.ends[0].write_all(octets(1, 2 * settings(name).mss as usize));
        net.flush();
    }
    net.run_until(ms(40_000));
    net.link.loss = 1.0;
    net.log.clear();
    net.ends[0].write_all(octets(1, 100));
    net.flush();
    net.run_until(ms(42_000));
    let sent: Vec<_> = net.log.iter().filter(|sent| sent.5 == 100).collect();
    sent[1].0 - sent[0].0
}

#[test]
fn the_least_timeout() {
    for (name, least, most) in [
        ("windows-7", 300, 300),
        ("ns2-sack1", 200, 200),
        // On top of the round-trip time.
        ("linux-2.6.35", 220, 222),
        ("rfc", 1000, 1000),
    ] {
        let found = timeout(name);
        assert!(
            Duration::from_millis(least) <= found && found <= Duration::from_millis(most),
            "{name}: {found}"
        );
    }
}

/// Delay of the acknowledgment of a lone segment, the first of the connection.
#[test]
fn the_acknowledgment_of_a_lone_segment() {
    for (name, wait) in [
        ("windows-7", 200),
        ("ns2-sack1", 0),
        ("linux-2.6.35", 0),
        ("ns3-2018", 200),
    ] {
        let mut net = net(name, Link::default());
        net.open();
        net.ends[0].write_all(octets(1, 100));
        net.run_until(ms(1_000));
        let data = net
            .log
            .iter()
            .find(|sent| sent.5 == 100)
            .expect("it left")
            .0;
        let ack = net.log.iter().find(|sent| sent.1 == 1 && sent.0 > data);
        let arrived = data + Duration::from_millis(10);
        assert_eq!(
            ack.expect("it is answered").0 - arrived,
            Duration::from_millis(wait),
            "{name}"
        );
    }
}

/// The largest window offered to a sender without other limits, and the size of the send buffer.
#[test]
fn buffers() {
    for (name, window, buffer) in [
        ("linux-2.6.35", 3 << 20, 4 << 20),
        ("windows-7", 65_535 << 8, u64::MAX),
        ("ns2-sack1", 65_535 << 14, u64::MAX),
    ] {
        let s = settings(name);
        assert_eq!(s.receive_window_bytes(), window, "{name}");
        assert_eq!(s.send_buffer_bytes(), buffer, "{name}");
    }
    for name in ["linux-2.6.35", "windows-7"] {
        assert_eq!(settings(name).first_receive_window(), 65_536, "{name}");
        let link = Link {
            delay: Duration::from_millis(50),
            gap: Duration::from_micros(120),
            ..Link::default()
        };
        let mut net = net(name, link);
        net.open();
        net.ends[0].write_all(octets(1, 40_000_000));
        net.run_until(ms(4_000));
        // 4 s at 100 Mbit/s carry 50 MB, of which slow start takes a second; 64 KiB per round trip
        // would be 2.6 MB.
        let delivered = net.ends[1].stats().delivered_bytes;
        assert!(delivered > 20_000_000, "{name}: {delivered}");
    }
}

/// A transfer in which these data segments are dropped, counted in the order of transmission.
fn lossy(settings: &Settings, losses: &[u32]) -> Net<Octets> {
    let link = Link {
        delay: Duration::from_millis(50),
        gap: Duration::from_micros(120),
        lose: losses.to_vec(),
        ..Link::default()
    };
    let mut net = Net::new(settings, settings, link, [7, 8]);
    net.logging = true;
    net.open();
    net.ends[0].write_all(octets(1, 10_000_000));
    net
}

/// The time from the retransmission of a lost segment to the next transmission.
fn pause(settings: &Settings) -> Duration {
    let mut net = lossy(settings, &[200]);
    while net.ends[0].stats().retransmitted_packets == 0 {
        net.step();
    }
    let (begin, sent) = (net.now, net.data_sent[0]);
    while net.data_sent[0] == sent {
        net.step();
    }
    net.now - begin
}

/// With the window alone nothing is sent for half of the acknowledgments, which are 120 µs apart;
/// rate halving sends a segment for every second acknowledgment.
#[test]
fn rate_halving_spreads_the_reduction() {
    let halving = settings("linux-2.6.35");
    let mut window = halving.clone();
    window.recovery_pace = RecoveryPace::Pipe;
    assert!(pause(&halving) <= Duration::from_micros(360));
    assert!(pause(&window) > Duration::from_millis(5));
}

/// Four of five are lost: rate halving leaves less than half of the window.
#[test]
fn rate_halving_after_many_losses_leaves_little() {
    let least = |pace: RecoveryPace| {
        let mut settings = settings("linux-2.6.35");
        settings.recovery_pace = pace;
        let losses: Vec<u32> = (200..330).filter(|n| n % 5 > 0).collect();
        let mut net = lossy(&settings, &losses);
        let mut before = 0;
        while net.ends[0].stats().fast_recoveries == 0 {
            before = net.ends[0].cwnd().get();
            net.step();
        }
        let until = net.now + Duration::from_secs(1);
        let mut least = before;
        while net.now < until {
            net.step();
            least = least.min(net.ends[0].cwnd().get());
        }
        assert_eq!(net.ends[0].stats().timeouts, 0);
        (least, before / 2)
    };
    let (with, half) = least(RecoveryPace::RateHalving);
    assert!(5 * with < 4 * half, "{with} of {half}");
    let (without, half) = least(RecoveryPace::Pipe);
    assert!(10 * without > 9 * half, "{without} of {half}");
}

/// The retransmission is also lost. Its timeout counts from its transmission (RFC 6675 §6), or from
/// the last acknowledgment of new data.
#[test]
fn retransmissions_of_the_counted_pipe_restart_the_timer() {
    let wait = |pace: RecoveryPace| {
        let mut settings = settings("ns2-sack1");
        settings.recovery_pace = pace;
        let mut net = lossy(&settings, &[200]);
        while net.ends[0].stats().retransmitted_packets == 0 {
            net.step();
        }
        let resent = net.now;
        let number = net.data_sent[0] - 1;
        let mut net = lossy(&settings, &[200, number]);
        while net.ends[0].stats().timeouts == 0 {
            net.step();
        }
        net.now - resent
    };
    let (with, without) = (wait(RecoveryPace::CountedPipe), wait(RecoveryPace::Pipe));
    assert!(with >= Duration::from_millis(200), "{with}");
    assert!(without < with, "{without} and {with}");
}

/// The counted pipe still contains the lost segment, and the scoreboard's pipe does not. The
/// counted pipe therefore needs one more acknowledgment.
#[test]
fn the_counted_pipe_waits_for_one_acknowledgment_more() {
    let counted = settings("ns2-sack1");
    let mut judged = counted.clone();
    judged.recovery_pace = RecoveryPace::Pipe;
    let later = pause(&counted).saturating_sub(pause(&judged));
    assert_eq!(later, Duration::from_micros(120));
}
