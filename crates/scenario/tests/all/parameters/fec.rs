//! Error messages of parameters of error correction: file, line, column, the value found and the
//! value expected.

use anabranch_core::{parameters::Count, units::Duration};
use anabranch_fec::{Config, params::Choice, params::Release};

use super::{refusals, resolve, scenario};

fn with(fec: &str, more: &str) -> String {
    scenario("", format!("fec = {fec}\n{more}").trim_end())
}

fn read(fec: &str, more: &str) -> Result<Config, String> {
    resolve(&with(fec, more)).map(|resolved| resolved.flows[0].fec.clone())
}

#[test]
fn wrong_parameters_have_a_place() {
    let cases = [
        (r#""xro""#, ""),
        (r#"{ kind = "xor", group = 0, redundancy = "fixed" }"#, ""),
        (r#"{ kind = "xor", redundancy = "fixd" }"#, ""),
        (r#"{ kind = "xor", group = 5, redundancy = "cwnd" }"#, ""),
        (r#"{ kind = "reed-solomon", group = 300 }"#, ""),
        (
            r#"{ kind = "xor", redundancy = "loss-adaptive", redundant = 2 }"#,
            "",
        ),
        (r#"{ kind = "xor", redundant = 2 }"#, ""),
        (r#"{ kind = "xor", fmax = 70000 }"#, ""),
        (r#"{ kind = "xor", fmax = -1 }"#, ""),
        (r#"{ kind = "xor", window = 20 }"#, ""),
        (r#"{ kind = "xor", hold_acks = "yes" }"#, ""),
        (r#"{ kind = "xor", hold_timeout = "0 s" }"#, ""),
        (r#"{ kind = "xor", hold_timeout = "2 min" }"#, ""),
        (r#"{ kind = "xor", release = "some" }"#, ""),
        (r#"{ kind = "xor", hold_in_recovery = "some" }"#, ""),
        (r#"{ kind = "xor", hold = true }"#, ""),
        (r#"{ kind = "reed-solomon", fmax = 256 }"#, ""),
        (r#"{ kind = "reed-solomon", redundant = 256 }"#, ""),
        (r#"{ kind = "reed-solomon", redundant = 0 }"#, ""),
        (
            r#"{ kind = "reed-solomon", redundancy = "fixed", group = 300 }"#,
            "",
        ),
        (r#"{ kind = "sliding-rlc", window = 256 }"#, ""),
        (r#""xor""#, r#"transport = { mss = "65480 bytes" }"#),
    ];
    let text = refusals(cases.map(|(fec, more)| with(fec, more)));
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("fec", text);
    });
}

#[test]
fn a_bare_name_selects_the_parameters_of_the_study() {
    let Ok(Config::Xor(params)) = read(r#""xor""#, "") else {
        panic!("it can be read");
    };
    assert_eq!(params.redundancy, Some(Choice::Cwnd));
    assert_eq!(params.group, None);
    assert_eq!((params.fmax, params.redundant()), (0, 1));
    assert!(params.hold_acks && params.occupies_cwnd && params.second_gap_releases);
    assert!(!params.recovered_is_loss);
    assert_eq!(params.release, Release::Each);
    assert_eq!(params.hold_timeout.get(), Duration::from_millis(1_000));
}

/// Detects a reader that accepts `group` but lets groups follow the window.
#[test]
fn an_explicit_group_is_fixed() {
    for (fec, group) in [
        (r#"{ kind = "xor", group = 5 }"#, 5),
        (r#"{ kind = "xor", redundancy = "fixed" }"#, 10),
    ] {
        let config = read(fec, "").unwrap_or_else(|error| panic!("{error}"));
        let (_, params) = config.parts().expect("it is on");
        assert_eq!(params.redundancy, Some(Choice::Fixed));
        assert_eq!(params.group.map(Count::get), Some(group));
    }
}

#[test]
fn every_code_can_be_written_with_all_its_keys() {
    let all = r#"redundancy = "fixed", group = 20, fmax = 15, hold_acks = false, hold_timeout = "300 ms",
        second_gap_releases = false, hold_in_recovery = "all", release = "one", occupies_cwnd = false, recovered_is_loss = true"#
        .replace('\n', " ");
    for (name, own) in [
        ("xor", ""),
        ("reed-solomon", ", redundant = 3"),
        ("sliding-rlc", ", redundant = 3, window = 100"),
    ] {
        let fec = format!("{{ kind = \"{name}\", {all}{own} }}");
        let config = read(&fec, "").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.name(), name);
        let (_, params) = config.parts().expect("it is on");
        assert_eq!(params.group(), 20);
        assert!(params.recovered_is_loss && !params.occupies_cwnd);
    }
}
