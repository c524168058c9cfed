//! Path reports and their acknowledgments.
//!
//! A control message is a snapshot with one entry per path. A report is state, so it is enough that
//! any of the messages that carry it arrives.

use super::{Arrivals, PATHS, PathId, WORDS, WireError, eight, four, path, two};

/// Octets of an entry without words of arrivals.
const ENTRY: usize = 24;
/// The largest total of the entries, which fits in the datagram that every path delivers.
const MOST: usize = 1_160;
/// Flag: the entry has a report.
const REPORT: u8 = 1;
/// Flag: the entry has an acknowledgment.
const ACKNOWLEDGED: u8 = 2;
/// Flag: the path is a backup.
const BACKUP: u8 = 4;
/// Flag: the path is metered.
const METERED: u8 = 8;
/// Both flags: the path takes the packets that the active ones cannot carry.
const OVERFLOW: u8 = BACKUP | METERED;
/// The number of words is in the bits above the flags.
const WORDS_SHIFT: u8 = 4;

/// The role of a path, which determines when it is used. The greater of the two ends' roles applies
/// at both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Role {
    /// Used always.
    #[default]
    Active,
    /// Used while all active paths are full, or if none delivers.
    Overflow,
    /// Used if no active or overflow path delivers.
    Backup,
    /// Used if no other path delivers.
    Metered,
}

/// The report of one end about a path on which it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The report's version; a newer report has a greater one, modulo 2^16.
    pub version: u16,
    /// The smoothed share of numbers that did not arrive, in units of 2^-16.
    pub loss: u16,
    /// The highest reported number that arrived.
    pub highest: u64,
    /// The arrival time of that number, in microseconds of the receiver's clock. Only differences
    /// matter, as the trend of the delay.
    pub arrived: u32,
    /// The time from that arrival until this message was sent, in microseconds.
    pub held: u32,
    /// The numbers up to `highest` that arrived, including at least those whose report was not
    /// acknowledged.
    pub arrivals: Arrivals,
}

/// One path in a control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The path.
    pub path: PathId,
    /// The role that the sender of this message chose.
    pub role: Role,
    /// The report about the path towards the sender of this message.
    pub report: Option<Report>,
    /// The version of the newest report about the other direction that the sender of this message
    /// has received.
    pub acknowledged: Option<u16>,
}

impl Entry {
    fn encode(&self, words: usize, into: &mut Vec<u8>) {
        let mut octets = [0; ENTRY];
        octets[0] = self.path.number();
        octets[1] = match self.role {
            Role::Active => 0,
            Role::Overflow => OVERFLOW,
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

    /// Decodes the first entry, and returns the remaining octets.
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
            OVERFLOW => Role::Overflow,
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
        // Absent fields are zero, so that every message has one encoding.
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
    /// Appends the encoded message to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let share = MOST / self.entries.len().max(1);
        let words = (share.saturating_sub(ENTRY) / 8).clamp(1, WORDS);
        for entry in &self.entries {
            entry.encode(words, into);
        }
    }

    /// Decodes a message into `self`, whose entries it replaces.
    ///
    /// # Errors
    /// [`WireError`] if the octets are not entries of different paths.
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

    /// Decodes a message.
    ///
    /// # Errors
    /// [`WireError`] if the octets are not entries of different paths.
    pub fn decode(octets: &[u8]) -> Result<Self, WireError> {
        let mut control = Self::default();
        control.read(octets)?;
        Ok(control)
    }
}
