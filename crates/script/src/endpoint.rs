//! Our TCP as a target, in virtual time. The default congestion control is `reno`, whose window can
//! be computed by hand.

mod calls;
mod epoll;
mod fast_open;
mod figures;
mod socket;
mod switches;

use core::net::Ipv4Addr;
use std::{collections::VecDeque, sync::Arc};

use anabranch_congestion::{self as cc};
use anabranch_core::{
    body::Octets,
    packet::Ecn,
    units::{Duration, Instant},
};
use anabranch_tcp::{Endpoint, Outgoing, Profile, Role, Settings, State, profiles};
use anabranch_wire::{
    self as wire, Discards, Flags, IpHeader, IpPacket, Ports, Segment, Version, segment::HEADERS,
};

use self::{
    epoll::Epoll,
    socket::{HostSettings, Socket},
};
use crate::{
    error::choices,
    target::{Answer, OTHER_FIGURES, Request, Send, Target},
};

/// Settings that take effect with the SYN of a connection, and do not change an open one.
const OF_HANDSHAKES: [&str; 6] = [
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_ecn_option",
    "net.ipv4.tcp_syn_retries",
];

/// The protocol number of ICMP, and its type "destination unreachable".
const ICMP: u8 = 1;
const UNREACHABLE: u8 = 3;

/// A descriptor of the host.
#[derive(Debug)]
enum Descriptor {
    Socket(Box<Socket>),
    Epoll(Epoll),
}

/// Our TCP below an IP layer that discards and counts malformed packets.
#[derive(Debug)]
pub struct EndpointTarget {
    /// Addresses and ports of packets to the first connection.
    towards: (Version, Ports),
    host: HostSettings,
    /// Octets of the largest IPv4 packet, as set.
    mtu: Option<u32>,
    /// MTU of the profile's segments; `None` if a switch sets the MSS.
    default_mtu: Option<u32>,
    now: Duration,
    /// By their handles.
    descriptors: Vec<Descriptor>,
    /// The socket of the connection that packets and figures are about.
    current: Option<usize>,
    /// Number of connections that have begun.
    connections: u64,
    fast_open: fast_open::Host,
    /// Options of a connection that were set before it (see [`Target::announce`]).
    announced: Vec<(String, i64)>,
    sent: VecDeque<(Duration, Vec<u8>)>,
    discards: Discards,
}

/// A host with IPv4 addresses for documentation (RFC 5737); its numbers begin at 0.
impl Default for EndpointTarget {
    fn default() -> Self {
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
            host: HostSettings {
                settings,
                control: cc::Config::Reno(cc::reno::Params::default()),
                mtu: Some(mtu),
                agrees_to_ecn: false,
                notsent_lowat: u64::MAX,
                is_v6: matches!(towards.0, Version::V6 { .. }),
                iss,
            },
            mtu: None,
            default_mtu: Some(mtu),
            now: Duration::ZERO,
            descriptors: Vec::new(),
            current: None,
            connections: 0,
            fast_open: fast_open::Host::default(),
            announced: Vec::new(),
            sent: VecDeque::new(),
            discards: Discards::default(),
        }
    }

    /// The settings of a connection made now.
    fn host(&self) -> HostSettings {
        HostSettings {
            mtu: self.mtu.or(self.default_mtu),
            ..self.host.clone()
        }
    }

    fn place(&self, handle: i64) -> Result<usize, &'static str> {
        let place = usize::try_from(handle).map_err(|_| "EBADF")?;
        match self.descriptors.get(place) {
            Some(Descriptor::Socket(socket)) if socket.is_closed => Err("EBADF"),
            Some(_) => Ok(place),
            None => Err("EBADF"),
        }
    }

    /// The socket of a handle.
    fn socket(&mut self, handle: i64) -> Result<&mut Socket, &'static str> {
        let place = self.place(handle)?;
        self.at(place).ok_or("ENOTSOCK")
    }

    fn at(&mut self, place: usize) -> Option<&mut Socket> {
        match self.descriptors.get_mut(place) {
            Some(Descriptor::Socket(socket)) => Some(socket),
            _ => None,
        }
    }

    fn epoll(&mut self, handle: i64) -> Result<&mut Epoll, &'static str> {
        let place = self.place(handle)?;
        match &mut self.descriptors[place] {
            Descriptor::Epoll(epoll) => Ok(epoll),
            Descriptor::Socket(_) => Err("EINVAL"),
        }
    }

    fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.descriptors
            .iter()
            .filter_map(|descriptor| match descriptor {
                Descriptor::Socket(socket) => Some(&**socket),
                Descriptor::Epoll(_) => None,
            })
    }

    fn add(&mut self, descriptor: Descriptor) -> Answer {
        self.descriptors.push(descriptor);
        Answer::Value(i64::try_from(self.descriptors.len() - 1).expect("few descriptors"))
    }

    /// The connection of this socket begins. A port distinguishes it from earlier ones: the port of the peer, if it
    /// opens the connection, or that of the host.
    fn begin(&mut self, place: usize, listens: bool) {
        let step = u16::try_from(self.connections % 1000).expect("below 1000");
        self.connections += 1;
        let mut ports = self.towards.1;
        if listens {
            ports.source = ports.source.wrapping_add(step);
        } else {
            ports.destination = ports.destination.wrapping_add(step);
        }
        self.current = Some(place);
        if let Some(socket) = self.at(place) {
            socket.ports = ports;
            socket.listens = listens;
        }
    }

    fn current(&self) -> Option<&Socket> {
        match self.descriptors.get(self.current?) {
            Some(Descriptor::Socket(socket)) => Some(socket),
            _ => None,
        }
    }

    fn end(&self) -> Option<&Endpoint<Octets>> {
        self.current()?.end.as_ref()
    }

    /// Lets the connections of a listener begin with data.
    fn permit_fast_open(&mut self, place: usize) {
        let source = self.towards.0.addresses();
        let addresses = source.map(|address| match address {
            core::net::IpAddr::V4(v4) => v4.octets(),
            core::net::IpAddr::V6(_) => [0; 4],
        });
        let Some(Descriptor::Socket(socket)) = self.descriptors.get_mut(place) else {
            return;
        };
        let (queue, own) = socket.fast_open_listener();
        let server = self.fast_open.server(queue > 0, own, addresses);
        if let Some(end) = socket
            .end
            .as_mut()
            .filter(|end| end.state() == State::Listen)
        {
            end.accept_fast_open(server);
        }
    }

    /// Collects the packets that a connection sends.
    fn flush(&mut self, place: usize) {
        let now = instant(self.now);
        let (version, _) = self.towards;
        let Some(Descriptor::Socket(socket)) = self.descriptors.get_mut(place) else {
            return;
        };
        let ports = socket.ports;
        if let Some(end) = &mut socket.end {
            send_all(end, now, (version, ports), self.now, &mut self.sent);
        }
    }

    fn flush_all(&mut self) {
        for place in 0..self.descriptors.len() {
            self.flush(place);
        }
    }

    /// Updates a socket after an event, learns cookies, and wakes sets that watch it.
    fn after_event(&mut self, place: usize, before: Option<socket::Seen>) {
        let Some(socket) = self.at(place) else {
            return;
        };
        let events = socket.update(before);
        if let Some((outcome, sent)) = socket.take_learned() {
            self.fast_open.learn(outcome, sent);
        }
        if events != 0 {
            self.wake(place, events);
        }
    }

    fn wake(&mut self, place: usize, events: u32) {
        let handle = i64::try_from(place).expect("few descriptors");
        for descriptor in &mut self.descriptors {
            if let Descriptor::Epoll(epoll) = descriptor {
                epoll.wake(handle, events);
            }
        }
    }

    /// The socket that receives packets with these ports: an open connection, else a listener.
    fn receiver(&self, ports: Ports) -> Option<usize> {
        let is_of = |descriptor: &Descriptor, open: bool| match descriptor {
            Descriptor::Socket(socket) => {
                let state = socket.state();
                let is_open = !matches!(state, None | Some(State::Closed | State::Listen));
                socket.ports == ports && state.is_some() && (is_open || !open)
            }
            Descriptor::Epoll(_) => false,
        };
        let position = |open| self.descriptors.iter().rposition(|one| is_of(one, open));
        position(true).or_else(|| position(false))
    }

    /// Processes an ICMP error (RFC 1122 §4.2.3.9, RFC 5461): "fragmentation needed" lowers the path
    /// MTU, and another one ends a connection that is being opened.
    fn on_icmp(&mut self, packet: &[u8]) {
        let Ok(ip) = IpPacket::read(packet) else {
            return;
        };
        let Some((header, quoted)) = ip.payload().and_then(|icmp| icmp.split_at_checked(8)) else {
            return;
        };
        let (Ok(quoted), UNREACHABLE) = (IpPacket::read(quoted), header[0]) else {
            return;
        };
        let Some(tcp) = quoted.payload().filter(|tcp| tcp.len() >= 8) else {
            return;
        };
        let number = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let ports = Ports {
            source: number(2),
            destination: number(0),
        };
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let now = instant(self.now);
        let Some(place) = self.receiver(ports) else {
            return;
        };
        let before = self.at(place).and_then(|socket| socket.seen());
        let Some(socket) = self.at(place) else {
            return;
        };
        let Some(end) = &mut socket.end else {
            return;
        };
        if header[1] == 4 {
            let mtu = u32::from(u16::from_be_bytes([header[6], header[7]]));
            end.on_packet_too_big(now, seq, mtu);
        } else if end.is_outstanding(seq) {
            let is_opening = end.state() == State::SynSent || end.is_early();
            if is_opening {
                let error = if header[1] == 0 {
                    "ENETUNREACH"
                } else {
                    "EHOSTUNREACH"
                };
                socket.end_unreachable(now, error);
            } else if end.state() == State::SynReceived {
                end.drop_request();
            }
        }
        self.after_event(place, before);
        self.flush(place);
    }
}

/// Collects the packets of a connection.
fn send_all(
    end: &mut Endpoint<Octets>,
    now: Instant,
    towards: (Version, Ports),
    since_start: Duration,
    sent: &mut VecDeque<(Duration, Vec<u8>)>,
) {
    while let Some(out) = end.poll_transmit(now) {
        sent.push_back((since_start, packet_of(&out, towards)));
    }
}

fn packet_of(out: &Outgoing<Octets>, (version, ports): (Version, Ports)) -> Vec<u8> {
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
    packet
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
                (self.host.settings, self.default_mtu) = (settings, Some(mtu));
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
                self.host.control = switches::control(value)?;
                Ok(())
            }
            "local_ip" | "remote_ip" => {
                let given: Ipv4Addr = value
                    .parse()
                    .map_err(|_| format!("`{value}`: expected an IPv4 address"))?;
                if let Version::V4 {
                    source,
                    destination,
                    ..
                } = &mut self.towards.0
                {
                    let place = if name == "local_ip" {
                        destination
                    } else {
                        source
                    };
                    *place = given.octets();
                }
                Ok(())
            }
            _ => {
                let switch = name
                    .strip_prefix("transport.")
                    .ok_or_else(|| format!("the option `--{name}` means nothing to this target"))?;
                self.host.settings = switches::turned(&self.host.settings, switch, value)?;
                if switch == "mss" {
                    self.default_mtu = None;
                }
                Ok(())
            }
        }
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.fast_open.sysctl(name, value)? {
            if let Some(place) = self.current {
                self.permit_fast_open(place);
            }
            return Ok(());
        }
        // An open connection has its own copy of the settings.
        let is_late = self.sockets().any(|socket| match socket.state() {
            None | Some(State::Closed) => false,
            Some(State::Listen) => !socket.is_closed,
            Some(state) => {
                let is_settled = state.is_synchronized() && OF_HANDSHAKES.contains(&name);
                !socket.is_closed && !is_settled
            }
        });
        if is_late {
            return Err(format!("{name} must be set before listen or connect"));
        }
        match (name, value) {
            ("net.ipv4.tcp_congestion_control", _) => self.host.control = switches::control(value)?,
            ("net.ipv4.tcp_ecn", "2") => self.host.agrees_to_ecn = true,
            ("net.ipv4.tcp_notsent_lowat", _) => {
                let value = value.strip_prefix("-1").map_or(value, |_| "4294967295");
                let octets: u64 = value
                    .parse()
                    .map_err(|_| format!("{name}={value}: expected octets"))?;
                let is_off = octets >= u64::from(u32::MAX);
                self.host.notsent_lowat = if is_off { u64::MAX } else { octets };
            }
            _ => {
                self.host.agrees_to_ecn &= name != "net.ipv4.tcp_ecn";
                switches::sysctl(&mut self.host.settings, name, value)?;
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        switches::is_known(name)
    }

    fn announce(&mut self, name: &str, value: i64) {
        if matches!(name, "SO_SNDBUF" | "TCP_NODELAY")
            && !self.announced.iter().any(|(known, _)| known == name)
        {
            self.announced.push((name.to_owned(), value));
        }
    }

    fn forget_cookies(&mut self) {
        self.fast_open.forget();
    }

    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String> {
        self.now = now;
        let place = match request {
            Request::Send(Send { handle, .. }) | Request::Close(handle) => self.place(handle).ok(),
            _ => None,
        };
        let answer = self.carry_out(request)?;
        match place {
            Some(place) => self.flush(place),
            None => self.flush_all(),
        }
        Ok(answer.unwrap_or_else(Answer::Error))
    }

    fn connection(&self) -> u64 {
        self.connections
    }

    fn towards(&self) -> (Version, Ports) {
        let ports = self.current().map_or(self.towards.1, |socket| socket.ports);
        (self.towards.0, ports)
    }

    fn inject(&mut self, now: Duration, packet: &[u8]) {
        self.now = now;
        if IpPacket::read(packet).is_ok_and(|ip| ip.protocol() == ICMP) {
            self.on_icmp(packet);
            return;
        }
        let decoded = match wire::decode(packet) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.discards.count(error);
                return;
            }
        };
        let place = self.receiver(decoded.ports);
        let Some(place) = place else {
            self.refuse(&decoded.segment, decoded.ports);
            return;
        };
        let Some(socket) = self.at(place) else {
            return;
        };
        let before = socket.seen();
        if let Some(end) = &mut socket.end {
            end.on_segment(instant(now), &decoded.segment, decoded.ip.ecn);
        }
        let is_open = socket.state().is_some_and(State::is_synchronized);
        // A writer that waits for the connection writes before anything is sent.
        if !(socket.writer_waits && is_open) {
            self.flush(place);
        }
        self.after_event(place, before);
    }

    fn advance(&mut self, until: Duration) -> Result<(), String> {
        self.flush_all();
        while self.sent.is_empty() {
            let ends = self.sockets().filter_map(|socket| socket.end.as_ref());
            let due = ends.map(Endpoint::deadline).min().unwrap_or(Instant::NEVER);
            if due > instant(until) {
                self.now = self.now.max(until);
                break;
            }
            self.now = self.now.max(due - Instant::START);
            let now = instant(self.now);
            for place in 0..self.descriptors.len() {
                let Some(socket) = self.at(place) else {
                    continue;
                };
                let before = socket.seen();
                match &mut socket.end {
                    Some(end) if end.deadline() <= now => end.on_deadline(now),
                    _ => continue,
                }
                self.after_event(place, before);
                self.flush(place);
            }
        }
        Ok(())
    }

    fn take_sent(&mut self) -> Option<(Duration, Vec<u8>)> {
        self.sent.pop_front()
    }

    fn figure(&self, name: &str) -> Option<i64> {
        figures::of(self.end(), &self.discards, instant(self.now), name)
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
    fn refuse(&mut self, segment: &Segment<Octets>, ports: Ports) {
        let host = self.host();
        let settings = Arc::new(host.settings);
        let mut closed = Endpoint::controlled_by(&settings, &host.control, Role::Active, host.iss);
        closed.on_segment(instant(self.now), segment, Ecn::NotEct);
        while let Some(out) = closed.poll_transmit(instant(self.now)) {
            debug_assert!(out.segment.flags.any(Flags::RST));
            let packet = packet_of(&out, (self.towards.0, ports));
            self.sent.push_back((self.now, packet));
        }
    }
}

fn instant(since_start: Duration) -> Instant {
    Instant::START + since_start
}
