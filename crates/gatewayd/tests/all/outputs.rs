//! Files written by the command, and names in its output.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::{FileTypeExt, symlink},
    process::Command,
    thread,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{folder, gateway, good, text};

/// ESC, BEL, CR, C1's CSI, a direction override, and an invisible mark.
const NAME: &str = "a\x1b]0;x\x07\r\u{9b}2J\u{202e}b\u{2066}\u{feff}.toml";

#[test]
fn a_key_replaces_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "years").expect("written");
    symlink("file", at("link")).expect("a link");
    fs::create_dir(at("directory")).expect("made");
    for name in ["file", "link", "directory"] {
        let output = gateway(folder.path(), &["keygen", "--out", name]);
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        assert_eq!(output.stdout, b"");
    }
    assert_eq!(fs::read(at("file")).expect("it is there"), b"years");
    symlink("new", at("dangling")).expect("a link");
    let output = gateway(folder.path(), &["keygen", "--out", "dangling"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(at("new")).expect("it is there").len(), 45);
    assert!(at("dangling").is_symlink());
}

#[test]
fn a_key_can_be_written_to_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let reader = {
        let pipe = pipe.clone();
        thread::spawn(move || fs::read(pipe).expect("it ends"))
    };
    let output = gateway(folder.path(), &["keygen", "--out", "pipe"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(reader.join().expect("no panic").len(), 45);
    let about = fs::symlink_metadata(pipe).expect("it is there");
    assert!(about.file_type().is_fifo());
}

#[test]
fn a_key_can_be_written_to_dev_stdout() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, name) = (folder.path().join("file"), "/dev/stdout");
    let opened = fs::File::create(&file).expect("it is made");
    let done = Command::new(env!("CARGO_BIN_EXE_anabranch-gateway"))
        .args(["keygen", "--out", name])
        .stdout(opened)
        .status();
    assert!(done.expect("it starts").success());
    let content = fs::read_to_string(&file).expect("it is text");
    assert_eq!(content.lines().count(), 2, "{content}");
    assert!(content.contains("\npublic "), "{content}");
}

/// A report that is larger than the buffers of a socket.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn the_status_of_thousands_of_peers_is_complete() {
    const PEERS: usize = 3_000;
    let mut host = super::namespaces::Host::new();
    let mut config = String::from(
        "[gateway]\naddresses = [\"10.9.0.1/24\"]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:51900\"]\n\
         [status]\nsocket = \"status.sock\"\nmetrics = \"127.0.0.1:9469\"\n",
    );
    for number in 0..PEERS {
        // Base64 of 32 octets that contain the number.
        let key = format!("{number:0>42}w=");
        let _ = write!(
            config,
            "[peer.branch-{number}]\npublic_key = \"{key}\"\nallowed = [\"10.{}.{}.0/24\"]\n",
            100 + number / 256,
            number % 256
        );
    }
    fs::write(host.folder.path().join("gw.toml"), config).expect("it is written");
    host.start();
    let status = host.status();
    assert_eq!(
        status["peers"].as_object().map(serde_json::Map::len),
        Some(PEERS)
    );
    let shown = text(&host.ask(&[]).stdout);
    assert_eq!(shown.matches("\npeer branch-").count(), PEERS);
    let metrics = super::servers::metrics(&host);
    let expected = format!(
        "anabranch_gateway_peer_up{{peer=\"branch-{}\"}} 0",
        PEERS - 1
    );
    assert!(metrics.contains(&expected));
    assert!(metrics.len() > 1 << 20, "{}", metrics.len());
}

/// Whether it contains no control sequences for a terminal.
fn is_plain(octets: &[u8]) -> bool {
    let text = String::from_utf8_lossy(octets);
    anabranch_core::shown::terminal(&text) == text
}

#[test]
fn names_control_no_terminal() {
    let commands = ["check", "up", "status", "reload", "down", "protect", "peer"];
    let good = good();
    let broken = good.replace(
        "[gateway]",
        "[gateway]\nnmae = \"\x1b[31m\u{9b}2J\u{202e}\"",
    );
    let named = good.replace("office", "\"o\\u001b[31m\\u009b2J\\u202e\"");
    for (kind, content) in [
        ("missing", None),
        ("broken", Some(broken.as_str())),
        ("binary", Some("\x1b[2J\u{9b}")),
        ("good", Some(good.as_str())),
        ("named", Some(named.as_str())),
    ] {
        let folder = folder();
        if let Some(content) = content {
            fs::write(folder.path().join(NAME), content).expect("it is written");
        }
        for command in commands {
            // They would change the machine.
            if ["up", "down", "protect"].contains(&command) && matches!(kind, "good" | "named") {
                continue;
            }
            let output = gateway(folder.path(), &[command, NAME]);
            let shown = [output.stdout, output.stderr];
            for stream in &shown {
                assert!(is_plain(stream), "{command}, {kind}: {}", text(stream));
            }
            let is_quiet = shown.iter().all(Vec::is_empty);
            assert!(!is_quiet, "{command}, {kind}");
        }
    }
    let folder = folder();
    for arguments in [
        vec!["check", "x", NAME],
        vec![NAME],
        vec!["up", "x", "--log", NAME],
        vec!["keygen", "--out", NAME, NAME],
        vec!["keygen", "--out", "no\x1b[2J/x"],
        vec!["peer", "x", "--endpoint", NAME],
        vec!["init", "--endpoint", NAME],
        vec!["init", "--folder", "no\x1b[2J/x", "--from", NAME],
        vec!["page", "x", "--listen", NAME],
        vec!["page", NAME, "--token", NAME],
    ] {
        let output = gateway(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(is_plain(&output.stderr), "{}", text(&output.stderr));
    }
}
