//! Work in a thread of its own, while Python's main thread listens for signals.
//!
//! Python handles a signal in its main thread, between two of its own steps, and a call into the engine is one step.
//! So the main thread waits here and looks for signals many times a second, whatever the work does: it resolves, runs,
//! makes tables, or compiles. A signal raises the work's [`Interrupt`], and the call returns soon after, whether or not
//! the work has noticed; what it gives later is dropped.

use std::{
    panic,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anabranch::{Interrupt, system};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

/// How often the main thread looks for signals.
const PULSE: Duration = Duration::from_millis(20);
/// How long interrupted work may take to end a child and to remove its temporary files.
const GRACE: Duration = Duration::from_millis(60);
/// How long interrupted work may take that says it must be waited for: to end a live run's programs.
const LONG_GRACE: Duration = Duration::from_secs(2);
/// As a main thread has it: scenarios may be nested.
const STACK: usize = 8 << 20;

/// What is called in the main thread while the work is done; an error ends the work.
pub type Pulse<'a> = &'a mut (dyn FnMut(Python<'_>) -> PyResult<()> + Send);

/// Does the work. Raises what a signal's handler or `pulse` raises.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    pulse: Pulse<'_>,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    awaited(py, pulse, &|| false, work)
}

/// The same for work that may not be left while `is_needed` says so. The work's thread has ended when this returns what
/// it gave.
pub fn awaited<T: Send + 'static>(
    py: Python<'_>,
    pulse: Pulse<'_>,
    is_needed: &(dyn Fn() -> bool + Sync),
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    let interrupt = Interrupt::default();
    let (give, given) = mpsc::sync_channel(1);
    let worker = {
        let interrupt = interrupt.clone();
        // Nobody waits for the result of interrupted work.
        thread::Builder::new()
            .name("anabranch".to_owned())
            .stack_size(STACK)
            .spawn(move || drop(give.send(work(&interrupt))))
            .map_err(|error| {
                let why = system::words(&error);
                PyRuntimeError::new_err(format!("cannot start a thread: {why}"))
            })?
    };
    py.detach(move || {
        loop {
            match given.recv_timeout(PULSE) {
                Ok(done) => {
                    // Whether this process has one thread matters to a live run (user_namespaces(7)).
                    drop(worker.join());
                    return Ok(done);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // The work panicked, which is a broken invariant: it goes on in the caller.
                    let payload = worker.join().err();
                    panic::resume_unwind(payload.unwrap_or_else(|| Box::new("the work has gone")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let listened = Python::attach(|py| {
                py.check_signals()?;
                pulse(py)
            });
            if let Err(error) = listened {
                interrupt.raise();
                let since = Instant::now();
                while matches!(given.recv_timeout(GRACE), Err(RecvTimeoutError::Timeout))
                    && is_needed()
                    && since.elapsed() < LONG_GRACE
                {}
                return Err(error);
            }
        }
    })
}

/// The same without a pulse.
pub fn quietly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    interruptible(py, &mut |_| Ok(()), work)
}
