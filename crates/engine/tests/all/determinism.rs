//! Equal scenarios and seeds have equal digests, independent of folding and of the number of
//! threads.

use crate::support::{Shape, outputs::first_difference, resolve, text};
use anabranch_core::{
    body::{Length, Octets},
    packet::FlowId,
    units::Duration,
};
use anabranch_engine::{
    Finished, Simulation,
    network::{LinkReport, Network},
    topology::Compiled,
};
use anabranch_scenario::Resolved;

const SHAPE: Shape = Shape {
    files_only: false,
    changes: true,
    mangle: true,
    seconds: 2,
};

/// Compares all outputs; a failure names the first difference.
fn assert_same(one: &Finished, other: &Finished, number: u64, text: &str) {
    if let Some(difference) = first_difference(one, other) {
        panic!("scenario {number}: {difference}\n{text}");
    }
}

#[test]
fn fast_path_folding_and_sampling_change_nothing() {
    compare_paths(100);
}

#[test]
#[ignore = "many cases: make test-cases"]
fn fast_path_folding_and_sampling_change_nothing_in_many_cases() {
    compare_paths(300);
}

/// Compares this number of random scenarios on the fast path with the same without it.
fn compare_paths(count: u64) {
    let (mut folded, mut lossy) = (0, 0);
    for number in 0..count {
        let text = text(number, SHAPE);
        let resolved = resolve(&text);
        let run = |fast_path, log, every| {
            Simulation::<Length>::new(&resolved)
                .fast_path(fast_path)
                .packet_log(log)
                .samples(every)
                .run()
                .expect("no hosts")
        };
        let fast = run(true, true, None);
        assert_same(&fast, &run(false, true, None), number, &text);
        folded += u64::from(fast.network.folded_links() > 0);
        lossy += u64::from(fast.summary.links.values().any(|link| {
            ["forward", "reverse"]
                .iter()
                .any(|d| link[d]["dropped_packets"].as_u64() > Some(0))
        }));
        if number % 10 == 0 {
            let every = Some(anabranch_core::units::Duration::from_millis(7));
            let sampled = run(true, true, every);
            assert_same(&sampled, &run(false, true, every), number, &text);
            assert_same(&run(true, false, None), &sampled, number, &text);
        }
    }
    // The comparison is meaningful only with links to fold and packets to drop.
    assert!(folded > 3 * count / 10, "{folded}");
    assert!(lossy > 3 * count / 10, "{lossy}");
}

#[test]
fn lengths_and_octets_agree() {
    for number in 0..60 {
        let text = text(
            number,
            Shape {
                seconds: 1,
                ..SHAPE
            },
        );
        let resolved = resolve(&text);
        let lengths = Simulation::<Length>::new(&resolved)
            .run()
            .expect("no hosts");
        let octets = Simulation::<Octets>::new(&resolved)
            .run()
            .expect("no hosts");
        assert_eq!(
            lengths.summary.digest, octets.summary.digest,
            "scenario {number}\n{text}"
        );
    }
}

#[test]
fn threads_and_order_change_nothing() {
    let resolved: Vec<_> = (0..40)
        .map(|number| resolve(&text(number, SHAPE)))
        .collect();
    let run = |i: usize| {
        Simulation::<Length>::new(&resolved[i])
            .run()
            .expect("no hosts")
            .summary
            .digest
    };
    let alone: Vec<_> = (0..40).map(run).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                (0..40)
                    .rev()
                    .filter(|i| i % 2 == half)
                    .map(|i| (i, run(i)))
                    .collect::<Vec<_>>()
            })
        });
        halves
            .into_iter()
            .flat_map(|half| half.join().expect("no panic"))
            .collect()
    });
    for (i, digest) in together {
        assert_eq!(alone[i], digest, "scenario {i}");
    }
}

#[test]
fn the_seed_changes_random_scenarios() {
    let text = (0..1_000)
        .map(|number| text(number, SHAPE))
        .find(|text| text.contains("rate = 0.04"));
    let text = text.expect("some scenario loses packets");
    let copies = crate::support::Copies::default();
    let scenario = anabranch_scenario::Scenario::parse(
        &text,
        "random.toml",
        &crate::support::extensions(&copies),
    )
    .expect("valid");
    let digest = |seed| {
        let resolved = scenario.resolve(Some(seed)).expect("valid");
        Simulation::<Length>::new(&resolved)
            .run()
            .expect("no hosts")
            .summary
            .digest
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// Transfers end while packets computed ahead are dropped, and other transfers reuse their places.
#[test]
fn places_of_ended_transfers_do_not_depend_on_folding() {
    for seed in 1..=6 {
        let text = format!(
            r#"
            duration = "200 s"
            seed = {seed}
            [link.a]
            between = ["A", "R"]
            rate = "100 Mbit/s"
            delay = "10 ms"
            [link.b]
            between = ["R", "B"]
            rate = "1 Mbit/s"
            delay = "20 ms"
            queue = {{ kind = "drop-tail", limit = "20 packets" }}
            [flow.web]
            from = "A"
            to = "B"
            stack = "rfc"
            transport = {{ time_wait = "{} ms" }}
            workload = {{ kind = "poisson", rate = "900 kbit/s", sizes = {{ kind = "exponential", mean = "20 kB" }} }}
            "#,
            1 + seed * 100
        );
        let resolved = resolve(&text);
        let fast = Simulation::<Length>::new(&resolved)
            .run()
            .expect("no hosts");
        let general = Simulation::<Length>::new(&resolved)
            .fast_path(false)
            .run()
            .expect("no hosts");
        assert!(fast.network.folded_links() > 0);
        assert!(fast.summary.flows["web"]["transfers"]["completed"].as_u64() > Some(500));
        assert_same(&fast, &general, seed, &text);
    }
}

/// Digest and reports of all flows and links at the end of a run that is driven by `drive`.
fn figures(resolved: &Resolved, fast: bool, drive: impl Fn(&mut Network<Length>)) -> (u64, String) {
    let compiled = Simulation::<Length>::new(resolved)
        .fast_path(fast)
        .compile();
    let Compiled {
        mut network, links, ..
    } = compiled.expect("no hosts");
    drive(&mut network);
    network.run_through(network.end());
    let flows: Vec<_> = (0..network.flow_count())
        .map(|flow| network.flow_report(FlowId(u32::try_from(flow).expect("few"))))
        .collect();
    let links: Vec<_> = links
        .iter()
        .flat_map(|(_, directions)| directions)
        // A folded link also holds packets that will arrive there later.
        .map(|link| LinkReport {
            queue_packets: 0,
            ..network.link_statistics(*link)
        })
        .collect();
    let digest = network.digest();
    let delivered = network.delivered_packets();
    (
        network.events(),
        format!("{digest:?} {delivered}\n{flows:#?}\n{links:#?}"),
    )
}

/// Detects an endpoint that counts as hot although an event other than the next segment can apply,
/// a hot function that leaves out a step of the general path, and an end that runs ahead of a
/// timer, of a change or of a reader.
#[test]
fn the_hot_path_changes_nothing() {
    compare_hot_scenarios(250);
}

#[test]
#[ignore = "many cases: make test-cases"]
fn the_hot_path_changes_nothing_in_many_cases() {
    compare_hot_scenarios(1_000);
}

fn compare_hot_scenarios(count: u64) {
    let mut ahead = 0;
    for number in 0..count {
        let text = text(number, SHAPE);
        // Stacks with features that are not hot.
        let text = match number % 8 {
            1 => text.replace("transport = { ", "transport = { pacing = true, "),
            2 => text.replace("transport = { ", "transport = { ecn = \"rfc3168\", "),
            3 => text.replace("cc = \"cubic\"", "cc = \"bbr\""),
            _ => text,
        };
        let resolved = resolve(&text);
        let (hot_events, hot) = figures(&resolved, true, |_| {});
        let (events, cold) = figures(&resolved, true, |network| network.permit_hot_path(false));
        let (_, general) = figures(&resolved, false, |_| {});
        // Hotness changes at random, and reads in between limit how far an end runs ahead.
        let (_, switched) = figures(&resolved, true, |network| {
            let mut state = number;
            while network.now() < network.end() {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                network.permit_hot_path(state >> 63 == 0);
                let step = Duration::from_micros((state >> 40) % 100_000 + 1);
                network.run_through(network.now() + step);
            }
        });
        for (mode, other) in [("cold", cold), ("general", general), ("switched", switched)] {
            if let Some((a, b)) = hot.lines().zip(other.lines()).find(|(a, b)| a != b) {
                panic!("scenario {number}, {mode}: {a}\n{b}\n{text}");
            }
        }
        ahead += u64::from(hot_events < events);
    }
    assert!(ahead > count / 10, "{ahead}");
}

/// Compares a run on the hot path with one without it and with one on the general path; returns
/// the share of events that the hot path needs.
fn compare_hot(text: &str) -> f64 {
    let resolved = resolve(text);
    let (events, hot) = figures(&resolved, true, |_| {});
    let (all, cold) = figures(&resolved, true, |network| network.permit_hot_path(false));
    let (_, general) = figures(&resolved, false, |_| {});
    for (mode, other) in [("cold", cold), ("general", general)] {
        if let Some((a, b)) = hot.lines().zip(other.lines()).find(|(a, b)| a != b) {
            panic!("{mode}: {a}\n{b}\n{text}");
        }
    }
    events as f64 / all as f64
}

/// A bulk flow over access links of 100 ms and a core link that changes, so that both ends run
/// ahead; `core`, `flow` and `rest` are further keys.
fn long_access(core: &str, flow: &str, rest: &str) -> String {
    format!(
        r#"
        duration = "6 s"
        [link.access]
        between = ["A", "R"]
        rate = "50 Mbit/s"
        delay = "100 ms"
        [link.core]
        between = ["R", "S"]
        rate = "20 Mbit/s"
        {core}
        [link.exit]
        between = ["S", "B"]
        rate = "50 Mbit/s"
        delay = "100 ms"
        [flow.f]
        from = "A"
        to = "B"
        {flow}
        [[at]]
        time = "50 ms"
        set = {{ "link.core.rate" = "21 Mbit/s" }}
        {rest}
        "#
    )
}

/// Detects an end that runs ahead of the stop of its application.
#[test]
fn no_end_runs_ahead_of_its_stop() {
    for stop in (20..30).map(|n| n * 100) {
        let flow =
            format!("stack = \"rfc\"\nstop = \"{stop} ms\"\ntransport.receive_window = \"64 KiB\"");
        let share = compare_hot(&long_access("delay = \"5 ms\"", &flow, ""));
        assert!(share < 0.9, "{share}");
    }
}

/// A packet reaches the last link every 104 microseconds, and the application stops at one of these
/// times. Detects an end that runs ahead from the instant of its stop.
#[test]
fn no_end_runs_ahead_from_the_instant_of_its_stop() {
    for stop in 800_000..800_110 {
        compare_hot(&format!(
            r#"
            duration = "0.9 s"
            [link.access]
            between = ["A", "R"]
            delay = "10 ms"
            [link.core]
            between = ["R", "S"]
            rate = "8 Mbit/s"
            delay = "1 ms"
            [link.exit]
            between = ["S", "B"]
            delay = "10 ms"
            [flow.f]
            from = "A"
            to = "B"
            stack = "rfc"
            stop = "{stop} us"
            transport = {{ mss = "64 bytes" }}
            [[at]]
            time = "50 ms"
            set = {{ "link.core.delay" = "2 ms" }}
            "#
        ));
    }
}

/// Detects an end that runs ahead over a gap: what fills it delivers more than its own octets.
#[test]
fn ends_that_run_ahead_repair_losses_as_others_do() {
    for (stack, workload) in ["rfc", "linux"].into_iter().flat_map(|stack| {
        ["bulk", "file\", size = \"400 kB"].map(move |workload| (stack, workload))
    }) {
        for seed in 1..6 {
            let flow = format!("stack = \"{stack}\"\nworkload = {{ kind = \"{workload}\" }}");
            let core = "delay = \"5 ms\"\nimpair = [{ kind = \"bernoulli-loss\", rate = 0.01 }]";
            compare_hot(&format!("seed = {seed}\n{}", long_access(core, &flow, "")));
        }
    }
}

/// Detects a sender that runs ahead of the end of its transfer.
#[test]
fn no_sender_runs_ahead_of_the_end_of_its_file() {
    for size in (60..70).map(|n| n * 10) {
        let flow = format!(
            "stack = \"rfc\"\ntransport.receive_window = \"64 KiB\"\nworkload = {{ kind = \"file\", size = \"{size} kB\" }}"
        );
        compare_hot(&long_access("delay = \"5 ms\"", &flow, ""));
    }
}

/// Detects an end that runs ahead of its retransmission timer.
#[test]
fn no_end_runs_ahead_of_its_retransmission_timer() {
    for late in [320, 360, 400, 440, 480, 520, 560] {
        let flow =
            "stack = \"rfc\"\ntransport = { min_rto = \"200 ms\", receive_window = \"64 KiB\" }";
        let rest =
            format!("[[at]]\ntime = \"3 s\"\nset = {{ \"link.core.delay\" = \"{late} ms\" }}");
        compare_hot(&long_access("delay = \"5 ms\"", flow, &rest));
    }
}

/// The round-trip time falls, and then no packet arrives any more. Detects a hot path that keeps
/// the timer of a longer round trip.
#[test]
fn a_timer_is_set_earlier_when_the_round_trip_becomes_shorter() {
    for (stack, down) in ["rfc", "linux"]
        .into_iter()
        .flat_map(|stack| (33..46).map(move |tenth| (stack, tenth * 100)))
    {
        let flow = format!(
            "stack = \"{stack}\"\ntransport = {{ min_rto = \"200 ms\", receive_window = \"64 KiB\" }}"
        );
        let rest = format!(
            "[[at]]\ntime = \"3 s\"\nset = {{ \"link.core.delay\" = \"5 ms\" }}\n\
             [[at]]\ntime = \"{down} ms\"\nset = {{ \"link.core.up\" = false }}"
        );
        compare_hot(&long_access("delay = \"400 ms\"", &flow, &rest));
    }
}

/// A queue that reads the code point is downstream. Detects a hot path that leaves it out.
#[test]
fn packets_of_the_hot_path_have_the_code_point_of_their_flow() {
    let core = "delay = \"5 ms\"\nqueue = { kind = \"cake\", rate = \"16 Mbit/s\", diffserv = \"diffserv4\" }";
    let rest = "[flow.other]\nfrom = \"A\"\nto = \"S\"\n";
    compare_hot(&long_access(core, "stack = \"rfc\"\ndscp = \"ef\"", rest));
}

/// Copies of packets arrive late, when another transfer uses their place. Detects an end that takes
/// a packet of an earlier transfer.
#[test]
fn no_end_takes_a_packet_of_an_earlier_transfer() {
    for seed in 1..=8 {
        let text = format!(
            r#"
            duration = "20 s"
            seed = {seed}
            [link.a]
            between = ["A", "R"]
            rate = "100 Mbit/s"
            delay = "1 ms"
            [link.b]
            between = ["R", "B"]
            rate = "10 Mbit/s"
            delay = "2 ms"
            impair = [{{ kind = "mangle", duplicate = 0.0, late = 0.05, corrupt = 0.0, by_ms = {} }}]
            [link.c]
            between = ["B", "C"]
            rate = "100 Mbit/s"
            delay = "1 ms"
            [flow.web]
            from = "A"
            to = "C"
            stack = "rfc"
            transport = {{ time_wait = "1 ms", timestamps = false }}
            workload = {{ kind = "poisson", rate = "7 Mbit/s", sizes = {{ kind = "fixed", size = "30 kB" }} }}
            "#,
            seed * 8
        );
        compare_hot(&text);
    }
}

/// A route of a gateway fails, and the other carries no full segments. Detects an end that runs
/// ahead of the report.
#[test]
fn no_end_runs_ahead_of_the_report_of_a_gateway() {
    for direction in ["forward", "reverse"] {
        let (mtu, overhead) = if direction == "forward" {
            (1_000, 30)
        } else {
            (120, 80)
        };
        let text = format!(
            r#"
            duration = "4 s"
            [link.access]
            between = ["A", "G"]
            rate = "50 Mbit/s"
            delay = "20 ms"
            [link.wide]
            between = ["G", "H"]
            rate = "10 Mbit/s"
            delay = "10 ms"
            [link.narrow]
            between = ["G", "H"]
            rate = "5 Mbit/s"
            delay = "30 ms"
            {direction}.mtu = "{mtu} bytes"
            [link.far]
            between = ["H", "B"]
            rate = "50 Mbit/s"
            delay = "20 ms"
            [gateway.pair]
            between = ["G", "H"]
            routes = ["wide", "narrow"]
            split = "earliest-arrival"
            restore = "none"
            overhead = "{overhead} bytes"
            [flow.f]
            from = "A"
            to = "B"
            stack = "rfc"
            [[at]]
            time = "2 s"
            set = {{ "link.wide.up" = false }}
            "#
        );
        compare_hot(&text);
    }
}
