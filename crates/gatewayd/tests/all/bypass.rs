//! Traffic beside the tunnel, as seen on the links.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    net::if_::if_nametoindex,
    sys::socket::{
        AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
        sockopt,
    },
};

use super::{
    changes::{file, reload, write},
    names::{ABSENT, KNOWN, NameServer, PATIENT, start, with_resolver},
    namespaces::{GATEWAY, Host, hosts, ping_to, wait},
};

/// UDP datagrams over IPv4 and IPv6 that the second host's links carry in clear.
struct Links {
    is_over: Arc<AtomicBool>,
    seen: Arc<Mutex<BTreeSet<SocketAddr>>>,
    thread: Option<JoinHandle<()>>,
}

impl Links {
    fn of(host: &Host) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let (over, list) = (Arc::clone(&is_over), Arc::clone(&seen));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = host.inside(move || {
            let flags = SockFlag::SOCK_NONBLOCK;
            let kind = SockType::Datagram;
            let all = socket(AddressFamily::Packet, kind, flags, SockProtocol::EthAll);
            let all = all.expect("root");
            let links = ["w1", "w2"].map(|name| if_nametoindex(name).expect("a link") as usize);
            ready.send(()).expect("the test waits");
            let mut packet = [0; 2048];
            while !over.load(Ordering::SeqCst) {
                let received = recvfrom::<LinkAddr>(all.as_raw_fd(), &mut packet);
                let Ok((length, Some(from))) = received else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                if links.contains(&from.ifindex()) {
                    let mut list = list.lock().expect("no panic");
                    list.extend(destination(&packet[..length]));
                }
            }
        });
        is_ready.recv().expect("it starts");
        Self {
            is_over,
            seen,
            thread: Some(thread),
        }
    }

    /// Whether a datagram that is sent now to an address passes the links in clear.
    fn carry(&self, to: &str, send: impl Fn(SocketAddr)) -> bool {
        let to: SocketAddr = to.parse().expect("an address");
        self.seen.lock().expect("no panic").clear();
        for _ in 0..20 {
            send(to);
            thread::sleep(Duration::from_millis(10));
            if self.seen.lock().expect("no panic").contains(&to) {
                return true;
            }
        }
        false
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The destination of a UDP datagram.
fn destination(packet: &[u8]) -> Option<SocketAddr> {
    const UDP: u8 = 17;
    let (address, next, start) = match packet.first()? >> 4 {
        4 => {
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (IpAddr::from(address), packet[9], 20)
        }
        6 => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            (IpAddr::from(address), packet[6], 40)
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(packet.get(start + 2..start + 4)?.try_into().ok()?);
    (next == UDP).then_some(SocketAddr::new(address, port))
}

/// Sends a datagram by a socket that `prepare` sets up.
fn send(host: &Host, to: SocketAddr, prepare: impl FnOnce(&UdpSocket) + Send + 'static) {
    let sent = host.inside(move || {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).expect("it is free");
        prepare(&socket);
        let _ = socket.send_to(b"clear", to);
    });
    sent.join().expect("no panic");
}

fn plain(host: &Host) -> impl Fn(SocketAddr) {
    |to| send(host, to, |_| {})
}

/// Two hosts with a tunnel for all traffic, beside a default route over the first link.
fn up(bypass: &str) -> [Host; 2] {
    let mut hosts = prepared(bypass);
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
    hosts
}

fn prepared(bypass: &str) -> [Host; 2] {
    let hosts = hosts();
    for (end, host) in hosts.iter().enumerate() {
        let address = format!("fd01::{}/64", end + 1);
        host.ip(&["addr", "add", &address, "dev", "w1", "nodad"]);
    }
    hosts[0].ip(&["route", "add", "default", "via", "10.1.0.2"]);
    hosts[0].ip(&["-6", "route", "add", "default", "via", "fd01::2"]);
    let text = format!(
        "[gateway]\naddresses = [\"10.9.0.1/24\", \"fd09::1/64\"]\nprivate_key_file = \"key\"\n\
         [peer.other]\npublic_key = \"{}\"\nallowed = [\"0.0.0.0/0\", \"::/0\", \"10.6.0.0/16\"]\n\
         endpoints = [\"10.1.0.2:51900\"]\n[status]\nsocket = \"status.sock\"\n{bypass}",
        hosts[1].public
    );
    write(&hosts[0], &text);
    hosts
}

fn rules(host: &Host) -> String {
    let mut all = String::new();
    for family in ["-4", "-6"] {
        let mut command = host.command("ip");
        let done = command.args([family, "rule"]).output().expect("it runs");
        all += &super::text(&done.stdout);
    }
    all
}

#[test]
fn wrong_bypasses_have_messages() {
    let wrong = [
        "",
        "user = \"rot\"",
        "prot = 5",
        "domain = \"*.example\"",
        "mark = \"0x100/0xf0\"",
        "mark = 51900",
        "protocol = \"ucp\"",
        "dscp = 0",
        "dscp = [\"ef\", \"cs0\"]",
        "domain = \"video.example\"\nport = [80, 443]\nuser = [0, 1, 2]\nmark = [1, 2, 3, 4, 5, 6]",
    ];
    let told = wrong.map(|keys| {
        let table = format!("[bypass.x]\n{keys}\n\n[class.backups]");
        super::refused(&[("[class.backups]", &table)])
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn selected_packets_do_not_enter_the_tunnel() {
    let mut hosts = up(
        "[bypass.provider]\nprefix = [\"10.4.0.0/24\", \"10.6.7.0/24\", \"fd04::/64\"]\n\
         [bypass.game]\nport = [7777, \"8000-8010\"]\nprotocol = \"udp\"\n\
         [bypass.marked]\nmark = \"0x70/0xf0\"\n\
         [bypass.guests]\nsource = \"10.8.1.0/24\"\n[bypass.backups]\nuser = \"nobody\"\nport = 873\n",
    );
    let links = Links::of(&hosts[1]);
    let plain = plain(&hosts[0]);
    for (to, is_clear) in [
        ("10.4.0.2:9", true),
        ("10.6.7.2:9", true),
        ("[fd04::2]:9", true),
        ("10.5.0.2:7777", true),
        ("[fd05::2]:8005", true),
        ("10.5.0.2:9", false),
        ("10.6.8.2:9", false),
        ("[fd05::2]:9", false),
        ("10.5.0.2:8011", false),
        ("10.5.0.2:873", false),
    ] {
        assert_eq!(links.carry(to, &plain), is_clear, "{to}");
    }
    for (mark, is_clear) in [(0x172, true), (0x162, false)] {
        let marked = |to| {
            send(&hosts[0], to, move |socket| {
                setsockopt(socket, sockopt::Mark, &mark).expect("root");
            });
        };
        assert_eq!(links.carry("10.5.0.2:9", marked), is_clear, "{mark:#x}");
    }
    let as_nobody = |to: SocketAddr| {
        let mut command = hosts[0].command("setpriv");
        let script = format!("echo clear > /dev/udp/{}/{}", to.ip(), to.port());
        command.args(["--reuid", "nobody", "--clear-groups", "bash", "-c", &script]);
        command.output().expect("it runs");
    };
    assert!(links.carry("10.5.0.2:873", as_nobody), "user");
    assert!(!links.carry("10.5.0.2:9", as_nobody), "user, another port");

    // Packets of the LAN.
    let lan = Host::new();
    let there = hosts[0].space.id().to_string();
    lan.ip(&[
        "link", "add", "l0", "type", "veth", "peer", "name", "l0", "netns", &there,
    ]);
    for (host, address) in [(&lan, "10.8.0.2/24"), (&hosts[0], "10.8.0.1/24")] {
        host.ip(&["addr", "add", address, "dev", "l0"]);
        host.ip(&["link", "set", "l0", "up"]);
    }
    lan.ip(&["route", "add", "default", "via", "10.8.0.1"]);
    let forward = hosts[0].inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
    forward.join().expect("no panic").expect("root");
    let from_lan = |to| send(&lan, to, |_| {});
    for (to, is_clear) in [
        ("10.4.0.2:9", true),
        ("10.5.0.2:7777", true),
        ("10.5.0.2:9", false),
    ] {
        assert_eq!(links.carry(to, from_lan), is_clear, "{to} from the LAN");
    }

    assert!(!links.carry("10.5.0.2:10", from_lan));
    for (host, address) in [(&lan, "10.8.1.2/24"), (&hosts[0], "10.8.1.1/24")] {
        host.ip(&["addr", "add", address, "dev", "l0"]);
    }
    lan.ip(&[
        "route", "replace", "default", "via", "10.8.1.1", "src", "10.8.1.2",
    ]);
    assert!(links.carry("10.5.0.2:10", from_lan), "guests of the LAN");

    let without = file(&hosts[0]).replace("\"10.6.7.0/24\", ", "");
    write(&hosts[0], &without);
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    assert!(!links.carry("10.6.7.2:9", &plain), "after the reload");
    assert!(links.carry("10.4.0.2:9", &plain));
    drop(plain);
    assert_eq!(hosts[0].stop(), Some(0));
    let left = rules(&hosts[0]);
    assert!(!left.contains("goto") && !left.contains("519"), "{left}");
}

/// Kernels before 6.13 ignore a DSCP in rules of IPv4: all packets would bypass the tunnel.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn packets_with_a_code_point_bypass_the_tunnel_or_none_do() {
    let mut hosts = prepared("[bypass.calls]\ndscp = \"ef\"\n");
    let protected = file(&hosts[0]).replace("[gateway]\n", "[gateway]\nprotect = true\n");
    write(&hosts[0], &protected);
    let mut command = hosts[0].command(GATEWAY);
    let done = command.args(["protect", "gw.toml"]).output();
    let told = super::text(&done.expect("it runs").stderr);
    let is_old = told.contains("this kernel has no rules by DSCP for IPv4");
    assert!(is_old || told.is_empty(), "{told}");
    let links = Links::of(&hosts[1]);
    let expedited = |to| {
        send(&hosts[0], to, |socket| {
            rustix::net::sockopt::set_ip_tos(socket, 46 << 2).expect("a socket");
        });
    };
    assert_eq!(links.carry("10.5.0.2:9", expedited), !is_old);
    assert!(!links.carry("10.5.0.2:9", plain(&hosts[0])));
    if is_old {
        return;
    }
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
    let expedited = |to| {
        send(&hosts[0], to, |socket| {
            rustix::net::sockopt::set_ip_tos(socket, 46 << 2).expect("a socket");
        });
    };
    assert!(links.carry("10.5.0.2:9", expedited));
    assert!(!links.carry("10.5.0.2:9", plain(&hosts[0])));
}

/// Rules remain after a gateway. Another one of this host with the same bypass has separate rules.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn gateways_of_a_host_have_separate_rules() {
    let hosts = prepared("[bypass.provider]\nprefix = \"10.4.0.0/24\"\n");
    let first = file(&hosts[0]).replace("[gateway]\n", "[gateway]\nprotect = true\n");
    write(&hosts[0], &first);
    let second = first.replace("[gateway]\n", "[gateway]\ninterface = \"anabranch1\"\n");
    std::fs::write(hosts[0].folder.path().join("second.toml"), second).expect("it is written");
    let count = || rules(&hosts[0]).matches("to 10.4.0.0/24 goto").count();
    for (command, file, left) in [
        ("protect", "gw.toml", 1),
        ("protect", "second.toml", 2),
        ("protect", "second.toml", 2),
        ("down", "gw.toml", 1),
        ("down", "gw.toml", 1),
        ("down", "second.toml", 0),
    ] {
        let mut ran = hosts[0].command(GATEWAY);
        let done = ran.args([command, file]).output().expect("it runs");
        assert!(done.status.success(), "{}", super::text(&done.stderr));
        assert_eq!(count(), left, "{command} {file}: {}", rules(&hosts[0]));
    }
}

/// A bypass is part of the protection: the same packets leave in clear in each state.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_bypass_stays_open_while_the_gateway_is_down() {
    let mut hosts = prepared("[bypass.provider]\nprefix = \"10.4.0.0/24\"\n");
    let protected = file(&hosts[0]).replace("[gateway]\n", "[gateway]\nprotect = true\n");
    write(&hosts[0], &protected);
    let links = Links::of(&hosts[1]);
    let is_right = |hosts: &[Host; 2], when: &str| {
        let plain = plain(&hosts[0]);
        assert!(links.carry("10.4.0.2:9", &plain), "{when}");
        assert!(!links.carry("10.5.0.2:9", &plain), "{when}");
    };
    let run = |host: &Host, command: &str| {
        let mut ran = host.command(GATEWAY);
        let done = ran.args([command, "gw.toml"]).output().expect("it runs");
        assert!(done.status.success(), "{}", super::text(&done.stderr));
    };
    run(&hosts[0], "protect");
    is_right(&hosts, "before the start");
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
    is_right(&hosts, "while the gateway is up");
    let mut gateway = hosts[0].gateway.take().expect("it is up");
    gateway.kill().expect("it is ours");
    gateway.wait().expect("it ends");
    is_right(&hosts, "after SIGKILL");
    run(&hosts[0], "down");
    let left = rules(&hosts[0]);
    assert!(!left.contains("goto") && !left.contains("519"), "{left}");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn the_addresses_of_a_domain_are_kept_fresh() {
    let mut hosts = prepared("[bypass.video]\ndomain = \"video.example\"\n");
    let names = NameServer::start(&hosts[0], KNOWN);
    names.answer(&[[198, 51, 100, 2]]);
    start(&mut hosts[0]);
    hosts[1].start();
    let links = Links::of(&hosts[1]);
    let plain = plain(&hosts[0]);
    wait("the bypass", || links.carry("198.51.100.2:9", &plain));
    assert!(!links.carry("198.51.100.3:9", &plain));
    let listed = hosts[0].status()["bypass"]["video"]["addresses"].clone();
    assert_eq!(listed, serde_json::json!(["198.51.100.2"]));
    // Answers with addresses of a peer or of the LAN.
    names.answer(&[[10, 6, 0, 2], [10, 4, 0, 2]]);
    wait("the refusal", || hosts[0].log().contains("is not used"));
    for to in ["10.6.0.2:9", "10.4.0.2:9"] {
        assert!(!links.carry(to, &plain), "{to}");
    }
    // Earlier addresses remain in use by connections.
    names.answer(&[[198, 51, 100, 3]]);
    wait("the other address", || {
        links.carry("198.51.100.3:9", &plain)
    });
    assert!(links.carry("198.51.100.2:9", &plain));
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_domain_without_address_is_shown() {
    let mut hosts = prepared("[bypass.video]\ndomain = \"video.example\"\n");
    let why = "bypass video: domain video.example: the name has no address";
    let names = NameServer::start(&hosts[0], ABSENT);
    let checked = |host: &Host| {
        let done = with_resolver(host, PATIENT, "check").output();
        let done = done.expect("it runs");
        assert_eq!(done.status.code(), Some(0));
        super::text(&done.stderr)
    };
    let told = checked(&hosts[0]);
    assert!(told.contains(&format!("remark: {why}")), "{told}");
    start(&mut hosts[0]);
    let shown = |host: &Host| super::text(&host.ask(&[]).stdout);
    wait("the failure", || shown(&hosts[0]).contains(why));
    let unresolved = hosts[0].status()["bypass"]["video"]["unresolved"].clone();
    let message = unresolved["video.example"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("domain video.example: "),
        "{unresolved}"
    );
    names.answer(&[[198, 51, 100, 2]]);
    names.set(KNOWN);
    wait("the address", || {
        shown(&hosts[0]).contains("bypass video: 198.51.100.2\n")
    });
    assert!(!shown(&hosts[0]).contains(why));
    let told = checked(&hosts[0]);
    assert!(!told.contains("bypass video"), "{told}");
}
