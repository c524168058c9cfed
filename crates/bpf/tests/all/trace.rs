//! The program that traces the kernel's TCP: the verifier accepts it, it reports only the sockets
//! that it is to trace, and nothing of it remains. On machines that do not permit this the test
//! prints the reason and passes.
use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    mem,
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anabranch_bpf::{
    Error,
    trace::{Detail, Kind, Place, Record, Trace},
};
use anabranch_core::interrupt::Interrupt;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// A trace of these flows; `None` if the machine does not permit it, which is printed.
fn start(flows: &[(Place, u32)], detail: Detail) -> Option<Trace> {
    match Trace::start(flows, detail, &Interrupt::default()) {
        Ok(trace) => Some(trace),
        Err(Error::System(why)) => {
            assert!(
                std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
                "ANABRANCH_LIVE=required: {why}"
            );
            eprintln!("SKIPPED: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Moves this thread into a separate network namespace with a loopback device. Returns the
/// namespace's cookie, if permitted.
fn own_network() -> Option<u64> {
    // SAFETY: only the network namespace changes; no file descriptor is shared or lost.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    assert!(up.expect("ip is there").success());
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let mut cookie = 0_u64;
    let mut len = libc::socklen_t::try_from(size_of::<u64>()).expect("eight");
    // SAFETY: the option is a number of eight octets, whose address and size these are.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    };
    assert_eq!(answer, 0, "Linux 5.14 and later have it");
    Some(cookie)
}

fn attach(socket: &impl AsFd, trace: &Trace) {
    let filter = trace.filter().as_raw_fd();
    // SAFETY: the option is the descriptor of a program, whose address and size these are.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_BPF,
            (&raw const filter).cast(),
            libc::socklen_t::try_from(size_of_val(&filter)).expect("four"),
        )
    };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

const OCTETS: usize = 4 << 20;

/// Sends `OCTETS` to a port, then closes the sending side and waits for the peer to close.
fn send(port: u16, trace: Option<&Trace>) {
    let listener =
        TcpListener::bind(("127.0.0.1", port)).expect("it is free in a network of our own");
    let sink = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a peer");
        let mut octets = Vec::new();
        stream.read_to_end(&mut octets).expect("it sends");
        octets.len()
    });
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    if let Some(trace) = trace {
        attach(&stream, trace);
    }
    stream.write_all(&vec![7; OCTETS]).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it closes");
    assert_eq!(sink.join().expect("it reads"), OCTETS);
}

/// The records of a traced connection, with a second connection that is not traced.
fn watched(detail: Detail, filtered: bool) -> Option<Vec<Record>> {
    let namespace = own_network()?;
    let place = Place {
        namespace,
        port: 10_007,
        listens: false,
    };
    let mut trace = start(&[(place, 7)], detail)?;
    send(10_008, None);
    send(10_007, filtered.then_some(&trace));
    let records = trace.take();
    assert_eq!(trace.lost(), 0);
    Some(records)
}

/// Detects a program that does not distinguish flows, that reads a field at a wrong offset, or that
/// reports nothing once the sender has closed its side.
#[test]
fn every_acknowledgment_of_a_sender_is_recorded() {
    let Some(records) = watched(Detail::Segments, true) else {
        return;
    };
    assert!(records.iter().all(|record| record.flow == 7));
    assert!(records.len() > 10, "{}", records.len());
    let acks: Vec<u32> = records
        .iter()
        .filter_map(|record| match record.kind {
            Kind::Segment { ack } => Some(ack),
            _ => None,
        })
        .collect();
    // From the first octet to the end of the stream, which counts as one octet.
    let first = records[0].snd_una;
    let last = acks.iter().map(|ack| ack.wrapping_sub(first)).max();
    assert_eq!(last, Some(u32::try_from(OCTETS).expect("4 MiB") + 1));
    for record in &records {
        assert!((1..100_000).contains(&record.cwnd), "{record:?}");
        assert!((500..66_000).contains(&record.mss), "{record:?}");
        assert!(record.srtt_us < 1_000_000, "{record:?}");
        assert_eq!(record.control(), control());
        assert!(
            record.snd_nxt.wrapping_sub(record.snd_una)
                <= u32::try_from(OCTETS).expect("4 MiB") + 1
        );
    }
    let states: BTreeSet<u8> = records.iter().map(|record| record.state).collect();
    // TCP_ESTABLISHED, TCP_FIN_WAIT1 and possible later states.
    assert!(
        states.contains(&1) && states.iter().any(|state| *state >= 4),
        "{states:?}"
    );
    let mut times = records.iter().map(|record| record.time_ns);
    assert!(
        times
            .clone()
            .zip(times.by_ref().skip(1))
            .all(|(a, b)| a <= b)
    );
}

/// Only the filter reports segments that a closed side receives.
#[test]
fn without_the_filter_a_closed_side_is_silent() {
    let Some(records) = watched(Detail::Segments, false) else {
        return;
    };
    assert!(!records.is_empty());
    // Retransmissions of a closed side are still recorded: on a busy machine that may be its FIN.
    let mut segments = records
        .iter()
        .filter(|record| matches!(record.kind, Kind::Segment { .. }));
    assert!(segments.all(|record| record.state == 1), "{records:?}");
}

/// Sets whether this socket discards all segments (`SO_ATTACH_FILTER`).
fn set_deaf(socket: &impl AsFd, deaf: bool) {
    // `BPF_RET | BPF_K`: drop the whole segment.
    let mut nothing = libc::sock_filter {
        code: 6,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut nothing,
    };
    // SAFETY: the option is a program of one instruction; detaching takes none and reads nothing.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            if deaf {
                libc::SO_ATTACH_FILTER
            } else {
                libc::SO_DETACH_FILTER
            },
            (&raw const program).cast(),
            libc::socklen_t::try_from(size_of_val(&program)).expect("sixteen"),
        )
    };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

/// Sets whether packets can be sent on the loopback device of this thread's network.
fn let_leave(leave: bool) {
    let rule = if leave {
        &["del", "dev", "lo", "root"][..]
    } else {
        &["add", "dev", "lo", "root", "bfifo", "limit", "1"]
    };
    let done = Command::new("tc").arg("qdisc").args(rule).status();
    assert!(done.expect("tc is there").success());
}

/// Detects a trace that reports nothing, that reports every segment, or that reports
/// retransmissions dropped by the sender's own queue: newer kernels call the tracepoint for these
/// as well.
#[test]
fn without_segments_only_state_changes_and_retransmissions_are_recorded() {
    let Some(namespace) = own_network() else {
        return;
    };
    let place = Place {
        namespace,
        port: 10_007,
        listens: false,
    };
    let Some(mut trace) = start(&[(place, 7)], Detail::Events) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:10007").expect("it is free");
    let mut sender = TcpStream::connect("127.0.0.1:10007").expect("it listens");
    let (mut reader, _) = listener.accept().expect("a peer");
    sender.write_all(&[7; 1_000]).expect("it has room");
    reader.read_exact(&mut [0; 1_000]).expect("it comes");
    let again = |records: &[Record]| {
        let is_again = |record: &&Record| matches!(record.kind, Kind::Again { .. });
        records.iter().filter(is_again).count()
    };

    // First transmissions are lost at the reader: data that is not sent at all is not outstanding.
    set_deaf(&reader, true);
    sender.write_all(&[7; 1_000]).expect("it has room");
    let_leave(false);
    // More than two attempts of the kernel: a timeout of 200 ms, then one every 500 ms (measured).
    thread::sleep(Duration::from_millis(1_500));
    let before = trace.take();
    set_deaf(&reader, false);
    let_leave(true);
    reader.read_exact(&mut [0; 1_000]).expect("it comes");
    // The acknowledgment is processed by the current owner of the socket.
    thread::sleep(Duration::from_millis(100));
    let after = trace.take();

    let count = |of: fn(&Kind) -> bool| {
        let all = before.iter().chain(&after);
        all.filter(|record| of(&record.kind)).count()
    };
    let segments = count(|kind| matches!(kind, Kind::Segment { .. }));
    let changes = count(|kind| matches!(kind, Kind::State { .. }));
    assert!(changes > 0 && segments > 0, "{before:?} {after:?}");
    assert!(segments <= changes, "{before:?} {after:?}");
    // On busy processors the reader receives the second attempt.
    assert!(
        again(&before) == 0 && again(&after) >= 1,
        "{before:?} {after:?}"
    );
    assert_eq!(trace.lost(), 0);
}

fn control() -> String {
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    name.expect("the kernel has one").trim().to_owned()
}

/// The BPF programs that a process has open, by number (proc(5)).
fn held_by(process: u32) -> BTreeSet<u32> {
    let infos = std::fs::read_dir(format!("/proc/{process}/fdinfo")).expect("it is there");
    let infos = infos
        .flatten()
        .filter_map(|info| std::fs::read_to_string(info.path()).ok());
    let number = |info: String| {
        let mut lines = info.lines();
        lines.find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    infos.filter_map(number).collect()
}

/// Number of these programs that are in the kernel (`BPF_PROG_GET_FD_BY_ID`, bpf(2)).
fn in_kernel(programs: &BTreeSet<u32>) -> usize {
    const PROG_GET_FD_BY_ID: libc::c_int = 13;
    let is_there = |id: &&u32| {
        // `prog_id`, `next_id`, `open_flags`.
        let attributes = [**id, 0, 0];
        // SAFETY: the attributes belong to the command, and this is their size.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                PROG_GET_FD_BY_ID,
                attributes.as_ptr(),
                size_of_val(&attributes),
            )
        };
        let Ok(descriptor) = RawFd::try_from(opened) else {
            return false;
        };
        if descriptor >= 0 {
            // SAFETY: the call created the descriptor for us.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
        descriptor >= 0
    };
    programs.iter().filter(is_there).count()
}

/// Environment variable of a process that is to hold a trace until it is killed.
const HOLD: &str = "ANABRANCH_TEST_HOLD_TRACE";

/// Detects a trace that is pinned, or whose links outlive their file descriptors.
#[test]
fn nothing_stays_however_a_trace_ends() {
    let place = Place {
        namespace: 1,
        port: 1,
        listens: false,
    };
    let Some(trace) = start(&[(place, 0)], Detail::Events) else {
        return;
    };
    if std::env::var_os(HOLD).is_some() {
        println!("held");
        thread::sleep(Duration::from_secs(60));
        mem::forget(trace);
        return;
    }
    let mut programs = held_by(std::process::id());
    assert!(in_kernel(&programs) >= 3, "they are found where they are");
    drop(trace);
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "trace::nothing_stays_however_a_trace_ends",
                "--nocapture",
            ])
            .env(HOLD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut said = String::new();
        let mut out = child.stdout.take().expect("it was asked for");
        while !said.contains("held") {
            let mut octet = [0];
            out.read_exact(&mut octet)
                .expect("it says that it holds one");
            said.push(char::from(octet[0]));
        }
        let held = held_by(child.id());
        assert!(in_kernel(&held) >= 3);
        programs.extend(held);
        child.kill().expect("it is there");
        child.wait().expect("it is dead");
    }
    // The kernel frees programs once they can no longer be running.
    let gone = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(50));
        in_kernel(&programs) == 0
    });
    let left = in_kernel(&programs);
    assert!(gone, "{left} parts of the program are still there");
}
