//! Memory of hostile qlogs.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fmt::Write as _,
    io::Cursor,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use anabranch_diagnose::{Bounds, log::diagnose_log};

/// Counts the memory of the process.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(used, Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Megabytes that a diagnosis takes, without the file.
fn megabytes(file: String) -> usize {
    let mut file = Cursor::new(file.into_bytes());
    let before = USED.load(Relaxed);
    PEAK.store(before, Relaxed);
    let bounds = Bounds {
        connections: 100,
        ..Bounds::DEFAULT
    };
    let _ = diagnose_log(&mut file, "hostile.qlog", bounds, || false);
    (PEAK.load(Relaxed) - before) >> 20
}

/// The texts of numbers below `count`.
fn listed(count: u32, text: impl Fn(u32) -> String) -> String {
    (0..count).map(text).collect()
}

const HEADER: &str = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"client"}}}"#;
const EVENT: &str = r#""time":1,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":7}}"#;

#[test]
fn names_of_groups_take_no_memory() {
    let mut file = HEADER.to_owned();
    let long = "g".repeat(20_000);
    for k in 0..1_500 {
        let _ = write!(file, "\n{{{EVENT},\"group_id\":\"{k}{long}\"}}");
    }
    let used = megabytes(file);
    assert!(used < 8, "{used} MB");
}

#[test]
fn keys_of_headers_take_bounded_memory() {
    let keys = listed(400_000, |k| format!("\"key-{k}\":{{}},"));
    let long = format!("\"{}\":1,", "k".repeat(8 << 20));
    let columns = listed(20_000, |k| format!("\"column {k}\","));
    let trace = format!(r#"{{"event_fields":[{columns}"data"],"events":[]}}"#);
    let files = [
        format!(r#"{{"qlog_version":"0.3",{long}"traces":[{{"events":[{{{EVENT}}}]}}]}}"#),
        format!(r#"{{"qlog_version":"0.3","trace":{{"common_fields":{{{keys}"a":1}}}}}}"#),
        format!(r#"{{"qlog_version":"0.3",{keys}"traces":[{{{keys}"events":[{{{EVENT}}}]}}]}}"#),
        format!(
            r#"{{"qlog_version":"0.3","traces":[{}]}}"#,
            vec![trace; 50].join(",")
        ),
    ];
    for (number, file) in files.into_iter().enumerate() {
        let used = megabytes(file);
        assert!(used < 40, "{number}: {used} MB");
    }
}

#[test]
fn a_deep_or_wide_event_takes_bounded_memory() {
    for element in ["{\"\":1},", "[[],[]],", "1,", "{\"frame_type\":\"ack\"},"] {
        let frames = element.repeat((8 << 20) / element.len());
        let file = format!("{HEADER}\n{{{EVENT},\"frames\":[{frames}1]}}");
        let used = megabytes(file);
        assert!(used < 24, "{element}: {used} MB");
    }
}
