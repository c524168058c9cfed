//! Link groups with switched members, through all layers.

use anabranch_core::{body::Length, units::Duration};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Resolved, Scenario};
use proptest::prelude::*;
use serde_json::Value;

const CONTRACT: &str = include_str!("../../../../scenarios/link-aggregation.toml");

fn resolve(text: &str, sets: &[&str]) -> Resolved {
    let mut scenario = Scenario::parse(text, "group.toml", &Extensions::default()).expect("TOML");
    for set in sets {
        scenario.set(set).expect("a path and a value");
    }
    scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, sets: &[&str]) -> Finished {
    Simulation::<Length>::new(&resolve(text, sets))
        .run()
        .expect("no hosts")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks that the energy is that of the reported states, that the states cover the whole time, and
/// that members off correspond to sleeping ports.
fn check_group(group: &Value, members: f64, seconds: f64) {
    let port = |state: &str| number(&group["port_seconds"][state]);
    let [active, idle, sleeping, waking] = ["active", "idle", "sleeping", "waking"].map(port);
    let total = active + idle + sleeping + waking;
    assert!((total - 2.0 * members * seconds).abs() < 1e-6, "{group}");
    let joules = 0.5 * (active + idle + waking) + 0.05 * sleeping;
    assert!(
        (number(&group["energy_joules"]) - joules).abs() < 1e-6,
        "{group}"
    );
    assert!((number(&group["member_seconds_off"]) - sleeping / 2.0).abs() < 1e-9);
    let mean = number(&group["mean_active_members"]);
    assert!((1.0..=members).contains(&mean), "{group}");
}

#[test]
fn the_example_of_the_contract_runs() {
    let finished = run(CONTRACT, &["duration='10 s'"]);
    let summary = &finished.summary;
    check_group(&summary.groups["core"], 8.0, 10.0);
    // The group is also reported under `links`.
    let core = &summary.links["core"];
    assert!(number(&core["forward"]["sent_packets"]) > 100_000.0);
    assert!(number(&core["forward"]["utilization"]) <= 1.0);
    assert!(number(&summary.groups["core"]["lacpdus_sent"]) > 0.0);
    assert!(number(&summary.flows["main"]["goodput_mbit_s"]) > 100.0);
}

/// Every controller and both ways of spreading; at 30 Mbit/s one member suffices.
#[test]
fn every_controller_runs_and_switches_members_off() {
    let udp = CONTRACT.replace(
        "cc = \"compound\"\nstack = \"rfc\"",
        "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"30 Mbit/s\" }",
    );
    for (control, most) in [
        ("always-on", 8.0),
        ("peak-percentile", 2.0),
        ("moving-average", 2.0),
        ("ewma-hysteresis", 2.0),
        ("peak-forecast", 2.0),
        ("oracle", 1.01),
        ("lpi", 8.0),
    ] {
        for spread in ["per-packet", "per-flow"] {
            let sets = [
                "duration='20 s'",
                &format!("group.core.control={control}"),
                &format!("group.core.spread={spread}"),
            ];
            let finished = run(&udp, &sets);
            let group = &finished.summary.groups["core"];
            check_group(group, 8.0, 20.0);
            let mean = number(&group["mean_active_members"]);
            assert!(mean <= most, "{control} {spread}: {mean}");
            let dropped = number(&finished.summary.links["core"]["forward"]["dropped_packets"]);
            assert!(dropped < 0.5, "{control} {spread}: {dropped}");
            let off = number(&group["member_seconds_off"]);
            assert_eq!(
                off > 100.0,
                control != "always-on",
                "{control} {spread}: {off}"
            );
            if spread == "per-flow" {
                assert_eq!(finished.summary.flows["main"]["reordered_ratio"], 0.0);
            }
        }
    }
}

/// One member, always on, is a link. Detects a group with another order of service, other counters
/// or a lower speed.
#[test]
fn a_group_of_one_is_a_link() {
    let link = CONTRACT
        .replace("[group.core]", "[link.core]")
        .replace("members = 8\n", "")
        .replace("spread = \"per-packet\"\n", "");
    let link: String = link
        .lines()
        .filter(|line| !line.starts_with("control"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let faults = ["duration='5 s'", "flow.main.count=3", "flow.main.cc=cubic"];
    let loss = |section: &str| {
        [
            format!("{section}.core.forward.impair=[{{ kind = 'bernoulli-loss', rate = 1e-3 }}]"),
            format!("{section}.core.queue.limit='40 packets'"),
            format!("{section}.core.delay='2 ms'"),
        ]
    };
    let figures = |finished: &Finished| {
        let summary = &finished.summary;
        (
            summary.flows.clone(),
            summary.links.clone(),
            summary.digest.clone(),
        )
    };
    for spread in ["per-packet", "per-flow"] {
        let of_link = loss("link");
        let of_group = loss("group");
        let mut link_sets = faults.to_vec();
        link_sets.extend(of_link.iter().map(String::as_str));
        let spread = format!("group.core.spread={spread}");
        let mut group_sets = faults.to_vec();
        group_sets.extend(of_group.iter().map(String::as_str));
        group_sets.extend([
            "group.core.members=1",
            "group.core.control=always-on",
            &spread,
        ]);
        let [link, group] = [run(&link, &link_sets), run(CONTRACT, &group_sets)];
        assert_eq!(figures(&link), figures(&group));
    }
}

/// The samples contain the figures that L8 shows: the number of members that are on, forward and in
/// reverse.
#[test]
fn samples_show_the_members() {
    let resolved = resolve(
        CONTRACT,
        &[
            "duration='6 s'",
            "flow.main.cc=vegas",
            "flow.main.stop='2 s'",
        ],
    );
    let finished = Simulation::<Length>::new(&resolved)
        .samples(Some(Duration::from_millis(100)))
        .run()
        .expect("no hosts");
    let samples = &finished.samples.groups;
    assert_eq!(samples.len(), 61);
    assert_eq!(samples[0].state.active, [8, 8]);
    let last = samples.last().expect("61").state;
    // No traffic arrives at the end.
    assert_eq!(
        (last.wanted, last.active, last.sleeping),
        (1, [1, 1], [7, 7])
    );
}

#[test]
fn a_group_goes_down_and_recovers() {
    let text = format!(
        "{CONTRACT}\n[[at]]\ntime = \"2 s\"\nset = {{ \"group.core.up\" = false }}\n\
         [[at]]\ntime = \"3 s\"\nset = {{ \"group.core.up\" = true, \"group.core.delay\" = \"1 ms\" }}\n"
    );
    let down = run(&text, &["duration='6 s'"]);
    check_group(&down.summary.groups["core"], 8.0, 6.0);
    assert!(number(&down.summary.flows["main"]["timeouts"]) >= 1.0);
    let goodput = number(&down.summary.flows["main"]["goodput_mbit_s"]);
    assert!(goodput > 20.0, "{goodput}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Packets are lost only by queues and impairments, for any state of the group: every packet
    /// sent has been received, was dropped or lost, or is in flight. The run is also deterministic.
    #[test]
    fn packets_are_conserved(
        members in 1..=8_u32,
        spread in prop::sample::select(vec!["per-packet", "per-flow"]),
        interval in 2..200_u64,
        wake in 0..2_000_u64,
        delay in 0..3_000_u64,
        loss in prop_oneof![Just(0.0), 0.0..0.2_f64],
        rate in 1..60_u64,
        cc in prop::sample::select(vec!["cubic", "vegas", "bbr"]),
        seed in 0..1_000_u64,
    ) {
        let sets = [
            "duration='700 ms'".to_owned(),
            format!("seed={seed}"),
            format!("flow.main.cc={cc}"),
            "flow.main.count=4".to_owned(),
            "flow.main.workload={ kind = 'poisson', rate = '200 Mbit/s', sizes = { kind = 'fixed', size = '60 kB' } }".to_owned(),
            format!("group.core.members={members}"),
            format!("group.core.rate='{rate} Mbit/s'"),
            format!("group.core.spread={spread}"),
            format!("group.core.wake_time='{wake} us'"),
            format!("group.core.delay='{delay} us'"),
            format!("group.core.impair=[{{ kind = 'bernoulli-loss', rate = {loss} }}]"),
            format!("group.core.control={{ kind = 'peak-percentile', bin = '1 ms', section = '1 ms', interval = '{interval} ms' }}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let resolved = resolve(CONTRACT, &sets);
        let twice: Vec<_> = [true, false]
            .map(|fast| {
                Simulation::<Length>::new(&resolved)
                    .fast_path(fast)
                    .packet_log(true)
                    .run()
                    .expect("no hosts")
            })
            .into();
        prop_assert_eq!(&twice[0].summary.digest, &twice[1].summary.digest);
        prop_assert_eq!(&twice[0].summary.groups, &twice[1].summary.groups);
        let network = &twice[0].network;
        let (mut sent, mut over, mut on_the_way) = (0_u64, 0_u64, 0_usize);
        for row in network.probe().log().expect("it was asked for").rows() {
            sent += 1;
            let ended = row.received.is_some() || row.lost.is_some();
            over += u64::from(ended);
            on_the_way += usize::from(!ended);
        }
        prop_assert!(sent > 0);
        prop_assert_eq!(sent - over, on_the_way as u64);
        prop_assert_eq!(network.packets_in_flight(), on_the_way);
    }
}
