//! A compiled control loaded into this process.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{interrupt::Interrupt, system};
use libloading::Library;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use super::abi::{LAYOUT, Ops};
use crate::{Error, Source, compile};

/// The sections that contain a control's `struct tcp_congestion_ops`.
const OPS_SECTIONS: [&str; 2] = [".struct_ops.link", ".struct_ops"];

type SetNow = unsafe extern "C" fn(u64);

/// A control's functions. They remain in the process, so that a control is compiled once.
#[derive(Debug)]
pub(super) struct Loaded {
    pub ops: Ops,
    set_now: SetNow,
    /// The shared object that contains the functions.
    _library: Library,
}

impl Loaded {
    /// Sets the time for the functions called from this thread.
    pub fn set_now(&self, ns: u64) {
        // SAFETY: the shim's function takes a number and writes it to a variable of this thread;
        // its library lives as long as `self`.
        unsafe { (self.set_now)(ns) }
    }
}

/// A control, and the preprocessed text of a user's file, because headers may change between two
/// runs.
type Key = (Source, Vec<u8>);

/// Compiles and loads a control, or returns it if it is already loaded.
pub(super) fn load(source: &Source, interrupt: &Interrupt) -> Result<Arc<Loaded>, Error> {
    static LOADED: Mutex<BTreeMap<Key, Arc<Loaded>>> = Mutex::new(BTreeMap::new());
    let whole = match &source.folder {
        Some(_) => compile::preprocessed(source, interrupt)?,
        None => Vec::new(),
    };
    let key = (source.clone(), whole);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = loaded.get(&key) {
        return Ok(Arc::clone(found));
    }
    let native = compile::native(source, interrupt)?;
    refuse_variables(source, &native.object)?;
    let made = Arc::new(open(source, &native.shared)?);
    loaded.insert(key, Arc::clone(&made));
    Ok(made)
}

fn unfit(source: &Source, what: impl Into<String>) -> Error {
    Error::Unfit {
        file: source.name.clone(),
        what: what.into(),
    }
}

/// Rejects variables: the runs of a sweep would share them, so that one result depended on the
/// other runs at the same time.
fn refuse_variables(source: &Source, object: &[u8]) -> Result<(), Error> {
    let object = parsed(source, object)?;
    for symbol in object.symbols() {
        let section = symbol
            .section_index()
            .and_then(|index| object.section_by_index(index).ok());
        let Some(section) = section else {
            continue;
        };
        let (Ok(name), Ok(section)) = (symbol.name(), section.name()) else {
            continue;
        };
        if section == ".maps" || section == "maps" {
            let what = format!(
                "has the map `{name}`; the simulator has no maps: keep state in icsk_ca_priv"
            );
            return Err(unfit(source, what));
        }
        let varies = [".data", ".bss", ".tdata", ".tbss"]
            .iter()
            .any(|prefix| section.starts_with(prefix))
            && !section.starts_with(".data.rel.ro");
        if varies && symbol.size() > 0 {
            let what = format!(
                "has the variable `{name}`, which all connections would share; keep state in icsk_ca_priv"
            );
            return Err(unfit(source, what));
        }
    }
    Ok(())
}

fn parsed<'a>(source: &Source, object: &'a [u8]) -> Result<object::File<'a>, Error> {
    object::File::parse(object)
        .map_err(|error| unfit(source, format!("compiles to no object file: {error}")))
}

/// The distance of the control's object from a function whose address the dynamic loader provides.
fn find_ops(source: &Source, shared: &[u8]) -> Result<i64, Error> {
    let shared = parsed(source, shared)?;
    let mut found = BTreeMap::new();
    let mut base = None;
    for symbol in shared.symbols() {
        let (Ok(name), Some(index)) = (symbol.name(), symbol.section_index()) else {
            continue;
        };
        if name == "anabranch_set_now" {
            base = Some(symbol.address());
        }
        let section = shared.section_by_index(index);
        let section = section
            .as_ref()
            .ok()
            .and_then(|section| section.name().ok());
        if symbol.kind() == SymbolKind::Data
            && section.is_some_and(|section| OPS_SECTIONS.contains(&section))
        {
            if symbol.size() != size_of::<Ops>() as u64 {
                let what = format!(
                    "has `{name}` among its controls, which is no struct tcp_congestion_ops"
                );
                return Err(unfit(source, what));
            }
            found.insert(name.to_owned(), symbol.address());
        }
    }
    let base = base.ok_or_else(|| unfit(source, "was linked without its shim"))?;
    let names: Vec<String> = found.keys().map(|name| format!("`{name}`")).collect();
    let mut addresses = found.values();
    match (addresses.next(), addresses.next()) {
        (Some(address), None) => Ok(address.cast_signed() - base.cast_signed()),
        (None, _) => Err(unfit(
            source,
            "has no control; mark a struct tcp_congestion_ops with SEC(\".struct_ops.link\")",
        )),
        (Some(_), Some(_)) => Err(unfit(
            source,
            format!(
                "has more than one control: {}; a file has one",
                names.join(", ")
            ),
        )),
    }
}

fn open(source: &Source, shared: &Path) -> Result<Loaded, Error> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::System(format!(
            "cannot load the compiled program of `{}`: {}",
            source.name,
            system::words(error)
        ))
    };
    let bytes = std::fs::read(shared).map_err(|error| unreadable(&error))?;
    let distance = find_ops(source, &bytes)?;
    // SAFETY: loading runs the object's initialisers, of which a C file has none unless it requests
    // them. Users who name a file to compile let it run in this process, as documented.
    let library = unsafe { Library::new(shared) }.map_err(|error| unreadable(&error))?;
    // SAFETY: our shim declares both with these types.
    let (set_now, layout) = unsafe {
        let set_now: SetNow = *library
            .get(b"anabranch_set_now\0")
            .map_err(|error| unreadable(&error))?;
        let layout: *const [u32; LAYOUT.len()] = *library
            .get(b"anabranch_layout\0")
            .map_err(|error| unreadable(&error))?;
        (set_now, *layout)
    };
    assert!(
        layout
            .iter()
            .zip(LAYOUT)
            .all(|(c, rust)| *c as usize == rust),
        "vmlinux.h as a native compiler lays it out and abi.rs differ: {layout:?}, {LAYOUT:?}"
    );
    let place = (set_now as *const u8).wrapping_offset(
        isize::try_from(distance).expect("a shared object is smaller than the address space"),
    );
    // SAFETY: the object of the control is in the same shared object as the function, at the
    // distance in its symbol table; its size was compared and its layout is that of `Ops`.
    let ops = unsafe { place.cast::<Ops>().read_unaligned() };
    for (function, there) in [
        ("ssthresh", ops.ssthresh.is_some()),
        ("undo_cwnd", ops.undo_cwnd.is_some()),
        (
            "cong_avoid or cong_control",
            ops.cong_avoid.is_some() || ops.cong_control.is_some(),
        ),
    ] {
        if !there {
            return Err(unfit(
                source,
                format!(
                    "has no {function}; every control needs ssthresh, undo_cwnd, and cong_avoid or cong_control"
                ),
            ));
        }
    }
    Ok(Loaded {
        ops,
        set_now,
        _library: library,
    })
}
