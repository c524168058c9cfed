//! The state of a run under way.

use anabranch_core::body::Length;
use anabranch_core::units::Duration;
use anabranch_engine::{Progress, Simulation};
use anabranch_scenario::{Extensions, Scenario};

const TWO: &str = r#"duration = "2 s"
[link.path]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "10 ms"
impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.one]
from = "S"
to = "R"
[flow.two]
from = "R"
to = "S"
"#;

#[test]
fn a_watched_run_shows_its_first_samples_and_has_the_same_digest() {
    let scenario = Scenario::parse(TWO, "test.toml", &Extensions::default()).expect("it is TOML");
    let resolved = scenario.resolve(None).expect("it is a scenario");
    let every = Some(Duration::from_millis(10));
    let run = || Simulation::<Length>::new(&resolved).samples(every);
    let mut seen = Vec::new();
    let watched = run().run_watched(&mut |underway| {
        let names = underway.links.iter().map(|(name, _)| &**name);
        assert!(names.eq(["path"]));
        assert_eq!(underway.network.flow_count(), 2);
        let last = underway.samples.flows.last().map(|sample| sample.at);
        seen.push((underway.share, underway.samples.flows.len(), last));
        Progress::Continue
    });
    let watched = watched.expect("it is not stopped");
    let plain = run().run().expect("it is not stopped");
    assert_eq!(watched.summary.digest, plain.summary.digest);
    assert!(seen.len() > 150, "{} reports", seen.len());
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    for (share, count, last) in seen {
        let row = count
            .checked_sub(1)
            .map(|row| watched.samples.flows[row].at);
        assert_eq!(row, last, "{share}");
        // Samples are 5 ‰ of the run apart.
        assert!(
            last.is_none_or(|at| (at.as_secs_f64() / 2.0 - share).abs() < 0.006),
            "{share}"
        );
    }
}
