//! The file of a history, which survives a restart.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anabranch_core::system::words;
use anabranch_files::Files;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{Event, History, MOST_EVENTS, MOST_SERIES, Point, Range, Series, Subject, WIDTH};

/// The version of the format. A file of another version is put aside.
const VERSION: u32 = 1;
/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 27;
/// The longest time between two starts that is trusted.
const LONGEST_GAP: f64 = 400.0 * 86400.0;

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    /// The wall clock.
    unix_s: f64,
    now: f64,
    series: Vec<SeriesDocument>,
    events: VecDeque<Event>,
}

#[derive(Serialize, Deserialize)]
struct SeriesDocument {
    subject: Subject,
    tiers: [Vec<Row>; 3],
}

/// Interval, weight and values.
type Row = (u32, f32, Vec<Option<f32>>);

/// The file of the history of an interface's gateway.
pub fn file_in(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("history-{interface}.json"))
}

impl History {
    /// Writes the history to a file: to a new one in its folder, which then replaces it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn save(&self, file: &Path, unix_s: f64) -> io::Result<()> {
        let rows = |tier: &VecDeque<Point>, width: usize| -> Vec<Row> {
            let row = |point: &Point| {
                let cells = point.values.iter().take(width);
                let cells = cells.map(|&cell| super::rounded(cell));
                (point.at, point.weight, cells.collect())
            };
            tier.iter().map(row).collect()
        };
        let series = self.series.iter().map(|series| SeriesDocument {
            subject: series.subject.clone(),
            tiers: std::array::from_fn(|tier| {
                let width = series.subject.columns().len();
                series
                    .tiers
                    .get(tier)
                    .map_or_else(Vec::new, |tier| rows(tier, width))
            }),
        });
        let document = Document {
            version: VERSION,
            unix_s,
            now: self.now,
            series: series.collect(),
            events: self.events.clone(),
        };
        let content = serde_json::to_vec(&document)?;
        let mut aside = file.as_os_str().to_owned();
        aside.push(".part");
        let aside = PathBuf::from(aside);
        let replaced = write_aside(&aside, &content).and_then(|()| fs::rename(&aside, file));
        if replaced.is_err() {
            let _ = fs::remove_file(&aside);
        }
        replaced
    }

    /// Reads a history; `unix_s` is the wall clock's time. The clock advances by the time since the
    /// file was written, unless the wall clock was set back.
    ///
    /// # Errors
    /// A message if the content is no history.
    pub fn load(file: &Path, unix_s: f64) -> Result<Option<Self>, String> {
        match fs::symlink_metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(words(&error)),
            Ok(_) => {}
        }
        let content = Files::default().read(file, MAX_BYTES);
        let content = content.map_err(|error| error.to_string())?;
        let document = serde_json::from_slice::<Document>(&content);
        let document = document.map_err(|error| format!("it is no history: {error}"))?;
        let mut history = document.checked()?;
        let gap = unix_s - document.unix_s;
        if (0.0..LONGEST_GAP).contains(&gap) {
            history.advance(gap);
        }
        Ok(Some(history))
    }
}

fn write_aside(aside: &Path, content: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0))
        .open(aside)?;
    file.write_all(content)?;
    file.sync_all()
}

impl Document {
    /// The history, if all values are within the bounds that this program keeps.
    fn checked(&self) -> Result<History, String> {
        if self.version != VERSION {
            let message = format!("version {} was expected, not {}", VERSION, self.version);
            return Err(message);
        }
        let is_time = |time: f64| (0.0..1e10).contains(&time);
        if !is_time(self.now) || self.series.len() > MOST_SERIES || self.events.len() > MOST_EVENTS
        {
            return Err("it is no history of this program".to_owned());
        }
        let mut history = History {
            now: self.now,
            series: Vec::new(),
            events: self.events.clone(),
        };
        for stored in &self.series {
            let mut series = Series::new(stored.subject.clone());
            for ((range, rows), tier) in Range::ALL
                .into_iter()
                .zip(&stored.tiers)
                .zip(&mut series.tiers)
            {
                let present = super::interval(self.now, range);
                let mut last = None;
                for (at, weight, cells) in rows {
                    let is_next = last.is_none_or(|last| last < *at) && *at <= present;
                    let is_weight = weight.is_finite() && *weight > 0.0;
                    if !is_next || !is_weight || cells.len() > WIDTH {
                        return Err("its points are not in the order of time".to_owned());
                    }
                    last = Some(*at);
                    let mut values = [f32::NAN; WIDTH];
                    for (value, cell) in values.iter_mut().zip(cells) {
                        *value = cell.unwrap_or(f32::NAN);
                    }
                    tier.push_back(Point {
                        at: *at,
                        weight: *weight,
                        values,
                    });
                }
            }
            series.expire(self.now);
            history.series.push(series);
        }
        Ok(history)
    }
}
