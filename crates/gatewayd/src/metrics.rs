//! Metrics in Prometheus' text format, over HTTP on the loopback interface.

use std::{
    fmt::Write as _,
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, BorrowedFd},
};

use anabranch_core::system::words;

use crate::{answers::Answers, status::Report};

/// The most connected clients; another one replaces the oldest.
const CLIENTS: usize = 8;

/// The meaning of each metric.
const HELP: &[(&str, &str)] = &[
    (
        "rejected_total",
        "Datagrams and handshakes that this end rejected.",
    ),
    (
        "dropped_total",
        "Packets and datagrams dropped outside the tunnels.",
    ),
    (
        "peer_dropped_total",
        "Packets that the tunnel to a peer dropped.",
    ),
    (
        "peer_up",
        "1 with a session and a path that delivers, else 0.",
    ),
    (
        "peer_carries",
        "1 if the peer carries the traffic of its group, else 0.",
    ),
    (
        "peer_cause",
        "1 for the known reason why no session with a peer begins.",
    ),
    (
        "peer_mtu_bytes",
        "The largest packet that the tunnel to a peer carries.",
    ),
    (
        "sent_packets_total",
        "Packets taken from the inside for a peer.",
    ),
    (
        "received_packets_total",
        "Packets from a peer delivered to the inside.",
    ),
    (
        "repaired_packets_total",
        "Packets that were lost and retransmitted.",
    ),
    (
        "correction_packets_total",
        "Packets of error correction sent.",
    ),
    (
        "rebuilt_packets_total",
        "Packets of a peer that were lost and rebuilt by error correction.",
    ),
    (
        "reordered_packets_total",
        "Packets delivered after a later one of their flow.",
    ),
    (
        "class_sent_bytes_total",
        "Octets of datagrams that this end sent with packets of a class.",
    ),
    (
        "class_sent_packets_total",
        "Packets of a class that this end sent, retransmissions and error correction included.",
    ),
    (
        "class_dropped_packets_total",
        "Packets of a class that the queue dropped.",
    ),
    ("path_up", "1 if the path delivers, else 0."),
    (
        "path_rate_bits_per_second",
        "The rate at which this end may send on a path.",
    ),
    (
        "path_rtt_seconds",
        "The smoothed round-trip time, out by this path and back by the fastest one.",
    ),
    (
        "path_loss_ratio",
        "The share of the other end's datagrams on this path that did not arrive.",
    ),
    (
        "path_sent_bytes_total",
        "Octets of UDP payload sent on a path.",
    ),
    (
        "path_received_bytes_total",
        "Octets of UDP payload received on a path.",
    ),
    ("path_deaths_total", "How often a path died."),
    ("path_cap_bytes", "The data cap of a path in its period."),
    (
        "path_cap_used_bytes",
        "Octets of IP packets that a path with a cap has carried in its period.",
    ),
    (
        "path_cause",
        "1 for the known reason why a path does not deliver.",
    ),
];

/// The listening socket for Prometheus.
pub struct Metrics {
    listener: TcpListener,
    clients: Vec<TcpStream>,
    answers: Answers<TcpStream>,
}

impl Metrics {
    /// Listens at an address.
    ///
    /// # Errors
    /// If the address is in use, or does not belong to this machine.
    pub fn open(address: SocketAddr) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{address}: {}", words(&error));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            listener,
            clients: Vec::new(),
            answers: Answers::default(),
        })
    }

    /// The descriptors to wait on: to be readable, and to be writable.
    pub fn descriptors(&self) -> [Vec<BorrowedFd<'_>>; 2] {
        let clients = self.clients.iter().map(AsFd::as_fd);
        let readable = std::iter::once(self.listener.as_fd()).chain(clients);
        [readable.collect(), self.answers.descriptors().collect()]
    }

    /// Accepts new clients, and answers requests. The connection ends with the answer.
    pub fn serve(&mut self, report: impl Fn() -> Report) {
        for mut client in std::mem::take(&mut self.clients) {
            match client.read(&mut [0; 4096]) {
                Ok(length) if length > 0 => {
                    self.answers.send(client, response(&report()).into_bytes());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clients.push(client);
                }
                Ok(_) | Err(_) => {}
            }
        }
        self.answers.flush();
        while let Ok((client, _)) = self.listener.accept() {
            if client.set_nonblocking(true).is_ok() {
                if self.clients.len() == CLIENTS {
                    self.clients.remove(0);
                }
                self.clients.push(client);
            }
        }
    }
}

/// The response of HTTP with the metrics.
fn response(report: &Report) -> String {
    let body = text(report);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    head + &body
}

/// The report as metrics.
pub fn text(report: &Report) -> String {
    let mut text = Text::default();
    text.family("rejected_total", "counter");
    for (reason, count) in report.rejected.reasons() {
        text.sample("rejected_total", &[("reason", reason)], count);
    }
    text.family("dropped_total", "counter");
    for (reason, count) in report.dropped.reasons() {
        text.sample("dropped_total", &[("reason", reason)], count);
    }
    text.family("peer_dropped_total", "counter");
    for (name, peer) in &report.peers {
        for (reason, count) in peer.dropped.reasons() {
            let labels = [("peer", name.as_str()), ("reason", reason)];
            text.sample("peer_dropped_total", &labels, count);
        }
    }
    text.of_peers(report, "peer_up", "gauge", |peer| {
        u8::from(peer.state == "up").into()
    });
    text.of_peers(report, "peer_mtu_bytes", "gauge", |peer| peer.mtu.into());
    text.family("peer_carries", "gauge");
    for (name, peer) in &report.peers {
        if let (Some(group), Some(carries)) = (&peer.group, peer.carries) {
            let labels = [("peer", name.as_str()), ("group", group)];
            text.sample("peer_carries", &labels, u8::from(carries));
        }
    }
    text.of_peers(report, "sent_packets_total", "counter", |peer| {
        peer.sent_packets
    });
    text.of_peers(report, "received_packets_total", "counter", |peer| {
        peer.received_packets
    });
    text.of_peers(report, "repaired_packets_total", "counter", |peer| {
        peer.repaired_packets
    });
    text.of_peers(report, "correction_packets_total", "counter", |peer| {
        peer.correction_packets
    });
    text.of_peers(report, "rebuilt_packets_total", "counter", |peer| {
        peer.rebuilt_packets
    });
    text.of_peers(report, "reordered_packets_total", "counter", |peer| {
        peer.reordered_packets
    });
    text.of_classes(report, "class_sent_bytes_total", |class| class.sent_bytes);
    text.of_classes(report, "class_sent_packets_total", |class| {
        class.sent_packets
    });
    text.of_classes(report, "class_dropped_packets_total", |class| {
        class.dropped_packets
    });
    text.of_paths(report, "path_up", "gauge", |path| {
        Some(f64::from(u8::from(path.delivers())))
    });
    text.of_paths(report, "path_rate_bits_per_second", "gauge", |path| {
        Some(path.rate_mbit_s * 1e6)
    });
    text.of_paths(report, "path_rtt_seconds", "gauge", |path| {
        path.rtt_ms.map(|ms| ms / 1e3)
    });
    text.of_paths(report, "path_loss_ratio", "gauge", |path| Some(path.loss));
    text.of_paths(report, "path_sent_bytes_total", "counter", |path| {
        Some(path.sent_bytes as f64)
    });
    text.of_paths(report, "path_received_bytes_total", "counter", |path| {
        Some(path.received_bytes as f64)
    });
    text.of_paths(report, "path_deaths_total", "counter", |path| {
        Some(path.deaths as f64)
    });
    text.family("path_cap_bytes", "gauge");
    for (path, cap) in &report.caps {
        text.sample("path_cap_bytes", &[("path", path)], cap.cap_bytes);
    }
    text.family("path_cap_used_bytes", "gauge");
    for (path, cap) in &report.caps {
        text.sample("path_cap_used_bytes", &[("path", path)], cap.used_bytes);
    }
    text.family("peer_cause", "gauge");
    for (peer_name, peer) in &report.peers {
        if let Some(cause) = &peer.cause {
            let labels = [("peer", peer_name.as_str()), ("cause", cause)];
            text.sample("peer_cause", &labels, 1);
        }
    }
    text.family("path_cause", "gauge");
    for (peer_name, peer) in &report.peers {
        for (path_name, path) in &peer.paths {
            if let Some(cause) = &path.cause {
                let labels = [("peer", peer_name), ("path", path_name), ("cause", cause)];
                text.sample("path_cause", &labels.map(|(k, v)| (k, v.as_str())), 1);
            }
        }
    }
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str) {
        let help = HELP.iter().find(|(other, _)| *other == name);
        if let Some((_, help)) = help {
            let _ = writeln!(self.0, "# HELP anabranch_gateway_{name} {help}");
        }
        let _ = writeln!(self.0, "# TYPE anabranch_gateway_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
            .collect();
        let labels = labels.join(",");
        let _ = writeln!(self.0, "anabranch_gateway_{name}{{{labels}}} {value}");
    }

    fn of_peers(
        &mut self,
        report: &Report,
        name: &str,
        kind: &str,
        value: impl Fn(&crate::status::PeerReport) -> u64,
    ) {
        self.family(name, kind);
        for (peer_name, peer) in &report.peers {
            self.sample(name, &[("peer", peer_name)], value(peer));
        }
    }

    fn of_classes(
        &mut self,
        report: &Report,
        name: &str,
        value: impl Fn(&crate::status::ClassReport) -> u64,
    ) {
        self.family(name, "counter");
        for (peer_name, peer) in &report.peers {
            for (class_name, class) in &peer.classes {
                let labels = [("peer", peer_name.as_str()), ("class", class_name)];
                self.sample(name, &labels, value(class));
            }
        }
    }

    fn of_paths(
        &mut self,
        report: &Report,
        name: &str,
        kind: &str,
        value: impl Fn(&crate::status::PathReport) -> Option<f64>,
    ) {
        self.family(name, kind);
        for (peer_name, peer) in &report.peers {
            for (path_name, path) in &peer.paths {
                if let Some(value) = value(path) {
                    self.sample(name, &[("peer", peer_name), ("path", path_name)], value);
                }
            }
        }
    }
}

/// A label's value with the escapes of the format.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{escaped, text};
    use crate::status::{Dropped, Rejected, Report};

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn alerts_rules_and_dashboard_use_metrics_that_exist() {
        let report = Report {
            interface: String::new(),
            mtu: 0,
            protect: false,
            peers: BTreeMap::new(),
            bypass: BTreeMap::new(),
            rejected: Rejected::default(),
            dropped: Dropped::default(),
            caps: BTreeMap::new(),
        };
        let metrics = text(&report);
        let lines = metrics.lines().filter(|line| line.starts_with("# TYPE "));
        for name in lines.filter_map(|line| line.split(' ').nth(2)) {
            assert!(metrics.contains(&format!("# HELP {name} ")), "{name}");
        }
        for (text, least) in [
            (include_str!("../../../packaging/gateway-alerts.yml"), 4),
            (include_str!("../../../packaging/gateway-rules.yml"), 7),
            (
                include_str!("../../../packaging/gateway-dashboard.json"),
                15,
            ),
        ] {
            let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let names: Vec<_> = words
                .filter(|word| word.starts_with("anabranch_gateway_"))
                .collect();
            assert!(names.len() >= least);
            for name in names {
                assert!(metrics.contains(&format!("# TYPE {name} ")), "{name}");
            }
        }
    }
}
