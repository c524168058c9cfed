//! The configuration file: its format, and the consistency of its values.

mod bypass;
mod cap;
mod check;
mod format;
mod value;

use std::{fmt, path::Path};

use anabranch_document::{
    Error,
    de::{self, Names},
    error::{Place, Sources},
    every::{Joints, Wrong, errors},
    tree::{Node, parse_document},
};

use anabranch_files::Files;

pub use self::{
    bypass::{ADDRESSES, Account, Bypass},
    cap::{AtCap, amount},
    format::{Config, Peer, Policy, Way},
    value::{Endpoint, Interface},
};

/// The largest file that is read, in bytes: that of 100,000 peers.
const MAX_BYTES: u64 = 1 << 24;

/// The reason why there is no configuration.
#[derive(Debug)]
pub enum Failure {
    /// The file cannot be read.
    Unreadable { file: String, why: String },
    /// The file contains errors.
    Wrong(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, why } => write!(f, "{file}: {why}"),
            Self::Wrong(error) => error.fmt(f),
        }
    }
}

/// No component has parameters here, so only the types have names.
pub struct NoNames;

impl Names for NoNames {
    fn added(&self, _seam: &str) -> Vec<&str> {
        Vec::new()
    }
    fn later(&self, _seam: &str) -> &[&str] {
        &[]
    }
}

/// Reads the file and all files that it names.
pub fn load(path: &Path) -> Result<Config, Failure> {
    let (text, file) = text(path)?;
    parse(&text, &file, path.parent().unwrap_or(Path::new(""))).map_err(Failure::Wrong)
}

/// Reads the file, but none of the files in it, and does not check that its values are consistent.
pub fn load_without_keys(path: &Path) -> Result<Config, Failure> {
    let (text, file) = text(path)?;
    let sources = Sources::new(&file, &text);
    let root = parse_document(&text).map_err(|faults| sources.faults(faults, Place::new(0, 0..0)));
    let root = root.map_err(Failure::Wrong)?;
    let config = de::read(&root, &NoNames);
    config.map_err(|fault| Failure::Wrong(sources.fault(fault, root.place)))
}

/// The text of the file, and its name.
fn text(path: &Path) -> Result<(String, String), Failure> {
    let file = path.display().to_string();
    let unreadable = |why: String| Failure::Unreadable {
        file: file.clone(),
        why,
    };
    let bytes = Files::default()
        .read(path, MAX_BYTES)
        .map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        unreadable(format!(
            "byte {} is not UTF-8; a TOML file was expected",
            e.utf8_error().valid_up_to()
        ))
    })?;
    Ok((text, file))
}

/// Reads a configuration from a text; `folder` is the folder of the files that it names.
pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Config, Error> {
    let sources = Sources::new(file, text);
    let start = Place::new(0, 0..0);
    let root = parse_document(text).map_err(|faults| sources.faults(faults, start))?;
    let joints = Joints {
        sections: &["path", "peer", "bypass"],
        keys: &[],
    };
    read(&root, &sources, folder).map_err(|first| {
        errors(&root, first.error, joints, &|root| {
            read(root, &sources, folder).err()
        })
    })
}

fn read(root: &Node, sources: &Sources, folder: &Path) -> Result<Config, Wrong> {
    let config: Config = de::read(root, &NoNames).map_err(|fault| Wrong {
        is_missing: fault.is_missing,
        error: sources.fault(fault, root.place),
        is_of_many: false,
    })?;
    check::check(config, root, sources, folder).map_err(|error| Wrong {
        error,
        is_missing: false,
        is_of_many: true,
    })
}
