//! Several peers: servers of one group, branches that reach each other through a hub, prefixes
//! within prefixes, and an MTU for each peer.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu, set_ip_mtu_discover};
use serde_json::Value;

use super::namespaces::{Host, wait};

/// A link between two hosts, with an address of 10.LINK.0.0/24 at each.
fn link(a: &Host, b: &Host, number: usize) {
    let name = format!("w{number}");
    let there = b.space.id().to_string();
    a.ip(&[
        "link", "add", &name, "type", "veth", "peer", "name", &name, "netns", &there,
    ]);
    for (end, host) in [a, b].into_iter().enumerate() {
        let address = format!("10.{number}.0.{}/24", end + 1);
        host.ip(&["addr", "add", &address, "dev", &name]);
        host.ip(&["link", "set", &name, "up"]);
    }
}

fn configure(host: &Host, own: &str, more: &str) {
    let text = format!(
        "[gateway]\naddresses = [\"{own}/24\"]\nprivate_key_file = \"key\"\n{more}\
         [status]\nsocket = \"status.sock\"\nmetrics = \"127.0.0.1:9469\"\n"
    );
    fs::write(host.folder.path().join("gw.toml"), text).expect("it is written");
}

fn peer(name: &str, host: &Host, allowed: &str, more: &str) -> String {
    let key = &host.public;
    format!("[peer.{name}]\npublic_key = \"{key}\"\nallowed = {allowed}\n{more}\n")
}

const LISTENS: &str = "listen = [\"0.0.0.0:51900\"]\n";

/// Whether a datagram from one host arrives at an address of another one.
fn passes(from: &Host, own: &str, to: &Host, address: &str) -> bool {
    let at = format!("{address}:7000");
    let receiver = to.inside(move || UdpSocket::bind(&at).expect("it is free"));
    let receiver = receiver.join().expect("no panic");
    let limit = Some(Duration::from_millis(300));
    receiver.set_read_timeout(limit).expect("a socket");
    let own = format!("{own}:0");
    let sender = from.inside(move || UdpSocket::bind(&own).expect("it is free"));
    let sender = sender.join().expect("no panic");
    if sender
        .send_to(b"passes", format!("{address}:7000"))
        .is_err()
    {
        return false;
    }
    matches!(receiver.recv(&mut [0; 16]), Ok(6))
}

fn routes(host: &Host) -> String {
    let mut command = host.command("ip");
    super::text(&command.args(["route"]).output().expect("it runs").stdout)
}

fn state(host: &Host, peer: &str) -> Value {
    host.status()["peers"][peer]["state"].clone()
}

/// A branch with two servers, `first` and `second`, that both serve 10.50.0.0/16.
fn branch_and_servers(second_rank: &str) -> [Host; 3] {
    let mut hosts = [Host::new(), Host::new(), Host::new()];
    link(&hosts[0], &hosts[1], 1);
    link(&hosts[0], &hosts[2], 2);
    let servers: String = [("first", 1, ""), ("second", 2, second_rank)]
        .into_iter()
        .map(|(name, number, rank)| {
            let more = format!("group = \"hub\"\n{rank}endpoints = [\"10.{number}.0.2:51900\"]\n");
            let own = format!("[\"10.9.0.{}\", \"10.50.0.0/16\"]", number + 1);
            peer(name, &hosts[number], &own, &more)
        })
        .collect();
    configure(&hosts[0], "10.9.0.1", &servers);
    for number in [1, 2] {
        let branch = peer("branch", &hosts[0], "[\"10.9.0.1\"]", "");
        let own = format!("10.9.0.{}", number + 1);
        configure(&hosts[number], &own, &format!("{LISTENS}{branch}"));
        hosts[number].ip(&["addr", "add", "10.50.0.1/32", "dev", "lo"]);
    }
    for host in &mut hosts {
        host.start();
    }
    hosts
}

pub fn metrics(host: &Host) -> String {
    let scraper = host.inside(|| TcpStream::connect("127.0.0.1:9469").expect("it is up"));
    let mut scraper = scraper.join().expect("no panic");
    let request = b"GET /metrics HTTP/1.1\r\n\r\n";
    scraper.write_all(request).expect("it is taken");
    let mut text = String::new();
    scraper.read_to_string(&mut text).expect("it is text");
    text
}

fn carries(branch: &Host, server: &str) -> bool {
    branch.status()["peers"][server]["carries"] == true
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn another_server_carries_while_the_best_is_down() {
    let mut hosts = branch_and_servers("");
    wait("both servers", || {
        ["first", "second"]
            .iter()
            .all(|name| state(&hosts[0], name) == "up")
    });
    wait("the better server", || carries(&hosts[0], "first"));
    assert!(!carries(&hosts[0], "second"));
    wait("an answer", || {
        passes(&hosts[0], "10.9.0.1", &hosts[1], "10.50.0.1")
    });
    let shown = super::text(&hosts[0].ask(&[]).stdout);
    assert!(shown.contains("peer first: up, carries hub;"), "{shown}");
    assert!(shown.contains("peer second: up, waits in hub;"), "{shown}");

    // The link dies without a sign of its carrier at the branch's gateway.
    let gateway = hosts[1].gateway.as_mut().expect("it is up");
    gateway.kill().expect("it is ours");
    gateway.wait().expect("it ends");
    let dead = Instant::now();
    wait("the other server", || carries(&hosts[0], "second"));
    let took = dead.elapsed();
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    wait("an answer", || {
        passes(&hosts[0], "10.9.0.1", &hosts[2], "10.50.0.1")
    });
    let moved =
        "group hub: the traffic moves from peer first to peer second, because the other is down";
    assert!(hosts[0].log().contains(moved), "{}", hosts[0].log());

    hosts[1].start();
    wait("the server's return", || state(&hosts[0], "first") == "up");
    let up = Instant::now();
    assert!(carries(&hosts[0], "second"));
    wait("the way back", || carries(&hosts[0], "first"));
    let took = up.elapsed();
    assert!(took > Duration::from_secs(8), "{took:?}");
    wait("an answer", || {
        passes(&hosts[0], "10.9.0.1", &hosts[1], "10.50.0.1")
    });
    let moved = "from peer second to peer first, which is better and has stayed up";
    assert!(hosts[0].log().contains(moved), "{}", hosts[0].log());
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn the_lowest_priority_carries_and_a_reload_changes_it() {
    let hosts = branch_and_servers("priority = 5\n");
    wait("the better server", || carries(&hosts[0], "first"));
    let file = hosts[0].folder.path().join("gw.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let text = text.replace("endpoints = [\"10.1", "priority = 7\nendpoints = [\"10.1");
    fs::write(&file, text).expect("it is written");
    assert_eq!(super::changes::reload(&hosts[0]), (Some(0), String::new()));
    wait("the better server", || carries(&hosts[0], "second"));
    wait("an answer", || {
        passes(&hosts[0], "10.9.0.1", &hosts[2], "10.50.0.1")
    });
    let metrics = metrics(&hosts[0]);
    let expected = "anabranch_gateway_peer_carries{peer=\"second\",group=\"hub\"} 1";
    assert!(metrics.contains(expected), "{metrics}");
}

/// Two branches with a hub between them, which forwards as a router does.
fn hub_and_branches() -> [Host; 3] {
    let hosts = [Host::new(), Host::new(), Host::new()];
    let [hub, a, b] = &hosts;
    link(a, hub, 1);
    link(b, hub, 2);
    let branches = [
        peer("a", a, "[\"10.9.0.2\", \"192.168.0.0/16\"]", ""),
        peer("b", b, "[\"10.9.0.3\", \"192.168.8.0/24\"]", ""),
    ]
    .concat();
    configure(hub, "10.9.0.1", &format!("{LISTENS}{branches}"));
    for (number, host) in [(1, a), (2, b)] {
        let more = format!("endpoints = [\"10.{number}.0.2:51900\"]\n");
        let peer = peer("hub", hub, "[\"10.9.0.0/24\", \"192.168.0.0/16\"]", &more);
        configure(host, &format!("10.9.0.{}", number + 1), &peer);
    }
    a.ip(&["addr", "add", "192.168.7.1/24", "dev", "lo"]);
    b.ip(&["addr", "add", "192.168.8.1/24", "dev", "lo"]);
    let forwards = hub.inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
    forwards.join().expect("no panic").expect("root");
    hosts
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn branches_reach_each_other_through_a_hub() {
    let mut hosts = hub_and_branches();
    for host in &mut hosts {
        host.start();
    }
    let [hub, a, b] = &hosts;
    wait("both branches", || {
        state(hub, "a") == "up" && state(hub, "b") == "up"
    });
    // The prefix of `b` is within that of `a`.
    for (from, own, to, address) in [
        (a, "10.9.0.2", b, "10.9.0.3"),
        (b, "10.9.0.3", a, "10.9.0.2"),
        (a, "192.168.7.1", b, "192.168.8.1"),
        (b, "192.168.8.1", a, "192.168.7.1"),
        (hub, "10.9.0.1", b, "192.168.8.1"),
    ] {
        wait("an answer", || passes(from, own, to, address));
    }
    assert_eq!(hub.rejected("foreign_sources"), 0);
    // A source that the longest match gives to the other branch is dropped.
    a.ip(&["addr", "add", "192.168.8.9/32", "dev", "lo"]);
    assert!(!passes(a, "192.168.8.9", hub, "10.9.0.1"));
    assert_eq!(hub.rejected("foreign_sources"), 1);
    // A transfer from branch to branch.
    let listener = b.inside(|| TcpListener::bind("192.168.8.1:5000").expect("it is free"));
    let listener = listener.join().expect("no panic");
    let sender = a.inside(|| {
        let to: SocketAddr = "192.168.8.1:5000".parse().expect("an address");
        let limit = Duration::from_secs(60);
        let mut stream = TcpStream::connect_timeout(&to, limit).expect("it is accepted");
        stream.write_all(&vec![7; 1 << 20]).expect("it is taken");
    });
    let (mut stream, _) = listener.accept().expect("it comes");
    let mut arrived = Vec::new();
    stream.read_to_end(&mut arrived).expect("it arrives");
    sender.join().expect("no panic");
    assert_eq!(arrived.len(), 1 << 20);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn each_peer_has_its_own_mtu() {
    let mut hosts = hub_and_branches();
    for host in [&hosts[0], &hosts[2]] {
        host.ip(&["link", "set", "w2", "mtu", "1300"]);
    }
    for host in &mut hosts {
        host.start();
    }
    let [hub, a, b] = &hosts;
    let mtu = |peer: &str| hub.status()["peers"][peer]["mtu"].clone();
    wait("the MTU of the large path", || mtu("a") == 1432);
    // 28 octets of IPv4 and UDP, 40 of the tunnel; the search ends at most 8 octets below.
    wait("the MTU of the small path", || {
        mtu("b")
            .as_u64()
            .is_some_and(|mtu| (1_224..=1_232).contains(&mtu))
    });
    let small = mtu("b");
    wait("the interface's MTU", || hub.status()["mtu"] == 1432);
    wait("the routes", || {
        let routes = routes(hub);
        let has = |start: &str, mtu: &Value| {
            let end = format!("mtu {mtu}");
            routes
                .lines()
                .any(|line| line.starts_with(start) && line.contains(&end))
        };
        has("192.168.0.0/16 dev anabranch0", &Value::from(1432))
            && has("192.168.8.0/24 dev anabranch0", &small)
    });
    // The hub's kernel notifies the other branch.
    let socket = a.inside(|| UdpSocket::bind("192.168.7.1:0").expect("it is free"));
    let socket = socket.join().expect("no panic");
    set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO).expect("a socket");
    socket
        .connect((Ipv4Addr::new(192, 168, 8, 1), 7000))
        .expect("a route");
    wait("ICMP \"fragmentation needed\"", || {
        let _ = socket.send(&[7; 1_400]);
        ip_mtu(&socket).is_ok_and(|mtu| mtu == small)
    });
    wait("an answer", || passes(a, "192.168.7.1", b, "192.168.8.1"));
    assert_eq!(hub.status()["dropped"]["too_big"], 0);
}
