//! The library that loads programs into the kernel (`crates/loader`), opened at its first use.
//!
//! The engine does not link libbpf or its dependencies, libelf and zlib: one build works on every
//! machine.

#[expect(dead_code, reason = "the library uses the other half")]
mod abi;

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

pub use abi::{
    DENIED, DONE, Loader, NO_CONTROL, Octets, PLACE, QueueMaps, Report, Sink, Status, Watch,
};

use crate::{Error, privilege::BUILD};

/// Names of the library: in the Python package, and in cargo's folder.
const NAMES: [&str; 2] = ["_loader.so", "libanabranch_loader.so"];

// SAFETY: the table is a constant of the library.
unsafe impl Send for Loader {}
// SAFETY: as above.
unsafe impl Sync for Loader {}

/// The loader's functions.
///
/// # Errors
/// The library is missing, or belongs to another version of the engine.
pub fn loader() -> Result<&'static Loader, Error> {
    static OPENED: OnceLock<Result<&'static Loader, Error>> = OnceLock::new();
    let opened = OPENED.get_or_init(|| match own_file().as_deref().and_then(beside) {
        Some(path) => open(&path),
        None => Err(Error::System(format!(
            "this installation cannot load programs into the kernel: {} is missing; {BUILD}",
            NAMES[0]
        ))),
    });
    opened.clone()
}

fn open(path: &Path) -> Result<&'static Loader, Error> {
    let unable = |why: &dyn std::fmt::Display| {
        Error::System(format!("cannot open {}: {why}; {BUILD}", path.display()))
    };
    // SAFETY: the library has no constructors, and depends on libelf and zlib only.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| unable(&error))?;
    // Never unloaded: links and traces call into it when they are dropped.
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the symbol is a `Loader`; every version of it begins with the version number.
    let table: *const Loader = *unsafe { library.get::<*const Loader>(b"ANABRANCH_LOADER") }
        .map_err(|error| unable(&error))?;
    // SAFETY: as above.
    let found = unsafe { (*table).version };
    if found != abi::VERSION {
        return Err(unable(&format!(
            "it is version {found}, and the engine calls version {}",
            abi::VERSION
        )));
    }
    // SAFETY: the table is of this version, and the library is never unloaded.
    Ok(unsafe { &*table })
}

/// The library in the folder of `own`, or in its parent for tests (the profile's folder above
/// `deps`).
fn beside(own: &Path) -> Option<PathBuf> {
    let folder = own.parent()?;
    [Some(folder), folder.parent()]
        .into_iter()
        .flatten()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// The program or library that contains this code, found by the address of this function (proc(5)).
fn own_file() -> Option<PathBuf> {
    let own = own_file as fn() -> Option<PathBuf> as usize;
    let maps = fs::read("/proc/self/maps").ok()?;
    maps.split(|octet| *octet == b'\n').find_map(|line| {
        let text = String::from_utf8_lossy(line);
        let (first, last) = text.split(' ').next()?.split_once('-')?;
        let within = usize::from_str_radix(first, 16).ok()? <= own
            && own < usize::from_str_radix(last, 16).ok()?;
        let path = line.splitn(2, |octet| *octet == b'/').nth(1)?;
        within.then(|| Path::new("/").join(std::ffi::OsStr::from_bytes(path)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{beside, open, own_file};

    #[test]
    fn own_file_is_this_program() {
        let program = std::env::current_exe().expect("it runs");
        assert_eq!(own_file(), Some(program));
    }

    #[test]
    fn the_library_is_found_beside_the_engine_or_above_the_tests() {
        let folder = tempfile::tempdir().expect("a folder");
        let deps = folder.path().join("deps");
        fs::create_dir(&deps).expect("a folder");
        let test = deps.join("all-0123");
        assert_eq!(beside(&test), None);
        let built = folder.path().join("libanabranch_loader.so");
        fs::write(&built, "").expect("a file");
        assert_eq!(beside(&test), Some(built));
        let installed = folder.path().join("_loader.so");
        fs::write(&installed, "").expect("a file");
        assert_eq!(beside(&folder.path().join("_engine.so")), Some(installed));
    }

    #[test]
    fn a_file_that_is_no_library_is_rejected_with_advice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("_loader.so");
        fs::write(&path, "not a library").expect("a file");
        let error = open(&path).expect_err("it is text").to_string();
        assert!(
            error.contains("_loader.so") && error.contains("zlib1g-dev"),
            "{error}"
        );
    }
}
