//! Files that a scenario names: lists and traces beside it.

use std::path::Path;

use anabranch_elements::side_file::Misread;

use super::Resolver;
use crate::scenario::error::{Error, Place, Sources};

/// The largest such file, in bytes: 64 MiB. Days of a fast link's trace fit.
const MAX_BYTES: usize = 64 << 20;

/// Reads the text of `file`, whose path counts from where the scenario's file is, and makes something of it.
/// `path` is where the scenario names it, and `noun` what it should be.
pub(super) fn read<T>(
    resolver: &Resolver<'_>,
    (path, file): (&[&str], &str),
    noun: &str,
    parse: impl FnOnce(&str) -> Result<T, Misread>,
) -> Result<T, Error> {
    let beside = Path::new(resolver.sources.file()).parent();
    let place = beside.unwrap_or(Path::new("")).join(file);
    let name = place.display().to_string();
    let refuse = |message: String| {
        let help = format!("expected {noun}; its path counts from where the scenario's file is");
        Err(resolver.error(path, message, vec![help]))
    };
    let bytes = match resolver.extensions.read(&place) {
        Ok(bytes) => bytes,
        Err(error) => return refuse(format!("`{name}` cannot be read: {error}")),
    };
    if bytes.len() > MAX_BYTES {
        let most = MAX_BYTES >> 20;
        return refuse(format!(
            "`{name}` has {} bytes, and {most} MiB is the most",
            bytes.len()
        ));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return refuse(format!("`{name}` is no text: byte {at} is not UTF-8"));
        }
    };
    parse(&text).map_err(|wrong| {
        let help = vec![format!("expected {}", wrong.expected)];
        Sources::new(&name, &text).error(Place::new(0, wrong.at), wrong.message, help)
    })
}
