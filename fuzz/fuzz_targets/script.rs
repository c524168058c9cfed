//! Any text as a behaviour script, and scripts of arbitrary parts of the language: the result is an
//! outcome or an error that renders; nothing panics.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::collections::BTreeMap;

use anabranch_fuzz::fuzz_target;
use anabranch_script::{EndpointTarget, parse_with, run};

/// Lines and parts of lines. An octet of the input selects one.
const PARTS: [&str; 64] = [
    "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n",
    "+0 bind(3, ..., ...) = 0\n",
    "+0 listen(3, 1) = 0\n",
    "+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,wscale 7>\n",
    "+0 > S. 0:0(0) ack 1 <...>\n",
    "+.1 < . 1:1(0) ack 1 win 1000\n",
    "+0 accept(3, ..., ...) = 4\n",
    "+0 write(4, ..., 4000) = 4000\n",
    "+0 read(4, ..., 1000) = ?\n",
    "+0 close(4) = 0\n",
    "+0 shutdown(4, SHUT_WR) = 0\n",
    "+0 epoll_create(1) = 5\n",
    "+0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLOUT|EPOLLET, fd=4}) = 0\n",
    "+0 epoll_wait(5, {events=EPOLLOUT, fd=4}, 1, 0) = 1\n",
    "+0 poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0) = 1\n",
    "+0 sendmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 1000}], msg_flags=0}, MSG_EOR) = 1000\n",
    "+0 writev(4, [{..., 10}, {..., 20}], 2) = 30\n",
    "+0 ioctl(4, SIOCOUTQ, [100]) = 0\n",
    "+0 setsockopt(3, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0\n",
    "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n",
    "+0 < S 0:500(500) win 65535 <mss 1000,sackOK,nop,nop,FO abcdabcd>\n",
    "+0 sendto(3, ..., 1000, MSG_FASTOPEN, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n",
    "+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n",
    "+0 %{ assert tcpi_snd_cwnd == 10 }%\n",
    "+0 %{ assert (tcpi_unacked + 1) * 2 / 0 >= -9223372036854775807 }%\n",
    "+.1 < . 1:1(0) ack 1001 win 1000 <sack 2001:3001>\n",
    "+0 < F. 1:1(0) ack 4001 win 0\n",
    "+0 < R 1:1(0) win 0\n",
    "+0 < [ce] P. 1:1001(1000) ack 1 win 100\n",
    "* > . 1:1001(1000) ack 1\n",
    "0 `sysctl -q net.ipv4.tcp_fastopen=0x603`\n",
    "--stack=linux\n",
    "--mtu=1040\n",
    "+0 ",
    "+1e9 ",
    "*",
    "...",
    "\n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "%{",
    "}%",
    "<",
    ">",
    "=",
    "|",
    ",",
    "-1",
    "0x7fffffffffffffff",
    "18446744073709551616",
    "4294967295:4294967295(0)",
    "ack",
    "win",
    "msg_iov",
    "EPOLLIN",
    "MSG_ZEROCOPY",
    "tcpi_rtt",
    "~",
    "+",
    "/",
];

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        check(text);
    }
    let parts = input.iter().map(|octet| PARTS[usize::from(octet % 64)]);
    check(&parts.collect::<String>());
});

fn check(text: &str) {
    let outcome = parse_with(text, "fuzz.pkt", &BTreeMap::new())
        .and_then(|script| run(&script, &mut EndpointTarget::default(), 1_000));
    if let Err(error) = outcome {
        assert!(!error.to_string().is_empty());
    }
}
