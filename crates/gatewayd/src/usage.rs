//! Octets that paths with a data cap carried, by day, and the levels of their caps.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::units::Duration;
use anabranch_gateway::time::Instant;
use serde::{Deserialize, Serialize};

use crate::{
    calendar::{Day, Period},
    config::{AtCap, Config, amount},
    status::CapReport,
    ways::Ways,
};

/// Days of a path that are kept: a month and its predecessor.
const DAYS: usize = 64;
/// Paths that are kept although the configuration has them no more.
const FORMER: usize = 64;
/// Counts are written after this time if they have changed.
const SAVE: Duration = Duration::from_secs(60);
/// They are written earlier, but not more often than this, when a path has carried this part of its
/// cap, or this number of octets, since the last time.
const SAVE_LEAST: Duration = Duration::from_secs(1);
const SAVE_PART: u64 = 1_000;
const SAVE_OCTETS: u64 = 1_000_000;
/// A clock before this day is wrong: the system has not got the time yet.
const PLAUSIBLE: Day = Day::of(2026, 1, 1);
/// The levels in percent at which a message is written, unless the configuration has others.
const ALARMS: [u8; 2] = [80, 95];
/// Octets of the IP and UDP headers of a datagram.
const BELOW_V4: u64 = 28;
const BELOW_V6: u64 = 48;
/// The version of the file.
const VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Document {
    version: u32,
    /// Octets by path and by day since 1970-01-01.
    paths: BTreeMap<String, BTreeMap<u32, u64>>,
}

/// A path with a cap.
struct Entry {
    name: String,
    cap: u64,
    period: Period,
    alarms: Vec<u8>,
    at_cap: AtCap,
    /// The percentage of the highest level that is reached.
    level: u8,
    unsaved: u64,
}

/// A change of a path's level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A level is reached; the message says which.
    Level(String),
    /// The cap is reached, or no longer.
    Cap { path: String, message: String },
}

/// The counts.
#[derive(Default)]
pub struct Usage {
    entries: Vec<Entry>,
    sockets: BTreeMap<u32, usize>,
    days: BTreeMap<String, BTreeMap<u32, u64>>,
    today: Day,
    saved: Instant,
}

impl Usage {
    /// Reads the content of the file.
    ///
    /// # Errors
    /// A message if it is not such a content.
    pub fn load(content: &[u8]) -> Result<Self, String> {
        let document: Document =
            serde_json::from_slice(content).map_err(|error| error.to_string())?;
        if document.version != VERSION {
            return Err(format!("version {}; expected {VERSION}", document.version));
        }
        Ok(Self {
            days: document.paths,
            ..Self::default()
        })
    }

    /// Follows a configuration. Counts of paths continue by name.
    pub fn configure(&mut self, config: &Config, ways: &Ways, today: Day) {
        let mut former = std::mem::take(&mut self.entries);
        self.sockets.clear();
        for (name, way) in &config.path.0 {
            let Some(cap) = way.cap else { continue };
            let before = former.iter().position(|entry| entry.name == *name);
            let before = before.map(|at| former.swap_remove(at));
            let period = match cap.period {
                Period::Month(_) => Period::Month(way.reset_day.unwrap_or(1)),
                other => other,
            };
            let alarms = way.alarms.clone().unwrap_or_else(|| ALARMS.to_vec());
            let number = ways.paths().find(|(_, other)| other == name);
            if let Some((number, _)) = number {
                let number = number.number().into();
                self.sockets.insert(number, self.entries.len());
            }
            self.entries.push(Entry {
                name: name.clone(),
                cap: cap.bytes,
                period,
                alarms,
                at_cap: way.at_cap.unwrap_or_default(),
                level: 0,
                unsaved: before.map_or(0, |before| before.unsaved),
            });
        }
        self.set_today(today);
        for at in 0..self.entries.len() {
            let level = self.level(at);
            if let Some(entry) = self.entries.get_mut(at) {
                entry.level = level;
            }
        }
    }

    /// Whether no path has a cap.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts datagrams of a socket: `octets` of UDP payload in `count` datagrams.
    pub fn count(&mut self, socket: u32, is_v4: bool, octets: usize, count: usize) {
        let Some(entry) = self.sockets.get(&socket) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(*entry) else {
            return;
        };
        let below = if is_v4 { BELOW_V4 } else { BELOW_V6 };
        let octets = octets as u64 + below * count as u64;
        entry.unsaved += octets;
        if !self.days.contains_key(&entry.name) {
            self.days.insert(entry.name.clone(), BTreeMap::new());
        }
        if let Some(days) = self.days.get_mut(&entry.name) {
            *days.entry(self.today.0).or_default() += octets;
        }
    }

    /// Applies the present day. A clock that is evidently wrong leaves the last known day.
    fn set_today(&mut self, today: Day) {
        let known = self.days.values().filter_map(|days| days.last_key_value());
        let newest = known.map(|(&day, _)| Day(day)).max();
        self.today = if today < PLAUSIBLE {
            newest.unwrap_or(today).max(today)
        } else {
            today
        };
    }

    /// Octets of a path since the start of its period.
    fn used(&self, entry: &Entry) -> u64 {
        let [first, next] = entry.period.around(self.today);
        let days = self.days.get(&entry.name);
        let days = days
            .into_iter()
            .flat_map(|days| days.range(first.0..next.0));
        days.map(|(_, octets)| octets).sum()
    }

    fn level(&self, at: usize) -> u8 {
        let Some(entry) = self.entries.get(at) else {
            return 0;
        };
        let used = u128::from(self.used(entry)) * 100;
        let is_reached = |level: &u8| used >= u128::from(*level) * u128::from(entry.cap);
        let levels = entry.alarms.iter().copied().chain([100]);
        levels.filter(is_reached).max().unwrap_or(0)
    }

    /// Follows the day and the levels. Returns the changes.
    pub fn follow(&mut self, today: Day) -> Vec<Event> {
        self.set_today(today);
        let mut events = Vec::new();
        for at in 0..self.entries.len() {
            let level = self.level(at);
            let Some(entry) = self.entries.get(at) else {
                continue;
            };
            if level == entry.level {
                continue;
            }
            let used = amount(self.used(entry));
            let [first, next] = entry.period.around(self.today);
            let (name, cap, period) = (&entry.name, amount(entry.cap), entry.period.name());
            let message = match (level, entry.at_cap) {
                (100, AtCap::Metered) => format!(
                    "path {name}: the cap of {cap} a {period} is reached; until {next} it is used only if no other path delivers"
                ),
                (100, AtCap::Off) => format!(
                    "path {name}: the cap of {cap} a {period} is reached; until {next} it is off"
                ),
                _ if level > entry.level => {
                    format!("path {name}: {used} of {cap} are used since {first}, {level} %")
                }
                _ => format!("path {name}: {used} of {cap} are used since {first}"),
            };
            let is_cap = level == 100 || entry.level == 100;
            events.push(if is_cap {
                let path = name.clone();
                Event::Cap { path, message }
            } else {
                Event::Level(message)
            });
            if let Some(entry) = self.entries.get_mut(at) {
                entry.level = level;
            }
        }
        events
    }

    /// The use of a path whose cap is reached.
    pub fn reached(&self, path: &str) -> Option<AtCap> {
        let entry = self.entries.iter().find(|entry| entry.name == path)?;
        (entry.level == 100).then_some(entry.at_cap)
    }

    /// The content of the file, if it must be written now.
    pub fn unsaved(&mut self, now: Instant) -> Option<Vec<u8>> {
        let since = now.saturating_since(self.saved);
        let is_much = |entry: &Entry| entry.unsaved >= (entry.cap / SAVE_PART).max(SAVE_OCTETS);
        let is_any = self.entries.iter().any(|entry| entry.unsaved > 0);
        let is_due =
            (since >= SAVE && is_any) || (since >= SAVE_LEAST && self.entries.iter().any(is_much));
        is_due.then(|| self.save(now))
    }

    /// The content of the file.
    pub fn save(&mut self, now: Instant) -> Vec<u8> {
        self.saved = now;
        for entry in &mut self.entries {
            entry.unsaved = 0;
        }
        for days in self.days.values_mut() {
            while days.len() > DAYS {
                days.pop_first();
            }
        }
        let configured: BTreeSet<&String> = self.entries.iter().map(|entry| &entry.name).collect();
        let former = self.days.keys().filter(|name| !configured.contains(name));
        let surplus: Vec<String> = former.skip(FORMER).cloned().collect();
        for name in surplus {
            self.days.remove(&name);
        }
        let document = Document {
            version: VERSION,
            paths: self.days.clone(),
        };
        serde_json::to_vec(&document).unwrap_or_default()
    }

    /// The counts of the paths with caps, for the status.
    pub fn reports(&self) -> BTreeMap<String, CapReport> {
        let report = |entry: &Entry| {
            let [first, next] = entry.period.around(self.today);
            let report = CapReport {
                used_bytes: self.used(entry),
                cap_bytes: entry.cap,
                period: entry.period.name().to_owned(),
                since: first.to_string(),
                until: next.to_string(),
                level: entry.level,
                at_cap: match entry.at_cap {
                    AtCap::Metered => "metered",
                    AtCap::Off => "off",
                }
                .to_owned(),
            };
            (entry.name.clone(), report)
        };
        self.entries.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Day, Event, PLAUSIBLE, Usage};
    use crate::{
        calendar::Period,
        config::AtCap,
        usage::{Entry, SAVE, SAVE_LEAST, SAVE_OCTETS},
    };
    use anabranch_gateway::time::Instant;

    const GB: usize = 1_000_000_000;

    fn usage(at_cap: AtCap) -> Usage {
        let mut usage = Usage::default();
        usage.sockets.insert(0, 0);
        usage.entries.push(Entry {
            name: "lte".to_owned(),
            cap: 20 * GB as u64,
            period: Period::Month(15),
            alarms: vec![80, 95],
            at_cap,
            level: 0,
            unsaved: 0,
        });
        usage
    }

    fn day(month: u32, day: u32) -> Day {
        Day::of(2026, month, day)
    }

    fn messages(events: Vec<Event>) -> Vec<String> {
        let message = |event| match event {
            Event::Level(message) => message,
            Event::Cap { message, .. } => format!("! {message}"),
        };
        events.into_iter().map(message).collect()
    }

    #[test]
    fn levels_are_reported_once_and_a_new_period_ends_them() {
        let mut usage = usage(AtCap::Off);
        assert!(usage.follow(day(11, 20)).is_empty());
        usage.count(0, true, 15 * GB, 0);
        assert!(usage.follow(day(11, 21)).is_empty());
        usage.count(0, true, GB, 0);
        let expected = "path lte: 16 GB of 20 GB are used since 2026-11-15, 80 %";
        assert_eq!(messages(usage.follow(day(11, 21))), [expected]);
        assert!(usage.follow(day(11, 22)).is_empty());
        assert_eq!(usage.reached("lte"), None);
        usage.count(0, true, 4 * GB, 0);
        let expected =
            "! path lte: the cap of 20 GB a month is reached; until 2026-12-15 it is off";
        assert_eq!(messages(usage.follow(day(12, 14))), [expected]);
        assert_eq!(usage.reached("lte"), Some(AtCap::Off));
        let expected = "! path lte: 0 bytes of 20 GB are used since 2026-12-15";
        assert_eq!(messages(usage.follow(day(12, 15))), [expected]);
        assert_eq!(usage.reached("lte"), None);
    }

    #[test]
    fn headers_count_and_other_sockets_do_not() {
        let mut usage = usage(AtCap::Metered);
        usage.follow(day(11, 20));
        usage.count(0, true, 1_000, 2);
        usage.count(0, false, 1_000, 1);
        usage.count(1, true, 1_000, 1);
        assert_eq!(usage.reports()["lte"].used_bytes, 2_000 + 2 * 28 + 48);
    }

    #[test]
    fn counts_continue_from_the_file() {
        let mut before = usage(AtCap::Metered);
        before.follow(day(11, 20));
        before.count(0, true, GB, 0);
        before.follow(day(11, 21));
        before.count(0, true, GB, 0);
        let content = before.save(Instant::START);
        let mut after = Usage::load(&content).expect("it is valid");
        after.entries = usage(AtCap::Metered).entries;
        after.follow(day(11, 22));
        assert_eq!(after.reports()["lte"].used_bytes, 2 * GB as u64);
        // Another day of reset counts the same days again.
        after.entries[0].period = Period::Month(21);
        assert_eq!(after.reports()["lte"].used_bytes, GB as u64);
        for (content, why) in [
            ("", "EOF"),
            ("{\"version\":2,\"paths\":{}}", "version 2; expected 1"),
            ("{\"version\":1,\"paths\":{\"lte\":[]}}", "invalid type"),
        ] {
            let refused = Usage::load(content.as_bytes()).err().expect(content);
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_clock_that_is_not_set_yet_leaves_the_last_day() {
        let mut usage = usage(AtCap::Metered);
        usage.follow(day(11, 20));
        usage.count(0, true, GB, 0);
        usage.follow(Day(3));
        usage.count(0, true, GB, 0);
        assert_eq!(usage.today, day(11, 20));
        usage.follow(day(11, 21));
        assert_eq!(usage.reports()["lte"].used_bytes, 2 * GB as u64);
        assert!(PLAUSIBLE < day(11, 20));
    }

    #[test]
    fn changes_are_saved_within_a_minute_and_much_traffic_at_once() {
        let mut usage = usage(AtCap::Metered);
        usage.follow(day(11, 20));
        let start = Instant::START;
        assert_eq!(usage.unsaved(start + SAVE), None);
        usage.count(0, true, 1_000, 1);
        assert_eq!(usage.unsaved(start + SAVE_LEAST), None);
        assert!(usage.unsaved(start + SAVE).is_some());
        let octets = usize::try_from(20 * SAVE_OCTETS).expect("small");
        usage.count(0, true, octets, 1);
        assert_eq!(usage.unsaved(start + SAVE), None);
        assert!(usage.unsaved(start + SAVE + SAVE_LEAST).is_some());
        assert_eq!(usage.unsaved(start + SAVE * 3), None);
    }
}
