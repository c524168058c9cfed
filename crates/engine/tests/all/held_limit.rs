//! A bound on all packets of a link, like netem's: queued, in transmission and propagating.

use anabranch_engine::{Finished, record::PacketRow};
use anabranch_scenario::Extensions;

use crate::support::logged::{figure, logged, rows};

/// A UDP flow of `rate` Mbit/s in datagrams of 1250 bytes over a link with these keys.
fn paced(keys: &str, rate: u32) -> Finished {
    let text = format!(
        r#"
        duration = "4 s"
        warmup = "1 s"
        [link.path]
        between = ["A", "B"]
        {keys}
        [flow.main]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = {{ kind = "paced", rate = "{rate} Mbit/s", payload = "1222 bytes" }}
        "#
    );
    logged(&text, &Extensions::default())
}

/// The most packets between sending and arrival at one time.
fn most_held(run: &Finished) -> i64 {
    let mut events: Vec<_> = rows(run)
        .iter()
        .filter(|row| row.lost.is_none())
        .flat_map(|row| {
            let end = row.received.map(|at| (at, -1));
            [Some((row.sent, 1)), end].into_iter().flatten()
        })
        .collect();
    // An arriving packet makes room at once.
    events.sort_unstable();
    let held = events.iter().scan(0, |held, (_, step)| {
        *held += step;
        Some(*held)
    });
    held.max().unwrap_or(0)
}

#[test]
fn a_delay_passes_its_limit_in_each_delay() {
    // 1000 packets per second fill 100 ms with 100.
    let run = paced("delay = \"100 ms\"\nheld_limit = \"40 packets\"", 10);
    assert_eq!(most_held(&run), 40);
    let delivered = rows(&run)
        .iter()
        .filter(|row| row.received.is_some())
        .count();
    // 40 per 100 ms for 4 s, minus packets in flight at the end.
    assert!((1_530..=1_600).contains(&delivered), "{delivered}");
    let dropped = run.summary.links["path"]["forward"]["dropped_packets"].as_u64();
    let lost = rows(&run).iter().filter(|row| row.lost.is_some()).count();
    // The summary excludes the first second.
    assert!(dropped < Some(lost as u64) && dropped > Some(lost as u64 / 2));
    let waits = |row: &PacketRow| row.queue_delay.is_some_and(|delay| !delay.is_zero());
    assert!(!rows(&run).iter().any(waits));
}

#[test]
fn queue_and_delay_share_the_limit() {
    // 500 packets per second fit: 50 propagate, so 30 may be queued or in transmission.
    for rest in [
        "",
        "queue = { kind = \"fq-codel\", target = \"1 s\", interval = \"1 s\" }",
        "impair = [{ kind = \"jitter\", mean = \"1 us\" }]",
        "forward.service = \"fixed\"\nreverse.rate = \"1 Mbit/s\"",
    ] {
        let run = paced(
            &format!(
                "rate = \"5 Mbit/s\"\ndelay = \"100 ms\"\nheld_limit = \"80 packets\"\n{rest}"
            ),
            10,
        );
        assert_eq!(most_held(&run), 80, "{rest}");
        let queue = run.summary.links["path"]["forward"]["max_queue_packets"].as_u64();
        assert!(Some(28) <= queue && queue <= Some(30), "{rest}: {queue:?}");
    }
}

/// In bytes, in bandwidth-delay products, and on a link that may change, on which outcomes are not
/// computed ahead.
#[test]
fn limits_in_other_units_hold() {
    let bytes = paced("delay = \"100 ms\"\nheld_limit = \"50 kB\"", 10);
    assert_eq!(most_held(&bytes), 40);
    // 5 Mbit/s for a round trip of 200 ms: 125 kB.
    let bdp = "rate = \"5 Mbit/s\"\ndelay = \"100 ms\"\nheld_limit = \"0.64 bdp\"";
    assert_eq!(most_held(&paced(bdp, 10)), 64);
    let changes = format!("{bdp}\n[[at]]\ntime = \"2 s\"\nset = {{ \"link.path.up\" = true }}");
    assert_eq!(most_held(&paced(&changes, 10)), 64);
    let one_way =
        "delay = \"100 ms\"\nheld_limit = \"10 packets\"\nforward.held_limit = \"unlimited\"";
    // 10 Mbit/s of payload.
    assert_eq!(most_held(&paced(one_way, 10)), 103);
}

#[test]
fn members_of_a_group_share_the_limit() {
    let text = r#"
        duration = "2 s"
        [group.path]
        between = ["A", "B"]
        members = 2
        rate = "3 Mbit/s"
        delay = "50 ms"
        held_limit = "60 packets"
        [flow.main]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = { kind = "paced", rate = "10 Mbit/s", payload = "1222 bytes" }
        "#;
    let run = logged(text, &Extensions::default());
    assert_eq!(most_held(&run), 60);
}

/// A packet that netem loses never enters its queue; both copies of a duplicate count.
#[test]
fn lost_packets_do_not_count_and_copies_do() {
    let goodput = |impair: &str| {
        let keys = format!("delay = \"100 ms\"\nheld_limit = \"40 packets\"\nimpair = [{impair}]");
        let run = paced(&keys, 10);
        rows(&run)
            .iter()
            .filter(|row| row.received.is_some())
            .count()
    };
    let lossy = goodput("{ kind = \"bernoulli-loss\", rate = 0.5 }");
    assert!((1_500..=1_600).contains(&lossy), "{lossy}");
    let doubled = goodput("{ kind = \"duplicate\", rate = 1.0 }");
    assert!((760..=800).contains(&doubled), "{doubled}");
}

/// One CUBIC flow over `tc qdisc add … netem` with netem's default limit of 1000 packets. Goodputs
/// and retransmissions were measured with Linux 6.12 in virtual time: netem on a router, so that
/// each packet is one segment, and acknowledgments return at once.
///
/// Tolerances: the kernel's repetitions differ by 2 % in goodput (only the phase of its timers
/// changes), and netem's rate counts the 14 bytes of Ethernet headers (0.9 %).
#[test]
fn goodput_over_netem_equals_the_kernels() {
    for (delay, rate, kernel, resent) in [
        ("100 ms", "500 Mbit/s", 89.5, Some(1_412)),
        ("20 ms", "1 Gbit/s", 467.4, Some(1_393)),
        ("50 ms", "1 Gbit/s", 184.9, Some(1_428)),
        // Slow start overshoots by whole windows of bursts, which depend on those timers.
        ("200 ms", "unlimited", 44.8, None),
        ("100 ms", "100 Mbit/s", 85.9, Some(114)),
    ] {
        let text = format!(
            r#"
            duration = "10 s"
            [link.path]
            between = ["A", "B"]
            forward.rate = "{rate}"
            forward.delay = "{delay}"
            forward.held_limit = "1000 packets"
            [flow.main]
            from = "A"
            to = "B"
            cc = "cubic"
            stack = "linux"
            "#
        );
        let run = logged(&text, &Extensions::default());
        let goodput = figure(&run, "main", "goodput_mbit_s");
        assert!(
            (goodput / kernel - 1.0).abs() <= 0.03,
            "{delay} {rate}: {goodput} Mbit/s, the kernel {kernel}"
        );
        if let Some(resent) = resent {
            let ours = figure(&run, "main", "retransmitted_packets");
            let ratio = ours / f64::from(resent);
            assert!(
                (ratio - 1.0).abs() <= 0.05,
                "{delay} {rate}: {ours} of {resent}"
            );
        }
    }
}
