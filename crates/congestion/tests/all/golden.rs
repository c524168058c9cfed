//! One short, readable trace of every control over the same sequence of events.

use crate::support;

use std::fmt::Write as _;

use anabranch_congestion::{CongestionControl as _, Init, params::Form, registry};
use anabranch_core::units::Duration;
use support::{Path, SMSS, segments};

/// Slow start, a loss, recovery, a timer loss during the second recovery, a timeout, a spurious
/// timeout, a mark, a pause.
fn story(path: &mut Path) -> String {
    let mut trace = String::from("round  event        cwnd ssthresh  state\n");
    for round in 1..=24 {
        path.round_trip();
        let event = match round {
            5 | 12 => {
                path.lose();
                "loss"
            }
            13 => {
                path.timer_loss();
                "timer loss"
            }
            6 | 14 => {
                path.recovered();
                "recovered"
            }
            17 | 20 => {
                path.rto(1);
                "timeout"
            }
            21 => {
                path.spurious(true);
                "spurious"
            }
            22 => {
                path.mark();
                "mark"
            }
            23 => {
                path.idle(Duration::from_secs(3));
                "idle 3 s"
            }
            _ => "",
        };
        let mut line = format!(
            "{round:>5}  {event:<10} {:>6.2} {:>8.2} ",
            path.cwnd(),
            path.ssthresh()
        );
        for (name, value) in path.control.state() {
            write!(line, " {name}={value:.3}").expect("a string takes it");
        }
        writeln!(trace, "{}", line.trim_end()).expect("a string takes it");
    }
    trace
}

#[test]
fn traces_of_every_control() {
    for (meta, config, _) in registry() {
        let mut path = Path::new(&config, 4, Duration::from_millis(100));
        insta::assert_snapshot!(meta.name, story(&mut path));
    }
}

#[test]
fn traces_of_the_forms_of_linux() {
    let mut init = Init::new(SMSS, segments(4));
    init.stack.form = Form::Linux;
    for (meta, config, _) in registry() {
        if ["bic", "htcp", "vegas", "westwood-plus"].contains(&meta.name) {
            let mut path = Path::from_init(&config, &init, Duration::from_millis(100));
            insta::assert_snapshot!(format!("{}-linux", meta.name), story(&mut path));
        }
    }
}
