//! Files that a scenario names: lists, traces and captures.

use std::path::{Path, PathBuf};

use anabranch_core::side_file::Misread;

use super::Resolver;
use crate::{
    error::{Error, Place, Sources},
    library,
};

/// The largest text, in bytes: 64 MiB. A trace of days of a fast link fits.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// The largest capture, in bytes: 1 GiB. The content is in memory while it is decoded.
const MAX_CAPTURE_BYTES: u64 = 1 << 30;

/// A file named in the scenario.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The keys that lead to its name.
    pub path: &'a [&'a str],
    /// Its name; the path is relative to the folder of the scenario's file.
    pub file: &'a str,
    /// The expected content.
    pub noun: &'a str,
}

impl Named<'_> {
    /// Returns the path of the file.
    pub(super) fn place(&self, resolver: &Resolver<'_>) -> PathBuf {
        if library::file(self.file).is_some() {
            return PathBuf::from(self.file);
        }
        let beside = Path::new(resolver.sources.file()).parent();
        beside.unwrap_or(Path::new("")).join(self.file)
    }

    /// Reads the content of a file that a scenario names; the only function that does.
    fn content(&self, resolver: &Resolver<'_>, most: u64) -> Result<Vec<u8>, Error> {
        if let Some(content) = library::file(self.file) {
            return content
                .map(|text| text.as_bytes().to_vec())
                .map_err(|help| {
                    let message = format!("`{}` is not in the library", self.file);
                    resolver.error(self.path, message, help)
                });
        }
        let place = self.place(resolver);
        let refused = |why: String| self.refuse(resolver, &format!("cannot be read: {why}"));
        let content = resolver.extensions.read(&place, most).map_err(refused)?;
        // A reader supplied by the caller may return more than `most` bytes.
        if content.len() as u64 > most {
            return Err(self.refuse(
                resolver,
                &format!(
                    "has {} bytes, and {} MiB is the most",
                    content.len(),
                    most >> 20
                ),
            ));
        }
        Ok(content)
    }

    fn refuse(&self, resolver: &Resolver<'_>, why: &str) -> Error {
        let message = format!("`{}` {why}", self.place(resolver).display());
        let help = format!(
            "expected {}; its path is relative to the scenario's file",
            self.noun
        );
        resolver.error(self.path, message, vec![help])
    }
}

/// Reads a capture.
pub(super) fn capture(resolver: &Resolver<'_>, named: Named<'_>) -> Result<Vec<u8>, Error> {
    named.content(resolver, MAX_CAPTURE_BYTES)
}

/// Reads a text file and parses it.
pub(super) fn text<T>(
    resolver: &Resolver<'_>,
    named: Named<'_>,
    parse: impl FnOnce(&str) -> Result<T, Misread>,
) -> Result<T, Error> {
    let bytes = named.content(resolver, MAX_TEXT_BYTES)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return Err(named.refuse(resolver, &format!("is not text: byte {at} is not UTF-8")));
        }
    };
    // The scenario itself permits a byte order mark, too.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    parse(text).map_err(|wrong| {
        let name = named.place(resolver).display().to_string();
        let help = vec![format!("expected {}", wrong.expected)];
        Sources::new(&name, text)
            .error(Place::new(0, wrong.at), wrong.message, help)
            .in_file_named_at(resolver.root.locate(named.path))
    })
}
