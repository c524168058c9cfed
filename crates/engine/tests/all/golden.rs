//! The digests that the Python package and the command line must also match
//! (`tests/golden/README.md`).

use std::path::{Path, PathBuf};

use anabranch_core::body::Length;
use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests read their data")]
fn digests_equal_the_recorded_ones() {
    let record =
        std::fs::read_to_string(root().join("tests/golden/digests.tsv")).expect("it is checked in");
    let mut cases = 0;
    for line in record.lines() {
        let mut fields = line.split('\t');
        let (Some(file), Some(digest)) = (fields.next(), fields.next()) else {
            panic!("{line:?} is no file, digest and sets");
        };
        let text = std::fs::read_to_string(root().join(file)).expect("the scenario is checked in");
        let mut scenario =
            Scenario::parse(&text, file, &Extensions::default()).expect("it is TOML");
        for set in fields {
            scenario.set(set).expect("a path and a value");
        }
        let resolved = scenario
            .resolve(None)
            .unwrap_or_else(|error| panic!("{error}"));
        for fast in [true, false] {
            let run = Simulation::<Length>::new(&resolved)
                .fast_path(fast)
                .run()
                .expect("no hosts");
            assert_eq!(run.summary.digest.as_deref(), Some(digest), "{line}");
        }
        cases += 1;
    }
    assert!(cases >= 4);
}
