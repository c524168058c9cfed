//! Queries to name servers by datagrams that do not enter the tunnel.
//!
//! The system's resolver has no such datagrams: with a default route into the tunnel it asks
//! through the tunnel, which may wait for the answer. This is the fallback after it has failed.

use std::{
    fs,
    io::{self, Cursor, Read},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use rustix::net::connect_unspec;
use socket2::{Domain, Protocol, Socket, Type};

use crate::netlink::MARK;

/// The port of name servers.
const PORT: u16 = 53;
/// The most name servers that are queried, as in resolv.conf(5).
const SERVERS: usize = 3;
/// The time for which answers of a name server are awaited.
const PATIENCE: Duration = Duration::from_secs(2);
/// The files that list name servers: the system's, and the list of the servers that
/// the local stub of systemd-resolved asks.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Octets of the largest answer over UDP without extensions, and more (RFC 1035 §4.2.1).
const ANSWER: usize = 4096;

/// Types of records (RFC 1035 §3.2.2, RFC 3596 §2.1) and the class of the Internet.
const A: u16 = 1;
const AAAA: u16 = 28;
const INTERNET: u16 = 1;

/// Sockets for queries, which must be opened before the thread drops its capabilities.
pub struct Direct {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Direct {
    /// Opens the sockets. Without them there is no fallback.
    pub fn new() -> Self {
        let open = |any: IpAddr| open(SocketAddr::new(any, 0)).ok();
        Self {
            v4: open(Ipv4Addr::UNSPECIFIED.into()),
            v6: open(Ipv6Addr::UNSPECIFIED.into()),
        }
    }

    /// The addresses of a name; none if no server answers.
    pub fn look_up(&self, host: &str) -> Vec<IpAddr> {
        self.look_up_at(host, servers(&FILES))
    }

    fn look_up_at(&self, host: &str, servers: Vec<SocketAddr>) -> Vec<IpAddr> {
        for server in servers.into_iter().take(SERVERS) {
            let socket = if server.is_ipv4() { &self.v4 } else { &self.v6 };
            let found = socket.as_ref().map(|socket| ask(socket, server, host));
            match found {
                Some(Ok(found)) if !found.is_empty() => return found,
                // The next server may know more.
                _ => {}
            }
        }
        Vec::new()
    }
}

fn open(any: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(any), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_mark(MARK)?;
    if any.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket.into())
}

/// Whether `/etc/hosts` has a name.
pub fn is_in_hosts(host: &str) -> bool {
    names_host(&fs::read_to_string("/etc/hosts").unwrap_or_default(), host)
}

/// Whether a file of the form of hosts(5) has a name.
fn names_host(text: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    text.lines().any(|line| {
        let entry = line.split('#').next().unwrap_or_default();
        let mut names = entry.split_whitespace().skip(1);
        names.any(|name| name.eq_ignore_ascii_case(host))
    })
}

/// The name servers of the first file that has one elsewhere.
fn servers(files: &[&str]) -> Vec<SocketAddr> {
    let read = |file: &&str| listed(&fs::read_to_string(file).unwrap_or_default());
    let mut all = files.iter().map(read);
    let elsewhere = |servers: &Vec<SocketAddr>| servers.iter().any(|at| !at.ip().is_loopback());
    all.find(elsewhere).unwrap_or_default()
}

/// The name servers of a file of the form of resolv.conf(5).
fn listed(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    let addresses = servers.filter_map(|server| server.parse::<IpAddr>().ok());
    addresses
        .map(|address| SocketAddr::new(address, PORT))
        .collect()
}

/// Asks a server for the addresses of both families.
fn ask(socket: &UdpSocket, server: SocketAddr, host: &str) -> io::Result<Vec<IpAddr>> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| io::Error::other("no randomness"))?;
    let first = u16::from_be_bytes([random[0], random[1]]);
    let second = u16::from_be_bytes([random[2], random[3]]);
    let ids = [(A, first), (AAAA, second)];
    // Each server is asked from another port, which a forger has to guess too: the kernel chooses
    // one at each connection. A new socket could not have the mark.
    socket.connect(server)?;
    let found = exchange(socket, ids, host);
    let _ = connect_unspec(socket);
    found
}

fn exchange(socket: &UdpSocket, ids: [(u16, u16); 2], host: &str) -> io::Result<Vec<IpAddr>> {
    let mut open = Vec::new();
    for (kind, id) in ids {
        let query = query(host, kind, id).ok_or(io::ErrorKind::InvalidInput)?;
        socket.send(&query)?;
        open.push(query);
    }
    let start = Instant::now();
    let mut found = Vec::new();
    let mut buffer = [0; ANSWER];
    while !open.is_empty() {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        // The connection receives from this server only.
        let length = match socket.recv(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        let answer = &buffer[..length];
        let asked = open.iter().position(|query| is_answer(query, answer));
        let Some(asked) = asked else {
            continue;
        };
        open.swap_remove(asked);
        found.extend(addresses(answer).unwrap_or_default());
    }
    Ok(found)
}

/// A query with one question (RFC 1035 §4.1); `None` if the name is none.
fn query(host: &str, kind: u16, id: u16) -> Option<Vec<u8>> {
    // Recursion is desired.
    let mut query = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query[..2].copy_from_slice(&id.to_be_bytes());
    for label in host.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok();
        query.push(length.filter(|length| (1..=63).contains(length))?);
        query.extend(label.as_bytes());
    }
    query.push(0);
    query.extend(kind.to_be_bytes());
    query.extend(INTERNET.to_be_bytes());
    Some(query)
}

/// Whether a datagram answers a query: it has the same number and question. Names may differ in
/// case.
fn is_answer(query: &[u8], answer: &[u8]) -> bool {
    let is_reply = answer.get(2).is_some_and(|flags| flags & 0x80 != 0);
    let question = answer.get(12..query.len());
    is_reply
        && answer.get(..2) == query.get(..2)
        && question.is_some_and(|question| question.eq_ignore_ascii_case(&query[12..]))
}

/// The addresses in an answer; `None` if it is cut off.
fn addresses(answer: &[u8]) -> Option<Vec<IpAddr>> {
    let mut rest = Cursor::new(answer);
    let header: [u8; 12] = read(&mut rest)?;
    let count = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
    for _ in 0..count(4) {
        skip_name(&mut rest)?;
        read::<4>(&mut rest)?;
    }
    let mut found = Vec::new();
    for _ in 0..count(6) {
        if skip_name(&mut rest).is_none() {
            break;
        }
        let (Some(kind), Some(class), Some(_time), Some(length)) = (
            read::<2>(&mut rest),
            read::<2>(&mut rest),
            read::<4>(&mut rest),
            read::<2>(&mut rest),
        ) else {
            break;
        };
        let length = usize::from(u16::from_be_bytes(length));
        let about = (u16::from_be_bytes(kind), u16::from_be_bytes(class), length);
        match about {
            (A, INTERNET, 4) => found.push(IpAddr::from(read::<4>(&mut rest)?)),
            (AAAA, INTERNET, 16) => found.push(IpAddr::from(read::<16>(&mut rest)?)),
            // An alias; the records of the name that it leads to follow.
            _ => rest.set_position(rest.position() + length as u64),
        }
    }
    Some(found)
}

fn read<const N: usize>(rest: &mut Cursor<&[u8]>) -> Option<[u8; N]> {
    let mut octets = [0; N];
    rest.read_exact(&mut octets).ok()?;
    Some(octets)
}

/// Skips a name, which ends with an empty label or with a pointer (RFC 1035 §4.1.4).
fn skip_name(rest: &mut Cursor<&[u8]>) -> Option<()> {
    loop {
        match read::<1>(rest)? {
            [0] => return Some(()),
            [length @ 1..=63] => rest.set_position(rest.position() + u64::from(length)),
            [0xc0..=0xff] => return read::<1>(rest).map(drop),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        net::{IpAddr, SocketAddr, UdpSocket},
    };

    use proptest::prelude::*;
    use socket2::{Domain, Socket, Type};

    use super::{A, AAAA, Direct, addresses, is_answer, listed, names_host, query};

    /// An answer with an alias and the addresses of the name that it leads to.
    fn answer(query: &[u8], found: &[IpAddr]) -> Vec<u8> {
        let mut answer = query.to_vec();
        answer[2] |= 0x80;
        answer[7] = u8::try_from(found.len() + 1).expect("few");
        answer.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, b'x', 0xc0, 16]);
        for address in found {
            answer.extend([0xc0, 12, 0]);
            match address {
                IpAddr::V4(v4) => {
                    answer.extend([1, 0, 1, 0, 0, 0, 60, 0, 4]);
                    answer.extend(v4.octets());
                }
                IpAddr::V6(v6) => {
                    answer.extend([28, 0, 1, 0, 0, 0, 60, 0, 16]);
                    answer.extend(v6.octets());
                }
            }
        }
        answer
    }

    #[test]
    fn addresses_of_both_families_are_found() {
        let found: Vec<IpAddr> = ["192.0.2.1", "2001:db8::1"]
            .map(|text| text.parse().expect("an address"))
            .into();
        let query = query("hub.example", A, 7).expect("a name");
        let answer = answer(&query, &found);
        assert!(is_answer(&query, &answer));
        assert_eq!(addresses(&answer), Some(found));
    }

    #[test]
    fn only_the_answer_to_the_question_counts() {
        let asked = query("hub.example", A, 7).expect("a name");
        for other in [
            ("hub.example", AAAA, 7),
            ("hub.example", A, 8),
            ("hab.example", A, 7),
        ] {
            let other = query(other.0, other.1, other.2).expect("a name");
            assert!(!is_answer(&asked, &answer(&other, &[])));
        }
        assert!(!is_answer(&asked, &asked), "a query");
        let upper = query("HUB.example", A, 7).expect("a name");
        assert!(is_answer(&asked, &answer(&upper, &[])));
    }

    #[test]
    fn names_have_labels() {
        for name in ["", "a..b", &"a".repeat(64)] {
            assert_eq!(query(name, A, 0), None, "{name}");
        }
    }

    #[test]
    fn names_of_the_hosts_file_are_found() {
        let text = "127.0.0.1 localhost\n192.0.2.1\thub.example hub # also old.example\n";
        for (name, is_there) in [
            ("hub.example", true),
            ("HUB.", true),
            ("old.example", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(names_host(text, name), is_there, "{name}");
        }
    }

    #[test]
    fn name_servers_are_read() {
        let text = "# nameserver 192.0.2.9\nnameserver 192.0.2.1\nsearch example\n\
                    nameserver\t2001:db8::1\nnameserver fe80::1%eth0\nnameserver x\n";
        let expected: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::1]:53"]
            .map(|text| text.parse().expect("an address"))
            .into();
        assert_eq!(listed(text), expected);
    }

    fn unmarked() -> Direct {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        Direct {
            v4: Some(socket.into()),
            v6: None,
        }
    }

    #[test]
    fn each_question_has_another_port() {
        let direct = unmarked();
        let server = UdpSocket::bind("127.0.0.1:0").expect("it is free");
        let at = server.local_addr().expect("it is bound");
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let mut ports = BTreeSet::new();
            for _ in 0..8 {
                let (length, from) = server.recv_from(&mut buffer).expect("a query");
                ports.insert(from.port());
                let answer = answer(&buffer[..length], &[]);
                server.send_to(&answer, from).expect("sent");
            }
            ports.len()
        });
        for _ in 0..4 {
            assert_eq!(
                direct.look_up_at("hub.example", vec![at]),
                [] as [IpAddr; 0]
            );
        }
        // Two of four may be the same by chance.
        assert!(thread.join().expect("no panic") > 2);
    }

    /// The second server answers; the first is closed.
    #[test]
    fn a_server_that_refuses_is_passed() {
        let loopback = || UdpSocket::bind("127.0.0.1:0").expect("it is free");
        let direct = unmarked();
        let closed = loopback().local_addr().expect("it is bound");
        let server = loopback();
        let at = server.local_addr().expect("it is bound");
        let found: IpAddr = "192.0.2.1".parse().expect("an address");
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            for _ in 0..2 {
                let (length, from) = server.recv_from(&mut buffer).expect("a query");
                let query = &buffer[..length];
                let is_a = query[length - 3] == 1;
                let found: &[IpAddr] = if is_a { &[found] } else { &[] };
                server.send_to(&answer(query, found), from).expect("sent");
            }
        });
        assert_eq!(direct.look_up_at("hub.example", vec![closed, at]), [found]);
        thread.join().expect("no panic");
    }

    proptest! {
        #[test]
        fn no_answer_panics(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = addresses(&octets);
        }

        #[test]
        fn cut_answers_are_read_as_far_as_they_go(length in 0_usize..120) {
            let query = query("hub.example", A, 7).expect("a name");
            let found: IpAddr = "192.0.2.1".parse().expect("an address");
            let whole = answer(&query, &[found, found]);
            let cut = &whole[..length.min(whole.len())];
            let read = addresses(cut).unwrap_or_default();
            prop_assert!(read.iter().all(|address| *address == found));
        }
    }
}
