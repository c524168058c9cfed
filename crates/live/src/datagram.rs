//! UDP flows: a thread that writes by the clock, and one that reads and counts.
//!
//! What leaves when is worked out as in the simulator. A datagram carries its number in its first octets, as far as it
//! has room; its delay is from its writing to its arrival at the receiver's socket, as the kernel stamps it.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use anabranch_core::{
    histogram::Histogram,
    units::{Duration, Instant},
};
use anabranch_model::network::{OneWayDelay, Schedule};
use rustix::net::sockopt;

use crate::{
    application::{LOOK, Outcome, Stage},
    clock::Clock,
    sys,
};

/// Octets of a datagram's number.
const NUMBER: usize = 8;
/// So many datagrams behind the latest one that has arrived are remembered; one that comes later yet has no delay.
const REMEMBERED: u64 = 1 << 14;
/// What a socket may hold, so that a thread that runs late loses nothing: 16 MiB, or as much as we may ask for.
const BUFFER: usize = 16 << 20;
/// The largest packet of IP.
const LARGEST: usize = 65_536;

/// When the datagrams of a flow left, as both ends know it.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    /// The number of the first of `times`.
    first: u64,
    /// [`Instant::NEVER`] for one that has arrived.
    times: VecDeque<Instant>,
}

/// What is known of a datagram that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It left then, and arrives for the first time.
    Left(Instant),
    /// It has been there before.
    Again,
    /// Nothing: it is too old, or has no number.
    Nothing,
}

impl Log {
    fn lock(&self) -> std::sync::MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn left(&self, at: Instant) {
        self.lock().times.push_back(at);
    }
    fn arrived(&self, number: u64) -> Known {
        let mut sent = self.lock();
        let place = number.checked_sub(sent.first).map(usize::try_from);
        let Some(Ok(place)) = place else {
            return Known::Nothing;
        };
        let Some(time) = sent.times.get_mut(place) else {
            return Known::Nothing;
        };
        let at = std::mem::replace(time, Instant::NEVER);
        while sent.first + REMEMBERED < number {
            sent.times.pop_front();
            sent.first += 1;
        }
        if at < Instant::NEVER {
            Known::Left(at)
        } else {
            Known::Again
        }
    }
}

/// What an end has counted.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Datagrams written, or read, from the run's start to its end.
    pub datagrams: u64,
    /// Of these, in the measured time.
    pub measured_datagrams: u64,
    /// Payload bytes read in the measured time, those of doubled datagrams once.
    pub delivered_bytes: u64,
    /// Delays of what was read in the measured time.
    pub delay: OneWayDelay,
}

/// The end that writes.
#[derive(Debug, Clone)]
pub struct Source {
    pub schedule: Schedule,
    /// When its application stops.
    pub stop: Instant,
    pub log: Log,
}

/// The end that reads.
#[derive(Debug, Clone)]
pub struct Sink {
    pub log: Log,
}

impl Source {
    /// Writes each datagram at its time to the socket at `address`.
    pub fn run(
        self,
        address: SocketAddr,
        (start, _): (Instant, Instant),
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0_u8; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
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
            let room = payload.len().min(NUMBER);
            payload[..room].copy_from_slice(&counted.datagrams.to_le_bytes()[..room]);
            let now = clock.now();
            // Before it is on its way, or it could arrive first.
            self.log.left(now);
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

/// Writes one datagram. Not if the run ended before the kernel would take it.
fn write(socket: &UdpSocket, payload: &[u8], stage: &Stage) -> io::Result<bool> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    loop {
        match socket.send(payload) {
            Ok(_) => return Ok(true),
            // The last is what was said of an earlier datagram.
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
    /// Reads what arrives at `address`, to the end of the run.
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
        // Switches the stamps on.
        let _ = sys::datagram::arrived(&socket);
        ready();
        let Some(clock) = stage.line.wait() else {
            return Ok(Outcome::default());
        };
        let mut reader = Reader {
            log: self.log,
            window,
            latest: 0,
            counted: Counted::default(),
        };
        let mut octets = vec![0; LARGEST];
        let mut is_over = false;
        loop {
            match socket.recv(&mut octets) {
                Ok(len) => reader.read(&octets[..len], arrival(&socket, clock)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if is_over {
                        break;
                    }
                    if stage.is_over() {
                        // What the engine gave to the kernel is there by now.
                        is_over = true;
                        socket.set_nonblocking(true)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Outcome {
            datagrams: Some(Box::new(reader.counted)),
            ..Outcome::default()
        })
    }
}

/// When the datagram that was read last had arrived, by the run's clock.
fn arrival(socket: &UdpSocket, clock: Clock) -> Instant {
    let now = clock.now();
    let stamp = sys::datagram::arrived(socket).ok();
    let age = stamp.and_then(|stamp| SystemTime::now().duration_since(stamp).ok());
    let nanos = age.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(0));
    Instant::START + now.saturating_since(Instant::START + Duration::from_nanos(nanos))
}

fn enlarge(socket: &UdpSocket, receives: bool) {
    // Without the right to more it is as much as everybody may have; what is lost for it the audit tells.
    if receives {
        if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(socket, BUFFER);
        }
    } else if sockopt::set_socket_send_buffer_size_force(socket, BUFFER).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, BUFFER);
    }
}

/// What is known of the datagrams read.
struct Reader {
    log: Log,
    window: (Instant, Instant),
    /// The highest number so far.
    latest: u64,
    counted: Counted,
}

impl Reader {
    fn read(&mut self, payload: &[u8], at: Instant) {
        self.counted.datagrams += 1;
        let known = self
            .number(payload)
            .map_or(Known::Nothing, |number| self.log.arrived(number));
        let (start, end) = self.window;
        if known == Known::Again || at < start || at >= end {
            return;
        }
        self.counted.measured_datagrams += 1;
        self.counted.delivered_bytes += payload.len() as u64;
        if let Known::Left(left) = known {
            self.counted.delay.record(at.saturating_since(left));
        }
    }

    /// A datagram's number: of those that its octets can mean, the one nearest to the latest.
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

    fn reader(log: &Log) -> Reader {
        Reader {
            log: log.clone(),
            window: (Instant::from_millis(10), Instant::from_millis(20)),
            latest: 0,
            counted: Counted::default(),
        }
    }

    /// Fails for a reader that takes the octets for the number.
    #[test]
    fn numbers_go_on_where_there_is_little_room() {
        let mut reader = reader(&Log::default());
        for number in [0, 100, 200, 256, 255, 380, 505] {
            let octets = u64::to_le_bytes(number);
            assert_eq!(reader.number(&octets[..1]), Some(number));
        }
        assert_eq!(reader.number(&u64::to_le_bytes(70_000)), Some(70_000));
        assert_eq!(reader.number(&[]), None);
    }

    /// Fails for a reader that counts a doubled datagram twice, or one from outside the measured time.
    #[test]
    fn each_datagram_counts_once_and_in_time() {
        let log = Log::default();
        for ms in 0..5 {
            log.left(Instant::from_millis(ms));
        }
        let mut reader = reader(&log);
        for (number, at) in [(0, 9), (2, 11), (1, 12), (2, 13), (3, 19), (4, 20)] {
            let mut payload = u64::to_le_bytes(number).to_vec();
            payload.resize(100, 0);
            reader.read(&payload, Instant::from_millis(at));
        }
        let counted = &reader.counted;
        assert_eq!((counted.datagrams, counted.measured_datagrams), (6, 3));
        assert_eq!(counted.delivered_bytes, 300);
        // 9, 11 and 16 ms.
        assert_eq!(counted.delay.mean_ms(), Some(12.0));
    }

    /// Fails for a log that keeps all, or one that forgets what is on its way.
    #[test]
    fn the_log_forgets_what_is_old() {
        let log = Log::default();
        for ms in 0..100_000 {
            log.left(Instant::from_millis(ms));
        }
        assert_eq!(
            log.arrived(99_999),
            Known::Left(Instant::from_millis(99_999))
        );
        assert_eq!(log.arrived(99_999), Known::Again);
        assert_eq!(log.arrived(10), Known::Nothing);
        assert_eq!(
            log.arrived(99_000),
            Known::Left(Instant::from_millis(99_000))
        );
        assert_eq!(log.arrived(100_000), Known::Nothing);
        assert!(log.lock().times.len() as u64 <= REMEMBERED + 1);
    }
}
