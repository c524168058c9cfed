//! The limit of a sender: its determination and accounting, and the rule that no congestion window
//! grows while another constraint leaves less room.

use crate::support;

use std::sync::Arc;

use anabranch_congestion::{Config, IdleRestart, bbr, registry};
use anabranch_core::{
    body::Length,
    registry::Meta,
    units::{Bytes, Duration, Instant, text::Limit},
};
use anabranch_tcp::{
    Endpoint, LimitTimes, Profile, Role, Segmentation, SendLimit, Settings, send_limit::Constraint,
};
use support::{Link, Net};

const MSS: u64 = 1448;

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Size of a limiting window or buffer: 64 segments.
const BOUND: u64 = 64 * MSS;

fn profile(name: &str) -> Settings {
    let mut settings = Profile::named(name).expect("it exists").settings;
    settings.mss = u32::try_from(MSS).expect("a small number");
    settings
}

fn bytes(octets: u64) -> Limit {
    Limit::Bytes(Bytes::new(octets))
}

/// A receiver that offers at most `octets`.
fn offering(octets: u64, settings: &Settings) -> Settings {
    Settings {
        receive_window: bytes(octets),
        receive_autotuning: false,
        ..settings.clone()
    }
}

/// 20 Mbit/s and 100 ms each way: a window of 350 segments would fill the path.
fn path(lose: &[u32]) -> Link {
    Link {
        delay: Duration::from_millis(100),
        gap: Duration::from_micros(600),
        lose: lose.to_vec(),
        ..Link::default()
    }
}

fn net(config: &Config, ends: [&Settings; 2], link: Link) -> Net<Length> {
    let mut net: Net<Length> = Net::new(ends[0], ends[1], link, [5, 77]);
    net.ends[0] = Endpoint::new(
        &Arc::new(ends[0].clone()),
        config.build(&ends[0].init()),
        Role::Active,
        5,
    );
    net.open();
    net
}

fn controls() -> impl Iterator<Item = (&'static Meta, Config)> {
    registry()
        .into_iter()
        .map(|(meta, config, _)| (meta, config))
}

/// The controls that grow only while cwnd limits the sender. Linux's Vegas grows at any time.
fn validated(profile: &str) -> impl Iterator<Item = (&'static Meta, Config)> {
    let is_linux = profile == "linux";
    controls().filter(move |(meta, _)| !(is_linux && meta.name == "vegas"))
}

fn cubic() -> Config {
    Config::Cubic(anabranch_congestion::cubic::Params::default())
}

/// The largest permitted window if `bound` octets limit the flow. A control with a path model keeps
/// up to 2/ln 2 products of the data delivered (draft-cardwell-iccrg-bbr-congestion-control-00
/// §4.1.1.3). In slow start others double the data in flight when cwnd was last the limit, plus the
/// growth by one acknowledgment.
fn most(config: &Config, bound: u64) -> u64 {
    match config {
        Config::Bbr(_) | Config::Bbr3(_) => 3 * bound + 16 * MSS,
        _ => 2 * bound + 3 * MSS,
    }
}

/// Whether the congestion window, or a recovery that keeps it, limits the sender.
fn is_cwnd(limit: SendLimit) -> bool {
    matches!(
        limit,
        SendLimit::Cwnd | SendLimit::Deferred(Constraint::Cwnd) | SendLimit::Recovery
    )
}

/// Checks that a sender's window grows only by acknowledgments of data sent while cwnd was the
/// limit. Slow start may grow to twice the data in flight (`window_rules = "linux"`).
struct Growth {
    cwnd: u64,
    /// The last time cwnd limited the sender.
    limited_at: Instant,
    half_full: bool,
    models: bool,
}

impl Growth {
    fn new(config: &Config, settings: &Settings) -> Self {
        Self {
            cwnd: 0,
            limited_at: Instant::START,
            half_full: settings.window_rules.grow_half_full(),
            models: matches!(config, Config::Bbr(_) | Config::Bbr3(_)),
        }
    }

    /// Runs after each event. A flight is acknowledged within two smoothed round trips plus a
    /// delayed acknowledgment.
    fn look(&mut self, net: &Net<Length>, what: &str) {
        let end = &net.ends[0];
        let cwnd = end.cwnd().get();
        let state = end.snapshot();
        let slow_start = state
            .ssthresh
            .is_none_or(|ssthresh| self.cwnd < ssthresh.get());
        let undone = end.stats().undone > 0;
        // The initial window is not growth.
        let grows = self.cwnd > 0 && cwnd > self.cwnd;
        let is_free = self.models || undone || (self.half_full && slow_start);
        if grows && !is_free {
            let ago = net.now.saturating_since(self.limited_at);
            assert!(
                ago < state.srtt * 2 + Duration::from_millis(100),
                "{what}: {} to {} segments at {:?}, {ago:?} after cwnd was the limit",
                self.cwnd / MSS,
                cwnd / MSS,
                net.now
            );
        }
        if is_cwnd(end.send_limit()) {
            self.limited_at = net.now;
        }
        self.cwnd = cwnd;
    }
}

/// Losses while the window or the buffer limits, single and consecutive.
const LOSSES: [&[u32]; 3] = [&[], &[900, 1500, 2200], &[700, 701, 702, 1600, 1602]];

#[test]
fn no_window_outgrows_the_receive_window_or_the_send_buffer() {
    for name in ["rfc", "linux", "linux-2.6.35", "windows-7"] {
        let plain = profile(name);
        let buffered = Settings {
            send_buffer: bytes(BOUND),
            send_autotuning_start: Bytes::ZERO,
            ..plain.clone()
        };
        let bounded = offering(BOUND, &plain);
        for (meta, config) in validated(name) {
            for (sender, receiver) in [(&plain, &bounded), (&buffered, &plain)] {
                for lose in LOSSES {
                    let mut net = net(&config, [sender, receiver], path(lose));
                    net.ends[0].write_endless();
                    let what = format!("{name}, {}, losses {lose:?}", meta.name);
                    let mut growth = Growth::new(&config, sender);
                    let mut most = most(&config, BOUND);
                    // Linux accepts writes while cwnd has room, beyond the buffer's limit.
                    if sender.segmentation.is_tso() && sender.send_buffer == bytes(BOUND) {
                        most = u64::MAX;
                    }
                    while net.now < ms(12_000) && net.step() {
                        let cwnd = net.ends[0].cwnd().get();
                        growth.look(&net, &what);
                        assert!(cwnd <= most, "{what}: {} at {:?}", cwnd / MSS, net.now);
                    }
                }
            }
        }
    }
}

#[test]
fn no_window_outgrows_the_data_an_application_writes() {
    for (name, rule) in [
        ("rfc", IdleRestart::Off),
        ("rfc", IdleRestart::Rfc7661),
        ("linux", IdleRestart::Rfc2861),
    ] {
        let settings = Settings {
            idle_restart: rule,
            ..profile(name)
        };
        for (meta, config) in validated(name) {
            let mut net = net(&config, [&settings, &settings], path(&[]));
            let mut outstanding = 0;
            for turn in 0..240_u64 {
                net.run_until(ms(300 + 50 * turn));
                // 4 segments and a part of one: 20 segments in a round trip.
                net.ends[0].write_all(Length(4 * 1448 + 500));
                net.flush();
                outstanding = outstanding.max(net.ends[0].snapshot().in_flight.get());
            }
            let cwnd = net.ends[0].cwnd().get();
            assert!(
                cwnd <= most(&config, outstanding),
                "{name}, {rule:?}, {}: {} segments for {}",
                meta.name,
                cwnd / MSS,
                outstanding / MSS
            );
        }
    }
}

/// The share of each limit in the time from 10 s to 20 s.
fn shares(mut net: Net<Length>, mut write: impl FnMut(&mut Endpoint<Length>)) -> [f64; 6] {
    let mut before = LimitTimes::default();
    for turn in 0..400_u64 {
        net.run_until(ms(300 + 50 * turn));
        write(&mut net.ends[0]);
        net.flush();
        if turn == 200 {
            before = net.ends[0].limit_times(net.now);
        }
    }
    let times = net.ends[0].limit_times(net.now).since(&before);
    let total = times.total().as_secs_f64();
    assert!(
        (total - 9.95).abs() < 1e-9,
        "every moment has a limit: {total}"
    );
    [
        times.cwnd,
        times.rwnd,
        times.send_buffer,
        times.application,
        times.pacing,
        times.recovery,
    ]
    .map(|time| time.as_secs_f64() / total)
}

#[test]
fn each_limit_is_reported_where_it_binds() {
    let endless = |end: &mut Endpoint<Length>| end.write_endless();
    for name in ["rfc", "linux"] {
        let plain = profile(name);
        let bounded = offering(BOUND, &plain);
        let buffered = Settings {
            send_buffer: bytes(BOUND),
            send_autotuning_start: Bytes::ZERO,
            segmentation: Segmentation::None,
            ..plain.clone()
        };
        // A loss about every 1,000 segments keeps the window below the path's capacity.
        let lossy = Link {
            loss: 1e-3,
            ..path(&[])
        };
        let of = |ends, link| net(&cubic(), ends, link);
        let cwnd = shares(of([&plain, &plain], lossy), endless);
        assert!(
            cwnd[0] > 0.6 && cwnd[0] + cwnd[5] > 0.99,
            "{name}: {cwnd:?}"
        );
        let rwnd = shares(of([&plain, &bounded], path(&[])), endless);
        assert!(rwnd[1] > 0.99, "{name}: {rwnd:?}");
        let buffer = shares(of([&buffered, &plain], path(&[])), endless);
        assert!(buffer[2] > 0.99, "{name}: {buffer:?}");
        let idle = shares(of([&plain, &plain], path(&[])), |end| {
            end.write_all(Length(2000));
        });
        assert!(idle[3] > 0.99, "{name}: {idle:?}");
        let bbr = Config::Bbr(bbr::Params::default());
        let pacing = shares(net(&bbr, [&plain, &plain], path(&[])), endless);
        assert!(pacing[4] > 0.9, "{name}: {pacing:?}");
    }
}

#[test]
fn a_truncated_write_is_limited_by_the_send_buffer() {
    let settings = Settings {
        send_buffer: bytes(BOUND),
        ..profile("rfc")
    };
    let mut all = net(&cubic(), [&settings, &settings], path(&[]));
    all.run_until(ms(300));
    let fits = all.ends[0].write(Length(1000));
    all.flush();
    assert_eq!(
        (fits, all.ends[0].send_limit()),
        (1000, SendLimit::Application)
    );
    // Ten segments were sent, then twenty; the buffer holds 64.
    let mut cut = net(&cubic(), [&settings, &settings], path(&[]));
    let mut taken = 0;
    for turn in 0..200 {
        cut.run_until(ms(300 + 10 * turn));
        taken += cut.ends[0].write(Length(1 << 20));
        cut.flush();
    }
    assert!(taken > 64 * MSS);
    assert_eq!(cut.ends[0].send_limit(), SendLimit::SendBuffer);
}

#[test]
fn a_deferred_burst_counts_for_the_smaller_window() {
    let linux = profile("linux");
    let mut net = net(&cubic(), [&linux, &offering(BOUND, &linux)], path(&[]));
    net.ends[0].write_endless();
    let (mut deferred, mut previous) = (0, net.ends[0].cwnd());
    while net.now < ms(20_000) && net.step() {
        deferred += u32::from(matches!(net.ends[0].send_limit(), SendLimit::Deferred(_)));
        if net.now > ms(5_000) {
            assert_eq!(net.ends[0].cwnd(), previous, "at {:?}", net.now);
        }
        previous = net.ends[0].cwnd();
    }
    assert!(deferred > 10, "{deferred}");
}

#[test]
fn the_account_ends_with_the_connection() {
    let settings = profile("rfc");
    let mut net = net(&cubic(), [&settings, &settings], path(&[]));
    net.ends[0].write_endless();
    net.run_until(ms(2_000));
    net.ends[1].abort(net.now);
    net.flush();
    net.run_until(ms(3_000));
    let times = net.ends[0].limit_times(net.now).total();
    // The connection is open from the first round trip to the arrival of the reset.
    assert_eq!(times, net.ends[0].limit_times(ms(9_000)).total());
    assert!((1.85..=1.95).contains(&times.as_secs_f64()), "{times:?}");
}

/// Linux 6.18, measured (`SO_MEMINFO`): a writer that has found the buffer full waits until a third
/// of it is free, and then overfills the buffer by a part of one write. Detects free space that is
/// filled at once.
#[test]
fn linux_fills_a_full_buffer_once_a_third_is_free() {
    let linux = Settings {
        send_buffer: bytes(BOUND),
        ..profile("linux")
    };
    let mut net = net(&cubic(), [&linux, &offering(4 << 20, &linux)], path(&[]));
    net.ends[0].write_endless();
    let (mut most, mut least) = (0, u64::MAX);
    while net.now < ms(12_000) && net.step() {
        let in_flight = net.ends[0].snapshot().in_flight.get();
        if net.now > ms(6_000) {
            most = most.max(in_flight);
            least = least.min(in_flight);
        }
    }
    let cwnd = net.ends[0].cwnd().get();
    assert!(
        most > 120 * 92_672 / 100 && most <= cwnd,
        "{most} of {cwnd}"
    );
    assert!(least < 70 * BOUND / 100, "{least}");
}
