//! The constants of the program: `struct aqm_config` of `bpf/aqm/red.h`.
//!
//! Each is the nearest integer of a value that is computed in floating point here, once.

use anabranch_core::{math, rng::Stream, units::text::Limit};
use anabranch_path::queue::red::Spacing;
use serde_json::{Value, json};

use super::Settings;

/// `AQM_QUEUE`: packets of the virtual queue.
pub const MOST_PACKETS: u64 = 16_384;
/// The longest history: below `AQM_HISTORY`, because a count of records is an index.
pub const MOST_RECORDS: u32 = 16_383;

/// Binary digits after the point.
const PROBABILITY: i32 = 60;
const LOGARITHM: i32 = 40;
const PACKETS: i32 = 40;
const BYTES: i32 = 24;
/// Number of a word: see `struct aqm_config`.
const DEADLINE: usize = 3;
const IN_BYTES: usize = 7;

/// The source of time and of random numbers.
#[derive(Debug, Clone, Copy)]
pub struct Inputs {
    /// Start of the time, in ns of `CLOCK_MONOTONIC`.
    pub origin: u64,
    /// Time from which on every packet passes.
    pub deadline: Option<u64>,
    /// The time is the packet's time stamp.
    pub is_test: bool,
    /// Key of the connections' slots.
    pub hash_key: u64,
    /// The stream of the random numbers.
    pub stream: Stream,
}

/// The words of a `struct aqm_config`, as octets.
#[must_use]
pub fn octets(settings: &Settings, inputs: &Inputs) -> Vec<u8> {
    let words = words(settings, inputs);
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

fn word(octets: &[u8], number: usize) -> u64 {
    let found = octets.as_chunks::<8>().0.get(number);
    found.map_or(0, |word| u64::from_ne_bytes(*word))
}

/// Removes the deadline from a configuration.
pub(super) fn remove_deadline(config: &mut [u8]) {
    let size = size_of::<u64>();
    if let Some(deadline) = config.get_mut(DEADLINE * size..(DEADLINE + 1) * size) {
        deadline.fill(0);
    }
}

/// The time until which a configuration has to be confirmed.
pub(super) fn deadline(config: &[u8]) -> Option<u64> {
    Some(word(config, DEADLINE)).filter(|time| *time != 0)
}

/// Whether the average of a configuration is in bytes.
pub(super) fn is_in_bytes(config: &[u8]) -> bool {
    word(config, IN_BYTES) != 0
}

/// Passes each of `struct aqm_counters` to `take`, by name.
pub(super) fn counters(octets: &[u8], in_bytes: bool, mut take: impl FnMut(&str, Value)) {
    const WHOLE: [&str; 8] = [
        "packets",
        "bytes",
        "dropped_packets",
        "dropped_bytes",
        "marked_packets",
        "full_packets",
        "aggregates",
        "other_frames",
    ];
    for (number, name) in WHOLE.into_iter().enumerate() {
        take(name, json!(word(octets, number)));
    }
    let real = |number, digits: i32| json!(word(octets, number) as f64 / power_of_2(digits));
    take("average", real(8, if in_bytes { BYTES } else { PACKETS }));
    take(
        "average_in",
        json!(if in_bytes { "bytes" } else { "packets" }),
    );
    take("waiting_packets", json!(word(octets, 9)));
    take("waiting_bytes", json!(word(octets, 10)));
    take("connections", json!(word(octets, 11)));
    take("active_connections", json!(word(octets, 12)));
    take("load", real(13, LOGARITHM));
}

fn words(settings: &Settings, inputs: &Inputs) -> Vec<u64> {
    let params = &settings.params;
    let common = params.common();
    let in_bytes = matches!(common.min_threshold, Limit::Bytes(_));
    let unit = if in_bytes { BYTES } else { PACKETS };
    let (min, max) = (amount(common.min_threshold), amount(common.max_threshold));
    let max_probability = common.max_probability.get();
    let weight = common.weight.get();
    let history = f64::from(params.history_length.get());
    let small = (common.idle_packet.bytes() / settings.rate).as_picos() as f64;
    let load_weight =
        f64::from(params.statistics_interval.get()) / f64::from(params.load_memory.get());
    let [low, high] = inputs.stream.key();
    let (limit_packets, limit_bytes) = match common.limit {
        Limit::Packets(packets) => (packets, u64::MAX),
        Limit::Bytes(bytes) => (u64::MAX, bytes.get()),
        Limit::Unlimited | Limit::Bdp(_) => (u64::MAX, u64::MAX),
    };
    let [byte_time, byte_part] = byte_time(settings.rate.bits_per_s());
    let mut words = vec![
        byte_time,
        byte_part,
        inputs.origin,
        inputs.deadline.unwrap_or(0),
        u64::from(inputs.is_test),
        inputs.hash_key,
        u64::from(low) | u64::from(high) << 32,
        u64::from(in_bytes),
        limit_packets,
        limit_bytes,
    ];
    words.extend(scale(weight, 0));
    // An idle period divides the average by 2^(time / small · -log2(1 - weight)).
    let decay = -math::log1p(-weight) / std::f64::consts::LN_2 / small;
    words.extend(scale(decay, LOGARITHM));
    words.extend([
        fixed(min, unit),
        fixed(max, unit),
        fixed(if common.gentle { 2.0 * max } else { max }, unit),
        fixed(max_probability, PROBABILITY),
    ]);
    words.extend(scale(max_probability / (max - min), PROBABILITY - unit));
    words.extend(scale((1.0 - max_probability) / max, PROBABILITY - unit));
    words.extend([
        spacing(common.spacing),
        u64::from(common.ecn),
        u64::from(common.hard_drop),
    ]);
    words.extend(if in_bytes && common.scale_by_size {
        scale(1.0 / common.reference_packet.bytes().get() as f64, 0)
    } else {
        [0, 0]
    });
    let (exponent, steep) = (params.exponent.get(), params.steep_exponent.get());
    words.push(fixed(exponent, LOGARITHM));
    words.push(signed(steep - exponent, LOGARITHM));
    words.extend(scale(1.0 / params.steep_at.get(), LOGARITHM - PROBABILITY));
    words.extend([
        fixed(params.sparing_exponent.get(), LOGARITHM),
        fixed(params.load_exponent.get(), LOGARITHM),
        u64::from(params.record_interval.get()),
        u64::from(params.statistics_interval.get()),
        u64::from(params.history_length.get()),
        signed(math::log2(history / 10.0), LOGARITHM),
    ]);
    words.extend(scale(load_weight.min(1.0), 0));
    for step in [256.0, 65_536.0] {
        words.extend((0..256).map(|i| fixed(math::powf(2.0, f64::from(i) / step), 63)));
    }
    // No logarithm of 0 is used.
    words.push(0);
    let logs = (1..=MOST_RECORDS + 1).map(|i| fixed(math::log2(f64::from(i)), LOGARITHM));
    words.extend(logs);
    words
}

/// Time of a byte at a rate in bit/s: whole ps, and the rest with 64 digits, rounded up.
#[expect(clippy::cast_possible_truncation, reason = "the rest is below 1")]
fn byte_time(rate: u64) -> [u64; 2] {
    const PS: u64 = 8_000_000_000_000;
    let rest = (u128::from(PS % rate) << 64).div_ceil(u128::from(rate));
    [PS / rate, rest as u64]
}

const fn spacing(spacing: Spacing) -> u64 {
    match spacing {
        Spacing::Uniform => 0,
        Spacing::Drawn => 1,
        Spacing::Geometric => 2,
        Spacing::Waiting => 3,
        Spacing::Summed => 4,
    }
}

/// The number of a threshold, in its unit.
fn amount(limit: Limit) -> f64 {
    match limit {
        Limit::Packets(packets) => packets as f64,
        Limit::Bytes(bytes) => bytes.get() as f64,
        Limit::Unlimited | Limit::Bdp(_) => f64::INFINITY,
    }
}

/// 2 to the power `n`, which is in the range of exponents.
fn power_of_2(n: i32) -> f64 {
    f64::from_bits((1023 + i64::from(n)).cast_unsigned() << 52)
}

/// `value` with `digits` binary digits after the point.
#[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
#[expect(clippy::cast_sign_loss, reason = "the values are not negative")]
fn fixed(value: f64, digits: i32) -> u64 {
    (value * power_of_2(digits)).round() as u64
}

/// As [`fixed`], in two's complement.
fn signed(value: f64, digits: i32) -> u64 {
    if value < 0.0 {
        fixed(-value, digits).wrapping_neg()
    } else {
        fixed(value, digits)
    }
}

/// `struct aqm_scale` of a factor that also adds `digits` digits after the point. Infinity
/// saturates every product.
fn scale(factor: f64, digits: i32) -> [u64; 2] {
    if factor < f64::MIN_POSITIVE {
        return [0, 0];
    }
    if factor.is_infinite() {
        return [u64::MAX, 0];
    }
    // The factor is fraction · 2^(exponent - 63), and the fraction's highest bit is set.
    let bits = factor.to_bits();
    let exponent = (bits >> 52).cast_signed() - 1023;
    let fraction = (bits | 1 << 52) << 11;
    let right = 63 - exponent - i64::from(digits);
    [fraction, right.cast_unsigned()]
}
