//! The status report of the daemon, and the socket that serves it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::{FileTypeExt, MetadataExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use anabranch_core::system::words;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{
    answers::Answers,
    config::{Config, amount},
    confine::Account,
    history::Query,
};

/// The daemon's answer to a completed [`Request::Reload`].
pub const RELOADED: &str = "the configuration was reloaded";

/// The daemon's answer to a completed [`Request::Down`].
pub const ENDED: &str = "the gateway ends, and its protection has ended";

/// The state of the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The TUN interface.
    pub interface: String,
    /// Its MTU: the largest of the peers that have a session.
    pub mtu: u16,
    /// Whether packets to the peers are refused while the gateway is down; earlier versions do not
    /// report it.
    #[serde(default)]
    pub protect: bool,
    /// The other ends, by name.
    pub peers: BTreeMap<String, PeerReport>,
    /// Traffic beside the tunnel, by name; earlier versions do not report it.
    #[serde(default)]
    pub bypass: BTreeMap<String, BypassReport>,
    /// Datagrams that were refused.
    pub rejected: Rejected,
    /// Packets that the daemon dropped outside the tunnels.
    pub dropped: Dropped,
    /// The data caps of this end's paths, by path.
    #[serde(default)]
    pub caps: BTreeMap<String, CapReport>,
}

/// The data cap of a path.
#[derive(Debug, Serialize, Deserialize)]
pub struct CapReport {
    /// Bytes of IP packets in both directions since the start of the period.
    pub used_bytes: u64,
    /// The cap.
    pub cap_bytes: u64,
    /// `day`, `week` or `month`.
    pub period: String,
    /// The first day of the period, in UTC.
    pub since: String,
    /// The first day of the next period.
    pub until: String,
    /// The percentage of the highest level that is reached: an alarm's, 100, or 0.
    pub level: u8,
    /// The use of the path once the cap is reached: `metered` or `off`.
    pub at_cap: String,
}

/// A struct of counters with their reasons, in the order of the fields.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $reason:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$about])* pub $reason: u64,)*
        }

        impl $name {
            /// Reason and count.
            pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($reason), self.$reason),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Datagrams that were refused, by reason.
    Rejected {
        /// Data messages whose number arrived before, or is too old to be checked.
        replayed,
        /// Data messages of a session that are not authentic.
        unauthentic,
        /// Datagrams that are not valid messages of this version.
        malformed,
        /// Datagrams of no session.
        unknown_session,
        /// Handshakes that match no peer's key.
        unknown_key,
        /// Handshakes that are older than the peer's newest one.
        stale,
        /// Handshakes beyond the rate: they were dropped, or a cookie was demanded.
        limited,
        /// Packets with a source address that the other end must not use.
        foreign_sources,
    }
}

counters! {
    /// Packets dropped outside the tunnels, by reason.
    Dropped {
        /// Packets that are not whole IP packets.
        not_ip,
        /// Packets to an address of no peer.
        no_peer,
        /// Packets that no path can carry.
        too_big,
        /// Datagrams that the kernel did not send.
        not_sent,
        /// Packets from the tunnel that the kernel refused.
        not_delivered,
    }
}

counters! {
    /// Packets that a tunnel dropped, by reason.
    PeerDropped {
        /// Packets that the queue dropped.
        queue,
        /// Packets that no path can carry any more.
        unsendable,
        /// Copies.
        duplicates,
    }
}

/// A bypass.
#[derive(Debug, Serialize, Deserialize)]
pub struct BypassReport {
    /// The addresses of its domains.
    pub addresses: Vec<IpAddr>,
    /// Why the last resolution of a domain failed, by domain; earlier versions do not report it.
    #[serde(default)]
    pub unresolved: BTreeMap<String, String>,
}

/// A peer.
#[derive(Debug, Serialize, Deserialize)]
pub struct PeerReport {
    /// `up` with a session and a path that delivers, else `down`.
    pub state: String,
    /// The group of peers that serve the same prefixes.
    #[serde(default)]
    pub group: Option<String>,
    /// Whether it carries the traffic of its group; `null` without a group.
    #[serde(default)]
    pub carries: Option<bool>,
    /// The reason why no session begins, as far as this end can tell; earlier versions do not report
    /// it.
    #[serde(default)]
    pub reason: Option<String>,
    /// The reason's name.
    #[serde(default)]
    pub cause: Option<String>,
    /// The largest packet that its tunnel carries.
    #[serde(default)]
    pub mtu: u16,
    /// Its paths, by their names in the configuration, or their numbers.
    pub paths: BTreeMap<String, PathReport>,
    /// The classes of this end's packets: `bulk`, `interactive`, `pinned to PATH`.
    #[serde(default)]
    pub classes: BTreeMap<String, ClassReport>,
    /// Packets of this end that were lost and retransmitted.
    pub repaired_packets: u64,
    /// Repair packets that this end sent; earlier versions do not count them.
    #[serde(default)]
    pub correction_packets: u64,
    /// Packets of the other end that were lost and rebuilt from repair packets.
    #[serde(default)]
    pub rebuilt_packets: u64,
    /// Packets delivered after a later one of their flow.
    pub reordered_packets: u64,
    /// Packets taken from the inside.
    pub sent_packets: u64,
    /// Packets delivered to the inside.
    pub received_packets: u64,
    /// Sessions since the start.
    pub sessions: u64,
    /// Detected restarts of the other end.
    pub restarts: u64,
    /// Packets that the tunnel dropped.
    pub dropped: PeerDropped,
}

/// The packets of a class that this end sends.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClassReport {
    /// Packets sent, retransmissions and repair packets included.
    pub sent_packets: u64,
    /// Bytes of their datagrams.
    pub sent_bytes: u64,
    /// Packets that wait for a path now.
    pub queued_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
}

/// A path.
#[derive(Debug, Serialize, Deserialize)]
pub struct PathReport {
    /// The state of the path.
    pub state: String,
    /// The reason why it does not deliver, as far as this end can tell.
    #[serde(default)]
    pub reason: Option<String>,
    /// The reason's name; earlier versions do not report it.
    #[serde(default)]
    pub cause: Option<String>,
    /// The other end's address and port on this path; earlier versions do not report it.
    #[serde(default)]
    pub endpoint: Option<SocketAddr>,
    /// The smoothed round-trip time.
    pub rtt_ms: Option<f64>,
    /// The rate at which this end may send on it.
    pub rate_mbit_s: f64,
    /// The share of the other end's datagrams that did not arrive, 0 to 1.
    pub loss: f64,
    /// The largest datagram that it delivers.
    pub mtu: usize,
    /// Bytes of datagrams sent.
    pub sent_bytes: u64,
    /// Bytes of datagrams received.
    pub received_bytes: u64,
    /// The number of deaths.
    pub deaths: u64,
}

impl PathReport {
    /// Whether the path delivers packets.
    pub fn delivers(&self) -> bool {
        ["active", "standby"].contains(&self.state.as_str())
    }
}

impl Report {
    /// The report as text for people. With an earlier report, paths show the rates since then
    /// instead of total octets.
    pub fn text(&self, earlier: Option<&Earlier>) -> String {
        let protect = if self.protect { ", protected" } else { "" };
        let mut text = format!("interface {}, MTU {}{protect}\n", self.interface, self.mtu);
        for (name, peer) in &self.peers {
            peer.write(name, earlier, &mut text);
        }
        for (name, cap) in &self.caps {
            cap.write(name, &mut text);
        }
        for (name, bypass) in &self.bypass {
            if !bypass.addresses.is_empty() {
                let all: Vec<String> = bypass.addresses.iter().map(ToString::to_string).collect();
                let _ = writeln!(text, "bypass {name}: {}", all.join(", "));
            }
            for why in bypass.unresolved.values() {
                let _ = writeln!(text, "bypass {name}: {why}");
            }
        }
        write_counts(&mut text, "rejected", self.rejected.reasons());
        write_counts(&mut text, "dropped", self.dropped.reasons());
        text
    }
}

/// An earlier report.
pub struct Earlier {
    pub report: Report,
    /// The time since then.
    pub elapsed: Duration,
}

impl Earlier {
    /// Mbit/s that a path sent and received since then.
    fn rates(&self, peer: &str, name: &str, path: &PathReport) -> [f64; 2] {
        let before = self.report.peers.get(peer);
        let Some(before) = before.and_then(|peer| peer.paths.get(name)) else {
            return [0.0; 2];
        };
        // The counters of a gateway restart from 0.
        let rate = |now: u64, before: u64| {
            now.saturating_sub(before) as f64 * 8e-6 / self.elapsed.as_secs_f64()
        };
        [
            rate(path.sent_bytes, before.sent_bytes),
            rate(path.received_bytes, before.received_bytes),
        ]
    }
}

impl CapReport {
    fn write(&self, name: &str, text: &mut String) {
        let reached = match (self.level, self.at_cap.as_str()) {
            (100, "off") => "; the path is off",
            (100, _) => "; the path is metered",
            _ => "",
        };
        let _ = writeln!(
            text,
            "cap {name}: {} of {} since {}, until {}{reached}",
            amount(self.used_bytes),
            amount(self.cap_bytes),
            self.since,
            self.until
        );
    }
}

impl PeerReport {
    /// Its role in its group.
    fn role(&self) -> String {
        match (&self.group, self.carries) {
            (Some(group), Some(true)) => format!(", carries {group}"),
            (Some(group), _) => format!(", waits in {group}"),
            (None, _) => String::new(),
        }
    }

    fn write(&self, name: &str, earlier: Option<&Earlier>, text: &mut String) {
        let peer = name;
        let _ = writeln!(
            text,
            "\npeer {name}: {}{}; {} packets sent, {} received, {} repaired, {} reordered",
            self.state,
            self.role(),
            self.sent_packets,
            self.received_packets,
            self.repaired_packets,
            self.reordered_packets
        );
        if let Some(reason) = &self.reason {
            let _ = writeln!(text, "  {reason}");
        }
        let traffic = match earlier {
            Some(_) => ["out Mbit/s", "in Mbit/s"],
            None => ["sent", "received"],
        };
        if !self.paths.is_empty() {
            let _ = writeln!(
                text,
                "  {:<15} {:<10} {:>8} {:>8} {:>6} {:>5} {:>11} {:>11}",
                "path", "state", "Mbit/s", "RTT ms", "loss %", "MTU", traffic[0], traffic[1]
            );
        }
        for (name, path) in &self.paths {
            let rtt = path.rtt_ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
            let [sent, received] = match earlier {
                Some(earlier) => earlier
                    .rates(peer, name, path)
                    .map(|rate| format!("{rate:.1}")),
                None => [path.sent_bytes, path.received_bytes].map(|octets| octets.to_string()),
            };
            let reason = path.reason.as_deref().map(|why| format!("  {why}"));
            let reason = reason.unwrap_or_default();
            let _ = writeln!(
                text,
                "  {name:<15} {:<10} {:>8.1} {rtt:>8} {:>6.1} {:>5} {sent:>11} {received:>11}{reason}",
                path.state,
                path.rate_mbit_s,
                path.loss * 100.0,
                path.mtu,
            );
        }
        write_counts(text, "  dropped", self.dropped.reasons());
    }
}

fn write_counts<'a>(text: &mut String, what: &str, reasons: impl Iterator<Item = (&'a str, u64)>) {
    let counted: Vec<String> = reasons
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    if !counted.is_empty() {
        let _ = writeln!(text, "{what}: {}", counted.join(", "));
    }
}

/// Requests the state of the daemon. Returns the report, and its text as JSON.
///
/// # Errors
/// If there is no daemon, or if it does not answer.
pub fn report(config: &Config) -> Result<(Report, String), String> {
    let answer = ask(config, Request::Status)?;
    let report = serde_json::from_str(&answer)
        .map_err(|error| format!("the gateway's answer is no report: {error}"))?;
    Ok((report, answer))
}

/// The path of the status socket of this configuration's daemon.
pub fn path_of(config: &Config) -> PathBuf {
    config.status.socket.clone().unwrap_or_else(|| {
        Path::new("/run/anabranch-gateway").join(format!("{}.sock", config.gateway.interface.0))
    })
}

/// The path of the view socket of this configuration's daemon: the status socket of questions that
/// change nothing.
pub fn view_of(config: &Config) -> PathBuf {
    let path = path_of(config);
    if path.extension().is_some_and(|ending| ending == "sock") {
        return path.with_extension("view.sock");
    }
    let mut name = path.into_os_string();
    name.push(".view");
    name.into()
}

/// A request to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Requests its state, as JSON.
    Status,
    /// Requests a reload of its configuration. The answer is [`RELOADED`], or the reason why
    /// nothing has changed. It follows the resolution of names.
    Reload,
    /// Ends the protection and the daemon. The answer is [`ENDED`], or the reason why the
    /// protection has not ended.
    Down,
}

impl Request {
    const ALL: [(Self, &str); 3] = [
        (Self::Status, "status\n"),
        (Self::Reload, "reload\n"),
        (Self::Down, "down\n"),
    ];

    fn line(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(request, _)| *request == self)
            .map_or("", |(_, line)| line)
    }

    /// Whether it changes nothing.
    const fn is_question(self) -> bool {
        matches!(self, Self::Status)
    }

    /// The time for which a client waits for the answer. In usual configurations a resolver gives
    /// up each name after half a minute at most.
    fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Status | Self::Down => 5,
            Self::Reload => 180,
        })
    }

    fn read(octets: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, line)| line.as_bytes() == octets)
            .map(|(request, _)| request)
    }
}

/// Sends a request to the daemon.
///
/// # Errors
/// If there is no daemon, or if it does not answer.
pub fn ask(config: &Config, request: Request) -> Result<String, String> {
    ask_at(&path_of(config), request.line(), request.patience())
}

/// Sends a line to the daemon with this status socket.
///
/// # Errors
/// As [`ask`].
pub fn ask_at(path: &Path, line: &str, patience: Duration) -> Result<String, String> {
    let failed = |error: io::Error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "; no gateway is up: anabranch-gateway up FILE"
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let seconds = patience.as_secs();
                return format!(
                    "{}: the gateway has not answered within {seconds} s; see its log",
                    path.display()
                );
            }
            _ => "",
        };
        format!("{}: {}{help}", path.display(), words(&error))
    };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    stream.write_all(line.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    if answer.is_empty() {
        let at = path.display();
        return Err(format!(
            "{at}: the gateway ended before it answered; see its log"
        ));
    }
    Ok(answer)
}

/// Sends a request to the daemon if there is one.
///
/// # Errors
/// If it does not answer.
pub fn ask_if_up(config: &Config, request: Request) -> Result<Option<String>, String> {
    let path = path_of(config);
    match UnixStream::connect(&path) {
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused]
                .contains(&error.kind()) =>
        {
            return Ok(None);
        }
        // Any other error is that of the request, too.
        _ => {}
    }
    ask(config, request).map(Some)
}

/// The most connected clients; another one replaces the oldest.
const CLIENTS: usize = 8;

/// The listening socket for [`ask`]. Its file is removed on drop.
pub struct StatusSocket {
    listener: UnixListener,
    clients: Vec<UnixStream>,
    /// Device and inode of its file.
    identity: Option<(u64, u64)>,
    /// Clients that wait for [`StatusSocket::answer`].
    waiting: Vec<UnixStream>,
    answers: Answers<UnixStream>,
    path: PathBuf,
    /// Whether it takes only requests that change nothing.
    is_view: bool,
}

impl StatusSocket {
    /// Creates the socket; only its owner may connect: `account`, or the user of this process.
    ///
    /// # Errors
    /// If another daemon listens there, or the system refuses.
    pub fn open(path: PathBuf, account: Option<&Account>) -> Result<Self, String> {
        Self::bind(path, account, false)
    }

    /// Creates a socket that takes only requests that change nothing. The owner's group may connect too.
    ///
    /// # Errors
    /// As [`StatusSocket::open`].
    pub fn open_view(path: PathBuf, account: Option<&Account>) -> Result<Self, String> {
        Self::bind(path, account, true)
    }

    fn bind(path: PathBuf, account: Option<&Account>, is_view: bool) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {}", path.display(), words(&error));
        if let Some(folder) = path.parent()
            && !folder.as_os_str().is_empty()
            && !folder.exists()
        {
            fs::create_dir_all(folder).map_err(failed)?;
            // Its user removes the socket.
            account
                .map_or(Ok(()), |account| account.own(folder))
                .map_err(failed)?;
        }
        match fs::symlink_metadata(&path) {
            // Connecting to any other file is refused too: it is not replaced.
            Ok(there) if !there.file_type().is_socket() => {
                return Err(format!(
                    "{}: it is no socket and is left as it is; expected a free name, or the status socket of a gateway that has ended",
                    path.display()
                ));
            }
            _ => {}
        }
        match UnixStream::connect(&path) {
            Ok(_) => {
                return Err(format!(
                    "{}: a gateway with this status socket is up",
                    path.display()
                ));
            }
            // A killed daemon left it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(&path).map_err(failed)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let socket = Self {
            identity: identity(&path),
            listener,
            clients: Vec::new(),
            waiting: Vec::new(),
            answers: Answers::default(),
            path,
            is_view,
        };
        let failed = |error: io::Error| format!("{}: {}", socket.path.display(), words(&error));
        socket.listener.set_nonblocking(true).map_err(failed)?;
        let owned = account.map_or(Ok(()), |account| account.own(&socket.path));
        owned.map_err(failed)?;
        let mode = fs::Permissions::from_mode(if is_view { 0o660 } else { 0o600 });
        fs::set_permissions(&socket.path, mode).map_err(failed)?;
        Ok(socket)
    }

    /// The descriptors to wait on: to be readable, and to be writable.
    pub fn descriptors(&self) -> [Vec<BorrowedFd<'_>>; 2] {
        let clients = self.clients.iter().map(AsFd::as_fd);
        let readable = std::iter::once(self.listener.as_fd()).chain(clients);
        [readable.collect(), self.answers.descriptors().collect()]
    }

    /// Accepts new clients, and answers requests; clients whose request has no answer yet wait.
    /// A client that queries the history is passed to `pass`.
    pub fn serve(
        &mut self,
        mut answer: impl FnMut(Request) -> Option<String>,
        mut pass: impl FnMut(UnixStream, Query),
    ) {
        loop {
            match self.listener.accept() {
                Ok((client, _)) if client.set_nonblocking(true).is_ok() => {
                    if self.clients.len() == CLIENTS {
                        self.clients.remove(0);
                    }
                    self.clients.push(client);
                }
                Ok(_) => {}
                // If no descriptor is left, the oldest client is dropped too; otherwise the
                // listener would stay readable.
                Err(error) if is_out_of_descriptors(&error) && !self.clients.is_empty() => {
                    self.clients.remove(0);
                }
                Err(_) => break,
            }
        }
        for mut client in std::mem::take(&mut self.clients) {
            let mut request = [0; 1024];
            match client.read(&mut request) {
                Ok(length) => {
                    let request = &request[..length];
                    if let Some(query) = Query::read(request) {
                        pass(client, query);
                        continue;
                    }
                    let request = Request::read(request);
                    let is_permitted = |request: &Request| !self.is_view || request.is_question();
                    let Some(request) = request.filter(is_permitted) else {
                        continue;
                    };
                    match answer(request) {
                        Some(text) => self.answers.send(client, text.into_bytes()),
                        None => self.waiting.push(client),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clients.push(client);
                }
                Err(_) => {}
            }
        }
        let surplus = self.waiting.len().saturating_sub(CLIENTS);
        self.waiting.drain(..surplus);
        self.answers.flush();
    }

    /// Answers all waiting clients, if there is an answer.
    pub fn answer_if(&mut self, text: Option<String>) {
        if let Some(text) = text {
            self.answer(&text);
        }
    }

    /// Answers all waiting clients.
    pub fn answer(&mut self, text: &str) {
        for client in std::mem::take(&mut self.waiting) {
            self.answers.send(client, text.into());
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    error.raw_os_error().map(Errno::from_raw_os_error) == Some(Errno::MFILE)
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        // Another daemon, or a user, may have created a file of that name since.
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let there = fs::symlink_metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{FileTypeExt, symlink},
    };

    use super::StatusSocket;

    #[test]
    fn only_sockets_are_replaced_and_only_the_own_one_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "years").expect("written");
        symlink("file", &link).expect("a link");
        for path in [&file, &link] {
            let refused = StatusSocket::open(path.clone(), None)
                .err()
                .expect("it is refused");
            assert!(
                refused.contains("no socket and is left as it is"),
                "{refused}"
            );
        }
        assert_eq!(fs::read(&file).expect("it is there"), b"years");

        let path = folder.path().join("socket");
        let first = StatusSocket::open(path.clone(), None).expect("the name is free");
        fs::remove_file(&path).expect("it is there");
        fs::write(&path, "years").expect("written");
        drop(first);
        assert_eq!(fs::read(&path).expect("it is there"), b"years");
        fs::remove_file(&path).expect("it is there");
        drop(StatusSocket::open(path.clone(), None).expect("the name is free"));
        assert!(!path.exists());

        // A killed daemon leaves a socket without a listener.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("the name is free"));
        let socket = StatusSocket::open(path.clone(), None).expect("it is taken over");
        let about = fs::symlink_metadata(&path).expect("it is there");
        assert!(about.file_type().is_socket());
        drop(socket);
    }
}
