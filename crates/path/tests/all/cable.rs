//! The upstream of a cable modem, against the arithmetic of requests and MAPs and the delays that
//! CableLabs publishes.

use anabranch_core::{
    rng::Stream,
    units::{Duration, Fraction, Instant, Rate},
};
use anabranch_path::link::service::{
    Service,
    cable::{Cable, MapInterval, Params, RequestTime},
};

const RATE: Rate = Rate::from_mbit_per_s(50);
const BITS: u64 = 100 * 8;

/// Milliseconds from arrival to the end of transmission, for packets that find an idle modem.
fn idle_delays(params: &Params, seed: u64, packets: u64) -> Vec<f64> {
    let mut modem = Cable::new(params, RATE, Stream::new(seed, "cable"));
    let mut draw = Stream::new(seed, "arrivals").at(0);
    let mut at = Instant::START;
    let delays = (0..packets).map(|_| {
        at = at + Duration::from_millis(200) + draw.uniform_duration(Duration::from_millis(100));
        modem.arrived(at);
        modem.finish(at, BITS).saturating_since(at).as_millis_f64()
    });
    delays.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn assert_near(measured: f64, expected: f64, share: f64) {
    assert!(
        (measured / expected - 1.0).abs() < share,
        "{measured}, not {expected}"
    );
}

/// Half a backoff window, the request, half a MAP interval, the MAP's lead, and the packet.
#[test]
fn an_idle_modem_waits_for_request_and_grant() {
    for (map, lead, request) in [
        (2_000, 1_200, 450),
        (1_000, 900, 300),
        (5_000, 3_000, 1_000),
    ] {
        let params = Params {
            map_interval: MapInterval::from_micros(map),
            map_lead: RequestTime::from_micros(lead),
            request_delay: RequestTime::from_micros(request),
            backoff: RequestTime::from_micros(map),
            ..Params::default()
        };
        let delays = idle_delays(&params, 1, 20_000);
        let (map, lead, request) = (map as f64 / 1e3, lead as f64 / 1e3, request as f64 / 1e3);
        let packet = BITS as f64 / 50e3;
        assert_near(mean(&delays), map + request + lead + packet, 0.01);
        let least = delays.iter().copied().fold(f64::MAX, f64::min);
        let most = delays.iter().copied().fold(0.0, f64::max);
        assert!(least >= request + lead + packet, "{least}");
        assert!(most <= 2.0 * map + request + lead + packet, "{most}");
    }
}

/// White, Sundaresan and Briscoe 2019: the media acquisition of DOCSIS 3.1 takes 2 to 8 ms (not
/// confirmed: docs/design/039-media.md).
#[test]
fn media_acquisition_takes_two_to_eight_milliseconds() {
    for seed in 0..20 {
        let mut delays = idle_delays(&Params::default(), seed, 2_000);
        delays.sort_by(f64::total_cmp);
        // The middle nine tenths of the packets.
        let (low, high) = (delays[100], delays[1_899]);
        assert!(low > 2.0 && high < 8.0, "seed {seed}: {low} to {high}");
    }
}

/// Each collision costs the window, the request, the wait for a MAP and its lead once more.
#[test]
fn a_collision_costs_another_round() {
    let params = |collision| Params {
        collision: Fraction::new(collision),
        // The windows hardly grow, so that all rounds take equally long.
        backoff: RequestTime::from_micros(1),
        ..Params::default()
    };
    let without = mean(&idle_delays(&params(0.0), 3, 20_000));
    for collision in [0.1, 0.5] {
        let with = mean(&idle_delays(&params(collision), 3, 40_000));
        // A retry is sent 1.2 ms after a MAP (the lead) and arrives 0.45 ms later, 0.35 ms before
        // the next MAP: a round takes one MAP interval.
        let expected = without + collision / (1.0 - collision) * 2.0;
        assert_near(with, expected, 0.02);
    }
}

/// Requests overlap: the modem sends at its rate while packets wait.
#[test]
fn a_busy_modem_sends_without_gaps() {
    let mut modem = Cable::new(&Params::default(), RATE, Stream::new(5, "cable"));
    let size = 1_500 * 8;
    let (mut now, mut count) = (Instant::START, 0_u64);
    // Packets come at 40 Mbit/s.
    let arrival = |count: u64| Instant::from_nanos(count * 300_000);
    let mut longest = 0.0_f64;
    while count < 20_000 {
        let arrived = arrival(count);
        modem.arrived(arrived);
        now = modem.finish(now.max(arrived), size);
        longest = longest.max(now.saturating_since(arrived).as_millis_f64());
        count += 1;
    }
    // A request waits for the next segment or its backoff, the MAP and its lead, and the backlog
    // that built up meanwhile.
    assert!(longest < 8.0, "{longest}");

    let mut modem = Cable::new(&Params::default(), RATE, Stream::new(5, "cable"));
    let mut now = Instant::START;
    for _ in 0..10_000 {
        modem.arrived(Instant::START);
        now = modem.finish(now, size);
    }
    assert_near(10_000.0 * size as f64 / now.as_secs_f64(), 50e6, 0.003);
}

/// A request covers all packets that arrive before it is sent.
#[test]
fn a_request_covers_all_waiting_packets() {
    let mut modem = Cable::new(&Params::default(), RATE, Stream::new(9, "cable"));
    let at = Instant::from_millis(100);
    modem.arrived(at);
    let first = modem.finish(at, BITS);
    modem.arrived(at);
    let second = modem.finish(first, BITS);
    assert_eq!(second.saturating_since(first), Duration::from_micros(16));
}
