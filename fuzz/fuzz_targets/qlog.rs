//! Any octets as a qlog, and logs of arbitrary packets, acknowledgments and losses: the diagnosis does
//! not panic, and its limits sum to the duration.
#![cfg_attr(feature = "libfuzzer", no_main)]
#![allow(dead_code, reason = "the module also checks captures")]

mod diagnosis;

use std::{fmt::Write as _, io::Cursor};

use anabranch_diagnose::log::diagnose_log;
use anabranch_fuzz::fuzz_target;

/// Octets of input per event.
const STEP: usize = 8;

fuzz_target!(|input: &[u8]| {
    check(input.to_vec());
    check(log(input).into_bytes());
});

fn check(content: Vec<u8>) {
    match diagnose_log(Cursor::new(content), "fuzzed", diagnosis::BOUNDS, || false) {
        Ok(report) => diagnosis::check_connections(&report),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A log of arbitrary events, in the format of the first octet.
fn log(input: &[u8]) -> String {
    let (form, steps) = input.split_first().unwrap_or((&0, &[]));
    let vantage = ["client", "server", "unknown"][usize::from(form % 3)];
    let mut text = format!(
        r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{{"vantage_point":{{"type":"{vantage}"}}}}}}"#
    );
    let mut time = 0.0;
    for step in steps.chunks_exact(STEP) {
        let [kind, by, a, b, c, d, e, f] = step else {
            continue;
        };
        time += f64::from(*by) - 2.0;
        let (name, data) = event(*kind, [*a, *b, *c, *d, *e, *f].map(u64::from));
        let _ = write!(
            text,
            "\n{{\"time\":{time},\"name\":\"{name}\",\"data\":{data}}}"
        );
    }
    text
}

fn event(kind: u8, [a, b, c, d, e, f]: [u64; 6]) -> (&'static str, String) {
    let name = if kind & 1 == 0 {
        "packet_sent"
    } else {
        "packet_received"
    };
    let name = if kind & 2 == 0 {
        name
    } else {
        "packet_received"
    };
    let packet = match kind >> 6 {
        0 => "initial",
        1 => "handshake",
        _ => "1RTT",
    };
    let header = format!(r#"{{"packet_type":"{packet}","packet_number":{a}}}"#);
    let frame = match kind >> 2 & 7 {
        0 | 1 => format!(
            r#"{{"frame_type":"stream","stream_id":{},"offset":{},"length":{}}}"#,
            b & 7,
            c * 100,
            d * 10 << (e & 31)
        ),
        2 | 3 => format!(r#"{{"frame_type":"ack","acked_ranges":[[{b},{c}],[{d}]]}}"#),
        4 => format!(r#"{{"frame_type":"max_data","maximum":{}}}"#, b << (c & 63)),
        5 => r#"{"frame_type":"crypto","offset":0}"#.to_owned(),
        6 => {
            return (
                "packet_lost",
                format!(r#"{{"header":{header},"trigger":"time_threshold"}}"#),
            );
        }
        _ => {
            return (
                "metrics_updated",
                format!(
                    r#"{{"congestion_window":{},"bytes_in_flight":{}}}"#,
                    b * 1000,
                    c * 1000
                ),
            );
        }
    };
    let frames = if f & 1 == 0 {
        format!(r#","frames":[{frame}]"#)
    } else {
        String::new()
    };
    (
        name,
        format!(
            r#"{{"header":{header},"raw":{{"length":{}}}{frames}}}"#,
            d * 10
        ),
    )
}
