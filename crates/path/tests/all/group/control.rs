//! Controllers, recomputed from their definitions at random arrivals.

use anabranch_core::{
    parameters::Count,
    units::{Duration, Instant, Rate},
};
use anabranch_path::group::{
    control,
    control::{
        Config, Controller, Init, Percentile, Share, Span, Utilization, Weight, ewma_hysteresis,
        moving_average, oracle, oracle::optimum, peak_forecast, peak_percentile,
    },
};
use proptest::prelude::*;

const MEMBERS: u32 = 8;
const RATE: Rate = Rate::from_mbit_per_s(8); // A byte per microsecond.

fn init() -> Init<'static> {
    Init {
        rate: RATE,
        members: MEMBERS,
        lead: Duration::ZERO,
        arrivals: None,
    }
}

/// (microseconds, bytes), in order of time, some on the edges of milliseconds.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![4 => 0..400_u64, 1 => 0..30_000_u64];
    prop::collection::vec((gap, 40..=1_500_u32, prop::bool::weighted(0.1)), 0..1_500).prop_map(
        |packets| {
            let mut at = 0;
            let place = |(gap, bytes, edge): (u64, u32, bool)| {
                at += gap;
                if edge {
                    at = at.next_multiple_of(1_000);
                }
                (at, bytes)
            };
            packets.into_iter().map(place).collect()
        },
    )
}

/// Decisions of a controller and their times, called as by the engine: before the arrivals of the
/// same instant.
fn decisions(config: &Config, arrivals: &[(u64, u32)], end: u64) -> Vec<(u64, u32)> {
    let mut control = config.build(&init());
    let mut decided = Vec::new();
    let mut decide = |control: &mut control::AnyController, until: u64| {
        while control.next_decision() <= Instant::START + Duration::from_micros(until) {
            let at = control.next_decision();
            decided.push((at.as_picos() / 1_000_000, control.decide(at)));
        }
    };
    for &(at, bytes) in arrivals {
        decide(&mut control, at);
        control.on_arrival(Instant::START + Duration::from_micros(at), bytes);
    }
    decide(&mut control, end);
    decided
}

/// Bytes that arrive from `from` (inclusive) to `to` (exclusive).
fn bytes(arrivals: &[(u64, u32)], from: u64, to: u64) -> u64 {
    let inside = arrivals.iter().filter(|(at, _)| (from..to).contains(at));
    inside.map(|(_, bytes)| u64::from(*bytes)).sum()
}

/// Converts to a length.
fn count(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

/// Returns ⌈x⌉.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small and not negative"
)]
fn up(x: f64) -> u64 {
    x.ceil() as u64
}

fn clamp(members: u64) -> u32 {
    u32::try_from(members).unwrap_or(u32::MAX).clamp(1, MEMBERS)
}

proptest! {
    /// Detects a bin that is too long, a section that begins late, an arrival at an edge that
    /// counts before it, and an interpolated percentile.
    #[test]
    fn peak_percentile(
        arrivals in arrivals(),
        bin in 1..4_u64,
        bins in 1..6_u64,
        sections in 1..6_u64,
        percentile in prop_oneof![Just(0.0), Just(100.0), 0.0..100.0],
    ) {
        let [bin, section] = [bin * 1_000, bin * bins * 1_000];
        let interval = section * sections;
        let config = Config::PeakPercentile(peak_percentile::Params {
            bin: Span::from_micros(bin),
            section: Span::from_micros(section),
            interval: Span::from_micros(interval),
            percentile: Percentile::new(percentile),
        });
        prop_assert!(config.check().is_ok());
        let end = arrivals.last().map_or(0, |(at, _)| *at) + 2 * interval;
        let expected: Vec<(u64, u32)> = (1..=end / interval)
            .map(|k| {
                let peak = |from: u64| {
                    let bins = (from..from + section).step_by(count(bin));
                    bins.map(|from| bytes(&arrivals, from, from + bin)).max().unwrap_or(0)
                };
                let start = (k - 1) * interval;
                let peaks: Vec<u64> =
                    (start..start + interval).step_by(count(section)).map(peak).collect();
                // The smallest peak that at least `percentile` percent of the peaks do not exceed.
                let enough = |value: &&u64| {
                    let below = peaks.iter().filter(|peak| peak <= value).count();
                    below as f64 * 100.0 >= percentile * peaks.len() as f64 - 1e-9
                };
                let capacity = peaks.iter().filter(enough).min().copied().unwrap_or(0);
                (k * interval, clamp(capacity.div_ceil(bin)))
            })
            .collect();
        prop_assert_eq!(decisions(&config, &arrivals, end), expected);
    }

    #[test]
    fn moving_average(arrivals in arrivals(), window in 1..6_u32, utilization in 0.05..1.0_f64) {
        let interval = 5_000;
        let config = Config::MovingAverage(moving_average::Params {
            interval: Span::from_micros(interval),
            window: Count::new(window),
            utilization: Utilization::new(utilization),
        });
        let end = arrivals.last().map_or(0, |(at, _)| *at) + 3 * interval;
        for (at, members) in decisions(&config, &arrivals, end) {
            let ended = at / interval;
            let over = ended.min(u64::from(window));
            let sum = bytes(&arrivals, at - over * interval, at) as f64;
            // A member carries a byte per microsecond.
            let wanted = sum / over as f64 / (interval as f64 * utilization);
            let expected = clamp(up(wanted));
            let edge = (wanted - wanted.round()).abs() < 1e-9;
            prop_assert!(members == expected || edge, "{members} of {wanted} at {at}");
        }
    }

    #[test]
    fn ewma_hysteresis(arrivals in arrivals(), weight in 0.01..1.0_f64, low in 0.1..0.5_f64, more in 0.05..0.5_f64) {
        let interval = 5_000_u64;
        let high = low + more;
        let config = Config::EwmaHysteresis(ewma_hysteresis::Params {
            interval: Span::from_micros(interval),
            weight: Weight::new(weight),
            high: Utilization::new(high),
            low: Utilization::new(low),
        });
        prop_assert!(config.check().is_ok());
        let end = arrivals.last().map_or(0, |(at, _)| *at) + 20 * interval;
        let mut on = MEMBERS;
        let mut mean = None;
        for (at, members) in decisions(&config, &arrivals, end) {
            let rate = bytes(&arrivals, at - interval, at) as f64 / interval as f64;
            let now = mean.map_or(rate, |mean: f64| (1.0 - weight) * mean + weight * rate);
            mean = Some(now);
            // Distances to the two thresholds, and whether they are too close to decide.
            let edges = [now - high * f64::from(on), now - low * f64::from(on - 1)];
            let close = edges.iter().any(|edge| edge.abs() < 1e-9)
                || (now / high - (now / high).round()).abs() < 1e-9;
            let expected = if now > high * f64::from(on) {
                clamp(up(now / high))
            } else if on > 1 && now < low * f64::from(on - 1) {
                on - 1
            } else {
                on
            };
            prop_assert!(members == expected || close, "{members}, not {expected}, of {now} at {at}");
            on = members;
        }
    }

    /// The schedule carries everything that eight members could carry, in the same bin, and no bin
    /// has a member too many.
    #[test]
    fn the_oracle_has_exactly_the_needed_members(bins in prop::collection::vec(0..12_000_u64, 1..300)) {
        let bin = Duration::from_micros(1_000);
        let needs = oracle::needs(&bins, bin, &init());
        let (mut backlog, mut of_all) = (0_u64, 0_u64);
        for (arriving, members) in bins.iter().zip(&needs) {
            backlog += arriving;
            of_all = (of_all + arriving).saturating_sub(u64::from(MEMBERS) * 1_000);
            let carried = u64::from(*members) * 1_000;
            let fewer = u64::from(members - 1) * 1_000;
            prop_assert!(*members == 1 || backlog > fewer);
            backlog = backlog.saturating_sub(carried);
            prop_assert_eq!(backlog, of_all);
        }
    }

    /// With a wake-up time, the needed members are on in time, and no member sleeps for less than
    /// that time.
    #[test]
    fn the_oracle_wakes_members_in_time(
        bins in prop::collection::vec(0..12_000_u64, 1..300),
        lead in 0..5_000_u64,
    ) {
        let bin = Duration::from_micros(1_000);
        let lead = Duration::from_micros(lead);
        let init = Init { lead, ..init() };
        let schedule = oracle::schedule(&bins, &oracle::Params::default(), &init);
        let needs = oracle::needs(&bins, bin, &init);
        let at = |when: Instant| {
            let before = schedule.iter().take_while(|(at, _)| *at <= when);
            before.last().map_or(MEMBERS, |(_, members)| *members)
        };
        for (k, need) in needs.iter().enumerate() {
            let start = Instant::START + bin * (k as u64);
            let told = Instant::from_picos(start.as_picos().saturating_sub(lead.as_picos()));
            prop_assert!(at(told) >= *need, "bin {k}");
            prop_assert!(at(start) >= *need, "bin {k}");
            // No member is on without need: it is needed now, or before it could have slept and
            // woken.
            let bins = count(lead.as_picos().div_ceil(bin.as_picos())) + 1;
            let most = needs[k..].iter().take(bins).max().copied().unwrap_or(1);
            prop_assert!(at(start) <= most, "bin {k}: {} of {most}", at(start));
        }
        prop_assert!(schedule.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// No schedule with at most the allowed overloaded bins has less time awake, and none with as
    /// few as the solution by price. Detects a search that is greedy by bins, ignores the lead or
    /// exceeds its share.
    #[test]
    fn the_oracle_is_the_optimum(
        needs in prop::collection::vec(1..=3_u32, 1..8),
        lead in 0..40_u64,
        most in 0..4_u64,
    ) {
        let problem = optimum::Problem { needs: &needs, members: 3, bin: 10, lead };
        let found = problem.solve(most);
        let priced = problem.solve_by_price(most);
        prop_assert!(found.overloaded <= most && priced.overloaded <= most);
        let all = (0..3_u32.pow(u32::try_from(needs.len()).expect("7 at most"))).map(|mut code| {
            let mut digit = || {
                let on = code % 3 + 1;
                code /= 3;
                on
            };
            problem.plan((0..needs.len()).map(|_| digit()).collect())
        });
        let (mut least, mut least_priced) = (u64::MAX, u64::MAX);
        for plan in all {
            if plan.overloaded <= most {
                least = least.min(plan.cost);
            }
            if plan.overloaded <= priced.overloaded {
                least_priced = least_priced.min(plan.cost);
            }
        }
        prop_assert_eq!(found.cost, least);
        prop_assert_eq!(priced.cost, least_priced);
    }
}

/// A steady load of two and a half members, then a step to five and a half. Detects a forecast that
/// keeps all members on, goes below the load, or reacts later than the lead and two bins.
#[test]
fn peak_forecast_follows_the_load() {
    let lead = Duration::from_micros(2_000);
    let config = Config::PeakForecast(peak_forecast::Params::default());
    let mut control = config.build(&Init { lead, ..init() });
    let mut wanted = Vec::new();
    for ms in 0..20_000_u64 {
        let now = Instant::from_millis(ms);
        while control.next_decision() <= now {
            wanted.push(control.decide(now));
        }
        // A byte per microsecond and member.
        control.on_arrival(now, if ms < 10_000 { 2_500 } else { 5_500 });
    }
    assert!(
        wanted[..900].iter().all(|members| *members == 8),
        "it learns first"
    );
    assert!(wanted[3_000..9_990].iter().all(|members| *members == 3));
    // The decision at 10,001 ms is the first to include arrivals from 10,000 ms on.
    assert!(wanted[10_004..].iter().all(|members| *members >= 6));
    assert!(wanted[19_000..].iter().all(|members| *members == 6));
}

/// Bursts of ten members' load for 4 ms of every 8: five on average. With bins of 1 ms all members
/// would always stay on.
#[test]
fn peak_forecast_takes_longer_bins_for_bursts() {
    let config = Config::PeakForecast(peak_forecast::Params::default());
    let mut control = config.build(&init());
    let mut last = 0;
    for ms in 0..30_000_u64 {
        let now = Instant::from_millis(ms);
        while control.next_decision() <= now {
            last = control.decide(now);
        }
        control.on_arrival(now, if ms % 8 < 4 { 9_600 } else { 0 });
    }
    assert_eq!(last, 5);
}

/// Ten bins, two of which need more members. One may be overloaded: the bin that needs two more.
#[test]
fn the_oracle_overloads_the_most_expensive_bin() {
    let bytes = [500, 500, 2_500, 500, 500, 500, 500, 1_500, 500, 500];
    let init = Init {
        lead: Duration::from_micros(2_000),
        ..init()
    };
    let at = |overloaded: f64| {
        let params = oracle::Params {
            overloaded: Share::new(overloaded),
            ..oracle::Params::default()
        };
        oracle::schedule(&bytes, &params, &init)
    };
    let ms = Instant::from_millis;
    // The second and third members stay on from the start: if they slept at 0 they would have to
    // wake at 0.
    assert_eq!(at(0.09), [(ms(0), 3), (ms(3), 1), (ms(5), 2), (ms(8), 1)]);
    assert_eq!(at(0.1), [(ms(0), 1), (ms(5), 2), (ms(8), 1)]);
    assert_eq!(at(0.2), [(ms(0), 1)]);
}

#[test]
fn contradictory_parameters_are_rejected() {
    let span = Span::from_micros;
    let peak = |bin, section, interval| {
        let params = peak_percentile::Params {
            bin: span(bin),
            section: span(section),
            interval: span(interval),
            ..peak_percentile::Params::default()
        };
        Config::PeakPercentile(params).check()
    };
    assert_eq!(peak(1_000, 100_000, 1_000_000), Ok(()));
    let wrong = peak(1_000, 100_000, 50_000).expect_err("shorter");
    assert_eq!(wrong.key, ["interval"]);
    let wrong = peak(1_000, 500, 50_000).expect_err("shorter");
    assert_eq!(wrong.key, ["section"]);
    let wrong = peak(1_000, 2_500, 50_000).expect_err("no multiple");
    assert_eq!(wrong.key, ["section"]);
    let forecast = Config::PeakForecast(peak_forecast::Params {
        memory: span(50_000),
        ..peak_forecast::Params::default()
    });
    assert_eq!(forecast.check().expect_err("too few").key, ["memory"]);
    let ewma = Config::EwmaHysteresis(ewma_hysteresis::Params {
        low: Utilization::new(0.8),
        ..ewma_hysteresis::Params::default()
    });
    assert_eq!(ewma.check().expect_err("equal").key, ["low"]);
}

/// Every controller with its defaults starts with all members and never requests more.
#[test]
fn every_controller_stays_within_the_group() {
    for (meta, config, _) in control::registry() {
        assert_eq!(config.name(), meta.name);
        assert_eq!(config.check(), Ok(()), "{}", meta.name);
        let mut control = config.build(&init());
        for ms in 0..20_000_u64 {
            let now = Instant::from_millis(ms);
            while control.next_decision() <= now {
                let members = control.decide(now);
                assert!((1..=MEMBERS).contains(&members), "{}: {members}", meta.name);
            }
            control.on_arrival(now, if ms < 2_500 { 60_000 } else { 0 });
        }
        let last = control.decide(Instant::from_millis(20_000));
        let switches = config.switches() && !config.needs_arrivals();
        assert_eq!(last < MEMBERS, switches, "{}: {last}", meta.name);
    }
}
