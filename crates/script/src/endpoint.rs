//! Our TCP as a target, in virtual time. The default congestion control is `reno`, whose window can
//! be computed by hand.

mod figures;
mod switches;

use std::{collections::VecDeque, sync::Arc};

use anabranch_congestion::{self as cc};
use anabranch_core::{
    body::{Body, Octets},
    packet::Ecn,
    units::{Bytes, Duration, Instant, text::Limit},
};
use anabranch_tcp::{EcnMode, Endpoint, Outgoing, Profile, Role, Settings, State, profiles};
use anabranch_wire::{
    self as wire, Discards, Flags, IpHeader, Ports, Segment, Version,
    segment::{HEADERS, TIMESTAMPS_SIZE},
};

use crate::{
    error::choices,
    target::{Answer, OTHER_FIGURES, Request, Target},
};

/// The socket that a script creates, and the connection that it listens for or opens.
const SOCKET: i64 = 1;
/// The connection that `accept` returns.
const CONNECTION: i64 = 2;

/// Our TCP below an IP layer that discards and counts malformed packets.
#[derive(Debug)]
pub struct EndpointTarget {
    towards: (Version, Ports),
    iss: u32,
    settings: Settings,
    control: cc::Config,
    /// Octets of the largest IPv4 packet, as set.
    mtu: Option<u32>,
    /// Those of the profile's segments; `None` if a switch sets the MSS.
    default_mtu: Option<u32>,
    now: Duration,
    end: Option<Endpoint<Octets>>,
    listens: bool,
    /// The MSS that the application sets, header options included (`TCP_MAXSEG`).
    maxseg: Option<u32>,
    /// ECN is not asked for, but agreed to (`tcp_ecn = 2`).
    agrees_to_ecn: bool,
    /// Options of a connection that were set before it (see [`Target::announce`]).
    announced: Vec<(String, i64)>,
    shut: Shut,
    sent: VecDeque<(Duration, Vec<u8>)>,
    discards: Discards,
}

/// Directions that the application has shut down.
#[derive(Debug, Default)]
struct Shut {
    read: bool,
    write: bool,
}

/// A host with IPv4 addresses for documentation (RFC 5737); its numbers begin at 0.
impl Default for EndpointTarget {
    fn default() -> Self {
        let version = Version::V4 {
            source: [192, 0, 2, 1],
            destination: [198, 51, 100, 1],
            identification: 0,
            dont_fragment: true,
        };
        let ports = Ports {
            source: 40_000,
            destination: 8080,
        };
        Self::new((version, ports), 0)
    }
}

impl EndpointTarget {
    /// Creates a host at the destination of `towards` with this initial sequence number.
    ///
    /// # Panics
    /// Never: the profile exists.
    #[must_use]
    pub fn new(towards: (Version, Ports), iss: u32) -> Self {
        let (settings, mtu) = of_profile(&Profile::named("rfc").expect("it exists"));
        Self {
            towards,
            iss,
            settings,
            control: cc::Config::Reno(cc::reno::Params::default()),
            mtu: None,
            default_mtu: Some(mtu),
            now: Duration::ZERO,
            end: None,
            listens: false,
            maxseg: None,
            agrees_to_ecn: false,
            announced: Vec::new(),
            shut: Shut::default(),
            sent: VecDeque::new(),
            discards: Discards::default(),
        }
    }

    fn make(&mut self, role: Role) -> &mut Endpoint<Octets> {
        if let Some(mtu) = self.mtu.or(self.default_mtu) {
            // With IPv6, the link's MTU is assumed to be 20 octets larger.
            let options = if self.settings.timestamps {
                TIMESTAMPS_SIZE
            } else {
                0
            };
            let most = self.maxseg.unwrap_or(u32::MAX);
            self.settings.mss = mtu
                .saturating_sub(HEADERS)
                .min(most)
                .saturating_sub(options);
        }
        if self.agrees_to_ecn {
            self.settings.ecn = match role {
                Role::Passive => EcnMode::Rfc3168,
                Role::Active => EcnMode::Off,
            };
        }
        let settings = Arc::new(self.settings.clone());
        let mut end = Endpoint::controlled_by(&settings, &self.control, role, self.iss);
        if matches!(self.towards.0, Version::V6 { .. }) {
            end = end.over_ipv6();
        }
        end.set_auto_read(false);
        self.end.insert(end)
    }

    /// Collects the packets that the endpoint sends.
    fn flush(&mut self) {
        while let Some(out) = self
            .end
            .as_mut()
            .and_then(|end| end.poll_transmit(instant(self.now)))
        {
            self.send(&out);
        }
    }

    fn send(&mut self, out: &Outgoing<Octets>) {
        let (version, ports) = self.towards;
        let [source, destination] = version.addresses();
        let ip = IpHeader {
            version: Version::between(destination, source).expect("both are of one version"),
            dscp: 0,
            ecn: out.ecn,
            hop_limit: 64,
        };
        let mut packet = Vec::new();
        wire::encode(&ip, ports.swapped(), &out.segment, &mut packet)
            .expect("the endpoint's segments fit");
        self.sent.push_back((self.now, packet));
    }

    fn set_option(&mut self, name: &str, value: i64) -> Result<Answer, String> {
        let done = Ok(Answer::Value(0));
        // Without effect on the packets of one connection.
        if matches!(
            name,
            "SO_REUSEADDR" | "SO_PRIORITY" | "IP_MTU_DISCOVER" | "IP_RECVERR" | "IP_TOS"
        ) {
            return done;
        }
        let announced = self
            .announced
            .iter()
            .any(|(known, set)| known == name && *set == value);
        if announced {
            return done;
        }
        if self.end.is_some() {
            return Err(format!("{name} must be set before listen or connect"));
        }
        let bytes = u64::try_from(value).map_err(|_| format!("{name}: {value} is negative"))?;
        match name {
            "SO_RCVBUF" => {
                // A buffer size set by the application disables autotuning (socket(7), tcp(7)).
                self.settings.receive_window = Limit::Bytes(Bytes::new(bytes));
                self.settings.receive_autotuning = false;
            }
            "SO_SNDBUF" => {
                // Linux doubles it for its own memory, which its profile counts (socket(7)).
                let is_memory = self.settings.send_autotuning_start.get() > 0;
                let bytes = if is_memory { 2 * bytes } else { bytes };
                self.settings.send_buffer = Limit::Bytes(Bytes::new(bytes));
                self.settings.send_autotuning_start = Bytes::ZERO;
            }
            "TCP_NODELAY" => self.settings.nagle = value == 0,
            "TCP_MAXSEG" => match u32::try_from(value) {
                Ok(mss) if (88..=65_535).contains(&mss) => self.maxseg = Some(mss),
                _ => return Ok(Answer::Error("EINVAL")),
            },
            _ => {
                let known = [
                    "SO_REUSEADDR",
                    "SO_RCVBUF",
                    "SO_SNDBUF",
                    "TCP_NODELAY",
                    "TCP_MAXSEG",
                ];
                return Err(format!(
                    "there is no socket option {name} here; {}",
                    choices(name, &known)
                ));
            }
        }
        done
    }

    fn get_option(&self, name: &str) -> Result<Answer, String> {
        let errors = [
            ("ECONNRESET", 104),
            ("ETIMEDOUT", 110),
            ("ECONNREFUSED", 111),
            ("EPIPE", 32),
        ];
        Ok(Answer::Value(match name {
            "SO_ERROR" => {
                let broken = self.end.as_ref().and_then(broken);
                let found = errors.iter().find(|(name, _)| Some(*name) == broken);
                found.map_or(0, |(_, number)| *number)
            }
            "TCP_MAXSEG" => match (&self.end, self.maxseg) {
                (Some(end), _) if end.state().is_synchronized() => i64::from(end.smss()),
                (_, maxseg) => i64::from(maxseg.unwrap_or(536)),
            },
            "TCP_NODELAY" => i64::from(!self.settings.nagle),
            _ => {
                let known = ["SO_ERROR", "TCP_MAXSEG", "TCP_NODELAY"];
                return Err(format!(
                    "there is no socket option {name} here; {}",
                    choices(name, &known)
                ));
            }
        }))
    }

    fn connect(&mut self) -> Answer {
        let now = instant(self.now);
        match &self.end {
            None => {
                self.make(Role::Active).open(now);
                self.flush();
                Answer::Error("EINPROGRESS")
            }
            Some(end) if end.state().is_synchronized() => Answer::Value(0),
            Some(end) => Answer::Error(broken(end).unwrap_or("EALREADY")),
        }
    }
}

/// The settings of a socket of this stack, and the MTU of its device: that of the profile's segments,
/// which is mostly 1,500 octets. Nagle's algorithm is on (RFC 9293 §3.7.4), as in a kernel's socket
/// without `TCP_NODELAY`.
fn of_profile(profile: &Profile) -> (Settings, u32) {
    let mut settings = profile.settings.clone();
    settings.nagle = true;
    let mtu = u32::from(settings.mss_option()) + HEADERS;
    (settings, mtu)
}

/// The error that a read or write returns after an abnormal end; `None` otherwise.
fn broken(end: &Endpoint<Octets>) -> Option<&'static str> {
    use anabranch_tcp::Ending;
    match end.ending() {
        Some(Ending::Reset) => Some("ECONNRESET"),
        Some(Ending::Refused) => Some("ECONNREFUSED"),
        Some(Ending::TimedOut) => Some("ETIMEDOUT"),
        Some(Ending::Aborted | Ending::Abandoned) => Some("EPIPE"),
        None => None,
    }
}

fn read(end: &mut Endpoint<Octets>, now: Instant, most: u32) -> Answer {
    let octets = end.read(now, u64::from(most));
    if !octets.is_empty() {
        return Answer::Octets(octets.0);
    }
    let over = matches!(
        end.state(),
        State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed
    );
    match broken(end) {
        Some(error) => Answer::Error(error),
        None if over => Answer::Octets(Vec::new()),
        None => Answer::Error("EAGAIN"),
    }
}

fn write(end: &mut Endpoint<Octets>, octets: &[u8]) -> Answer {
    if let Some(error) = broken(end) {
        return Answer::Error(error);
    }
    match end.write(Octets(octets.to_vec())) {
        0 if !octets.is_empty() => Answer::Error("EAGAIN"),
        taken => Answer::Value(i64::try_from(taken).expect("as many as given")),
    }
}

impl Target for EndpointTarget {
    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "stack" => {
                let profile = Profile::named(value).ok_or_else(|| {
                    let all = profiles();
                    let known: Vec<&str> = all.iter().map(|profile| profile.meta.name).collect();
                    format!("there is no stack `{value}`; {}", choices(value, &known))
                })?;
                let (settings, mtu) = of_profile(&profile);
                (self.settings, self.default_mtu) = (settings, Some(mtu));
                Ok(())
            }
            "mtu" => match value.parse() {
                Ok(mtu) if (116..=65_535).contains(&mtu) => {
                    self.mtu = Some(mtu);
                    Ok(())
                }
                _ => Err(format!(
                    "`{value}`: expected octets of a packet, 116 to 65535"
                )),
            },
            "cc" => {
                self.control = switches::control(value)?;
                Ok(())
            }
            _ => {
                let switch = name
                    .strip_prefix("transport.")
                    .ok_or_else(|| format!("the option `--{name}` means nothing to this target"))?;
                self.settings = switches::turned(&self.settings, switch, value)?;
                if switch == "mss" {
                    self.default_mtu = None;
                }
                Ok(())
            }
        }
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.end.is_some() {
            // The connection has its own copy of the settings.
            return Err(format!("{name} must be set before listen or connect"));
        }
        match (name, value) {
            ("net.ipv4.tcp_congestion_control", _) => self.control = switches::control(value)?,
            ("net.ipv4.tcp_ecn", "2") => self.agrees_to_ecn = true,
            _ => {
                self.agrees_to_ecn &= name != "net.ipv4.tcp_ecn";
                switches::sysctl(&mut self.settings, name, value)?;
            }
        }
        Ok(())
    }

    fn announce(&mut self, name: &str, value: i64) {
        if matches!(name, "SO_SNDBUF" | "TCP_NODELAY") && self.set_option(name, value).is_ok() {
            self.announced.push((name.to_owned(), value));
        }
    }

    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String> {
        self.now = now;
        let answer = match request {
            Request::Socket => Answer::Value(SOCKET),
            Request::Bind(_) => Answer::Value(0),
            Request::SetOption(_, name, value) => self.set_option(name, value)?,
            Request::Listen(_) => {
                self.listens = true;
                self.make(Role::Passive);
                Answer::Value(0)
            }
            Request::Connect(_) => self.connect(),
            Request::Accept(_) => match &self.end {
                Some(end) if self.listens && end.state().is_synchronized() => {
                    Answer::Value(CONNECTION)
                }
                _ => Answer::Error("EAGAIN"),
            },
            Request::GetOption(_, name) => self.get_option(name)?,
            Request::Close(SOCKET) if self.listens => Answer::Value(0),
            Request::Read(..)
            | Request::Write(..)
            | Request::Close(_)
            | Request::ShutdownWrite(_)
            | Request::ShutdownRead(_)
            | Request::ShutdownBoth(_) => match (&mut self.end, request) {
                (Some(end), Request::Read(_, most)) => match read(end, instant(now), most) {
                    Answer::Error("EAGAIN") if self.shut.read => Answer::Octets(Vec::new()),
                    other => other,
                },
                (Some(_), Request::Write(..)) if self.shut.write => Answer::Error("EPIPE"),
                (Some(end), Request::Write(_, octets)) => write(end, octets),
                (Some(end), Request::Close(_)) => {
                    // Unread data is lost, and the peer has to know (RFC 1122
                    // §4.2.2.13, RFC 2525 §2.17).
                    if end.readable() > 0 {
                        end.abort(instant(now));
                    } else {
                        self.shut.write = true;
                        end.abandon(instant(now));
                    }
                    Answer::Value(0)
                }
                (Some(end), request) => {
                    self.shut.read |= !matches!(request, Request::ShutdownWrite(_));
                    if !matches!(request, Request::ShutdownRead(_)) {
                        self.shut.write = true;
                        end.close();
                    }
                    Answer::Value(0)
                }
                (None, _) => Answer::Error("ENOTCONN"),
            },
        };
        self.flush();
        Ok(answer)
    }

    fn towards(&self) -> (Version, Ports) {
        self.towards
    }

    fn inject(&mut self, now: Duration, packet: &[u8]) {
        self.now = now;
        let decoded = match wire::decode(packet) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.discards.count(error);
                return;
            }
        };
        match &mut self.end {
            Some(end) => {
                end.on_segment(instant(now), &decoded.segment, decoded.ip.ecn);
                self.flush();
            }
            None => self.refuse(&decoded.segment),
        }
    }

    fn advance(&mut self, until: Duration) -> Result<(), String> {
        while self.sent.is_empty() {
            let due = self.end.as_ref().map_or(Instant::NEVER, Endpoint::deadline);
            if due > instant(until) {
                self.now = self.now.max(until);
                break;
            }
            self.now = self.now.max(due - Instant::START);
            if let Some(end) = &mut self.end {
                end.on_deadline(instant(self.now));
            }
            self.flush();
        }
        Ok(())
    }

    fn take_sent(&mut self) -> Option<(Duration, Vec<u8>)> {
        self.sent.pop_front()
    }

    fn figure(&self, name: &str) -> Option<i64> {
        figures::of(self.end.as_ref(), &self.discards, instant(self.now), name)
    }

    fn shows(&self, name: &str) -> bool {
        !OTHER_FIGURES.contains(&name) && !figures::LACKING.contains(&name)
    }

    fn figures(&self) -> &'static [&'static str] {
        &figures::ALL
    }
}

impl EndpointTarget {
    /// Answers a segment to a closed port (RFC 9293 §3.10.7.1).
    fn refuse(&mut self, segment: &Segment<Octets>) {
        let settings = Arc::new(self.settings.clone());
        let mut closed = Endpoint::controlled_by(&settings, &self.control, Role::Active, self.iss);
        closed.on_segment(instant(self.now), segment, Ecn::NotEct);
        while let Some(out) = closed.poll_transmit(instant(self.now)) {
            debug_assert!(out.segment.flags.any(Flags::RST));
            self.send(&out);
        }
    }
}

fn instant(since_start: Duration) -> Instant {
    Instant::START + since_start
}
