//! A file that is replaced as a whole, by a separate thread: the thread that carries packets does
//! not wait for the disk.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc::sync_channel},
    thread::{self, JoinHandle},
};

use anabranch_core::system::words;
use anabranch_files::Files;
use rustix::fs::OFlags;

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 22;

#[derive(Default)]
struct Shared {
    /// The newest content that is not written yet.
    content: Option<Vec<u8>>,
    is_over: bool,
    /// A failure that was not reported yet.
    failure: Option<String>,
}

/// The daemon's side of the thread, which writes the last content when this is dropped.
pub struct Store {
    shared: Arc<(Mutex<Shared>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Reads the file, and starts the thread that replaces it, which calls `prepare` first. Returns
    /// the content, if there is a file.
    ///
    /// # Errors
    /// If the file cannot be read, the system refuses the thread, or `prepare` fails.
    pub fn open(
        file: PathBuf,
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(Self, Option<Vec<u8>>), String> {
        let content = match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(words(&error)),
            Ok(_) => {
                let read = Files::default().read(&file, MAX_BYTES);
                read.map(Some).map_err(|error| error.to_string())
            }
        };
        let content = content.map_err(|why| format!("{}: {why}", file.display()))?;
        let shared: Arc<(Mutex<Shared>, Condvar)> = Arc::default();
        let (prepared, is_prepared) = sync_channel(1);
        let theirs = Arc::clone(&shared);
        let work = move || {
            let outcome = prepare();
            let is_ready = outcome.is_ok();
            if prepared.send(outcome).is_ok() && is_ready {
                run(&file, &theirs);
            }
        };
        let thread = thread::Builder::new().name("store".to_owned()).spawn(work);
        let thread = Some(thread.map_err(|error| format!("store: {}", words(&error)))?);
        is_prepared
            .recv()
            .map_err(|_| "store: its thread has ended".to_owned())??;
        Ok((Self { shared, thread }, content))
    }

    /// Replaces the content of the file soon. A content that still waits is dropped.
    pub fn write(&self, content: Vec<u8>) {
        lock(&self.shared.0).content = Some(content);
        self.shared.1.notify_one();
    }

    /// Takes the message of a failure to write.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.0).failure.take()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        lock(&self.shared.0).is_over = true;
        self.shared.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(mutex: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // No holder panics.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn run(file: &Path, (mutex, condition): &(Mutex<Shared>, Condvar)) {
    loop {
        let mut shared = lock(mutex);
        while shared.content.is_none() && !shared.is_over {
            shared = condition
                .wait(shared)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let Some(content) = shared.content.take() else {
            return;
        };
        drop(shared);
        if let Err(error) = replace(file, &content) {
            lock(mutex).failure = Some(format!("{}: {}", file.display(), words(&error)));
        }
    }
}

/// Writes a file beside and renames it, so that a reader finds the whole earlier or the whole new
/// content, also after a loss of power.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    place(file, content, |_| Ok(()))?;
    sync_folder(file)
}

/// As [`replace`], for a file that exists and keeps its owner and mode.
pub fn replace_kept(file: &Path, content: &[u8]) -> io::Result<()> {
    let about = fs::metadata(file)?;
    // By the descriptor: the folder's user could replace the new file by a link meanwhile.
    place(file, content, |aside| {
        let now = aside.metadata()?;
        if (now.uid(), now.gid()) != (about.uid(), about.gid()) {
            fchown(aside, Some(about.uid()), Some(about.gid()))?;
        }
        aside.set_permissions(about.permissions())
    })?;
    // The content is in place: a caller must not undo its other writes if this fails.
    let _ = sync_folder(file);
    Ok(())
}

/// Writes a file beside and renames it. After an error the earlier file is unchanged.
fn place(
    file: &Path,
    content: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut aside = file.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    let written = write(&aside, content, prepare).and_then(|()| fs::rename(&aside, file));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn write(
    aside: &Path,
    content: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0))
        .open(aside)?;
    prepare(&file)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::Store;

    #[test]
    fn the_last_content_is_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("usage.json");
        let (store, content) = Store::open(file.clone(), || Ok(())).expect("a thread");
        assert_eq!(content, None);
        for number in 0..100 {
            store.write(format!("{number}").into_bytes());
        }
        drop(store);
        assert_eq!(fs::read(&file).expect("it is there"), b"99");
        let mode = fs::metadata(&file)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let (_store, content) = Store::open(file, || Ok(())).expect("a thread");
        assert_eq!(content.as_deref(), Some(&b"99"[..]));
        let names = fs::read_dir(folder.path()).expect("a folder");
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn a_failure_is_reported_and_a_later_write_succeeds() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("state").join("usage.json");
        let (store, _) = Store::open(file.clone(), || Ok(())).expect("a thread");
        store.write(b"1".to_vec());
        let failure = loop {
            if let Some(failure) = store.failure() {
                break failure;
            }
            std::thread::yield_now();
        };
        assert!(failure.contains("usage.json: No such file"), "{failure}");
        fs::create_dir(file.parent().expect("a folder")).expect("it is made");
        store.write(b"2".to_vec());
        drop(store);
        assert_eq!(fs::read(&file).expect("it is there"), b"2");
        let refused = Store::open(file, || Err("no".to_owned())).err();
        assert_eq!(refused.as_deref(), Some("no"));
    }
}
