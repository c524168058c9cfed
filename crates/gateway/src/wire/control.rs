//! Path reports and their acknowledgments.
//!
//! A control message is a snapshot: one entry per path, of 32 octets. A report is state, so it does not matter which of the
//! messages that carry it arrive.

use super::{PATHS, PathId, WireError, eight, four, path, two};

/// Octets of an entry.
const ENTRY: usize = 32;
/// There is a report.
const REPORT: u8 = 1;
/// There is an acknowledgment.
const ACKNOWLEDGED: u8 = 2;

/// What one end knows of a path on which it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The report's own number; a newer report has a greater one, modulo 2^16.
    pub version: u16,
    /// The share of the numbers that did not arrive of late, in 2^-16.
    pub loss: u16,
    /// The highest number that arrived, of those that are reported.
    pub highest: u64,
    /// When that was, in microseconds of the receiver's clock. Only differences count: they are the trend of the delay.
    pub arrived: u32,
    /// How long ago that was when this was sent, in microseconds.
    pub held: u32,
    /// Which of the 64 numbers before `highest` arrived, the nearest in the lowest bit. Those that did not are asked for.
    pub received: u64,
}

/// One path in a control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The path.
    pub path: PathId,
    /// Of the path towards the sender of this message.
    pub report: Option<Report>,
    /// The number of the newest report that the sender of this message has of the other direction.
    pub acknowledged: Option<u16>,
}

impl Entry {
    fn encode(&self, into: &mut Vec<u8>) {
        let flags = if self.report.is_some() { REPORT } else { 0 }
            | if self.acknowledged.is_some() {
                ACKNOWLEDGED
            } else {
                0
            };
        let report = self.report.unwrap_or(Report {
            version: 0,
            loss: 0,
            highest: 0,
            arrived: 0,
            held: 0,
            received: 0,
        });
        into.extend([self.path.number(), flags]);
        into.extend(report.version.to_be_bytes());
        into.extend(self.acknowledged.unwrap_or(0).to_be_bytes());
        into.extend(report.loss.to_be_bytes());
        into.extend(report.highest.to_be_bytes());
        into.extend(report.arrived.to_be_bytes());
        into.extend(report.held.to_be_bytes());
        into.extend(report.received.to_be_bytes());
    }

    fn decode(octets: &[u8; ENTRY]) -> Result<Self, WireError> {
        let flags = octets[1];
        if flags & !(REPORT | ACKNOWLEDGED) != 0 {
            return Err(WireError::Reserved);
        }
        let report = Report {
            version: two(octets, 2),
            loss: two(octets, 6),
            highest: eight(octets, 8),
            arrived: four(octets, 16),
            held: four(octets, 20),
            received: eight(octets, 24),
        };
        let entry = Self {
            path: path(octets[0])?,
            report: (flags & REPORT != 0).then_some(report),
            acknowledged: (flags & ACKNOWLEDGED != 0).then_some(two(octets, 4)),
        };
        // What is absent is zero, so that every message has one form.
        let mut again = Vec::with_capacity(ENTRY);
        entry.encode(&mut again);
        if again == octets {
            Ok(entry)
        } else {
            Err(WireError::Reserved)
        }
    }
}

/// A control message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Control {
    /// One entry per path.
    pub entries: Vec<Entry>,
}

impl Control {
    /// Appends it to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        for entry in &self.entries {
            entry.encode(into);
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`WireError`] where the octets are not entries of different paths.
    pub fn decode(octets: &[u8]) -> Result<Self, WireError> {
        let (entries, rest) = octets.as_chunks::<ENTRY>();
        if !rest.is_empty() || entries.len() > PATHS {
            return Err(WireError::Length {
                octets: octets.len(),
                expected: entries.len().min(PATHS) * ENTRY,
            });
        }
        let mut seen = [false; PATHS];
        let mut control = Self::default();
        for octets in entries {
            let entry = Entry::decode(octets)?;
            if std::mem::replace(&mut seen[entry.path.index()], true) {
                return Err(WireError::Twice(entry.path.number()));
            }
            control.entries.push(entry);
        }
        Ok(control)
    }
}
