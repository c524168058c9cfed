//! Work in a separate thread, while Python's main thread handles signals.
//!
//! Python handles a signal in its main thread, between two of its own steps, and a call into the
//! engine is one step. The main thread therefore waits here and checks for signals many times per
//! second while the work resolves, runs, builds tables or compiles. A signal raises the work's
//! [`Interrupt`]. The call returns soon after, even if the work has not reacted; a later result is
//! dropped.

use std::{
    panic,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anabranch::{Interrupt, system};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

/// Interval at which the main thread checks for signals.
const PULSE: Duration = Duration::from_millis(20);
/// Time for interrupted work to end a child and to remove its temporary files.
const GRACE: Duration = Duration::from_millis(60);
/// Time for interrupted work that must be waited for: to end the programs of a live run.
const LONG_GRACE: Duration = Duration::from_secs(2);
/// The stack size of a main thread, because scenarios may be nested.
pub const STACK: usize = 8 << 20;

/// Called in the main thread during the work; an error ends the work.
pub type Pulse<'a> = &'a mut (dyn FnMut(Python<'_>) -> PyResult<()> + Send);

/// Calls the function of Python that receives the progress, if there is one.
pub fn report<'py>(
    py: Python<'py>,
    progress: Option<&Py<PyAny>>,
    done: impl IntoPyObject<'py>,
) -> PyResult<()> {
    progress.map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
}

/// Does the work. Raises the exception of a signal's handler or of `pulse`.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    pulse: Pulse<'_>,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    awaited(py, pulse, &|| false, work)
}

/// Same as `interruptible`, for work that may not be abandoned while `is_needed` returns true.
/// The work's thread has ended when this returns its result.
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
        // The result of interrupted work is dropped.
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
                    // A live run depends on this process having one thread (user_namespaces(7)).
                    drop(worker.join());
                    return Ok(done);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // The work panicked, which is a broken invariant: the panic continues in the
                    // caller.
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

/// Same as `interruptible`, without a pulse.
pub fn quietly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    interruptible(py, &mut |_| Ok(()), work)
}
