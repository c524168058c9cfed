//! Handling of Ctrl-C while the engine reads files for a scenario.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};

use pyo3::prelude::*;

/// Polling interval of Python's signals: below the threshold of perception, and long compared with
/// the cost of a poll.
const INTERVAL: Duration = Duration::from_millis(20);

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

fn check(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Whether a handler of Python's signals has raised an exception, which [`take`] returns. Only
/// Python's main thread runs handlers.
pub fn interrupted() -> bool {
    let now = Instant::now();
    let due = ASKED.with(|asked| asked.get().is_none_or(|then| now - then >= INTERVAL));
    if due {
        ASKED.with(|asked| asked.set(Some(now)));
        if let Err(error) = Python::attach(check) {
            RAISED.with(|raised| *raised.borrow_mut() = Some(error));
        }
    }
    RAISED.with(|raised| raised.borrow().is_some())
}

/// Returns the exception of a handler in this thread, and clears it.
pub fn take() -> Option<PyErr> {
    RAISED.with(|raised| raised.borrow_mut().take())
}
