//! Error messages of parameters of remedies for reordering: line and column of the value, and its
//! valid values.

use super::{resolve, scenario};

/// The number of the scenario's line of settings, and the error with it.
fn refused(transport: &str) -> (usize, String) {
    let text = scenario("", transport);
    let error = resolve(&text).map(|_| ()).expect_err(transport);
    let line = text.lines().position(|line| line == transport);
    (line.expect("it is in the text") + 1, error)
}

#[test]
fn an_unknown_parameter_is_refused_at_its_name() {
    for (remedy, name, near) in [
        ("leung-ma", "mean_gian", "`mean_gain`"),
        ("ncr", "restrat", "`restart`"),
        ("tcp-pr", "alhpa", "`alpha`"),
    ] {
        let transport =
            format!("transport = {{ reordering = {{ kind = \"{remedy}\", {name} = 1 }} }}");
        let (line, error) = refused(&transport);
        let column = transport.find(name).expect("it is there") + 1;
        let place = format!("test.toml:{line}:{column}: ");
        assert!(error.starts_with(&place), "{place} {error}");
        assert!(error.contains(near), "{error}");
    }
}
