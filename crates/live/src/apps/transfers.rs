//! Flows of many transfers, each on a separate connection: one thread opens and writes them all,
//! another reads.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
    time::Duration as Pause,
};

use anabranch_core::{histogram::Histogram, units::Instant};
use anabranch_engine::network::Completions;
use anabranch_scenario::workload::Arrivals;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{SocketFlags, SocketType, connect, socket_with},
};

use crate::{
    apps::{
        application::Outcome,
        socket::{CHUNK, family, is_late, is_lost, listen_at, prepare},
        stage::{LOOK, Stage},
        stream::{Check, Part, Stream, Wrong},
    },
    kernel::{
        clock::Clock,
        descriptors::explain,
        sys::{self, tcp_info::TcpInfo},
    },
    plan::settings::SocketSettings,
};

/// Octets generated per write. Octets that the socket does not accept are generated again.
const PART: usize = 16 << 10;
/// `TCP_CLOSE`.
const CLOSED: u8 = 7;

/// The transfers that have begun, by local port.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<BTreeMap<u16, Begun>>>);

#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Instant,
    size: u64,
    /// Counted from 0.
    number: u64,
}

impl Ledger {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u16, Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of an end in the measured time.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Transfers begun, at the writing end; completion times, at the reading end.
    pub completions: Completions,
    /// Bytes read.
    pub delivered_bytes: u64,
    /// Segments with data sent.
    pub sent_packets: u64,
    /// Segments retransmitted.
    pub retransmitted_packets: u64,
    /// Retransmissions of segments that the peer had already.
    pub spurious_retransmissions: u64,
    /// Timeouts; `None` if the kernel does not count them.
    pub timeouts: Option<u64>,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            completions: Completions {
                started: 0,
                times: Vec::new(),
            },
            delivered_bytes: 0,
            sent_packets: 0,
            retransmitted_packets: 0,
            spurious_retransmissions: 0,
            timeouts: Some(0),
        }
    }
}

impl Counted {
    fn add(&mut self, writing: &Writing) -> io::Result<()> {
        let (info, before) = (&TcpInfo::of(&writing.stream)?, &writing.before);
        // The kernel's counters have 32 bits and wrap.
        let since = |of: fn(&TcpInfo) -> u32| u64::from(of(info).wrapping_sub(of(before)));
        let retransmitted = since(|info| info.total_retrans);
        let syns = writing.syns(info).saturating_sub(writing.syns(before));
        let sent = since(|info| info.data_segs_out) + u64::from(syns);
        // A retransmitted FIN without data counts as a retransmission too.
        self.sent_packets += sent.max(retransmitted);
        self.retransmitted_packets += retransmitted;
        // A DSACK also reports a copy that the network made of a segment sent once.
        self.spurious_retransmissions += since(|info| info.dsack_dups).min(retransmitted);
        let timeouts = u64::from(info.total_rto.wrapping_sub(before.total_rto));
        self.timeouts = self
            .timeouts
            .filter(|_| info.knows_total_rto)
            .map(|sum| sum + timeouts);
        Ok(())
    }
}

/// The writing end.
#[derive(Debug, Clone)]
pub struct Source {
    pub arrivals: Arrivals,
    /// No transfer begins from this time on.
    pub stop: Instant,
    pub ledger: Ledger,
    /// The content, except the transfer's number.
    pub content: Stream,
}

/// The reading end.
#[derive(Debug, Clone)]
pub struct Sink {
    pub ledger: Ledger,
    /// The expected content, except the transfer's number.
    pub content: Stream,
}

/// A transfer at the writing end.
#[derive(Debug)]
struct Writing {
    stream: TcpStream,
    port: u16,
    content: Stream,
    size: u64,
    /// The state when the measured time began.
    before: TcpInfo,
    /// Retransmissions of the SYN, once the connection is open.
    opening: Option<u32>,
}

impl Writing {
    /// Retransmitted SYNs.
    fn syns(&self, info: &TcpInfo) -> u32 {
        let opening = self.opening.unwrap_or(info.total_retrans);
        info.total_retrans.min(opening)
    }
}

impl Source {
    /// Begins each transfer at its time, to the socket at `address`.
    pub fn run(
        mut self,
        (address, settings): (SocketAddr, &SocketSettings),
        window: (Instant, Instant),
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        ready();
        let Some(clock) = stage.line.wait() else {
            return Ok(Outcome::default());
        };
        sys::priority::be_prompt();
        let mut chunk = vec![0; CHUNK];
        let mut begun = 0;
        let mut lateness = Histogram::default();
        let mut counted = Counted::default();
        let mut open: Vec<Writing> = Vec::new();
        let (start, end) = window;
        let (mut is_measuring, mut is_final) = (start <= self.arrivals.due, false);
        while !stage.is_over() {
            let now = clock.now();
            if !is_measuring && now >= start {
                is_measuring = true;
                // Transfers that ended before do not count.
                counted = Counted::default();
                for writing in &mut open {
                    writing.before = TcpInfo::of(&writing.stream)?;
                }
            }
            if !is_final && now >= end {
                is_final = true;
                count_open(&mut counted, &open)?;
            }
            while self.arrivals.due <= now && self.arrivals.due < self.stop {
                let transfer = self.arrivals.draw();
                lateness.record(now.saturating_since(transfer.at).as_nanos());
                let counts = transfer.at >= start && transfer.at < end;
                counted.completions.started += u64::from(counts);
                let what = Begun {
                    at: transfer.at,
                    size: transfer.size,
                    number: begun,
                };
                begun += 1;
                let writing = self
                    .begin(address, settings, what)
                    .map_err(|error| explain(error, open.len()))?;
                stage.sockets.watch(&writing.stream)?;
                open.push(writing);
            }
            // A transfer after the stop is never drawn.
            let mut next = if self.arrivals.due < self.stop {
                clock.until(self.arrivals.due).min(LOOK)
            } else {
                LOOK
            };
            for edge in [start, end] {
                if edge > now {
                    next = next.min(clock.until(edge));
                }
            }
            wait(&open, next)?;
            let mut index = 0;
            while index < open.len() {
                if open[index].go_on(&mut chunk)? {
                    index += 1;
                    continue;
                }
                let ended = open.swap_remove(index);
                self.ledger.lock().remove(&ended.port);
                if !is_final {
                    counted.add(&ended)?;
                }
            }
        }
        if !is_final {
            count_open(&mut counted, &open)?;
        }
        Ok(Outcome {
            lateness,
            transfers: Some(Box::new(counted)),
            ..Outcome::default()
        })
    }

    fn begin(
        &self,
        address: SocketAddr,
        settings: &SocketSettings,
        begun: Begun,
    ) -> io::Result<Writing> {
        let family = family(address);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        settings.apply(&socket)?;
        prepare(&socket, settings)?;
        settings.bind_local(&socket)?;
        // Locked until the transfer is entered: the other end may look it up as soon as the SYN is
        // in flight.
        let mut ledger = self.ledger.lock();
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        let port = stream.local_addr()?.port();
        ledger.insert(port, begun);
        Ok(Writing {
            stream,
            port,
            content: self.content.numbered(begun.number),
            size: begun.size,
            before: TcpInfo::default(),
            opening: None,
        })
    }
}

fn count_open(counted: &mut Counted, open: &[Writing]) -> io::Result<()> {
    for writing in open {
        counted.add(writing)?;
    }
    Ok(())
}

/// A socket and the event that it waits for.
trait Waits: AsFd {
    fn what(&self) -> PollFlags;
}

impl AsFd for Writing {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
impl Waits for Writing {
    fn what(&self) -> PollFlags {
        if self.left() > 0 {
            PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }
}

fn wait(all: &[impl Waits], longest: Pause) -> io::Result<()> {
    wait_beside(None::<&TcpListener>, all, longest)
}

fn wait_beside(listener: Option<&impl AsFd>, all: &[impl Waits], longest: Pause) -> io::Result<()> {
    let first = listener.map(|listener| PollFd::new(listener, PollFlags::IN));
    let rest = all.iter().map(|one| PollFd::new(one, one.what()));
    let mut waiting: Vec<PollFd<'_>> = first.into_iter().chain(rest).collect();
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: longest.min(LOOK).subsec_nanos().into(),
    };
    match poll(&mut waiting, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Writing {
    /// Octets still to be written.
    const fn left(&self) -> u64 {
        self.size - self.content.position()
    }

    /// Makes all progress that is possible now. Returns whether the transfer goes on.
    fn go_on(&mut self, chunk: &mut [u8]) -> io::Result<bool> {
        while self.left() > 0 {
            let left = usize::try_from(self.left()).unwrap_or(CHUNK);
            let part = left.min(chunk.len()).min(PART);
            self.content.peek(&mut chunk[..part]);
            match (&self.stream).write(&chunk[..part]) {
                Ok(n) => {
                    if self.opening.is_none() {
                        self.opening = Some(TcpInfo::of(&self.stream)?.total_retrans);
                    }
                    self.content.advance(n as u64);
                }
                Err(error) if is_late(&error) || is_under_way(&error) => return Ok(true),
                Err(error) if is_lost(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.left() == 0 {
                // An error of the connection appears in the read below.
                drop(self.stream.shutdown(Shutdown::Write));
            }
        }
        // The peer closes when it has received everything.
        let mut octets = [0; 64];
        match (&self.stream).read(&mut octets) {
            Ok(0) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) if is_late(&error) => Ok(true),
            Err(error) if is_lost(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether a connection is not open yet or cannot open: a path that delivers nothing is not an
/// error here.
fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotConnected
}

/// A transfer at the reading end.
#[derive(Debug)]
struct Reading {
    stream: TcpStream,
    /// The transfer and its check; `None` if the other end has already removed it.
    known: Option<(Begun, Check)>,
    /// Both ends have closed their direction.
    is_closing: bool,
}

impl AsFd for Reading {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
impl Waits for Reading {
    fn what(&self) -> PollFlags {
        PollFlags::IN
    }
}

impl Sink {
    /// Reads the transfers that arrive at `address` until the end of the run.
    pub fn run(
        self,
        (address, settings): (SocketAddr, &SocketSettings),
        window: (Instant, Instant),
        stage: &Stage,
        ready: impl FnOnce(),
    ) -> io::Result<Outcome> {
        let listener = listen_at(address, settings)?;
        listener.set_nonblocking(true)?;
        ready();
        let Some(clock) = stage.line.wait() else {
            return Ok(Outcome::default());
        };
        sys::priority::be_prompt();
        let mut counted = Counted::default();
        let mut chunk = vec![0; CHUNK];
        let (mut open, mut closing) = (Vec::<Reading>::new(), Vec::<Reading>::new());
        let mut wrong = None;
        while !stage.is_over() {
            wait_beside(Some(&listener), &open, LOOK)?;
            loop {
                match listener.accept() {
                    Ok((stream, peer)) => {
                        prepare(&stream, settings)?;
                        stream.set_nonblocking(true)?;
                        let begun = self.ledger.lock().get(&peer.port()).copied();
                        let check = |begun: Begun| Check::of(self.content.numbered(begun.number));
                        open.push(Reading {
                            stream,
                            known: begun.map(|begun| (begun, check(begun))),
                            is_closing: false,
                        });
                    }
                    Err(error) if is_late(&error) => break,
                    // The connection was aborted before it was accepted.
                    Err(error) if is_lost(&error) => {}
                    Err(error) => return Err(explain(error, open.len() + closing.len())),
                }
            }
            let mut index = 0;
            while index < open.len() {
                let reading: &mut Reading = &mut open[index];
                settings.hold_window(&reading.stream);
                if reading.go_on(&mut chunk, clock, window, &mut counted)? {
                    index += 1;
                    continue;
                }
                let ended = open.swap_remove(index);
                wrong = wrong.or(ended.wrong());
                if ended.is_closing {
                    closing.push(ended);
                }
            }
            // Closing a socket before its peer has acknowledged the FIN would abort the connection.
            closing.retain(|one| TcpInfo::of(&one.stream).is_ok_and(|info| info.state != CLOSED));
        }
        Ok(Outcome {
            wrong: open.iter().fold(wrong, |wrong, one| wrong.or(one.wrong())),
            transfers: Some(Box::new(counted)),
            ..Outcome::default()
        })
    }
}

impl Reading {
    /// The first octet that differs from the written one.
    fn wrong(&self) -> Option<Wrong> {
        let (begun, check) = self.known.as_ref()?;
        let octet = check.wrong()?;
        Some(Wrong {
            octet,
            part: Some(Part::Transfer(begun.number)),
        })
    }

    /// Reads the available octets. Returns whether more may follow.
    fn go_on(
        &mut self,
        chunk: &mut [u8],
        clock: Clock,
        (start, end): (Instant, Instant),
        counted: &mut Counted,
    ) -> io::Result<bool> {
        loop {
            match (&self.stream).read(chunk) {
                Ok(0) => {
                    // The peer closes only after it has written everything.
                    if let Some((begun, check)) = &mut self.known {
                        check.end(begun.size);
                    }
                    self.is_closing = true;
                    drop(self.stream.shutdown(Shutdown::Write));
                    return Ok(false);
                }
                Ok(n) => {
                    let now = clock.now();
                    let mut complete = None;
                    if let Some((begun, check)) = &mut self.known {
                        check.take(&chunk[..n]);
                        complete = (begun.size == check.read()).then_some(now - begun.at);
                    }
                    if now < start || now >= end {
                        continue;
                    }
                    counted.delivered_bytes += n as u64;
                    counted.completions.times.extend(complete);
                }
                Err(error) if is_late(&error) => return Ok(true),
                Err(error) if is_lost(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::workload::Sizes;

    use super::*;
    use crate::kernel::namespace::Namespace;

    /// A host with ten ports starts many transfers without timestamps. Detects an end that passes
    /// on the kernel's message alone.
    #[test]
    fn a_host_without_a_free_port_explains_the_error() {
        let Ok(namespace) = Namespace::new() else {
            assert!(
                std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
                "ANABRANCH_LIVE=required: no namespaces"
            );
            eprintln!("SKIPPED: no namespaces");
            return;
        };
        namespace
            .set(&[
                ("net/ipv4/ip_local_port_range", "40000 40009".to_owned()),
                ("net/ipv4/tcp_timestamps", "0".to_owned()),
            ])
            .expect("its own settings");
        let ledger = Ledger::default();
        let content = Stream::written_by(0, 0);
        let sizes = Sizes::Fixed {
            size: "1 kB".parse().expect("a size"),
        };
        let source = Source {
            arrivals: Arrivals::of_flow((1000.0, sizes, None), 1, "main", Instant::START),
            stop: Instant::from_millis(2000),
            ledger: ledger.clone(),
            content,
        };
        let settings = SocketSettings {
            congestion: None,
            max_segment: 1448,
            window: None,
            nagle: false,
            local: None,
            class: 0,
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 10_000));
        let window = (Instant::START, Instant::from_millis(2000));
        let stage = Stage::default();
        stage.line.go(Some(Clock::starting_in(Pause::ZERO)));
        let told = std::thread::scope(|scope| {
            let (ready, is_ready) = std::sync::mpsc::channel();
            scope.spawn({
                let (namespace, stage, settings) = (&namespace, &stage, &settings);
                move || {
                    namespace.enter()?;
                    let ready = move || ready.send(()).expect("somebody waits");
                    Sink { ledger, content }.run((address, settings), window, stage, ready)
                }
            });
            is_ready.recv().expect("the other end listens");
            let told = namespace.inside(|| source.run((address, &settings), window, &stage, || {}));
            stage.over.store(true, std::sync::atomic::Ordering::Relaxed);
            told.expect_err("there are not enough ports").to_string()
        });
        assert!(
            told.starts_with("no port from 40000 to 40009 is left for another transfer"),
            "{told}"
        );
        assert!(told.contains("(TIME-WAIT)"), "{told}");
    }
}
