//! Large files are refused at once or read in reasonable time.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the time is what is tested"
)]

use std::{fmt::Write, time::Instant};

use anabranch_scenario::{Extensions, MAX_BYTES, Scenario};

/// Processor time of this thread, independent of the load of the machine; real time if the system
/// does not report it.
fn spent_s(start: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanos = told
        .ok()
        .and_then(|told| told.split(' ').next()?.parse::<f64>().ok())
        .filter(|nanos| *nanos > 0.0);
    nanos.map_or_else(|| start.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

#[test]
fn a_hundred_megabytes_are_refused_at_once() {
    let text = "# nothing to see here\n".repeat(100_000_000 / 22 + 1);
    let start = Instant::now();
    let before = spent_s(start);
    let error = Scenario::parse(&text, "test.toml", &Extensions::default())
        .expect_err("this must be refused");
    insta::assert_snapshot!(error.to_string());
    assert!(spent_s(start) - before < 1.0);
}

#[test]
fn the_largest_file_is_read_in_reasonable_time() {
    let mut text = "duration = \"10 s\"\n[flow.main]\nfrom = \"n0\"\nto = \"m0\"\ncc = \"reno\"\nstack = \"rfc\"\n".to_owned();
    let mut link = 0;
    while text.len() < MAX_BYTES - 100 {
        let _ = write!(
            text,
            "[link.l{link}]\nbetween = [\"n{link}\", \"m{link}\"]\ndelay = \"1 ms\"\n"
        );
        link += 1;
    }
    let start = Instant::now();
    let before = spent_s(start);
    let resolved = Scenario::parse(&text, "test.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .expect("it is right");
    assert_eq!(resolved.links.len(), link);
    let took = spent_s(start) - before;
    assert!(took < 10.0, "{took} s");
}
