//! Parameters as written in scenario files, and the messages for invalid ones.

use anabranch_congestion::{Config, cubic, params::Packets, reno};
use anabranch_core::units::Duration;
use serde_json::{Value, json};

fn cubic_plus(parameter: &str, value: &Value) -> Result<Config, String> {
    serde_json::from_value(json!({ "cubic-plus": { parameter: value } })).map_err(|e| e.to_string())
}

fn said(parameter: &str, value: &Value) -> String {
    cubic_plus(parameter, value).expect_err("wrong")
}

#[test]
fn quantities_carry_units() {
    for (text, expected) in [
        ("1 ms", Duration::from_millis(1)),
        ("0.25 s", Duration::from_millis(250)),
        ("15 us", Duration::from_micros(15)),
        ("0 ms", Duration::ZERO),
    ] {
        let Ok(Config::CubicPlus(params)) = cubic_plus("initial_reo_wnd", &json!(text)) else {
            panic!("{text} is a time");
        };
        assert_eq!(params.initial_reo_wnd, expected);
    }
    for (text, expected) in [
        ("1 packet", 1),
        ("16 packets", 16),
        ("1000000 packets", 1_000_000),
    ] {
        let Ok(Config::CubicPlus(params)) = cubic_plus("restart_cwnd", &json!(text)) else {
            panic!("{text} is a number of packets");
        };
        assert_eq!(params.restart_cwnd, Packets::new(expected));
    }
}

#[test]
fn every_parameter_of_the_older_cubic_can_be_written() {
    let older = json!({ "cubic": { "beta": 0.8, "c": 0.4, "tcp_friendly": false, "fast_convergence": true } });
    let Ok(Config::Cubic(params)) = serde_json::from_value(older) else {
        panic!("the older form is expressible");
    };
    assert!(!params.tcp_friendly && params.fast_convergence);
    assert!((params.beta.get() - 0.8).abs() < f64::EPSILON);
    let defaults = cubic::Params::default();
    assert!((defaults.beta.get() - 0.7).abs() < f64::EPSILON && defaults.tcp_friendly);
}

#[test]
fn ns3_and_linux_forms_of_reno_can_be_written() {
    let linux = json!({ "new-reno": {
        "slow_start_limit": "1000000 packets", "avoidance": "acks", "reduce_from": "cwnd",
    } });
    let Ok(Config::Reno(params)) = serde_json::from_value(linux) else {
        panic!("the forms are expressible");
    };
    assert_eq!(params.avoidance, reno::Avoidance::Acks);
}

#[test]
fn errors_name_the_expected_value() {
    for (parameter, value, expected) in [
        (
            "restart_cwnd",
            json!(1),
            "a number of packets, as in \"16 packets\"",
        ),
        ("restart_cwnd", json!("0 packets"), "from 1 to 1000000"),
        ("restart_cwnd", json!("3 apples"), "a number of packets"),
        (
            "initial_reo_wnd",
            json!(1),
            "a duration with its unit, for example \"15 ms\"",
        ),
        (
            "initial_reo_wnd",
            json!("-1 ms"),
            "a duration with its unit, for example \"15 ms\"",
        ),
        (
            "initial_reo_wnd",
            json!("NaN ms"),
            "a duration with its unit, for example \"15 ms\"",
        ),
        (
            "initial_reo_wnd",
            json!("1"),
            "a duration with its unit, for example \"15 ms\"",
        ),
        (
            "beta",
            json!(0.2),
            "where a paper takes 0.2 away, write 0.8",
        ),
        ("beta", json!(1.0), "0.5 to 0.99"),
        ("c", json!(0), "0.001 to 100"),
        ("reo_wnd_share", json!(1.5), "0 to 1"),
        ("hystart", json!("on"), "`linux`"),
        ("hystart_min_samples", json!(0), "1..1000"),
        ("restart_ssthresh", json!("half"), "`keep`"),
    ] {
        let message = said(parameter, &value);
        assert!(
            message.contains(expected),
            "{parameter} = {value}: {message}"
        );
    }
}
