//! Writes a new file named by an option: atomically, and without replacing anything.
//!
//! The file at the end of symbolic links is created, and the links remain. The content is written
//! to a hidden file in the same directory, which is atomically renamed if the name is still free. A
//! pipe or a character device is written and remains. Any other existing file is unchanged: a
//! regular file, a directory, a socket, a block device.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    process,
};

use anabranch_core::system;
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, RawMode, RenameFlags, fstat, open, renameat_with},
    io::Errno,
};

/// The kernel's limit of links in one path (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// The reason why a file is not written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file exists.
    #[error("it exists and is left as it is")]
    Exists,
    /// Something other than a file exists, or has appeared meanwhile.
    #[error("it is {0}; a new file was expected")]
    Kind(&'static str),
    /// The system's reason.
    #[error("{}", system::words(.0))]
    System(#[from] io::Error),
}

/// Writes a file with these permissions, which must not exist, or writes to a pipe or a character
/// device.
///
/// # Errors
/// If a file or anything else exists, or the system fails. Nothing has changed then.
pub fn write_new(path: &Path, content: &[u8], mode: RawMode) -> Result<(), OutputError> {
    let place = end_of_links(path)?;
    // Also if it refers to a file: the descriptor is written, and the file is not replaced.
    if place == Path::new("/proc/self/fd/1") {
        let mut out = io::stdout();
        return Ok(out.write_all(content).and_then(|()| out.flush())?);
    }
    match fs::metadata(&place) {
        Ok(there) if there.file_type().is_fifo() || there.file_type().is_char_device() => {
            stream(&place, content)
        }
        Ok(there) if there.is_dir() => Err(OutputError::Kind("a directory")),
        Ok(there) if there.file_type().is_socket() => Err(OutputError::Kind("a socket")),
        Ok(there) if there.file_type().is_block_device() => Err(OutputError::Kind("a device")),
        Ok(_) => Err(OutputError::Exists),
        Err(error) if error.kind() == io::ErrorKind::NotFound => whole(&place, content, mode),
        Err(error) => Err(error.into()),
    }
}

/// Resolves the symbolic links of a path, whose file need not exist. Links of `/proc` to
/// descriptors are kept: the text of such a link to a pipe is not a path.
fn end_of_links(path: &Path) -> Result<PathBuf, OutputError> {
    let mut place = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let is_link = fs::symlink_metadata(&place).is_ok_and(|there| there.is_symlink());
        if !is_link || place.starts_with("/proc") {
            return Ok(place);
        }
        let end = fs::read_link(&place)?;
        place = place.parent().unwrap_or(Path::new("")).join(end);
    }
    Err(io::Error::from(Errno::LOOP).into())
}

fn stream(place: &Path, content: &[u8]) -> Result<(), OutputError> {
    // Neither CREATE nor TRUNC: opening a file that has since replaced the stream changes nothing.
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = open(place, flags, Mode::empty()).map_err(io::Error::from)?;
    let kind = FileType::from_raw_mode(fstat(&opened).map_err(io::Error::from)?.st_mode);
    if !matches!(kind, FileType::Fifo | FileType::CharacterDevice) {
        return Err(OutputError::Exists);
    }
    Ok(File::from(opened).write_all(content)?)
}

fn whole(place: &Path, content: &[u8], mode: RawMode) -> Result<(), OutputError> {
    let folder = place.parent().unwrap_or(Path::new(""));
    let aside = folder.join(format!(".anabranch-{}.part", process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(&aside, flags, Mode::from_raw_mode(mode)).map_err(io::Error::from)?;
    let mut file = File::from(opened);
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let placed = written
        .map_err(OutputError::from)
        .and_then(|()| rename_new(&aside, place));
    if placed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    placed
}

fn rename_new(aside: &Path, place: &Path) -> Result<(), OutputError> {
    match renameat_with(CWD, aside, CWD, place, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(OutputError::Exists),
        // A file system without this operation (NFS): a hard link does not replace an existing name
        // either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(aside, place)?;
            Ok(fs::remove_file(aside)?)
        }
        Err(error) => Err(io::Error::from(error).into()),
    }
}
