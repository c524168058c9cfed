//! Applications over TCP that are driven by the clock, or by received data.

use std::sync::Arc;

use anabranch_core::{
    body::Body,
    rng::Stream,
    units::{Duration, Instant},
};
use anabranch_path::link::Window;
use anabranch_tcp::{Endpoint, State};

use super::{App, Completions, application::PATTERN};
use anabranch_scenario::workload::{Pace, RequestResponse};

/// Delays, each drawn with equal probability.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Delays {
    all: Arc<[Duration]>,
    stream: Stream,
}

impl Delays {
    /// `None` for an empty list. The flow's name keys the draws.
    fn of_flow(all: &Arc<[Duration]>, seed: u64, flow: &str, what: &str) -> Option<Self> {
        (!all.is_empty()).then(|| Self {
            all: Arc::clone(all),
            stream: Stream::new(seed, &format!("flow.{flow}.{what}")),
        })
    }

    fn draw(&self, number: u64) -> Duration {
        let mut draw = self.stream.at(number);
        let at = draw.uniform_duration(Duration::from_picos(self.all.len() as u64));
        let at = usize::try_from(at.as_picos()).expect("a list is as long as memory permits");
        self.all[at]
    }
}

/// The delays of a flow's applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tardiness {
    first_writes: Option<Delays>,
    reads: Option<Delays>,
    idle_reads: Option<Delays>,
}

impl Tardiness {
    pub(super) fn of_flow(
        [first_writes, reads, idle_reads]: [&Arc<[Duration]>; 3],
        seed: u64,
        flow: &str,
    ) -> Self {
        Self {
            first_writes: Delays::of_flow(first_writes, seed, flow, "first_writes"),
            reads: Delays::of_flow(reads, seed, flow, "reads"),
            idle_reads: Delays::of_flow(idle_reads, seed, flow, "idle_reads"),
        }
    }

    /// The reader of the flow's `number`th connection, with separate draws; `None` if it reads at
    /// once.
    pub(super) fn reader(&self, number: u64) -> Option<Reader> {
        let late = self.reads.is_some() || self.idle_reads.is_some();
        late.then(|| Reader {
            delays: self.reads.clone(),
            idle: self.idle_reads.clone(),
            count: number << 32,
            due: Instant::NEVER,
            last: Instant::NEVER,
            closed: false,
        })
    }

    /// The writer of the connection, with its delay.
    pub(super) fn writer(&self, number: u64, app: App) -> App {
        match &self.first_writes {
            Some(delays) => App::Late(Box::new(Late {
                delay: delays.draw(number),
                since: None,
                app,
            })),
            None => app,
        }
    }
}

/// An application that begins after a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    delay: Duration,
    /// The time at which the connection was established.
    since: Option<Instant>,
    app: App,
}

impl Late {
    /// Whether the connection is established, so that a timer belongs to the application.
    pub(super) const fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// The time at which it begins, over an open connection.
    pub(super) fn due(&mut self, now: Instant) -> Instant {
        self.since.get_or_insert(now).saturating_add(self.delay)
    }

    /// Takes the application that begins.
    pub(super) fn take(&mut self) -> App {
        std::mem::replace(&mut self.app, App::Finished)
    }

    /// Takes the application that remains after a stop: a file belongs to the connection from its
    /// beginning on.
    pub(super) fn stop(&mut self) -> App {
        match self.take() {
            file @ App::File(_) if self.has_begun() => file,
            _ => App::Finished,
        }
    }
}

/// A scripted application and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// Writes at a rate, regardless of the network; data that it does not take waits.
    Paced(Writer),
    /// Sends a request, waits for the response, pauses, and repeats.
    Client(Client),
    /// Sends responses.
    Server(Server),
    /// Receives, and reads some time after the arrival of data.
    Reader(Reader),
}

/// Writes by the clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    pace: Pace,
    /// The time of the first write, once the connection is established.
    since: Option<Instant>,
    written: u64,
    stopped: bool,
}

/// Sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    what: RequestResponse,
    /// The measured window.
    window: Window,
    begun: bool,
    stopped: bool,
    asked: u64,
    /// The number of writes made of the current request.
    written: u32,
    /// The time of the unanswered request.
    waiting_since: Option<Instant>,
    /// The time at which the next request is due.
    next: Instant,
    exchanges: Completions,
}

/// Sends responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    what: RequestResponse,
    answered: u64,
    /// The number of writes made of the current response.
    written: u32,
    closed: bool,
}

/// A reader without a read for this time takes longer: the longest pause that `anabranch validate`
/// measures.
const IDLE: Duration = Duration::from_millis(10);

/// Reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    /// From the arrival of data to the read, which takes all data that has arrived by then; `None`
    /// if it reads at once.
    delays: Option<Delays>,
    /// The same after a pause ([`IDLE`]), if different.
    idle: Option<Delays>,
    count: u64,
    /// The time of the next read.
    due: Instant,
    /// The time of the last read.
    last: Instant,
    closed: bool,
}

impl Script {
    /// Writes by the clock from the establishment of the connection on.
    #[must_use]
    pub fn paced(pace: Pace) -> Self {
        Self::Paced(Writer {
            pace,
            since: None,
            written: 0,
            stopped: false,
        })
    }
    /// The server and the client of an exchange measured in `window`.
    pub(super) fn exchange(what: &RequestResponse, window: Window) -> [Self; 2] {
        let server = Server {
            what: what.clone(),
            answered: 0,
            written: 0,
            closed: false,
        };
        let client = Client {
            what: what.clone(),
            window,
            begun: false,
            stopped: false,
            asked: 0,
            written: 0,
            waiting_since: None,
            next: Instant::START,
            exchanges: Completions {
                started: 0,
                times: Vec::new(),
            },
        };
        [Self::Server(server), Self::Client(client)]
    }
    /// Whether the connection is established, so that a timer belongs to the application.
    pub(super) const fn has_begun(&self) -> bool {
        match self {
            Self::Paced(writer) => writer.since.is_some(),
            Self::Client(client) => client.begun,
            Self::Server(_) | Self::Reader(_) => true,
        }
    }
    /// Stops writing.
    pub(super) const fn stop(&mut self) {
        match self {
            Self::Paced(writer) => writer.stopped = true,
            Self::Client(client) => client.stopped = true,
            Self::Server(_) | Self::Reader(_) => {}
        }
    }
    /// Makes the next request of a synchronized client due at `at`.
    pub(super) const fn release(&mut self, at: Instant) {
        if let Self::Client(client) = self {
            client.next = at;
        }
    }
    /// The exchanges of a client.
    pub(super) const fn exchanges(&self) -> Option<&Completions> {
        match self {
            Self::Client(client) => Some(&client.exchanges),
            _ => None,
        }
    }
    /// Performs the actions that are due over an open connection. Returns the time of the next one.
    pub(super) fn drive<B: Body>(&mut self, endpoint: &mut Endpoint<B>, now: Instant) -> Instant {
        match self {
            Self::Paced(writer) => writer.drive(endpoint, now),
            Self::Client(client) => client.drive(endpoint, now),
            Self::Server(server) => server.drive(endpoint, now),
            Self::Reader(reader) => reader.drive(endpoint, now),
        }
    }
}

impl Writer {
    fn drive<B: Body>(&mut self, endpoint: &mut Endpoint<B>, now: Instant) -> Instant {
        if self.stopped {
            return Instant::NEVER;
        }
        let since = *self.since.get_or_insert(now);
        loop {
            let due = since.saturating_add(self.pace.after(self.written));
            if due > now {
                return due;
            }
            endpoint.write_all(B::filler(self.pace.payload(self.written)));
            self.written += 1;
        }
    }
}

impl Client {
    fn drive<B: Body>(&mut self, endpoint: &mut Endpoint<B>, now: Instant) -> Instant {
        self.begun = true;
        let answers = self.asked.saturating_mul(self.what.response.get());
        if let Some(since) = self.waiting_since
            && endpoint.stats().delivered_bytes >= answers
        {
            self.waiting_since = None;
            self.next = if self.what.synchronized {
                Instant::NEVER
            } else {
                now.saturating_add(self.what.think)
            };
            if self.window.contains(now) {
                self.exchanges.times.push(now - since);
            }
        }
        if self.written > 0 {
            return self.write_part(endpoint, now);
        }
        if self.stopped || self.waiting_since.is_some() {
            return Instant::NEVER;
        }
        if self.next > now {
            return self.next;
        }
        self.asked += 1;
        self.waiting_since = Some(now);
        self.exchanges.started += u64::from(self.window.contains(now));
        self.write_part(endpoint, now)
    }

    /// Makes the next write of a request. The write after it is due at once, but TCP runs in
    /// between.
    fn write_part<B: Body>(&mut self, endpoint: &mut Endpoint<B>, now: Instant) -> Instant {
        write(endpoint, self.what.request_part(self.written).unwrap_or(0));
        if self.what.request_part(self.written + 1).is_some() {
            self.written += 1;
            now
        } else {
            self.written = 0;
            Instant::NEVER
        }
    }
}

impl Server {
    fn drive<B: Body>(&mut self, endpoint: &mut Endpoint<B>, now: Instant) -> Instant {
        let questions = endpoint.stats().delivered_bytes / self.what.request.get().max(1);
        while self.answered < questions {
            write(endpoint, self.what.response_part(self.written).unwrap_or(0));
            if self.what.response_part(self.written + 1).is_some() {
                // The next write is due at once, but TCP runs in between.
                self.written += 1;
                return now;
            }
            self.written = 0;
            self.answered += 1;
        }
        if matches!(endpoint.state(), State::CloseWait) && !self.closed {
            endpoint.close();
            self.closed = true;
        }
        Instant::NEVER
    }
}

impl Reader {
    /// Returns the delay until the next read.
    fn delay(&mut self, now: Instant) -> Duration {
        let idles = self.last == Instant::NEVER || now.saturating_since(self.last) >= IDLE;
        let idle = self.idle.as_ref().filter(|_| idles);
        let delays = idle.or(self.delays.as_ref());
        let delay = delays.map_or(Duration::ZERO, |delays| delays.draw(self.count));
        self.count += 1;
        delay
    }

    fn drive<B: Body>(&mut self, endpoint: &mut Endpoint<B>, now: Instant) -> Instant {
        if self.due <= now {
            endpoint.read(now, u64::MAX);
            (self.due, self.last) = (Instant::NEVER, now);
        }
        if endpoint.readable() > 0 && self.due == Instant::NEVER {
            let delay = self.delay(now);
            if delay.is_zero() {
                endpoint.read(now, u64::MAX);
                self.last = now;
            } else {
                self.due = now.saturating_add(delay);
            }
        }
        if matches!(endpoint.state(), State::CloseWait) && endpoint.readable() == 0 && !self.closed
        {
            endpoint.close();
            self.closed = true;
        }
        self.due
    }
}

/// Writes `bytes` bytes.
pub(super) fn write<B: Body>(endpoint: &mut Endpoint<B>, bytes: u64) {
    match u32::try_from(bytes) {
        Ok(0) => {}
        Ok(few) if few <= PATTERN => endpoint.write_all(B::filler(few)),
        _ => endpoint.write_repeated(B::filler(PATTERN), bytes),
    }
}
