//! Tests of the command as an operator uses it: output, messages and exit status.

mod bypass;
mod caps;
mod changes;
mod hostile;
mod init;
mod many;
mod names;
mod namespaces;
mod outputs;
mod page;
mod protect;
#[cfg(feature = "quic-tests")]
mod quic;
mod reasons;
mod servers;
mod traffic;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// Keys for tests only.
const PRIVATE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHl8=";
const PUBLIC: &str = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=";

fn good() -> String {
    format!(
        r#"[gateway]
addresses = ["10.9.0.1/24", "fd00::1/64"]
private_key_file = "key"
listen = ["0.0.0.0:51900"]

[peer.office]
public_key = "{PUBLIC}"
allowed = ["10.9.0.2/32", "192.168.7.0/24"]
endpoints = ["gw.example.net:51900", "192.0.2.1:51900"]

[path.fibre]
interface = "eth0"

[path.lte]
source = "192.0.2.10"
policy = "metered"

[class.calls]
match = {{ dscp = 46 }}
mode = "interactive"

[class.web]
match = {{ port = ["5000-5010", 443], dscp = ["ef", "af41"] }}
mode = "bulk"

[class.backups]
match = {{ prefix = "192.168.7.9" }}
mode = "pinned"
path = "fibre"
"#
    )
}

fn gateway(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch-gateway"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("it starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("it is text")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    write_key(folder.path(), 0o600);
    folder
}

fn write_key(folder: &Path, mode: u32) {
    let key = folder.join("key");
    fs::write(&key, PRIVATE).expect("it is written");
    fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// The errors of the good configuration with parts replaced.
fn refused(parts: &[(&str, &str)]) -> String {
    let folder = folder();
    let mut config = good();
    for (part, instead) in parts {
        assert!(config.contains(part), "{part}");
        config = config.replacen(part, instead, 1);
    }
    fs::write(folder.path().join("gw.toml"), config).expect("it is written");
    let done = gateway(folder.path(), &["check", "gw.toml"]);
    assert_eq!(
        done.status.code(),
        Some(2),
        "{parts:?}: {}",
        text(&done.stdout)
    );
    assert!(done.stdout.is_empty());
    text(&done.stderr)
}

#[test]
fn a_configuration_is_reported() {
    let folder = folder();
    fs::write(folder.path().join("gw.toml"), good()).expect("it is written");
    let done = gateway(folder.path(), &["check", "gw.toml"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    insta::assert_snapshot!(text(&done.stdout));
}

#[test]
fn wrong_configurations_have_messages() {
    let listen = "\"0.0.0.0:51900\"";
    let lte = "source = \"192.0.2.10\"";
    let endpoints = "endpoints = [\"gw.example.net:51900\", \"192.0.2.1:51900\"]\n";
    let office = "[peer.office]";
    let second = format!(
        "[peer.home]\npublic_key = \"{}\"\nallowed = [\"0.0.0.0/0\", \"192.168.7.0/24\"]\n\n[peer.office]",
        PUBLIC.replacen('C', "D", 1)
    );
    let cases: &[&[(&str, &str)]] = &[
        &[("[gateway]", "[tunnel]")],
        &[("addresses =", "address =")],
        &[("listen =", "lisen =")],
        &[(listen, "\"0.0.0.0:70000\"")],
        &[(listen, "51900")],
        &[(listen, "\"0.0.0.0:0\"")],
        &[(listen, "\"203.0.113.1:51900\"")],
        &[(listen, "\"0.0.0.0:51900\", \"[::]:51901\"")],
        &[("\"10.9.0.1/24\"", "\"10.9.0.1/240\"")],
        &[("private_key_file = \"key\"", "")],
        &[("private_key_file = \"key\"", "private_key_file = \"kye\"")],
        &[(PUBLIC, "AAAA")],
        &[("gw.example.net:51900", "gw.example.net")],
        &[("192.0.2.1:51900", "192.0.2.300:51900")],
        &[("\"192.168.7.0/24\"", "\"10.9.0.1\"")],
        &[("\"192.168.7.0/24\"", "\"192.0.2.0/24\"")],
        &[(office, &second)],
        &[("[peer.office]", "[peer.office]\npriority = 1")],
        &[("[peer.office]", "[peer.office]\ngruop = \"hub\"")],
        &[("[peer.office]", "[peer.office]\ngroup = \"\"")],
        &[(
            "[peer.office]",
            "[peer.office]\ngroup = \"hub\"\npriority = -1",
        )],
        &[("listen =", "protect = \"yes\"\nlisten =")],
        &[("listen =", "protct = true\nlisten =")],
        &[("\"metered\"", "\"metred\"")],
        &[(lte, "source = \"192.0.2.10\"\ncap = \"20 GB\"")],
        &[(lte, "source = \"192.0.2.10\"\ncap = \"20 GB/year\"")],
        &[(lte, "source = \"192.0.2.10\"\ncapp = \"20 GB/month\"")],
        &[(lte, "source = \"192.0.2.10\"\nreset_day = 3")],
        &[(
            lte,
            "source = \"192.0.2.10\"\ncap = \"1 GB/month\"\nreset_day = 32",
        )],
        &[(
            lte,
            "source = \"192.0.2.10\"\ncap = \"1 GB/week\"\nreset_day = 3",
        )],
        &[(
            lte,
            "source = \"192.0.2.10\"\ncap = \"1 GB/week\"\nat_cap = \"of\"",
        )],
        &[(
            lte,
            "source = \"192.0.2.10\"\ncap = \"1 GB/week\"\nalarms = [50, 100]",
        )],
        &[(lte, "source = \"192.0.2.10\"\nmax_rate = \"20 MB\"")],
        &[(lte, "source = \"192.0.2.10\"\nmax_rate = \"1 kbit/s\"")],
        &[(lte, "interface = \"eth0\"")],
        &[(lte, "interface = \"an interface of many letters\"")],
        &[(lte, "source = \"192.0.2.300\"")],
        &[(lte, "source = \"192.0.2.10\"\ninterface = \"wwan0\"")],
        &[(lte, "")],
        &[("path = \"fibre\"", "path = \"fiber\"")],
        &[("path = \"fibre\"", "")],
        &[("\"interactive\"", "\"pined\"")],
        &[("\"ef\"", "\"af51\"")],
        &[("dscp = 46", "dscp = 64")],
        &[("\"5000-5010\"", "\"5010-5000\"")],
        &[("{ dscp = 46 }", "{ }")],
        &[("dscp = 46", "dcsp = 46")],
        &[("listen = [\"0.0.0.0:51900\"]\n", ""), (endpoints, "")],
        &[(
            "[class.backups]",
            "[status]\nmetrics = \"0.0.0.0:9469\"\n\n[class.backups]",
        )],
        &[
            ("listen =", "lisen ="),
            ("\"ef\"", "\"af51\""),
            ("\"metered\"", "\"metred\""),
            ("\"192.168.7.0/24\"", "\"10.9.0.1\""),
        ],
    ];
    let told: Vec<String> = cases.iter().map(|parts| refused(parts)).collect();
    insta::assert_snapshot!(told.join("\n"));
}

/// Prefixes within prefixes, and the same prefix at the servers of a group.
#[test]
fn prefixes_of_a_group_and_longer_ones_are_accepted() {
    let folder = folder();
    let server = |name: &str, letter: &str, more: &str| {
        let key = PUBLIC.replacen('C', letter, 1);
        format!(
            "[peer.{name}]\npublic_key = \"{key}\"\nallowed = [\"0.0.0.0/0\"]\ngroup = \"hub\"\n{more}\n"
        )
    };
    let text_of = [
        good(),
        server("first", "D", "priority = 1"),
        server("second", "E", "priority = 2"),
    ];
    fs::write(folder.path().join("gw.toml"), text_of.concat()).expect("it is written");
    let done = gateway(folder.path(), &["check", "gw.toml"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let expected = "first: calls this end; behind it 0.0.0.0/0; server of hub, priority 1";
    assert!(
        text(&done.stdout).contains(expected),
        "{}",
        text(&done.stdout)
    );
}

/// The contract's example, verbatim except for the keys.
#[test]
fn a_default_route_and_classes_are_accepted() {
    let folder = folder();
    let text_of = format!(
        r#"[gateway]
private_key_file = "key"
interface = "anabranch0"
addresses = ["10.99.0.2/24"]
listen = ["0.0.0.0:51900"]
[peer.hub]
public_key = "{PUBLIC}"
allowed = ["0.0.0.0/0", "::/0"]
endpoints = ["203.0.113.1:51900"]
[path.fibre]
interface = "eth0"
policy = "active"
[class.calls]
match = {{ dscp = 46 }}
mode = "interactive"
"#
    );
    fs::write(folder.path().join("gw.toml"), text_of).expect("it is written");
    let done = gateway(folder.path(), &["check", "gw.toml"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let folder = folder();
    write_key(folder.path(), 0o644);
    fs::write(folder.path().join("gw.toml"), good()).expect("it is written");
    let done = gateway(folder.path(), &["check", "gw.toml"]);
    assert_eq!(done.status.code(), Some(2));
    let told = text(&done.stderr);
    assert!(told.contains("can be read by others (mode 0644)"), "{told}");
    assert!(!told.contains(PRIVATE), "{told}");
}

#[test]
fn paths_that_are_not_files_are_refused() {
    let folder = folder();
    for (name, said) in [("absent.toml", "No such file"), (".", "it is a directory")] {
        let done = gateway(folder.path(), &["check", name]);
        assert_eq!(done.status.code(), Some(2));
        assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
    }
}

#[test]
fn keygen_writes_a_private_file_and_overwrites_none() {
    let folder = tempfile::tempdir().expect("a directory");
    let done = gateway(folder.path(), &["keygen", "--out", "key"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let key = folder.path().join("key");
    let mode = fs::metadata(&key)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = fs::read(&key).expect("it is ours");
    let again = gateway(folder.path(), &["keygen", "--out", "key"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(fs::read(&key).expect("it is ours"), before);
    let public = text(&done.stdout);
    assert_eq!(public.trim_start_matches("public ").trim().len(), 44);
}

/// The other end accepts the configuration that one end prints for it.
#[test]
fn the_configuration_of_the_other_end_is_taken() {
    let folder = folder();
    fs::write(folder.path().join("gw.toml"), good()).expect("it is written");
    let done = gateway(
        folder.path(),
        &["peer", "gw.toml", "--endpoint", "198.51.100.7:51900"],
    );
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    insta::assert_snapshot!(text(&done.stdout));
    let other = tempfile::tempdir().expect("a directory");
    fs::write(other.path().join("gw.toml"), done.stdout).expect("it is written");
    assert!(
        gateway(other.path(), &["keygen", "--out", "key"])
            .status
            .success()
    );
    let checked = gateway(other.path(), &["check", "gw.toml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    let wrong = gateway(folder.path(), &["peer", "gw.toml", "ofice"]);
    assert_eq!(wrong.status.code(), Some(2));
}
