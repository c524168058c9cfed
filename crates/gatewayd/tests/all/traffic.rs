//! Traffic through a tunnel over two to four paths, and under shortages of the host.

use std::{
    fmt::Write as _,
    fs,
    io::IoSliceMut,
    net::{SocketAddr, UdpSocket},
    os::{fd::AsRawFd, unix::net::UnixStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, ip_mtu, set_ip_mtu_discover, set_ip_recvtos, set_ip_tos,
};

use super::namespaces::{GATEWAY, Host, both_up, content, hosts, may_run, ping, transfer, wait};

const CALLS: &str = "[class.calls]\nmatch = { dscp = 46 }\nmode = \"interactive\"\n";
const PACKETS: u32 = 100;

fn change(host: &Host, part: &str, instead: &str) {
    let file = host.folder.path().join("gw.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    assert!(text.contains(part), "{text}");
    fs::write(file, text.replace(part, instead)).expect("it is written");
}

/// Sends a call's packets from the first host to the second, and calls `midway` after half of them.
/// Returns the number of arrivals of each.
fn call(hosts: &[Host; 2], midway: impl FnOnce()) -> Vec<u32> {
    let receiver = hosts[1].inside(|| UdpSocket::bind("10.9.0.2:6000").expect("it is free"));
    let receiver = receiver.join().expect("no panic");
    let wait = Some(Duration::from_secs(2));
    receiver.set_read_timeout(wait).expect("a socket");
    let sender = hosts[0].inside(|| UdpSocket::bind("10.9.0.1:0").expect("it is free"));
    let sender = sender.join().expect("no panic");
    set_ip_tos(&sender, 46 << 2).expect("a socket");
    let to: SocketAddr = "10.9.0.2:6000".parse().expect("an address");
    let listener = thread::spawn(move || {
        let mut counts = vec![0; PACKETS as usize];
        let mut buffer = [0; 400];
        while let Ok(200) = receiver.recv(&mut buffer) {
            let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
            counts[number as usize] += 1;
        }
        counts
    });
    let mut midway = Some(midway);
    for number in 0..PACKETS {
        if number == PACKETS / 2 {
            midway.take().into_iter().for_each(|midway| midway());
        }
        let mut packet = [0; 200];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        sender.send_to(&packet, to).expect("it is taken");
        thread::sleep(Duration::from_millis(20));
    }
    listener.join().expect("no panic")
}

fn are_active(hosts: &[Host; 2], count: usize) -> bool {
    hosts.iter().all(|host| {
        let status = host.status();
        let paths = status["peers"]["other"]["paths"].as_object();
        paths.is_some_and(|paths| {
            paths.len() == count && paths.values().all(|path| path["state"] == "active")
        })
    })
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_call_outlives_a_path_and_each_packet_arrives_once() {
    let mut hosts = hosts();
    for host in &mut hosts {
        change(host, "[status]", &format!("{CALLS}[status]"));
        host.start();
    }
    wait("both paths", || are_active(&hosts, 2));
    // The far end of the cable goes down, so that both ends lose their carrier.
    let counts = call(&hosts, || hosts[1].ip(&["link", "set", "w1", "down"]));
    assert_eq!(counts, vec![1; PACKETS as usize]);
}

/// Other tests use the kernel's default, CUBIC.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_transfer_with_bbr_outlives_a_path() {
    let hosts = both_up();
    let chosen = hosts[0].inside(|| fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "bbr"));
    if chosen.join().expect("no panic").is_err() {
        eprintln!("SKIPPED: the kernel has no BBR");
        return;
    }
    wait("both paths", || are_active(&hosts, 2));
    let cut = || hosts[1].ip(&["link", "set", "w1", "down"]);
    assert!(transfer(&hosts, cut) == content(), "the content differs");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn three_and_four_paths_carry_one_transfer() {
    for count in [3, 4_usize] {
        let mut hosts = hosts();
        let there = hosts[1].space.id().to_string();
        let (mut paths, mut endpoints) = (String::new(), String::from("10.2.0.2:51900\""));
        for link in 3..=count {
            let name = format!("w{link}");
            hosts[0].ip(&[
                "link", "add", &name, "type", "veth", "peer", "name", &name, "netns", &there,
            ]);
            for (end, host) in hosts.iter().enumerate() {
                let address = format!("10.{link}.0.{}/24", end + 1);
                host.ip(&["addr", "add", &address, "dev", &name]);
                host.ip(&["link", "set", &name, "up"]);
            }
            let _ = write!(paths, "[path.p{link}]\ninterface = \"{name}\"\n");
            let _ = write!(endpoints, ", \"10.{link}.0.2:51900\"");
        }
        change(&hosts[0], "10.2.0.2:51900\"", &endpoints);
        change(&hosts[0], "[status]", &format!("{paths}[status]"));
        for host in &mut hosts {
            host.start();
        }
        wait("all paths", || are_active(&hosts, count));
        assert!(transfer(&hosts, || {}) == content(), "the content differs");
        let status = hosts[0].status();
        let paths = status["peers"]["other"]["paths"].as_object();
        let sent = |path: &serde_json::Value| path["sent_bytes"].as_u64().expect("a counter");
        assert!(paths.expect("paths").values().all(|path| sent(path) > 0));
    }
}

/// Sends a packet with each ECN code point (RFC 3168 §5) through the tunnel. Returns the code
/// points that arrived.
pub fn code_points(hosts: &[Host; 2]) -> Vec<u8> {
    let receiver = hosts[1].inside(|| UdpSocket::bind("10.9.0.2:6001").expect("it is free"));
    let receiver = receiver.join().expect("no panic");
    let wait = Some(Duration::from_secs(2));
    receiver.set_read_timeout(wait).expect("a socket");
    set_ip_recvtos(&receiver, true).expect("a socket");
    let sender = hosts[0].inside(|| UdpSocket::bind("10.9.0.1:0").expect("it is free"));
    let sender = sender.join().expect("no panic");
    let receive = || {
        let mut octets = [0; 16];
        let mut slices = [IoSliceMut::new(&mut octets)];
        let mut control = [0; 64];
        let flags = MsgFlags::empty();
        let socket = receiver.as_raw_fd();
        let taken = recvmsg::<()>(socket, &mut slices, Some(&mut control), flags).ok()?;
        taken.cmsgs().ok()?.find_map(|message| match message {
            ControlMessageOwned::Ipv4Tos(class) => Some(class & 3),
            _ => None,
        })
    };
    let pass = |code: u8| {
        set_ip_tos(&sender, code).expect("a socket");
        sender
            .send_to(&[code], "10.9.0.2:6001")
            .expect("it is taken");
        receive()
    };
    (0..4).filter_map(pass).collect()
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn inner_ecn_code_points_pass_unchanged() {
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    assert_eq!(code_points(&hosts), [0, 1, 2, 3]);
}

/// A host in the office, whose packets the branch forwards into the tunnel.
fn office_of(hosts: &[Host; 2]) -> Host {
    let office = Host::new();
    let there = office.space.id().to_string();
    hosts[0].ip(&[
        "link", "add", "lan", "type", "veth", "peer", "name", "lan", "netns", &there,
    ]);
    for (host, address) in [(&hosts[0], "192.168.7.1/24"), (&office, "192.168.7.2/24")] {
        host.ip(&["addr", "add", address, "dev", "lan"]);
        host.ip(&["link", "set", "lan", "up"]);
    }
    office.ip(&["route", "add", "10.9.0.0/24", "via", "192.168.7.1"]);
    let forwards = hosts[0].inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
    forwards.join().expect("no panic").expect("root");
    office
}

/// Waits until the office's kernel has received an ICMP message with this MTU for the far end.
fn wait_for_mtu(office: &Host, expected: impl Fn(u32) -> bool) {
    let socket = office.inside(|| UdpSocket::bind("192.168.7.2:0").expect("it is free"));
    let socket = socket.join().expect("no panic");
    set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO).expect("a socket");
    socket.connect("10.9.0.2:7000").expect("there is a route");
    // The first packet may be sent; the gateway's ICMP message makes the kernel refuse later ones.
    wait("ICMP \"fragmentation needed\"", || {
        let octets = ip_mtu(&socket).map_or(1_500, |mtu| mtu as usize) - 28;
        let _ = socket.send(&vec![7; octets]);
        ip_mtu(&socket).is_ok_and(&expected)
    });
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn hosts_of_a_gateway_learn_the_tunnels_mtu() {
    let hosts = both_up();
    let office = office_of(&hosts);
    wait("an answer", || ping(&hosts));
    wait("the tunnel's MTU", || hosts[0].status()["mtu"] == 1432);
    wait_for_mtu(&office, |mtu| mtu == 1432);
    assert_eq!(hosts[0].status()["dropped"]["too_big"], 0);
}

/// The interface keeps IPv6's least MTU there, but the route to the peer does not.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn hosts_of_a_gateway_learn_an_mtu_below_1280() {
    let mut hosts = hosts();
    for (end, host) in hosts.iter_mut().enumerate() {
        for link in ["w1", "w2"] {
            host.ip(&["link", "set", link, "mtu", "1260"]);
        }
        let own = format!("10.9.0.{}/24\"", end + 1);
        change(host, &own, &format!("{own}, \"fd09::{}/64\"", end + 1));
        host.start();
    }
    let office = office_of(&hosts);
    wait("an answer", || ping(&hosts));
    assert_eq!(hosts[0].status()["mtu"], 1280);
    // 28 octets of IPv4 and UDP, 40 of the tunnel.
    wait_for_mtu(&office, |mtu| mtu <= 1260 - 68);
    assert_eq!(hosts[0].status()["dropped"]["too_big"], 0);
}

/// Starts a gateway under a program that changes its environment.
fn start_under(host: &mut Host, words: &[&str]) {
    let gateway = host
        .command(words[0])
        .args(&words[1..])
        .args([GATEWAY, "up", "gw.toml"])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    host.gateway = Some(gateway);
    wait("the gateway", || host.ask(&[]).status.success());
}

#[test]
fn different_clocks_have_no_effect() {
    let probe = Command::new("unshare")
        .args(["--time", "--fork", "--monotonic", "1000000", "true"])
        .status();
    if !may_run() || !probe.is_ok_and(|status| status.success()) {
        return;
    }
    let mut hosts = hosts();
    let shifted = [
        "unshare",
        "--time",
        "--fork",
        "--kill-child",
        "--monotonic",
        "1000000",
    ];
    hosts[0].start();
    start_under(&mut hosts[1], &shifted);
    wait("both paths", || are_active(&hosts, 2));
    assert!(transfer(&hosts, || {}) == content(), "the content differs");
}

/// The limit leaves descriptors for some clients, and then for none: the tunnel continues, and
/// status works again after they have gone.
#[test]
fn a_gateway_without_descriptors_left_still_forwards() {
    if !may_run() {
        return;
    }
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let pid = hosts[1].gateway.as_ref().expect("it is up").id();
    let is_free = |number: &u32| !Path::new(&format!("/proc/{pid}/fd/{number}")).exists();
    let free = (0..1_000).find(is_free).expect("some number is free");
    let limited = Command::new("prlimit")
        .arg(format!("--pid={pid}"))
        .arg(format!("--nofile={limit}:{limit}", limit = free + 3))
        .status();
    assert!(limited.expect("it runs").success());
    let socket = hosts[1].folder.path().join("status.sock");
    let clients: Vec<UnixStream> = (0..20)
        .map_while(|_| UnixStream::connect(&socket).ok())
        .collect();
    assert!(clients.len() >= 4);
    assert!(transfer(&hosts, || {}) == content(), "the content differs");
    drop(clients);
    wait("status", || hosts[1].ask(&[]).status.success());
    assert!(ping(&hosts));
}
