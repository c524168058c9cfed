//! Path reports and their acknowledgments.
//!
//! A control message is a snapshot: one entry per path. A report is state, so it does not matter which of the messages that carry it
//! arrive.

use super::{Arrivals, PATHS, PathId, WORDS, WireError, eight, four, path, two};

/// Octets of an entry without words of arrivals.
const ENTRY: usize = 24;
/// Octets of all entries at most: they fit in what every path delivers.
const MOST: usize = 1_160;
/// There is a report.
const REPORT: u8 = 1;
/// There is an acknowledgment.
const ACKNOWLEDGED: u8 = 2;
/// The path is a backup.
const BACKUP: u8 = 4;
/// The path is metered.
const METERED: u8 = 8;
/// The number of words stands in the bits above these.
const WORDS_SHIFT: u8 = 4;

/// When a path is used. The greater of the two ends' roles holds at both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Role {
    /// Always.
    #[default]
    Active,
    /// Where no active path delivers.
    Backup,
    /// Where no other path delivers. Until then it carries only the probes that liveness needs.
    Metered,
}

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
    /// Which numbers up to `highest` arrived, at least those whose report was not acknowledged.
    pub arrivals: Arrivals,
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
    fn encode(&self, words: usize, into: &mut Vec<u8>) {
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
        let Some(report) = self.report else {
            into.extend(octets);
            return;
        };
        let arrivals = report.arrivals.cut(words);
        let words = arrivals.words();
        // There are 15 at most.
        octets[1] |= REPORT | u8::try_from(words.len()).unwrap_or(0) << WORDS_SHIFT;
        octets[2..4].copy_from_slice(&report.version.to_be_bytes());
        octets[6..8].copy_from_slice(&report.loss.to_be_bytes());
        octets[8..16].copy_from_slice(&report.highest.to_be_bytes());
        octets[16..20].copy_from_slice(&report.arrived.to_be_bytes());
        octets[20..24].copy_from_slice(&report.held.to_be_bytes());
        into.extend(octets);
        into.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }

    /// Reads the first entry, and gives the octets behind it.
    fn decode(octets: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let short = |expected| WireError::Length {
            octets: octets.len(),
            expected,
        };
        let (head, rest) = octets
            .split_first_chunk::<ENTRY>()
            .ok_or_else(|| short(ENTRY))?;
        let flags = head[1] & ((1 << WORDS_SHIFT) - 1);
        let words = usize::from(head[1] >> WORDS_SHIFT) * 8;
        let role = match flags & !(REPORT | ACKNOWLEDGED) {
            0 => Role::Active,
            BACKUP => Role::Backup,
            METERED => Role::Metered,
            _ => return Err(WireError::Reserved),
        };
        let (words, rest) = rest
            .split_at_checked(words)
            .ok_or_else(|| short(ENTRY + words))?;
        let (words, _) = words.as_chunks::<8>();
        let report = Report {
            version: two(head, 2),
            loss: two(head, 6),
            highest: eight(head, 8),
            arrived: four(head, 16),
            held: four(head, 20),
            arrivals: Arrivals::new(words.iter().map(|&word| u64::from_be_bytes(word))),
        };
        let entry = Self {
            path: path(head[0])?,
            role,
            report: (flags & REPORT != 0).then_some(report),
            acknowledged: (flags & ACKNOWLEDGED != 0).then_some(two(head, 4)),
        };
        // What is absent is zero, so that every message has one form.
        let is_absent = |octets: &[u8]| octets.iter().all(|&octet| octet == 0);
        let fits = match entry.report {
            Some(report) => {
                report.arrivals.fit(report.highest) && report.arrivals.words().len() == words.len()
            }
            None => words.is_empty() && is_absent(&head[2..4]) && is_absent(&head[6..]),
        };
        if fits && (entry.acknowledged.is_some() || is_absent(&head[4..6])) {
            Ok((entry, rest))
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
        let share = MOST / self.entries.len().max(1);
        let words = (share.saturating_sub(ENTRY) / 8).clamp(1, WORDS);
        for entry in &self.entries {
            entry.encode(words, into);
        }
    }

    /// Reads it into `self`, whose entries it replaces.
    ///
    /// # Errors
    /// [`WireError`] where the octets are not entries of different paths.
    pub fn read(&mut self, mut octets: &[u8]) -> Result<(), WireError> {
        self.entries.clear();
        let mut seen = [false; PATHS];
        while !octets.is_empty() {
            let (entry, rest) = Entry::decode(octets)?;
            octets = rest;
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
