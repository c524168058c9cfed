//! Invalid values.

use super::*;

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
            (
                "a negative number of copies",
                with("cc = ", "count = -1\ncc = "),
            ),
            (
                "a negative number of packets",
                with("cc = ", "fec = { kind = \"xor\", fmax = -1 }\ncc = "),
            ),
            (
                "a word where the stack's may stand",
                with(
                    "cc = \"reno\"",
                    "cc = { kind = \"cubic\", reno_friendly = \"stak\" }",
                ),
            ),
            (
                "a limit where the stack's may stand",
                with(
                    "cc = \"reno\"",
                    "cc = { kind = \"cubic\", slow_start_limit = \"x\" }",
                ),
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
#[expect(clippy::too_many_lines, reason = "one table")]
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
            (
                "an impairment that says nothing",
                with("queue = ", "impair = [\"jitter\"]\nqueue = "),
            ),
            (
                "more losses than a probe may see",
                with("\"reno\"", "{ kind = \"bbr3\", loss_threshold = 0.9 }"),
            ),
            (
                "a tick that is none",
                with("cc = ", "transport = { clock_tick = \"11 s\" }\ncc = "),
            ),
            (
                "unknown stack",
                with("stack = \"rfc\"", "stack = \"ns3-2019\""),
            ),
            ("not yet: IPv6", with("cc = ", "family = 6\ncc = ")),
            ("live only", plus("[host.S]\nattach = \"namespace\"")),
            (
                "live only: which packets of programs",
                with("cc = ", "match = { port = 443 }\ncc = "),
            ),
            (
                "a device that is no link",
                plus("[host.S]\ndevices = [\"x\"]"),
            ),
            (
                "an address of many hosts",
                plus("[host.S]\naddresses = [\"224.0.0.1\"]"),
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
                "a switch of an earlier version",
                with("cc = ", "transport = { accecn_option = true }\ncc = "),
            ),
            (
                "challenges too far apart",
                with(
                    "cc = ",
                    "transport = { challenge_ack_interval = \"2 min\" }\ncc = ",
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
                "a pace that its recovery cannot have",
                transport(
                    "\"reno\"",
                    "recovery = \"rack\", recovery_pace = \"counted-pipe\"",
                ),
            ),
            (
                "two paces",
                transport("\"reno\"", "prr = true, recovery_pace = \"pipe\""),
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
                "quick again, but never quick",
                transport(
                    "\"reno\"",
                    "delayed_ack = { segments = 2, timeout = \"40 ms\", quick_again = true }",
                ),
            ),
            (
                "ticks of no length",
                transport("\"reno\"", "timers = \"bsd\", clock_tick = \"0 s\""),
            ),
            (
                "no growth at all",
                transport("\"reno\"", "slow_start_limit = \"0 packets\""),
            ),
            (
                "an unknown restart",
                transport("\"reno\"", "idle_restart = \"rfc7616\""),
            ),
            (
                "windows not in use, but never looked at",
                transport(
                    "\"reno\"",
                    "idle_restart = \"rfc7661\", cwnd_validation = false",
                ),
            ),
        ],
    );
}

#[test]
fn switches_consistent_with_the_control_are_accepted() {
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
    // A stack default that a control does not share is not a contradiction, and the resolved
    // scenario can be read again.
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
        let again = toml::to_string(&resolved.json.value()).expect("it is TOML, too");
        check(&again, &[]).unwrap_or_else(|error| panic!("{again}: {error}"));
    }
    // DCTCP selects the echo that it requires.
    let text = GOOD.replacen("\"reno\"", "\"dctcp\"", 1);
    let resolved = Scenario::parse(&text, "test.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .expect("it is right");
    let settings = resolved.flows[0].stack.ecn;
    assert_eq!(settings, anabranch_tcp::EcnMode::Dctcp);
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
fn udp() {
    let flow = |more: &str| {
        with(
            "cc = \"reno\"\nstack = \"rfc\"\n",
            &format!("protocol = \"udp\"\n{more}\n"),
        )
    };
    let paced = |more: &str| {
        flow(&format!(
            "workload = {{ kind = \"paced\", rate = \"1 Mbit/s\" }}\n{more}"
        ))
    };
    snapshot(
        "udp",
        &[
            ("no workload", flow("")),
            ("bulk", flow("workload = \"bulk\"")),
            (
                "a file",
                flow("workload = { kind = \"file\", size = \"1 MB\" }"),
            ),
            ("requests", flow("workload = \"request-response\"")),
            ("a stack", paced("stack = \"rfc\"")),
            ("a congestion control", paced("cc = \"cubic\"")),
            ("a switch of TCP", paced("transport = { sack = true }")),
            ("redundancy", paced("fec = \"off\"")),
            ("IPv6", paced("family = 6")),
            (
                "a protocol with a typo",
                with("cc = ", "protocol = \"upd\"\ncc = "),
            ),
            (
                "an empty datagram",
                flow("workload = { kind = \"paced\", rate = \"1 Mbit/s\", payload = \"0 bytes\" }"),
            ),
            (
                "longer than IP allows",
                flow(
                    "workload = { kind = \"paced\", rate = \"1 Mbit/s\", payload = \"65508 bytes\" }",
                ),
            ),
            (
                "no rate",
                flow("workload = { kind = \"paced\", payload = \"1 kB\" }"),
            ),
            ("no parameter at all", flow("workload = \"paced\"")),
            (
                "faster than a run can go",
                flow("workload = { kind = \"paced\", rate = \"9 Gbit/s\", payload = \"1 byte\" }"),
            ),
        ],
    );
}

/// Workloads of TCP alone, and workloads of both protocols.
#[test]
fn applications() {
    let workload = |text: &str| with("cc = ", &format!("workload = {text}\ncc = "));
    snapshot(
        "applications",
        &[
            (
                "a write of nothing",
                workload("{ kind = \"paced\", rate = \"1 Mbit/s\", payload = \"0 bytes\" }"),
            ),
            (
                "a write of too much",
                workload("{ kind = \"paced\", rate = \"1 Mbit/s\", payload = \"5 GB\" }"),
            ),
            (
                "more files than have the room",
                workload(
                    "{ kind = \"poisson\", rate = \"1000 Tbit/s\", sizes = { kind = \"fixed\", size = \"1 bytes\" } }",
                ),
            ),
            (
                "an empty request",
                workload("{ kind = \"request-response\", request = \"0 bytes\" }"),
            ),
            (
                "an empty response",
                workload("{ kind = \"request-response\", response = \"0 bytes\" }"),
            ),
            (
                "an unknown parameter",
                workload("{ kind = \"request-response\", thinks = \"1 s\" }"),
            ),
        ],
    );
}

#[test]
fn hosts() {
    snapshot(
        "hosts",
        &[
            (
                "processing time of a node that sends nothing",
                plus("[host.R1]\nprocessing_jitter = \"1 ms\""),
            ),
            (
                "processing time without a unit",
                plus("[host.S]\nprocessing_jitter = \"1\""),
            ),
            (
                "reads where nothing is read",
                plus("[host.S]\nread_delays = [\"10 us\"]"),
            ),
            (
                "reads after a pause where nothing is read",
                plus("[host.S]\nidle_read_delays = [\"10 us\"]"),
            ),
            (
                "reads without a unit",
                plus("[host.D]\nread_delays = [\"10 us\", \"5\"]"),
            ),
            (
                "first writes where nothing is sent",
                plus("[host.R]\nfirst_write_delays = [\"10 us\"]"),
            ),
        ],
    );
}

#[test]
fn names_of_other_tools_lead_to_a_suggestion() {
    for (part, instead, meant) in [
        ("\"drop-tail\"", "\"pfifo\"", "drop-tail"),
        ("\"drop-tail\"", "\"taildrop\"", "drop-tail"),
        ("\"drop-tail\"", "\"sfq\"", "drr"),
        ("\"reno\"", "\"westwood\"", "westwood-plus"),
        ("\"reno\"", "\"bbrv3\"", "bbr3"),
        ("delay = \"5 ms\"", "latency = \"5 ms\"", "delay"),
        ("rate = \"10 Mbit/s\"", "bandwidth = \"10 Mbit/s\"", "rate"),
    ] {
        let told = with(part, instead);
        assert!(told.contains(&format!("did you mean `{meant}`?")), "{told}");
    }
}
