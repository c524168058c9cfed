//! Reading any text ends in a scenario or in an error, never in a panic.

use anabranch_scenario::{Extensions, Scenario};
use proptest::prelude::*;

const EXAMPLE: &str = r#"title = "everything at once"
duration = "10.2 s"
seed = 3
warmup = "1 s"

[link.access]
between = ["S", "R1"]
rate = "100 Mbit/s"
delay = "15 ms"
impair = [{ kind = "bernoulli-loss", rate = 0.01 }]

[link.bottleneck]
between = ["R1", "R2"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.queue = { kind = "drop-tail", limit = "100 packets", reorder = { kind = "interval", interval = 40 } }
reverse = { up = true, service = "fixed" }

[flow.main]
from = "S"
to = "R2"
start = "0.2 s"
start_spread = "1 s"
count = 2
cc = "reno"
stack = "rfc"
transport = { mss = "1448 bytes" }
workload = { kind = "file", size = "2 MB" }
route = ["access", "bottleneck"]

[[at]]
time = "2 s"
set = { "link.bottleneck.forward.rate" = "5 Mbit/s", "link.access.up" = false }

[sweep]
repeat = 3
"flow.main.cc" = ["reno", "new-reno"]
"link.access.delay" = ["1 ms", "2 ms"]
"#;

/// Reads as far as possible. An error must render, and its position must be inside the file.
fn read(text: &str, sets: &[String]) -> bool {
    let mut errors = Vec::new();
    match Scenario::parse(text, "random.toml", &Extensions::default()) {
        Err(error) => errors.push(error),
        Ok(mut scenario) => {
            errors.extend(sets.iter().filter_map(|set| scenario.set(set).err()));
            errors.extend(scenario.sweep().err());
            match scenario.resolve(Some(1)) {
                Ok(_) if errors.is_empty() => return true,
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
    }
    let lines = 1 + text.matches('\n').count();
    for error in errors {
        let rendered = error.to_string();
        assert!(
            rendered.starts_with(&error.file) && !error.message.is_empty(),
            "{rendered}"
        );
        assert!(!error.message.contains('\n'), "{rendered}");
        assert!(
            error
                .line
                .is_none_or(|line| (1..=lines).contains(&(line as usize))),
            "{rendered}"
        );
    }
    false
}

#[test]
fn the_example_is_valid() {
    assert!(read(EXAMPLE, &[]));
}

/// Valid and invalid fragments of a scenario, for any place.
fn fragment() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "[link.a]",
        "[link.a.forward]",
        "[flow.main]",
        "[[at]]",
        "[sweep]",
        "[host.S]",
        "[group.g]",
        "between",
        "rate",
        "delay",
        "queue",
        "kind",
        "limit",
        "reorder",
        "interval",
        "from",
        "to",
        "route",
        "time",
        "set",
        "\"1 Mbit/s\"",
        "\"1 bdp\"",
        "\"-3 ms\"",
        "\"1e400 s\"",
        "\"S\"",
        "[\"S\", \"T\"]",
        "[]",
        "{}",
        "{",
        "}",
        "[",
        "]",
        "=",
        ".",
        ",",
        "\n",
        "\"",
        "'",
        "'''",
        "#",
        "true",
        "-1",
        "0",
        "9223372036854775807",
        "1e308",
        "nan",
        "inf",
        "-inf",
        "0x7f",
        "2024-01-01",
        "\"link.a.up\"",
        "\u{feff}",
        "\r\n",
        "\u{0}",
        "é",
        "🦀",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Scenario::parse_bytes(&bytes, "random.toml", &Extensions::default());
        read(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn any_fragments_do_not_panic(fragments in prop::collection::vec(fragment(), 0..40), space in prop::sample::select(vec!["", " ", "\n"])) {
        read(&fragments.join(space), &[]);
    }

    /// Replaces a part of a valid scenario by other fragments.
    #[test]
    fn mutated_scenarios_do_not_panic(at in 0..EXAMPLE.len(), length in 0_usize..30, instead in prop::collection::vec(fragment(), 0..4)) {
        let end = (at + length).min(EXAMPLE.len());
        read(&format!("{}{}{}", &EXAMPLE[..at], instead.join(" "), &EXAMPLE[end..]), &[]);
    }

    /// Reorders, repeats and drops lines.
    #[test]
    fn shuffled_lines_do_not_panic(lines in prop::collection::vec(prop::sample::select(EXAMPLE.lines().collect::<Vec<_>>()), 0..60)) {
        read(&lines.join("\n"), &[]);
    }

    #[test]
    fn any_sets_do_not_panic(sets in prop::collection::vec(set(), 0..5)) {
        read(EXAMPLE, &sets);
    }

    #[test]
    fn any_changes_and_sweeps_do_not_panic(path in path(), value in value()) {
        read(&format!("{EXAMPLE}\"{path}\" = [{value}]\n[[at]]\ntime = \"1 s\"\nset = {{ \"{path}\" = {value} }}\n"), &[]);
    }
}

fn path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "link",
        "flow",
        "at",
        "sweep",
        "access",
        "bottleneck",
        "main",
        "forward",
        "reverse",
        "queue",
        "reorder",
        "interval",
        "impair",
        "0",
        "1",
        "rate",
        "kind",
        "limit",
        "cc",
        "transport",
        "mss",
        "route",
        "between",
        "up",
        "set",
        "time",
        "workload",
        "size",
        "new",
        "from",
    ]);
    prop::collection::vec(segment, 1..7).prop_map(|segments| segments.join("."))
}

fn value() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "3",
        "0.5",
        "true",
        "\"R1\"",
        "\"2 ms\"",
        "\"1 bdp\"",
        "[]",
        "{}",
        "{ kind = \"interval\", interval = 2 }",
        "\"drop-tail\"",
        "{ kind = \"drop-tail\", limit = \"1 packets\" }",
        "[[1]]",
        "-1",
    ])
    .prop_map(str::to_owned)
}

fn set() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (path(), value()).prop_map(|(path, value)| format!("{path}={value}")),
        1 => "\\PC{0,30}",
        1 => prop::collection::vec(fragment(), 0..8).prop_map(|fragments| fragments.concat()),
    ]
}
