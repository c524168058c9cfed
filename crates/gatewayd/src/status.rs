//! What the daemon says about itself: the report, and the socket that it is read from.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use anabranch_core::system::words;
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// How long a client waits for the daemon.
const PATIENCE: Duration = Duration::from_secs(5);

/// The state of the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The TUN interface.
    pub interface: String,
    /// Its MTU.
    pub mtu: u16,
    /// What the daemon dropped before a tunnel saw it.
    pub dropped: Dropped,
    /// The other ends.
    pub peers: Vec<PeerReport>,
}

/// Packets and datagrams dropped outside the tunnels, by reason.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Dropped {
    /// Datagrams that are no message of this version.
    pub malformed: u64,
    /// Datagrams of no session.
    pub unknown_session: u64,
    /// Handshakes that no peer's key fits.
    pub unknown_key: u64,
    /// Packets that are no whole IP packet.
    pub not_ip: u64,
    /// Packets to an address behind no peer.
    pub no_peer: u64,
    /// Packets that no path can carry.
    pub too_big: u64,
    /// Datagrams that the kernel did not send.
    pub not_sent: u64,
    /// Packets that the kernel did not take from the tunnel.
    pub not_delivered: u64,
}

impl Dropped {
    /// Reason and count.
    pub fn reasons(&self) -> [(&'static str, u64); 8] {
        [
            ("malformed", self.malformed),
            ("unknown_session", self.unknown_session),
            ("unknown_key", self.unknown_key),
            ("not_ip", self.not_ip),
            ("no_peer", self.no_peer),
            ("too_big", self.too_big),
            ("not_sent", self.not_sent),
            ("not_delivered", self.not_delivered),
        ]
    }
}

/// A peer.
#[derive(Debug, Serialize, Deserialize)]
pub struct PeerReport {
    /// Its name in the configuration.
    pub name: String,
    /// Whether there is a session.
    pub up: bool,
    /// Sessions so far.
    pub sessions: u64,
    /// Restarts of the other end that were noticed.
    pub restarts: u64,
    /// Packets taken from the inside.
    pub packets_sent: u64,
    /// Packets delivered to the inside.
    pub packets_received: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// What the tunnel dropped.
    pub dropped: PeerDropped,
    /// Its paths.
    pub paths: Vec<PathReport>,
}

/// Packets and datagrams that a tunnel dropped, by reason.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct PeerDropped {
    /// Data that is not authentic, or not new.
    pub unauthentic: u64,
    /// Messages of no known form.
    pub malformed: u64,
    /// Packets whose source address the other end must not use.
    pub foreign_sources: u64,
    /// Packets that the queue dropped.
    pub queue: u64,
    /// Packets that no path can carry any more.
    pub unsendable: u64,
    /// Copies.
    pub duplicates: u64,
}

impl PeerDropped {
    /// Reason and count.
    pub fn reasons(&self) -> [(&'static str, u64); 6] {
        [
            ("unauthentic", self.unauthentic),
            ("malformed", self.malformed),
            ("foreign_sources", self.foreign_sources),
            ("queue", self.queue),
            ("unsendable", self.unsendable),
            ("duplicates", self.duplicates),
        ]
    }
}

/// A path.
#[derive(Debug, Serialize, Deserialize)]
pub struct PathReport {
    /// Its name in the configuration, or its number.
    pub name: String,
    /// Whether it delivers.
    pub state: String,
    /// The rate at which this end may send on it.
    pub rate_mbit_s: f64,
    /// The smoothed round-trip time.
    pub rtt_ms: Option<f64>,
    /// The share of the other end's datagrams that did not arrive, 0 to 1.
    pub loss: f64,
    /// The largest datagram that it delivers.
    pub datagram_octets: usize,
    /// Octets of datagrams sent.
    pub sent_octets: u64,
    /// Octets of datagrams received.
    pub received_octets: u64,
    /// How often it died.
    pub deaths: u64,
}

impl Report {
    /// For the eye.
    pub fn text(&self) -> String {
        let mut text = format!("interface {}, MTU {}\n", self.interface, self.mtu);
        for peer in &self.peers {
            peer.write(&mut text);
        }
        write_dropped(&mut text, "", &self.dropped.reasons());
        text
    }
}

impl PeerReport {
    fn write(&self, text: &mut String) {
        let state = if self.up { "up" } else { "down" };
        let _ = writeln!(
            text,
            "\npeer {}: {state}; {} packets sent, {} received, {} retransmitted",
            self.name, self.packets_sent, self.packets_received, self.retransmitted
        );
        if !self.paths.is_empty() {
            let _ = writeln!(
                text,
                "  {:<15} {:<10} {:>8} {:>8} {:>6} {:>11} {:>11}",
                "path", "state", "Mbit/s", "RTT ms", "loss %", "sent", "received"
            );
        }
        for path in &self.paths {
            let rtt = path.rtt_ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
            let _ = writeln!(
                text,
                "  {:<15} {:<10} {:>8.1} {rtt:>8} {:>6.1} {:>11} {:>11}",
                path.name,
                path.state,
                path.rate_mbit_s,
                path.loss * 100.0,
                path.sent_octets,
                path.received_octets
            );
        }
        write_dropped(text, "  ", &self.dropped.reasons());
    }
}

fn write_dropped(text: &mut String, indent: &str, reasons: &[(&str, u64)]) {
    let counted: Vec<String> = reasons
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    if !counted.is_empty() {
        let _ = writeln!(text, "{indent}dropped: {}", counted.join(", "));
    }
}

/// Where the daemon of this configuration is asked.
pub fn path_of(config: &Config) -> PathBuf {
    config.status.socket.clone().unwrap_or_else(|| {
        Path::new("/run/anabranch-gateway").join(format!("{}.sock", config.tunnel.interface.0))
    })
}

/// Asks the daemon.
///
/// # Errors
/// If there is none, or if it does not answer.
pub fn ask(config: &Config) -> Result<String, String> {
    let path = path_of(config);
    let failed = |error: io::Error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "; no gateway is up: anabranch-gateway up FILE"
            }
            _ => "",
        };
        format!("{}: {}{help}", path.display(), words(&error))
    };
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut json = String::new();
    stream.read_to_string(&mut json).map_err(failed)?;
    Ok(json)
}

/// The socket that [`ask`] connects to. Its file is gone when this is dropped.
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl StatusSocket {
    /// Makes the socket; only its owner may connect.
    ///
    /// # Errors
    /// If another daemon listens there, or the system refuses.
    pub fn open(path: PathBuf) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {}", path.display(), words(&error));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        match UnixStream::connect(&path) {
            Ok(_) => {
                return Err(format!(
                    "{}: a gateway with this status socket is up",
                    path.display()
                ));
            }
            // What a killed daemon left behind.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(&path).map_err(failed)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let socket = Self { listener, path };
        let failed = |error: io::Error| format!("{}: {}", socket.path.display(), words(&error));
        socket.listener.set_nonblocking(true).map_err(failed)?;
        fs::set_permissions(&socket.path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(socket)
    }

    /// Answers waiting clients. A client that does not read gets what its buffer takes.
    pub fn serve(&self, report: impl Fn() -> Report) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let json = serde_json::to_string(&report()).unwrap_or_default();
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_all(json.as_bytes());
        }
    }
}

impl AsFd for StatusSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
