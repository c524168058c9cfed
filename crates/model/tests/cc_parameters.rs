//! What people see when a parameter of a congestion control is wrong: file, line, column, what was
//! found and what was expected.

use std::fmt::Write;

use anabranch_model::scenario::{Extensions, Scenario};

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
        r#"{ kind = "compound", gamma_low = "1 packet", gamma_high = "1 packet" }"#,
        r#""vegas""#,
        r#"{ kind = "vegas", alpha = "2 packets", beta = "4 packets", beta_loss = 0.75 }"#,
        r#""bic""#,
        r#"{ kind = "bic", s_max = "16 packets", fast_convergence = false, beta = 0.8 }"#,
    ] {
        read(cc).unwrap_or_else(|error| panic!("{cc}: {error}"));
    }
}
