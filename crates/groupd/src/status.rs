//! The status socket: requests to a running daemon, and reports of its state.

use std::{
    fmt::Write as _,
    fs,
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    time::Duration,
};

use anabranch_core::system::words;
use serde::{Deserialize, Serialize};

use crate::{
    core::{energy::Seconds, members::Counts},
    failure::Failure,
    state,
};

/// The longest wait for a client or for the daemon.
const PATIENCE: Duration = Duration::from_secs(2);

/// Request to a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Report the state.
    Status,
    /// Bring all members back, and end.
    Release,
}

impl Request {
    const fn octet(self) -> u8 {
        match self {
            Self::Status => b's',
            Self::Release => b'r',
        }
    }

    const fn command(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Release => "release",
        }
    }
}

/// State of a daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub bond: String,
    pub method: String,
    pub uptime_s: f64,
    pub member_rate_bit_s: u64,
    /// Number of members that the controller requests.
    pub wanted: usize,
    /// Number of members that carry traffic.
    pub working: usize,
    pub arrived_bytes: u64,
    pub energy_joules: f64,
    /// The energy if no member had slept.
    pub energy_without_control_joules: f64,
    pub member_seconds_off: f64,
    pub changes: Counts,
    pub members: Vec<MemberReport>,
}

/// State of a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    pub name: String,
    pub phase: String,
    pub works: bool,
    pub seconds: Seconds,
}

impl Report {
    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let saved = share(
            self.energy_without_control_joules - self.energy_joules,
            self.energy_without_control_joules,
        );
        let mut text = format!(
            "{}: {} of {} members carry traffic, to be on: {} ({})\n",
            self.bond,
            self.working,
            self.members.len(),
            self.wanted,
            self.method
        );
        let _ = writeln!(
            text,
            "  up {:.0} s; {:.1} J at the ports of this end, {saved:.1} % saved; {:.1} s of members asleep",
            self.uptime_s, self.energy_joules, self.member_seconds_off
        );
        let counts = &self.changes;
        let _ = writeln!(
            text,
            "  {} taken out ({} without an answer, {} to a shorter queue), {} brought back, {} emergencies",
            counts.taken_out,
            counts.unanswered,
            counts.unordered,
            counts.brought_back,
            counts.emergencies
        );
        for member in &self.members {
            let Seconds {
                active,
                idle,
                sleeping,
                waking,
            } = member.seconds;
            let _ = writeln!(
                text,
                "  {:<12} {:<10} sending {active:.1} s, idle {idle:.1} s, asleep {sleeping:.1} s, waking {waking:.1} s",
                member.name, member.phase
            );
        }
        text
    }

    /// The report in the text format of Prometheus.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let bond = label(&self.bond);
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP anabranch_group_{name} {help}");
            let _ = writeln!(text, "# TYPE anabranch_group_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(
                    text,
                    "anabranch_group_{name}{{bond=\"{bond}\"{labels}}} {value}"
                );
            }
        };
        let one = |value: f64| [(String::new(), value)];
        let count = |value: u64| one(value as f64);
        let changes = &self.changes;
        metric(
            "wanted_members",
            "gauge",
            "Members that the controller requests.",
            &count(self.wanted as u64),
        );
        metric(
            "working_members",
            "gauge",
            "Members that carry traffic.",
            &count(self.working as u64),
        );
        metric(
            "energy_joules_total",
            "counter",
            "Energy of this end's ports by the power model.",
            &one(self.energy_joules),
        );
        metric(
            "energy_without_control_joules_total",
            "counter",
            "Energy of this end's ports if none had slept.",
            &one(self.energy_without_control_joules),
        );
        metric(
            "arrived_bytes_total",
            "counter",
            "Bytes that arrived in front of the members.",
            &count(self.arrived_bytes),
        );
        metric(
            "taken_out_total",
            "counter",
            "Members taken out.",
            &count(changes.taken_out),
        );
        metric(
            "brought_back_total",
            "counter",
            "Members brought back.",
            &count(changes.brought_back),
        );
        metric(
            "unanswered_total",
            "counter",
            "Members taken out without the partner's answer.",
            &count(changes.unanswered),
        );
        metric(
            "unordered_total",
            "counter",
            "Members whose frames moved to a shorter queue.",
            &count(changes.unordered),
        );
        metric(
            "emergencies_total",
            "counter",
            "Times at which no member worked.",
            &count(changes.emergencies),
        );
        let states: Vec<(String, f64)> = self.members.iter().flat_map(seconds).collect();
        metric(
            "member_seconds_total",
            "counter",
            "Time of a member's port in a state.",
            &states,
        );
        text
    }
}

fn seconds(member: &MemberReport) -> [(String, f64); 4] {
    let name = label(&member.name);
    let labels = |state: &str| format!(",member=\"{name}\",state=\"{state}\"");
    [
        (labels("active"), member.seconds.active),
        (labels("idle"), member.seconds.idle),
        (labels("sleeping"), member.seconds.sleeping),
        (labels("waking"), member.seconds.waking),
    ]
}

/// A label's value (Prometheus' text format).
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole * 100.0
    } else {
        0.0
    }
}

/// Opens the socket, for its owner alone.
///
/// # Errors
/// If the system refuses.
pub fn listen(path: &Path) -> Result<UnixListener, String> {
    let failed = |error| format!("{}: {}", path.display(), words(&error));
    // The socket of a daemon that was killed.
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(failed(error));
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Answers a client, which is given little time: it stops the daemon's readings meanwhile.
pub fn answer(report: &Report, mut stream: UnixStream) -> Request {
    let patience = Some(Duration::from_millis(20));
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(patience);
    let _ = stream.set_write_timeout(patience);
    let mut octet = [0];
    if stream.read_exact(&mut octet).is_err() {
        return Request::Status;
    }
    let report = serde_json::to_string(report).unwrap_or_default();
    let _ = stream.write_all(report.as_bytes());
    if octet[0] == Request::Release.octet() {
        Request::Release
    } else {
        Request::Status
    }
}

/// Sends a request to the daemon of a bond. `None` if there is none.
///
/// # Errors
/// The daemon does not answer, or the system refuses.
pub fn ask(directory: &Path, bond: &str, request: Request) -> Result<Option<Report>, Failure> {
    let path = state::socket(directory, bond);
    let failed =
        |error: std::io::Error| Failure::System(format!("{}: {}", path.display(), words(&error)));
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(Failure::Input(format!(
                "{} may be used by root only: type `sudo anabranch-group {} {bond}`",
                path.display(),
                request.command()
            )));
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(Failure::Input(format!(
                "--state {}: this is not a directory; expected that of `control`, by default {}",
                directory.display(),
                state::DIRECTORY
            )));
        }
        Err(error) => return Err(failed(error)),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.write_all(&[request.octet()]).map_err(failed)?;
    let _ = stream.shutdown(Shutdown::Write);
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(failed)?;
    let report = serde_json::from_str(&text);
    report
        .map(Some)
        .map_err(|error| Failure::System(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::{MemberReport, Report};
    use crate::core::{energy::Seconds, members::Counts};

    fn report() -> Report {
        Report {
            bond: "bond0".to_owned(),
            method: "peak-percentile".to_owned(),
            uptime_s: 60.0,
            member_rate_bit_s: 100_000_000,
            wanted: 1,
            working: 1,
            arrived_bytes: 1_000,
            energy_joules: 45.0,
            energy_without_control_joules: 60.0,
            member_seconds_off: 30.0,
            changes: Counts::default(),
            members: vec![MemberReport {
                name: "eth\"0".to_owned(),
                phase: "on".to_owned(),
                works: true,
                seconds: Seconds::default(),
            }],
        }
    }

    #[test]
    fn the_text_begins_with_the_number_of_members() {
        let text = report().text();
        assert!(
            text.starts_with("bond0: 1 of 1 members carry traffic, to be on: 1"),
            "{text}"
        );
        assert!(text.contains("25.0 % saved"), "{text}");
    }

    #[test]
    fn labels_are_escaped() {
        let text = report().prometheus();
        assert!(
            text.contains("member=\"eth\\\"0\",state=\"idle\"} 0"),
            "{text}"
        );
        for line in text.lines() {
            assert!(
                line.starts_with('#') || line.starts_with("anabranch_group_"),
                "{line}"
            );
        }
    }
}
