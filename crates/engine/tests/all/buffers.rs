//! Send and receive buffers on paths that they must fill, or cannot fill.

use anabranch_core::body::Length;
use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

/// Goodput in Mbit/s of one flow over a path without loss.
fn goodput(times: &str, link: &str, flow: &str) -> f64 {
    let text = format!(
        "{times}\n[link.l]\nbetween = [\"A\", \"B\"]\n{link}\n[flow.f]\nfrom = \"A\"\nto = \"B\"\n{flow}\n"
    );
    let resolved = Scenario::parse(&text, "buffers.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    let run = Simulation::<Length>::new(&resolved).run();
    let summary = run.expect("no hosts").summary;
    let figure = &summary.flows["f"]["goodput_mbit_s"];
    figure.as_f64().expect("a rate")
}

/// Stacks with receive window tuning, and segments up to the largest size. Detects a window that
/// grows only after ten segments per round trip, which may be more than the first window.
#[test]
fn receive_window_tuning_fills_a_path_with_any_segment_size() {
    let stacks = ["linux", "linux-2.6.35", "windows-7"];
    let sizes = [536, 1448, 6000, 6600, 8000, 8948, 16_000, 32_000, 65_483];
    // Rates in Mbit/s, and one-way delays.
    let paths = [(20.0, "1 ms"), (100.0, "5 ms"), (300.0, "0.5 ms")];
    let cases = stacks
        .iter()
        .flat_map(|stack| sizes.map(|mss| (stack, mss)))
        .flat_map(|(stack, mss)| paths.map(|path| (stack, mss, path)));
    for (stack, mss, (rate, delay)) in cases {
        let goodput = goodput(
            "duration = \"2 s\"\nwarmup = \"1 s\"",
            &format!("rate = \"{rate} Mbit/s\"\ndelay = \"{delay}\""),
            &format!("stack = \"{stack}\"\ntransport = {{ mss = \"{mss} bytes\" }}"),
        );
        assert!(
            goodput > 0.88 * rate,
            "{stack}, {mss} bytes, {rate} Mbit/s, {delay}: {goodput} Mbit/s"
        );
    }
}

/// The kernel's goodput in Mbit/s for an application that waits until a third of the send buffer of
/// 4 MiB is free: live runs, Linux 6.18. At 1 Gbit/s it depends on the write speed of the machine:
/// 248 to 270 were measured.
#[test]
fn goodput_with_a_full_send_buffer_equals_the_kernels() {
    let cases = [
        (("14 s", "4 s"), ("1 Gbit/s", "50 ms"), 260.0),
        (("30 s", "12 s"), ("200 Mbit/s", "150 ms"), 79.0),
        (("40 s", "20 s"), ("50 Mbit/s", "300 ms"), 36.5),
        (("8 s", "1 s"), ("100 Mbit/s", "20 ms"), 96.5),
    ];
    for ((duration, warmup), (rate, delay), expected) in cases {
        let goodput = goodput(
            &format!("duration = \"{duration}\"\nwarmup = \"{warmup}\""),
            &format!("rate = \"{rate}\"\ndelay = \"{delay}\""),
            "",
        );
        assert!(
            (goodput / expected - 1.0).abs() < 0.05,
            "{rate}, {delay}: {goodput} Mbit/s, not {expected}"
        );
    }
}
