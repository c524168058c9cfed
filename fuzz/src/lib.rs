//! How a target runs: in libFuzzer, or without the feature `libfuzzer` in a program that any
//! compiler builds. That program has no coverage to guide it. It finds crude faults in seconds.

#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys::fuzz_target;

/// Defines `main`, which runs the target with pseudo-random inputs.
#[cfg(not(feature = "libfuzzer"))]
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:expr) => {
        fn main() {
            $crate::brief(|$input: &[u8]| $body);
        }
    };
}

/// Runs a target with the empty input, and then for `FUZZ_SECONDS` (2) with pseudo-random ones. A
/// failure names the input's number; the sequence is the same each time.
#[cfg(not(feature = "libfuzzer"))]
pub fn brief(target: impl Fn(&[u8])) {
    use std::{env, panic, process, time};
    const LARGEST: u64 = 2_048;
    let seconds = env::var("FUZZ_SECONDS").ok();
    let seconds: f64 = seconds.and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |below: u64| {
        // xorshift64* (Vigna 2016).
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % below
    };
    let begin = time::Instant::now();
    let mut input: Vec<u8> = Vec::new();
    let mut number = 0_u64;
    while number == 0 || begin.elapsed().as_secs_f64() < seconds {
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| target(&input)));
        if outcome.is_err() {
            let hex: String = input.iter().map(|octet| format!("{octet:02x}")).collect();
            eprintln!("input {number} fails: {hex:?}");
            process::exit(1);
        }
        number += 1;
        // A new input, or a change of the last one.
        if number % 4 == 1 || input.is_empty() {
            let most = 1 + draw(LARGEST);
            let length = draw(most);
            let small = draw(2) == 0;
            input = (0..length)
                .map(|_| draw(if small && number % 3 == 0 { 8 } else { 256 }) as u8)
                .collect();
        } else {
            for _ in 0..1 + draw(8) {
                let at = draw(input.len() as u64) as usize;
                input[at] = draw(256) as u8;
            }
        }
    }
    println!("{number} inputs");
}
