//! The applications: one end sends so many octets, the other compares them with what they must be.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch::units::Instant;
use quinn_proto::{Connection, Dir, Event, PathStats, StreamEvent, StreamId, WriteError};

use crate::host::Application;

/// The octet at a place in the transferred content. The content has no period that a lost, doubled
/// or misplaced packet could hide behind.
fn octet(place: u64) -> u8 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// What is known of a transfer. The hosts go into the simulation and stay there, so this is shared.
#[derive(Debug, Clone, Default)]
pub struct Report(Arc<Mutex<Figures>>);

/// See [`Report`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// When the client's handshake was complete.
    pub connected: Option<Instant>,
    /// When the last octet was there in order.
    pub completed: Option<Instant>,
    /// Octets that came in order.
    pub received: u64,
    /// Octets that were not what they must be.
    pub wrong: u64,
    /// The sender's counters at the end of the connection.
    pub sender: Option<PathStats>,
}

impl Report {
    /// What is known now.
    pub fn figures(&self) -> Figures {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn note(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Sends `size` octets on one stream, then closes the connection.
#[derive(Debug)]
pub struct Upload {
    size: u64,
    written: u64,
    /// Where to write, as long as there is something to write.
    stream: Option<StreamId>,
    acknowledged: bool,
    report: Report,
}

impl Upload {
    /// An upload that has not begun.
    pub fn new(size: u64, report: &Report) -> Self {
        Self {
            size,
            written: 0,
            stream: None,
            acknowledged: false,
            report: report.clone(),
        }
    }

    /// Writes as much as the stream takes now.
    fn write(&mut self, connection: &mut Connection) {
        let Some(id) = self.stream else { return };
        let mut stream = connection.send_stream(id);
        while self.written < self.size {
            let end = self.size.min(self.written + 16_384);
            let content: Vec<u8> = (self.written..end).map(octet).collect();
            match stream.write(&content) {
                Ok(written) => self.written += written as u64,
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("the receiver never stops the stream: {error}"),
            }
        }
        stream.finish().expect("the stream is finished once");
        self.stream = None;
    }
}

impl Application for Upload {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Connected => {
                self.report.note(|figures| figures.connected = Some(now));
                let stream = connection.streams().open(Dir::Uni);
                self.stream = Some(stream.expect("the server allows a stream"));
                self.write(connection);
            }
            Event::Stream(StreamEvent::Writable { .. }) => self.write(connection),
            // Everything is acknowledged.
            Event::Stream(StreamEvent::Finished { .. }) => {
                let counters = connection.stats().path;
                self.report.note(|figures| figures.sender = Some(counters));
                self.acknowledged = true;
            }
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.acknowledged
    }
}

/// Reads a stream and compares what it reads.
#[derive(Debug)]
pub struct Sink {
    received: u64,
    report: Report,
}

impl Sink {
    /// A sink that has seen nothing.
    pub fn new(report: &Report) -> Self {
        Self {
            received: 0,
            report: report.clone(),
        }
    }

    fn read(&mut self, now: Instant, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        let mut wrong = 0;
        let mut ended = false;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let expected = (self.received..).map(octet);
                    wrong += chunk
                        .bytes
                        .iter()
                        .zip(expected)
                        .filter(|(a, b)| **a != *b)
                        .count() as u64;
                    self.received += chunk.bytes.len() as u64;
                }
                Ok(None) => {
                    ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // What this asks to send (more room for the peer) is sent at the next poll.
        let _ = chunks.finalize();
        let received = self.received;
        self.report.note(|figures| {
            figures.received = received;
            figures.wrong += wrong;
            if ended {
                figures.completed = Some(now);
            }
        });
    }
}

impl Application for Sink {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(dir) {
                    self.read(now, connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(now, connection, id),
            _ => {}
        }
    }

    fn delivered_bytes(&self) -> u64 {
        self.received
    }
}
