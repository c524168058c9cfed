//! The resolution of scenarios.

use std::{
    fmt::Write,
    path::Path,
    sync::{Arc, Mutex},
};

use anabranch_congestion::{self as cc};
use anabranch_core::{
    packet::Direction,
    units::{Duration, Instant, Rate, text::Limit},
};
use anabranch_scenario::{
    Error, Extensions, Resolved, Scenario, Step, What,
    types::{queue, workload},
};

const REORDERING: &str = include_str!("../../../../studies/reordering/reordering.toml");

/// Adds the controls that the examples name, independent of the built-in ones.
fn extensions() -> Extensions {
    let reno = |_: &serde_json::Value| {
        let make: cc::Factory =
            Arc::new(|init| Box::new(cc::Config::Reno(cc::reno::Params::default()).build(init)));
        Ok(make)
    };
    Extensions::default()
        .congestion_control("cubic", reno)
        .congestion_control("cubic-plus", reno)
}

fn scenario(text: &str, sets: &[&str]) -> Result<Scenario, Error> {
    let mut scenario = Scenario::parse(text, "test.toml", &extensions())?;
    for set in sets {
        scenario.set(set)?;
    }
    Ok(scenario)
}

#[track_caller]
fn resolve(text: &str, sets: &[&str]) -> Resolved {
    match scenario(text, sets).and_then(|scenario| scenario.resolve(None)) {
        Ok(resolved) => resolved,
        Err(error) => panic!("{error}"),
    }
}

/// A chain of links between the named pairs, followed by `extra`.
fn network(links: &[[&str; 3]], flow: &str, extra: &str) -> String {
    let mut text = "duration = \"10 s\"\n".to_owned();
    for [name, a, b] in links {
        let _ = write!(
            text,
            "[link.{name}]\nbetween = [\"{a}\", \"{b}\"]\ndelay = \"1 ms\"\n"
        );
    }
    format!("{text}[flow.main]\nstack = \"rfc\"\ncc = \"reno\"\n{flow}\n{extra}\n")
}

fn route_names(resolved: &Resolved, back: bool) -> Vec<String> {
    let flow = &resolved.flows[0];
    let hops = if back {
        &flow.return_route
    } else {
        &flow.route
    };
    hops.iter()
        .map(|step| match *step {
            Step::Link(hop) => (&resolved.links[hop.link].name, hop.direction),
            Step::Gateway { gateway, direction } => (&resolved.gateways[gateway].name, direction),
        })
        .map(|(name, direction)| format!("{name}.{}", direction.name()))
        .collect()
}

/// The resolved scenario of a UDP flow has no keys of TCP and can be read again; over TCP a paced
/// application writes full segments.
#[test]
fn paced_flows_are_written_out() {
    let text = r#"
        duration = "1 s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        [flow.video]
        from = "A"
        to = "B"
        protocol = "udp"
        workload = { kind = "paced", rate = "2 Mbit/s" }
        [flow.live]
        from = "A"
        to = "B"
        stack = "rfc"
        cc = "reno"
        transport = { mss = "1000 bytes" }
        workload = { kind = "paced", rate = "2 Mbit/s" }
    "#;
    let resolved = resolve(text, &[]);
    let video = &resolved.flow_tables["video"];
    assert_eq!(video["workload"]["payload"], "1472 bytes");
    for key in ["stack", "cc", "transport", "fec"] {
        assert!(video.get(key).is_none(), "{video}");
    }
    let live = &resolved.flow_tables["live"];
    assert_eq!(live["workload"]["payload"], "1000 bytes");
    let again = resolve(
        &toml::to_string(&resolved.json.value()).expect("it is TOML"),
        &[],
    );
    assert_eq!(again.json, resolved.json);
    assert_eq!(again.flows, resolved.flows);
}

/// Devices, addresses and matches are written out; tables without them stay without them.
#[test]
fn devices_are_written_out_and_assigned_to_flows() {
    let text = r#"
        duration = "1 s"
        [link.wifi]
        between = ["A", "B"]
        delay = "1 ms"
        [link.lte]
        between = ["A", "B"]
        delay = "1 ms"
        [host.A]
        devices = ["lte", "wifi"]
        addresses = ["192.0.2.1", "2001:db8::1"]
        [flow.there]
        from = "A"
        to = "B"
        route = ["wifi"]
        match = { port = [443, "5000-5010"], prefix = "192.0.2.0/24" }
        [flow.back]
        from = "B"
        to = "A"
        route = ["wifi"]
        return_route = ["lte"]
    "#;
    let live = Extensions::default().live(true);
    let read = |text: &str| {
        let scenario = Scenario::parse(text, "devices.toml", &live);
        scenario
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let resolved = read(text);
    // The first link of the route from A determines the device of a flow.
    let devices: Vec<_> = resolved.flows.iter().map(|flow| flow.devices).collect();
    assert_eq!(devices, [[Some(1), None], [None, Some(0)]]);
    let again = read(&toml::to_string(&resolved.json.value()).expect("it is TOML"));
    assert_eq!(again.json, resolved.json);
    assert_eq!(again.flows, resolved.flows);
    assert_eq!(again.attached, resolved.attached);
    assert!(resolved.flow_tables["back"].get("match").is_none());
    assert!(resolved.json.value()["host"].get("B").is_none());
}

/// The resolved text has the same meaning when read again: in the live engine, an explicit workload
/// is an application of ours, and a flow between interfaces has no keys other than its route.
#[test]
fn resolved_flows_of_programs_read_back() {
    let text = r#"
        duration = "1 s"
        [link.path]
        between = ["A", "B"]
        delay = "1 ms"
        [link.wire]
        between = ["L", "R"]
        delay = "1 ms"
        [host.A]
        exec = ["true"]
        [host.L]
        attach = "interface:e1"
        [host.R]
        attach = "interface:e2"
        [flow.program]
        from = "A"
        to = "B"
        [flow.ours]
        from = "A"
        to = "B"
        workload = "bulk"
        [flow.inline]
        from = "L"
        to = "R"
    "#;
    let live = Extensions::default().live(true);
    let read = |text: &str| {
        let scenario = Scenario::parse(text, "written.toml", &live);
        scenario
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let resolved = read(text);
    let again = read(&toml::to_string(&resolved.json.value()).expect("it is TOML"));
    assert_eq!(again.json, resolved.json);
    for (flow, other) in resolved.flows.iter().zip(&again.flows) {
        for key in ["workload", "cc"] {
            let is_same = other.gives(key) == flow.gives(key);
            assert!(
                is_same || flow.name == "ours" && key == "cc",
                "{}: {key}",
                flow.name
            );
        }
    }
    assert!(again.flow_tables["program"].get("workload").is_none());
    let inline = again.flow_tables["inline"].as_object().expect("a table");
    assert_eq!(inline.len(), 4, "{inline:?}");
}

fn limit(resolved: &Resolved, link: usize, direction: Direction) -> Limit {
    match &resolved.links[link].directions[direction as usize].queue {
        queue::Config::DropTail(params) => params.limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reordering_example() {
    let resolved = resolve(REORDERING, &[]);
    assert_eq!(resolved.nodes, ["S", "R1", "R2", "R"]);
    assert_eq!(resolved.duration, Duration::from_millis(10_200));
    assert_eq!(resolved.flows.len(), 1);
    assert_eq!(resolved.flows[0].name, "main");
    assert_eq!(resolved.flows[0].start, Instant::from_millis(200));
    assert_eq!(resolved.flows[0].cc.name(), "cubic");
    let [forward, reverse] = &resolved.links[1].directions;
    assert_eq!(forward.rate, Rate::new(10_000_000));
    assert_eq!(resolved.links[1].base_rtt[0], Duration::from_millis(70));
    assert_eq!(
        forward
            .reorder
            .as_ref()
            .map(|queue::Reorder::Interval(i)| i.interval.get()),
        Some(40)
    );
    assert_eq!(reverse.reorder, None);
    assert_eq!(limit(&resolved, 1, Direction::Reverse), Limit::Packets(100));
    assert_eq!(limit(&resolved, 0, Direction::Forward), Limit::Unlimited);
    assert_eq!(
        route_names(&resolved, false),
        ["access.forward", "bottleneck.forward", "egress.forward"]
    );
    assert_eq!(
        route_names(&resolved, true),
        ["egress.reverse", "bottleneck.reverse", "access.reverse"]
    );
}

#[test]
fn the_sweep_of_the_reordering_example() {
    let sweep = scenario(REORDERING, &[])
        .and_then(|scenario| scenario.sweep())
        .expect("it is right");
    assert_eq!(sweep.repeat, 1);
    let paths: Vec<_> = sweep
        .grid
        .iter()
        .map(|(path, values)| (path.as_str(), values.len()))
        .collect();
    assert_eq!(
        paths,
        [
            ("flow.main.cc", 3),
            ("link.bottleneck.forward.queue.reorder.interval", 14)
        ]
    );
    assert_eq!(sweep.grid[0].1[2], "cubic-plus");
    assert_eq!(sweep.grid[1].1[13], 100);
}

/// Detects a release read as a number: 6.10 would become 6.1.
#[test]
fn a_kernel_keeps_the_text_of_its_number() {
    let kernel = |text: &str, sets: &[&str]| resolve(text, sets).json.value()["kernel"].clone();
    let flow = "from = \"A\"\nto = \"B\"";
    let text = network(
        &[["a", "A", "B"]],
        flow,
        "[sweep]\nkernel = [6.1, 6.10, \"6.12\"]",
    );
    for release in ["6.10", "6", "\"6.10.3\""] {
        let set = format!("kernel={release}");
        let release = release.trim_matches('"');
        assert_eq!(kernel(&text, &[&set]), release);
        assert_eq!(kernel(&format!("{set}\n{text}"), &[]), release);
    }
    let sweep = scenario(&text, &[]).and_then(|scenario| scenario.sweep());
    let swept: [serde_json::Value; 3] = ["6.1", "6.10", "6.12"].map(Into::into);
    assert_eq!(sweep.expect("it is right").grid[0].1, swept);
}

#[test]
fn the_fairness_example() {
    let text = include_str!("../../../../scenarios/fairness.toml");
    let resolved = Scenario::parse(text, "fairness.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(resolved.flows.len(), 32);
    let queue = serde_json::to_value(&resolved.links[2].directions[0].queue).expect("JSON");
    let red = &queue["preferential-red"];
    assert_eq!(red["limit"], "10000 packets");
    assert_eq!(red["max_threshold"], "9999 packets");
    assert_eq!(red["multiplier"], 10.0);
    assert_eq!(red["select"]["kind"], "dynamic");
    assert_eq!(red["select"]["history_length"], 100);
}

#[test]
fn the_fec_example() {
    let text = include_str!("../../../../scenarios/fec.toml");
    assert_eq!(text, include_str!("../contract/fec.toml"));
    let resolved = resolve(text, &[]);
    let written = &resolved.flow_tables["main"]["fec"];
    assert_eq!(written["kind"], "xor");
    assert_eq!(written["fmax"], 10);
    assert_eq!(written["redundancy"], "cwnd");
    assert_eq!(written["recovered_is_loss"], false);
    let again = resolve(
        &toml::to_string(&resolved.json.value()).expect("it is TOML"),
        &[],
    );
    assert_eq!(again.json, resolved.json);
    assert_eq!(again.flows, resolved.flows);
    let sweep = scenario(text, &[])
        .and_then(|scenario| scenario.sweep())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((sweep.grid.len(), sweep.repeat), (2, 9));
}

/// The other examples of the contract are parsed completely, and refused for the unavailable
/// feature.
#[test]
fn errors_of_future_examples_name_the_unavailable_feature() {
    let cases = [("multipath.toml", include_str!("../contract/multipath.toml"))];
    for (name, text) in cases {
        let scenario = Scenario::parse(text, name, &extensions()).expect(name);
        if let Err(error) = scenario.resolve(None) {
            assert!(
                error
                    .message
                    .ends_with("is part of the format but not available in this version"),
                "{error}"
            );
        }
    }
}

#[test]
fn every_default_is_written_out_and_reads_back() {
    let text = network(
        &[["a", "S", "M"], ["b", "M", "T"]],
        "from = \"S\"\nto = \"T\"\ncount = 3\nstart_spread = \"1 s\"",
        "[link.b.forward]\nrate = \"5 Mbit/s\"\nqueue = { kind = \"drop-tail\", limit = \"1 bdp\" }\nimpair = [{ kind = \"bernoulli-loss\", rate = 0.01 }]\n[[at]]\ntime = \"3 s\"\nset = { \"link.b.forward.rate\" = \"1 Mbit/s\", \"link.a.up\" = false }",
    );
    for text in [REORDERING, &text] {
        let first = resolve(text, &[]);
        let toml = toml::to_string(&first.json.value()).expect("a scenario is TOML");
        let again = resolve(&toml, &[]);
        assert_eq!(again.json, first.json, "{toml}");
        assert_eq!(again.links, first.links);
        assert_eq!(again.flows, first.flows);
        assert_eq!(again.changes, first.changes);
    }
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&resolve(&text, &[]).json.value()["link"]["b"]).expect("JSON")
    );
}

#[test]
fn ties_between_shortest_routes_follow_the_file_order() {
    let ends = "from = \"S\"\nto = \"T\"";
    let square = |links: &[[&str; 3]]| route_names(&resolve(&network(links, ends, ""), &[]), false);
    assert_eq!(
        square(&[
            ["a", "S", "X"],
            ["b", "X", "Y"],
            ["c", "Y", "T"],
            ["d", "Z", "S"],
            ["e", "T", "Z"]
        ]),
        ["d.reverse", "e.reverse"]
    );
    assert_eq!(
        square(&[
            ["a", "S", "X"],
            ["b", "S", "Y"],
            ["c", "Y", "T"],
            ["d", "X", "T"]
        ]),
        ["a.forward", "d.forward"]
    );
    assert_eq!(
        square(&[
            ["b", "S", "Y"],
            ["a", "S", "X"],
            ["d", "X", "T"],
            ["c", "Y", "T"]
        ]),
        ["b.forward", "c.forward"]
    );
}

#[test]
fn the_return_route_is_the_route_reversed_by_default() {
    let links = [
        ["a", "S", "X"],
        ["b", "X", "T"],
        ["c", "S", "Y"],
        ["d", "Y", "T"],
    ];
    let ends = "from = \"S\"\nto = \"T\"\n";
    let resolved = resolve(
        &network(&links, &format!("{ends}route = [\"c\", \"d\"]"), ""),
        &[],
    );
    assert_eq!(route_names(&resolved, false), ["c.forward", "d.forward"]);
    assert_eq!(route_names(&resolved, true), ["d.reverse", "c.reverse"]);
    let resolved = resolve(
        &network(&links, &format!("{ends}return_route = [\"d\", \"c\"]"), ""),
        &[],
    );
    assert_eq!(route_names(&resolved, false), ["a.forward", "b.forward"]);
    assert_eq!(route_names(&resolved, true), ["d.reverse", "c.reverse"]);
}

#[test]
fn a_route_chooses_between_parallel_links() {
    let text = network(
        &[["a", "S", "T"], ["b", "S", "T"]],
        "from = \"S\"\nto = \"T\"\nroute = [\"b\"]",
        "",
    );
    let resolved = resolve(&text, &[]);
    assert_eq!(route_names(&resolved, false), ["b.forward"]);
    assert_eq!(route_names(&resolved, true), ["b.reverse"]);
    let mut both_ways = scenario(&text, &[]).expect("it is right");
    both_ways
        .set("flow.main.return_route=['a']")
        .expect("a path");
    let resolved = both_ways.resolve(None).expect("it is right");
    assert_eq!(route_names(&resolved, true), ["a.reverse"]);
}

const GATEWAY: &str = r#"
[link.fast]
between = ["A", "B"]
rate = "6 Mbit/s"
delay = "5 ms"
[link.slow]
between = ["B", "A"]
rate = "2 Mbit/s"
delay = "25 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
[gateway.tunnel]
between = ["A", "B"]
routes = ["slow", "fast"]
split = "weighted-round-robin"
restore = "none"
overhead = "20 bytes"
"#;

#[test]
fn a_gateway_is_one_hop() {
    let links = [["lan1", "S", "A"], ["lan2", "B", "T"]];
    let text = network(&links, "from = \"S\"\nto = \"T\"", GATEWAY);
    let resolved = resolve(&text, &[]);
    assert_eq!(
        route_names(&resolved, false),
        ["lan1.forward", "tunnel.forward", "lan2.forward"]
    );
    assert_eq!(
        route_names(&resolved, true),
        ["lan2.reverse", "tunnel.reverse", "lan1.reverse"]
    );
    // Each route has the gateway's direction, independent of the link's.
    let ways = |step: &Step| -> Vec<_> {
        step.hops(&resolved.gateways)
            .map(|hop| (&*resolved.links[hop.link].name, hop.direction))
            .collect()
    };
    let (forward, reverse) = (Direction::Forward, Direction::Reverse);
    let [there, back] = [
        &resolved.flows[0].route[1],
        &resolved.flows[0].return_route[1],
    ]
    .map(ways);
    assert_eq!(there, [("slow", reverse), ("fast", forward)]);
    assert_eq!(back, [("slow", forward), ("fast", reverse)]);
    // The longest route counts: 2 × (1 + 25 + 1) ms at 2 Mbit/s.
    let bytes = Limit::Bytes(anabranch_core::units::Bytes::new(13_500));
    assert_eq!(limit(&resolved, 3, forward), bytes);
    // The resolved text reads back as the same.
    let json = resolved.json.value();
    let again = resolve(&toml::to_string(&json).expect("a scenario is TOML"), &[]);
    assert_eq!(again.json, resolved.json);
    assert_eq!(again.gateways, resolved.gateways);
    assert_eq!(json["flow"]["main"]["route"][1], "tunnel");
    assert_eq!(json["gateway"]["tunnel"]["restore"]["kind"], "none");
    // A flow may name the gateway.
    let named = network(
        &links,
        "from = \"S\"\nto = \"T\"\nroute = [\"lan1\", \"tunnel\", \"lan2\"]",
        GATEWAY,
    );
    assert_eq!(resolve(&named, &[]).flows[0].route, resolved.flows[0].route);
}

#[test]
fn copies_start_at_separate_random_times() {
    let text = network(
        &[["a", "S", "T"]],
        "from = \"S\"\nto = \"T\"\ncount = 8\nstart = \"1 s\"\nstart_spread = \"2 s\"\nstop = \"9 s\"",
        "",
    );
    let resolved = resolve(&text, &[]);
    let names: Vec<_> = resolved
        .flows
        .iter()
        .map(|flow| flow.name.as_str())
        .collect();
    assert_eq!(names[..2], ["main/0", "main/1"]);
    assert_eq!(resolved.flows.len(), 8);
    let mut starts: Vec<_> = resolved.flows.iter().map(|flow| flow.start).collect();
    for start in &starts {
        assert!((Instant::from_millis(1_000)..Instant::from_millis(3_000)).contains(start));
    }
    let other = scenario(&text, &[])
        .and_then(|s| s.resolve(Some(2)))
        .expect("it is right");
    assert_ne!(
        other.flows[0].start, starts[0],
        "another seed, another draw"
    );
    assert_eq!(
        (other.seed, other.json.value()["seed"].as_u64()),
        (2, Some(2))
    );
    let more = resolve(
        &text,
        &[
            "flow.main.count=9",
            "flow.another={from='S', to='T', stack='rfc', cc='reno'}",
        ],
    );
    let kept: Vec<_> = more.flows[..8].iter().map(|flow| flow.start).collect();
    assert_eq!(kept, starts, "more flows change nobody's luck");
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), 8);
    assert_eq!(resolved.flows[3].stop, Some(Instant::from_millis(9_000)));
}

#[test]
fn one_bdp_uses_the_largest_rtt_of_crossing_flows() {
    let text = network(
        &[
            ["near", "S", "M"],
            ["far", "F", "M"],
            ["out", "M", "T"],
            ["unused", "T", "U"],
        ],
        "from = \"S\"\nto = \"T\"",
        "[flow.long]\nfrom = \"F\"\nto = \"T\"\nstack = \"rfc\"\ncc = \"reno\"",
    );
    let bdp = "{ kind = \"drop-tail\", limit = \"2 bdp\" }";
    let resolved = resolve(
        &text,
        &[
            "link.far.delay=20 ms",
            "link.out.rate=8 Mbit/s",
            &format!("link.out.queue={bdp}"),
            "link.near.rate=8 Mbit/s",
            &format!("link.near.forward.queue={bdp}"),
            "link.unused.rate=8 Mbit/s",
            &format!("link.unused.queue={bdp}"),
        ],
    );
    let bytes = |link, way| match limit(&resolved, link, way) {
        Limit::Bytes(bytes) => bytes.get(),
        other => panic!("{other}"),
    };
    // 8 Mbit/s are 1,000 bytes per ms; 42 ms round trip from F, 4 ms from S, 2 ms on `unused`.
    assert_eq!(bytes(2, Direction::Forward), 2 * 42_000);
    assert_eq!(bytes(2, Direction::Reverse), 2 * 42_000);
    assert_eq!(bytes(0, Direction::Forward), 2 * 4_000);
    assert_eq!(limit(&resolved, 0, Direction::Reverse), Limit::Unlimited);
    assert_eq!(bytes(3, Direction::Forward), 2 * 2_000);
}

#[test]
fn a_path_into_an_inherited_value_copies_it() {
    let text = network(&[["a", "S", "T"]], "from = \"S\"\nto = \"T\"", "");
    let resolved = resolve(
        &text,
        &[
            "link.a.queue={ kind = 'drop-tail', limit = '7 packets' }",
            "link.a.forward.queue.reorder.kind=interval",
            "link.a.forward.queue.reorder.interval=3",
            "link.a.impair=[{ kind = 'bernoulli-loss', rate = 0.5 }, { kind = 'bernoulli-loss', rate = 0.25 }]",
            "link.a.reverse.impair.1.rate=0",
        ],
    );
    let [forward, reverse] = &resolved.links[0].directions;
    assert_eq!(limit(&resolved, 0, Direction::Forward), Limit::Packets(7));
    assert!(forward.reorder.is_some() && reverse.reorder.is_none());
    assert_eq!(forward.queue, reverse.queue);
    assert_eq!([forward.impair.len(), reverse.impair.len()], [2, 2]);
    assert_eq!(forward.impair[0], reverse.impair[0]);
    assert_ne!(forward.impair[1], reverse.impair[1]);
}

#[test]
fn a_bare_name_becomes_a_table_when_a_parameter_is_set() {
    let text = network(&[["a", "S", "T"]], "from = \"S\"\nto = \"T\"", "");
    let resolved = resolve(
        &text,
        &["link.a.queue=drop-tail", "link.a.queue.limit=5 packets"],
    );
    assert_eq!(limit(&resolved, 0, Direction::Forward), Limit::Packets(5));
    let resolved = resolve(
        &text,
        &[
            "flow.main.workload.kind=file",
            "flow.main.workload.size=2 MB",
        ],
    );
    assert!(
        matches!(&resolved.flows[0].workload, workload::Config::File(file) if file.size.get() == 2_000_000)
    );
}

/// A link without `queue` has a drop-tail queue, and a path may set its limit.
#[test]
fn the_limit_of_the_default_queue_can_be_set() {
    let links = [["a", "S", "T"]];
    let text = network(&links, "from = \"S\"\nto = \"T\"", "");
    for (set, forward) in [
        ("link.a.queue.limit=5 packets", Limit::Packets(5)),
        ("link.a.forward.queue.limit=5 packets", Limit::Packets(5)),
        ("link.a.reverse.queue.limit=5 packets", Limit::Unlimited),
    ] {
        let resolved = resolve(&text, &[set]);
        assert_eq!(limit(&resolved, 0, Direction::Forward), forward, "{set}");
        let (path, value) = set.split_once('=').expect("it sets");
        let change = format!("[[at]]\ntime = \"5 s\"\nset = {{ \"{path}\" = \"{value}\" }}\n");
        let text = network(&links, "from = \"S\"\nto = \"T\"", &change);
        let changes = resolve(&text, &[]).changes;
        assert!(!changes.is_empty(), "{set}");
        for change in &changes {
            let What::Queue(queue) = &change.what else {
                panic!("{set}: {:?}", change.what);
            };
            assert_eq!(queue.limit(), Some(Limit::Packets(5)), "{set}");
        }
    }
}

/// The files of a link, a trace and a list, are read once per direction, regardless of the number
/// of changes; a change that a trace forbids at the start is also refused later.
#[test]
fn changes_read_no_files_again() {
    let with = |set: &str| {
        network(
            &[["a", "S", "T"]],
            "from = \"S\"\nto = \"T\"",
            &format!(
                "[link.a.forward]\nservice = {{ kind = \"trace\", file = \"slots\" }}\n\
                 impair = [{{ kind = \"loss-list\", file = \"lost\" }}]\n\
                 [link.a.reverse]\nrate = \"1 Mbit/s\"\n\
                 [[at]]\ntime = \"2 s\"\nset = {{ \"link.a.up\" = false, \"link.a.delay\" = \"2 ms\" }}\n\
                 [[at]]\ntime = \"3 s\"\nset = {{ {set} }}\n"
            ),
        )
    };
    let read = Arc::new(Mutex::new(Vec::new()));
    let reads = Arc::clone(&read);
    let extensions = extensions().files(move |path: &Path, _| {
        reads
            .lock()
            .expect("no panic")
            .push(path.display().to_string());
        Ok(b"7\n9\n".to_vec())
    });
    let resolved = |set: &str| {
        Scenario::parse(&with(set), "test.toml", &extensions)
            .and_then(|scenario| scenario.resolve(None))
    };
    let done = resolved("\"link.a.up\" = true").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.changes.len(), 6);
    assert_eq!(*read.lock().expect("no panic"), ["slots", "lost"]);
    let error =
        resolved("\"link.a.forward.rate\" = \"1 Mbit/s\"").expect_err("a rate beside a trace");
    assert!(error.to_string().contains("beside a trace"), "{error}");
}

#[test]
fn changes_are_sorted_by_time_and_affect_only_named_keys() {
    let text = network(
        &[["a", "S", "T"]],
        "from = \"S\"\nto = \"T\"",
        "[link.a.reverse]\nrate = \"1 Mbit/s\"\n\
         [[at]]\ntime = \"5 s\"\nset = { \"link.a.up\" = true }\n\
         [[at]]\ntime = \"2 s\"\nset = { \"link.a.rate\" = \"3 Mbit/s\", \"link.a.up\" = false }\n\
         [[at]]\ntime = \"3 s\"\nset = { \"link.a.forward.queue\" = { kind = \"drop-tail\", limit = \"1 bdp\" } }\n\
         [[at]]\ntime = \"4 s\"\nset = { \"link.a.delay\" = \"9 ms\", \"link.a.forward.rate\" = \"6 Mbit/s\" }\n",
    );
    let resolved = resolve(&text, &[]);
    let seen: Vec<_> = resolved
        .changes
        .iter()
        .map(|change| {
            let what = match &change.what {
                What::Up(up) => format!("up {up}"),
                What::Rate(rate) => format!("rate {}", rate.map_or(0, Rate::bits_per_s)),
                What::Delay(delay) => format!("delay {delay}"),
                What::Queue(queue) => format!("{queue:?}"),
                What::Impair(place, config) => format!("{place} {config:?}"),
            };
            format!(
                "{} {} {what}",
                change.time.as_secs_f64(),
                change.direction.name()
            )
        })
        .collect();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn values_on_the_command_line_are_toml_or_text() {
    let text = network(&[["a", "S", "T"]], "from = \"S\"\nto = \"T\"", "");
    let title = |set: &str| resolve(&text, &[set]).title;
    assert_eq!(title("title=plain words"), "plain words");
    assert_eq!(title("title='in quotation marks'"), "in quotation marks");
    assert_eq!(title(" \"title\" = \"a = b\""), "a = b");
    assert_eq!(title("title=2024-01-01"), "2024-01-01");
    assert_eq!(title("title="), "");
    assert_eq!(resolve(&text, &["seed=7"]).seed, 7);
    assert_eq!(
        resolve(&text, &["link.\"b\".between=['T', 'U']"]).links[1].name,
        "b"
    );
}
