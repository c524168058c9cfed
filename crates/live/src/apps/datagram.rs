//! UDP flows: one thread writes on a schedule, another reads and counts.
//!
//! The schedule is computed as in the simulator. A datagram carries its number in its first octets,
//! as far as it has room, followed by octets that depend on the number, so that the content can be
//! verified. Its delay is the time from its writing until the engine gives it to the receiver's
//! kernel, both by the run's clock: the kernel's timestamps use the wall clock, which may be set at
//! any time.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{body::Body, histogram::Histogram, units::Instant};
use anabranch_engine::network::{OneWayDelay, Schedule};
use anabranch_wire::Transport;
use rustix::net::sockopt;

use crate::{
    apps::{
        application::Outcome,
        socket::set_class,
        stage::{LOOK, Stage},
        stream::{Part, Stream, Wrong},
    },
    kernel::sys,
    plan::frame::{Frame, LARGEST},
};

/// Octets of a datagram's number.
const NUMBER: usize = 8;
/// Send times are remembered for this many datagrams before the latest arrival; a later one has no
/// delay.
const REMEMBERED: u64 = 1 << 14;
/// Send times that are remembered while no datagram arrives.
const UNANSWERED: usize = 1 << 20;
/// Arrival times that are remembered for unread datagrams: more than a socket holds.
const STAMPED: usize = 1 << 16;
/// Size of a socket buffer, so that a late thread loses nothing: 16 MiB, or the most that this
/// process may have.
const BUFFER: usize = 16 << 20;

/// The send times of a flow's datagrams, shared by both ends.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    /// The number of the first entry of `datagrams`.
    first: u64,
    /// The send time and the length of each datagram. The time is [`Instant::NEVER`] after it has
    /// arrived.
    datagrams: VecDeque<(Instant, usize)>,
}

/// Arrival times of a flow's datagrams at the receiver's host, by their first octets. A socket
/// returns datagrams in this order, without the datagrams that the kernel dropped.
#[derive(Debug, Clone, Default)]
pub struct Stamps(Arc<Mutex<VecDeque<(Beginning, Instant)>>>);

/// The first octets of a datagram, and its length.
type Beginning = ([u8; NUMBER], usize);

impl Stamps {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Beginning, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Records the arrival of a packet.
    pub fn came(&self, packet: &Transport<Frame>, at: Instant) {
        if let Transport::Datagram(frame) = packet {
            let mut stamps = self.lock();
            stamps.push_back((begin(frame.octets().unwrap_or_default()), at));
            if stamps.len() > STAMPED {
                stamps.pop_front();
            }
        }
    }
    /// The arrival time of the datagram that was read now.
    fn take(&self, payload: &[u8]) -> Option<Instant> {
        let mut stamps = self.lock();
        let wanted = begin(payload);
        let place = stamps.iter().position(|(of, _)| *of == wanted)?;
        // The kernel dropped the datagrams before it.
        stamps.drain(..=place).next_back().map(|(_, at)| at)
    }
}

fn begin(payload: &[u8]) -> Beginning {
    let mut octets = [0; NUMBER];
    let room = payload.len().min(NUMBER);
    octets[..room].copy_from_slice(&payload[..room]);
    (octets, payload.len())
}

/// The record of an arriving datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Sent then with this length; arrives for the first time.
    Left(Instant, usize),
    /// A duplicate of a datagram of this length.
    Again(usize),
    /// No record: too old, or without a number.
    Nothing,
    /// Never written.
    Never,
}

impl Log {
    fn lock(&self) -> std::sync::MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn left(&self, at: Instant, octets: usize) {
        let mut sent = self.lock();
        sent.datagrams.push_back((at, octets));
        if sent.datagrams.len() > UNANSWERED {
            sent.datagrams.pop_front();
            sent.first += 1;
        }
    }
    fn arrived(&self, number: u64) -> Known {
        let mut sent = self.lock();
        let place = number.checked_sub(sent.first).map(usize::try_from);
        let Some(Ok(place)) = place else {
            return Known::Nothing;
        };
        let Some((time, octets)) = sent.datagrams.get_mut(place) else {
            return Known::Never;
        };
        let (at, octets) = (std::mem::replace(time, Instant::NEVER), *octets);
        while sent.first + REMEMBERED < number {
            sent.datagrams.pop_front();
            sent.first += 1;
        }
        if at < Instant::NEVER {
            Known::Left(at, octets)
        } else {
            Known::Again(octets)
        }
    }
}

/// Counts of an end.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Datagrams written, or read, from the run's start to its end.
    pub datagrams: u64,
    /// Datagrams in the measured time.
    pub measured_datagrams: u64,
    /// Payload bytes read in the measured time, without duplicates.
    pub delivered_bytes: u64,
    /// Delays of datagrams read in the measured time.
    pub delay: OneWayDelay,
}

/// The writing end.
#[derive(Debug, Clone)]
pub struct Source {
    pub schedule: Schedule,
    /// The time at which its application stops.
    pub stop: Instant,
    /// The octet that holds the DSCP.
    pub class: u8,
    pub log: Log,
    /// The content, except the datagram's number.
    pub content: Stream,
}

/// The reading end.
#[derive(Debug, Clone)]
pub struct Sink {
    pub log: Log,
    /// Arrival times of datagrams.
    pub stamps: Stamps,
    /// The expected content, except the datagram's number.
    pub content: Stream,
}

impl Source {
    /// Writes each datagram at its time to the socket at `address`.
    pub fn run(
        self,
        (local, address): (Option<IpAddr>, SocketAddr),
        (start, _): (Instant, Instant),
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => [0_u8; 4].into(),
            SocketAddr::V6(_) => [0_u16; 8].into(),
        };
        let socket = UdpSocket::bind((local.unwrap_or(any), 0))?;
        sys::path_mtu::ignore(&socket, address.is_ipv6())?;
        set_class(&socket, self.class)?;
        socket.connect(address)?;
        socket.set_write_timeout(Some(LOOK))?;
        enlarge(&socket, false);
        ready();
        let Some(clock) = stage.line.wait() else {
            return Ok(Outcome::default());
        };
        sys::priority::be_prompt();
        let mut counted = Counted::default();
        let mut lateness = Histogram::default();
        let mut octets = vec![0; LARGEST];
        for sending in self.schedule {
            if sending.at >= self.stop || !stage.wait_until(clock, sending.at) {
                break;
            }
            let payload = &mut octets[..sending.payload as usize];
            fill(self.content, counted.datagrams, payload);
            let now = clock.now();
            // Recorded before the datagram is sent, because it could arrive first.
            self.log.left(now, payload.len());
            if !write(&socket, payload, stage)? {
                break;
            }
            lateness.record(now.saturating_since(sending.at).as_nanos());
            counted.datagrams += 1;
            counted.measured_datagrams += u64::from(sending.at >= start);
        }
        Ok(Outcome {
            lateness,
            datagrams: Some(Box::new(counted)),
            ..Outcome::default()
        })
    }
}

/// Fills in the octets of a datagram.
fn fill(content: Stream, number: u64, payload: &mut [u8]) {
    let (head, rest) = payload.split_at_mut(payload.len().min(NUMBER));
    head.copy_from_slice(&number.to_le_bytes()[..head.len()]);
    content.numbered(number).peek(rest);
}

/// Reports of routers that may arrive between two datagrams.
const REPORTS: u32 = 16;

/// Writes one datagram. Returns false if the run ended before the kernel accepted it.
fn write(socket: &UdpSocket, payload: &[u8], stage: &Stage) -> io::Result<bool> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    let mut refused = 0;
    loop {
        match socket.send(payload) {
            Ok(_) => return Ok(true),
            // The error belongs to a router's report about an earlier datagram, unless the device
            // cannot take this one.
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) && refused < REPORTS => {
                refused += 1;
            }
            // ConnectionRefused reports an error of an earlier datagram.
            Err(error)
                if matches!(
                    error.kind(),
                    Interrupted | TimedOut | WouldBlock | ConnectionRefused
                ) => {}
            Err(error) => return Err(error),
        }
        if stage.is_over() {
            return Ok(false);
        }
    }
}

impl Sink {
    /// Reads the datagrams that arrive at `address` until the end of the run.
    pub fn run(
        self,
        address: SocketAddr,
        window: (Instant, Instant),
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(LOOK))?;
        enlarge(&socket, true);
        ready();
        let Some(clock) = stage.line.wait() else {
            return Ok(Outcome::default());
        };
        let mut reader = Reader::new(self, window);
        let mut octets = vec![0; LARGEST];
        let mut is_over = false;
        loop {
            match socket.recv(&mut octets) {
                Ok(len) => {
                    let payload = &octets[..len];
                    let came = reader.sink.stamps.take(payload);
                    reader.read(payload, came.unwrap_or_else(|| clock.now()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if is_over {
                        break;
                    }
                    if stage.is_over() {
                        // All datagrams that the engine gave to the kernel are in the socket by
                        // now.
                        is_over = true;
                        socket.set_nonblocking(true)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Outcome {
            wrong: reader.wrong,
            datagrams: Some(Box::new(reader.counted)),
            ..Outcome::default()
        })
    }
}

fn enlarge(socket: &UdpSocket, receives: bool) {
    // Without privileges the buffer has the size that any process may set. The audit reports the
    // resulting losses.
    if receives {
        if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(socket, BUFFER);
        }
    } else if sockopt::set_socket_send_buffer_size_force(socket, BUFFER).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, BUFFER);
    }
}

/// The state of reading.
struct Reader {
    sink: Sink,
    window: (Instant, Instant),
    /// The highest number received.
    latest: u64,
    counted: Counted,
    /// The first octet that differs from the written one.
    wrong: Option<Wrong>,
    expected: Vec<u8>,
}

impl Reader {
    fn new(sink: Sink, window: (Instant, Instant)) -> Self {
        Self {
            sink,
            window,
            latest: 0,
            counted: Counted::default(),
            wrong: None,
            expected: Vec::new(),
        }
    }

    fn read(&mut self, payload: &[u8], at: Instant) {
        self.counted.datagrams += 1;
        let known = match self.number(payload) {
            Some(number) => {
                let known = self.sink.log.arrived(number);
                self.compare(number, known, payload);
                known
            }
            None => Known::Nothing,
        };
        let (start, end) = self.window;
        if matches!(known, Known::Again(_)) || at < start || at >= end {
            return;
        }
        self.counted.measured_datagrams += 1;
        self.counted.delivered_bytes += payload.len() as u64;
        if let Known::Left(left, _) = known {
            self.counted.delay.record(at.saturating_since(left));
        }
    }

    /// Compares a datagram with the one written under its number. If it has room for the number
    /// alone, only its existence and its length are verified.
    fn compare(&mut self, number: u64, known: Known, payload: &[u8]) {
        let len = match known {
            Known::Left(_, len) | Known::Again(len) => len,
            Known::Nothing => payload.len(),
            Known::Never => 0,
        };
        self.expected.resize(len, 0);
        fill(self.sink.content, number, &mut self.expected);
        if self.expected == payload {
            return;
        }
        let both = self.expected.iter().zip(payload);
        let same = both.take_while(|(wanted, found)| wanted == found).count();
        self.wrong.get_or_insert(Wrong {
            octet: same as u64,
            part: Some(Part::Datagram(number)),
        });
    }

    /// A datagram's number. Its octets can mean several numbers; the result is the one nearest to
    /// the latest.
    fn number(&mut self, payload: &[u8]) -> Option<u64> {
        let room = payload.len().min(NUMBER);
        let unused = u32::try_from(NUMBER - room).ok()? * 8;
        let mut octets = [0; NUMBER];
        octets[..room].copy_from_slice(&payload[..room]);
        let ahead = u64::from_le_bytes(octets)
            .wrapping_sub(self.latest)
            .checked_shl(unused)?
            .cast_signed()
            >> unused;
        let number = self.latest.saturating_add_signed(ahead);
        self.latest = self.latest.max(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: Stream = Stream::written_by(0, 0);

    fn reader(log: &Log) -> Reader {
        let sink = Sink {
            log: log.clone(),
            stamps: Stamps::default(),
            content: CONTENT,
        };
        Reader::new(sink, (Instant::from_millis(10), Instant::from_millis(20)))
    }

    fn datagram(number: u64, len: usize) -> Vec<u8> {
        let mut payload = vec![0; len];
        fill(CONTENT, number, &mut payload);
        payload
    }

    /// Detects a reader that checks only numbers, or only lengths.
    #[test]
    fn changed_truncated_and_invented_datagrams_are_detected() {
        let log = Log::default();
        for _ in 0..10 {
            log.left(Instant::START, 100);
        }
        log.left(Instant::START, 4);
        let wrong = |payload: &[u8]| {
            let mut reader = reader(&log);
            reader.read(payload, Instant::START);
            reader.wrong
        };
        let at = |octet: u64, number: u64| {
            Some(Wrong {
                octet,
                part: Some(Part::Datagram(number)),
            })
        };
        let right = datagram(7, 100);
        // Duplicates are compared too.
        assert_eq!([wrong(&right), wrong(&right)], [None, None]);
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut payload = right.clone();
            change(&mut payload);
            wrong(&payload)
        };
        assert_eq!(changed(&|payload| payload[99] ^= 1), at(99, 7));
        assert_eq!(changed(&|payload| payload.swap(50, 52)), at(50, 7));
        assert_eq!(changed(&|payload| payload.truncate(98)), at(98, 7));
        assert_eq!(changed(&|payload| payload.push(0)), at(100, 7));
        assert_eq!(changed(&|payload| payload.insert(60, right[59])), at(60, 7));
        // The number of another datagram, and a number that was never written.
        assert_eq!(changed(&|payload| payload[0] = 6), at(8, 6));
        assert_eq!(changed(&|payload| payload[0] = 11), at(0, 11));
        assert_eq!(wrong(&datagram(10, 4)), None);
        assert_eq!(wrong(&datagram(11, 4)), at(0, 11));
    }

    /// Detects arrival times that are matched by order alone, and entries of datagrams dropped by
    /// the kernel that are kept forever.
    #[test]
    fn a_datagram_gets_its_arrival_time() {
        let stamps = Stamps::default();
        let came = |number: u64, len: usize, at: u64| {
            let mut octets = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17];
            octets.extend([0, 0, 10, 113, 0, 1, 10, 113, 0, 2]);
            octets.extend([0; 8]);
            octets.extend(datagram(number, len));
            let total = u16::try_from(octets.len()).expect("small");
            octets[2..4].copy_from_slice(&total.to_be_bytes());
            let packet =
                crate::plan::frame::departing(&octets).expect("a packet between two hosts");
            stamps.came(&packet.transport, Instant::from_millis(at));
        };
        for (number, len, at) in [(0, 100, 1), (1, 100, 2), (2, 3, 3), (1, 100, 4), (3, 0, 5)] {
            came(number, len, at);
        }
        let taken = |number: u64, len: usize| stamps.take(&datagram(number, len));
        let at = |ms| Some(Instant::from_millis(ms));
        assert_eq!(taken(1, 100), at(2));
        assert_eq!(taken(2, 3), at(3));
        assert_eq!([taken(1, 100), taken(1, 100)], [at(4), None]);
        assert_eq!(taken(3, 0), at(5));
        // Number 0 was lost.
        for number in 0..100_000 {
            came(number + 10, 20, 6);
        }
        assert_eq!((taken(0, 100), stamps.lock().len()), (None, STAMPED));
    }

    /// Detects a reader that takes the octets as the number.
    #[test]
    fn numbers_continue_in_datagrams_with_little_room() {
        let mut reader = reader(&Log::default());
        for number in [0, 100, 200, 256, 255, 380, 505] {
            let octets = u64::to_le_bytes(number);
            assert_eq!(reader.number(&octets[..1]), Some(number));
        }
        assert_eq!(reader.number(&u64::to_le_bytes(70_000)), Some(70_000));
        assert_eq!(reader.number(&[]), None);
    }

    /// Detects a reader that counts a duplicate twice, or a datagram outside the measured time.
    #[test]
    fn each_measured_datagram_counts_once() {
        let log = Log::default();
        for ms in 0..5 {
            log.left(Instant::from_millis(ms), 100);
        }
        let mut reader = reader(&log);
        for (number, at) in [(0, 9), (2, 11), (1, 12), (2, 13), (3, 19), (4, 20)] {
            reader.read(&datagram(number, 100), Instant::from_millis(at));
        }
        let counted = &reader.counted;
        assert_eq!((counted.datagrams, counted.measured_datagrams), (6, 3));
        assert_eq!(counted.delivered_bytes, 300);
        // 9, 11 and 16 ms.
        assert_eq!(counted.delay.mean_ms(), Some(12.0));
    }

    /// Detects a log that keeps everything, and one that drops datagrams in flight.
    #[test]
    fn the_log_drops_old_entries() {
        let log = Log::default();
        for ms in 0..100_000 {
            log.left(Instant::from_millis(ms), 1);
        }
        assert_eq!(
            log.arrived(99_999),
            Known::Left(Instant::from_millis(99_999), 1)
        );
        assert_eq!(log.arrived(99_999), Known::Again(1));
        assert_eq!(log.arrived(10), Known::Nothing);
        assert_eq!(
            log.arrived(99_000),
            Known::Left(Instant::from_millis(99_000), 1)
        );
        assert_eq!(log.arrived(100_000), Known::Never);
        assert!(log.lock().datagrams.len() as u64 <= REMEMBERED + 1);
    }
}
