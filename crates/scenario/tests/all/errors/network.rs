//! Invalid networks, and invalid changes of them.

use super::*;

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
            (
                "a kernel by its file",
                with("\"10 s\"", "\"10 s\"\nkernel = \"/boot/linux\""),
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

/// A valid gateway; tests replace parts of it.
const GATEWAY: &str = r#"
[link.spare]
between = ["R", "R1"]
rate = "5 Mbit/s"

[gateway.tunnel]
between = ["R1", "R"]
routes = ["bottleneck", "spare"]
split = { kind = "weighted-round-robin" }
restore = "none"
"#;

const CLASSES: &str = r#"
[gateway.tunnel.class.calls]
match = { dscp = "ef" }
mode = "interactive"

[gateway.tunnel.class.web]
match = { port = ["5000-5010", 443], dscp = ["cs0", 10] }
mode = "bulk"

[gateway.tunnel.class.backups]
match = { prefix = "192.0.2.0/24" }
mode = "pinned"
path = "spare"
"#;

#[test]
fn classes_of_a_gateway() {
    let of_tunnel = GATEWAY
        .replace("split = { kind = \"weighted-round-robin\" }\n", "")
        .replace("restore = \"none\"", "kind = \"tunnel\"");
    let bad = |part: &str, instead: &str| {
        assert!(CLASSES.contains(part), "{part}");
        plus(&format!(
            "{of_tunnel}{}",
            CLASSES.replacen(part, instead, 1)
        ))
    };
    snapshot(
        "classes_of_a_gateway",
        &[
            ("an unknown mode", bad("\"interactive\"", "\"interactiv\"")),
            ("no mode", bad("mode = \"bulk\"\n", "")),
            ("an unknown key", bad("mode = \"bulk\"", "mod = \"bulk\"")),
            ("an unknown selector", bad("dscp = \"ef\"", "dcsp = \"ef\"")),
            ("no selector", bad("{ dscp = \"ef\" }", "{}")),
            ("an unknown code point", bad("\"ef\"", "\"eff\"")),
            ("a code point of seven bits", bad("\"ef\"", "64")),
            ("no port", bad("443", "0")),
            ("a port beyond the last", bad("443", "65536")),
            ("ports backwards", bad("5000-5010", "5010-5000")),
            ("an empty list", bad("[\"cs0\", 10]", "[]")),
            ("no prefix", bad("192.0.2.0/24", "192.0.2.0/33")),
            ("pinned to no path", bad("path = \"spare\"\n", "")),
            (
                "pinned to no route",
                bad("path = \"spare\"", "path = \"spar\""),
            ),
            (
                "pinned to a link beside it",
                bad("path = \"spare\"", "path = \"access\""),
            ),
            (
                "a path of another mode",
                bad("mode = \"bulk\"", "mode = \"bulk\"\npath = \"spare\""),
            ),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of mistakes")]
fn gateways() {
    let bad = |part: &str, instead: &str| {
        assert!(GATEWAY.contains(part), "{part}");
        plus(&GATEWAY.replacen(part, instead, 1))
    };
    let routes = |names: &str| bad("\"bottleneck\", \"spare\"", names);
    let and = |text: &str| plus(&format!("{GATEWAY}{text}"));
    let of_tunnel = GATEWAY
        .replace("split = { kind = \"weighted-round-robin\" }\n", "")
        .replace("restore = \"none\"", "kind = \"tunnel\"");
    let tunnel = |text: &str| plus(&format!("{of_tunnel}{text}"));
    assert_eq!(check(&format!("{GOOD}{GATEWAY}"), &[]), Ok(()));
    let policies = "policies = { spare = \"backup\" }\nclock_offset = [\"0 s\", \"1 h\"]\n";
    assert_eq!(check(&format!("{GOOD}{of_tunnel}{policies}"), &[]), Ok(()));
    assert_eq!(check(&format!("{GOOD}{of_tunnel}{CLASSES}"), &[]), Ok(()));
    snapshot(
        "gateways",
        &[
            ("no such link", routes("\"bottleneck\", \"spar\"")),
            ("no route", routes("")),
            ("one route", routes("\"bottleneck\"")),
            ("a route twice", routes("\"spare\", \"spare\"")),
            ("not between the ends", routes("\"bottleneck\", \"access\"")),
            (
                "two gateways on one link",
                and(
                    "[gateway.other]\nbetween = [\"R1\", \"R\"]\nroutes = [\"spare\", \"bottleneck\"]\nsplit = \"weighted-round-robin\"\nrestore = \"none\"\n",
                ),
            ),
            (
                "a route that a flow uses by itself",
                error(
                    &format!("{GOOD}route = [\"access\", \"spare\"]\n{GATEWAY}"),
                    &[],
                ),
            ),
            (
                "a link beside the gateway",
                and("[link.third]\nbetween = [\"R\", \"R1\"]\n"),
            ),
            ("a route without a rate", bad("rate = \"5 Mbit/s\"\n", "")),
            (
                "the name of a link",
                bad("gateway.tunnel", "gateway.access"),
            ),
            (
                "unknown end",
                bad("[\"R1\", \"R\"]\nroutes", "[\"R1\", \"R2\"]\nroutes"),
            ),
            (
                "to itself",
                bad("[\"R1\", \"R\"]\nroutes", "[\"R\", \"R\"]\nroutes"),
            ),
            (
                "no splitter",
                bad("split = { kind = \"weighted-round-robin\" }\n", ""),
            ),
            (
                "unknown splitter",
                bad("weighted-round-robin", "round-robin"),
            ),
            (
                "a parameter that a splitter has not",
                bad("-robin\" }", "-robin\", weight = 3 }"),
            ),
            (
                "a splitter that is a mode of the tunnel",
                bad(
                    "\"weighted-round-robin\"",
                    "\"standby\", order = [\"spare\"]",
                ),
            ),
            ("an unknown kind", and("kind = \"tunel\"\n")),
            (
                "a splitter in a tunnel",
                bad("restore = \"none\"\n", "kind = \"tunnel\"\n"),
            ),
            ("overhead in a tunnel", tunnel("overhead = \"60 bytes\"\n")),
            (
                "policies of a splitter",
                and("policies = { spare = \"backup\" }\n"),
            ),
            (
                "classes of a splitter",
                and("class.calls = { match = { dscp = 46 }, mode = \"bulk\" }\n"),
            ),
            (
                "clocks of a splitter",
                and("clock_offset = [\"0 s\", \"1 s\"]\n"),
            ),
            (
                "a policy of no route",
                tunnel("policies = { spar = \"backup\" }\n"),
            ),
            (
                "an unknown policy",
                tunnel("policies = { spare = \"standby\" }\n"),
            ),
            (
                "a clock beyond its bounds",
                tunnel("clock_offset = [\"0 s\", \"1000001 s\"]\n"),
            ),
            ("no restorer", bad("restore = \"none\"\n", "")),
            ("unknown restorer", bad("\"none\"", "\"nine\"")),
            ("too much overhead", and("overhead = \"2 kB\"\n")),
            (
                "less than the header that a restorer needs",
                bad("\"none\"\n", "\"timed\"\noverhead = \"20 bytes\"\n"),
            ),
            (
                "less than the header that a splitter needs",
                bad(
                    "{ kind = \"weighted-round-robin\" }",
                    "\"redundant\"\noverhead = \"23 bytes\"",
                ),
            ),
            (
                "a wait beyond its bounds",
                bad("\"none\"", "{ kind = \"timed\", limit = \"2000 s\" }"),
            ),
            (
                "memory without limit",
                bad(
                    "\"none\"",
                    "{ kind = \"adaptive\", memory = \"unlimited\" }",
                ),
            ),
            (
                "memory in bandwidth-delay products",
                bad("\"none\"", "{ kind = \"in-order\", memory = \"2 bdp\" }"),
            ),
            (
                "too much memory",
                bad("\"none\"", "{ kind = \"timed\", memory = \"2 GB\" }"),
            ),
            (
                "a change in mid-run",
                and("[[at]]\ntime = \"2 s\"\nset = { \"gateway.tunnel.restore\" = \"none\" }\n"),
            ),
        ],
    );
}

#[test]
fn an_empty_list_or_change_is_refused() {
    let change = "[[at]]\ntime = \"1 s\"\nset = {}\n";
    for (text, place, said, expected) in [
        (
            "[host.S]\ndevices = []\n",
            "20:11",
            "`devices` is empty",
            "or no `devices`",
        ),
        (
            "[host.S]\naddresses = []\n",
            "20:13",
            "`addresses` is empty",
            "or no `addresses`",
        ),
        (
            change,
            "21:7",
            "this change sets nothing",
            "\"link.NAME.up\" = false",
        ),
    ] {
        let error = plus(text);
        let line = format!("test.toml:{place}: {said}");
        assert!(
            error.starts_with(&line) && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn a_reversed_range_of_ports_is_refused() {
    let error = plus("match = { port = \"90-80\" }\n");
    assert!(
        error.contains("test.toml:19:18: \"90-80\" is a range whose first port is above its last"),
        "{error}"
    );
}
