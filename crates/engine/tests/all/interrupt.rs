//! Runs that another thread ends.

use std::{thread, time::Duration};

use anabranch_core::{body::Length, interrupt::Interrupt};
use anabranch_engine::{Error, Progress, Simulation};
use anabranch_scenario::{Extensions, Resolved, Scenario};

/// An unlimited link that takes no time: a second of it has more events than can be processed.
const HARDLY_ANY_TIME: &str = r#"duration = "1 s"
[link.a]
between = ["S", "R"]
delay = "1 ps"
[flow.m]
from = "S"
to = "R"
stack = "rfc"
transport = { receive_window = "64 KiB" }
"#;

fn resolve(text: &str) -> Resolved {
    let scenario = Scenario::parse(text, "test.toml", &Extensions::default());
    let scenario = scenario.expect("it is TOML");
    scenario.resolve(None).expect("it is a scenario")
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the interrupt comes in real time"
)]
fn an_interrupt_ends_a_run_with_almost_no_simulated_progress() {
    let resolved = resolve(HARDLY_ANY_TIME);
    let interrupt = Interrupt::default();
    let raised = interrupt.clone();
    let mut reports = 0;
    let ended = thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(50));
            raised.raise();
        });
        let run = Simulation::<Length>::new(&resolved).interrupt(interrupt);
        run.run_with(&mut |_| {
            reports += 1;
            Progress::Continue
        })
        .map(drop)
    });
    assert_eq!(ended, Err(Error::Stopped));
    // No progress report was due in simulated time.
    assert_eq!(reports, 0);
}

#[test]
fn an_unused_interrupt_changes_nothing() {
    let short = HARDLY_ANY_TIME
        .replace("1 ps", "1 ms")
        .replace("1 s", "100 ms");
    let resolved = resolve(&short);
    let digest = |simulation: Simulation<'_, Length>| {
        let run = simulation.run().expect("nobody stops it");
        run.summary.digest
    };
    let plain = digest(Simulation::new(&resolved));
    let watched = digest(Simulation::new(&resolved).interrupt(Interrupt::default()));
    assert_eq!(plain, watched);
}
