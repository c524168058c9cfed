//! Services and queues with their own sending rate.

use super::{GOOD, check, error, plus, with};

const RATE: &str = "rate = \"10 Mbit/s\"";

fn bottleneck(instead: &str) -> String {
    assert!(GOOD.contains(RATE));
    GOOD.replacen(RATE, instead, 1)
}

#[test]
fn a_wifi_station_needs_a_rate() {
    let good = bottleneck("rate = \"65 Mbit/s\"\nservice = { kind = \"wifi\", stations = 3 }");
    assert_eq!(check(&good, &[]), Ok(()));
    let said = error(&bottleneck("service = \"wifi\""), &[]);
    assert!(
        said.contains("test.toml:10:") && said.contains("needs the rate"),
        "{said}"
    );
}

#[test]
fn a_group_has_no_wifi_members() {
    let said = plus(
        "[group.core]\nbetween = [\"R\", \"X\"]\nmembers = 2\nrate = \"1 Mbit/s\"\nservice = \"wifi\"\n",
    );
    assert!(
        said.contains("members of a group send at a fixed rate"),
        "{said}"
    );
}

#[test]
fn the_rate_of_a_wifi_station_stays() {
    let text = bottleneck("rate = \"65 Mbit/s\"\nservice = \"wifi\"")
        + "[[at]]\ntime = \"1 s\"\nset = { \"link.bottleneck.rate\" = \"13 Mbit/s\" }\n";
    let said = error(&text, &[]);
    assert!(said.contains("cannot change in mid-run"), "{said}");
}

#[test]
fn invalid_wifi_parameters_are_refused_at_their_position() {
    for (written, said) in [
        ("stations = 0", "from 1 to 256"),
        ("aggregate = 65", "from 1 to 64"),
        ("frame_error = 1.5", "1.5"),
        ("slot = \"1 s\"", "out of range"),
        ("station = 2", "did you mean `stations`?"),
    ] {
        let text = format!("{RATE}\nservice = {{ kind = \"wifi\", {written} }}");
        let error = error(&bottleneck(&text), &[]);
        assert!(
            error.contains(said) && error.contains("test.toml:11:"),
            "{error}"
        );
    }
}

#[test]
fn a_modem_and_a_cell_need_a_rate() {
    for kind in ["cable", "cellular"] {
        let good = bottleneck(&format!("{RATE}\nservice = \"{kind}\""));
        assert_eq!(check(&good, &[]), Ok(()));
        let said = error(&bottleneck(&format!("service = \"{kind}\"")), &[]);
        assert!(
            said.contains("test.toml:10:") && said.contains("needs the rate"),
            "{said}"
        );
        let said = plus(&format!(
            "[group.core]\nbetween = [\"R\", \"X\"]\nmembers = 2\nrate = \"1 Mbit/s\"\nservice = \"{kind}\"\n"
        ));
        assert!(said.contains("members of a group"), "{said}");
    }
}

#[test]
fn a_cell_has_a_rate_or_a_trace() {
    let trace = "service = { kind = \"cellular\", file = \"anabranch:lte-drive-up.csv\" }";
    assert_eq!(check(&bottleneck(trace), &[]), Ok(()));
    let said = error(&bottleneck(&format!("{RATE}\n{trace}")), &[]);
    assert!(said.contains("beside a trace"), "{said}");
    let missing = "service = { kind = \"cellular\", file = \"anabranch:lte.csv\" }";
    let said = error(&bottleneck(missing), &[]);
    assert!(
        said.contains("test.toml:10:") && said.contains("lte-drive-up.csv"),
        "{said}"
    );
}

#[test]
fn invalid_modem_and_cell_parameters_are_refused_at_their_position() {
    for (written, said) in [
        ("kind = \"cable\", map_interval = \"0 ms\"", "out of range"),
        ("kind = \"cable\", map_lead = \"2 s\"", "out of range"),
        ("kind = \"cable\", collision = 1.5", "1.5"),
        (
            "kind = \"cable\", map_intervals = \"2 ms\"",
            "did you mean `map_interval`?",
        ),
        ("kind = \"cellular\", tti = \"20 ms\"", "out of range"),
        (
            "kind = \"cellular\", error_rate = 0.95",
            "expected 0 to 0.9",
        ),
        ("kind = \"cellular\", sr_period = 10", "duration"),
        ("kind = \"celular\"", "did you mean `cellular`?"),
    ] {
        let text = format!("{RATE}\nservice = {{ {written} }}");
        let error = error(&bottleneck(&text), &[]);
        assert!(
            error.contains(said) && error.contains("test.toml:11:"),
            "{error}"
        );
    }
}

#[test]
fn a_group_has_no_shaper() {
    let said = plus(
        "[group.core]\nbetween = [\"R\", \"X\"]\nmembers = 2\nrate = \"1 Mbit/s\"\n\
         queue = { kind = \"cake\", rate = \"1 Mbit/s\" }\n",
    );
    assert!(said.contains("shapes to its `rate`"), "{said}");
}

#[test]
fn errors_of_cake_and_policer_name_valid_values() {
    let queue = "queue = { kind = \"drop-tail\", limit = \"100 packets\" }";
    for (written, said) in [
        (
            "queue = { kind = \"cake\", overhead = -65 }",
            "from -64 to 256",
        ),
        ("queue = { kind = \"cake\", mpu = 257 }", "from 0 to 256"),
        (
            "queue = { kind = \"cake\", isolation = \"triple\" }",
            "triple-isolate",
        ),
        ("queue = { kind = \"cake\", rate = \"20\" }", "unlimited"),
        ("queue = { kind = \"cak\" }", "did you mean `cake`?"),
        (
            "queue = { kind = \"threshold\" }",
            "did you mean `threshold-mark`?",
        ),
        ("queue = { kind = \"dualpi\" }", "did you mean `dualpi2`?"),
        (
            "impair = [{ kind = \"policer\", burst = \"2 GB\" }]",
            "out of range",
        ),
        ("impair = [{ kind = \"policer\", rate = 10 }]", "unlimited"),
    ] {
        let error = with(queue, written);
        assert!(error.contains(said), "{written}: {error}");
    }
}

#[test]
fn prague_requires_accurate_ecn_and_pacing() {
    let said = with(
        "cc = \"reno\"",
        "cc = \"prague\"\ntransport = { ecn = \"rfc3168\" }",
    );
    assert!(said.contains("which bytes were marked"), "{said}");
    let said = with(
        "cc = \"reno\"",
        "cc = \"prague\"\ntransport = { pacing = false }",
    );
    assert!(said.contains("always paced"), "{said}");
    let good = GOOD.replacen(
        "cc = \"reno\"",
        "cc = \"prague\"\ntransport = { ecn = \"l4s\" }",
        1,
    );
    assert_eq!(check(&good, &[]), Ok(()));
}

#[test]
fn a_dscp_is_a_number_or_a_name() {
    for (written, fits) in [
        ("46", true),
        ("0", true),
        ("63", true),
        ("\"ef\"", true),
        ("\"af41\"", true),
        ("\"cs7\"", true),
        ("64", false),
        ("-1", false),
        ("\"af44\"", false),
        ("\"EF\"", true),
        ("1.5", false),
    ] {
        let text = GOOD.replacen(
            "cc = \"reno\"",
            &format!("cc = \"reno\"\ndscp = {written}"),
            1,
        );
        match check(&text, &[]) {
            Ok(()) => assert!(fits, "{written}"),
            Err(error) => assert!(
                !fits && error.to_string().contains("`af11` to `af43`"),
                "{error}"
            ),
        }
    }
}
