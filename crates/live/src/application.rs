//! Applications: threads inside the namespaces, with sockets as any program has them.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration as Pause,
};

use anabranch_core::{
    histogram::Histogram,
    units::{Duration, Instant},
};
use anabranch_model::{
    scenario::{Family, Protocol, Resolved, ResolvedFlow},
    topology,
    workload::{Config, Pace, RequestResponse},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, listen, send,
        socket_with, sockopt,
    },
};

use crate::{
    clock::{Clock, StartingLine},
    controls::Controls,
    datagram,
    directory::Directory,
    endpoint::Own,
    namespace::Namespace,
    sampler::Sample,
    settings::{OptionError, SocketOption, SocketSettings, connects_back},
    stream::{Check, Stream, Wrong},
    sys::tcp_info::{self, TcpInfo, attach_filter},
    transfers,
};

/// So often a thread that waits for its peer looks whether the run is over.
pub const LOOK: Pause = Pause::from_millis(20);
/// Connections that may wait to be taken: as many as the kernel permits (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;
/// Written or read at once.
pub const CHUNK: usize = 128 << 10;

/// Which end of a flow a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At `from`.
    Sender,
    /// At `to`.
    Receiver,
}

/// Whom to ask about a connection.
#[derive(Debug)]
pub enum Socket {
    Kernel(OwnedFd),
    Own(Own),
}

impl Socket {
    /// # Errors
    /// If the kernel has nothing to say of it.
    pub fn info(&self) -> io::Result<TcpInfo> {
        match self {
            Self::Kernel(socket) => TcpInfo::of(socket),
            Self::Own(own) => Ok(own.info()),
        }
    }
}

/// The connections of a run, for whoever asks about them.
#[derive(Debug, Default)]
pub struct Sockets {
    all: Mutex<Vec<(usize, Side, Socket)>>,
    /// Watches what senders receive.
    filter: OnceLock<OwnedFd>,
}

impl Sockets {
    /// The kernel is not asked about this one any more, and this copy of it closed.
    fn forget(&self, flow: usize, side: Side) {
        self.lock()
            .retain(|(of, which, _)| (*of, *which) != (flow, side));
    }
    fn add(&self, flow: usize, side: Side, socket: &impl AsFd) -> io::Result<()> {
        if side == Side::Sender {
            self.watch(socket)?;
        }
        let copy = socket.as_fd().try_clone_to_owned()?;
        self.lock().push((flow, side, Socket::Kernel(copy)));
        Ok(())
    }
    /// Every sender's socket is watched by this filter from now on.
    pub fn watch_with(&self, filter: OwnedFd) {
        let _ = self.filter.set(filter);
    }
    /// Watches a sender's socket, if anything watches them.
    pub fn watch(&self, socket: &impl AsFd) -> io::Result<()> {
        self.filter
            .get()
            .map_or(Ok(()), |filter| attach_filter(socket, filter))
    }
    pub fn add_own(&self, flow: usize, side: Side, own: Own) {
        self.lock().push((flow, side, Socket::Own(own)));
    }
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Side, Socket)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all applications of a run share.
#[derive(Debug, Default)]
pub struct Stage {
    pub line: StartingLine,
    pub sockets: Sockets,
    /// The run is over: everybody ends.
    pub over: AtomicBool,
    /// The user has left the shell.
    pub left: AtomicBool,
    /// Samples taken beside those at regular times.
    noted: Mutex<Vec<Sample>>,
}

impl Stage {
    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until then. Not if the run is over before.
    pub fn wait_until(&self, clock: Clock, then: Instant) -> bool {
        while clock.now() < then || !clock.until(then).is_zero() {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(clock.until(then).min(LOOK));
        }
        !self.is_over()
    }

    /// Samples a flow's sockets now.
    fn note(&self, flow: usize, clock: Clock) {
        let sockets = self.sockets.lock();
        let own = sockets.iter().filter(|(of, ..)| *of == flow);
        let samples = own.filter_map(|(_, side, socket)| Sample::of(flow, *side, socket, clock));
        self.noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(samples);
    }

    /// What was sampled so.
    pub fn take_noted(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What an application has seen.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// When the last byte of a file had arrived.
    pub completed: Option<Instant>,
    /// When each request was written, and how long its response took; `None` for one that has none yet.
    pub exchanges: Vec<(Instant, Option<Duration>)>,
    /// Octets given to TCP.
    pub written: u64,
    /// Octets taken from it.
    pub read: u64,
    /// The first of them that was not what the peer had written there.
    pub wrong: Option<Wrong>,
    /// How late what goes by the clock was written, in nanoseconds.
    pub lateness: Histogram<7>,
    /// What an end of a UDP flow has counted.
    pub datagrams: Option<Box<datagram::Counted>>,
    /// What an end of transfers one by one has counted.
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
    /// What is measured.
    window: (Instant, Instant),
}

#[derive(Debug, Clone)]
enum Role {
    /// Writes for as long as it may.
    Bulk,
    /// Writes so much.
    Source(u64),
    /// Writes by the clock.
    Paced(Pace),
    /// Reads so much, or all there is.
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
        let passive = flow.ends[usize::from(!connects_back(flow))];
        let address = SocketAddr::new(
            Directory::address(passive, flow.family == Family::V6),
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

    /// The host where it runs, by number.
    pub fn host(&self, resolved: &Resolved) -> usize {
        resolved.flows[self.flow].ends[self.side as usize]
    }

    /// Which end of its flow it is.
    pub const fn side(&self) -> Side {
        self.side
    }

    fn connects(&self) -> bool {
        matches!(
            self.role,
            Role::Bulk | Role::Source(_) | Role::Paced(_) | Role::Client(_)
        )
    }

    /// Runs it, on a thread of its own. `ready` is called when a peer may come.
    ///
    /// # Errors
    /// If the kernel refuses what has nothing to do with the path.
    pub fn run(
        self,
        namespace: &Namespace,
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        namespace.enter()?;
        let (to, window) = ((self.address, &self.settings), self.window);
        match self.role {
            Role::DatagramSource(end) => return end.run(self.address, window, stage, ready),
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
        let stream = match &listener {
            Some(listener) => accept(listener, stage)?,
            None => self.connect(clock, stage)?,
        };
        let Some(stream) = stream else {
            return Ok(Outcome::default());
        };
        if listener.is_some() {
            prepare(&stream)?;
            stage.sockets.add(self.flow, self.side, &stream)?;
        }
        self.play(&stream, clock, stage)
    }

    fn connect(&self, clock: Clock, stage: &Stage) -> io::Result<Option<TcpStream>> {
        if !stage.wait_until(clock, self.start) {
            return Ok(None);
        }
        let family = family(self.address);
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        self.settings.apply(&socket)?;
        prepare(&socket)?;
        stage.sockets.add(self.flow, self.side, &socket)?;
        while !stage.is_over() {
            match connect(&socket, &self.address) {
                Ok(()) | Err(Errno::ISCONN) => return Ok(Some(TcpStream::from(socket))),
                Err(Errno::INPROGRESS | Errno::ALREADY | Errno::AGAIN | Errno::INTR) => {}
                // A path that lets nothing through is no failure of ours.
                Err(Errno::TIMEDOUT | Errno::HOSTUNREACH) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn play(&self, stream: &TcpStream, clock: Clock, stage: &Stage) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut writing = Stream::written_by(self.flow, self.side as usize);
        let mut reading = Check::of(Stream::written_by(self.flow, 1 - self.side as usize));
        match &self.role {
            Role::Bulk => {
                let going = || !stage.is_over() && clock.now() < self.stop;
                write_while(stream, &mut writing, u64::MAX, going)?;
                if self.stop < self.end && !stage.is_over() {
                    // What the socket holds would be sent for some time yet. So the connection is broken off.
                    stage.note(self.flow, clock);
                    stage.sockets.forget(self.flow, self.side);
                }
            }
            Role::Source(size) => {
                // The whole file is the connection's from its beginning on.
                if write_while(stream, &mut writing, *size, || !stage.is_over())? == *size {
                    drop(stream.shutdown(std::net::Shutdown::Write));
                }
                // Until the peer closes, so that what is on the way arrives.
                read_while(stream, &mut reading, u64::MAX, || !stage.is_over())?;
            }
            Role::Paced(pace) => {
                crate::sys::priority::be_prompt();
                outcome.lateness = self.write_paced(*pace, (stream, &mut writing), clock, stage)?;
                drop(stream.shutdown(std::net::Shutdown::Write));
                read_while(stream, &mut reading, u64::MAX, || !stage.is_over())?;
            }
            Role::Sink(size) => {
                let most = size.unwrap_or(u64::MAX);
                let going = || {
                    self.settings.hold_window(stream);
                    !stage.is_over()
                };
                let read = read_while(stream, &mut reading, most, going)?;
                if size.is_some_and(|size| read == size) {
                    outcome.completed = Some(clock.now());
                    stage.note(self.flow, clock);
                }
                drop(stream.shutdown(std::net::Shutdown::Write));
            }
            Role::Server(what) => {
                let going = || !stage.is_over();
                let (request, response) = (what.request.get(), what.response.get());
                while read_while(stream, &mut reading, request, going)? == request
                    && write_while(stream, &mut writing, response, going)? == response
                {
                }
            }
            Role::Client(what) => {
                let going = || !stage.is_over() && clock.now() < self.stop;
                let (request, response) = (what.request.get(), what.response.get());
                while going() {
                    let asked = clock.now();
                    if write_while(stream, &mut writing, request, going)? != request {
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
        // The socket stays until all is over: what it counted is still to be read.
        (outcome.written, outcome.read) = (writing.position(), reading.read());
        outcome.wrong = reading.wrong().map(|octet| Wrong { octet, part: None });
        Ok(outcome)
    }

    /// Writes by the clock from now on; what the socket does not take waits. How late each write's turn came, but for those whose
    /// time passed while the socket was waited for: that is the path's doing.
    fn write_paced(
        &self,
        pace: Pace,
        (stream, content): (&TcpStream, &mut Stream),
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
                owed += u64::from(pace.payload());
                writes += 1;
                due = since.saturating_add(pace.after(writes));
            }
            owed -= write_now(stream, content, owed)?;
            if owed == 0 {
                continue;
            }
            // Until the next is due: what is owed then is more.
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

/// How late turns to write came that this thread alone had to keep.
struct Turns {
    /// In nanoseconds.
    lateness: Histogram<7>,
    /// Since then the socket has had room.
    free: Instant,
}

impl Turns {
    fn from(start: Instant) -> Self {
        Self {
            lateness: Histogram::default(),
            free: start,
        }
    }
    /// The turn that is due at `due` comes now. One whose time passed while the socket was full says nothing of this thread.
    fn begin(&mut self, due: Instant, now: Instant) {
        if self.free <= due {
            self.lateness.record(now.saturating_since(due).as_nanos());
        }
    }
    /// The socket was waited for, until now.
    fn waited(&mut self, now: Instant) {
        self.free = now;
    }
}

/// What the two ends of a flow do.
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

impl SocketSettings {
    /// Before a socket listens or connects.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(self.try_on(socket)?)
    }

    /// The same, with which option it was that the socket would not have.
    pub fn try_on(&self, socket: &impl AsFd) -> Result<(), OptionError> {
        let failed = |option| move |source| OptionError { option, source };
        if let Some(congestion) = &self.congestion {
            sockopt::set_tcp_congestion(socket, congestion)
                .map_err(io::Error::from)
                .map_err(failed(SocketOption::Congestion))?;
        }
        tcp_info::set_max_segment(socket, self.max_segment)
            .map_err(failed(SocketOption::MaxSegment))?;
        self.window.map_or(Ok(()), |bytes| {
            tcp_info::set_window(socket, bytes).map_err(failed(SocketOption::Window))
        })
    }
}

impl SocketSettings {
    /// Linux (6.6 and later) forgets the bound of a window when it learns how large packets are in memory, so it is told again with every
    /// read. It costs nothing where it has not changed.
    pub fn hold_window(&self, socket: &impl AsFd) {
        if let Some(bytes) = self.window {
            // It was taken before; a connection that is gone has none.
            drop(tcp_info::bound_window(socket, bytes));
        }
    }
}

/// A socket that carries data: no call on it waits for long, and closing it leaves nothing behind.
pub fn prepare(socket: &impl AsFd) -> io::Result<()> {
    for timeout in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(socket, timeout, Some(LOOK))?;
    }
    sockopt::set_tcp_nodelay(socket, true)?;
    Ok(sockopt::set_socket_linger(socket, Some(Pause::ZERO))?)
}

/// A socket that listens. What connections inherit is set before one can come: some of it counts from the first packet on.
pub fn listen_at(address: SocketAddr, settings: &SocketSettings) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(family(address), SocketType::STREAM, flags, None)?;
    settings.apply(&socket)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

pub const fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

fn accept(listener: &TcpListener, stage: &Stage) -> io::Result<Option<TcpStream>> {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK.subsec_nanos().into(),
    };
    while !stage.is_over() {
        let mut waiting = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut waiting, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return listener.accept().map(|(stream, _)| Some(stream)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Whether a call only took too long, or was interrupted.
pub fn is_late(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Writes `bytes` bytes of `content`, and says how many were.
fn write_while(
    mut stream: &TcpStream,
    content: &mut Stream,
    bytes: u64,
    going: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut written = 0;
    // Octets of the chunk that are made and not yet taken.
    let mut made = 0..0;
    while written < bytes && going() {
        if made.is_empty() {
            content.peek(&mut chunk);
            made = 0..chunk.len();
        }
        let part = made
            .len()
            .min(usize::try_from(bytes - written).unwrap_or(CHUNK));
        match stream.write(&chunk[made.start..made.start + part]) {
            Ok(n) => {
                written += n as u64;
                made.start += n;
                content.advance(n as u64);
            }
            Err(error) if is_late(&error) => {}
            Err(error) if is_lost(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Writes as much of `bytes` bytes as the socket takes at once, and says how much that was.
fn write_now(stream: &TcpStream, content: &mut Stream, bytes: u64) -> io::Result<u64> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let mut chunk = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut written = 0;
    while written < bytes {
        let left = usize::try_from(bytes - written).unwrap_or(CHUNK);
        let part = left.min(chunk.len());
        content.peek(&mut chunk[..part]);
        match send(stream, &chunk[..part], flags) {
            Ok(n) => {
                written += n as u64;
                content.advance(n as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) if is_lost(&error.into()) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

/// Reads up to `bytes` bytes, and says how many there were.
fn read_while(
    mut stream: &TcpStream,
    content: &mut Check,
    bytes: u64,
    going: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut read = 0;
    while read < bytes && going() {
        let part = chunk
            .len()
            .min(usize::try_from(bytes - read).unwrap_or(CHUNK));
        match stream.read(&mut chunk[..part]) {
            Ok(0) => break,
            Ok(n) => {
                content.take(&chunk[..n]);
                read += n as u64;
            }
            Err(error) if is_late(&error) => {}
            Err(error) if is_lost(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Whether the path ended a connection: it gave up, or the peer did.
pub fn is_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | HostUnreachable
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn settings() -> SocketSettings {
        SocketSettings {
            congestion: Some("reno".to_owned()),
            max_segment: 700,
            window: None,
        }
    }

    fn here(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Fails for settings that are made of the listening socket when a connection is there, or of nobody.
    #[test]
    fn connections_inherit_what_is_set() {
        let listener = listen_at(here(0), &settings()).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let _client = TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().expect("it is there");
        assert_eq!(sockopt::tcp_congestion(&stream).expect("set"), "reno");
        assert!(TcpInfo::of(&stream).expect("of TCP").snd_mss <= 700);
    }

    /// Fails for a socket that can be reached before it has been told what its connections inherit.
    #[test]
    fn what_cannot_be_set_never_listens() {
        let port = {
            let free = TcpListener::bind(here(0)).expect("a free port");
            free.local_addr().expect("bound").port()
        };
        let wrong = SocketSettings {
            congestion: Some("no-such-control".to_owned()),
            ..settings()
        };
        // Taken by another: who binds first does not come to the settings.
        let _taken = TcpListener::bind(here(port)).expect("still free");
        let error = listen_at(here(port), &wrong).expect_err("no such control");
        assert_ne!(error.kind(), io::ErrorKind::AddrInUse);
    }

    /// Fails for turns that count the wait for the socket, and for such as count nothing any more once they have waited.
    #[test]
    fn a_wait_for_the_socket_is_not_lateness() {
        let at = Instant::from_millis;
        let mut turns = Turns::from(at(0));
        turns.begin(at(10), at(11));
        turns.waited(at(35));
        // Its time passed while the socket was full.
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
