//! The page over HTTP, and its history.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
        process::CommandExt,
    },
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::Value;

use super::{
    folder, gateway, good,
    namespaces::{GATEWAY, Host, hosts, may_run, ping, wait},
    text,
};

/// A page's process.
struct Page {
    child: Child,
    address: SocketAddr,
}

impl Page {
    fn of(host: &Host, arguments: &[&str]) -> Self {
        // The page changes to another user, of the group of the sockets.
        let mode = fs::Permissions::from_mode(0o750);
        fs::set_permissions(host.folder.path(), mode).expect("it is ours");
        let mut command = host.command(GATEWAY);
        command
            .args(["page", "gw.toml", "--listen"])
            .args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let address = lines.map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("http://")?.strip_suffix('/')?;
            address.parse().ok()
        });
        let address = address.expect("it prints its address");
        Self { child, address }
    }

    /// The answer to a request, as status and content.
    fn ask(&self, host: &Host, request: String) -> (u16, String) {
        let address = self.address;
        let read = host.inside(move || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .expect("a socket");
            stream.write_all(request.as_bytes()).expect("it is taken");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it is text");
            answer
        });
        let answer = read.join().expect("no panic");
        let (head, content) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.expect("a status"), content.to_owned())
    }

    fn get(&self, host: &Host, path: &str, fields: &str) -> (u16, String) {
        self.ask(
            host,
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"),
        )
    }

    fn history(&self, host: &Host) -> Value {
        let (status, content) = self.get(host, "/history?range=hour", "");
        assert_eq!(status, 200, "{content}");
        serde_json::from_str(&content).expect("it is JSON")
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let folder = folder();
    fs::write(folder.path().join("gw.toml"), good()).expect("it is written");
    fs::write(folder.path().join("token"), "short").expect("it is written");
    for (arguments, said) in [
        (
            &["--listen", "0.0.0.0:0"][..],
            "expected --token FILE, or a loopback address",
        ),
        (
            &["--listen", "0.0.0.0:0", "--token", "token"],
            "can be read by others",
        ),
        (&["--listen", "127.0.0.1"], "invalid value"),
        (&["--user", "nobody-of-that-name"], "there is no user"),
    ] {
        let done = gateway(folder.path(), &[&["page", "gw.toml"], arguments].concat());
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
    }
}

#[test]
fn the_page_has_the_state_and_a_history_that_survives_a_restart() {
    if !may_run() {
        return;
    }
    let mut hosts = hosts();
    let file = hosts[0].folder.path().join("gw.toml");
    let config = fs::read_to_string(&file).expect("it is there");
    let kept = config.replacen("[gateway]\n", "[gateway]\nstate_directory = \"state\"\n", 1);
    fs::write(&file, kept).expect("it is written");
    for host in &mut hosts {
        host.start();
    }
    let page = Page::of(&hosts[0], &["127.0.0.1:0"]);
    let host = &hosts[0];
    let (status, content) = page.get(host, "/", "");
    assert_eq!(status, 200);
    // Nothing is loaded from elsewhere, and scripts have the number of this answer.
    assert!(!content.contains("://"), "it loads something");
    assert!(!content.contains("{nonce}"));
    wait("an answer", || ping(&hosts));
    let (status, content) = page.get(host, "/status", "");
    let report: Value = serde_json::from_str(&content).expect("it is JSON");
    assert_eq!(
        (status, report["peers"]["other"]["state"].as_str()),
        (200, Some("up"))
    );
    wait("two samples", || {
        let history = page.history(host);
        let series = history["series"].as_array().cloned().unwrap_or_default();
        let path = series.iter().find(|series| series["path"] == "one");
        path.is_some_and(|path| {
            path["values"]["up"]
                .get(0)
                .and_then(Value::as_f64)
                .is_some()
        })
    });
    let (status, content) = page.get(host, "/history?range=year", "");
    assert_eq!((status, content.contains("range=month")), (400, true));
    assert_eq!(page.get(host, "/other", "").0, 404);
    let foreign = "GET / HTTP/1.1\r\nHost: gw.example\r\n\r\n".to_owned();
    assert_eq!(page.ask(host, foreign).0, 421);
    let posted = "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned();
    assert_eq!(page.ask(host, posted).0, 405);
    assert_eq!(page.ask(host, "\x16\x03\x01\r\n\r\n".to_owned()).0, 400);

    let count = |history: &Value| {
        let events = history["events"].as_array().expect("a list");
        events
            .iter()
            .filter(|event| event["message"] == "anabranch0 is up")
            .count()
    };
    assert_eq!(count(&page.history(host)), 1);
    assert_eq!(hosts[0].stop(), Some(0));
    let (status, content) = page.get(&hosts[0], "/status", "");
    assert_eq!(status, 503);
    assert!(content.contains("no gateway is up"), "{content}");
    hosts[0].start();
    assert_eq!(count(&page.history(&hosts[0])), 2);
    let series = page.history(&hosts[0])["series"].as_array().map(Vec::len);
    // The peer, two paths, and bulk.
    assert_eq!(series, Some(4));
}

#[test]
fn the_page_needs_no_key() {
    let folder = folder();
    fs::write(folder.path().join("gw.toml"), good()).expect("it is written");
    fs::remove_file(folder.path().join("key")).expect("it is there");
    let mut child = std::process::Command::new(GATEWAY)
        .args(["page", "gw.toml", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let first = lines.next().map(|line| line.expect("it is text"));
    let _ = child.kill();
    let _ = child.wait();
    let first = first.expect("it starts without a key");
    assert!(first.starts_with("http://127.0.0.1:"), "{first}");
}

/// The view socket answers questions alone, and the page's user cannot use the other one.
#[test]
fn the_page_cannot_end_or_reload_the_gateway() {
    if !may_run() {
        return;
    }
    let mut hosts = hosts();
    hosts[0].start();
    let host = &hosts[0];
    let at = |name: &str| host.folder.path().join(name);
    let said = |socket: &str, request: &str| {
        let mut stream = UnixStream::connect(at(socket)).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is text");
        answer
    };
    assert!(said("status.view.sock", "status\n").starts_with('{'));
    assert!(said("status.view.sock", "history hour\n").starts_with('{'));
    for request in ["reload\n", "down\n", "other\n"] {
        assert_eq!(said("status.view.sock", request), "");
    }
    assert!(said("status.sock", "reload\n").contains("was reloaded"));
    for (socket, mode) in [("status.sock", 0o600), ("status.view.sock", 0o660)] {
        let about = fs::metadata(at(socket)).expect("it is there");
        assert_eq!(about.mode() & 0o777, mode, "{socket}");
    }

    let page = Page::of(host, &["127.0.0.1:0"]);
    assert_eq!(page.get(host, "/status", "").0, 200);
    let status = fs::read_to_string(format!("/proc/{}/status", page.child.id()));
    let status = status.expect("it runs");
    assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
    // In user namespaces without root, a process cannot change its user.
    if !super::namespaces::may_change_user() {
        return;
    }
    assert!(
        status.contains("Uid:\t65534\t65534\t65534\t65534"),
        "{status}"
    );
    let group = fs::metadata(at("status.view.sock"))
        .expect("it is there")
        .gid();
    for (socket, is_open) in [("status.sock", false), ("status.view.sock", true)] {
        let mut may_write = std::process::Command::new("test");
        may_write.arg("-w").arg(at(socket)).uid(65_534).gid(group);
        let done = may_write.status().expect("it runs");
        assert_eq!(done.success(), is_open, "{socket}");
    }
}

/// A daemon that is started again may have a user of another group. The page cannot change its group
/// again, so it ends, and its supervisor starts it in the new one.
#[test]
fn the_page_ends_when_the_socket_has_another_group() {
    if !may_run() || !super::namespaces::may_change_user() {
        return;
    }
    let mut hosts = hosts();
    hosts[0].start();
    let host = &hosts[0];
    let mut page = Page::of(host, &["127.0.0.1:0"]);
    assert_eq!(page.get(host, "/status", "").0, 200);
    for file in ["status.view.sock", "."] {
        let at = host.folder.path().join(file);
        std::os::unix::fs::chown(at, None, Some(12_345)).expect("root");
    }
    // The answer to this request may be lost, and the page may have ended before.
    let address = page.address;
    let asked = host.inside(move || {
        let Ok(mut stream) = TcpStream::connect(address) else {
            return;
        };
        let request = "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    asked.join().expect("no panic");
    assert_eq!(page.child.wait().expect("it ends").code(), Some(1));
    let page = Page::of(host, &["127.0.0.1:0"]);
    assert_eq!(page.get(host, "/status", "").0, 200);
}

#[test]
fn a_token_is_demanded_and_idle_clients_keep_no_other_out() {
    if !may_run() {
        return;
    }
    let mut hosts = hosts();
    hosts[0].start();
    let host = &hosts[0];
    let page = Page::of(host, &["10.1.0.1:0", "--token", "token"]);
    let token = fs::read_to_string(host.folder.path().join("token")).expect("it was made");
    let token = token.trim();
    for path in ["/", "/status", "/history"] {
        let (status, content) = page.get(host, path, "");
        assert_eq!((status, content.contains(token)), (401, false));
    }
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(page.get(host, "/status", &bearer).0, 200);
    let wrong = format!("Authorization: Bearer {}x\r\n", &token[1..]);
    assert_eq!(page.get(host, "/status", &wrong).0, 401);

    let address = page.address;
    let idle = host.inside(move || {
        let connect = |_| TcpStream::connect(address).expect("it listens");
        (0..100).map(connect).collect::<Vec<_>>()
    });
    let idle = idle.join().expect("no panic");
    assert_eq!(page.get(host, "/status", &bearer).0, 200);
    drop(idle);
}
