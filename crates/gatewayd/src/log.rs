//! Messages of the daemon on standard error. There is no message per packet, and their rate is
//! limited.

use std::{
    io::{self, Write},
    time::{Duration, Instant, SystemTime},
};

use anabranch_core::shown;

/// The most messages within [`PERIOD`].
const MOST: u32 = 20;
const PERIOD: Duration = Duration::from_secs(10);

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A line of text.
    Text,
    /// A line with a JSON object: `time_s`, `message`.
    Json,
}

/// A function that receives written messages.
type Listener = Box<dyn FnMut(&str) + Send>;

/// The log.
pub struct Log {
    format: Format,
    since: Instant,
    written: u32,
    suppressed: u32,
    listener: Option<Listener>,
}

impl Log {
    /// A log on standard error.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            since: Instant::now(),
            written: 0,
            suppressed: 0,
            listener: None,
        }
    }

    /// Another log of the same format.
    pub fn another(&self) -> Self {
        Self::new(self.format)
    }

    /// Passes each written message to a function, too.
    pub fn listen(&mut self, listener: impl FnMut(&str) + Send + 'static) {
        self.listener = Some(Box::new(listener));
    }

    /// Writes a message, unless there were too many.
    pub fn say(&mut self, message: &str) {
        for line in self.lines(message, Instant::now()) {
            // A failure to write the log must not end the daemon.
            let _ = io::stderr().write_all(self.line(&line).as_bytes());
            if let Some(listener) = &mut self.listener {
                listener(&line);
            }
        }
    }

    /// The messages to write now.
    fn lines(&mut self, message: &str, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        if now.duration_since(self.since) >= PERIOD {
            if self.suppressed > 0 {
                lines.push(format!("{} messages were left out", self.suppressed));
            }
            (self.since, self.written, self.suppressed) = (now, 0, 0);
        }
        if self.written < MOST {
            self.written += 1;
            lines.push(message.to_owned());
        } else {
            self.suppressed += 1;
        }
        lines
    }

    fn line(&self, message: &str) -> String {
        match self.format {
            Format::Text => shown::terminal(message) + "\n",
            Format::Json => {
                let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let time = time.unwrap_or_default().as_secs_f64();
                let object = serde_json::json!({ "time_s": time, "message": message });
                shown::printable_json(&object.to_string()) + "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Format, Log, MOST, PERIOD};

    #[test]
    fn messages_beyond_the_limit_are_counted() {
        let mut log = Log::new(Format::Text);
        let start = log.since;
        let written = (0..MOST + 5).map(|_| log.lines("flaps", start).len());
        assert_eq!(written.sum::<usize>(), 20);
        let later = log.lines("calm", start + PERIOD);
        assert_eq!(later, ["5 messages were left out", "calm"]);
    }

    #[test]
    fn a_message_in_json_is_one_object() {
        let line = Log::new(Format::Json).line("a \"name\"\nand more");
        let object: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(object["message"], "a \"name\"\nand more");
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn a_name_in_a_message_controls_no_terminal() {
        let name = "peer \x1b[2J\u{9b}2J\u{202e}";
        for format in [Format::Text, Format::Json] {
            let line = Log::new(format).line(name);
            let text = line.trim_end();
            assert_eq!(text, anabranch_core::shown::plain(text));
        }
    }
}
