//! What people see when a scenario is wrong.

use std::{fmt::Write, sync::Arc};

use anabranch_elements::cc;
use anabranch_model::scenario::{Error, Extensions, Scenario};

/// A small scenario that is right; tests replace parts of it.
const GOOD: &str = r#"duration = "10 s"

[link.access]
between = ["S", "R1"]
rate = "100 Mbit/s"
delay = "15 ms"

[link.bottleneck]
between = ["R1", "R"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "100 packets" }

[flow.main]
from = "S"
to = "R"
cc = "reno"
stack = "rfc"
"#;

fn check(text: &str, sets: &[&str]) -> Result<(), Error> {
    let mut scenario = Scenario::parse(text, "test.toml", &Extensions::default())?;
    for set in sets {
        scenario.set(set)?;
    }
    scenario.resolve(None)?;
    scenario.sweep()?;
    Ok(())
}

fn error(text: &str, sets: &[&str]) -> String {
    check(text, sets)
        .expect_err("this must be refused")
        .to_string()
}

/// The error of the good scenario with one part replaced.
fn with(part: &str, instead: &str) -> String {
    assert!(GOOD.contains(part), "{part}");
    error(&GOOD.replacen(part, instead, 1), &[])
}

/// The error of the good scenario with something added.
fn plus(text: &str) -> String {
    error(&format!("{GOOD}{text}"), &[])
}

/// Compares with what was agreed on; the cases' code is left out of the file.
fn snapshot(name: &str, cases: &[(&str, String)]) {
    let mut text = String::new();
    for (case, error) in cases {
        let _ = write!(text, "### {case}\n{error}\n\n");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(check(GOOD, &[]), Ok(()));
}

#[test]
fn keys_and_values() {
    snapshot(
        "keys_and_values",
        &[
            ("unknown key", with("delay = \"15", "delya = \"15")),
            (
                "unknown key at the top",
                plus("[gatway.x]\nbetween = [\"S\", \"R\"]"),
            ),
            ("unknown key, nothing near", with("cc = ", "xyzzy = ")),
            ("wrong unit", with("\"100 Mbit/s\"", "\"15 ms\"")),
            (
                "the usual abbreviation",
                with("\"100 Mbit/s\"", "\"100 Mbps\""),
            ),
            ("no unit", with("\"15 ms\"", "15")),
            ("negative rate", with("\"10 Mbit/s\"", "\"-10 Mbit/s\"")),
            ("rate of nothing", with("\"10 Mbit/s\"", "\"0 bit/s\"")),
            ("negative limit", with("\"100 packets\"", "\"-1 packets\"")),
            ("wrong type", with("[\"S\", \"R1\"]", "\"S to R1\"")),
            (
                "three ends",
                with("[\"S\", \"R1\"]", "[\"S\", \"R1\", \"R2\"]"),
            ),
            ("one end", with("[\"S\", \"R1\"]", "[\"S\"]")),
            (
                "a number too large",
                with("cc = ", "count = 5000000000\ncc = "),
            ),
            (
                "far too large",
                with("cc = ", "count = 50000000000000000000\ncc = "),
            ),
            ("too many flows", with("cc = ", "count = 4000000000\ncc = ")),
            ("no copies", with("cc = ", "count = 0\ncc = ")),
            ("IP version", with("cc = ", "family = 5\ncc = ")),
            (
                "probability",
                with(
                    "queue = ",
                    "impair = [{ kind = \"bernoulli-loss\", rate = 1.5 }]\nqueue = ",
                ),
            ),
            (
                "an interval too large",
                with(
                    "limit = ",
                    "reorder = { kind = \"interval\", interval = 5000000000 }, limit = ",
                ),
            ),
            ("too long", with("\"10 s\"", "\"1e30 s\"")),
            (
                "missing parameter",
                with("limit = ", "reorder = \"interval\", limit = "),
            ),
            ("missing key", with("to = \"R\"\n", "")),
            ("no duration", with("duration = \"10 s\"", "")),
            ("a date", with("\"10 s\"", "2024-01-01")),
            ("infinity", with("\"10 s\"", "inf")),
            (
                "duplicate key",
                with("rate = \"10 ", "delay = \"1 ms\"\nrate = \"10 "),
            ),
            ("duplicate table", plus("[link.access]\nup = true")),
            ("not TOML", with("\"100 packets\"", "100 packets")),
            ("no value", with("duration = \"10 s\"", "duration =")),
            ("text that does not end", with("\"10 s\"", "\"10 s")),
        ],
    );
}

#[test]
fn kinds() {
    snapshot(
        "kinds",
        &[
            ("unknown control", with("\"reno\"", "\"rneo\"")),
            (
                "unknown kind of queue",
                with("kind = \"drop-tail\"", "kind = \"droptail\""),
            ),
            ("unknown parameter", with("limit = ", "limti = ")),
            ("no kind", with("kind = \"drop-tail\", ", "")),
            (
                "a kind that is no name",
                with("kind = \"drop-tail\"", "kind = 4"),
            ),
            ("not a kind at all", with("cc = \"reno\"", "cc = 7")),
            (
                "parameters where there are none",
                with("cc = \"reno\"", "cc = { kind = \"reno\", c = 0.4 }"),
            ),
            (
                "reordering of no kind",
                with("limit = ", "reorder = { interval = 4 }, limit = "),
            ),
            (
                "an interval of nothing",
                with(
                    "limit = ",
                    "reorder = { kind = \"interval\", interval = 0 }, limit = ",
                ),
            ),
            ("not yet: queue", with("\"drop-tail\"", "\"red\"")),
            ("not yet: control", with("\"reno\"", "{ kind = \"bbr3\" }")),
            (
                "not yet: stack",
                with("stack = \"rfc\"", "stack = \"windows-7\""),
            ),
            (
                "unknown stack",
                with("stack = \"rfc\"", "stack = \"ns3-2019\""),
            ),
            (
                "not yet: FEC",
                with("cc = ", "fec = { kind = \"xor\", fmax = 10 }\ncc = "),
            ),
            ("not yet: UDP", with("cc = ", "protocol = \"udp\"\ncc = ")),
            ("not yet: IPv6", with("cc = ", "family = 6\ncc = ")),
            (
                "not yet: gateways",
                plus("[gateway.g]\nbetween = [\"S\", \"R1\"]\nroutes = [\"access\"]"),
            ),
            (
                "not yet: groups",
                plus("[group.g]\nbetween = [\"S\", \"R1\"]\nmembers = 8"),
            ),
            ("live only", plus("[host.S]\nattach = \"namespace\"")),
            (
                "processing time of a node that sends nothing",
                plus("[host.R1]\nprocessing_jitter = \"1 ms\""),
            ),
            (
                "processing time without a unit",
                plus("[host.S]\nprocessing_jitter = \"1\""),
            ),
            (
                "a switch out of range",
                with("cc = ", "transport = { mss = \"10 bytes\" }\ncc = "),
            ),
            (
                "switches that contradict each other",
                with(
                    "cc = ",
                    "transport = { sack = false, recovery = \"rfc6675\" }\ncc = ",
                ),
            ),
            (
                "loss detection by time without SACK",
                with("cc = ", "transport = { sack = false, rack = true }\ncc = "),
            ),
            (
                "probes without loss detection by time",
                with(
                    "cc = ",
                    "transport = { recovery = \"rfc6675\", tlp = true }\ncc = ",
                ),
            ),
            (
                "two ways to say how losses are found",
                with(
                    "cc = ",
                    "transport = { recovery = \"rfc6675\", rack = true }\ncc = ",
                ),
            ),
            (
                "an unknown switch",
                with("cc = ", "transport = { rak = true }\ncc = "),
            ),
            (
                "delayed acknowledgments",
                with("cc = ", "transport = { delayed_ack = \"on\" }\ncc = "),
            ),
            (
                "a parameter out of range",
                with("cc = \"reno\"", "cc = { kind = \"cubic\", beta = 2 }"),
            ),
        ],
    );
}

#[test]
fn rates_and_windows() {
    let transport = |cc: &str, switches: &str| {
        with(
            "cc = \"reno\"",
            &format!("cc = {cc}\ntransport = {{ {switches} }}"),
        )
    };
    snapshot(
        "rates_and_windows",
        &[
            (
                "no pacing where the control paces itself",
                transport("\"bbr\"", "pacing = false"),
            ),
            (
                "a slow start to end early, where there is none",
                transport("\"bbr\"", "hystart = \"linux\""),
            ),
            (
                "CUBIC's HyStart in another control",
                transport("\"reno\"", "hystart = \"linux\""),
            ),
            (
                "HyStart said twice",
                transport(
                    "{ kind = \"cubic\", hystart = \"off\" }",
                    "hystart = \"rfc9406\"",
                ),
            ),
            (
                "DCTCP without marks",
                transport("\"dctcp\"", "ecn = \"off\""),
            ),
            (
                "DCTCP with one bit per round trip",
                transport("\"dctcp\"", "ecn = \"rfc3168\""),
            ),
            (
                "an unknown HyStart",
                transport("\"cubic\"", "hystart = \"linus\""),
            ),
            (
                "a rate of nothing",
                transport("\"reno\"", "pacing = true, pacing_ca_ratio = 0"),
            ),
            (
                "a burst of seconds",
                transport("\"reno\"", "pacing_burst = \"2 s\""),
            ),
            (
                "a timeout that ends before it begins",
                transport(
                    "\"reno\"",
                    "delayed_ack = { segments = 2, timeout = \"40 ms\", max_timeout = \"20 ms\" }",
                ),
            ),
            (
                "too quick",
                transport(
                    "\"reno\"",
                    "delayed_ack = { segments = 2, timeout = \"40 ms\", quick_segments = 5000 }",
                ),
            ),
            (
                "no growth at all",
                transport("\"reno\"", "slow_start_limit = \"0 packets\""),
            ),
            (
                "an unknown restart",
                transport("\"reno\"", "idle_restart = \"rfc7661\""),
            ),
        ],
    );
}

#[test]
fn what_agrees_with_the_control_is_taken() {
    for (cc, switches) in [
        ("\"bbr\"", "pacing = true"),
        ("\"bbr\"", "hystart = \"off\""),
        ("\"dctcp\"", "ecn = \"accecn\""),
        ("\"dctcp\"", "ecn = \"dctcp\", hystart = \"rfc9406\""),
        (
            "{ kind = \"cubic\", hystart = \"linux\" }",
            "hystart = \"linux\", pacing = true",
        ),
        (
            "{ kind = \"cubic\", slow_start_limit = \"2 packets\" }",
            "slow_start_limit = \"unlimited\"",
        ),
    ] {
        let text = GOOD.replacen(
            "cc = \"reno\"",
            &format!("cc = {cc}\ntransport = {{ {switches} }}"),
            1,
        );
        check(&text, &[]).unwrap_or_else(|error| panic!("{cc}, {switches}: {error}"));
    }
    // A stack's habit that a control does not share is no contradiction, and what was resolved can
    // be read again.
    for cc in [
        "\"bbr\"",
        "\"reno\"",
        "{ kind = \"cubic\", hystart = \"off\" }",
    ] {
        let text = GOOD
            .replacen("\"reno\"", cc, 1)
            .replacen("\"rfc\"", "\"linux\"", 1);
        let resolved = Scenario::parse(&text, "test.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .expect("it is right");
        assert_eq!(resolved.flows[0].stack.hystart, cc::hystart::Kind::Off);
        let again = toml::to_string(&resolved.json).expect("it is TOML, too");
        check(&again, &[]).unwrap_or_else(|error| panic!("{again}: {error}"));
    }
    // DCTCP brings the echo that it needs.
    let text = GOOD.replacen("\"reno\"", "\"dctcp\"", 1);
    let resolved = Scenario::parse(&text, "test.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .expect("it is right");
    let settings = resolved.flows[0].stack.ecn;
    assert_eq!(settings, anabranch_elements::tcp::EcnMode::Dctcp);
}

#[test]
fn workloads() {
    snapshot(
        "workloads",
        &[
            (
                "files of no bytes",
                with(
                    "cc = ",
                    "workload = { kind = \"poisson\", rate = \"1 Mbit/s\", sizes = { kind = \"fixed\", size = \"0 bytes\" } }\ncc = ",
                ),
            ),
            (
                "a file of no bytes",
                with(
                    "cc = ",
                    "workload = { kind = \"file\", size = \"0 bytes\" }\ncc = ",
                ),
            ),
            (
                "files of no bytes on average",
                with(
                    "cc = ",
                    "workload = { kind = \"poisson\", rate = \"1 Mbit/s\", sizes = { kind = \"log-normal\", median = \"0 kB\", sigma = 1 } }\ncc = ",
                ),
            ),
            (
                "too wide a spread",
                with(
                    "cc = ",
                    "workload = { kind = \"poisson\", rate = \"1 Mbit/s\", sizes = { kind = \"log-normal\", median = \"9 kB\", sigma = 4.1 } }\ncc = ",
                ),
            ),
            (
                "heavy tail without a mean",
                with(
                    "cc = ",
                    "workload = { kind = \"poisson\", rate = \"1 Mbit/s\", sizes = { kind = \"pareto\", mean = \"20 kB\", shape = 1 } }\ncc = ",
                ),
            ),
        ],
    );
}

#[test]
fn the_network() {
    let second = "[link.spare]\nbetween = [\"R\", \"R1\"]\n";
    snapshot(
        "the_network",
        &[
            ("unknown node", with("to = \"R\"", "to = \"R9\"")),
            (
                "unknown node, nothing near",
                with("from = \"S\"", "from = \"Amsterdam\""),
            ),
            ("unknown host", plus("[host.R22]")),
            ("unreachable", with("[\"R1\", \"R\"]", "[\"R2\", \"R\"]")),
            ("to itself", with("to = \"R\"", "to = \"S\"")),
            (
                "link to itself",
                with("[\"R1\", \"R\"]", "[\"R1\", \"R1\"]"),
            ),
            ("two unexplained links", plus(second)),
            (
                "two unexplained links that nobody uses",
                plus("[link.a]\nbetween = [\"X\", \"Y\"]\n[link.b]\nbetween = [\"Y\", \"X\"]\n"),
            ),
            ("route to somewhere else", plus("route = [\"access\"]")),
            ("route with a hole", plus("route = [\"bottleneck\"]")),
            (
                "route over nothing",
                plus("route = [\"access\", \"botleneck\"]"),
            ),
            (
                "contradicting return route",
                plus("return_route = [\"access\", \"bottleneck\"]"),
            ),
            (
                "bdp of an unlimited rate",
                with(
                    "rate = \"100 Mbit/s\"",
                    "queue = { kind = \"drop-tail\", limit = \"1 bdp\" }",
                ),
            ),
            ("a name with a dot", with("[link.access]", "[link.\"a.b\"]")),
            (
                "no flow",
                GOOD.split("[flow")
                    .next()
                    .map(|text| error(text, &[]))
                    .unwrap_or_default(),
            ),
            (
                "a round trip in no time",
                error(
                    "duration = \"1 s\"\n[link.a]\nbetween = [\"S\", \"R\"]\n[flow.main]\nfrom = \"S\"\nto = \"R\"\nstack = \"rfc\"",
                    &[],
                ),
            ),
            (
                "warm-up past the end",
                with("\"10 s\"", "\"10 s\"\nwarmup = \"10 s\""),
            ),
            ("starts after the end", plus("start = \"11 s\"")),
            (
                "stops before it starts",
                plus("start = \"2 s\"\nstop = \"1 s\""),
            ),
        ],
    );
}

#[test]
fn changes_in_mid_run() {
    let at =
        |time: &str, set: &str| plus(&format!("[[at]]\ntime = \"{time}\"\nset = {{ {set} }}\n"));
    snapshot(
        "changes_in_mid_run",
        &[
            ("past the end", at("20 s", "\"link.access.up\" = false")),
            ("unknown link", at("2 s", "\"link.acess.up\" = false")),
            ("unknown key", at("2 s", "\"link.access.pu\" = false")),
            (
                "wrong unit",
                at("2 s", "\"link.access.delay\" = \"10 Mbit/s\""),
            ),
            ("a flow", at("2 s", "\"flow.main.cc\" = \"reno\"")),
            ("an impairment", at("2 s", "\"link.access.impair\" = []")),
            ("no quotation marks", at("2 s", "link.access.up = false")),
            (
                "another kind of queue",
                at("2 s", "\"link.access.queue\" = \"codel\""),
            ),
            (
                "reordering",
                at(
                    "2 s",
                    "\"link.access.queue.reorder\" = { kind = \"interval\", interval = 4 }",
                ),
            ),
            (
                "reordering inside the queue",
                at("2 s", "\"link.bottleneck.queue.reorder.interval\" = 4"),
            ),
            (
                "a misspelt parameter",
                at(
                    "2 s",
                    "\"link.bottleneck.forward.queue.limti\" = \"9 packets\"",
                ),
            ),
            (
                "the end of all delays and rates",
                at(
                    "2 s",
                    "\"link.access.rate\" = \"unlimited\", \"link.access.delay\" = \"0 s\", \"link.bottleneck.rate\" = \"unlimited\", \"link.bottleneck.delay\" = \"0 s\"",
                ),
            ),
            ("no path", at("2 s", "\"link..up\" = false")),
        ],
    );
}

#[test]
fn values_set_over_the_file() {
    let set = |text: &str| error(GOOD, &[text]);
    snapshot(
        "values_set_over_the_file",
        &[
            ("no equals sign", set("flow.main.cc")),
            ("no path", set("=3")),
            ("two dots", set("flow..cc=reno")),
            ("a space", set("flow main.cc=reno")),
            ("broken TOML", set("flow.main.cc={ kind = \"reno\"")),
            ("unknown name", set("flow.main.cc=rneo")),
            ("unknown key", set("link.access.dealy=10 ms")),
            ("wrong unit", set("link.access.delay='10 Mbit/s'")),
            ("unknown flow", set("flow.mian.cc=reno")),
            ("unknown link", set("link.acces.delay='1 ms'")),
            (
                "through a number",
                error(
                    GOOD,
                    &["link.access.impair=[1]", "link.access.impair.0.rate=3"],
                ),
            ),
            (
                "past the end of a list",
                error(
                    GOOD,
                    &["link.access.impair=[]", "link.access.impair.0.rate=3"],
                ),
            ),
            (
                "an impairment where there is none",
                set("link.access.forward.impair.0.rate=0.1"),
            ),
            (
                "an impairment of an unknown link",
                set("link.acces.forward.impair.0.rate=0.1"),
            ),
            (
                "no index",
                error(
                    GOOD,
                    &["link.access.impair=[]", "link.access.impair.first.rate=3"],
                ),
            ),
            ("a parameter beside a text", set("flow.main.from.x=3")),
        ],
    );
}

#[test]
fn sweeps() {
    let sweep = |line: &str| plus(&format!("[sweep]\n{line}\n"));
    snapshot(
        "sweeps",
        &[
            ("unknown flow", sweep("\"flow.mian.cc\" = [\"reno\"]")),
            ("unknown key", sweep("\"flow.main.c\" = [\"reno\"]")),
            (
                "a value that does not fit",
                sweep("\"flow.main.cc\" = [\"reno\", \"rneo\"]"),
            ),
            (
                "a kind that is missing",
                sweep("\"link.access.forward.queue.reorder.interval\" = [4]"),
            ),
            ("no list", sweep("\"flow.main.cc\" = \"reno\"")),
            ("an empty list", sweep("\"flow.main.cc\" = []")),
            ("no quotation marks", sweep("flow.main.cc = [\"reno\"]")),
            ("repeat", sweep("repeat = 0")),
            ("top level", sweep("duration = [\"5 s\", \"5 m\"]")),
            ("unknown at the top", sweep("duratoin = [\"5 s\"]")),
        ],
    );
}

#[test]
fn files_that_are_no_scenarios() {
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[7]
    })
    .take(300)
    .collect();
    let bytes = |bytes: &[u8]| {
        Scenario::parse_bytes(bytes, "test.toml", &Extensions::default())
            .expect_err("this must be refused")
            .to_string()
    };
    snapshot(
        "files_that_are_no_scenarios",
        &[
            ("empty", error("", &[])),
            ("only a comment", error("# nothing\n", &[])),
            ("blank", error("\n\n   \n", &[])),
            ("random bytes", bytes(&noise)),
            (
                "control characters",
                error("title = \"\u{0}\u{1}\u{1b}[31m\"", &[]),
            ),
            (
                "a long line",
                error(&format!("x = [{}\"\", oops]", "\"é\", ".repeat(1000)), &[]),
            ),
            (
                "deep nesting",
                error(&format!("x = {}", "[".repeat(100_000)), &[]),
            ),
            (
                "a deep key",
                error(&format!("x{} = 1", ".x".repeat(100_000)), &[]),
            ),
        ],
    );
}

#[test]
fn what_an_extension_finds_wrong_has_a_place() {
    let extensions = Extensions::default().congestion_control("my-reno", |params| {
        if params.get("gain").is_none() {
            return Err("`gain` is missing; expected a number above 0".to_owned());
        }
        let make: cc::Factory =
            Arc::new(|init| Box::new(cc::Config::Reno(cc::reno::Params::default()).build(init)));
        Ok(make)
    });
    let resolve = |cc: &str| {
        let text = GOOD.replace("cc = \"reno\"", &format!("cc = {cc}"));
        Scenario::parse(&text, "test.toml", &extensions)
            .and_then(|scenario| scenario.resolve(None))
            .map(|resolved| resolved.flows[0].cc.name().to_owned())
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        resolve("{ kind = \"my-reno\", gain = 2 }").as_deref(),
        Ok("my-reno")
    );
    let refused = |cc| resolve(cc).expect_err("this must be refused");
    snapshot(
        "what_an_extension_finds_wrong_has_a_place",
        &[
            ("its own complaint", refused("\"my-reno\"")),
            ("the nearest name", refused("\"my-rno\"")),
        ],
    );
}
