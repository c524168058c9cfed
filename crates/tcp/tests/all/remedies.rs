//! Remedies for reordering: the formulas of each against an independent derivation, laws that hold
//! for all, and the behavior of a sender with each.

use crate::support;

use anabranch_congestion::params::{Gain, Lifetimes, Packets, Samples, Share};
use anabranch_core::{
    body::Octets,
    math::{exp, ln},
    units::Duration,
};
use anabranch_tcp::{
    Overrides, Profile, Recovery,
    remedy::{
        Choice, Config, Init, LEAST, Late, Policy, Progress, Remedy, View, blanton_allman,
        leung_ma, ncr, registry, rr_tcp, tcp_pr,
    },
};
use anabranch_wire::Seq;
use proptest::prelude::*;
use support::{
    Link, Net, octets,
    remedies::{SMSS, build, settings, view},
};

fn late(length: u32) -> Late {
    Late {
        length,
        resent: true,
    }
}

fn power(base: f64, exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// Lengths without a pattern.
fn lengths() -> impl Iterator<Item = u32> {
    (0_u32..40).map(|n| (n * n * 7 + n * 3) % 61)
}

/// Thirty lengths by each rule. The expected threshold is computed from the whole history at once.
#[test]
fn blanton_and_allman_raise_the_threshold_by_four_rules() {
    use blanton_allman::Variant::{Average, Ewma, Increment, Maximum};
    let history: Vec<u32> = lengths().take(30).collect();
    for variant in [Increment, Average, Ewma, Maximum] {
        let mut remedy = build(&Config::BlantonAllman(blanton_allman::Params {
            variant,
            increment: Packets::new(2),
            gain: Share::new(0.25),
            most: Share::new(0.9),
        }));
        let wide = view(1000, 1000, 900);
        for count in 1..=history.len() {
            let seen = &history[..count];
            remedy.on_late(late(seen[count - 1]), &wide);
            let expected = match variant {
                Increment => 3.0 + 2.0 * count as f64,
                // Each step halves the distance, rounded up: computed from the front.
                Average => seen.iter().fold(3.0, |level: f64, &n| {
                    ((level + f64::from(n) + 1.0) / 2.0).ceil()
                }),
                // Weights 1/4, 3/16, 9/64, …, and the remainder for the first threshold.
                Ewma => {
                    let newest_first = seen.iter().rev().enumerate();
                    let sum: f64 = newest_first
                        .map(|(age, &n)| 0.25 * power(0.75, age) * f64::from(n + 1))
                        .sum();
                    sum + 3.0 * power(0.75, count)
                }
                Maximum => f64::from(seen.iter().max().unwrap() + 1),
            };
            // A sum of many terms may have an error in the last bit where the exact value is an
            // integer.
            let (low, high) = ((expected - 1e-9).ceil(), (expected + 1e-9).ceil());
            let dupthresh = f64::from(remedy.dupthresh());
            assert!(
                dupthresh >= low.max(3.0) && dupthresh <= high.max(3.0),
                "{variant:?} {count}: {dupthresh} for {expected}"
            );
        }
        // Nine tenths of a window of 20; a timeout resets the threshold.
        remedy.on_late(late(900), &wide);
        remedy.on_duplicate(&view(20, 20, 19));
        assert!(remedy.dupthresh() <= 18, "{variant:?}");
        remedy.on_timeout(&wide);
        assert_eq!(remedy.dupthresh(), 3);
        // A late segment that was not retransmitted has no effect.
        let unnoticed = Late {
            length: 50,
            resent: false,
        };
        remedy.on_late(unnoticed, &wide);
        assert_eq!(remedy.dupthresh(), 3);
    }
}

/// Forty lengths: mean and deviation as weighted sums over the whole history.
#[test]
fn leung_and_ma_take_mean_and_deviation() {
    let mut remedy = build(&Config::LeungMa(leung_ma::Params {
        mean_gain: Share::new(0.125),
        deviation_gain: Share::new(0.25),
        deviations: Gain::new(4.0),
        timeout_factor: Share::new(0.5),
    }));
    let wide = view(10_000, 10_000, 9000);
    let lengths: Vec<u32> = lengths().collect();
    let history: Vec<f64> = lengths.iter().copied().map(f64::from).collect();
    let mean_of = |count: usize| -> f64 {
        let (first, rest) = history[..count].split_first().unwrap();
        let newest_first = rest.iter().rev().enumerate();
        newest_first
            .map(|(age, n)| 0.125 * power(0.875, age) * n)
            .sum::<f64>()
            + power(0.875, rest.len()) * first
    };
    for count in 1..=history.len() {
        remedy.on_late(late(lengths[count - 1]), &wide);
        let mut mdev = history[0] / 2.0 * power(0.75, count - 1);
        for (k, length) in history[..count].iter().enumerate().skip(1) {
            mdev += 0.25 * power(0.75, count - 1 - k) * (length - mean_of(k)).abs();
        }
        let expected = mean_of(count) + 4.0 * mdev + 1.0;
        let (low, high) = ((expected - 1e-9).ceil(), (expected + 1e-9).ceil());
        let dupthresh = f64::from(remedy.dupthresh());
        assert!(
            dupthresh >= low.max(3.0) && dupthresh <= high.max(3.0),
            "{count}: {dupthresh} for {expected}"
        );
    }
    // Two round trips until the timer expires yield 2 * 10 duplicates.
    remedy.on_duplicate(&view(10, 10, 9));
    assert!(remedy.dupthresh() <= 20);
    // Each timeout halves the part above one.
    let mut before = f64::INFINITY;
    for _ in 0..20 {
        remedy.on_timeout(&wide);
        let now = f64::from(remedy.dupthresh());
        assert!(now < before || now <= 3.0);
        before = now;
    }
    assert_eq!(remedy.dupthresh(), 3);
}

/// The percentile by sorting, for 40 lengths and five ratios.
#[test]
fn rr_tcp_takes_a_percentile_of_the_last_lengths() {
    for fa in [0.25, 0.5, 0.75, 0.9, 1.0] {
        let mut remedy = build(&Config::RrTcp(rr_tcp::Params {
            fa: Share::new(fa),
            step: Share::new(0.0),
            history: Samples::new(16),
        }));
        let history: Vec<u32> = lengths().collect();
        for count in 1..=history.len() {
            remedy.on_late(late(history[count - 1]), &view(1000, 1000, 900));
            let mut last = history[count.saturating_sub(16)..count].to_vec();
            last.sort_unstable();
            // The smallest length such that at least the share `fa` of the lengths do not exceed
            // it: the rank is `fa` times their number, rounded up.
            let at = (1..=last.len())
                .find(|at| *at as f64 >= fa * last.len() as f64)
                .unwrap();
            let expected = (last[at - 1] + 1).max(3);
            assert_eq!(remedy.dupthresh(), expected, "{fa} {count} {last:?}");
        }
    }
    // The source's example: nine of ten lengths at 8 or less, so 9.
    let mut remedy = build(&Config::RrTcp(rr_tcp::Params {
        step: Share::new(0.0),
        ..rr_tcp::Params::default()
    }));
    for length in [1, 2, 3, 4, 5, 6, 7, 8, 8, 40] {
        remedy.on_late(late(length), &view(1000, 1000, 900));
    }
    assert_eq!(remedy.dupthresh(), 9);
    // Limited transmit ends with one more window.
    let room = |flight, pipe| remedy.room(&view(20, flight, pipe)) / SMSS;
    assert_eq!((room(25, 10), room(38, 10), room(40, 10)), (10, 2, 0));
}

/// Costs in segments not sent: `W / 2` for retransmitting too early, `W RTO / SRTT` for a timeout,
/// one for a duplicate that permits no transmission. Each moves *FA* by its share of the first two.
/// Here both sides of the fraction are divided by `W / (2 SRTT)`, so that only integers are
/// divided.
#[test]
fn rr_tcp_weighs_the_costs_of_early_and_late() {
    let step = 0.1;
    let mut points = [0_usize; 3];
    for window in [2_u64, 3, 10, 20, 100, 333, 3_000] {
        for (srtt, rto) in [(100_u64, 300_u64), (50, 200), (10, 1_000), (200, 200)] {
            let at = |flight, pipe| View {
                srtt: Duration::from_millis(srtt),
                rto: Duration::from_millis(rto),
                ..view(window, flight, pipe)
            };
            let mut remedy = rr_tcp::RrTcp::new(
                &rr_tcp::Params {
                    fa: Share::new(0.5),
                    step: Share::new(step),
                    ..rr_tcp::Params::default()
                },
                &Init { dupthresh: 3 },
            );
            let both = (srtt + 2 * rto) as f64;
            let share = |parts: u64| step * parts as f64 / both;
            // Up, down and down, each from the previous result.
            let mut before = remedy.fa();
            remedy.on_late(late(5), &at(window, 1));
            let early = remedy.fa() - before;
            assert!((early - share(srtt)).abs() < 1e-12, "{window} {srtt} {rto}");
            before = remedy.fa();
            remedy.on_timeout(&at(window, window - 1));
            let timeout = before - remedy.fa();
            assert!((timeout - share(2 * rto)).abs() < 1e-12, "{timeout}");
            before = remedy.fa();
            remedy.on_duplicate(&at(2 * window, 1));
            let nothing = before - remedy.fa();
            let expected = share(2 * srtt) / window as f64;
            assert!((nothing - expected).abs() < 1e-12, "{nothing}");
            points = points.map(|n| n + 1);
            // No effect: a timeout without duplicates, a duplicate with room left, and a late
            // segment that was not retransmitted.
            before = remedy.fa();
            remedy.on_timeout(&at(window, window));
            remedy.on_duplicate(&at(2 * window - 1, 1));
            let unnoticed = Late {
                length: 5,
                resent: false,
            };
            remedy.on_late(unnoticed, &at(window, 1));
            assert!((remedy.fa() - before).abs() < f64::EPSILON);
        }
    }
    assert!(points.iter().all(|&n| n >= 20), "{points:?}");
    // *FA* stays between 0 and 1.
    let mut remedy = rr_tcp::RrTcp::new(
        &rr_tcp::Params {
            step: Share::new(1.0),
            ..rr_tcp::Params::default()
        },
        &Init { dupthresh: 3 },
    );
    for (raise, end) in [(true, 1.0), (false, 0.0)] {
        for _ in 0..10 {
            if raise {
                remedy.on_late(late(5), &view(20, 20, 10));
            } else {
                remedy.on_timeout(&view(20, 20, 10));
            }
        }
        assert!((remedy.fa() - end).abs() < f64::EPSILON);
    }
}

/// Forty round-trip times: the largest, after each has decayed by its age in acknowledgments.
#[test]
fn tcp_pr_keeps_the_largest_round_trip_time() {
    let mut remedy = build(&Config::TcpPr(tcp_pr::Params {
        alpha: Share::new(0.9),
        beta: Lifetimes::new(3.0),
    }));
    assert_eq!(remedy.lifetime(), None);
    let samples: Vec<f64> = lengths().map(|n| 0.05 + f64::from(n) / 1000.0).collect();
    for count in 1..=samples.len() {
        let progress = Progress {
            acked: SMSS,
            open: true,
            reports: false,
            rtt: Some(Duration::from_secs_f64(samples[count - 1])),
        };
        remedy.on_progress(&progress, &view(10, 10, 10));
        let ewrtt = samples[..count]
            .iter()
            .rev()
            .zip(0_i32..)
            .map(|(rtt, age)| rtt * exp(ln(0.9) * f64::from(age) / 10.0))
            .fold(0.0, f64::max);
        let mxrtt = remedy.lifetime().unwrap().as_secs_f64();
        assert!(
            (mxrtt / (3.0 * ewrtt) - 1.0).abs() < 1e-9,
            "{count}: {mxrtt} for {ewrtt}"
        );
    }
}

#[test]
fn tcp_pr_halves_the_window_of_the_lost_segment() {
    let mut remedy = build(&Config::TcpPr(tcp_pr::Params::default()));
    let at = |n: u64| Seq::first(0) + n * SMSS;
    for n in 0..30 {
        remedy.on_sent(at(n + 1), &view(10 + n / 10, 30, 30));
    }
    let windows: Vec<_> = [0, 9, 10, 19, 20, 29]
        .map(|n| remedy.window_of(at(n)).map(|octets| octets / SMSS))
        .into();
    let expected = [10, 10, 11, 11, 12, 12].map(Some);
    assert_eq!(windows, expected);
    // More than half of a window plus one is a collapse.
    let seen = view(20, 20, 20);
    assert!(!remedy.on_overdue(11, &seen));
    assert!(remedy.on_overdue(12, &seen));
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Duplicate,
    Progress(u64),
    Late(u32, bool),
    Timeout,
    Sent,
}

fn events() -> impl Strategy<Value = Vec<(Event, View)>> {
    let event = prop_oneof![
        Just(Event::Duplicate),
        (1_u64..20).prop_map(Event::Progress),
        (0_u32..5000, any::<bool>()).prop_map(|(n, resent)| Event::Late(n, resent)),
        Just(Event::Timeout),
        Just(Event::Sent),
    ];
    let seen = (1_u64..3000, 0_u64..6000, 0_u64..6000)
        .prop_map(|(cwnd, flight, pipe)| view(cwnd, flight.max(pipe), flight.min(pipe)));
    prop::collection::vec((event, seen), 1..200)
}

fn tell(remedy: &mut Remedy, (event, seen): (Event, View)) {
    match event {
        Event::Duplicate => remedy.on_duplicate(&seen),
        Event::Progress(segments) => remedy.on_progress(
            &Progress {
                acked: segments * SMSS,
                open: segments % 2 == 0,
                reports: segments % 3 == 0,
                rtt: Some(Duration::from_millis(segments * 17)),
            },
            &seen,
        ),
        Event::Late(length, resent) => remedy.on_late(Late { length, resent }, &seen),
        Event::Timeout => remedy.on_timeout(&seen),
        Event::Sent => remedy.on_sent(Seq::first(0) + seen.flight_size, &seen),
    }
}

proptest! {
    /// The threshold is at least RFC 5681's three, the room at most the window minus the pipe, and
    /// equal events give equal results.
    #[test]
    fn laws(events in events()) {
        for (_, config, _) in registry() {
            let (mut one, mut other) = (build(&config), build(&config));
            for &event in &events {
                tell(&mut one, event);
                tell(&mut other, event);
                let seen = event.1;
                prop_assert!(one.dupthresh() >= LEAST, "{}", config.name());
                prop_assert_eq!(one.dupthresh(), other.dupthresh());
                prop_assert_eq!(one.ramp(), other.ramp());
                prop_assert_eq!(one.lifetime(), other.lifetime());
                if !matches!(config, Config::Ncr(_)) {
                    prop_assert!(one.room(&seen) <= seen.cwnd.saturating_sub(seen.pipe));
                }
            }
        }
    }
}

/// A transfer of `segments` over `link`. Returns the receiver's octets and the sender's counters.
fn transfer(config: &Config, link: Link, segments: usize) -> (Vec<u8>, anabranch_tcp::Stats) {
    let settings = settings(config);
    let mut net: Net<Octets> = Net::new(&settings, &settings, link, [u32::MAX - 5000, 77]);
    net.ends[1].set_auto_read(false);
    net.open();
    net.ends[0].write_all(Octets(octets(7, segments * 1000).0));
    let mut read = Vec::new();
    loop {
        net.flush();
        let going = net.step();
        let piece = net.ends[1].read(net.now, u64::MAX).0;
        if !going && piece.is_empty() && net.ends[0].all_acknowledged() {
            break;
        }
        read.extend(piece);
        assert!(net.events < 100_000, "no end");
    }
    (read, net.ends[0].stats())
}

/// With every remedy a genuine loss followed by enough data is repaired without the retransmission
/// timer, and all data arrives once and in order.
#[test]
fn a_genuine_loss_needs_no_timeout() {
    for (_, config, _) in registry() {
        for lose in [vec![30], vec![30, 31], vec![30, 60, 90]] {
            let link = Link {
                lose: lose.clone(),
                gap: Duration::from_micros(500),
                ..Link::default()
            };
            let (read, stats) = transfer(&config, link, 400);
            assert!(read == octets(7, 400_000).0, "{}", config.name());
            assert_eq!(stats.timeouts, 0, "{} {lose:?} {stats:?}", config.name());
            assert_eq!(
                stats.retransmitted_packets,
                lose.len() as u64,
                "{} {lose:?}",
                config.name()
            );
            assert!(stats.fast_recoveries >= 1, "{}", config.name());
        }
    }
}

/// Over a path that reorders without end, every remedy retransmits less than the stack without one.
#[test]
fn each_remedy_spares_retransmissions() {
    let link = || Link {
        jitter: Duration::from_millis(4),
        gap: Duration::from_micros(400),
        ..Link::default()
    };
    let (_, without) = transfer(&registry()[0].1, link(), 10_000);
    assert!(without.retransmitted_packets > 100, "{without:?}");
    for (_, config, _) in registry().into_iter().skip(1) {
        let (read, stats) = transfer(&config, link(), 10_000);
        assert!(read == octets(7, 10_000_000).0, "{}", config.name());
        assert!(
            stats.retransmitted_packets * 4 < without.retransmitted_packets,
            "{}: {} of {}",
            config.name(),
            stats.retransmitted_packets,
            without.retransmitted_packets
        );
    }
}

/// Every octet arrives once and in order over paths that lose, delay, reorder and duplicate.
#[test]
fn bad_paths_lose_nothing() {
    for (_, config, _) in registry() {
        let mut timeouts = 0;
        for seed in 0..30 {
            let link = Link {
                seed,
                jitter: Duration::from_millis(seed % 5 * 6),
                loss: (seed % 4) as f64 * 0.05,
                duplicate: (seed % 3) as f64 * 0.05,
                gap: Duration::from_micros(200),
                ..Link::default()
            };
            let (read, stats) = transfer(&config, link, 120);
            assert!(read == octets(7, 120_000).0, "{} {seed}", config.name());
            timeouts += stats.timeouts;
        }
        assert!(timeouts > 0, "{}: the paths were too good", config.name());
    }
}

/// A remedy, additional overrides, and the text of the refusal.
type Case = (Config, fn(&mut Overrides), &'static str);

#[test]
fn contradictions_are_refused_at_their_key() {
    let asked = |stack: &str, config: &Config, more: fn(&mut Overrides)| {
        let mut over = Overrides {
            reordering: Some(Choice(config.clone())),
            ..Overrides::default()
        };
        more(&mut over);
        let profile = Profile::named(stack).expect("it exists");
        profile.settings.with(&over)
    };
    let cases: [Case; 5] = [
        (
            Config::RrTcp(rr_tcp::Params::default()),
            |over| over.dsack = Some(false),
            "needs dsack = true",
        ),
        (
            Config::TcpPr(tcp_pr::Params::default()),
            |over| over.rack = Some(true),
            "contradicts \"rack\"",
        ),
        (
            Config::Ncr(ncr::Params::default()),
            |over| over.sack = Some(false),
            "needs sack = true",
        ),
        (
            Config::LeungMa(leung_ma::Params::default()),
            |over| over.max_dupthresh = Some(300),
            "contradicts max_dupthresh",
        ),
        (
            Config::Ncr(ncr::Params::default()),
            |over| over.recovery = Some(Recovery::NewReno),
            "needs recovery = \"rfc6675\"",
        ),
    ];
    for (config, more, what) in cases {
        let problem = asked("rfc", &config, more).expect_err(what);
        assert_eq!(problem.field, "reordering");
        assert!(problem.message.contains(what), "{problem}");
    }
    // A profile's RACK is disabled; its undo remains, and remedies that need undo enable it.
    let linux = asked("linux", &Config::TcpPr(tcp_pr::Params::default()), |_| {}).unwrap();
    assert_eq!((linux.recovery, linux.tlp), (Recovery::Rfc6675, false));
    let rfc = asked("rfc", &Config::RrTcp(rr_tcp::Params::default()), |_| {}).unwrap();
    assert!(rfc.undo);
    let without = asked("rfc", &Config::RrTcp(rr_tcp::Params::default()), |over| {
        over.undo = Some(false);
    });
    assert!(!without.unwrap().undo);
}
