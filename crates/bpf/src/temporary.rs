//! Controls that are in the kernel as long as a run uses them, under a name of this process's own.
//!
//! A control's name is the whole machine's, and there is one of each. So that two programs can each have
//! their own copy of a file, and neither takes the other's away, the copy's name ends in the number of
//! the process. Runs of one process share it. What holds it is a file descriptor: however the process
//! ends, the kernel drops the control with it, and nothing is pinned anywhere.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use anabranch_core::interrupt::Interrupt;

use crate::{Error, Source, compile, kernel};

/// A control in the kernel, as long as this lives.
#[derive(Debug)]
pub struct Temporary {
    name: String,
    _attached: crate::kernel::Attached,
}

impl Temporary {
    /// What sockets of this machine choose it by (`TCP_CONGESTION`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Compiles a control and makes it known to the kernel, or shares what this process has loaded already. Raising `interrupt`
/// ends the compiler.
///
/// # Errors
/// As of `kernel::attach`; a name that is taken is no reason.
pub fn load(source: &Source, interrupt: &Interrupt) -> Result<Arc<Temporary>, Error> {
    static LOADED: Mutex<BTreeMap<Source, Weak<Temporary>>> = Mutex::new(BTreeMap::new());
    // Compiling takes longer than many a run. What a file includes may change; what ships does not.
    static COMPILED: Mutex<BTreeMap<Source, Vec<u8>>> = Mutex::new(BTreeMap::new());

    // Held until it is loaded: two runs that begin at once want one copy.
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
            // Of another file of ours, or of a process that has this number in another container.
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

/// Names that are tried.
const ATTEMPTS: u32 = 12;

/// A name for a process's own copy of a control: as much of its own as fits, `_`, and five characters of
/// process and attempt.
fn name_here(own: &str, process: u32, attempt: u32) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    /// Linux numbers processes below 2²²; a dozen times as many fit into five digits of 36.
    const PROCESSES: u32 = 1 << 22;
    const PLACES: usize = 5;
    let mut rest = (process % PROCESSES) + attempt * PROCESSES;
    let mut suffix = [b'0'; PLACES];
    for place in suffix.iter_mut().rev() {
        *place = DIGITS[(rest % 36) as usize];
        rest /= 36;
    }
    let room = crate::kernel::NAME_MAX - 1 - PLACES - 1;
    // A control's name is checked to be ASCII.
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
