//! Networks that cannot be, and changes of them.

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
