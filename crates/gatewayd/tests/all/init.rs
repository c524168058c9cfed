//! The files that `init` writes, and a tunnel made from them.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Output, Stdio},
};

use super::{
    gateway,
    namespaces::{GATEWAY, Host, may_run, ping, wait},
    text,
};

/// The line for the other end.
fn line(output: &Output) -> String {
    let said = text(&output.stdout);
    let mut lines = said.lines().map(str::trim);
    // A command with the line would put a private key into the list of processes.
    assert!(
        lines.any(|line| line == "anabranch-gateway init --from -"),
        "{said}"
    );
    let line = lines.find(|line| line.starts_with("anabranch1:"));
    line.expect("there is a line").to_owned()
}

fn first(folder: &Path, more: &[&str]) -> Output {
    let usual = ["init", "--folder", "a", "--endpoint", "gw.example.net"];
    gateway(folder, &[&usual[..], more].concat())
}

/// Names and content of all files below a folder.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((
                    path.display().to_string(),
                    fs::read(path).expect("it is there"),
                ));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_files_of_both_ends_are_made_from_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let done = first(folder.path(), &["--lan", "192.168.7.0/24", "--qr"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("▄▄"), "there is a code");
    for file in [
        "a/gateway.toml",
        "a/key",
        "a/branch/gateway.toml",
        "a/branch/key",
    ] {
        let mode = fs::metadata(at(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let line = line(&done);
    let taken = gateway(
        folder.path(),
        &[
            "init",
            "--folder",
            "b",
            "--from",
            &line,
            "--path",
            "one=lo,backup",
        ],
    );
    assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
    assert_eq!(
        fs::read(at("a/branch/key")).expect("a key"),
        fs::read(at("b/key")).expect("a key")
    );
    let own = fs::read_to_string(at("b/gateway.toml")).expect("a file");
    assert!(
        own.contains("[path.one]\ninterface = \"lo\"\npolicy = \"backup\"\n"),
        "{own}"
    );

    // Each end has the other's key.
    let checked = |file: &str| text(&gateway(folder.path(), &["check", file]).stdout);
    for (own, other) in [("a", "b"), ("b", "a")] {
        let said = checked(&format!("{own}/gateway.toml"));
        let key = said
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("public key  "));
        let there = fs::read_to_string(at(&format!("{other}/gateway.toml"))).expect("a file");
        assert!(there.contains(key.expect("a key")), "{there}");
    }
    assert!(checked("a/gateway.toml").contains("behind it 10.9.0.2/32, 192.168.7.0/24"));

    // The line is private: it need not be an argument.
    let mut child = std::process::Command::new(GATEWAY)
        .args(["init", "--folder", "c", "--from", "-", "--path", "lo"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    writeln!(stdin, "{line}").expect("it is read");
    // One line is enough: a terminal does not end.
    assert!(child.wait().expect("it ends").success());
    drop(stdin);
    assert_eq!(
        fs::read(at("c/key")).expect("a key"),
        fs::read(at("b/key")).expect("a key")
    );
}

#[test]
fn nothing_is_overwritten_and_a_failure_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["gateway.toml", "key", "branch/gateway.toml", "branch/key"] {
        let path = folder.path().join("a").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, "years").expect("written");
        let before = content(folder.path());
        let done = first(folder.path(), &[]);
        assert_eq!(done.status.code(), Some(2), "{name}");
        let said = text(&done.stderr);
        assert!(said.contains("exists and is left as it is"), "{said}");
        assert_eq!(content(folder.path()), before);
        fs::remove_file(path).expect("it is there");
    }
    // A fact that the configuration refuses.
    let done = first(folder.path(), &["--lan", "10.9.0.1"]);
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(said.contains("own address"), "{said}");
    assert_eq!(content(folder.path()), []);
}

/// The lines that `init` prints, and the file that `--add` makes of them.
#[test]
fn branches_are_added_to_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let done = first(folder.path(), &["--lan", "192.168.7.0/24"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let mut before = fs::read_to_string(at("a/gateway.toml")).expect("a file");
    // No newline at the end.
    before += "# by hand";
    fs::write(at("a/gateway.toml"), &before).expect("written");
    fs::set_permissions(at("a/gateway.toml"), fs::Permissions::from_mode(0o640)).expect("ours");

    let shown = first(
        folder.path(),
        &["--name", "bonn", "--lan", "192.168.8.0/24"],
    );
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    let said = text(&shown.stdout);
    let allowed = "allowed = [\"10.9.0.3/32\", \"192.168.8.0/24\"]";
    assert!(
        said.contains("[peer.bonn]\npublic_key = ") && said.contains(allowed),
        "{said}"
    );
    let file = || fs::read_to_string(at("a/gateway.toml")).expect("a file");
    assert_eq!(file(), before);
    assert!(!at("a/bonn").exists());

    for (name, number) in [("bonn", 3), ("ulm", 4)] {
        let done = first(folder.path(), &["--name", name, "--add"]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let said = text(&done.stdout);
        assert!(said.contains(&format!("added [peer.{name}]")), "{said}");
        assert!(said.contains("anabranch-gateway reload"), "{said}");
        let line = line(&done);
        let taken = ["init", "--folder", name, "--from", &line, "--path", "lo"];
        let taken = gateway(folder.path(), &taken);
        assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
        let own = fs::read_to_string(at(name).join("gateway.toml")).expect("a file");
        let address = format!("addresses = [\"10.9.0.{number}/24\"]");
        assert!(own.contains(&address), "{own}");
        // Each end has the other's key.
        let checked = |file: &str| text(&gateway(folder.path(), &["check", file]).stdout);
        for (one, other) in [("a", name), (name, "a")] {
            let said = checked(&format!("{one}/gateway.toml"));
            let key = said
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("public key  "));
            let there = fs::read_to_string(at(other).join("gateway.toml")).expect("a file");
            assert!(there.contains(key.expect("a key")), "{there}");
        }
    }
    assert!(file().starts_with(&before), "{}", file());
    let mode = fs::metadata(at("a/gateway.toml"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);

    // Facts that contradict the file change nothing.
    let before = content(folder.path());
    for (arguments, said) in [
        (&["--name", "ulm", "--add"][..], "it has the peer `ulm`"),
        (
            &["--name", "jena", "--lan", "192.168.7.0/24", "--add"],
            "192.168.7.0/24",
        ),
        (
            &["--name", "jena", "--lan", "192.168.7.0/24"],
            "192.168.7.0/24",
        ),
        (
            &["--name", "jena", "--network", "10.8.0.0/24", "--add"],
            "cannot be used with",
        ),
    ] {
        let done = first(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
        assert_eq!(content(folder.path()), before);
    }
    for (folder_of, said) in [("nowhere", "No such file"), ("bonn", "has no `listen`")] {
        let arguments = [
            "init",
            "--folder",
            folder_of,
            "--endpoint",
            "gw",
            "--name",
            "jena",
            "--add",
        ];
        let done = gateway(folder.path(), &arguments);
        assert_eq!(done.status.code(), Some(2), "{folder_of}");
        assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
        assert_eq!(content(folder.path()), before);
    }
}

#[test]
fn missing_and_wrong_facts_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = first(folder.path(), &[]);
    let line = line(&done);
    let cut = &line[..line.len() - 3];
    let cases: &[(&[&str], &str)] = &[
        (
            &["init", "--folder", "b"],
            "expected --endpoint HOST[:PORT]",
        ),
        (
            &["init", "--endpoint", "gw:x"],
            "expected a name or an address",
        ),
        (
            &["init", "--endpoint", "gw", "--name", "a/b"],
            "expected 1 to 32 letters",
        ),
        (
            &[
                "init",
                "--endpoint",
                "gw",
                "--network",
                "10.9.0.1/32",
                "--folder",
                "b",
            ],
            "has no two addresses",
        ),
        (
            &[
                "init",
                "--endpoint",
                "gw",
                "--network",
                "127.0.0.0/8",
                "--folder",
                "b",
            ],
            "is in use here: lo has 127.0.0.1",
        ),
        (
            &["init", "--endpoint", "gw", "--path", "a=lo"],
            "expected --from -",
        ),
        (
            &["init", "--from", cut, "--folder", "b"],
            "the line is cut or mistyped",
        ),
        (
            &["init", "--from", "hello", "--folder", "b"],
            "does not begin with `anabranch1:`",
        ),
        (
            &["init", "--from", &line, "--folder", "b", "--path", "a=lp"],
            "did you mean `lo`?",
        ),
        (
            &[
                "init",
                "--from",
                &line,
                "--folder",
                "b",
                "--path",
                "a=lo,metred",
            ],
            "did you mean `metered`?",
        ),
        (
            &[
                "init", "--from", &line, "--folder", "b", "--path", "a=lo", "--path", "b=lo",
            ],
            "is there twice",
        ),
    ];
    for (arguments, said) in cases {
        let done = gateway(folder.path(), arguments);
        let error = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
        assert!(!folder.path().join("b").exists(), "{arguments:?}");
    }
}

/// From nothing to a tunnel over both links, with the commands of the guide's first page.
#[test]
fn a_tunnel_comes_up_from_the_files_of_init() {
    if !may_run() {
        return;
    }
    let mut hosts = [Host::new(), Host::new()];
    let there = hosts[1].space.id().to_string();
    for link in ["1", "2"] {
        let name = format!("w{link}");
        hosts[0].ip(&[
            "link", "add", &name, "type", "veth", "peer", "name", &name, "netns", &there,
        ]);
        for (end, host) in hosts.iter().enumerate() {
            let address = format!("10.{link}.0.{}/24", end + 1);
            host.ip(&["addr", "add", &address, "dev", &name]);
            host.ip(&["link", "set", &name, "up"]);
        }
        let router = format!("10.{link}.0.2");
        hosts[0].ip(&[
            "route", "add", "default", "via", &router, "dev", &name, "metric", link,
        ]);
    }
    // The address of the server is beyond both links.
    hosts[1].ip(&["addr", "add", "203.0.113.1/32", "dev", "lo"]);
    for host in &hosts {
        fs::remove_file(host.folder.path().join("key")).expect("it is there");
    }
    let run = |host: &Host, arguments: &[&str]| {
        let mut command = host.command(GATEWAY);
        let done = command
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        assert!(
            done.status.success(),
            "{arguments:?}: {}",
            text(&done.stderr)
        );
        done
    };
    let done = run(
        &hosts[1],
        &["init", "--folder", ".", "--endpoint", "203.0.113.1"],
    );
    let line = line(&done);
    // The interfaces are those with a default route.
    run(&hosts[0], &["init", "--folder", ".", "--from", &line]);
    for host in &mut hosts {
        let file = host.folder.path().join("gateway.toml");
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(file)
            .expect("it is ours");
        file.write_all(b"[status]\nsocket = \"status.sock\"\n")
            .expect("it is written");
        fs::copy(
            host.folder.path().join("gateway.toml"),
            host.folder.path().join("gw.toml"),
        )
        .expect("copied");
        host.start();
    }
    // `ping` asks 10.9.0.2 from 10.9.0.1, the server.
    hosts.reverse();
    wait("an answer", || ping(&hosts));
    wait("both paths", || {
        let status = hosts[1].status();
        ["w1", "w2"]
            .iter()
            .all(|path| status["peers"]["server"]["paths"][path]["state"] == "active")
    });
}
