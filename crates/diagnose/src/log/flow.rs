//! A connection of a qlog: its events as the segments of a TCP connection with the same data.
//!
//! The sequence number of data is its place in the order of first transmission ([`Streams`]). A
//! packet's timestamp is its number, and an acknowledgment echoes the packets that it names: each
//! copy of data is known to have arrived or not.
//!
//! [`Streams`]: super::streams::Streams

use std::net::{IpAddr, Ipv4Addr};

use anabranch_qlog::{Event, Frame, Metrics, Packet, PacketKind, Parameters, Trigger};
use anabranch_wire::Flags;

use super::half::{Ack, Half, stamp};
use crate::{
    connection::Connection,
    retransmission::ledger::Budget,
    segment::{End, FIN, LostBy, MOST_BLOCKS, Quic, Record, SYN, Segment},
    time::Nanos,
    trace::Tracer,
};

/// The number of the first octet of data.
const FIRST: u32 = 1;
/// Blocks of an acknowledgment: a full SACK option would mean that others found no room.
const BLOCKS: usize = 2;
/// Octets of a packet that is not data, in a log without frames: an acknowledgment.
const SMALL: u64 = 80;
/// Octets of a short header, a packet number and a tag, in a log without frames.
const OVERHEAD: u64 = 30;

/// A pacer may take this many times the packet's time at its rate, and a tick of its timer.
const SLACK: f64 = 1.25;
const TICK_US: f64 = 1000.0;

/// The ends of every connection: they are named when it is reported.
pub(super) const CLIENT: End = (IpAddr::V4(Ipv4Addr::new(0, 0, 0, 1)), 1);
const SERVER: End = (IpAddr::V4(Ipv4Addr::new(0, 0, 0, 2)), 2);

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Flow {
    id: u64,
    /// The end that logs: 0 for the client.
    local: Option<usize>,
    connection: Option<Box<Connection>>,
    tracer: Option<Tracer>,
    halves: [Half; 2],
    pub(super) handshake: Handshake,
    is_closed: bool,
    /// The packet that is processed shows by its acknowledgment what its sender has received.
    is_echo: bool,
    /// The congestion window of the end that logs.
    cwnd: Option<i64>,
    /// The rate of its pacer, in bit/s.
    pacing: Option<f64>,
    last: Nanos,
    /// The event that is processed.
    number: u64,
    pub(super) names: [Option<End>; 2],
    pub(super) packets: u64,
    pub(super) went_back: u64,
    pub(super) version: Option<String>,
    /// The file lists frames of packets with application data.
    pub(super) has_frames: bool,
}

/// The progress of the handshake.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    stage: Stage,
    /// The client's next Initial packet answers a Retry or a version negotiation.
    is_repeated: bool,
    pub(super) has_retry: bool,
}

#[derive(Debug, Default, PartialEq)]
enum Stage {
    #[default]
    Before,
    /// The client has sent its first Initial packet.
    Begun,
    /// The server has answered it.
    Answered,
}

impl Flow {
    pub(super) fn new(id: u64, local: Option<usize>, tracer: Option<Tracer>) -> Self {
        Self {
            id,
            local,
            tracer,
            is_echo: true,
            last: Nanos::MIN / 4,
            ..Self::default()
        }
    }

    /// The end that logs.
    pub(super) fn local(&self) -> usize {
        self.local.unwrap_or(0)
    }

    /// Processes an event.
    pub(super) fn add(&mut self, number: u64, time: Nanos, event: Event, budget: &mut Budget) {
        self.went_back += u64::from(time < self.last);
        self.last = self.last.max(time);
        self.number = number;
        match event {
            Event::Packet(packet) => self.packet(&packet, budget),
            Event::Lost {
                kind: PacketKind::Application | PacketKind::Other,
                number,
                trigger,
            } => self.lose(number, trigger),
            Event::Lost { .. } => {}
            Event::Metrics(metrics) => self.measure(metrics, budget),
            Event::Parameters(parameters) => self.permit(&parameters),
            Event::Started { local, remote } => {
                let at = self.local();
                self.names[at] = local;
                self.names[1 - at] = remote;
            }
        }
    }

    fn packet(&mut self, packet: &Packet, budget: &mut Budget) {
        // Without a vantage point, the end that sends first is the client.
        let local = *self.local.get_or_insert(usize::from(!packet.is_sent));
        let from = if packet.is_sent { local } else { 1 - local };
        self.packets += 1;
        if self.version.is_none() {
            self.version.clone_from(&packet.version);
        }
        match packet.kind {
            PacketKind::Application => self.data(from, packet, budget),
            PacketKind::Initial => self.initial(from, packet, budget),
            PacketKind::Retry | PacketKind::VersionNegotiation => {
                self.handshake.has_retry |= packet.kind == PacketKind::Retry;
                self.handshake.is_repeated = true;
            }
            PacketKind::Handshake | PacketKind::Other => {}
        }
        let closes = |frame: &Frame| *frame == Frame::Close;
        let frames = packet.frames.as_deref().unwrap_or_default();
        if !self.is_closed && frames.iter().any(closes) {
            self.is_closed = true;
            self.emit(from, FIN, None, None, budget);
        }
    }

    /// The first Initial packets of both ends are the SYN and its answer.
    fn initial(&mut self, from: usize, packet: &Packet, budget: &mut Budget) {
        let begins = |frame: &Frame| matches!(frame, Frame::Crypto { offset: 0 });
        let is_first = match &packet.frames {
            Some(frames) => frames.iter().any(begins),
            None => from == 1 || self.handshake.stage == Stage::Before,
        };
        if !is_first || self.handshake.stage == Stage::Answered {
            return;
        }
        if from == 0 {
            self.handshake.stage = Stage::Begun;
            for half in &mut self.halves {
                half.streams.is_from_start = true;
            }
            if !std::mem::take(&mut self.handshake.is_repeated) {
                self.emit(0, SYN, None, None, budget);
            }
        } else if self.handshake.stage == Stage::Begun {
            self.handshake.stage = Stage::Answered;
            self.emit(1, SYN, None, None, budget);
        }
    }

    fn data(&mut self, from: usize, packet: &Packet, budget: &mut Budget) {
        let to = 1 - from;
        let own = &mut self.halves[from];
        own.stamp = match packet.number {
            Some(number) => stamp(number),
            None => own.stamp.wrapping_add(1),
        };
        let number = packet.number.unwrap_or(u64::from(own.stamp));
        let next = own.streams.next;
        let mut ranges = std::mem::take(&mut own.pending);
        let (mut acks, mut is_raised, mut is_last) = (Vec::new(), false, false);
        if let Some(frames) = &packet.frames {
            self.has_frames |= !frames.is_empty();
            ranges.clear();
            self.halves[from].streams.begin();
            for frame in frames {
                match frame {
                    Frame::Stream {
                        id,
                        offset,
                        length,
                        fin,
                    } => {
                        is_last |= fin;
                        let streams = &mut self.halves[from].streams;
                        streams.place(*id, (*offset, *length), *fin, &mut ranges);
                    }
                    Frame::ResetStream { id } => self.halves[from].streams.finish(*id),
                    Frame::Ack(numbers) => acks = self.halves[to].acknowledge(numbers),
                    Frame::MaxData(maximum) => {
                        self.halves[to].streams.permit(*maximum);
                        is_raised = true;
                    }
                    Frame::MaxStreamData { id, maximum } => {
                        self.halves[to].streams.permit_stream(*id, *maximum);
                        is_raised = true;
                    }
                    Frame::Crypto { .. } | Frame::Close | Frame::Other => {}
                }
            }
        } else {
            self.take_unlisted(from, packet, &mut ranges);
        }
        let octets: i64 = ranges.iter().map(|(start, end)| end - start).sum();
        let length = packet.length.and_then(|length| i64::try_from(length).ok());
        let length = length.unwrap_or(octets).clamp(octets, octets + (1 << 16));
        let lost = self.halves[from].send(number, &ranges, length, next);
        let lost = if packet.is_probe {
            Some(LostBy::Probe)
        } else {
            lost
        };
        let has_acks = !acks.is_empty();
        self.is_echo = from == self.local() || has_acks;
        for ack in &acks {
            self.answer(from, ack, budget);
        }
        if is_raised && !has_acks {
            self.emit(from, Flags::ACK, None, None, budget);
        }
        let overhead = u16::try_from(length - octets).unwrap_or(0);
        for (k, range) in ranges.iter().enumerate() {
            let is_end = is_last && k + 1 == ranges.len();
            let flags = if is_end { Flags::PSH } else { Flags::ACK };
            let data = Data {
                range: *range,
                overhead,
                lost,
            };
            self.emit(from, flags, None, Some(data), budget);
        }
    }

    /// The data of a packet whose frames are not listed: the data that was declared lost, or new
    /// data.
    fn take_unlisted(&mut self, from: usize, packet: &Packet, ranges: &mut Vec<(i64, i64)>) {
        let length = packet.length.unwrap_or(0);
        if length <= SMALL {
            self.halves[from].pending = std::mem::take(ranges);
            return;
        }
        let room = i64::try_from(length.min(1 << 16) - OVERHEAD).unwrap_or(0);
        let mut taken = 0;
        let mut rest = Vec::new();
        ranges.retain_mut(|range| {
            let octets = (range.1 - range.0).min(room - taken);
            if octets < range.1 - range.0 {
                rest.push((range.0 + octets, range.1));
                range.1 = range.0 + octets;
            }
            taken += octets;
            octets > 0
        });
        let half = &mut self.halves[from];
        half.pending = rest;
        if taken == 0 {
            ranges.push((half.streams.next, half.streams.next + room));
            half.streams.next += room;
        }
    }

    fn lose(&mut self, number: u64, trigger: Trigger) {
        let by = match trigger {
            Trigger::Reordering => Some(LostBy::Reordering),
            Trigger::Time => Some(LostBy::Time),
            Trigger::Probe => Some(LostBy::Probe),
            Trigger::Other => None,
        };
        let local = self.local();
        self.halves[local].lose(number, by);
        if !self.has_frames {
            self.halves[local].repeat(number);
        }
    }

    /// Records the congestion window. Without frames, the octets in flight show what was
    /// acknowledged.
    fn measure(&mut self, metrics: Metrics, budget: &mut Budget) {
        if let Some(window) = metrics.congestion_window {
            self.cwnd = i64::try_from(window).ok();
        }
        self.pacing = metrics
            .pacing_rate
            .filter(|rate| *rate > 0.0)
            .or(self.pacing);
        let flight = metrics
            .bytes_in_flight
            .and_then(|flight| i64::try_from(flight).ok());
        let local = self.local();
        let Some(flight) = flight else {
            return;
        };
        if self.has_frames {
            self.halves[local].flight = flight;
            return;
        }
        let acks = self.halves[local].reduce(flight);
        for ack in &acks {
            let peer = &mut self.halves[1 - local];
            peer.stamp = peer.stamp.wrapping_add(1);
            self.answer(1 - local, ack, budget);
        }
    }

    fn permit(&mut self, parameters: &Parameters) {
        let local = self.local();
        // An end's parameters limit the other end's data.
        let limited = if parameters.is_local {
            1 - local
        } else {
            local
        };
        let streams = &mut self.halves[limited].streams;
        if let Some(maximum) = parameters.max_data {
            streams.permit(maximum);
        }
        streams.permit_initially([
            parameters.bidi_local,
            parameters.bidi_remote,
            parameters.uni,
        ]);
    }

    /// Sends an acknowledgment, with as many segments as its blocks need.
    fn answer(&mut self, from: usize, ack: &Ack, budget: &mut Budget) {
        let mut blocks = ack.blocks.chunks(BLOCKS);
        loop {
            let chunk = blocks.next().unwrap_or_default();
            self.emit(from, Flags::ACK, Some((ack, chunk)), None, budget);
            if blocks.len() == 0 {
                return;
            }
        }
    }

    /// Adds a segment of one end to the connection.
    fn emit(
        &mut self,
        from: usize,
        flags: Flags,
        ack: Option<(&Ack, &[(i64, i64)])>,
        data: Option<Data>,
        budget: &mut Budget,
    ) {
        let (own, peer) = (&self.halves[from], &self.halves[1 - from]);
        let is_syn = flags == SYN;
        let acknowledged = match ack {
            Some((ack, _)) => ack.una,
            None => peer.una,
        };
        let mut blocks = [(0, 0); MOST_BLOCKS];
        let named = ack.map_or(&[][..], |(_, blocks)| blocks);
        for (block, named) in blocks.iter_mut().zip(named) {
            *block = (number_of(named.0), number_of(named.1));
        }
        let echo = ack.map_or(peer.echo, |(ack, _)| ack.echo);
        // The end that logs has received every packet before; the other end shows by its
        // acknowledgments what it has received.
        let echo = if from == self.local() {
            peer.stamp
        } else {
            echo
        };
        let (start, length) = match data {
            Some(data) => (data.range.0, data.range.1 - data.range.0),
            None if is_syn => (-1, 0),
            None => (own.streams.next, 0),
        };
        let has_ack = !is_syn || from == 1;
        let segment = Segment {
            number: self.number,
            time: self.last,
            source: if from == 0 { CLIENT } else { SERVER },
            target: if from == 0 { SERVER } else { CLIENT },
            seq: number_of(start),
            ack: has_ack.then(|| number_of(acknowledged)),
            flags,
            window: u16::MAX,
            payload: u32::try_from(length).unwrap_or(0),
            hop_limit: 64,
            ecn: 0,
            id: None,
            stamps: Some((own.stamp, echo)),
            mss: None,
            scale: is_syn.then_some(0),
            sack_permitted: is_syn,
            has_all_options: true,
            blocks,
            block_count: u8::try_from(named.len()).unwrap_or(0),
            quic: Some(Quic {
                window: peer.window(1 - u64::from(from == 1)),
                overhead: data.map_or(0, |data| data.overhead),
                lost: data.and_then(|data| data.lost),
                is_echo: self.is_echo,
                is_local: from == self.local(),
                record: data.and_then(|data| self.record(from, &data)),
            }),
        };
        let connection = self.connection.get_or_insert_with(|| {
            let mut connection = Box::new(Connection::new(self.id, &segment));
            if let Some(tracer) = self.tracer.take() {
                connection.watch(tracer);
            }
            connection
        });
        let from = connection.from(&segment);
        connection.add(&segment, from, budget);
        connection.note(&segment, from);
    }

    /// The sender's record of its limits, if it wrote the log.
    fn record(&self, from: usize, data: &Data) -> Option<Record> {
        let window = self.cwnd.filter(|_| from == self.local())?;
        let octets = data.range.1 - data.range.0 + i64::from(data.overhead);
        let free = (window - self.halves[from].flight).clamp(i32::MIN.into(), i32::MAX.into());
        let pace = self
            .pacing
            .map(|rate| SLACK * octets as f64 * 8e6 / rate + TICK_US);
        Some(Record {
            free: i32::try_from(free).unwrap_or_default(),
            pace_us: pace.map_or(u32::MAX, micros),
        })
    }

    /// Ends the connection; `None` if it has no packets with data.
    pub(super) fn end(mut self, budget: &mut Budget) -> Option<Box<Connection>> {
        let mut connection = self.connection.take()?;
        connection.finish(budget);
        Some(connection)
    }
}

/// The data of a segment.
#[derive(Debug, Clone, Copy)]
struct Data {
    range: (i64, i64),
    overhead: u16,
    lost: Option<LostBy>,
}

/// Whole microseconds, below `u32::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn micros(micros: f64) -> u32 {
    micros.clamp(0.0, 4e9) as u32
}

/// The sequence number of an octet.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "modulo 2^32"
)]
const fn number_of(at: i64) -> u32 {
    FIRST.wrapping_add(at as u32)
}
