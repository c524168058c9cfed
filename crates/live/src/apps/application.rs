//! Applications: threads in the namespaces that use ordinary sockets.

use std::{
    io,
    net::{SocketAddr, TcpStream},
};

use anabranch_core::{
    histogram::Histogram,
    units::{Duration, Instant},
};
use anabranch_engine::{network::Ended, topology};
use anabranch_scenario::{
    Family, Protocol, Resolved, ResolvedFlow,
    workload::{Config, Pace, RequestResponse},
};
use rustix::{
    io::Errno,
    net::{SocketFlags, SocketType, connect, socket_with},
};

use crate::{
    apps::{
        datagram,
        socket::{
            Connection, accept, ending, family, listen_at, prepare, read_while, write_now,
            write_while,
        },
        stage::{LOOK, Side, Stage},
        stream::{Check, Stream, Wrong},
        transfers,
    },
    kernel::{clock::Clock, namespace::Namespace},
    plan::{
        controls::Controls,
        devices,
        directory::Directory,
        settings::{SocketSettings, connects_back},
    },
};

/// The observations of an application.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The time at which the last byte of a file arrived.
    pub completed: Option<Instant>,
    /// The kind and time of an end other than by FIN.
    pub broken: Option<(Ended, Instant)>,
    /// The time of each request, and the delay of its response; `None` without a response.
    pub exchanges: Vec<(Instant, Option<Duration>)>,
    /// Octets written to the socket.
    pub written: u64,
    /// Octets read from the socket.
    pub read: u64,
    /// The first octet that differs from what the peer wrote.
    pub wrong: Option<Wrong>,
    /// Lateness of scheduled writes, in nanoseconds.
    pub lateness: Histogram<7>,
    /// Counts of an end of a UDP flow.
    pub datagrams: Option<Box<datagram::Counted>>,
    /// Counts of an end of a flow of many transfers.
    pub transfers: Option<Box<transfers::Counted>>,
}

/// One end of a flow.
#[derive(Debug)]
pub struct Application {
    flow: usize,
    side: Side,
    role: Role,
    settings: SocketSettings,
    address: SocketAddr,
    start: Instant,
    stop: Instant,
    /// The end of the run.
    end: Instant,
    /// The measured time.
    window: (Instant, Instant),
}

#[derive(Debug, Clone)]
enum Role {
    /// Writes until it stops.
    Bulk,
    /// Writes this number of octets.
    Source(u64),
    /// Writes on a schedule.
    Paced(Pace),
    /// Reads this number of octets, or all.
    Sink(Option<u64>),
    Server(RequestResponse),
    Client(RequestResponse),
    DatagramSource(datagram::Source),
    DatagramSink(datagram::Sink),
    TransferSource(Box<transfers::Source>),
    TransferSink(transfers::Sink),
}

impl Application {
    /// Both ends of a flow, by side.
    pub fn of(
        resolved: &Resolved,
        index: usize,
        controls: &Controls,
        stamps: &datagram::Stamps,
    ) -> [Self; 2] {
        let flow = &resolved.flows[index];
        let congestion = controls.name(index);
        let passive = devices::ends(resolved, flow)[usize::from(!connects_back(flow))];
        let address = SocketAddr::new(
            devices::address(passive, flow.family == Family::V6),
            Directory::port(index),
        );
        let end = Instant::START + resolved.duration;
        let stop = flow.stop.unwrap_or(end).min(end);
        let content = Stream::written_by(index, Side::Sender as usize);
        let [sender, receiver] = roles(flow, resolved.seed, stop, content, stamps);
        [(Side::Sender, sender), (Side::Receiver, receiver)].map(|(side, role)| Self {
            flow: index,
            side,
            role,
            settings: SocketSettings::of(flow, resolved, congestion),
            address,
            start: flow.start,
            stop,
            end,
            window: (flow.start.max(Instant::START + resolved.warmup), stop),
        })
    }

    /// The number of the host where the application runs.
    pub fn host(&self, resolved: &Resolved) -> usize {
        resolved.flows[self.flow].ends[self.side as usize]
    }

    /// The end of the flow at which the application runs.
    pub const fn side(&self) -> Side {
        self.side
    }

    fn connects(&self) -> bool {
        matches!(
            self.role,
            Role::Bulk | Role::Source(_) | Role::Paced(_) | Role::Client(_)
        )
    }

    /// Runs the application in the calling thread, which enters the namespace. Calls `ready` when a
    /// peer may connect.
    ///
    /// # Errors
    /// If the kernel refuses a call for a reason other than the path.
    pub fn run(
        self,
        namespace: &Namespace,
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        namespace.enter()?;
        let (to, window) = ((self.address, &self.settings), self.window);
        match self.role {
            Role::DatagramSource(end) => {
                let ends = (self.settings.local, self.address);
                return end.run(ends, window, stage, ready);
            }
            Role::DatagramSink(end) => return end.run(self.address, window, stage, ready),
            Role::TransferSource(end) => return end.run(to, window, stage, ready),
            Role::TransferSink(end) => return end.run(to, window, stage, ready),
            _ => {}
        }
        let listener = if self.connects() {
            None
        } else {
            Some(listen_at(self.address, &self.settings)?)
        };
        ready();
        let Some(clock) = stage.line.wait() else {
            return Ok(Outcome::default());
        };
        let mut outcome = Outcome::default();
        let stream = match &listener {
            Some(listener) => accept(listener, stage)?,
            None => self.connect(clock, stage, &mut outcome)?,
        };
        let Some(stream) = stream else {
            return Ok(outcome);
        };
        if listener.is_some() {
            prepare(&stream, &self.settings)?;
            stage.sockets.add(self.flow, self.side, &stream)?;
        }
        self.play(&Connection::new(stream, clock), clock, stage)
    }

    fn connect(
        &self,
        clock: Clock,
        stage: &Stage,
        outcome: &mut Outcome,
    ) -> io::Result<Option<TcpStream>> {
        if !stage.wait_until(clock, self.start) {
            return Ok(None);
        }
        let family = family(self.address);
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        self.settings.apply(&socket)?;
        prepare(&socket, &self.settings)?;
        self.settings.bind_local(&socket)?;
        stage.sockets.add(self.flow, self.side, &socket)?;
        while !stage.is_over() && clock.now() < self.stop {
            match connect(&socket, &self.address) {
                Ok(()) | Err(Errno::ISCONN) => return Ok(Some(TcpStream::from(socket))),
                Err(Errno::INPROGRESS | Errno::ALREADY | Errno::AGAIN | Errno::INTR) => {}
                Err(error) => {
                    // A path that delivers nothing is not an error of the application.
                    let error = io::Error::from(error);
                    let ended = ending(&error).ok_or(error)?;
                    outcome.broken = Some((ended, clock.now()));
                    return Ok(None);
                }
            }
        }
        if self.stop < self.end && !stage.is_over() {
            // The application stops before the connection is open, and closes its socket.
            outcome.broken = Some((Ended::GaveUp, self.stop));
            stage.note(self.flow, clock);
            stage.sockets.forget(self.flow, self.side);
        }
        Ok(None)
    }

    fn play(&self, stream: &Connection, clock: Clock, stage: &Stage) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut writing = Stream::written_by(self.flow, self.side as usize);
        let mut reading = Check::of(Stream::written_by(self.flow, 1 - self.side as usize));
        match &self.role {
            Role::Bulk => {
                let going = || !stage.is_over() && clock.now() < self.stop;
                write_while(stream, &mut writing, u64::MAX, going)?;
                if self.stop < self.end && !stage.is_over() {
                    // The kernel would go on sending the contents of the socket for some time, so
                    // the connection is aborted.
                    stage.note(self.flow, clock);
                    stage.sockets.forget(self.flow, self.side);
                }
            }
            Role::Source(size) => {
                // The connection has the whole file from its start.
                if write_while(stream, &mut writing, *size, || !stage.is_over())? == *size {
                    drop(stream.shutdown(std::net::Shutdown::Write));
                }
                // Reads until the peer closes, so that data in flight arrives.
                read_while(stream, &mut reading, u64::MAX, || !stage.is_over())?;
            }
            Role::Paced(pace) => {
                crate::kernel::sys::priority::be_prompt();
                outcome.lateness = self.write_paced(pace, (stream, &mut writing), clock, stage)?;
                drop(stream.shutdown(std::net::Shutdown::Write));
                read_while(stream, &mut reading, u64::MAX, || !stage.is_over())?;
            }
            Role::Sink(size) => {
                let most = size.unwrap_or(u64::MAX);
                let going = || {
                    self.settings.hold_window(&**stream);
                    !stage.is_over()
                };
                let read = read_while(stream, &mut reading, most, going)?;
                if size.is_some_and(|size| read == size) {
                    outcome.completed = Some(clock.now());
                    stage.marks.add(self.flow);
                    stage.note(self.flow, clock);
                }
                drop(stream.shutdown(std::net::Shutdown::Write));
            }
            Role::Server(what) => {
                let going = || !stage.is_over();
                let (request, response) = (what.request.get(), what.response.get());
                while read_while(stream, &mut reading, request, going)? == request {
                    let parts = (0..).map_while(|number| what.response_part(number));
                    if write_parts(stream, &mut writing, parts, going)? != response {
                        break;
                    }
                }
            }
            Role::Client(what) => {
                let going = || !stage.is_over() && clock.now() < self.stop;
                let (request, response) = (what.request.get(), what.response.get());
                while going() {
                    let asked = clock.now();
                    let parts = (0..).map_while(|number| what.request_part(number));
                    if write_parts(stream, &mut writing, parts, going)? != request {
                        break;
                    }
                    let there = read_while(stream, &mut reading, response, || !stage.is_over())?;
                    let took = (there == response).then(|| clock.now() - asked);
                    outcome.exchanges.push((asked, took));
                    if took.is_none() {
                        break;
                    }
                    let wake = clock.now().saturating_add(what.think);
                    while going() && clock.now() < wake {
                        std::thread::sleep(clock.until(wake).min(LOOK));
                    }
                }
            }
            Role::DatagramSource(_)
            | Role::DatagramSink(_)
            | Role::TransferSource(_)
            | Role::TransferSink(_) => unreachable!("they have sockets of their own"),
        }
        // The socket stays open until the end of the run, because its counters are read then.
        (outcome.written, outcome.read) = (writing.position(), reading.read());
        outcome.broken = stream.broken();
        outcome.wrong = reading.wrong().map(|octet| Wrong { octet, part: None });
        Ok(outcome)
    }

    /// Writes on the schedule from now on; data that the socket does not accept waits. Returns the
    /// lateness of the writes. Writes that became due while the socket was full are excluded,
    /// because the path caused their delay.
    fn write_paced(
        &self,
        pace: &Pace,
        (stream, content): (&Connection, &mut Stream),
        clock: Clock,
        stage: &Stage,
    ) -> io::Result<Histogram<7>> {
        let going = || !stage.is_over() && clock.now() < self.stop;
        let (since, mut writes, mut owed) = (clock.now(), 0, 0_u64);
        let mut turns = Turns::from(since);
        loop {
            let mut due = since.saturating_add(pace.after(writes));
            if owed == 0 && (due >= self.stop || !stage.wait_until(clock, due)) {
                return Ok(turns.lateness);
            }
            if !going() {
                return Ok(turns.lateness);
            }
            let now = clock.now();
            if owed == 0 {
                turns.begin(due, now);
            }
            while due <= now {
                owed += u64::from(pace.payload(writes));
                writes += 1;
                due = since.saturating_add(pace.after(writes));
            }
            owed -= write_now(stream, content, owed)?;
            if owed == 0 {
                continue;
            }
            // Data that becomes due meanwhile is added to the debt.
            let before = |clock: Clock| clock.now() < due;
            let written = write_while(stream, content, owed, || going() && before(clock))?;
            turns.waited(clock.now());
            if written < owed && going() && before(clock) {
                // The path has ended the connection.
                return Ok(turns.lateness);
            }
            owed -= written;
        }
    }
}

/// Writes parts of these sizes, one per call, until one is not written in full. Returns the bytes
/// written.
fn write_parts(
    stream: &Connection,
    content: &mut Stream,
    parts: impl Iterator<Item = u64>,
    going: impl Fn() -> bool + Copy,
) -> io::Result<u64> {
    let mut written = 0;
    for part in parts {
        let taken = write_while(stream, content, part, going)?;
        written += taken;
        if taken < part {
            break;
        }
    }
    Ok(written)
}

/// Lateness of scheduled writes that this thread caused.
struct Turns {
    /// In nanoseconds.
    lateness: Histogram<7>,
    /// The time since which the socket has had room.
    free: Instant,
}

impl Turns {
    fn from(start: Instant) -> Self {
        Self {
            lateness: Histogram::default(),
            free: start,
        }
    }
    /// Records that the write due at `due` happens now. A write that became due while the socket
    /// was full is not counted.
    fn begin(&mut self, due: Instant, now: Instant) {
        if self.free <= due {
            self.lateness.record(now.saturating_since(due).as_nanos());
        }
    }
    /// Records that the socket was full until now.
    fn waited(&mut self, now: Instant) {
        self.free = now;
    }
}

/// The roles of the two ends of a flow.
fn roles(
    flow: &ResolvedFlow,
    seed: u64,
    stop: Instant,
    content: Stream,
    stamps: &datagram::Stamps,
) -> [Role; 2] {
    if flow.protocol == Protocol::Udp {
        let log = datagram::Log::default();
        let source = datagram::Source {
            schedule: topology::datagrams(flow, seed),
            stop,
            class: flow.dscp << 2,
            log: log.clone(),
            content,
        };
        return [
            Role::DatagramSource(source),
            Role::DatagramSink(datagram::Sink {
                log,
                stamps: stamps.clone(),
                content,
            }),
        ];
    }
    if let Some(arrivals) = topology::arrivals(flow, seed) {
        let ledger = transfers::Ledger::default();
        let source = transfers::Source {
            arrivals,
            stop,
            ledger: ledger.clone(),
            content,
        };
        return [
            Role::TransferSource(Box::new(source)),
            Role::TransferSink(transfers::Sink { ledger, content }),
        ];
    }
    match &flow.workload {
        Config::RequestResponse(what) => [Role::Server(what.clone()), Role::Client(what.clone())],
        Config::File(file) => {
            let size = file.size.get();
            [Role::Source(size), Role::Sink(Some(size))]
        }
        Config::Paced(paced) => [Role::Paced(topology::pace(paced)), Role::Sink(None)],
        _ => [Role::Bulk, Role::Sink(None)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detects lateness that includes the wait for the socket, and lateness that is no longer
    /// counted after a wait.
    #[test]
    fn a_wait_for_the_socket_is_not_lateness() {
        let at = Instant::from_millis;
        let mut turns = Turns::from(at(0));
        turns.begin(at(10), at(11));
        turns.waited(at(35));
        // Became due while the socket was full.
        turns.begin(at(20), at(35));
        turns.begin(at(40), at(43));
        let late: Vec<_> = [50.0, 100.0]
            .map(|share| turns.lateness.percentile(share).map(Duration::from_nanos))
            .to_vec();
        assert_eq!(turns.lateness.count(), 2);
        assert!(late[0] < Some(Duration::from_micros(1100)), "{late:?}");
        assert!(late[1] >= Some(Duration::from_micros(2900)), "{late:?}");
    }
}
