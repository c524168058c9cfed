//! Endpoints with names, and a name server that the test controls.

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    changes::{file, peer, reload, state, write},
    namespaces::{GATEWAY, Host, hosts, ping, wait},
};

const SILENT: u32 = 0;
const ABSENT: u32 = 1;
const KNOWN: u32 = 2;
const OVER: u32 = 3;

/// A name server on a host's loopback interface. It is silent, reports that the name does not
/// exist, or answers 10.2.0.2.
struct NameServer {
    mode: Arc<AtomicU32>,
    asked: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    fn start(host: &Host, mode: u32) -> Self {
        let mode = Arc::new(AtomicU32::new(mode));
        let asked = Arc::new(AtomicU32::new(0));
        let (orders, count) = (Arc::clone(&mode), Arc::clone(&asked));
        let socket = host.inside(|| UdpSocket::bind("127.0.0.1:53").expect("it is free"));
        let socket = socket.join().expect("no panic");
        let turn = Some(Duration::from_millis(20));
        socket.set_read_timeout(turn).expect("a socket");
        let thread = std::thread::spawn(move || {
            let mut open: Vec<(Vec<u8>, SocketAddr)> = Vec::new();
            let mut buffer = [0; 512];
            while orders.load(Ordering::SeqCst) != OVER {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    open.push((buffer[..length].to_vec(), from));
                    count.fetch_add(1, Ordering::SeqCst);
                }
                let mode = orders.load(Ordering::SeqCst);
                if mode != SILENT {
                    for (query, from) in open.drain(..) {
                        let _ = socket.send_to(&reply(&query, mode == KNOWN), from);
                    }
                }
            }
        });
        Self {
            mode,
            asked,
            thread: Some(thread),
        }
    }

    fn set(&self, mode: u32) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.set(OVER);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The reply to a query with one question (RFC 1035 §4.1).
fn reply(query: &[u8], is_known: bool) -> Vec<u8> {
    const A: u8 = 1;
    let mut end = 12;
    while query[end] != 0 {
        end += 1 + usize::from(query[end]);
    }
    let has_answer = is_known && query[end + 2] == A;
    let mut reply = query[..end + 5].to_vec();
    reply[2] = 0x81;
    reply[3] = if is_known { 0x80 } else { 0x83 };
    reply[4..12].copy_from_slice(&[0, 1, 0, has_answer.into(), 0, 0, 0, 0]);
    if has_answer {
        reply.extend([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 60, 0, 4, 10, 2, 0, 2]);
    }
    reply
}

/// Starts the gateway with a resolver that queries the loopback interface and has a long timeout.
fn start(host: &mut Host) {
    let folder = host.folder.path();
    let resolver = "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";
    fs::write(folder.join("resolv.conf"), resolver).expect("ours");
    fs::write(folder.join("nsswitch.conf"), "hosts: files dns\n").expect("ours");
    let script = "for name in resolv.conf nsswitch.conf; do \
                  test ! -e /etc/$name || mount --bind $name /etc/$name || exit 1; done; exec \"$@\"";
    let mut command = host.command("unshare");
    command.args([
        "--mount", "sh", "-c", script, "sh", GATEWAY, "up", "gw.toml",
    ]);
    host.spawn(command);
}

fn begin_reload(host: &Host) -> Child {
    let mut command = host.command(GATEWAY);
    command.args(["reload", "gw.toml"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn named(text: &str) -> String {
    text.replace("10.2.0.2:51900", "hub.example:51900")
}

fn both_up_with(mode: u32) -> ([Host; 2], NameServer) {
    let mut hosts = hosts();
    let names = NameServer::start(&hosts[0], mode);
    start(&mut hosts[0]);
    hosts[1].start();
    wait("both paths", || {
        state(&hosts[0], "one") == "active" && state(&hosts[0], "two") == "active"
    });
    (hosts, names)
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_silent_resolver_stops_neither_tunnel_nor_status() {
    let (hosts, names) = both_up_with(SILENT);
    let sessions = peer(&hosts[0])["sessions"].clone();
    write(&hosts[0], &named(&file(&hosts[0])));
    let mut waiting = begin_reload(&hosts[0]);
    wait("a query", || names.asked() > 0);
    wait("an answer", || ping(&hosts));
    assert_eq!(state(&hosts[0], "two"), "active");
    assert!(waiting.try_wait().expect("it is ours").is_none());
    names.set(ABSENT);
    let done = waiting.wait_with_output().expect("it ends");
    let told = super::text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    let expected = "gw.toml: endpoint hub.example:51900: the name has no address";
    assert!(told.contains(expected), "{told}");
    assert_eq!(peer(&hosts[0])["sessions"], sessions);
    assert!(ping(&hosts));
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_later_reload_replaces_one_that_waits() {
    let (hosts, names) = both_up_with(SILENT);
    let whole = file(&hosts[0]);
    write(&hosts[0], &named(&whole));
    let waiting = begin_reload(&hosts[0]);
    wait("a query", || names.asked() > 0);
    write(&hosts[0], &whole);
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    let done = waiting.wait_with_output().expect("it ends");
    assert_eq!(
        super::text(&done.stdout),
        "the configuration was reloaded\n"
    );
    names.set(KNOWN);
    write(&hosts[0], &named(&whole));
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    wait("the path", || state(&hosts[0], "two") == "active");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_gateway_starts_before_its_names_have_addresses() {
    let mut hosts = hosts();
    let names = NameServer::start(&hosts[0], ABSENT);
    let text = named(&file(&hosts[0])).replace("\"10.1.0.2:51900\", ", "");
    write(&hosts[0], &text);
    start(&mut hosts[0]);
    hosts[1].start();
    let why = "endpoint hub.example:51900: the name has no address";
    wait("the message", || hosts[0].log().contains(why));
    assert_eq!(peer(&hosts[0])["state"], "down");
    names.set(KNOWN);
    wait("an answer", || ping(&hosts));
    let found = "endpoint hub.example:51900 is 10.2.0.2:51900";
    assert!(hosts[0].log().contains(found), "{}", hosts[0].log());
}
