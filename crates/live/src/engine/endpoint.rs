//! An end of a flow with our own TCP: the simulator's endpoint, whose segments travel as real
//! packets to a kernel. It verifies both checksums of each packet that it receives.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anabranch_core::{
    body::{Body, Octets},
    packet::{Direction, FlowId},
    rng::Stream as Draws,
    units::{Duration, Instant},
};
use anabranch_engine::summary::Named;
use anabranch_path::host::{Arrived, Departing, Host, Refused};
use anabranch_scenario::{Family, Resolved, workload::Config};
use anabranch_tcp::{Ending, Endpoint, Refusal, Role, State};
use anabranch_wire::{
    self as wire, Discards, Flags, IpHeader, Options, Ports, Segment, Transport, Version,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    apps::{
        application::Outcome,
        stage::{Informed, Side},
        stream::{Check, Stream, Wrong},
    },
    engine::audit::Recorder,
    kernel::{address::address_of, sys::tcp_info::TcpInfo},
    plan::{
        devices,
        directory::Directory,
        frame::{self, Frame},
        settings::connects_back,
    },
};

/// Octets per write or read.
const CHUNK: u32 = 32 << 10;
/// Difference between the lengths of the IPv6 and IPv4 headers, by which the kernel reduces its
/// segments too.
const LONGER_HEADER: u32 = 20;

/// A connection of our own TCP and its application. The engine drives it; the sampler reads its
/// state.
#[derive(Debug, Clone)]
pub struct Own(Arc<Mutex<Connection>>);

impl Own {
    /// The ends of each flow that use our own TCP.
    pub fn all(resolved: &Resolved) -> Vec<[Option<Self>; 2]> {
        (0..resolved.flows.len())
            .map(|flow| [Side::Sender, Side::Receiver].map(|side| Self::of(resolved, flow, side)))
            .collect()
    }

    /// The end of a flow at a host with our own TCP; `None` at a host with the kernel's TCP.
    fn of(resolved: &Resolved, index: usize, side: Side) -> Option<Self> {
        let flow = &resolved.flows[index];
        let devices = devices::ends(resolved, flow);
        let (here, there) = (devices[side as usize], devices[1 - side as usize]);
        resolved.attached[flow.ends[side as usize]]
            .has_own_tcp
            .then(|| {
                let connection = Connection::new(resolved, index, side, [here, there]);
                Self(Arc::new(Mutex::new(connection)))
            })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The observations of the application.
    pub fn outcome(&self) -> Outcome {
        self.lock().outcome()
    }

    /// The counters for the summary.
    pub fn report(&self) -> LiveEndpoint {
        self.lock().report()
    }
}

impl Informed for Own {
    fn info(&self, now: Instant) -> TcpInfo {
        self.lock().info(now)
    }
}

/// One end of a flow in the model.
pub struct OwnEnd {
    pub own: Own,
    pub recorder: Arc<Recorder>,
    /// The flow and direction of the packets that arrive here.
    pub place: (FlowId, Direction),
}

impl fmt::Debug for OwnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnEnd").finish_non_exhaustive()
    }
}

impl Host<Frame> for OwnEnd {
    fn start(&mut self, now: Instant) {
        self.own.lock().start(now);
    }
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, Frame>) {
        let octets = frame::write(packet.transport, packet.ecn);
        self.recorder.release(self.place, now);
        let mut own = self.own.lock();
        let before = own.completed;
        own.on_packet(now, &octets);
        if own.completed != before {
            self.recorder.marks().add(self.place.0.0 as usize);
        }
    }
    fn on_refused(&mut self, now: Instant, packet: Refused<'_, Frame>) {
        if let Transport::Tcp(segment) = packet.transport {
            let mut own = self.own.lock();
            let longer = match own.ip {
                Version::V4 { .. } => 0,
                Version::V6 { .. } => LONGER_HEADER,
            };
            let mtu = packet.mtu.saturating_sub(longer);
            own.endpoint.on_packet_too_big(now, segment.seq, mtu);
        }
    }
    fn on_timer(&mut self, now: Instant) {
        self.own.lock().on_timer(now);
    }
    fn timer(&self) -> Option<Instant> {
        let due = self.own.lock().due();
        (due != Instant::NEVER).then_some(due)
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Departing<Frame>> {
        let packet = self.own.lock().poll_transmit(now)?;
        let (flow, came) = self.place;
        self.recorder.taken((flow, came.opposite()));
        Some(packet)
    }
    fn delivered_bytes(&self) -> u64 {
        self.own.lock().endpoint.stats().delivered_bytes
    }
}

/// The application.
#[derive(Debug)]
enum App {
    /// Writes this number of octets, or until `stop`.
    Source {
        stream: Stream,
        left: u64,
        stop: Instant,
    },
    /// Reads this number of octets, or all.
    Sink { check: Check, size: Option<u64> },
}

#[derive(Debug)]
struct Connection {
    endpoint: Endpoint<Octets>,
    role: Role,
    app: App,
    /// The IP header of sent packets.
    ip: Version,
    ports: Ports,
    completed: Option<Instant>,
    closed: bool,
    /// The options of our SYN and of the peer's.
    syns: [Option<Syn>; 2],
    discards: Discards,
    /// Packets that are not segments of this connection.
    foreign: u64,
    sent: u64,
    received: u64,
    resets_sent: u64,
    resets_received: u64,
    /// Resets in either direction after the close, as responses to duplicate or late packets (RFC
    /// 9293 §3.10.7.1).
    resets_after_close: u64,
    marked: u64,
}

/// The options that a SYN offers.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
#[schemars(rename = "LiveOffer", extend("engine" = "live"))]
struct Syn {
    /// Maximum segment size; 0 if it is not offered.
    #[schemars(extend("unit" = "bytes"))]
    mss: u16,
    /// Shift of the window scale option; null if it is not offered.
    #[schemars(extend("unit" = "bits"))]
    window_scale: Option<u8>,
    /// Whether SACK is permitted.
    sack: bool,
    /// Whether timestamps are offered.
    timestamps: bool,
    #[serde(skip)]
    flags: Flags,
}

/// Counters of an end with our own TCP.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct LiveEndpoint {
    /// Packets sent.
    sent_packets: u64,
    /// Packets received.
    received_packets: u64,
    /// Resets sent.
    resets_sent: u64,
    /// Resets received.
    resets_received: u64,
    /// Resets in either direction after the close, as responses to duplicate or late packets (RFC
    /// 9293 §3.10.7.1).
    resets_after_close: u64,
    /// Packets received with Congestion Experienced.
    marked_packets: u64,
    /// Packets that are not segments of this connection.
    foreign_packets: u64,
    /// Packets that were discarded, by reason.
    #[schemars(extend("unit" = "packets"))]
    discarded_packets: Named<u64>,
    /// Segments and SACK blocks that were refused, by reason, as in `flows.NAME.refused`.
    #[schemars(extend("unit" = "count"))]
    refused_packets: Named<u64>,
    /// Segments received out of order.
    out_of_order_segments: u64,
    /// Segments received a second time.
    duplicate_segments: u64,
    /// Reductions of the window because of ECN.
    ecn_reductions: u64,
    /// Whether the peer has acknowledged all data.
    all_acknowledged: bool,
    /// Outcome of the connection if it did not end by FIN: `reset`, `refused`, `aborted`, `timed-out`
    /// or `abandoned`; null otherwise.
    ending: Option<&'static str>,
    /// Options of the SYN that this end sent; null before one.
    offered: Option<Syn>,
    /// Options of the SYN that this end received; null before one.
    offered_by_peer: Option<Syn>,
}

impl Syn {
    fn of(segment: &Segment<Octets>) -> Self {
        let (mss, window_scale, sack) = match segment.options {
            Options::Syn {
                mss,
                window_scale,
                sack_permitted,
                ..
            } => (mss, window_scale, sack_permitted),
            _ => (0, None, false),
        };
        Self {
            mss,
            window_scale,
            sack,
            timestamps: segment.timestamps.is_some(),
            flags: segment.flags,
        }
    }
}

impl Connection {
    fn new(resolved: &Resolved, index: usize, side: Side, [here, there]: [usize; 2]) -> Self {
        let flow = &resolved.flows[index];
        let opens = (side == Side::Receiver) == connects_back(flow);
        // The passive end listens at the flow's port; our active end uses a port that no other
        // connection takes.
        let (listens, connects) = (Directory::port(index), Directory::own_port(index));
        let (source, destination) = if opens {
            (connects, listens)
        } else {
            (listens, connects)
        };
        let is_v6 = flow.family == Family::V6;
        let ip = Version::between(address_of(here, is_v6), address_of(there, is_v6))
            .expect("both are of one version");
        let mut settings = flow.stack.clone();
        if is_v6 {
            settings.mss = settings.mss.saturating_sub(LONGER_HEADER).max(1);
        }
        let settings = Arc::new(settings);
        let role = if opens { Role::Active } else { Role::Passive };
        let name = format!("flow.{}.{}.iss", flow.name, ["from", "to"][side as usize]);
        let iss = Draws::new(resolved.seed, &name).at(0).bits();
        let mut endpoint = Endpoint::controlled_by(&settings, &flow.cc, role, iss);
        if is_v6 {
            endpoint = endpoint.over_ipv6();
        }
        endpoint.set_auto_read(false);
        let whole = match &flow.workload {
            Config::File(file) => Some(file.size.get()),
            _ => None,
        };
        let app = match side {
            Side::Sender => App::Source {
                stream: Stream::written_by(index, 0),
                left: whole.unwrap_or(u64::MAX),
                stop: flow.stop.unwrap_or(Instant::NEVER),
            },
            Side::Receiver => App::Sink {
                check: Check::of(Stream::written_by(index, 0)),
                size: whole,
            },
        };
        Self {
            endpoint,
            role,
            app,
            ip,
            ports: Ports {
                source,
                destination,
            },
            completed: None,
            closed: false,
            syns: [None; 2],
            discards: Discards::default(),
            foreign: 0,
            sent: 0,
            received: 0,
            resets_sent: 0,
            resets_received: 0,
            resets_after_close: 0,
            marked: 0,
        }
    }

    fn start(&mut self, now: Instant) {
        if self.role == Role::Active {
            self.endpoint.open(now);
        }
    }

    fn on_packet(&mut self, now: Instant, octets: &[u8]) {
        self.received += 1;
        let decoded = match wire::decode(octets) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.discards.count(error);
                return;
            }
        };
        if !self.is_from_peer(&decoded.ip, decoded.ports) {
            self.foreign += 1;
            return;
        }
        let segment = &decoded.segment;
        if segment.flags.any(Flags::SYN) {
            // The kernel may choose any port; its first segment reveals the choice.
            self.ports.destination = decoded.ports.source;
            self.syns[1].get_or_insert_with(|| Syn::of(segment));
        }
        if segment.flags.any(Flags::RST) {
            let over = self.is_over();
            let count = if over {
                &mut self.resets_after_close
            } else {
                &mut self.resets_received
            };
            *count += 1;
        }
        self.marked += u64::from(decoded.ip.ecn == anabranch_core::packet::Ecn::Ce);
        self.endpoint.on_segment(now, segment, decoded.ip.ecn);
        self.work(now);
    }

    /// Whether a packet comes from the peer. Any port is accepted before the first segment of a
    /// peer that connects.
    fn is_from_peer(&self, ip: &IpHeader, ports: Ports) -> bool {
        let knows_port = self.role == Role::Active || self.syns[1].is_some();
        ip.version.answers(&self.ip)
            && ports.destination == self.ports.source
            && (!knows_port || ports.source == self.ports.destination)
    }

    fn on_timer(&mut self, now: Instant) {
        if self.endpoint.deadline() <= now {
            self.endpoint.on_deadline(now);
        }
        self.work(now);
    }

    fn due(&self) -> Instant {
        let stop = match &self.app {
            App::Source { stop, .. } if !self.closed => *stop,
            _ => Instant::NEVER,
        };
        self.endpoint.deadline().min(stop)
    }

    /// Lets the application write into the available room, or read the available data.
    fn work(&mut self, now: Instant) {
        if matches!(
            self.endpoint.state(),
            State::Closed | State::Listen | State::SynSent | State::SynReceived
        ) {
            // Nothing can be written yet; a stop at this point abandons the connection.
            if matches!(self.app, App::Source { stop, .. } if stop <= now) && !self.closed {
                self.closed = true;
                self.endpoint.close();
            }
            return;
        }
        match &mut self.app {
            App::Source { stream, left, stop } => {
                if now >= *stop {
                    *left = 0;
                }
                while *left > 0 {
                    let room = self.endpoint.write_room().min(u64::from(CHUNK)).min(*left);
                    if room == 0 {
                        break;
                    }
                    let len = usize::try_from(room).expect("a chunk is small");
                    let mut octets = vec![0; len];
                    stream.peek(&mut octets);
                    let taken = self.endpoint.write(Octets(octets));
                    stream.advance(taken);
                    *left -= taken;
                }
                if *left == 0 && !self.closed {
                    self.closed = true;
                    self.endpoint.close();
                }
            }
            App::Sink { check, size } => {
                loop {
                    let octets = self.endpoint.read(now, u64::from(CHUNK));
                    if octets.is_empty() {
                        break;
                    }
                    check.take(&octets.0);
                }
                if size.is_some_and(|size| check.read() == size) {
                    self.completed.get_or_insert(now);
                }
                if self.endpoint.state() == State::CloseWait && !self.closed {
                    self.closed = true;
                    self.endpoint.close();
                }
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departing<Frame>> {
        let over = self.is_over();
        let out = self.endpoint.poll_transmit(now)?;
        if out.segment.flags.any(Flags::SYN) {
            self.syns[0].get_or_insert_with(|| Syn::of(&out.segment));
        }
        if out.segment.flags.any(Flags::RST) {
            let count = if over {
                &mut self.resets_after_close
            } else {
                &mut self.resets_sent
            };
            *count += 1;
        }
        self.sent += 1;
        let ip = IpHeader {
            version: self.ip,
            dscp: 0,
            ecn: out.ecn,
            hop_limit: 64,
        };
        let mut octets = Vec::with_capacity(out.size as usize + LONGER_HEADER as usize);
        wire::encode(&ip, self.ports, &out.segment, &mut octets)
            .expect("the endpoint's segments fit");
        let packet = frame::departing(&octets);
        Some(packet.expect("it is a packet between two hosts"))
    }

    /// Whether both directions were closed by FIN.
    fn is_over(&self) -> bool {
        self.syns[1].is_some()
            && self.endpoint.ending().is_none()
            && matches!(self.endpoint.state(), State::Closed | State::TimeWait)
    }

    fn outcome(&self) -> Outcome {
        let broken = self.endpoint.ending().zip(self.endpoint.ended_at());
        let mut outcome = Outcome {
            completed: self.completed,
            broken: broken.map(|(ending, at)| (ending.into(), at)),
            ..Outcome::default()
        };
        match &self.app {
            App::Source { stream, .. } => outcome.written = stream.position(),
            App::Sink { check, .. } => {
                outcome.read = check.read();
                outcome.wrong = check.wrong().map(|octet| Wrong { octet, part: None });
            }
        }
        outcome
    }

    fn info(&self, now: Instant) -> TcpInfo {
        let limits = self.endpoint.limit_times(now);
        let long = |d: Duration| d.as_picos() / 1_000_000;
        let (snapshot, stats) = (self.endpoint.snapshot(), self.endpoint.stats());
        let mss = u64::from(self.endpoint.smss());
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let micros = |d: Duration| small(d.as_picos() / 1_000_000);
        let [ours, theirs] = self.syns;
        let mut options = 0;
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            options |= u8::from(ours.timestamps && theirs.timestamps) * TcpInfo::TIMESTAMPS;
            options |= u8::from(ours.sack && theirs.sack) * TcpInfo::SACK;
            options |= u8::from(ours.window_scale.is_some() && theirs.window_scale.is_some())
                * TcpInfo::WINDOW_SCALING;
            options |= u8::from(self.agreed_on_ecn(ours, theirs)) * TcpInfo::ECN;
        }
        TcpInfo {
            state: self.endpoint.state().tcp_info_number(),
            ca_state: snapshot.state.tcp_info_number(),
            options,
            snd_mss: small(mss),
            unacked: small(snapshot.in_flight.get() / mss),
            sacked: 0,
            lost: 0,
            retrans: 0,
            rtt_us: micros(snapshot.srtt),
            rttvar_us: micros(snapshot.rttvar),
            rto_us: micros(snapshot.rto),
            snd_ssthresh: snapshot
                .ssthresh
                .map_or(i32::MAX.unsigned_abs(), |bytes| small(bytes.get() / mss)),
            snd_cwnd: small(snapshot.cwnd.get() / mss),
            total_retrans: small(stats.retransmitted_packets),
            pacing_rate: snapshot
                .pacing_rate
                .map_or(u64::MAX, |rate| rate.bits_per_s() / 8),
            // The kernel counts the end of the stream as one more octet, and readers of this field
            // expect that.
            bytes_received: stats.delivered_bytes
                + u64::from(TcpInfo::has_ended(self.endpoint.state().tcp_info_number())),
            notsent_bytes: small(self.endpoint.unsent()),
            busy_us: long(limits.total() - limits.application),
            rwnd_limited_us: long(limits.rwnd),
            sndbuf_limited_us: long(limits.send_buffer),
            is_send_buffer_full: false,
            min_rtt_us: if snapshot.min_rtt.is_zero() {
                u32::MAX
            } else {
                micros(snapshot.min_rtt)
            },
            data_segs_out: small(stats.sent_packets),
            delivery_rate: 0,
            dsack_dups: stats.duplicates_reported,
            total_rto: u16::try_from(stats.timeouts).unwrap_or(u16::MAX),
            knows_total_rto: true,
            ..TcpInfo::default()
        }
    }

    /// ECN negotiation (RFC 3168 §6.1.1): a SYN with both bits, an answer with one.
    fn agreed_on_ecn(&self, ours: Syn, theirs: Syn) -> bool {
        let (first, answer) = match self.role {
            Role::Active => (ours, theirs),
            Role::Passive => (theirs, ours),
        };
        first.flags.has(Flags::ECE | Flags::CWR)
            && answer.flags.any(Flags::ECE | Flags::CWR | Flags::AE)
    }

    fn report(&self) -> LiveEndpoint {
        let stats = self.endpoint.stats();
        let ending = self.endpoint.ending().map(|ending| match ending {
            Ending::Reset => "reset",
            Ending::Refused => "refused",
            Ending::Aborted => "aborted",
            Ending::TimedOut => "timed-out",
            Ending::Abandoned => "abandoned",
        });
        let discarded = self.discards.iter().filter(|(_, count)| *count > 0);
        let refused = self.endpoint.refusals();
        let refused = Refusal::ALL.map(|reason| (reason.name().to_owned(), refused.of(reason)));
        let [offered, offered_by_peer] = self.syns;
        LiveEndpoint {
            sent_packets: self.sent,
            received_packets: self.received,
            resets_sent: self.resets_sent,
            resets_received: self.resets_received,
            resets_after_close: self.resets_after_close,
            marked_packets: self.marked,
            foreign_packets: self.foreign,
            discarded_packets: discarded
                .map(|(error, count)| (error.name().to_owned(), count))
                .collect(),
            refused_packets: refused
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .collect(),
            out_of_order_segments: stats.out_of_order_segments,
            duplicate_segments: stats.duplicate_segments,
            ecn_reductions: stats.ecn_reductions,
            all_acknowledged: self.endpoint.all_acknowledged(),
            ending,
            offered,
            offered_by_peer,
        }
    }
}
