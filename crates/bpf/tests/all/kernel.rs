//! Every shipped control in the kernel: it compiles, passes the verifier, carries a transfer, and
//! its removal does not end the connection. On machines that do not permit this the test prints the
//! reason and passes.
use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    thread,
};

use anabranch_bpf::{
    Source,
    kernel::{self, attach},
    shipped, temporary,
};
use anabranch_core::interrupt::Interrupt;
use rustix::{
    net::sockopt,
    thread::{UnshareFlags, unshare_unsafe},
};

/// The reason why controls cannot be loaded here. It is printed, because the test then checks
/// nothing.
fn hindrance() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    if Command::new("clang").arg("--version").output().is_err() {
        return Some("no clang".to_owned());
    }
    let source = Source::shipped("reno").expect("it ships");
    match attach(&source, &Interrupt::default()) {
        // Another test or program has loaded it, so loading is possible.
        Err(error)
            if !error.to_string().contains("already") && !error.to_string().contains("refuses") =>
        {
            Some(error.to_string())
        }
        _ => None,
    }
}

macro_rules! skip_if_hindered {
    () => {
        if let Some(why) = hindrance() {
            assert!(
                std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
                "ANABRANCH_LIVE=required: {why}"
            );
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
}

/// Moves this thread, and the threads that it starts, into a separate network namespace with a
/// loopback device. Returns whether the device has a limited queue that drops packets, as a
/// bottleneck does.
fn own_network() -> bool {
    // SAFETY: only the network namespace changes; no file descriptor is shared or lost.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root may do that");
    let up = Command::new("ip")
        .args(["link", "set", "lo", "mtu", "1500", "up"])
        .status()
        .expect("ip is there");
    assert!(up.success());
    // A token bucket, if the kernel supports it.
    let narrow = "qdisc add dev lo root tbf rate 200mbit burst 20kb limit 60kb";
    Command::new("tc")
        .args(narrow.split(' '))
        .status()
        .is_ok_and(|status| status.success())
}

/// Number of segments retransmitted in this thread's network.
fn sent_again() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/snmp").expect("the kernel counts");
    let mut tcp = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, numbers) = (tcp.next().expect("names"), tcp.next().expect("numbers"));
    names
        .split(' ')
        .zip(numbers.split(' '))
        .find(|(name, _)| *name == "RetransSegs")
        .and_then(|(_, number)| number.parse().ok())
        .expect("it is among them")
}

/// A single flow of these may find the rate without a loss.
const YIELDS: [&str; 2] = ["vegas", "compound"];
const PART: usize = 1 << 20;
const PARTS: usize = 16;

/// A connection that uses `control`, with a peer that reads all data and returns its amount.
fn connection(control: &str) -> (TcpStream, thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let address = listener.local_addr().expect("it is bound");
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("one comes");
        let mut buffer = vec![0; 1 << 16];
        let mut total = 0;
        loop {
            match stream.read(&mut buffer).expect("it can be read") {
                0 => return total,
                read => total += read,
            }
        }
    });
    let stream = TcpStream::connect(address).expect("somebody listens");
    sockopt::set_tcp_congestion(&stream, control).expect("the control is there");
    (stream, reader)
}

#[test]
fn every_shipped_control_carries_a_transfer_that_survives_its_removal() {
    skip_if_hindered!();
    let drops = own_network();
    for control in shipped::ALL {
        let source = Source::shipped(control.name).expect("it ships");
        let attached = attach(&source, &Interrupt::default()).expect("the verifier takes it");
        assert_eq!(attached.name(), control.kernel_name);
        assert!(
            kernel::available()
                .iter()
                .any(|name| name == control.kernel_name)
        );
        assert!(
            kernel::allowed()
                .iter()
                .any(|name| name == control.kernel_name),
            "any user may choose {}",
            control.kernel_name
        );

        let before = sent_again();
        let (mut stream, reader) = connection(control.kernel_name);
        let part = vec![7; PART];
        for _ in 0..PARTS / 2 {
            stream.write_all(&part).expect("it sends");
        }
        drop(attached);
        for _ in 0..PARTS / 2 {
            stream.write_all(&part).expect("it goes on");
        }
        let used = sockopt::tcp_congestion(&stream).expect("it has one");
        assert_eq!(used, control.kernel_name);
        // No new socket can select it.
        let other = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
        assert!(sockopt::set_tcp_congestion(&other, control.kernel_name).is_err());
        drop(stream);
        assert_eq!(reader.join().expect("it read"), PART * PARTS);
        let again = sent_again() - before;
        println!("{}: {again} segments retransmitted", control.kernel_name);
        if drops && !YIELDS.contains(&control.name) {
            assert!(again > 0, "{} fills no queue", control.name);
        }
    }
}

/// Detects copies that share a name with a control of another program, are loaded twice, or remain.
#[test]
fn a_temporary_control_is_specific_to_this_process() {
    skip_if_hindered!();
    let vegas = Source::shipped("vegas").expect("it ships");
    let first = temporary::load(&vegas, &Interrupt::default()).expect("the verifier takes it");
    let again = temporary::load(&vegas, &Interrupt::default()).expect("it is there");
    assert_eq!(first.name(), again.name());
    assert_ne!(first.name(), "ab_vegas");
    let name = first.name().to_owned();
    assert!(kernel::available().contains(&name));
    assert!(kernel::allowed().contains(&name));
    // Another file, whose control has the same name.
    let mut other = vegas.clone();
    other.text.push('\n');
    let beside = temporary::load(&other, &Interrupt::default()).expect("another name is found");
    assert_ne!(beside.name(), name);
    let (mut stream, reader) = connection(beside.name());
    stream.write_all(&vec![7; PART]).expect("it sends");
    drop(first);
    assert!(kernel::available().contains(&name), "somebody uses it");
    drop(again);
    assert!(!kernel::available().contains(&name));
    drop(stream);
    assert_eq!(reader.join().expect("it read"), PART);
}

/// Reno under another name, with one change.
fn changed(name: &str, right: &str, wrong: &str) -> Source {
    let mut source = Source::shipped("reno").expect("it ships");
    assert!(source.text.contains(right));
    source.text = source
        .text
        .replace("\"ab_reno\"", &format!("\"{name}\""))
        .replace(right, wrong);
    source
}

#[test]
fn rejections_by_the_kernel_have_short_messages() {
    skip_if_hindered!();
    let cases = [
        // The field is not writable.
        (
            changed(
                "ab_test_1",
                "reno->cwnd_before = 0;\n\tif",
                "tp->srtt_us = 1;\n\tif",
            ),
            vec![
                "the kernel refuses `reno.bpf.c`: reno_undo_cwnd: ",
                "at `tp->srtt_us = 1;`",
            ],
        ),
        // 16 characters, without space for the terminating zero.
        (
            changed("ab_test_too_long", "", ""),
            vec!["`reno.bpf.c` names its control", "1 to 15 letters"],
        ),
        (
            changed("ab/test", "", ""),
            vec!["names its control \"ab/test\""],
        ),
        (
            changed("ab_test_3", "SEC(\".struct_ops.link\")", "static"),
            vec!["`reno.bpf.c` has no control"],
        ),
        (
            changed("ab_test_4", "half > 2 ? half : 2", "half > two ? half : 2"),
            vec!["`reno.bpf.c` does not compile: reno.bpf.c:", "'two'"],
        ),
        (
            changed("reno", "", ""),
            vec!["the kernel has a congestion control `reno` already"],
        ),
    ];
    for (source, parts) in cases {
        let said = attach(&source, &Interrupt::default())
            .expect_err("it is wrong")
            .to_string();
        for part in parts {
            assert!(said.contains(part), "{said}\n-- has no --\n{part}");
        }
        assert!(said.len() < 400, "{said}");
    }
}
