//! The thread that keeps the history, writes it to its file, and answers queries. The thread that
//! carries packets never waits for it.

use std::{
    fs,
    io::{self, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anabranch_core::system::words;

use super::{History, Query, Sample, stored};
use crate::log::Log;

/// The most samples, messages and queries that wait for the thread; others are dropped.
const WAITING: usize = 256;
/// The time between two writes of the file: the most history that a crash loses.
const SAVE: Duration = Duration::from_secs(600);
/// The time for which a client may take to read.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time for which the end of the daemon waits for the last write.
const LAST: Duration = Duration::from_secs(5);

enum Note {
    Sample(Sample),
    Event(String),
    Client(UnixStream, Query),
    End,
}

/// The daemon's side of the thread.
pub struct Keeper {
    notes: SyncSender<Note>,
    done: Receiver<()>,
}

/// The folder of the file, and the interface that gives its name.
pub struct Place {
    pub folder: PathBuf,
    pub interface: String,
}

impl Keeper {
    /// Starts the thread, which calls `prepare` before it reads the file. Without a place the
    /// history ends with the daemon.
    ///
    /// # Errors
    /// If the system refuses the thread, or `prepare` fails.
    pub fn start(
        place: Option<Place>,
        log: Log,
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<Self, String> {
        Self::start_with(place, log, SAVE, prepare)
    }

    fn start_with(
        place: Option<Place>,
        log: Log,
        save: Duration,
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("history: {}", words(&error));
        let (notes, inbox) = sync_channel(WAITING);
        let (finished, done) = sync_channel(1);
        let (prepared, is_prepared) = sync_channel(1);
        let work = move || {
            let outcome = prepare();
            let is_ready = outcome.is_ok();
            if prepared.send(outcome).is_ok() && is_ready {
                Thread::new(place, log, save).run(&inbox);
                let _ = finished.send(());
            }
        };
        let thread = thread::Builder::new().name("history".to_owned());
        thread.spawn(work).map_err(failed)?;
        is_prepared
            .recv()
            .map_err(|_| "history: its thread has ended".to_owned())??;
        Ok(Self { notes, done })
    }

    /// Passes a sample on.
    pub fn sample(&self, sample: Sample) {
        let _ = self.notes.try_send(Note::Sample(sample));
    }

    /// Answers a query of a client, then closes the connection.
    pub fn answer(&self, client: UnixStream, query: Query) {
        let _ = self.notes.try_send(Note::Client(client, query));
    }

    /// A function that passes on messages of the log.
    pub fn listener(&self) -> impl FnMut(&str) + Send + use<> {
        let notes = self.notes.clone();
        move |message| {
            let _ = notes.try_send(Note::Event(message.to_owned()));
        }
    }

    /// Writes the file a last time.
    pub fn end(self) {
        if self.notes.send(Note::End).is_ok() {
            let _ = self.done.recv_timeout(LAST);
        }
    }
}

struct Thread {
    history: History,
    file: Option<PathBuf>,
    log: Log,
    /// The time of the history's clock.
    time: Instant,
    saved: Instant,
    save: Duration,
    /// The last failure to write, which is logged once.
    failure: String,
}

impl Thread {
    fn new(place: Option<Place>, log: Log, save: Duration) -> Self {
        let now = Instant::now();
        let file = place.map(|place| stored::file_in(&place.folder, &place.interface));
        let mut thread = Self {
            history: History::default(),
            file,
            log,
            time: now,
            saved: now,
            save,
            failure: String::new(),
        };
        thread.load();
        thread
    }

    fn load(&mut self) {
        let Some(file) = &self.file else { return };
        match History::load(file, unix()) {
            Ok(Some(history)) => self.history = history,
            Ok(None) => {}
            Err(why) => {
                let mut aside = file.as_os_str().to_owned();
                aside.push(".unreadable");
                let place = PathBuf::from(&aside);
                let kept = match fs::rename(file, &aside) {
                    Ok(()) => format!(", and the file is kept as {}", place.display()),
                    Err(_) => String::new(),
                };
                let message = format!("history: {}: {why}; it begins again{kept}", file.display());
                self.say(&message);
            }
        }
    }

    fn say(&mut self, message: &str) {
        self.log.say(message);
        self.history.note(message);
    }

    fn run(mut self, notes: &Receiver<Note>) {
        loop {
            let due = self.save.saturating_sub(self.saved.elapsed());
            let note = notes.recv_timeout(due);
            let now = Instant::now();
            let elapsed = now.saturating_duration_since(self.time);
            self.history.advance(elapsed.as_secs_f64());
            self.time = now;
            match note {
                Ok(Note::Sample(sample)) => self.history.add(sample),
                Ok(Note::Event(message)) => self.history.note(&message),
                Ok(Note::Client(client, query)) => {
                    let _ = reply(client, &self.history.answer(&query));
                }
                Ok(Note::End) | Err(RecvTimeoutError::Disconnected) => return self.save(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.saved.elapsed() >= self.save {
                self.save();
            }
        }
    }

    fn save(&mut self) {
        self.saved = Instant::now();
        let Some(file) = self.file.clone() else {
            return;
        };
        let failure = match self.history.save(&file, unix()) {
            Ok(()) => String::new(),
            Err(error) => format!(
                "history: {}: {}; it is lost with the next restart",
                file.display(),
                words(&error)
            ),
        };
        if failure != self.failure {
            self.failure.clone_from(&failure);
            if !failure.is_empty() {
                self.say(&failure);
            }
        }
    }
}

fn reply(mut client: UnixStream, text: &str) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(PATIENCE))?;
    client.write_all(text.as_bytes())
}

fn unix() -> f64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::net::UnixStream, path::Path, time::Duration};

    use super::{Keeper, Place};
    use crate::{
        history::{Query, Range, Subject, Value},
        log::{Format, Log},
    };

    fn keeper(folder: &Path) -> Keeper {
        let place = Place {
            folder: folder.to_owned(),
            interface: "tun0".to_owned(),
        };
        let log = Log::new(Format::Text);
        Keeper::start_with(Some(place), log, Duration::from_millis(20), || Ok(()))
            .expect("a thread")
    }

    fn ask(keeper: &Keeper) -> serde_json::Value {
        let (mut client, server) = UnixStream::pair().expect("a pair");
        let query = Query {
            range: Range::Hour,
            peer: None,
        };
        keeper.answer(server, query);
        let mut text = String::new();
        client.read_to_string(&mut text).expect("an answer");
        serde_json::from_str(&text).expect("it is JSON")
    }

    #[test]
    fn a_history_survives_a_restart_and_a_damaged_file_is_put_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = keeper(folder.path());
        first.listener()("path lte is dead");
        let subject = Subject {
            peer: "hub".to_owned(),
            path: None,
            class: None,
        };
        for total in [0, 100] {
            let totals = std::iter::repeat_n(Value::Total(total), 7);
            let values = std::iter::once(Value::Now(1.0)).chain(totals);
            first.sample(vec![(subject.clone(), values.collect())]);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(ask(&first)["series"][0]["values"]["up"][0], 1.0);
        // A crash: the file of the last regular write remains.
        let file = folder.path().join("history-tun0.json");
        while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains("hub")) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let crashed = std::fs::read(&file).expect("it is there");
        first.end();
        std::fs::write(&file, crashed).expect("written");

        let second = keeper(folder.path());
        let answer = ask(&second);
        assert_eq!(answer["series"][0]["peer"], "hub", "{answer}");
        assert_eq!(answer["events"][0]["message"], "path lte is dead");
        second.end();

        std::fs::write(&file, "{}").expect("written");
        let third = keeper(folder.path());
        let answer = ask(&third);
        let message = answer["events"][0]["message"].as_str().expect("an event");
        assert!(message.contains("it is no history"), "{message}");
        assert!(folder.path().join("history-tun0.json.unreadable").exists());
        third.end();
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = keeper(&folder.path().join("absent"));
        std::thread::sleep(Duration::from_millis(100));
        let answer = ask(&keeper);
        let events = answer["events"].as_array().expect("a list");
        assert_eq!(events.len(), 1, "{answer}");
        keeper.end();
    }
}
