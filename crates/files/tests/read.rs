//! Files that are read or rejected, and the end of reading.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anabranch_files::{Error, Files};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn refusal(path: impl AsRef<Path>, most: u64) -> String {
    let refused = Files::default().read(path.as_ref(), most);
    refused.expect_err("it must be refused").to_string()
}

#[test]
fn a_regular_file_is_read_through_a_link() {
    let folder = folder();
    let content: Vec<u8> = (0..1_000_003_u32).map(|k| k.to_le_bytes()[1]).collect();
    fs::write(folder.path().join("x"), &content).expect("written");
    symlink("x", folder.path().join("link")).expect("a link");
    let most = content.len() as u64;
    let read = Files::default().read(&folder.path().join("link"), most);
    assert!(read.expect("it is read") == content);
    fs::write(folder.path().join("empty"), b"").expect("written");
    let empty = Files::default().read(&folder.path().join("empty"), 0);
    assert_eq!(empty.expect("it is read"), b"");
}

#[test]
fn a_file_is_read_within_its_bound() {
    let folder = folder();
    let path = folder.path().join("x");
    fs::write(&path, b"12345").expect("written");
    assert!(refusal(&path, 4).contains("more than 4 bytes"));
    let sparse = fs::File::create(&path).expect("a file");
    sparse.set_len(1 << 40).expect("sparse");
    assert!(refusal(&path, 64 << 20).contains("67,108,864 bytes"));
}

#[test]
fn a_wrong_size_does_not_lift_the_bound() {
    let path = Path::new("/proc/self/maps");
    assert_eq!(fs::metadata(path).expect("it is there").len(), 0);
    assert!(refusal(path, 100).contains("more than 100 bytes"));
}

#[test]
fn a_file_that_is_not_regular_is_rejected() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).expect("a FIFO");
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    symlink(&fifo, folder.path().join("link")).expect("a link");
    for (path, kind) in [
        (fifo.clone(), "a pipe"),
        (folder.path().join("link"), "a pipe"),
        (socket, "a socket"),
        (folder.path().to_owned(), "a directory"),
        (PathBuf::from("/dev/zero"), "a device"),
    ] {
        let said = refusal(path, 10);
        assert!(
            said.contains(kind) && said.contains("regular file"),
            "{said}"
        );
    }
    assert!(refusal(folder.path().join("none"), 10).contains("No such file"));
}

#[test]
fn a_guard_receives_each_path_and_may_reject_it() {
    let folder = folder();
    let path = folder.path().join("x");
    fs::write(&path, b"1").expect("written");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let files = Files::default()
        .guard({
            let seen = Arc::clone(&seen);
            move |path| {
                seen.lock().expect("no panic").push(path.to_owned());
                Ok(())
            }
        })
        .guard(|path| {
            if path.ends_with("x") {
                Err("it is outside".to_owned())
            } else {
                Ok(())
            }
        });
    let refused = files.read(&path, 10).expect_err("a guard refuses it");
    assert_eq!(refused.to_string(), "it is outside");
    assert_eq!(*seen.lock().expect("no panic"), [path]);
}

#[test]
fn reading_stops_between_chunks() {
    let folder = folder();
    let path = folder.path().join("x");
    fs::File::create(&path)
        .and_then(|file| file.set_len(1 << 30))
        .expect("sparse");
    let asked = Arc::new(AtomicUsize::new(0));
    let files = Files::default().stop({
        let asked = Arc::clone(&asked);
        move || asked.fetch_add(1, Ordering::Relaxed) == 3
    });
    let stopped = files.read(&path, 1 << 30);
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}
