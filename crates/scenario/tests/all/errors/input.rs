//! Inputs other than one valid file: invalid files, `--set`, sweeps, extensions.

use super::*;

#[test]
fn a_path_of_names_with_other_characters_is_offered_in_quotation_marks() {
    let renamed = GOOD.replace("[flow.main]", "[flow.\"$a b\"]");
    for path in ["flow.$a b.cc", "flow . $a b . cc"] {
        let told = error(&renamed, &[&format!("{path}=reno")]);
        let offered = "other characters need quotation marks: `flow.\"$a b\".cc`";
        assert!(told.contains(offered), "{told}");
    }
    check(&renamed, &["flow.\"$a b\".cc=reno"]).expect("what is offered is right");
    for path in ["flow..cc", "flow.\"a", "$a.b", "flow.a'.cc"] {
        let told = error(&renamed, &[&format!("{path}=reno")]);
        assert!(!told.contains("other characters"), "{told}");
    }
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
            ("a seed too large", set("seed=9223372036854775808")),
            (
                "a new gateway without its ends",
                set("gateway.g={ routes = [\"bottleneck\"] }"),
            ),
            (
                "a new link without its ends",
                set("link.zzz={ rate = \"1 Mbit/s\" }"),
            ),
            ("a new flow without its end", set("flow.b={ from = \"S\" }")),
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
fn errors_of_an_extension_have_a_position() {
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

#[test]
fn all_errors_are_reported() {
    let text = r#"titel = "x"
duration = "10 s"

[link.path]
between = ["S", "R"]
rate = "100 Mbits"
delay = 5
dely = "3 ms"
queue = { kind = "drop-tial" }
impair = [{ kind = "bernoulli-loss", rate = 2.0 }, { kind = "jiter" }]

[flow.main]
from = "S"
to = "R"
cc = "renoo"
transport = { sakc = true }

[flow.second]
from = "S"

[flow.third]
from = "nowhere"
to = "R"
"#;
    let problem = check(text, &[]).expect_err("this must be refused");
    let lines: Vec<_> = std::iter::once(&problem)
        .chain(problem.more())
        .map(|e| e.line)
        .collect();
    assert_eq!(
        lines,
        [1, 6, 7, 8, 9, 10, 10, 15, 16, 18, 22].map(Some),
        "{problem}"
    );
    insta::assert_snapshot!(problem.to_string());
}

#[test]
fn consequences_of_an_error_are_not_reported() {
    for (part, instead) in [
        // The flow has lost its only route.
        ("between = [\"R1\", \"R\"]", "betwen = [\"R1\", \"R\"]"),
        ("between = [\"R1\", \"R\"]", "between = [\"R1\"]"),
        // There is no other flow.
        ("to = \"R\"", "too = \"R\""),
        ("from = \"S\"", "from = 5"),
        ("duration = \"10 s\"", "duration = 10"),
        ("\"100 packets\"", "\"100 pkts\""),
    ] {
        let told = with(part, instead);
        let errors = told.matches("test.toml:").count();
        // A mistyped name may also be a missing name.
        let names = ["betwen", "too"].iter().any(|name| instead.contains(name));
        assert_eq!(errors, 1 + usize::from(names), "{told}");
    }
}

#[test]
fn every_line_that_is_not_toml_is_reported() {
    let told = error(
        "duration = 10 s\n[link.a\nbetween = [\"A\" \"B\"]\nrate 5\nrate = \"1 Mbit/s\"\n",
        &[],
    );
    for line in [1, 2, 3, 4] {
        assert!(told.contains(&format!("test.toml:{line}:")), "{told}");
    }
    assert!(!told.contains("test.toml:5:"), "{told}");
}
