//! The queue's program decides as the simulator's queue does for the same arrivals, packet by packet:
//! its decision compiled for this machine, and the program in the kernel.

mod arrivals;
mod native;

use std::process::Command;

use anabranch_bpf::aqm::{
    self, Settings,
    config::{self, Inputs},
    device::{self, Device},
};
use anabranch_core::{interrupt::Interrupt, rng::Stream};
use anabranch_path::queue;
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::{Map, Value, json};

use self::{
    arrivals::{Arrival, Verdict, arrivals, simulated},
    native::Native,
};

const SEED: u64 = 5;
const PACKETS: usize = 60_000;

fn options(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(options) => options,
        _ => panic!("an object"),
    }
}

fn settings(rate: &str, value: Value) -> Settings {
    Settings::read("share-red", rate, &options(value)).expect("valid")
}

fn inputs() -> Inputs {
    Inputs {
        origin: 0,
        deadline: None,
        is_test: true,
        hash_key: 11,
        stream: Stream::new(SEED, "queue"),
    }
}

/// Rates and parameters: each of the queue's rules decides in one of them.
fn cases() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("defaults", "100 Mbit/s", json!({})),
        (
            "the study's thresholds",
            "100 Mbit/s",
            json!({ "min_threshold": "1 packets", "max_threshold": "9999 packets", "limit": "10000 packets",
                    "max_probability": 0.2 }),
        ),
        (
            "a long queue that marks",
            "50 Mbit/s",
            json!({ "min_threshold": "20 packets", "max_threshold": "200 packets", "limit": "300 packets", "ecn": true,
                    "gentle": true, "hard_drop": false }),
        ),
        (
            "bytes, sizes and a rate that divides no packet",
            "97.301 Mbit/s",
            json!({ "min_threshold": "30 kB", "max_threshold": "300 kB", "limit": "400 kB", "ecn": true,
                    "weight": 0.01 }),
        ),
        (
            "a short queue",
            "10 Mbit/s",
            json!({ "limit": "8 packets", "min_threshold": "2 packets", "max_threshold": "7 packets" }),
        ),
        (
            "uniform gaps",
            "100 Mbit/s",
            json!({ "spacing": "uniform", "max_threshold": "60 packets", "load_exponent": 0.5 }),
        ),
        (
            "one number for each gap",
            "100 Mbit/s",
            json!({ "spacing": "drawn", "max_threshold": "60 packets", "sparing_exponent": 0.0 }),
        ),
        (
            "independent drops",
            "100 Mbit/s",
            json!({ "spacing": "geometric", "max_threshold": "60 packets", "exponent": 3.0, "steep_exponent": 1.5 }),
        ),
        (
            "gaps of one to two means",
            "100 Mbit/s",
            json!({ "spacing": "waiting", "max_threshold": "60 packets", "history_length": 77, "record_interval": 1 }),
        ),
        (
            "an average of the last packet only",
            "100 Mbit/s",
            json!({ "weight": 1.0, "statistics_interval": 7, "load_memory": 5 }),
        ),
    ]
}

fn expected(settings: &Settings, sent: &[Arrival]) -> Vec<Verdict> {
    let config = queue::Config::ShareRed(settings.params.clone());
    simulated(&config, settings.rate, inputs().stream, sent)
}

/// The first packet about which two lists differ.
fn difference(expected: &[Verdict], found: &[Verdict]) -> Option<usize> {
    assert_eq!(expected.len(), found.len());
    expected.iter().zip(found).position(|(a, b)| a != b)
}

#[test]
fn the_native_decision_is_the_simulators_for_every_packet() {
    let native = Native::new();
    for (name, rate, value) in cases() {
        let settings = settings(rate, value);
        for seed in 1..=3 {
            let sent = arrivals(seed, PACKETS, settings.rate);
            let expected = expected(&settings, &sent);
            let found = native.decide(&config::octets(&settings, &inputs()), &sent);
            let signals = expected.iter().filter(|one| **one != Verdict::Pass).count();
            assert!(signals > 100, "{name}: {signals} drops and marks");
            if let Some(at) = difference(&expected, &found) {
                panic!(
                    "{name}, seed {seed}, packet {at} of {PACKETS}: {:?} became {:?}",
                    expected[at], found[at]
                );
            }
            println!("{name}, seed {seed}: {signals} drops and marks, all alike");
        }
    }
}

#[test]
fn the_comparison_detects_a_changed_parameter() {
    let native = Native::new();
    let original = settings("100 Mbit/s", json!({}));
    let sent = arrivals(1, PACKETS, original.rate);
    let expected = expected(&original, &sent);
    for value in [
        json!({ "weight": 0.002_01 }),
        json!({ "exponent": 1.01 }),
        json!({ "history_length": 3_990 }),
        json!({ "record_interval": 4 }),
        json!({ "load_memory": 8_100 }),
        json!({ "max_probability": 0.1001 }),
    ] {
        let changed = config::octets(&settings("100 Mbit/s", value.clone()), &inputs());
        let found = native.decide(&changed, &sent);
        assert!(difference(&expected, &found).is_some(), "{value}");
    }
}

/// The error bounds that docs/design/079-queue-at-a-device.md states.
#[test]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a fixed point of the program"
)]
fn powers_and_logarithms_have_the_stated_error() {
    let native = Native::new();
    let config = config::octets(&settings("100 Mbit/s", json!({})), &inputs());
    let (mut power, mut log) = (0.0_f64, 0.0_f64);
    let one = (1_u64 << 60) as f64;
    let unit = (1_u64 << 40) as f64;
    for step in 1..200_000_u32 {
        // Exponents from -16 to 0: above, a product of 1 saturates.
        let exponent = -(f64::from(step) * 79.3 % 16.0);
        let fixed = (exponent * unit) as i64;
        let found = native.times_power(&config, 1 << 60, fixed) as f64 / one;
        let exact = (fixed as f64 / unit).exp2();
        power = power.max((found / exact - 1.0).abs());
        let x = u64::from(step).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
        if x > 0 {
            let found = native.log(&config, x) as f64 / unit;
            log = log.max((found - (x as f64 / unit).log2()).abs());
        }
    }
    println!("power: {power:e} of the value; logarithm: {log:e}");
    // From 2^-16 on, a Q60 has 44 digits.
    assert!(power < 2.0_f64.powi(-42), "{power:e}");
    assert!(log < 2.0_f64.powi(-39), "{log:e}");
}

#[test]
fn the_program_in_the_kernel_decides_alike() {
    let first = settings("100 Mbit/s", json!({}));
    let start = |settings: &Settings| {
        let config = config::octets(settings, &inputs());
        aqm::attach(&config, "{}", 0, &Interrupt::default())
    };
    if let Err(error) = start(&first) {
        assert!(
            std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
            "ANABRANCH_LIVE=required: {error}"
        );
        eprintln!("SKIPPED: {error}");
        return;
    }
    for (name, rate, value) in cases() {
        let settings = settings(rate, value);
        let sent = arrivals(4, PACKETS / 3, settings.rate);
        let expected = expected(&settings, &sent);
        let queue = start(&settings).expect("the first was loaded");
        let found: Vec<Verdict> = sent
            .iter()
            .map(|arrival| {
                let result = queue.run(&arrival.frame(), arrival.time_ns);
                arrival.verdict(result.expect("it runs"))
            })
            .collect();
        // A program's result does not show a mark; the counter does.
        let plain: Vec<Verdict> = expected.iter().map(|one| one.without_mark()).collect();
        if let Some(at) = difference(&plain, &found) {
            panic!(
                "{name}, packet {at}: {:?} became {:?}",
                plain[at], found[at]
            );
        }
        let counted = device::counters(queue.program()).expect("they are readable");
        let count = |verdict| expected.iter().filter(|one| **one == verdict).count();
        assert_eq!(counted["packets"], sent.len(), "{name}");
        assert_eq!(counted["dropped_packets"], count(Verdict::Drop), "{name}");
        assert_eq!(counted["marked_packets"], count(Verdict::Mark), "{name}");
        println!("{name}: {} packets alike", sent.len());
    }
}

/// The kernel's side of `anabranch aqm`, in a network namespace of this thread.
#[test]
fn a_queue_is_attached_confirmed_and_detached() {
    let settings = settings("2 Mbit/s", json!({}));
    let start = aqm::attach(
        &config::octets(&settings, &inputs()),
        "{}",
        0,
        &Interrupt::default(),
    );
    if let Err(error) = start {
        assert!(
            std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
            "ANABRANCH_LIVE=required: {error}"
        );
        eprintln!("SKIPPED: {error}");
        return;
    }
    // SAFETY: only the network namespace changes; no file descriptor is shared or lost.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root may do that");
    let made = Command::new("ip")
        .args(["link", "add", "out", "type", "veth", "peer", "name", "in"])
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let device = Device::named("out").expect("it was made");
    let attach = |within| device.attach("share-red", &settings, within, &Interrupt::default());
    let is_attached = || device.status().expect("root may read it").is_some();

    let kept = attach(None).expect("the kernel takes it");
    assert!(kept.link.is_none() && kept.path.exists() && is_attached());
    let twice = attach(None).expect_err("one is attached").to_string();
    assert!(twice.contains("anabranch aqm detach out"), "{twice}");
    device.detach().expect("one is attached");
    assert!(!kept.path.exists() && !is_attached());
    let none = device.detach().expect_err("none is attached").to_string();
    assert!(none.contains("no queue is attached to `out`"), "{none}");

    let held = attach(Some(60)).expect("the kernel takes it");
    assert!(held.link.is_some() && !held.path.exists() && is_attached());
    drop(held);
    assert!(!is_attached(), "the last descriptor holds it");

    let held = attach(Some(60)).expect("the kernel takes it");
    assert!(device.confirm().expect("one is attached"));
    assert!(!device.confirm().expect("one is attached"));
    drop(held);
    assert!(is_attached(), "the file holds it");
    device.detach().expect("one is attached");
    assert!(!is_attached());
}

#[test]
fn wrong_settings_are_refused_with_what_to_type() {
    for (kind, rate, value, expected) in [
        ("share-rde", "1 Mbit/s", json!({}), "no queue `share-rde`"),
        ("share-red", "fast", json!({}), "--rate"),
        (
            "share-red",
            "1 bit/s",
            json!({}),
            "from 1 kbit/s to 1 Tbit/s",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "min_treshold": "5 packets" }),
            "did you mean `min_threshold`?",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "weight": 3 }),
            "--set weight=3",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "limit": "2 bdp" }),
            "give packets or bytes",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "limit": "99999 packets" }),
            "16384 packets at most",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "history_length": 20_000 }),
            "16383 packets at most",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "adaptive": true }),
            "leave `adaptive` out",
        ),
        (
            "share-red",
            "9 Mbit/s",
            json!({ "max_threshold": "4 packets" }),
            "more than 5 packets",
        ),
    ] {
        let error = Settings::read(kind, rate, &options(value)).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
