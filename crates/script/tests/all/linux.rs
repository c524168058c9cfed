//! Scripts for the Linux kernel, in packetdrill's own habits: a command without a time sets up the
//! kernel, bursts are one packet, calls block, and times are approximate.

use std::collections::BTreeMap;

use anabranch_script::{Cause, EndpointTarget, Error, init_scripts, parse_with, run};

/// Settings of a kernel, as an init script has them.
const INIT: &str = r#"#!/bin/bash
# Sizes of buffers.
sysctl -q net.ipv4.tcp_rmem="4096 131072 $((15*1024*1024))"
sysctl -q net.ipv4.tcp_wmem="4096 $((256*1024)) 4194304"
sysctl -q net.ipv4.tcp_congestion_control=reno net.ipv4.tcp_ecn=0
ip tcp_metrics flush all > /dev/null 2>&1
tc qdisc add dev tun0 root pfifo
"#;

fn judged(text: &str) -> Result<(), Error> {
    let names = init_scripts(text);
    let files = BTreeMap::from([("../init.sh".to_owned(), INIT.to_owned())]);
    assert!(names.iter().all(|name| name == "../init.sh"), "{names:?}");
    let script = parse_with(text, "s.pkt", &files)?;
    assert!(script.is_for_linux);
    run(&script, &mut EndpointTarget::default(), 1000)
}

fn carry_out(text: &str) -> Result<(), String> {
    judged(text).map_err(|error| error.to_string())
}

/// A server with ten segments to send.
const SERVER: &str = "// A comment.
--tolerance_usecs=20000
`../init.sh
sysctl -q net.ipv4.tcp_timestamps=0`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
  +.1 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
  +.1 < . 1:1(0) ack 1 win 257
   +0 accept(3, ..., ...) = 4
   +0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [200000], 4) = 0
   +0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1000], [4]) = 0
   +0 getsockopt(4, SOL_SOCKET, SO_ERROR, [0], [4]) = 0
   +0 write(4, ..., 12000) = 12000
   +0 > P. 1:10001(10000) ack 1
   +0 %{
assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd   # as RFC 6928 says
assert 100000 <= tcpi_rtt <= 100000, 'rtt=%d' % tcpi_rtt; \\
assert tcpi_reordering == 3, tcpi_reordering
print(tcpi_snd_cwnd)
}%
  +.1 < . 1:1(0) ack 10001 win 257
   +0 > P. 10001:12001(2000) ack 1
";

#[test]
fn a_script_of_the_kernel_runs() {
    assert_eq!(carry_out(SERVER), Ok(()));
    let cases = [
        ("P. 1:10001(10000)", "P. 1:9001(9000)", "10001"),
        (
            "P. 1:10001(10000)",
            "P. 1:11001(11000)",
            "the lengths differ",
        ),
        ("wscale 8", "wscale 7", "the options differ"),
        (
            "[1000], [4]",
            "[1460], [4]",
            "expected TCP_MAXSEG to be 1460; it is 1000",
        ),
        (
            "<= 100000,",
            "<= 99999,",
            "expected tcpi_rtt <= 99999; it is 100000",
        ),
        (
            "100000 <= ",
            "100001 <= ",
            "expected 100001 <= tcpi_rtt; it is 100000",
        ),
        (
            "cwnd == 10,",
            "cwnd == 9,",
            "expected tcpi_snd_cwnd == 9; it is 10",
        ),
    ];
    for (right, wrong, said) in cases {
        assert!(SERVER.contains(right), "{right}");
        let message = carry_out(&SERVER.replacen(right, wrong, 1)).expect_err(wrong);
        assert!(message.contains(said), "{wrong}\n{message}");
    }
}

/// A burst may be expected in parts, and packets that no line expects are no failure.
#[test]
fn lines_and_packets_need_not_be_alike_in_number() {
    let parts =
        "P. 1:4001(4000) ack 1\n   +0 > . 4001:4501(500) ack 1\n   +0 > P. 4501:10001(5500)";
    assert_eq!(
        carry_out(&SERVER.replace("P. 1:10001(10000)", parts)),
        Ok(())
    );
    let end = SERVER.rfind("   +0 > P.").expect("it is there");
    assert_eq!(carry_out(&SERVER[..end]), Ok(()));
}

#[test]
fn times_are_approximate() {
    let retransmission = "  +.3 > P. 10001:12001(2000) ack 1\n";
    let late = SERVER.replace("   +0 > P. 10001", "+.008 > P. 10001");
    assert_eq!(carry_out(&late), Ok(()));
    let message = carry_out(&SERVER.replace("   +0 > P. 10001", "+.03 > P. 10001"));
    assert!(message.is_err_and(|message| message.contains("the target sent it at 0.3 s")));
    assert!(carry_out(&format!("{SERVER}{retransmission}")).is_err());
}

#[test]
fn calls_block_until_their_time() {
    let text = "`../init.sh`
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+.01...0.06 connect(3, ..., ...) = 0
+0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>
+.05 < S. 0:0(0) ack 1 win 65535 <mss 1460,nop,wscale 2,nop,nop,sackOK>
+0 > . 1:1(0) ack 1
+0...0.1 read(3, ..., 3000) = 2000
+.1 < P. 1:2001(2000) ack 1 win 257
+.04~+.2 > . 1:1(0) ack 2001
+0 shutdown(3, SHUT_RD) = 0
+0 read(3, ..., 1) = 0
+0 close(3) = 0
+0 > F. 1:1(0) ack 2001
+0 write(3, ..., 1) = -1 EBADF (Bad file descriptor)
";
    assert_eq!(carry_out(&text.replace(".04~+.2", "0~+.2")), Ok(()));
    let early = carry_out(&text.replace("0...0.1 read", "0...0.4 read"));
    let said = "expected the call to return at 0.46 s; it returns at 0.16 s";
    assert!(early.is_err_and(|message| message.contains(said)));
    let never = carry_out(&text.replace(".01...0.06", ".01...0.02"));
    assert!(never.is_err_and(|message| message.contains("the call has not returned until 0.03 s")));
}

#[test]
fn a_closed_attempt_to_connect_is_over() {
    let text = "`../init.sh`
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <...>
+0 close(3) = 0
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1460>
+0 > R 1:1(0)
";
    assert_eq!(carry_out(text), Ok(()));
}

/// RFC 1122 §4.2.2.13: a RST reports unread data to the peer.
#[test]
fn close_with_unread_data_resets() {
    let end = SERVER.find("   +0 write").expect("it is there");
    let text = format!(
        "{}+0 < P. 1:1001(1000) ack 1 win 257\n+0 > . 1:1(0) ack 1001\n+.1 close(4) = 0\n\
         +0 > R. 1:1(0) ack 1001\n",
        &SERVER[..end]
    );
    assert_eq!(carry_out(&text), Ok(()));
}

/// RFC 9293 §3.10.7.4 has an answer, as Linux 6.18 does; 6.12 drops the segment.
#[test]
fn linux_6_12_is_silent_about_an_acknowledgment_of_unsent_data() {
    let end = SERVER.find("   +0 write").expect("it is there");
    let begin = SERVER.replace("--tolerance_usecs=20000", "--stack=linux-6.12");
    let text = |begin: &str, line: &str| {
        format!(
            "{}+.1 < P. 1:1001(1000) ack 9 win 257\n{line}+.1 < P. 1:1001(1000) ack 1 win 257\n\
             +0 > . 1:1(0) ack 1001\n",
            &begin[..end - (SERVER.len() - begin.len())]
        )
    };
    assert_eq!(carry_out(&text(&begin, "")), Ok(()));
    let answered = text(&begin.replace("-6.12", "-6.18"), "+0 > . 1:1(0) ack 1\n");
    assert_eq!(carry_out(&answered), Ok(()));
}

#[test]
fn mistakes_have_a_cause() {
    let cases = [
        ("`./other.py x`\n+0 < S 0:0(0) win 1", Cause::Unsupported),
        ("`iptables -F`\n+0 < S 0:0(0) win 1", Cause::Unsupported),
        ("`sysctl -q x`\n+0 < S 0:0(0) win 1", Cause::Script),
        (
            "`sysctl -q net.ipv4.tcp_tso_win_divisor=9`\n+0 < S 0:0(0) win 1",
            Cause::Script,
        ),
        ("`true`\n+.2...0.1 connect(3, ..., ...) = 0", Cause::Script),
        ("`true`\n+0...0.1 > . 1:1(0) ack 1", Cause::Script),
        (
            "--ip_version=ipv6\n`true`\n+0 < S 0:0(0) win 1",
            Cause::Unsupported,
        ),
        (
            "`true`\n+0 send(3, ..., 1, MSG_OOB) = 1",
            Cause::Unsupported,
        ),
    ];
    for (text, cause) in cases {
        assert_eq!(judged(text).expect_err(text).cause, cause, "{text}");
    }
    let missing = parse_with("`./none.sh`\n+0 close(3) = 0", "s.pkt", &BTreeMap::new());
    let message = missing.expect_err("it is missing").to_string();
    assert!(
        message.starts_with("s.pkt:1:1: the init script `./none.sh` is missing"),
        "{message}"
    );
}

/// Digits in the flags are the ACE field, AccECN counters may come in any order, and the values of
/// timestamps count only with their tick.
#[test]
fn packets_of_accecn_are_compared() {
    let text = "`sysctl -q net.ipv4.tcp_ecn=3`
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 listen(3, 1) = 0
+.1 < SEWA 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,TS val 9 ecr 0>
+0 > SW. 0:0(0) ack 1 <mss 1460,sackOK,TS val 100 ecr 9,ECN e1b 1 ceb 0 e0b 1>
+.1 < [ect0] W. 1:1(0) ack 1 win 30000 <nop,nop,TS val 10 ecr 100>
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 500) = 500
+0 > [ect0] P.5 1:501(500) ack 1 <nop,nop,TS val 555 ecr 10>
+.1 < [ect0] 5. 1:1(0) ack 501 win 30000 <nop,nop,TS val 11 ecr 200>
";
    let done = |text: &str| carry_out_any(text);
    assert_eq!(done(text), Ok(()));
    let ticks = done(&format!("--tcp_ts_tick_usecs=1000\n{text}"));
    assert!(ticks.is_err_and(|message| message.contains("the options differ")));
    let other = done(&text.replace("P.5 ", "P.4 "));
    assert!(other.is_err_and(|message| message.contains("the flags differ")));
    let more = done(&text.replace("ceb 0 e0b 1>", "ceb 1 e0b 1>"));
    assert!(more.is_err_and(|message| message.contains("the options differ")));
    assert!(done(&text.replace("P.5 ", "P.8 ")).is_err());
}

fn carry_out_any(text: &str) -> Result<(), String> {
    let script = parse_with(text, "s.pkt", &BTreeMap::new()).map_err(|error| error.to_string())?;
    run(&script, &mut EndpointTarget::default(), 1000).map_err(|error| error.to_string())
}
