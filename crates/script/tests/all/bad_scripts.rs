//! Invalid scripts, and valid scripts whose expectations fail.

use anabranch_script::{Cause, EndpointTarget, Error, parse, run};
use anabranch_wire::{Ports, Version};
use proptest::prelude::*;

fn carry_out(text: &str) -> Result<(), String> {
    judged(text).map_err(|error| error.to_string())
}

fn judged(text: &str) -> Result<(), Error> {
    let script = parse(text, "s.pkt")?;
    let version = Version::V4 {
        source: [192, 0, 2, 1],
        destination: [192, 168, 0, 1],
        identification: 0,
        dont_fragment: true,
    };
    let ports = Ports {
        source: 40_000,
        destination: 8080,
    };
    let mut target = EndpointTarget::new((version, ports), 1000);
    run(&script, &mut target, 5000)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_have_a_position_and_a_hint() {
    let cases = [
        (
            "",
            "s.pkt:1:1: the script is empty: expected an event, such as `+0 < S 0:0(0) win 1000`",
        ),
        (
            "--stak=rfc",
            "s.pkt:1:3: there is no option `--stak`; expected one of stack, mtu, tolerance_usecs, cc; nearest is `stack`, or `transport.` and a switch",
        ),
        (
            "--transport.rack=7\n+0 < S 0:0(0) win 9",
            "s.pkt:1:3: invalid type: integer `7`, expected a boolean",
        ),
        (
            "--stack=linux\n--transport.sack=off\n--transport.rack=on\n+0 < S 0:0(0) win 9",
            "s.pkt:3:3: rack: \"rack\" needs sack = true",
        ),
        (
            "--mtu=\n",
            "s.pkt:2:1: expected a value, found the end of the script",
        ),
        (
            "--mtu=9\n+0 < S 0:0(0) win 9",
            "s.pkt:1:3: `9`: expected octets of a packet, 116 to 65535",
        ),
        (
            "--stack=vista\n+0 < S 0:0(0) win 9",
            "s.pkt:1:3: there is no stack `vista`; expected one of linux-6.18, linux-6.12, rfc, ns3-2018, ns2-sack1, linux-2.6.35, windows-7, bsd44-lite",
        ),
        (
            "socket(...) = 3",
            "s.pkt:1:1: expected a time, such as `+.1`, `0.1` or `*`, found `socket`",
        ),
        ("+0 §", "s.pkt:1:4: nothing in a script begins with `§`"),
        (
            "+0 /* no end",
            "s.pkt:1:4: this comment has no end: expected `*/`",
        ),
        (
            "+0 `sysctl -q a=1",
            "s.pkt:1:4: this command has no end: expected a backquote",
        ),
        (
            "+0 `rm -rf /`",
            "s.pkt:1:4: packetdrill's command `rm` is not supported; expected `sysctl -q NAME=VALUE`, `ip link set dev tun0 mtu N`, `ethtool -K tun0 gso off` or an init script of these",
        ),
        (
            "+0 `sysctl -q net.ipv4.tcp_sac=1`",
            "s.pkt:1:1: there is no setting net.ipv4.tcp_sac=1 here; expected one of net.ipv4.tcp_sack, net.ipv4.tcp_dsack, net.ipv4.tcp_timestamps, net.ipv4.tcp_window_scaling, net.ipv4.tcp_ecn, net.ipv4.tcp_ecn_option, net.ipv4.tcp_invalid_ratelimit, net.ipv4.tcp_recovery, net.ipv4.tcp_early_retrans, net.ipv4.tcp_frto, net.ipv4.tcp_reordering, net.ipv4.tcp_max_reordering, net.ipv4.tcp_slow_start_after_idle, net.ipv4.tcp_moderate_rcvbuf, net.ipv4.tcp_rto_min_us, net.ipv4.tcp_retries2, net.ipv4.tcp_syn_retries, net.ipv4.tcp_synack_retries, net.ipv4.tcp_rmem, net.ipv4.tcp_wmem, net.ipv4.tcp_congestion_control; nearest is `net.ipv4.tcp_sack`",
        ),
        (
            "+0\n   soket() = 3",
            "s.pkt:2:4: there is no call `soket`; expected one of socket, bind, listen, accept, connect, read, write, close, shutdown, setsockopt, getsockopt, send, sendto, fcntl, sendmsg, writev, recv, recvfrom, recvmsg, readv, poll, epoll_create, epoll_create1, epoll_ctl, epoll_wait, ioctl, accept4; nearest is `socket`",
        ),
        (
            "+0 socket(...) = -1",
            "s.pkt:1:1: expected -1; the call returns 0",
        ),
        (
            "+0 shutdown(3, SHUT_R) = 0",
            "s.pkt:1:16: `SHUT_R`: expected SHUT_WR, SHUT_RD or SHUT_RDWR",
        ),
        (
            "+1.2.3 < S 0:0(0) win 9",
            "s.pkt:1:2: `1.2.3` is no time: expected seconds, such as `0.25`, a day at most",
        ),
        (
            "+1~+.5 > S 0:0(0)",
            "s.pkt:1:5: the span ends before it begins",
        ),
        (
            "* < S 0:0(0) win 9",
            "s.pkt:1:1: only a packet that is expected (`>`) can come within a span of time",
        ),
        (
            "+0 < X 0:0(0)",
            "s.pkt:1:6: `X` is no flag: expected some of SFRPUEWA.",
        ),
        ("+0 < S 0:10(0)", "s.pkt:1:8: 0:10 spans 10 octets, not 0"),
        ("+0 < S 0(0)", "s.pkt:1:9: expected `:`, found `(`"),
        (
            "+0 < . 1:1(0) win 3",
            "s.pkt:1:15: expected `ack` and its number, since the flags have `.`, found `win`",
        ),
        (
            "+0 > . 1:1001(1000)",
            "s.pkt:1:20: expected `ack` and its number, since the flags have `.`, found the end of the script",
        ),
        (
            "+0 < . 1:1(0) ack 1\n+0 > . 1:1(0) ack 1",
            "s.pkt:2:1: expected `win` and a window, since this packet is made here, found `+`",
        ),
        (
            "+0 < U 1:1(0) win 9 urg 3",
            "s.pkt:1:21: packetdrill's urgent pointer (`urg`) is not supported: expected options or the next event",
        ),
        (
            "+0 > 0x12 1:1(0)",
            "s.pkt:1:6: packetdrill's flags as numbers (`0x12`) are not supported: expected some of SFRPUEWA.",
        ),
        (
            "+0 setsockopt(3, SOL_TCP, TCP_REPAIR, {a=1}, 4) = 0",
            "s.pkt:1:39: packetdrill's structures as values of TCP_REPAIR are not supported; expected a number, such as `[1]`",
        ),
        (
            "+0 send(3, ..., 9, MSG_MOREE) = 9",
            "s.pkt:1:20: the constant `MSG_MOREE` is not supported; nearest is `MSG_MORE`",
        ),
        (
            "+0 poll([{fd=4, events=POLLIM}], 1, 0) = 1",
            "s.pkt:1:24: the constant `POLLIM` is not supported; nearest is `POLLIN`",
        ),
        (
            "+0 < S 0:0(0) win 9 <FO 123>",
            "s.pkt:1:25: `123`: expected octets in hexadecimal, two digits each",
        ),
        (
            "+0 bind(3, {sa_family = AF_INET}, ...) = 0",
            "s.pkt:1:12: packetdrill's structures and texts as arguments are not supported: expected `...`",
        ),
        (
            "+0 %{ assert tcpi_rto == 1 or tcpi_rto == 2 }%",
            "s.pkt:1:28: packetdrill's Python code (`or`) is not supported; expected `and`, `;` or `}%`",
        ),
        (
            "+0 close(\"a) = 0\n",
            "s.pkt:1:10: this text has no end on its line: expected `\"`",
        ),
        (
            "0 socket(...) = 3\n+0 listen(3, 1) = 0\n+0 `sysctl -q net.ipv4.tcp_sack=0`",
            "s.pkt:3:1: net.ipv4.tcp_sack must be set before listen or connect",
        ),
        (
            "+0 < . 1:1(0) ack 4294967296",
            "s.pkt:1:19: `4294967296` is too large: expected an acknowledgment number, 4294967295 at most",
        ),
        (
            "+0 < . 1:1(0) ack 1x",
            "s.pkt:1:19: `1x` is no whole number: expected an acknowledgment number",
        ),
        (
            "+0 < . 1:1(0) ack 1 win 65536",
            "s.pkt:1:25: `65536` is too large: expected a window, 65535 at most",
        ),
        (
            "+0 < S 0:0(0) win 9 <mms 3>",
            "s.pkt:1:22: there is no option `mms`; expected one of nop, eol, mss, wscale, sackOK, sack, TS, ECN, FO, FOEXP, raw; nearest is `mss`",
        ),
        (
            "+0 < S 0:0(0) win 9 <...>",
            "s.pkt:1:26: `<...>` says nothing about a packet that is made here: list its options",
        ),
        (
            "+0 < S 0:0(0) win 9 <raw 123>",
            "s.pkt:1:26: `123`: expected octets in hexadecimal, two digits each",
        ),
        (
            "+0 < . 1:1(0) ack 1 win 9 <sack>",
            "s.pkt:1:28: expected one to four blocks LEFT:RIGHT after `sack`",
        ),
        (
            "+0 > [cut 3] . 1:1(0)",
            "s.pkt:1:7: `[cut]` describes a sent packet (`<`), not an expected one",
        ),
        (
            "+0 < [bad-cheksum] . 1:1(0) ack 1",
            "s.pkt:1:7: `[bad-cheksum]` is not known; expected one of noecn, ect0, ect1, ce, bad-checksum, bad-ip-checksum, cut, fragment, offset, garbage; nearest is `bad-checksum`",
        ),
        (
            "+0 %{ tcpi_rto == 1 }%",
            "s.pkt:1:7: expected `assert NAME == VALUE` or `}%`, found `tcpi_rto`",
        ),
        (
            "+0 %{ assert tcpi_rto 1 }%",
            "s.pkt:1:23: expected one of ==, !=, <, <=, >, >=, found `1`",
        ),
        (
            "+0 close(4) = 0",
            "s.pkt:1:1: no call above returned the descriptor 4",
        ),
        (
            "1 < R 0:0(0) win 9\n0.5 < R 0:0(0) win 9",
            "s.pkt:2:1: this comes before the event above it, which is at 1 s",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(carry_out(text), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn an_unknown_congestion_control_names_the_nearest() {
    let message = carry_out("--cc=cubik\n+0 < S 0:0(0) win 9").expect_err("there is none");
    let begins = "s.pkt:1:3: there is no congestion control `cubik`; expected one of reno, cubic, ";
    assert!(message.starts_with(begins), "{message}");
    assert!(message.ends_with("; nearest is `cubic`"), "{message}");
}

#[test]
fn an_unknown_switch_names_the_nearest() {
    let text = "--stack=linux\n--transport.rak=on\n+0 < S 0:0(0) win 9";
    let message = carry_out(text).expect_err("there is none");
    assert!(message.starts_with("s.pkt:2:3: there is no switch `rak`; expected one of mss, "));
    assert!(message.ends_with("; nearest is `rack`"), "{message}");
}

/// An open connection with two segments in flight.
const OPEN: &str = "--mtu=1040
0    `sysctl -q net.ipv4.tcp_timestamps=0`
+0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0   listen(3, 1) = 0
+0   < S 0:0(0) win 32792 <mss 1000,sackOK>
+0   > S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>
+.1  < . 1:1(0) ack 1 win 30000
+0   accept(3, ..., ...) = 4
+0   write(4, ..., 2000) = 2000
+0   > [noecn] . 1:1001(1000) ack 1
+0   > P. 1001:2001(1000) ack 1
+.1  < . 1:1(0) ack 2001 win 30000
+0   %{ assert tcpi_state == TCP_ESTABLISHED and tcpi_snd_cwnd >= 10 }%
";

/// Each kind of expectation is checked: a wrong one fails.
#[test]
fn a_deviating_tcp_is_detected() {
    assert_eq!(carry_out(OPEN), Ok(()));
    let cases = [
        ("S. 0:0(0) ack 1", "SE. 0:0(0) ack 1", "the flags differ"),
        (
            "> P. 1001:2001",
            "> P. 1002:2002",
            "the sequence numbers differ",
        ),
        (
            "> P. 1001:2001(1000)",
            "> P. 1001:2000(999)",
            "the lengths differ",
        ),
        (
            "> P. 1001:2001(1000) ack 1",
            "> P. 1001:2001(1000) ack 2",
            "the acknowledgment numbers differ",
        ),
        ("win 65535", "win 65534", "the windows differ"),
        (
            "win 65535 <mss 1000,sackOK>",
            "win 65535 <mss 1000>",
            "the options differ",
        ),
        (
            "win 65535 <mss 1000,",
            "win 65535 <mss 1001,",
            "the options differ",
        ),
        ("[noecn]", "[ect0]", "the ECN fields differ"),
        (
            "+0   > P.",
            "+.01 > P.",
            "expected `> P. 1001:2001(1000) ack 1` at 0.11 s; the target sent it at 0.1 s",
        ),
        (
            "+0   > P.",
            "+.01~+.02 > P.",
            "between 0.11 s and 0.12 s; the target sent it at 0.1 s",
        ),
        (
            "+0   > P. 1001:2001(1000) ack 1\n",
            "",
            "the target has sent `> P. 1001:2001(1000) ack 1 win 65535` at 0.1 s, which no line above expects",
        ),
        (
            "write(4, ..., 2000) = 2000",
            "write(4, ..., 2000) = 1999",
            "expected 1999; the call returns 2000",
        ),
        (
            "write(4, ..., 2000) = 2000",
            "write(4, ..., 2000) = -1 EAGAIN (no)",
            "expected -1 EAGAIN; the call returns 2000",
        ),
        (
            "== TCP_ESTABLISHED",
            "== TCP_CLOSE",
            "expected tcpi_state == 7; it is 1",
        ),
        (
            "== TCP_ESTABLISHED",
            "== TCP_CLOS",
            "nearest is `TCP_CLOSE`",
        ),
        ("tcpi_state", "tcpi_stat", "nearest is `tcpi_state`"),
        (">= 10", "< 10", "expected tcpi_snd_cwnd < 10; it is"),
    ];
    for (right, wrong, said) in cases {
        assert!(OPEN.contains(right), "{right}");
        let message = carry_out(&OPEN.replacen(right, wrong, 1)).expect_err(wrong);
        assert!(
            message.starts_with("s.pkt:") && message.contains(said),
            "{wrong}\n{message}"
        );
    }
    let more = [
        (
            "+0 > . 2001:2001(0) ack 1\n",
            "the target has sent nothing until 0.2 s; expected `> . 2001:2001(0) ack 1`",
        ),
        (
            "+0 read(4, ..., 10) = 0\n",
            "expected 0; the call returns -1 EAGAIN",
        ),
        ("+0 write(4, ..., 10) = 10\n", "which no line above expects"),
        (
            "+0 < [garbage] P. 1:101(100) ack 2001 win 3\n+0 read(4, ..., 100) = 100\n",
            "the octets read are not those sent to the target",
        ),
    ];
    for (line, said) in more {
        let message = carry_out(&format!("{OPEN}{line}")).expect_err(line);
        assert!(message.contains(said), "{line}\n{message}");
    }
}

/// The wrong party is the script, the subset of the language, or the target.
#[test]
fn an_error_has_a_cause() {
    let cause = |text: &str| judged(text).expect_err(text).cause;
    for text in [
        "",
        "--stack=vista\n+0 < S 0:0(0) win 9",
        "+0 close(4) = 0",
        "+0 `sysctl -q a=b`",
        "`./defaults.sh`",
    ] {
        assert_eq!(cause(text), Cause::Script, "{text}");
    }
    for text in [
        "+0 `rm -rf /`",
        "+0 splice(3) = 0",
        "--ip_version=ipv6",
        "+0 > icmp x",
        "+0 < icmp time_exceeded",
        "+0 sendmsg(3, {msg_iov(1)=[{..., 9}], msg_control=[]}, 0) = 9",
        "+0 send(3, ..., 9, MSG_OOB) = 9",
        "+0 ioctl(3, SIOCATMARK, [1]) = 0",
    ] {
        assert_eq!(cause(text), Cause::Unsupported, "{text}");
    }
    assert_eq!(
        cause("+0 %{ assert tcpi_rto == 1 }%"),
        Cause::Target(Vec::new())
    );
}

#[test]
fn a_difference_has_the_fields_of_both_sides() {
    let differing = |text: &str| match judged(text).expect_err(text).cause {
        Cause::Target(fields) => fields.into_iter().filter(|field| field.differs).collect(),
        _ => Vec::new(),
    };
    let fields = differing(&OPEN.replace("> [noecn] . 1:1001(1000)", "> [ce] F. 1:501(500)"));
    let told: Vec<_> = fields
        .iter()
        .map(|field| (field.name, field.expected.as_str(), field.actual.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("flags", "F.", "."),
            ("length", "500", "1000"),
            ("ECN field", "ce", "noecn"),
        ]
    );
    let fields = differing(&OPEN.replace("= 2000\n", "= -1 EAGAIN\n"));
    assert_eq!(fields[0].name, "returned value");
    assert_eq!(
        (&*fields[0].expected, &*fields[0].actual),
        ("-1 EAGAIN", "2000")
    );
}

/// Nested values take a frame of the stack each.
#[test]
fn deep_and_long_values_are_refused() {
    let deep =
        |open: &str, close: &str| format!("{}1{}", open.repeat(90_000), close.repeat(90_000));
    let socket = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 ";
    for text in [
        format!("{socket}sendmsg(3, {}, 0) = 0", deep("{msg_iov=", "}")),
        format!("{socket}sendmsg(3, {{msg_iov={}}}, 0) = 0", deep("[", "]")),
        format!("{socket}%{{ assert {} == 1 }}%", deep("(", ")")),
    ] {
        let told = carry_out(&text).expect_err("it is too deep");
        assert!(
            told.contains("values are nested more than 32 deep"),
            "{}",
            &told[..200]
        );
    }
    let long = format!("{socket}%{{ assert {} == 1 }}%", deep("1+", ""));
    let told = carry_out(&long).expect_err("it is too long");
    assert!(
        told.contains("an expression has more than 256 operators"),
        "{}",
        &told[..200]
    );
}

proptest! {
    #[test]
    fn faults_do_not_interfere_with_each_other(cut in 0_u32..99, offset in 0_u8..16) {
        for order in [format!("cut {cut}, offset {offset}, bad-checksum"), format!("offset {offset}, bad-ip-checksum, cut {cut}")] {
            let _ = carry_out(&format!("0 < [{order}] S 0:9(9) win 1 <mss 3>"));
        }
    }

    #[test]
    fn any_text_gives_a_result(text in "[ -~\n]{0,200}") {
        let _ = carry_out(&text);
    }

    /// A script with a damaged line gives a result and never panics.
    #[test]
    fn a_damaged_script_gives_a_result(at in 0..OPEN.len(), cut in 0_usize..20, put in "[ -~]{0,10}") {
        let mut text = OPEN.to_owned();
        text.replace_range(at..(at + cut).min(OPEN.len()), &put);
        let _ = carry_out(&text);
    }
}
