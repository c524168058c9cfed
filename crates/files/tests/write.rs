//! A new file replaces no other file. The tests never write to a device of /dev.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::Read,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    thread,
};

use anabranch_files::write_new;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

fn write(path: &Path) -> Result<(), String> {
    write_new(path, b"content", 0o600).map_err(|error| error.to_string())
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    names
}

/// Creates a copy of the null device; `false` if the user or file system does not permit it.
fn device(path: &Path) -> bool {
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, path, FileType::CharacterDevice, mode, makedev(1, 3)).is_ok()
        && fs::OpenOptions::new().write(true).open(path).is_ok()
}

#[test]
fn a_new_file_has_its_permissions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    write(&path).expect("it is new");
    let about = fs::metadata(&path).expect("it is there");
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&path).expect("it is there"), b"content");
    assert_eq!(names(folder.path()), [path]);
}

#[test]
fn other_files_are_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "years").expect("written");
    fs::create_dir(at("directory")).expect("made");
    let _listener = UnixListener::bind(at("socket")).expect("bound");
    symlink("file", at("link")).expect("a link");
    symlink("circle", at("circle")).expect("a link");
    let before = names(folder.path());
    let cases = [
        ("file", "it exists and is left as it is"),
        ("link", "it exists and is left as it is"),
        ("directory", "it is a directory; a new file was expected"),
        ("socket", "it is a socket; a new file was expected"),
        ("circle", "Too many levels of symbolic links"),
        ("no/file", "No such file or directory"),
        ("file/x", "Not a directory"),
    ];
    for (name, why) in cases {
        let refused = write(&at(name)).expect_err("it must be refused");
        assert!(refused.contains(why), "{name}: {refused}");
    }
    assert_eq!(names(folder.path()), before);
    assert_eq!(fs::read(at("file")).expect("it is there"), b"years");
}

#[test]
fn a_dangling_link_stays_and_its_file_is_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("link");
    fs::create_dir(folder.path().join("there")).expect("made");
    symlink("there/end", &link).expect("a link");
    write(&link).expect("it is new");
    assert!(
        fs::symlink_metadata(&link)
            .expect("it is there")
            .is_symlink()
    );
    let end = fs::read(folder.path().join("there/end")).expect("it is there");
    assert_eq!(end, b"content");
}

#[test]
fn a_pipe_is_written_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let reader = {
        let path = path.clone();
        thread::spawn(move || {
            let mut content = Vec::new();
            let mut opened = fs::File::open(path).expect("a pipe");
            opened.read_to_end(&mut content).expect("it ends");
            content
        })
    };
    write(&path).expect("it is written");
    assert_eq!(reader.join().expect("no panic"), b"content");
    let about = fs::symlink_metadata(&path).expect("it is there");
    assert!(about.file_type().is_fifo());
}

#[test]
fn a_device_is_written_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, link) = (folder.path().join("node"), folder.path().join("link"));
    if !device(&node) {
        eprintln!("SKIPPED: no device nodes here");
        return;
    }
    symlink("node", &link).expect("a link");
    let before = fs::metadata(&node).expect("it is there").ino();
    for path in [&node, &link] {
        write(path).expect("it is written");
    }
    let after = fs::symlink_metadata(&node).expect("it is there");
    assert!(after.file_type().is_char_device());
    assert_eq!(after.ino(), before);
    assert_eq!(names(folder.path()), [link, node]);
}
