//! Questions on the terminal. Without one, or with `--yes`, each answer is the default.

use std::{
    fmt::Display,
    io::{self, BufRead, IsTerminal, Read, Write},
    str::FromStr,
};

use anabranch_core::{shown, system::words};

/// Asks, or takes defaults.
pub struct Asker {
    is_interactive: bool,
}

impl Asker {
    pub fn new(is_quiet: bool) -> Self {
        let is_interactive = !is_quiet && io::stdin().is_terminal();
        Self { is_interactive }
    }

    /// Asks until the answer is valid; `option` gives the answer on the command line.
    ///
    /// # Errors
    /// If there is no terminal, or it is closed.
    pub fn required<T: FromStr<Err: Display>>(
        &self,
        question: &str,
        option: &str,
    ) -> Result<T, String> {
        if !self.is_interactive {
            return Err(format!(
                "a value is missing that init asks for only at a terminal and without --yes; \
                 expected {option}"
            ));
        }
        loop {
            let answer = prompt(&format!("{question}: "))?;
            if answer.is_empty() {
                continue;
            }
            match answer.parse() {
                Ok(value) => return Ok(value),
                Err(why) => complain(&why.to_string()),
            }
        }
    }

    /// Asks for values separated by commas.
    ///
    /// # Errors
    /// As [`Self::required`].
    pub fn list<T: FromStr<Err: Display>>(
        &self,
        question: &str,
        default: &str,
    ) -> Result<Vec<T>, String> {
        self.list_of(question, default, |text| {
            text.parse().map_err(|why| format!("`{text}` {why}"))
        })
    }

    /// As [`Self::list`], with another reader. The default `none` is an empty list.
    ///
    /// # Errors
    /// As [`Self::required`].
    pub fn list_of<T>(
        &self,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let all = |text: &str| -> Result<Vec<T>, String> {
            let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
            match text {
                "none" => Ok(Vec::new()),
                _ => parts.map(&read).collect(),
            }
        };
        if !self.is_interactive {
            return all(default);
        }
        loop {
            let answer = prompt(&format!("{question} [{default}]: "))?;
            let answer = if answer.is_empty() { default } else { &answer };
            match all(answer) {
                Ok(values) => return Ok(values),
                Err(why) => complain(&why),
            }
        }
    }

    /// Asks a question whose default answer is no.
    ///
    /// # Errors
    /// As [`Self::required`].
    pub fn yes(&self, question: &str) -> Result<bool, String> {
        if !self.is_interactive {
            return Ok(false);
        }
        loop {
            match prompt(&format!("{question} [y/N]: "))?
                .to_ascii_lowercase()
                .as_str()
            {
                "" | "n" | "no" => return Ok(false),
                "y" | "yes" => return Ok(true),
                _ => complain("expected y or n"),
            }
        }
    }
}

fn prompt(text: &str) -> Result<String, String> {
    let failed = |error: io::Error| format!("the terminal: {}", words(&error));
    eprint!("{}", shown::terminal(text));
    io::stderr().flush().map_err(failed)?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line).map_err(failed)? {
        0 => Err(
            "the terminal was closed before all questions were answered; nothing was written"
                .to_owned(),
        ),
        _ => Ok(line.trim().to_owned()),
    }
}

/// Reads one line of standard input, of at most `most` octets; asks for it on a terminal, where the
/// answers to questions may follow.
///
/// # Errors
/// If it cannot be read.
pub fn line(question: &str, most: u64) -> Result<String, String> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        eprint!("{question}");
    }
    let mut line = String::new();
    let read = stdin.lock().take(most).read_line(&mut line);
    read.map_err(|error| format!("standard input: {}", words(&error)))?;
    Ok(line)
}

fn complain(why: &str) {
    eprintln!("  {}", shown::terminal(why));
}
