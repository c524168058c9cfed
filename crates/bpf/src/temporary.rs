//! Controls that are in the kernel while a run uses them, under a name specific to this process.
//!
//! A control's name is valid for the whole machine, and is unique. The name of a copy ends in the
//! number of the process, so that two programs can each load a copy of a file, and neither removes
//! the other's. Runs of one process share the copy. A file descriptor holds it: the kernel removes
//! the control when the process ends in any way, and nothing is pinned.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use anabranch_core::interrupt::Interrupt;

use crate::{Error, Source, compile, kernel};

/// A control in the kernel, for the lifetime of this value.
#[derive(Debug)]
pub struct Temporary {
    name: String,
    _attached: crate::kernel::Attached,
}

impl Temporary {
    /// The name by which sockets of this machine select it (`TCP_CONGESTION`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Compiles a control and registers it with the kernel, or shares the copy that this process has
/// already loaded. Raising `interrupt` ends the compiler.
///
/// # Errors
/// Those of `kernel::attach`, except a name already in use.
pub fn load(source: &Source, interrupt: &Interrupt) -> Result<Arc<Temporary>, Error> {
    static LOADED: Mutex<BTreeMap<Source, Weak<Temporary>>> = Mutex::new(BTreeMap::new());
    // Compilation takes longer than many runs. Included files of a user may change; a shipped
    // control does not.
    static COMPILED: Mutex<BTreeMap<Source, Vec<u8>>> = Mutex::new(BTreeMap::new());

    // Held until the control is loaded, so that two runs that begin together share one copy.
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = loaded.get(source).and_then(Weak::upgrade) {
        return Ok(there);
    }
    kernel::check_machine()?;
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let object = match compiled.get(source) {
        Some(object) => object.clone(),
        None => compile::kernel(source, interrupt)?,
    };
    if source.folder.is_none() {
        compiled.insert(source.clone(), object.clone());
    }
    let own = kernel::name_of(source, &object)?;
    let mut attempt = 0;
    let attached = loop {
        let name = name_here(&own, std::process::id(), attempt);
        match kernel::attach_object(source, &object, &name) {
            // The name belongs to another file of this process, or to a process with this number in
            // another container.
            Err(_) if kernel::available().contains(&name) && attempt + 1 < ATTEMPTS => attempt += 1,
            other => break other?,
        }
    };
    let made = Arc::new(Temporary {
        name: attached.name().to_owned(),
        _attached: attached,
    });
    loaded.retain(|_, there| there.strong_count() > 0);
    loaded.insert(source.clone(), Arc::downgrade(&made));
    Ok(made)
}

/// Number of names that are tried.
const ATTEMPTS: u32 = 12;

/// The name of a process's copy of a control: the start of the control's name, `_`, and five
/// characters for process and attempt.
fn name_here(own: &str, process: u32, attempt: u32) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    /// Linux numbers processes below 2²²; five digits of base 36 hold twelve times as many.
    const PROCESSES: u32 = 1 << 22;
    const PLACES: usize = 5;
    let mut rest = (process % PROCESSES) + attempt * PROCESSES;
    let mut suffix = [b'0'; PLACES];
    for place in suffix.iter_mut().rev() {
        *place = DIGITS[(rest % 36) as usize];
        rest /= 36;
    }
    let room = crate::kernel::NAME_MAX - 1 - PLACES - 1;
    // A control's name is ASCII, as checked before.
    let kept = own.get(..room.min(own.len())).unwrap_or(own);
    format!("{kept}_{}", String::from_utf8_lossy(&suffix))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ATTEMPTS, name_here};

    #[test]
    fn names_fit_and_differ_by_process_and_attempt() {
        let mut seen = BTreeSet::new();
        for process in [1, 2, 35, 36, 77_777, (1 << 22) - 1] {
            for attempt in 0..ATTEMPTS {
                let name = name_here("ab_cubicplus", process, attempt);
                assert!(name.len() <= 15 && name.starts_with("ab_cubicp_"), "{name}");
                assert!(seen.insert(name));
            }
        }
        assert_eq!(name_here("x", 37, 0), "x_00011");
    }
}
