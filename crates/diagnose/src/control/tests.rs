//! Verdicts about windows that follow a known law on a path with one queue.

use super::{
    Control, Held, Rounds, Sent, Verdict,
    rounds::{Flags, Round},
};
use crate::time::MILLISECOND;

const BASE: f64 = 0.08;
/// Segments that fill the path, and the queue.
const PIPE: f64 = 90.0;
const QUEUE: f64 = 60.0;

/// A path that loses a segment if the window exceeds pipe and queue.
struct Path {
    queue: f64,
    time: f64,
    rounds: Vec<Round>,
}

impl Path {
    fn new() -> Self {
        Self {
            queue: QUEUE,
            time: 0.0,
            rounds: Vec::new(),
        }
    }

    /// A round trip with a window in whole segments; whether it lost a segment.
    fn round(&mut self, window: f64) -> bool {
        let window = window.floor();
        let rtt = BASE * (window / PIPE).max(1.0);
        let lost = window > PIPE + self.queue;
        self.rounds.push(Round {
            start: self.time,
            end: self.time + rtt,
            window,
            acked: window,
            acks: window / 2.0,
            rtt: Some([rtt; 3]),
            flags: Flags {
                lost,
                recovering: lost,
                ..Flags::default()
            },
        });
        self.time += rtt;
        lost
    }

    /// Slow start, then a law: the window after a round without a loss and after one with it, given
    /// the time.
    fn run(mut self, rounds: u32, mut step: impl FnMut(f64, f64, bool) -> f64) -> Self {
        let mut window = 10.0;
        while !self.round(window) {
            window = (2.0_f64 * window).min(PIPE + self.queue + 1.0);
        }
        let mut lost = true;
        for _ in 0..rounds {
            window = step(window, self.time, lost);
            lost = self.round(window);
        }
        self
    }

    fn control(self) -> Control {
        let rounds = Rounds::of(&self.rounds);
        rounds.control(0, 40 * MILLISECOND, Held::default())
    }
}

fn reno(window: f64, _time: f64, lost: bool) -> f64 {
    if lost { window / 2.0 } else { window + 1.0 }
}

fn vegas(window: f64, _time: f64, lost: bool) -> f64 {
    let queue = window - PIPE;
    match () {
        () if lost => window / 2.0,
        () if queue > 4.0 => window - 1.0,
        () if queue < 2.0 => window + 1.0,
        () => window,
    }
}

#[test]
fn a_window_that_halves_and_grows_by_a_segment_is_renos() {
    let found = Path::new().run(300, reno).control();
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("reno")));
}

#[test]
fn a_cubic_window_is_cubics() {
    let (mut top, mut since, mut origin) = (0.0_f64, 0.0, 0.0);
    let found = Path::new()
        .run(300, |window, time, lost| {
            if lost {
                top = if window < top {
                    (0.85 * window).floor()
                } else {
                    window
                };
                (since, origin) = (time, 0.7 * window);
                return origin;
            }
            let passed = time - since - anabranch_core::math::cbrt((top - origin).max(0.0) / 0.4);
            (top + 0.4 * passed * passed * passed).max(window)
        })
        .control();
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("cubic")));
}

#[test]
fn a_window_that_keeps_three_segments_in_the_queue_is_vegass() {
    let found = Path::new().run(200, vegas).control();
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("vegas")));
}

/// A constant window that falls to four segments every ten seconds, for a time.
fn falling(lasts: f64) -> Control {
    let mut next = 10.0;
    Path::new()
        .run(300, |_, time, _| {
            if time < next {
                return PIPE + 10.0;
            }
            if time + BASE > next + lasts {
                next += 10.0;
            }
            4.0
        })
        .control()
}

#[test]
fn a_window_that_falls_to_four_segments_for_200_ms_is_bbrs() {
    let found = falling(0.2);
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("bbr")));
}

#[test]
fn a_round_with_little_data_is_no_sign_of_bbr() {
    assert_ne!(falling(0.0).name, Some("bbr"));
}

#[test]
fn deep_falls_every_three_seconds_are_not_bbrs() {
    let mut next = 10.0;
    let found = Path::new().run(300, |_, time, _| {
        if time < next {
            return PIPE + 10.0;
        }
        if time + BASE > next + 0.2 {
            next += 3.0;
        }
        4.0
    });
    assert_ne!(found.control().name, Some("bbr"));
}

/// A constant window that rises by a quarter per round trip and falls back by a tenth, after a wait in
/// seconds, and is half for 200 ms after every second rise.
fn probing(waits: f64) -> Control {
    let (mut next, mut rises, mut half) = (waits, 0_u32, None);
    let run = Path::new().run(400, |window, time, _| {
        if let Some(end) = half {
            if time < end {
                return PIPE / 2.0;
            }
            half = None;
            next = time + waits;
            return PIPE;
        }
        if time >= next {
            if window * 1.25 < PIPE + QUEUE {
                return window * 1.25;
            }
            rises += 1;
            next = time + waits;
        }
        if window > PIPE {
            return (0.9 * window).max(PIPE);
        }
        if rises >= 2 && next - time < waits - 1.0 {
            rises = 0;
            half = Some(time + 0.2);
        }
        PIPE
    });
    run.control()
}

#[test]
fn rises_by_a_quarter_every_two_to_three_seconds_are_bbr3s() {
    let found = probing(2.6);
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("bbr3")));
}

#[test]
fn rises_every_second_are_not_bbr3s() {
    assert_eq!(probing(1.2).name, None);
}

/// Growth of BIC from `window` in a round, in steps of one segment.
fn bic(mut window: f64, top: f64) -> f64 {
    let mut acked = window;
    while acked >= 1.0 {
        let above = window - top;
        let share = match () {
            () if above < -64.0 => 16.0,
            () if above < -8.0 => (-above / 4.0).floor(),
            () if above < 4.0 => 0.2,
            () if above < 48.0 => above / 3.0,
            () => 16.0,
        };
        window += 2.0 * share / window;
        acked -= 1.0;
    }
    window
}

#[test]
fn a_bic_window_is_bics() {
    let mut top = 0.0_f64;
    let found = Path::new()
        .run(300, |window, _, lost| {
            if !lost {
                return bic(window, top);
            }
            let converged = if window < top { 0.9 * window } else { window };
            top = converged.floor();
            0.8 * window
        })
        .control();
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("bic")));
}

#[test]
fn a_window_without_a_queue_beyond_80_segments_is_yeahs() {
    let mut path = Path::new();
    path.queue = 100.0;
    let found = path
        .run(400, |window, _, lost| {
            let queue = (window - PIPE).max(0.0);
            match () {
                () if lost => window - queue.clamp(window / 8.0, window / 2.0),
                () if queue > 80.0 => window - queue,
                () if queue > PIPE / 8.0 => window + 1.0,
                () => window + window / window.min(100.0),
            }
        })
        .control();
    assert_eq!((found.verdict, found.name), (Verdict::Named, Some("yeah")));
}

#[test]
fn a_window_halved_without_a_loss_is_not_renos() {
    let mut round = 0;
    let found = Path::new()
        .run(300, |window, time, lost| {
            round += 1;
            if !lost && round % 75 == 0 {
                return window / 2.0;
            }
            reno(window, time, lost)
        })
        .control();
    assert_ne!(found.name, Some("reno"));
}

#[test]
fn a_window_that_jumps_and_returns_is_not_renos() {
    let mut round = 0;
    let found = Path::new()
        .run(300, |window, time, lost| {
            round += 1;
            let jump = match round % 8 {
                2 | 3 => 8.0,
                4 => -16.0,
                _ => 0.0,
            };
            reno(window, time, lost) + if lost { 0.0 } else { jump }
        })
        .control();
    assert_eq!(found.name, None);
}

#[test]
fn a_constant_window_at_the_largest_delay_is_not_illinois() {
    let found = Path::new().run(120, |_, _, _| PIPE + QUEUE - 1.0).control();
    assert_eq!(found.name, None);
}

#[test]
fn an_echo_gives_the_round_trip_of_the_next_round() {
    let mut rounds = Rounds::default();
    let took = 100 * MILLISECOND;
    for round in 0..4 {
        for segment in 0..2 {
            let start = 2 * round + segment;
            rounds.send(
                &Sent {
                    time: round * took + segment,
                    start: start * 1000,
                    end: (start + 1) * 1000,
                    next: start * 1000,
                    una: 2 * round * 1000,
                    sacked: 0,
                    is_recovering: false,
                    by_timer: false,
                    is_reduced: false,
                    is_full: false,
                    is_tcp: true,
                },
                1000,
            );
            rounds.echo((50 + round) * MILLISECOND);
        }
    }
    let seen = rounds.seen(took, MILLISECOND);
    let least: Vec<_> = seen
        .iter()
        .map(|round| round.rtt.map(|[least, ..]| format!("{least:.3}")))
        .collect();
    assert_eq!(least, [None, Some("0.051".into()), Some("0.052".into())]);
}

#[test]
fn a_window_that_never_changes_is_none_of_these() {
    let found = Path::new().run(300, |_, _, _| PIPE + 20.0).control();
    assert_eq!((found.verdict, found.name), (Verdict::NoneOfThese, None));
}

#[test]
fn a_window_that_grows_by_three_segments_is_none_of_these() {
    let found = Path::new()
        .run(
            300,
            |window, _, lost| if lost { 0.6 * window } else { window + 3.0 },
        )
        .control();
    assert_eq!((found.verdict, found.name), (Verdict::NoneOfThese, None));
}

#[test]
fn ecn_capable_retransmissions_make_reno_dctcp() {
    let path = Path::new().run(300, reno);
    let mut rounds = Rounds::of(&path.rounds);
    rounds.see_ecn(2);
    let found = rounds.control(0, 40 * MILLISECOND, Held::default());
    assert_eq!(found.name, Some("dctcp"));
}

#[test]
fn other_limits_hide_the_window() {
    let path = Path::new().run(300, reno);
    let rounds = Rounds::of(&path.rounds);
    for (ends, pace, name) in [(0.3, 0.1, Some("reno")), (0.6, 0.0, None), (0.3, 0.3, None)] {
        let found = rounds.control(
            0,
            40 * MILLISECOND,
            Held {
                ends,
                pace,
                ..Held::default()
            },
        );
        assert_eq!(found.name, name, "{ends} {pace}");
        assert_ne!(found.verdict, Verdict::NoneOfThese);
    }
}

#[test]
fn a_buffer_hides_a_window_that_grows_and_not_vegass() {
    let held = Held {
        buffer: 0.9,
        ..Held::default()
    };
    let renos = Rounds::of(&Path::new().run(300, reno).rounds);
    assert_eq!(renos.control(0, 40 * MILLISECOND, held).name, None);
    let vegass = Rounds::of(&Path::new().run(200, vegas).rounds);
    assert_eq!(
        vegass.control(0, 40 * MILLISECOND, held).name,
        Some("vegas")
    );
}

#[test]
fn rounds_without_data_in_flight_name_no_control() {
    let found = Path::new().run(40, |_, _, _| 0.0).control();
    assert_eq!(found.name, None);
}

#[test]
fn a_short_connection_is_undecided() {
    let found = Path::new().run(10, reno).control();
    assert_eq!((found.verdict, found.name), (Verdict::Undecided, None));
}
