//! Hostile networks and unknown senders: rebinding, replay, garbage, small MTUs, too many clients.

use std::{
    fs,
    net::UdpSocket,
    os::unix::net::UnixStream,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::net::sockopt::set_ip_tos;

use super::namespaces::{Host, both_up, content, hosts, may_run, ping, transfer, wait};
use super::traffic::code_points;

/// Commands to a relay between the gateways, and its counts.
#[derive(Default)]
struct Orders {
    rebind: AtomicBool,
    replay: AtomicBool,
    reorder: AtomicBool,
    mark: AtomicBool,
    end: AtomicBool,
    replayed: AtomicU64,
}

/// Forwards between a client and the gateway, as a NAT does.
struct Relay {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(host: &Host) -> Self {
        let orders = Arc::new(Orders::default());
        let shared = Arc::clone(&orders);
        let thread = host.inside(move || forward(&shared));
        let thread = Some(thread);
        Self { orders, thread }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.orders.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bind(at: &str) -> UdpSocket {
    let socket = UdpSocket::bind(at).expect("it is free");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

fn forward(orders: &Orders) {
    let outside = bind("10.1.0.2:6000");
    let mut inside = bind("10.1.0.2:0");
    let mut client = None;
    let mut recorded: Vec<Vec<u8>> = Vec::new();
    let mut held: Option<Vec<u8>> = None;
    let mut count = 0_u32;
    let mut buffer = [0; 2048];
    while !orders.end.load(Ordering::Relaxed) {
        if orders.rebind.swap(false, Ordering::Relaxed) {
            inside = bind("10.1.0.2:0");
        }
        if orders.mark.swap(false, Ordering::Relaxed) {
            // "Congestion experienced" (RFC 3168 §5).
            set_ip_tos(&inside, 3).expect("a socket");
        }
        // A full buffer drops, as a network does.
        let to_gateway = |datagram: &[u8]| inside.send_to(datagram, "10.1.0.2:51900").is_ok();
        if orders.replay.swap(false, Ordering::Relaxed) {
            let sent = recorded.iter().filter(|datagram| to_gateway(datagram));
            let sent = sent.count() as u64;
            orders.replayed.fetch_add(sent, Ordering::Relaxed);
        }
        while let Ok((length, from)) = outside.recv_from(&mut buffer) {
            let datagram = &buffer[..length];
            client = Some(from);
            // Data messages have type 4.
            if datagram.first() == Some(&4) && recorded.len() < 50 {
                recorded.push(datagram.to_vec());
            }
            count += 1;
            let holds = orders.reorder.load(Ordering::Relaxed) && count.is_multiple_of(8);
            if holds && held.is_none() {
                held = Some(datagram.to_vec());
            } else {
                to_gateway(datagram);
            }
            if count % 8 == 4
                && let Some(late) = held.take()
            {
                to_gateway(&late);
            }
        }
        while let (Ok((length, _)), Some(client)) = (inside.recv_from(&mut buffer), client) {
            let _ = outside.send_to(&buffer[..length], client);
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// Two running gateways with one path through a relay.
fn through_a_relay() -> ([Host; 2], Relay) {
    let mut hosts = hosts();
    let file = hosts[0].folder.path().join("gw.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let text = text
        .replace(
            "\"10.1.0.2:51900\", \"10.2.0.2:51900\"",
            "\"10.1.0.2:6000\"",
        )
        .replace("[path.two]\ninterface = \"w2\"\n", "");
    fs::write(&file, text).expect("it is written");
    let relay = Relay::start(&hosts[1]);
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping(&hosts));
    (hosts, relay)
}

fn sessions(host: &Host) -> Option<u64> {
    host.status()["peers"]["other"]["sessions"].as_u64()
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_nat_rebinding_interrupts_no_session() {
    let (hosts, relay) = through_a_relay();
    let before = sessions(&hosts[1]);
    for _ in 0..3 {
        relay.orders.rebind.store(true, Ordering::Relaxed);
        wait("an answer", || ping(&hosts));
    }
    assert_eq!(sessions(&hosts[1]), before);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn each_replayed_datagram_is_counted_and_changes_nothing() {
    let (hosts, relay) = through_a_relay();
    assert_eq!(hosts[1].rejected("replayed"), 0);
    let received = || hosts[1].status()["peers"]["other"]["received_packets"].as_u64();
    let before = received();
    relay.orders.replay.store(true, Ordering::Relaxed);
    let replayed = || relay.orders.replayed.load(Ordering::Relaxed);
    wait("the replay", || replayed() > 0);
    wait("the count", || hosts[1].rejected("replayed") == replayed());
    assert_eq!(received(), before);
    assert!(ping(&hosts));
}

/// RFC 6040 §4.2 figure 4, in the column of marked datagrams.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn marks_of_the_path_reach_packets_that_can_carry_them() {
    let (hosts, relay) = through_a_relay();
    relay.orders.mark.store(true, Ordering::Relaxed);
    wait("the marks", || {
        let codes = code_points(&hosts);
        codes == [3, 3, 3]
    });
    // Packets that are not ECN-capable are dropped, as a queue would drop them.
    assert!(!ping(&hosts));
}

/// Four datagrams overtake each eighth one.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn reordered_datagrams_are_neither_refused_nor_delivered_twice() {
    let (hosts, relay) = through_a_relay();
    relay.orders.reorder.store(true, Ordering::Relaxed);
    assert!(transfer(&hosts, || {}) == content(), "the content differs");
    relay.orders.reorder.store(false, Ordering::Relaxed);
    let status = hosts[1].status();
    for reason in ["replayed", "unauthentic", "malformed"] {
        assert_eq!(status["rejected"][reason], 0, "{reason}");
    }
    assert!(ping(&hosts));
}

/// The largest datagram of a link with an MTU of 1,320: 20 octets of IPv4 and 8 of UDP less.
const SMALL: u64 = 1292;

/// The largest datagram of each path.
fn mtus(host: &Host) -> [u64; 2] {
    let status = host.status();
    let paths = &status["peers"]["other"]["paths"];
    ["one", "two"].map(|path| paths[path]["mtu"].as_u64().unwrap_or_default())
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_mtu_reduction_during_a_transfer_is_detected() {
    let hosts = both_up();
    wait("the links' MTU", || mtus(&hosts[0]) == [1472; 2]);
    let shrink = || {
        for host in &hosts {
            for link in ["w1", "w2"] {
                host.ip(&["link", "set", link, "mtu", "1320"]);
            }
        }
    };
    assert!(transfer(&hosts, shrink) == content(), "the content differs");
    wait("the smaller MTU", || {
        mtus(&hosts[0]).iter().all(|&mtu| mtu <= SMALL)
    });
}

/// The far ends of the links drop larger packets without a message. Batches pass them whole, whatever
/// their MTU.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_silent_mtu_reduction_is_noticed_within_seconds() {
    let hosts = both_up();
    wait("the links' MTU", || mtus(&hosts[0]) == [1472; 2]);
    for link in ["w1", "w2"] {
        let words = ["qdisc", "add", "dev", link, "root", "tbf"];
        let shape = ["rate", "20mbit", "burst", "64kb", "latency", "100ms"];
        let mut command = hosts[0].command("tc");
        let done = command.args(words).args(shape).status();
        assert!(done.expect("it runs").success());
    }
    let is_small = AtomicBool::new(false);
    thread::scope(|scope| {
        let moving = scope.spawn(|| {
            let shrink = || {
                for link in ["w1", "w2"] {
                    hosts[1].ip(&["link", "set", link, "mtu", "1320"]);
                }
                is_small.store(true, Ordering::Relaxed);
            };
            transfer(&hosts, shrink) == content()
        });
        wait("a quarter", || is_small.load(Ordering::Relaxed));
        let since = Instant::now();
        wait("the smaller MTU", || {
            mtus(&hosts[0]).iter().all(|&mtu| mtu <= SMALL)
        });
        assert!(since.elapsed() < Duration::from_secs(5));
        assert!(moving.join().expect("no panic"), "the content differs");
        assert!(since.elapsed() < Duration::from_secs(20));
    });
}

fn of_process(host: &Host, name: &str) -> u64 {
    let pid = host.gateway.as_ref().expect("it is up").id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .expect("the kernel has it")
        .parse()
        .expect("a number")
}

/// 10,000 datagrams per second for two seconds: of every type, with valid and invalid lengths.
#[test]
fn a_garbage_flood_neither_stops_transfers_nor_fills_memory() {
    if !may_run() {
        return;
    }
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let before = of_process(&hosts[1], "VmRSS:");
    let flood = hosts[0].inside(|| {
        let socket = UdpSocket::bind("10.1.0.1:0").expect("it is free");
        for burst in 0..200_u32 {
            for number in 0..100_u32 {
                let kind = u8::try_from(number % 6).expect("small");
                let length = [5, 152, 84, 64, 40, 1_400][usize::from(kind)];
                let mut datagram = vec![0x5a; length];
                datagram[..4].copy_from_slice(&[kind, 3 * u8::from(kind < 4), 0, 0]);
                let index = (burst * 100 + number).to_be_bytes();
                datagram[4..]
                    .iter_mut()
                    .zip(index)
                    .for_each(|(octet, index)| *octet = index);
                // A full buffer drops it, as a network does.
                let _ = socket.send_to(&datagram, "10.1.0.2:51900");
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
    assert!(transfer(&hosts, || {}) == content(), "the content differs");
    flood.join().expect("no panic");
    let status = hosts[1].status();
    let reasons = ["malformed", "unknown_session", "unknown_key"];
    let counts = reasons.map(|reason| status["rejected"][reason].as_u64().expect("a counter"));
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    assert!(counts.iter().sum::<u64>() <= 20_000, "{counts:?}");
    let grown = of_process(&hosts[1], "VmRSS:").saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
    assert!(ping(&hosts));
}

/// KiB that a peer with two paths and bulk traffic may use (docs/guides/gateway-operations.md).
const OF_A_PEER: u64 = 24 << 10;

/// Limits the daemon's address space to its size at rest plus the documented bound. An allocation
/// beyond it would end the daemon.
#[test]
fn an_overload_uses_no_more_memory_than_documented() {
    if !may_run() {
        return;
    }
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    for link in ["w1", "w2"] {
        let words = ["qdisc", "add", "dev", link, "root", "tbf"];
        let shape = ["rate", "8mbit", "burst", "20kb", "latency", "200ms"];
        let mut command = hosts[0].command("tc");
        let done = command.args(words).args(shape).status();
        assert!(done.expect("it runs").success());
    }
    let pid = hosts[0].gateway.as_ref().expect("it is up").id();
    let limit = (of_process(&hosts[0], "VmSize:") + OF_A_PEER) << 10;
    let limited = Command::new("prlimit")
        .arg(format!("--pid={pid}"))
        .arg(format!("--as={limit}"))
        .status();
    assert!(limited.expect("it runs").success());
    let flood = hosts[0].inside(|| {
        let sockets: Vec<UdpSocket> = (0..64)
            .map(|_| UdpSocket::bind("10.9.0.1:0").expect("it is free"))
            .collect();
        for _ in 0..300 {
            for socket in &sockets {
                // A full buffer drops it, as a network does.
                let _ = socket.send_to(&[7; 1_400], "10.9.0.2:7000");
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
    flood.join().expect("no panic");
    let dropped = || hosts[0].status()["peers"]["other"]["dropped"]["queue"].as_u64();
    assert!(dropped() > Some(0));
    wait("an answer", || ping(&hosts));
}

#[test]
fn idle_clients_take_few_descriptors() {
    if !may_run() {
        return;
    }
    let hosts = both_up();
    let pid = hosts[1].gateway.as_ref().expect("it is up").id();
    let open = || {
        fs::read_dir(format!("/proc/{pid}/fd"))
            .expect("it is there")
            .count()
    };
    let before = open();
    let socket = hosts[1].folder.path().join("status.sock");
    let clients: Vec<UnixStream> = (0..100)
        .map_while(|_| UnixStream::connect(&socket).ok())
        .collect();
    assert!(!clients.is_empty());
    assert_eq!(hosts[1].status()["peers"]["other"]["restarts"], 0);
    assert!(open() <= before + 10, "{} after {before}", open());
    wait("an answer", || ping(&hosts));
}
