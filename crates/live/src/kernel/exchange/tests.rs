//! Tests on this machine in real time, with a host whose kernel answers echo requests (RFC 792).

use std::{collections::BTreeSet, io, sync::Arc, time::Duration as Pause};

use anabranch_core::{
    packet::{Direction, FlowId},
    units::{Duration, Instant},
};

use anabranch_wire::Checksum;

use super::{Come, Exchange, Happened, Place, ROOMS, Ring};
use crate::kernel::{
    address::v4_of,
    clock::Clock,
    namespace::{DEVICE, Namespace},
    sys::interface::Interface,
    tun::{Device, Tun},
};

const LARGEST: usize = 2048;
/// The numbers of the host and of the end that sends requests.
const HOST: usize = 1;
const ASKING: usize = 2;
const OF: Place = (FlowId(7), Direction::Reverse);
const REQUEST: u8 = 8;
const ANSWER: u8 = 0;
/// Longer than any answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);
/// Time after which no more answers are expected.
const QUIET: Duration = Duration::from_millis(200);

/// One host, and the ring that moves its packets.
struct Setup {
    namespace: Namespace,
    tun: Tun,
    device: Arc<dyn Device>,
    exchange: Exchange,
    clock: Clock,
    ring: Ring,
}

impl Setup {
    fn new(is_lasting: bool) -> io::Result<Self> {
        let namespace = Namespace::new()?;
        // Without IPv6 the host sends nothing unsolicited.
        namespace.set(&[("net/ipv6/conf/all/disable_ipv6", "1".to_owned())])?;
        let tun = namespace.device(DEVICE, HOST, 1500)?;
        let exchange = Exchange::default();
        let device = exchange.device(tun.clone());
        let clock = Clock::starting_in(Pause::ZERO);
        let mut ring = Ring::new(&exchange, clock, LARGEST)?;
        assert!(ring.is_lasting || !is_lasting, "asked for by `both`");
        ring.is_lasting = is_lasting;
        Ok(Self {
            namespace,
            tun,
            device,
            exchange,
            clock,
            ring,
        })
    }

    fn ask(&self, number: u16) {
        self.device
            .send(&echo(number), OF)
            .expect("it only takes the packet");
    }

    /// A turn that ends after `span` at the latest.
    fn turn(&mut self, span: Duration) -> Happened {
        let then = self.clock.now().saturating_add(span);
        self.ring.turn(then).expect("the ring works")
    }

    /// Drops the ring, and returns the answers that remain in the device.
    fn end(self) -> Vec<u16> {
        let Self { device, ring, .. } = self;
        drop(ring);
        let mut buffer = [0; LARGEST];
        let mut left = Vec::new();
        while let Some(len) = device.receive(&mut buffer).expect("it does not block") {
            left.extend(answered(&buffer[..len]));
        }
        left
    }
}

/// Runs a test with multishot reads, if the kernel has them, and with one request per packet.
/// Reports a machine without io_uring or namespaces.
fn both(test: impl Fn(Setup)) {
    for is_lasting in [true, false] {
        if let Err(why) = crate::prepare() {
            let required = std::env::var("ANABRANCH_LIVE").is_ok_and(|value| value == "required");
            assert!(!required, "ANABRANCH_LIVE=required: {why}");
            eprintln!("SKIPPED: {why}");
            return;
        }
        if is_lasting && !has_lasting_reads() {
            eprintln!("SKIPPED: this kernel has no multishot reads (Linux 6.7)");
            continue;
        }
        match Setup::new(is_lasting) {
            Ok(setup) => test(setup),
            // A container or `kernel.io_uring_disabled` forbids io_uring.
            Err(error)
                if [libc::ENOSYS, libc::EPERM, libc::EACCES]
                    .contains(&error.raw_os_error().unwrap_or_default()) =>
            {
                eprintln!("SKIPPED: io_uring is not permitted: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn has_lasting_reads() -> bool {
    let clock = Clock::starting_in(Pause::ZERO);
    Ring::new(&Exchange::default(), clock, LARGEST).is_ok_and(|ring| ring.is_lasting)
}

/// An echo request of this number to the host.
fn echo(number: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    packet.extend(v4_of(ASKING).octets());
    packet.extend(v4_of(HOST).octets());
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum);
    let [high, low] = number.to_be_bytes();
    let mut message = [REQUEST, 0, 0, 0, 0, 1, high, low];
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    packet.extend(message);
    packet
}

/// The Internet checksum (RFC 1071).
fn checksum(octets: &[u8]) -> [u8; 2] {
    Checksum::of(octets).finish().to_be_bytes()
}

/// The number of an echo reply.
fn answered(packet: &[u8]) -> Option<u16> {
    let is_answer = packet.len() == 28 && packet[9] == 1 && packet[20] == ANSWER;
    is_answer.then(|| u16::from_be_bytes([packet[26], packet[27]]))
}

fn numbers(come: &[Come]) -> Vec<u16> {
    come.iter()
        .filter_map(|come| answered(&come.octets))
        .collect()
}

#[test]
fn a_packet_and_its_answer_take_one_turn() {
    both(|mut setup| {
        for number in 0..3 {
            setup.ask(number);
            let happened = setup.turn(LONG);
            assert_eq!(numbers(&happened.come), [number]);
            assert_eq!(happened.come[0].device, 0);
            assert!(!happened.is_then);
            assert!(happened.refused.is_empty());
        }
        assert!(setup.clock.now() < Instant::START.saturating_add(LONG));
        assert!(setup.end().is_empty());
    });
}

#[test]
fn the_timer_ends_a_turn_at_its_time() {
    both(|mut setup| {
        // The first turn sets the timer to a later time than the second.
        setup.ask(0);
        assert_eq!(numbers(&setup.turn(LONG).come), [0]);
        for _ in 0..2 {
            let then = setup.clock.now().saturating_add(Duration::from_millis(30));
            let happened = setup.ring.turn(then).expect("the ring works");
            assert!(happened.is_then);
            assert!(happened.come.is_empty());
            assert!(setup.clock.now() >= then);
        }
        assert!(setup.clock.now() < Instant::START.saturating_add(LONG));
    });
}

#[test]
fn a_deadline_in_the_past_ends_a_turn_at_once() {
    both(|mut setup| {
        assert!(
            setup
                .ring
                .turn(Instant::START)
                .is_ok_and(|happened| happened.is_then)
        );
    });
}

/// Each refused packet is reported with its flow and direction. The turn continues until its
/// deadline.
#[test]
fn a_device_that_is_down_refuses_packets() {
    both(|mut setup| {
        let down = setup.namespace.inside(|| Interface::new(DEVICE)?.down());
        down.expect("root of a namespace may");
        setup.ask(0);
        setup.ask(1);
        let happened = setup.turn(QUIET);
        assert_eq!(happened.refused, [OF, OF]);
        assert!(happened.is_then);
        let up = setup.namespace.inside(|| Interface::new(DEVICE)?.up());
        up.expect("root of a namespace may");
        setup.ask(2);
        let happened = setup.turn(LONG);
        assert!(happened.refused.is_empty());
        assert_eq!(numbers(&happened.come), [2]);
    });
}

/// Holds for packets that a read had taken before the end and for others, in the order in which the
/// host sent them.
#[test]
fn packets_after_the_last_turn_remain_in_the_device() {
    both(|mut setup| {
        assert!(setup.turn(Duration::from_millis(1)).is_then);
        for number in 0..20 {
            setup
                .tun
                .send(&echo(number), OF)
                .expect("the host takes it");
        }
        assert_eq!(setup.end(), (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn a_device_does_not_block_after_the_end() {
    both(|setup| {
        let Setup {
            device, tun, ring, ..
        } = setup;
        drop(ring);
        let mut buffer = [0; LARGEST];
        assert_eq!(device.receive(&mut buffer).expect("empty"), None);
        tun.send(&echo(3), OF).expect("the host takes it");
        let len = device.receive(&mut buffer).expect("it is there");
        assert_eq!(len.and_then(|len| answered(&buffer[..len])), Some(3));
    });
}

/// Sends more packets than there are buffers, and more requests than one call takes.
#[test]
fn a_burst_larger_than_the_buffers_loses_nothing() {
    const BURST: u16 = 3 * ROOMS + 7;
    both(|mut setup| {
        for number in 0..BURST {
            setup.ask(number);
        }
        let mut seen = Vec::new();
        loop {
            let happened = setup.turn(if seen.is_empty() { LONG } else { QUIET });
            assert!(happened.refused.is_empty());
            if happened.is_then {
                break;
            }
            seen.extend(numbers(&happened.come));
        }
        seen.extend(setup.end());
        assert_eq!(seen.len(), usize::from(BURST));
        assert_eq!(
            seen.into_iter().collect::<BTreeSet<_>>().len(),
            usize::from(BURST)
        );
    });
}

/// Each packet is reported with the device at which it arrived.
#[test]
fn packets_are_attributed_to_their_devices() {
    both(|setup| {
        let Setup {
            exchange,
            clock,
            ring,
            namespace,
            ..
        } = setup;
        let is_lasting = ring.is_lasting;
        drop(ring);
        let other = Namespace::new().expect("there was one before");
        let quiet = [("net/ipv6/conf/all/disable_ipv6", "1".to_owned())];
        other.set(&quiet).expect("root of a namespace may");
        let tun = other.device(DEVICE, HOST, 1500).expect("as before");
        let device = exchange.device(tun);
        let mut ring = Ring::new(&exchange, clock, LARGEST).expect("as before");
        ring.is_lasting = is_lasting;
        device.send(&echo(5), OF).expect("it only takes the packet");
        let then = clock.now().saturating_add(LONG);
        let happened = ring.turn(then).expect("the ring works");
        assert_eq!(numbers(&happened.come), [5]);
        assert_eq!(happened.come[0].device, 1);
        drop(namespace);
    });
}

/// A run starts programs while it has a ring. The flag `dc` marks a mapping that is not copied by
/// fork (proc_pid_smaps(5)).
#[test]
fn a_child_process_does_not_inherit_the_ring() {
    both(|setup| {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("it can be read");
        let mut lines = maps.lines();
        let mut flags = Vec::new();
        while lines.any(|line| line.ends_with("[io_uring]")) {
            flags.extend(lines.find_map(|line| line.strip_prefix("VmFlags:")));
        }
        assert!(!flags.is_empty());
        assert!(
            flags
                .iter()
                .all(|flags| flags.split(' ').any(|flag| flag == "dc")),
            "{flags:?}"
        );
        drop(setup);
    });
}
