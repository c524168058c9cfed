//! Endpoints with names, and a name server that the test controls.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
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
pub const ABSENT: u32 = 1;
pub const KNOWN: u32 = 2;
const OVER: u32 = 3;

/// A name server on a host's loopback interface. It is silent, reports that the name does not
/// exist, or answers with its addresses, at first 10.2.0.2.
pub struct NameServer {
    mode: Arc<AtomicU32>,
    addresses: Arc<Mutex<Vec<Ipv4Addr>>>,
    asked: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    pub fn start(host: &Host, mode: u32) -> Self {
        Self::start_at(host, mode, "127.0.0.1:53")
    }

    /// Starts at an address, which is added to the loopback interface.
    fn start_at(host: &Host, mode: u32, at: &'static str) -> Self {
        let address = at.trim_end_matches(":53").to_owned();
        if address != "127.0.0.1" {
            host.ip(&["addr", "add", &address, "dev", "lo"]);
        }
        let mode = Arc::new(AtomicU32::new(mode));
        let asked = Arc::new(AtomicU32::new(0));
        let addresses = Arc::new(Mutex::new(vec![Ipv4Addr::new(10, 2, 0, 2)]));
        let known = Arc::clone(&addresses);
        let (orders, count) = (Arc::clone(&mode), Arc::clone(&asked));
        let socket = host.inside(move || UdpSocket::bind(at).expect("it is free"));
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
                    let known = known.lock().expect("no panic").clone();
                    for (query, from) in open.drain(..) {
                        let known = (mode == KNOWN).then_some(known.as_slice());
                        let _ = socket.send_to(&reply(&query, known), from);
                    }
                }
            }
        });
        Self {
            mode,
            addresses,
            asked,
            thread: Some(thread),
        }
    }

    pub fn set(&self, mode: u32) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    pub fn answer(&self, addresses: &[[u8; 4]]) {
        let addresses = addresses.iter().map(|&octets| octets.into()).collect();
        *self.addresses.lock().expect("no panic") = addresses;
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
fn reply(query: &[u8], known: Option<&[Ipv4Addr]>) -> Vec<u8> {
    const A: u8 = 1;
    let mut end = 12;
    while query[end] != 0 {
        end += 1 + usize::from(query[end]);
    }
    let addresses = known.filter(|_| query[end + 2] == A).unwrap_or_default();
    let mut reply = query[..end + 5].to_vec();
    reply[2] = 0x81;
    reply[3] = if known.is_some() { 0x80 } else { 0x83 };
    let count = u8::try_from(addresses.len()).expect("few");
    reply[4..12].copy_from_slice(&[0, 1, 0, count, 0, 0, 0, 0]);
    for address in addresses {
        reply.extend([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(address.octets());
    }
    reply
}

pub const PATIENT: &str = "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";

/// Starts the gateway with a resolver that queries the loopback interface and has a long timeout.
pub fn start(host: &mut Host) {
    start_with(host, PATIENT);
}

fn start_with(host: &mut Host, resolver: &str) {
    let command = with_resolver(host, resolver, "up");
    host.spawn(command);
}

/// A command of the gateway with a resolver's configuration.
pub fn with_resolver(host: &Host, resolver: &str, name: &str) -> Command {
    let folder = host.folder.path();
    fs::write(folder.join("resolv.conf"), resolver).expect("ours");
    fs::write(folder.join("nsswitch.conf"), "hosts: files dns\n").expect("ours");
    let script = "for name in resolv.conf nsswitch.conf; do \
                  test ! -e /etc/$name || mount --bind $name /etc/$name || exit 1; done; exec \"$@\"";
    let mut command = host.command("unshare");
    command.args([
        "--mount", "sh", "-c", script, "sh", GATEWAY, name, "gw.toml",
    ]);
    command
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

/// The configuration with one path, over the second link, to a name.
fn one_path(host: &Host) {
    let text = named(&file(host)).replace("\"10.1.0.2:51900\", ", "");
    write(host, &text.replace("[path.one]\ninterface = \"w1\"\n", ""));
}

fn endpoint(host: &Host, path: &str) -> String {
    let peer = peer(host);
    let endpoint = peer["paths"][path]["endpoint"].as_str();
    endpoint.unwrap_or_default().to_owned()
}

/// A server with a dynamic name gets another address, without a reload.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_silent_path_resolves_its_name_again() {
    let mut hosts = hosts();
    let names = NameServer::start(&hosts[0], KNOWN);
    one_path(&hosts[0]);
    start(&mut hosts[0]);
    hosts[1].start();
    wait("an answer", || ping(&hosts));
    let asked = names.asked();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(names.asked(), asked, "a path that delivers asks");
    // A server that only answers cannot move its paths after a restart.
    assert_eq!(hosts[1].stop(), Some(0));
    names.answer(&[[10, 2, 0, 3]]);
    hosts[1].ip(&["addr", "del", "10.2.0.2/24", "dev", "w2"]);
    hosts[1].ip(&["addr", "add", "10.2.0.3/24", "dev", "w2"]);
    hosts[1].start();
    wait("an answer", || ping(&hosts));
    assert_eq!(endpoint(&hosts[0], "two"), "10.2.0.3:51900");
    let found = "endpoint hub.example:51900 is 10.2.0.3:51900";
    assert!(hosts[0].log().contains(found), "{}", hosts[0].log());
    // The counter outlives the change of the address.
    assert_eq!(peer(&hosts[0])["paths"]["two"]["deaths"], 1);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn each_address_of_a_name_is_tried() {
    let mut hosts = hosts();
    let names = NameServer::start(&hosts[0], KNOWN);
    names.answer(&[[10, 2, 0, 8], [10, 2, 0, 9], [10, 2, 0, 2]]);
    one_path(&hosts[0]);
    start(&mut hosts[0]);
    hosts[1].start();
    wait("an answer", || ping(&hosts));
    assert_eq!(endpoint(&hosts[0], "two"), "10.2.0.2:51900");
    // The address of the other link, by the same name.
    names.answer(&[[10, 2, 0, 8], [10, 2, 0, 3]]);
    hosts[1].ip(&["addr", "del", "10.2.0.2/24", "dev", "w2"]);
    hosts[1].ip(&["addr", "add", "10.2.0.3/24", "dev", "w2"]);
    wait("the other address", || {
        endpoint(&hosts[0], "two") == "10.2.0.3:51900" && state(&hosts[0], "two") == "active"
    });
}

/// Each path is led to an address that its link has a route to, whatever the order of the
/// endpoints.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_line_without_ipv6_is_led_to_an_ipv4_address() {
    let mut hosts = hosts();
    for (host, address) in hosts.iter().zip(["fd02::1/64", "fd02::2/64"]) {
        host.ip(&["addr", "flush", "dev", "w2"]);
        host.ip(&["addr", "add", address, "dev", "w2", "nodad"]);
    }
    let swapped = file(&hosts[0]).replace(
        "\"10.1.0.2:51900\", \"10.2.0.2:51900\"",
        "\"[fd02::2]:51900\", \"10.1.0.2:51900\"",
    );
    write(&hosts[0], &swapped);
    for host in &mut hosts {
        host.start();
    }
    wait("both paths", || {
        state(&hosts[0], "one") == "active" && state(&hosts[0], "two") == "active"
    });
    assert_eq!(endpoint(&hosts[0], "one"), "10.1.0.2:51900");
    assert_eq!(endpoint(&hosts[0], "two"), "[fd02::2]:51900");
}

/// With a default route into the tunnel, the name server is reached by the gateway's own queries,
/// which the protection lets out.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn names_are_resolved_beside_a_protected_default_route() {
    let mut hosts = hosts();
    let names = NameServer::start_at(&hosts[1], KNOWN, "10.3.0.2:53");
    hosts[0].ip(&["route", "add", "default", "via", "10.2.0.2"]);
    // The filter that distributions set drops answers from addresses without a route.
    let filter = || fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "2");
    let filter = hosts[0].inside(filter);
    filter.join().expect("no panic").expect("root");
    one_path(&hosts[0]);
    let text = file(&hosts[0])
        .replace("[gateway]\n", "[gateway]\nprotect = true\n")
        .replace("[\"10.9.0.2\"]", "[\"0.0.0.0/0\"]");
    write(&hosts[0], &text);
    start_with(
        &mut hosts[0],
        "nameserver 10.3.0.2\noptions timeout:1 attempts:1\n",
    );
    hosts[1].start();
    wait("an answer", || ping(&hosts));
    assert!(names.asked() > 0);
    assert_eq!(endpoint(&hosts[0], "two"), "10.2.0.2:51900");
}
