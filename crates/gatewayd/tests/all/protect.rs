//! The protection of `allowed`: an attacker who reads the links sees no packet to these addresses.

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    net::if_::if_nametoindex,
    sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket},
};

use super::{
    changes::{file, peer, reload, write},
    namespaces::{GATEWAY, Host, hosts, ping_to, wait},
};

/// The time for which the attacker listens in each state.
const WHILE: Duration = Duration::from_millis(700);
/// Addresses of the second host that only `allowed` and default routes lead to.
const SECRET: [&str; 2] = ["10.4.0.2", "fd04::2"];

/// The packets that the attacker counts: those sent since the count began. Each packet contains the
/// number of the count at its sending, so that packets sent earlier, which may be on their way or
/// in the attacker's socket, do not count.
#[derive(Debug, Default)]
struct Count {
    number: u32,
    seen: u64,
}

/// Packets to the secret addresses that leave the first host, and an attacker who counts those on
/// the links.
struct Attack {
    is_over: Arc<AtomicBool>,
    count: Arc<Mutex<Count>>,
    threads: Vec<JoinHandle<()>>,
}

fn locked(count: &Mutex<Count>) -> MutexGuard<'_, Count> {
    count.lock().expect("no panic")
}

impl Attack {
    fn on(hosts: &[Host; 2]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let count = Arc::new(Mutex::new(Count::default()));
        let (over, counted) = (Arc::clone(&is_over), Arc::clone(&count));
        let attacker = hosts[1].inside(move || {
            let flags = SockFlag::SOCK_NONBLOCK;
            let kind = SockType::Datagram;
            let all = socket(AddressFamily::Packet, kind, flags, SockProtocol::EthAll);
            let all = all.expect("root");
            let links = ["w1", "w2"].map(|name| if_nametoindex(name).expect("a link") as usize);
            let mut packet = [0; 2048];
            while !over.load(Ordering::SeqCst) {
                let received = recvfrom::<LinkAddr>(all.as_raw_fd(), &mut packet);
                let Ok((length, Some(from))) = received else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                let Some(number) = secret(&packet[..length]) else {
                    continue;
                };
                let mut count = locked(&counted);
                if links.contains(&from.ifindex()) && number == count.number {
                    count.seen += 1;
                }
            }
        });
        let (over, counted) = (Arc::clone(&is_over), Arc::clone(&count));
        let sender = hosts[0].inside(move || {
            let sockets = ["0.0.0.0:0", "[::]:0"].map(|any| UdpSocket::bind(any).expect("free"));
            let to = SECRET.map(|to| SocketAddr::new(to.parse().expect("an address"), 9));
            while !over.load(Ordering::SeqCst) {
                let number = locked(&counted).number.to_be_bytes();
                for (socket, to) in sockets.iter().zip(to) {
                    // Refused while the tunnel is down.
                    let _ = socket.send_to(&number, to);
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self {
            is_over,
            count,
            threads: vec![attacker, sender],
        }
    }

    /// Begins to count again: packets sent from now on.
    fn begin(&self) {
        let mut count = locked(&self.count);
        count.number += 1;
        count.seen = 0;
    }

    /// The number of packets that the attacker has seen since the count began, and sees now.
    fn seen(&self) -> u64 {
        thread::sleep(WHILE);
        locked(&self.count).seen
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The number in a packet to a secret address.
fn secret(packet: &[u8]) -> Option<u32> {
    let v4 = [10, 4, 0, 2];
    let v6 = [0xfd, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let udp = 8;
    let content = match packet.first()? >> 4 {
        4 if packet.get(16..20)? == v4 => packet.get(20 + udp..)?,
        6 if packet.get(24..40)? == v6 => packet.get(40 + udp..)?,
        _ => return None,
    };
    content.first_chunk().copied().map(u32::from_be_bytes)
}

fn run(host: &Host, arguments: &[&str]) -> String {
    let mut command = host.command(GATEWAY);
    let done = command.args(arguments).output().expect("it runs");
    assert!(done.status.success(), "{}", super::text(&done.stderr));
    super::text(&done.stdout) + &super::text(&done.stderr)
}

fn listed(host: &Host, arguments: &[&str]) -> String {
    let mut command = host.command("ip");
    super::text(&command.args(arguments).output().expect("it runs").stdout)
}

/// Two hosts; the first one's packets to the second's addresses beyond the links take default
/// routes, or the tunnel to an endpoint that is there, too.
fn exposed(allowed: &str) -> [Host; 2] {
    let hosts = hosts();
    for (end, host) in hosts.iter().enumerate() {
        let address = format!("fd01::{}/64", end + 1);
        host.ip(&["addr", "add", &address, "dev", "w1", "nodad"]);
    }
    for address in ["10.3.0.2/32", "10.4.0.2/32", "fd04::2/128"] {
        hosts[1].ip(&["addr", "add", address, "dev", "lo"]);
    }
    hosts[0].ip(&["route", "add", "default", "via", "10.1.0.2"]);
    hosts[0].ip(&["-6", "route", "add", "default", "via", "fd01::2"]);
    let text = format!(
        "[gateway]\naddresses = [\"10.9.0.1/24\", \"fd09::1/64\"]\nprivate_key_file = \"key\"\n\
         protect = true\n[peer.other]\npublic_key = \"{}\"\nallowed = {allowed}\n\
         endpoints = [\"10.3.0.2:51900\"]\n[status]\nsocket = \"status.sock\"\n",
        hosts[1].public
    );
    write(&hosts[0], &text);
    hosts
}

fn kill(host: &mut Host) {
    let mut gateway = host.gateway.take().expect("it is up");
    gateway.kill().expect("it is ours");
    gateway.wait().expect("it ends");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn down_names_a_protection_only_if_there_was_one() {
    let mut hosts = exposed("[\"10.4.0.0/24\"]");
    let file = hosts[0].folder.path().join("gw.toml");
    let text = fs::read_to_string(&file).expect("the file is readable");
    fs::write(&file, text.replace("protect = true\n", "")).expect("the file is written");
    hosts[0].start();
    let down = run(&hosts[0], &["down", "gw.toml"]);
    assert_eq!(down, "the gateway is down\n");
    let mut gateway = hosts[0].gateway.take().expect("it was up");
    assert_eq!(gateway.wait().expect("it ends").code(), Some(0));
}

/// Before, during and after the gateway is up, killed, deprived of its interface, and stopped.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn no_packet_leaves_in_clear_until_the_gateway_is_taken_down() {
    let mut hosts = exposed("[\"0.0.0.0/0\", \"::/0\"]");
    let attack = Attack::on(&hosts);
    wait("the attack", || attack.seen() > 0);
    let told = run(&hosts[0], &["check", "gw.toml"]);
    let line = "protected   0.0.0.0/0, ::/0: refused while the gateway is down\n";
    assert!(told.contains(line), "{told}");
    assert!(told.contains("0.0.0.0/0 is not protected now"), "{told}");

    // As at boot, before the gateway is up.
    assert_eq!(
        run(&hosts[0], &["protect", "gw.toml"]),
        "2 prefixes are protected\n"
    );
    // From here to `down`, no packet, not even while the gateway starts or dies.
    attack.begin();
    assert_eq!(attack.seen(), 0, "before the start");
    run(&hosts[0], &["protect", "gw.toml"]);
    assert!(!run(&hosts[0], &["check", "gw.toml"]).contains("not protected"));
    let before = listed(&hosts[0], &["rule"]);

    hosts[1].start();
    for _ in 0..2 {
        hosts[0].start();
        wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
        wait("the tunnel", || {
            peer(&hosts[0])["sent_packets"].as_u64() > Some(0)
        });
        assert!(hosts[0].status()["protect"].as_bool().expect("a flag"));
        assert_eq!(attack.seen(), 0, "while the gateway is up");
        kill(&mut hosts[0]);
        assert_eq!(attack.seen(), 0, "after SIGKILL");
    }

    hosts[0].start();
    wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
    hosts[0].ip(&["link", "del", "anabranch0"]);
    assert_eq!(attack.seen(), 0, "without the interface");
    let mut gateway = hosts[0].gateway.take().expect("it was up");
    assert_eq!(gateway.wait().expect("it ends").code(), Some(1));

    hosts[0].start();
    assert_eq!(hosts[0].stop(), Some(0));
    assert_eq!(attack.seen(), 0, "after SIGTERM");
    assert_eq!(listed(&hosts[0], &["rule"]), before);

    hosts[0].start();
    let down = run(&hosts[0], &["down", "gw.toml"]);
    assert_eq!(down, "the gateway is down; its protection has ended\n");
    let mut gateway = hosts[0].gateway.take().expect("it was up");
    assert_eq!(gateway.wait().expect("it ends").code(), Some(0));
    attack.begin();
    assert!(attack.seen() > 0, "after down");
    for family in ["-4", "-6"] {
        let rules = listed(&hosts[0], &[family, "rule"]);
        assert!(!rules.contains("519"), "{rules}");
    }
    let again = run(&hosts[0], &["down", "gw.toml"]);
    assert_eq!(again, "no gateway is up, and nothing was protected\n");
}

/// A prefix may contain the endpoint and have another route. Longer prefixes of the main table go
/// before it, as they do while the gateway is up.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn prefixes_are_protected_and_longer_routes_stay() {
    let mut hosts = exposed("[\"10.4.0.0/16\", \"10.3.0.0/24\", \"fd04::/64\", \"10.9.0.2/32\"]");
    hosts[0].ip(&["route", "add", "10.4.0.0/16", "via", "10.1.0.2"]);
    hosts[1].ip(&["addr", "add", "10.4.7.2/32", "dev", "lo"]);
    hosts[0].ip(&["route", "add", "10.4.7.0/24", "via", "10.1.0.2"]);
    let attack = Attack::on(&hosts);
    wait("the attack", || attack.seen() > 0);
    let direct = |hosts: &[Host; 2]| ping_to(hosts, "10.4.7.2", "10.1.0.1");
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
    attack.begin();
    assert_eq!(attack.seen(), 0, "while the gateway is up");
    assert!(direct(&hosts));
    kill(&mut hosts[0]);
    assert_eq!(attack.seen(), 0, "after SIGKILL");
    assert!(direct(&hosts));
    assert!(!ping_to(&hosts, "10.9.0.2", "10.1.0.1"));
    // The address of the tunnel itself is refused, too, instead of being sent to the provider.
    let routes = listed(&hosts[0], &["route", "show", "table", "51932"]);
    assert!(routes.starts_with("unreachable 10.9.0.2 "), "{routes}");

    // The next start adopts the rest, and removes routes that the configuration no longer has.
    let fewer = file(&hosts[0]).replace("\"10.4.0.0/16\", ", "");
    write(&hosts[0], &fewer);
    hosts[0].start();
    assert!(
        ping_to(&hosts, "10.4.0.2", "10.1.0.1"),
        "not allowed any more"
    );
    let without = fewer.replace("protect = true\n", "");
    // Without marks the datagrams to the endpoint would enter the tunnel.
    let without = without.replace("\"10.3.0.0/24\", ", "");
    write(&hosts[0], &without);
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    wait("an answer", || ping_to(&hosts, "10.9.0.2", "10.9.0.1"));
    assert!(!hosts[0].status()["protect"].as_bool().expect("a flag"));
    let rules = listed(&hosts[0], &["rule"]);
    assert!(!rules.contains("519"), "{rules}");
    kill(&mut hosts[0]);
    attack.begin();
    assert!(attack.seen() > 0, "without protection");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn the_gateways_of_a_host_are_protected_separately() {
    let hosts = exposed("[\"10.4.0.0/16\"]");
    run(&hosts[0], &["protect", "gw.toml"]);
    let first = file(&hosts[0]);
    let second = first
        .replace("[gateway]\n", "[gateway]\ninterface = \"second\"\n")
        .replace("10.4.0.0/16", "10.5.0.0/16");
    write(&hosts[0], &second);
    run(&hosts[0], &["protect", "gw.toml"]);
    let table = ["route", "show", "table", "51916"];
    let routes = listed(&hosts[0], &table);
    assert!(routes.contains("10.4.0.0/16") && routes.contains("10.5.0.0/16"));
    let down = run(&hosts[0], &["down", "gw.toml"]);
    let others = "no gateway is up; its protection has ended\nstill protected by another \
                  gateway, or by an earlier `interface`: 10.4.0.0/16; --all ends it\n";
    assert_eq!(down, others);
    let routes = listed(&hosts[0], &table);
    assert!(routes.contains("10.4.0.0/16") && !routes.contains("10.5.0.0/16"));
    let left = second.replace("protect = true\n", "");
    write(&hosts[0], &left.replace("second", "anabranch0"));
    let told = run(&hosts[0], &["check", "gw.toml"]);
    let remark = "remark: 10.4.0.0/16 is refused by an earlier protection; \
                  anabranch-gateway down FILE removes it\n";
    assert!(told.contains(remark), "{told}");
    write(&hosts[0], &second);
    let down = run(&hosts[0], &["down", "gw.toml", "--all"]);
    assert_eq!(down, "no gateway is up; its protection has ended\n");
    assert!(!listed(&hosts[0], &["rule"]).contains("519"));
}
