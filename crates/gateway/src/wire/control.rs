//! Path reports and their acknowledgments.
//!
//! A control message is a snapshot: one entry per path, of 32 octets. A report is state, so it does not matter which of the
//! messages that carry it arrive.

use super::{PATHS, PathId, WireError, eight, four, path, two};
use crate::policy::Role;

/// Octets of an entry.
const ENTRY: usize = 32;
/// There is a report.
const REPORT: u8 = 1;
/// There is an acknowledgment.
const ACKNOWLEDGED: u8 = 2;
/// The path is a backup.
const BACKUP: u8 = 4;
/// The path is metered.
const METERED: u8 = 8;

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
    /// When the sender of this message would use it.
    pub role: Role,
    /// Of the path towards the sender of this message.
    pub report: Option<Report>,
    /// The number of the newest report that the sender of this message has of the other direction.
    pub acknowledged: Option<u16>,
}

impl Entry {
    fn encode(&self) -> [u8; ENTRY] {
        let mut octets = [0; ENTRY];
        octets[0] = self.path.number();
        octets[1] = match self.role {
            Role::Active => 0,
            Role::Backup => BACKUP,
            Role::Metered => METERED,
        };
        if let Some(version) = self.acknowledged {
            octets[1] |= ACKNOWLEDGED;
            octets[4..6].copy_from_slice(&version.to_be_bytes());
        }
        if let Some(report) = self.report {
            octets[1] |= REPORT;
            octets[2..4].copy_from_slice(&report.version.to_be_bytes());
            octets[6..8].copy_from_slice(&report.loss.to_be_bytes());
            octets[8..16].copy_from_slice(&report.highest.to_be_bytes());
            octets[16..20].copy_from_slice(&report.arrived.to_be_bytes());
            octets[20..24].copy_from_slice(&report.held.to_be_bytes());
            octets[24..].copy_from_slice(&report.received.to_be_bytes());
        }
        octets
    }

    fn decode(octets: &[u8; ENTRY]) -> Result<Self, WireError> {
        let flags = octets[1];
        let role = match flags & !(REPORT | ACKNOWLEDGED) {
            0 => Role::Active,
            BACKUP => Role::Backup,
            METERED => Role::Metered,
            _ => return Err(WireError::Reserved),
        };
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
            role,
            report: (flags & REPORT != 0).then_some(report),
            acknowledged: (flags & ACKNOWLEDGED != 0).then_some(two(octets, 4)),
        };
        // What is absent is zero, so that every message has one form.
        if entry.encode() == *octets {
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
            into.extend(entry.encode());
        }
    }

    /// Reads it into `self`, whose entries it replaces.
    ///
    /// # Errors
    /// [`WireError`] where the octets are not entries of different paths.
    pub fn read(&mut self, octets: &[u8]) -> Result<(), WireError> {
        self.entries.clear();
        let (entries, rest) = octets.as_chunks::<ENTRY>();
        if !rest.is_empty() || entries.len() > PATHS {
            return Err(WireError::Length {
                octets: octets.len(),
                expected: entries.len().min(PATHS) * ENTRY,
            });
        }
        let mut seen = [false; PATHS];
        for octets in entries {
            let entry = Entry::decode(octets)?;
            if std::mem::replace(&mut seen[entry.path.index()], true) {
                return Err(WireError::Twice(entry.path.number()));
            }
            self.entries.push(entry);
        }
        Ok(())
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`WireError`] where the octets are not entries of different paths.
    pub fn decode(octets: &[u8]) -> Result<Self, WireError> {
        let mut control = Self::default();
        control.read(octets)?;
        Ok(control)
    }
}
