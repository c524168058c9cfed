//! What people see when a parameter of a congestion control is wrong: file, line, column, what was
//! found and what was expected.

use std::{collections::BTreeSet, fmt::Write};

use anabranch_congestion::registry;
use anabranch_scenario::{Extensions, Scenario};

fn scenario(cc: &str) -> String {
    format!(
        r#"duration = "10 s"

[link.path]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "5 ms"

[flow.main]
from = "S"
to = "R"
stack = "rfc"
cc = {cc}
"#
    )
}

fn read(cc: &str) -> Result<(), String> {
    let read = Scenario::parse(&scenario(cc), "test.toml", &Extensions::default());
    let resolved = read.and_then(|scenario| scenario.resolve(None));
    resolved.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn wrong_parameters_have_a_place() {
    let mut text = String::new();
    for cc in [
        r#"{ kind = "westwood-plus", filter = 1.2 }"#,
        r#"{ kind = "westwood-plus", filtre = 0.9 }"#,
        r#"{ kind = "westwood-plus", avoidance = "ack" }"#,
        r#"{ kind = "compound", alpha = -0.125 }"#,
        r#"{ kind = "compound", k = 1.5 }"#,
        r#"{ kind = "compound", beta = 0.1 }"#,
        r#"{ kind = "compound", zeta = 0 }"#,
        r#"{ kind = "compound", gamma = 30 }"#,
        r#"{ kind = "compound", gamma_low = "31 packets" }"#,
        r#"{ kind = "compound", gamma = "50 packets" }"#,
        r#"{ kind = "compound", gamma = "4 packets" }"#,
        r#"{ kind = "compound", gamma_tuning = "off" }"#,
        r#"{ kind = "vegas", alpha = "4 packets" }"#,
        r#"{ kind = "vegas", beta = "0 packets" }"#,
        r#"{ kind = "vegas", gamma = "2 bytes" }"#,
        r#"{ kind = "bic", s_min = 0 }"#,
        r#"{ kind = "bic", s_max = "32" }"#,
        r#"{ kind = "bic", beta = 0.125 }"#,
        r#"{ kind = "bic", low_window = "2000000 packets" }"#,
    ] {
        let error = read(cc).expect_err(cc);
        let _ = write!(text, "{error}\n\n");
    }
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("wrong_parameters", text);
    });
}

#[test]
fn right_parameters_are_taken() {
    for cc in [
        r#""westwood-plus""#,
        r#"{ kind = "westwood-plus", filter = 0.9, avoidance = "acks", reduce_from = "cwnd" }"#,
        r#""compound""#,
        r#"{ kind = "compound", low_window = "41 packets", gamma_tuning = false, zeta = 2 }"#,
        r#"{ kind = "compound", gamma = "9 packets", gamma_low = "9 packets", gamma_high = "9 packets" }"#,
        r#"{ kind = "compound", gamma = "50 packets", gamma_tuning = false }"#,
        r#"{ kind = "compound", gamma = "4 packets", gamma_tuning = false }"#,
        r#""vegas""#,
        r#"{ kind = "vegas", alpha = "2 packets", beta = "4 packets", beta_loss = 0.75 }"#,
        r#""bic""#,
        r#"{ kind = "bic", s_max = "16 packets", fast_convergence = false, beta = 0.8 }"#,
    ] {
        read(cc).unwrap_or_else(|error| panic!("{cc}: {error}"));
    }
}

/// Control, its parameters, a value below what they may be or of another kind, what is said of it, and
/// the same of one above.
type Case = (
    &'static str,
    &'static [&'static str],
    [&'static str; 2],
    [&'static str; 2],
);

/// Windows and steps in packets.
const fn packets(control: &'static str, names: &'static [&'static str]) -> Case {
    let says = "from 1 to 1000000";
    let (low, high) = ("\"0 packets\"", "\"1000001 packets\"");
    (control, names, [low, says], [high, says])
}
const fn share(control: &'static str, names: &'static [&'static str]) -> Case {
    (
        control,
        names,
        ["-0.001", "outside 0..1"],
        ["1.001", "outside 0..1"],
    )
}
/// What a reduction leaves.
const fn left(control: &'static str, names: &'static [&'static str]) -> Case {
    (
        control,
        names,
        ["0.49", "outside 0.5..0.99"],
        ["0.995", "outside 0.5..0.99"],
    )
}
const fn gain(control: &'static str, names: &'static [&'static str]) -> Case {
    (
        control,
        names,
        ["0.09", "outside 0.1..10"],
        ["10.1", "outside 0.1..10"],
    )
}
const fn samples(control: &'static str, names: &'static [&'static str]) -> Case {
    (
        control,
        names,
        ["0", "outside 1..1000"],
        ["1001", "outside 1..1000"],
    )
}
const fn time(control: &'static str, names: &'static [&'static str]) -> Case {
    let (low, high) = ("\"-1 ms\"", "\"1e9 s\"");
    (control, names, [low, "is negative"], [high, "is too large"])
}
const fn switch(control: &'static str, names: &'static [&'static str]) -> Case {
    (control, names, ["\"on\"", "`true`"], ["1", "`false`"])
}
/// One word of several, of which `word` is one.
const fn word(control: &'static str, names: &'static [&'static str], word: &'static str) -> Case {
    (control, names, ["\"neither\"", word], ["1", "this is "])
}

/// What CUBIC and Cubic+ have in common.
const fn cubic(control: &'static str) -> [Case; 13] {
    [
        (
            control,
            &["c"],
            ["0.0009", "outside 0.001..100"],
            ["100.1", "outside 0.001..100"],
        ),
        left(control, &["beta"]),
        switch(control, &["fast_convergence", "tcp_friendly"]),
        word(control, &["reno_friendly"], "rfc9438"),
        word(control, &["count"], "segments"),
        word(control, &["reduce_from"], "cwnd"),
        share(control, &["first_epoch_growth"]),
        packets(control, &["slow_start_limit", "hystart_low_window"]),
        word(control, &["hystart"], "rfc9406"),
        time(control, &["hystart_ack_delta"]),
        share(control, &["hystart_ack_train_share", "hystart_delay_share"]),
        time(control, &["hystart_delay_min", "hystart_delay_max"]),
        samples(control, &["hystart_min_samples"]),
    ]
}

const CASES: [Case; 49] = [
    packets("reno", &["slow_start_limit"]),
    word("reno", &["avoidance"], "`acks`"),
    switch("reno", &["extra_eighth"]),
    word("reno", &["reduce_from"], "cwnd"),
    packets("cubic-plus", &["restart_cwnd"]),
    word("cubic-plus", &["restart_ssthresh"], "`keep`"),
    switch("cubic-plus", &["restart_keeps_w_max"]),
    time("cubic-plus", &["initial_reo_wnd"]),
    share("cubic-plus", &["reo_wnd_share"]),
    gain(
        "bbr",
        &[
            "high_gain",
            "cwnd_gain",
            "probe_up_gain",
            "probe_down_gain",
            "full_bw_growth",
        ],
    ),
    samples("bbr", &["bw_window_rounds", "full_bw_rounds"]),
    time("bbr", &["min_rtt_window", "probe_rtt_duration"]),
    packets("bbr", &["min_window"]),
    share("bbr", &["pacing_margin", "extra_acked_gain"]),
    gain(
        "bbr3",
        &[
            "startup_pacing_gain",
            "drain_pacing_gain",
            "probe_up_pacing_gain",
            "probe_down_pacing_gain",
            "cwnd_gain",
            "probe_up_cwnd_gain",
            "probe_rtt_cwnd_gain",
            "full_bw_growth",
        ],
    ),
    share("bbr3", &["pacing_margin", "headroom"]),
    (
        "bbr3",
        &["loss_threshold"],
        ["-0.01", "outside 0..0.5"],
        ["0.51", "outside 0..0.5"],
    ),
    left("bbr3", &["beta"]),
    packets("bbr3", &["min_window"]),
    time(
        "bbr3",
        &[
            "min_rtt_window",
            "probe_rtt_interval",
            "probe_rtt_duration",
            "probe_wait_min",
            "probe_wait_spread",
        ],
    ),
    samples(
        "bbr3",
        &[
            "bw_window_cycles",
            "extra_acked_window_rounds",
            "full_bw_rounds",
            "startup_full_losses",
            "probe_wait_rounds",
        ],
    ),
    (
        "dctcp",
        &["g"],
        ["0.0009", "outside 0.001..1"],
        ["1.1", "outside 0.001..1"],
    ),
    share("dctcp", &["initial_alpha"]),
    packets("dctcp", &["slow_start_limit"]),
    word("dctcp", &["reduce_from"], "cwnd"),
    share("westwood-plus", &["filter"]),
    word("westwood-plus", &["form"], "`linux`"),
    word("westwood-plus", &["counting"], "`twice`"),
    packets("westwood-plus", &["slow_start_limit"]),
    word("westwood-plus", &["avoidance"], "`acks`"),
    word("westwood-plus", &["reduce_from"], "cwnd"),
    share("compound", &["alpha", "k", "lambda"]),
    left("compound", &["beta"]),
    gain("compound", &["zeta"]),
    packets(
        "compound",
        &["gamma", "gamma_low", "gamma_high", "low_window"],
    ),
    switch("compound", &["gamma_tuning"]),
    packets("compound", &["slow_start_limit"]),
    word("compound", &["avoidance"], "`acks`"),
    word("compound", &["rtt"], "`smoothed`"),
    word("compound", &["reduce_from"], "cwnd"),
    packets("vegas", &["alpha", "beta", "gamma", "slow_start_limit"]),
    left("vegas", &["beta_loss"]),
    word("vegas", &["rtt"], "`segment`"),
    word("vegas", &["reduce_from"], "cwnd"),
    packets("bic", &["s_max", "low_window", "slow_start_limit"]),
    (
        "bic",
        &["s_min"],
        ["0.0009", "outside 0.001..1"],
        ["1.1", "outside 0.001..1"],
    ),
    left("bic", &["beta"]),
    switch("bic", &["fast_convergence"]),
    word("bic", &["reduce_from"], "cwnd"),
];

fn cases() -> impl Iterator<Item = Case> {
    let cubics = ["cubic", "cubic-plus"].into_iter().flat_map(cubic);
    CASES.into_iter().chain(cubics)
}

#[test]
fn every_parameter_out_of_range_is_refused_at_its_place() {
    let mut wrong = String::new();
    for (control, names, low, high) in cases() {
        let both = |name| [(name, low), (name, high)];
        for (name, [value, says]) in names.iter().flat_map(both) {
            let assigned = format!("{name} = {value}");
            let cc = format!("{{ kind = \"{control}\", {assigned} }}");
            let text = scenario(&cc);
            let line = text.lines().position(|line| line.starts_with("cc = "));
            let line = line.expect("it is in the text");
            let before = "cc = ".len() + cc.find(&assigned).expect("it is there");
            let column = before + name.len() + " = ".len() + 1;
            let place = format!("test.toml:{}:{column}: ", line + 1);
            let error = read(&cc).expect_err(&cc);
            if !error.starts_with(&place) || !error.contains(says) {
                let _ = writeln!(wrong, "{cc}: {place}, {says}, but\n{error}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_parameter_has_a_case() {
    let mut has = BTreeSet::new();
    for (control, names, ..) in cases() {
        for name in names {
            assert!(has.insert((control, *name)), "{control}: {name} twice");
        }
    }
    let mut wanted = BTreeSet::new();
    let registry = registry();
    for (meta, _, schema) in &registry {
        let properties = schema.get("properties");
        let properties = properties.and_then(serde_json::Value::as_object);
        for name in properties.expect("a table").keys() {
            wanted.insert((meta.name, name.as_str()));
        }
    }
    assert_eq!(has, wanted);
}
