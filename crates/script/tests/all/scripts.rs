//! All scripts under `tests/scripts` on our endpoint: with IPv4 and IPv6, with sequence numbers
//! that begin at 0, and with numbers that wrap early on either side.

use std::path::{Path, PathBuf};

use crate::wrong::{How, Wrong};
use anabranch_script::{Action, EndpointTarget, Position, Script, Setting, parse, run};
use anabranch_wire::{Ports, Version};

const PORTS: Ports = Ports {
    source: 40_000,
    destination: 8080,
};

fn v4() -> Version {
    Version::V4 {
        source: [192, 0, 2, 1],
        destination: [192, 168, 0, 1],
        identification: 0,
        dont_fragment: true,
    }
}

fn v6() -> Version {
    let address = |last| std::array::from_fn(|i| if i == 15 { last } else { 0xfd });
    Version::V6 {
        source: address(1),
        destination: address(2),
        flow_label: 0,
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scripts")
}

/// The scripts of a folder, by name.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .collect();
    files.sort();
    files
}

/// Runs the scripts of a topic in several variants and reports all failures together.
#[expect(
    clippy::disallowed_methods,
    reason = "the test reads scripts; the engine does not"
)]
fn check(topic: &str) {
    let files = scripts(&folder().join(topic));
    assert!(!files.is_empty(), "no script in {topic}");
    let mut failures = Vec::new();
    for file in files {
        let name = format!(
            "tests/scripts/{topic}/{}",
            file.file_name().expect("a file").to_string_lossy()
        );
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let script = match parse(&text, &name) {
            Ok(script) => script,
            Err(error) => {
                failures.push(error.to_string());
                continue;
            }
        };
        failures.extend(wrong_ones_that_pass(&text, &script));
        // Faults of the IPv4 header do not exist in IPv6.
        let versions = if text.contains("[fragment]") || text.contains("[bad-ip-checksum]") {
            vec![v4()]
        } else {
            vec![v4(), v6()]
        };
        for version in versions {
            for (iss, peer) in [
                (0, 0),
                (u32::MAX - 700, 77),
                (5, u32::MAX - 1500),
                (u32::MAX, u32::MAX),
            ] {
                let mut target = EndpointTarget::new((version, PORTS), iss);
                if let Err(error) = run(&script, &mut target, peer) {
                    failures.push(format!(
                        "{error}\n    with iss {iss}, peer {peer}, {version:?}"
                    ));
                    break;
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Runs a script on the wrong TCPs that it names and returns the ones on which it passes. A comment
/// `// Wrong: --NAME=VALUE …` names a TCP that violates the script, which must detect it; every
/// script has one. The name of a kernel setting without `--` changes its value; a name without `=`
/// is one of [`How::ALL`].
fn wrong_ones_that_pass(text: &str, script: &Script) -> Vec<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("// Wrong: "));
    let named: Vec<&str> = lines.collect();
    if named.is_empty() {
        return vec![format!(
            "{}: no `// Wrong: --NAME=VALUE` names a TCP that it finds out",
            script.file
        )];
    }
    let passes = |options: &&&str| {
        let mut wrong = script.clone();
        let mut how = None;
        for option in options.split_whitespace() {
            if !option.contains('=') {
                how = Some(How::named(option).unwrap_or_else(|| panic!("no wrong TCP `{option}`")));
                continue;
            }
            let (name, value) = option.split_once('=').expect("NAME=VALUE");
            if let Some(name) = name.strip_prefix("--") {
                let at = Position { line: 1, column: 1 };
                wrong.options.push((at, name.to_owned(), value.to_owned()));
                continue;
            }
            let mut set = wrong
                .events
                .iter_mut()
                .filter_map(|event| match &mut event.action {
                    Action::Command(settings) => Some(settings),
                    _ => None,
                })
                .flatten()
                .filter_map(|setting| match setting {
                    Setting::Sysctl(known, value) if known == name => Some(value),
                    _ => None,
                });
            value.clone_into(set.next().expect("the script sets it"));
        }
        let mut target = EndpointTarget::new((v4(), PORTS), 0);
        let outcome = match how {
            Some(how) => run(&wrong, &mut Wrong::new(target, how), 0),
            None => run(&wrong, &mut target, 0),
        };
        match outcome {
            Ok(()) => true,
            // An error in the options is not about the TCP.
            Err(error) => error.at == Position { line: 1, column: 1 },
        }
    };
    let all = named.iter();
    all.filter(passes)
        .map(|options| format!("{}: passes with {options}", script.file))
        .collect()
}

macro_rules! topics {
    ($($topic:ident)*) => {
        $(#[test] fn $topic() { check(stringify!($topic)); })*

        #[test]
        fn every_topic_is_run() {
            let mut found: Vec<String> = std::fs::read_dir(folder()).expect("it is there")
                .map(|entry| entry.expect("it can be read"))
                .filter(|entry| entry.file_type().expect("it has one").is_dir())
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            found.sort();
            assert_eq!(found, [$(stringify!($topic)),*], "folders beside the topics that are run");
        }
    };
}

topics! { calls close ecn fast_open flow_control habits handshake hostile rack receiver recovery spurious windows }
