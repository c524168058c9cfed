//! Two gateways in network namespaces, with two links between them.
//!
//! Ignored tests run in a Linux kernel in virtual time: `tests/guest/test_crates.py` starts them
//! there. The others concern the host: memory, descriptors, Landlock, clocks, and one transfer.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{fd::AsFd, unix::fs::PermissionsExt},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use tempfile::TempDir;

pub const GATEWAY: &str = env!("CARGO_BIN_EXE_anabranch-gateway");
/// An event that has not happened after this time is considered missing.
const PATIENCE: Duration = Duration::from_secs(120);
const INNER: [&str; 2] = ["10.9.0.1", "10.9.0.2"];

/// Whether the machine permits namespaces and TUN interfaces. If not, the test prints the reason
/// and passes, or fails with `ANABRANCH_LIVE=required`.
pub fn may_run() -> bool {
    let done = Command::new("unshare")
        .args(["--net", "ip", "tuntap", "add", "probe", "mode", "tun"])
        .output();
    let why = match done {
        Ok(done) if done.status.success() => return true,
        Ok(done) => super::text(&done.stderr),
        Err(error) => format!("unshare: {error}"),
    };
    assert!(
        std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
        "ANABRANCH_LIVE=required: {why}"
    );
    eprintln!(
        "SKIPPED: no namespaces; run as root or under `unshare --user --map-root-user`: {why}"
    );
    false
}

/// A host with one gateway.
pub struct Host {
    pub space: Child,
    pub folder: TempDir,
    pub gateway: Option<Child>,
    pub public: String,
}

impl Host {
    pub fn new() -> Self {
        let space = Command::new("unshare")
            .args(["--net", "sleep", "600"])
            .spawn()
            .expect("it was there before");
        let folder = tempfile::tempdir().expect("a directory");
        let made = super::gateway(folder.path(), &["keygen", "--out", "key"]);
        let public = super::text(&made.stdout)
            .replace("public ", "")
            .trim()
            .to_owned();
        let host = Self {
            space,
            folder,
            gateway: None,
            public,
        };
        let own = fs::read_link("/proc/self/ns/net").expect("a namespace");
        wait("the namespace", || {
            fs::read_link(host.space_file()).is_ok_and(|other| other != own)
        });
        host.ip(&["link", "set", "lo", "up"]);
        host
    }

    fn space_file(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.space.id()).into()
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let space = format!("--net={}", self.space_file().display());
        command
            .args([&space, program])
            .current_dir(self.folder.path());
        command
    }

    pub fn ip(&self, arguments: &[&str]) {
        let done = self
            .command("ip")
            .args(arguments)
            .output()
            .expect("it runs");
        assert!(
            done.status.success(),
            "{arguments:?}: {}",
            super::text(&done.stderr)
        );
    }

    /// Calls a function in the host's namespace.
    pub fn inside<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let space = File::open(self.space_file()).expect("it is there");
        thread::spawn(move || {
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("it is ours");
            call()
        })
    }

    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    pub fn start_with(&mut self, arguments: &[&str]) {
        let mut command = self.command(GATEWAY);
        command.args(["up", "gw.toml"]).args(arguments);
        self.spawn(command);
    }

    /// Starts the gateway by a command that executes it.
    pub fn spawn(&mut self, mut command: Command) {
        let log = File::create(self.folder.path().join("log")).expect("ours");
        let gateway = command.stderr(log).spawn().expect("it starts");
        self.gateway = Some(gateway);
        wait("the gateway", || self.ask(&[]).status.success());
    }

    /// The gateway's log since its start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("it is there")
    }

    pub fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(GATEWAY);
        command.args(["status", "gw.toml"]).args(arguments);
        command.output().expect("it runs")
    }

    pub fn status(&self) -> Value {
        serde_json::from_slice(&self.ask(&["--json"]).stdout).expect("it is JSON")
    }

    pub fn rejected(&self, reason: &str) -> u64 {
        self.status()["rejected"][reason]
            .as_u64()
            .expect("a counter")
    }

    fn has_interface(&self) -> bool {
        let mut command = self.command("ip");
        command.args(["link", "show", "anabranch0"]);
        command.output().expect("it runs").status.success()
    }

    /// Ends the gateway as systemd does.
    pub fn stop(&mut self) -> Option<i32> {
        let mut gateway = self.gateway.take().expect("it is up");
        kill_process(Pid::from_child(&gateway), Signal::TERM).expect("it is ours");
        gateway.wait().expect("it ends").code()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for child in self.gateway.iter_mut().chain([&mut self.space]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Two hosts with two links; the first initiates.
pub fn hosts() -> [Host; 2] {
    let hosts = [Host::new(), Host::new()];
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
    }
    configure(&hosts[0], 0, &hosts[1].public);
    configure(&hosts[1], 1, &hosts[0].public);
    hosts
}

pub fn configure(host: &Host, end: usize, public: &str) {
    let (own, other) = (INNER[end], INNER[1 - end]);
    let (listen, endpoint, paths) = if end == 0 {
        let paths = "[path.one]\ninterface = \"w1\"\n[path.two]\ninterface = \"w2\"\n";
        (
            "",
            "endpoints = [\"10.1.0.2:51900\", \"10.2.0.2:51900\"]\n",
            paths,
        )
    } else {
        ("listen = [\"[::]:51900\"]\n", "", "")
    };
    let text = format!(
        "[gateway]\naddresses = [\"{own}/24\"]\nprivate_key_file = \"key\"\n{listen}\
         [peer.other]\npublic_key = \"{public}\"\nallowed = [\"{other}\"]\n{endpoint}{paths}\
         [status]\nsocket = \"status.sock\"\nmetrics = \"127.0.0.1:9469\"\n"
    );
    fs::write(host.folder.path().join("gw.toml"), text).expect("it is written");
}

pub fn both_up() -> [Host; 2] {
    let mut hosts = hosts();
    for host in &mut hosts {
        host.start();
    }
    hosts
}

/// Whether an echo request from the first host through the tunnel is answered.
pub fn ping(hosts: &[Host; 2]) -> bool {
    ping_to(hosts, "10.9.0.2", "10.9.0.1")
}

/// Sends an echo request (RFC 792) and waits for its answer.
pub fn ping_to(hosts: &[Host; 2], to: &str, from: &str) -> bool {
    let address = |text: &str| SocketAddr::new(text.parse().expect("an address"), 0);
    let (to, from) = (address(to), address(from));
    let pinged = hosts[0].inside(move || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).expect("root");
        if socket.bind(&from.into()).is_err() {
            return false;
        }
        let wait = Some(Duration::from_millis(500));
        socket.set_read_timeout(wait).expect("a socket");
        let request = [8, 0, 0xf7, 0xfe, 0, 1, 0, 0];
        if socket.send_to(&request, &to.into()).is_err() {
            return false;
        }
        let mut reply = [0; 64];
        matches!((&socket).read(&mut reply), Ok(28)) && reply[20] == 0
    });
    pinged.join().expect("no panic")
}

pub const TRANSFER: usize = 4 << 20;

pub fn content() -> Vec<u8> {
    (0..=250).cycle().take(TRANSFER).collect()
}

/// Transfers content through the tunnel, and calls `midway` after a quarter has arrived. Returns
/// the received octets.
pub fn transfer(hosts: &[Host; 2], midway: impl FnOnce()) -> Vec<u8> {
    let listener = hosts[1].inside(|| TcpListener::bind("10.9.0.2:5000").expect("it is free"));
    let listener = listener.join().expect("no panic");
    let sender = hosts[0].inside(|| {
        let to: SocketAddr = "10.9.0.2:5000".parse().expect("an address");
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE).expect("it is accepted");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(&content()).expect("it is taken");
    });
    let (mut stream, _) = listener.accept().expect("it comes");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut arrived = vec![0; TRANSFER / 4];
    stream.read_exact(&mut arrived).expect("it arrives");
    midway();
    stream.read_to_end(&mut arrived).expect("it arrives");
    sender.join().expect("no panic");
    arrived
}

#[test]
fn packets_pass_and_a_signal_removes_everything() {
    if !may_run() {
        return;
    }
    let mut hosts = both_up();
    wait("an answer", || ping(&hosts));
    assert!(transfer(&hosts, || {}) == content(), "the content differs");
    wait("both paths", || {
        let status = hosts[0].status();
        let paths = status["peers"]["other"]["paths"].as_object();
        paths.is_some_and(|paths| {
            paths.len() == 2 && paths.values().all(|path| path["state"] == "active")
        })
    });
    let shown = super::text(&hosts[0].ask(&[]).stdout);
    assert!(shown.contains("peer other: up"), "{shown}");
    for host in &mut hosts {
        assert_eq!(host.stop(), Some(0));
        assert!(!host.has_interface());
        assert!(!host.folder.path().join("status.sock").exists());
        assert_eq!(host.ask(&[]).status.code(), Some(1));
    }
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_transfer_outlives_a_path() {
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let says = |end: usize, message: &str| hosts[end].log().lines().any(|line| line == message);
    wait("news of the path", || {
        says(0, "peer other: path one delivers")
    });
    let cut = || hosts[1].ip(&["link", "set", "w1", "down"]);
    assert!(transfer(&hosts, cut) == content(), "the content differs");
    wait("the death of the path", || {
        hosts[0].status()["peers"]["other"]["paths"]["one"]["state"] == "dead"
    });
    assert!(ping(&hosts));
    wait("news of the death at both ends", || {
        says(0, "peer other: path one is dead") && says(1, "peer other: path 0 is dead")
    });
}

/// The value of a line of /proc/PID/status.
pub fn of_process(host: &Host, name: &str) -> String {
    let pid = host.gateway.as_ref().expect("it is up").id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.expect("the kernel has it").trim().to_owned()
}

/// The status of the resolver's thread.
fn of_resolver(host: &Host) -> String {
    let pid = host.gateway.as_ref().expect("it is up").id();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it is there");
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    let mut all = tasks.filter_map(|task| status(task.ok()?));
    let resolver = all.find(|status| status.starts_with("Name:\tresolver\n"));
    resolver.expect("it is there")
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn the_daemon_drops_unneeded_privileges() {
    let mut hosts = hosts();
    // In user namespaces without root, a process cannot change its user.
    let is_root = rustix::process::getuid().is_root() && may_change_user();
    let arguments: &[&str] = if is_root { &["--user", "nobody"] } else { &[] };
    hosts[0].start_with(arguments);
    hosts[1].start();
    wait("an answer", || ping(&hosts));
    for host in &hosts {
        assert_eq!(of_process(host, "Seccomp"), "2");
        assert_eq!(of_process(host, "NoNewPrivs"), "1");
        // CAP_NET_ADMIN is 12, CAP_NET_RAW is 13.
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(of_process(host, set), "0000000000003000", "{set}");
        }
        assert_eq!(of_process(host, "CapInh"), "0000000000000000");
        let resolver = of_resolver(host);
        for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapPrm:\t0000000000000000"] {
            assert!(resolver.contains(line), "{line}: {resolver}");
        }
    }
    if is_root {
        // The field `nice` of proc_pid_stat(5); the program's name has no space.
        let pid = hosts[1].gateway.as_ref().expect("it is up").id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
        assert_eq!(stat.split(' ').nth(18), Some("-10"), "{stat}");
        let uids = of_process(&hosts[0], "Uid");
        assert!(uids.split_whitespace().all(|uid| uid != "0"), "{uids}");
        assert!(of_resolver(&hosts[0]).contains(&format!("Uid:\t{uids}")));
        let socket = fs::metadata(hosts[0].folder.path().join("status.sock")).expect("it is there");
        let owner = std::os::unix::fs::MetadataExt::uid(&socket).to_string();
        assert_eq!(uids.split_whitespace().next(), Some(owner.as_str()));
    }
    assert!(transfer(&hosts, || {}) == content(), "the content differs");
    assert_eq!(hosts[1].stop(), Some(0));
    assert!(!hosts[1].folder.path().join("status.sock").exists());
}

pub fn may_change_user() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").expect("it is there");
    map.split_whitespace().nth(2) == Some("4294967295")
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_wrong_key_is_counted_and_passes_no_packets() {
    let mut hosts = hosts();
    configure(&hosts[1], 1, super::PUBLIC);
    for host in &mut hosts {
        host.start();
    }
    wait("the count", || hosts[1].rejected("unknown_key") > 0);
    assert!(!ping(&hosts));
    let status = hosts[1].status();
    assert_eq!(status["peers"]["other"]["state"], "down");
    assert_eq!(status["peers"]["other"]["received_packets"], 0);
    // Each initiation is counted. The key has one line.
    wait("more", || hosts[1].rejected("unknown_key") > 8);
    let line = format!(
        "has the public key {}, which no peer here has",
        hosts[0].public
    );
    let count = hosts[1]
        .log()
        .lines()
        .filter(|one| one.ends_with(&line))
        .count();
    assert_eq!(count, 1, "{}", hosts[1].log());
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn traffic_returns_after_a_restart_of_either_end() {
    let mut hosts = both_up();
    wait("an answer", || ping(&hosts));
    for end in [0, 1] {
        // Killed without a chance to clean up: the socket's file remains.
        let mut gateway = hosts[end].gateway.take().expect("it is up");
        gateway.kill().expect("it is ours");
        gateway.wait().expect("it ends");
        assert!(hosts[end].folder.path().join("status.sock").exists());
        hosts[end].start();
        wait("an answer", || ping(&hosts));
    }
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn garbage_is_counted_and_not_answered() {
    let mut hosts = hosts();
    hosts[1].start();
    let answers = hosts[0].inside(|| {
        let socket = UdpSocket::bind("10.1.0.1:0").expect("it is free");
        for (kind, length) in [
            (0, 1),
            (1, 144),
            (2, 84),
            (3, 64),
            (4, 40),
            (4, 1472),
            (255, 200),
        ] {
            let mut datagram = vec![0x5a; length];
            datagram[..4.min(length)].copy_from_slice(&[kind, 1, 0, 0][..4.min(length)]);
            if kind == 4 {
                datagram[1] = 0;
            }
            socket
                .send_to(&datagram, "10.1.0.2:51900")
                .expect("it is sent");
        }
        socket
            .set_read_timeout(Some(Duration::from_secs(1)))
            .expect("a socket");
        socket.recv_from(&mut [0; 2048]).is_ok()
    });
    assert!(!answers.join().expect("no panic"));
    let counted = || {
        let reasons = ["malformed", "unknown_session", "unknown_key"];
        reasons
            .iter()
            .map(|reason| hosts[1].rejected(reason))
            .sum::<u64>()
    };
    wait("seven datagrams", || counted() == 7);
    assert!(hosts[1].rejected("unknown_session") >= 2);
    assert!(hosts[1].rejected("malformed") >= 2);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_failed_start_leaves_nothing() {
    let host = Host::new();
    configure(&host, 1, super::PUBLIC);
    let taken = host.inside(|| UdpSocket::bind("0.0.0.0:51900").expect("it is free"));
    let _taken = taken.join().expect("no panic");
    let done = host
        .command(GATEWAY)
        .args(["up", "gw.toml"])
        .output()
        .expect("it runs");
    assert_eq!(done.status.code(), Some(1));
    let told = super::text(&done.stderr);
    assert!(
        told.contains("listen [::]:51900: Address already in use"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(!host.has_interface());
    assert!(!host.folder.path().join("status.sock").exists());
}

/// All packets of both families enter the tunnel, except the tunnel's datagrams.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_default_route_into_the_tunnel_does_not_loop() {
    let mut hosts = hosts();
    let text = format!(
        "[gateway]\naddresses = [\"10.9.0.1/24\", \"fd09::1/64\"]\nprivate_key_file = \"key\"\n\
         [peer.other]\npublic_key = \"{}\"\nallowed = [\"0.0.0.0/0\", \"::/0\"]\n\
         endpoints = [\"10.3.0.2:51900\"]\n[status]\nsocket = \"status.sock\"\n",
        hosts[1].public
    );
    fs::write(hosts[0].folder.path().join("gw.toml"), text).expect("it is written");
    // The endpoint is reachable only over the default route.
    hosts[1].ip(&["addr", "add", "10.3.0.2/32", "dev", "lo"]);
    hosts[1].ip(&["addr", "add", "10.4.0.2/32", "dev", "lo"]);
    hosts[0].ip(&["route", "add", "default", "via", "10.1.0.2"]);
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping(&hosts));
    let sent = || hosts[0].status()["peers"]["other"]["sent_packets"].as_u64();
    let before = sent();
    wait("an answer from beyond", || {
        ping_to(&hosts, "10.4.0.2", "10.9.0.1")
    });
    assert!(sent() > before);
    assert_eq!(hosts[0].stop(), Some(0));
    let mut rules = hosts[0].command("ip");
    let rules = rules.args(["rule"]).output().expect("it runs");
    let rules = super::text(&rules.stdout);
    assert!(!rules.contains("51900"), "{rules}");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn watch_prints_the_status_each_second() {
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let read = |arguments: &[&str], count: usize| {
        let mut command = hosts[0].command(GATEWAY);
        let command = command.args(["status", "gw.toml", "--watch"]);
        let command = command.args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let lines: Vec<String> = out.lines().map_while(Result::ok).take(count).collect();
        // It ends when its reader is gone.
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        lines
    };
    for line in read(&["--json"], 2) {
        let report: Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(report["peers"]["other"]["state"], "up");
    }
    // Two reports of at most nine lines.
    let text = read(&[], 18).join("\n");
    for heading in ["received", "out Mbit/s", "in Mbit/s"] {
        assert!(text.contains(heading), "{text}");
    }
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_second_gateway_does_not_disturb_the_first() {
    let hosts = both_up();
    let done = hosts[1]
        .command(GATEWAY)
        .args(["up", "gw.toml"])
        .output()
        .expect("it runs");
    assert_eq!(done.status.code(), Some(1), "{}", super::text(&done.stderr));
    wait("an answer", || ping(&hosts));
    let mode = fs::metadata(hosts[1].folder.path().join("status.sock")).expect("it is there");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn metrics_are_read_over_http() {
    let mut hosts = hosts();
    hosts[0].start();
    let read = hosts[0].inside(|| {
        let mut stream = TcpStream::connect("127.0.0.1:9469").expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is text");
        answer
    });
    let answer = read.join().expect("no panic");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\nanabranch_gateway_peer_up{peer=\"other\"} 0\n"),
        "{answer}"
    );
}
