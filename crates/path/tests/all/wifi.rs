//! The Wi-Fi service, against Bianchi's equations and the arithmetic of 802.11n.

use anabranch_core::{
    parameters::Count,
    rng::Stream,
    units::{Duration, Fraction, Instant, Rate},
};
use anabranch_path::link::service::{
    Service,
    wifi::{AccessTime, Contention, Params, Wifi},
};

const RATE: Rate = Rate::from_mbit_per_s(65);
const BITS: u64 = 1_500 * 8;

fn station(params: &Params) -> Wifi {
    Wifi::new(params, RATE, Stream::new(1, "wifi"))
}

/// Mbit/s of a station that always has packets of 1,500 bytes; damaged ones are retransmitted.
fn saturated(params: &Params, packets: u64) -> f64 {
    let mut wifi = station(params);
    let draws = Stream::new(1, "frames");
    let (mut now, mut sent, mut tried) = (Instant::START, 0, 0);
    while sent < packets {
        now = wifi.finish(now, BITS);
        sent += u64::from(wifi.retransmit(now, &mut draws.at(tried)).is_none());
        tried += 1;
    }
    let seconds = now.saturating_since(Instant::START).as_secs_f64();
    (packets * BITS) as f64 / seconds / 1e6
}

fn of(stations: u32, aggregate: u32) -> Params {
    Params {
        stations: Count::new(stations),
        aggregate: Count::new(aggregate),
        longest: AccessTime::from_micros(100_000),
        ..Params::default()
    }
}

/// Microseconds of a frame: 1,500 and 46 bytes, to a multiple of four, at 65 Mbit/s.
const FRAME: f64 = 1548.0 * 8.0 / 65.0;
/// Preamble, SIFS, block acknowledgment.
const OVERHEAD: f64 = 36.0 + 16.0 + 32.0;
const SLOT: f64 = 9.0;
const DIFS: f64 = 34.0;

fn assert_near(measured: f64, expected: f64, share: f64) {
    assert!(
        (measured / expected - 1.0).abs() < share,
        "{measured}, not {expected}"
    );
}

/// A single station: DIFS, a mean backoff of 7.5 slots, and a full A-MPDU.
#[test]
fn a_single_station_reaches_the_throughput_of_its_overheads() {
    for frames in [1_u32, 2, 8, 32, 64] {
        let n = f64::from(frames);
        let expected = n * 12_000.0 / (DIFS + 7.5 * SLOT + OVERHEAD + n * FRAME);
        assert_near(saturated(&of(1, frames), 64_000), expected, 0.005);
    }
}

/// Bianchi 2000, equations 7 and 9, multiplied out.
#[test]
fn contention_is_the_fixed_point() {
    for (stations, window, doublings) in [
        (2, 32, 3),
        (5, 32, 5),
        (10, 16, 6),
        (50, 128, 3),
        (1, 16, 6),
    ] {
        let Contention { sends, collides } = Contention::of(stations, window, doublings);
        let (w, p) = (f64::from(window), collides);
        let doubled = 2.0 * p;
        let powered = (0..doublings).fold(1.0, |product, _| product * doubled);
        let expected =
            2.0 * (1.0 - doubled) / ((1.0 - doubled) * (w + 1.0) + p * w * (1.0 - powered));
        assert_near(sends, expected, 1e-6);
        let quiet = (1..stations).fold(1.0, |product, _| product * (1.0 - sends));
        assert!((collides - (1.0 - quiet)).abs() < 1e-12);
    }
    // A single station never collides, and sends in 2 of W + 1 slots.
    let alone = Contention::of(1, 16, 6);
    assert!(alone.collides.abs() < 1e-12);
    assert_near(alone.sends, 2.0 / 17.0, 1e-9);
}

/// Bianchi 2000, equation 13: the saturation throughput of all stations, shared equally.
fn saturation(stations: u32, frames: u32) -> f64 {
    let Contention { sends, .. } = Contention::of(stations, 16, 6);
    let n = f64::from(stations);
    let quiet = |count: u32| (0..count).fold(1.0, |product, _| product * (1.0 - sends));
    let some = 1.0 - quiet(stations);
    let one = n * sends * quiet(stations - 1) / some;
    let payload = f64::from(frames) * 12_000.0;
    let success = DIFS + OVERHEAD + f64::from(frames) * FRAME;
    let collision = DIFS + 36.0 + f64::from(frames) * FRAME;
    let slot = (1.0 - some) * SLOT + some * one * success + some * (1.0 - one) * collision;
    some * one * payload / slot
}

#[test]
fn stations_share_the_saturation_throughput() {
    for (stations, frames) in [(2, 1), (5, 1), (10, 1), (20, 1), (5, 16)] {
        let expected = saturation(stations, frames) / f64::from(stations);
        let measured = saturated(&of(stations, frames), 40_000 * u64::from(frames));
        assert_near(measured, expected, 0.06);
    }
}

#[test]
fn damaged_frames_take_their_share_of_the_air() {
    let mut params = of(1, 64);
    let clean = saturated(&params, 64_000);
    params.frame_error = Fraction::new(0.2);
    assert_near(saturated(&params, 64_000), 0.8 * clean, 0.02);
}

#[test]
fn an_idle_link_sends_single_frames() {
    let mut wifi = station(&of(1, 32));
    let mut now = Instant::START;
    let mut times = Vec::new();
    for _ in 0..2_000 {
        now = now + Duration::from_millis(5);
        let end = wifi.finish(now, BITS);
        times.push(end.saturating_since(now).as_secs_f64() * 1e6);
        now = end;
    }
    let mean = times.iter().sum::<f64>() / 2_000.0;
    assert_near(mean, DIFS + 7.5 * SLOT + OVERHEAD + FRAME, 0.02);
}

#[test]
fn an_a_mpdu_respects_the_maximum_airtime() {
    let params = Params {
        longest: AccessTime::from_micros(1_000),
        aggregate: Count::new(64),
        ..Params::default()
    };
    // Five frames of 190.5 µs.
    let expected = 5.0 * 12_000.0 / (DIFS + 7.5 * SLOT + OVERHEAD + 5.0 * FRAME);
    assert_near(saturated(&params, 50_000), expected, 0.01);
}
