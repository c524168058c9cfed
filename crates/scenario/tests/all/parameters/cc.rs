//! Error messages of parameters of congestion controls: file, line, column, the value found and the
//! value expected.

use super::{refusals, resolve, scenario};

fn with(cc: &str) -> String {
    scenario("", &format!("cc = {cc}"))
}

#[test]
fn wrong_parameters_have_a_place() {
    let text = refusals(
        [
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
        ]
        .map(with),
    );
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("wrong_parameters", text);
    });
}

#[test]
fn valid_parameters_are_accepted() {
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
        resolve(&with(cc)).unwrap_or_else(|error| panic!("{cc}: {error}"));
    }
}
