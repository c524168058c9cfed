//! libbpf's messages, and the status of a call.

use std::{
    cell::RefCell,
    ffi::c_void,
    sync::{Mutex, PoisonError},
};

use libbpf_rs::{ErrorKind, PrintLevel, set_print};

use crate::abi::{DENIED, DONE, REFUSED, Report, Status};

/// Serializes calls, because libbpf has one message callback for the whole process.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// libbpf's messages, which include the verifier's reasons.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The result of a call of libbpf, and the messages that the call prints.
pub fn hearing<T>(call: impl FnOnce() -> T) -> (T, String) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = set_print(Some((PrintLevel::Info, |_, text| {
        SAID.with_borrow_mut(|said| said.push_str(&text));
    })));
    SAID.take();
    let result = call();
    set_print(before);
    drop(turn);
    (result, SAID.take())
}

/// Runs a call that creates a value or fails, and passes the result to the engine.
///
/// # Safety
/// `made` may be written, and the call that passed `report` has not returned.
pub unsafe fn reported<T>(
    call: impl FnOnce() -> Result<T, Failure>,
    made: Option<*mut *mut c_void>,
    report: Report,
) -> Status {
    let (result, said) = hearing(call);
    // SAFETY: the caller promises that sinks and `made` are valid.
    unsafe {
        report.said.write(said.as_bytes());
        match result {
            Ok(value) => {
                if let Some(made) = made {
                    *made = Box::into_raw(Box::new(value)).cast();
                }
                DONE
            }
            Err(Failure::Status(status)) => status,
            Err(Failure::Libbpf(error)) => {
                report.error.write(error.to_string().as_bytes());
                if error.kind() == ErrorKind::PermissionDenied {
                    DENIED
                } else {
                    REFUSED
                }
            }
        }
    }
}

/// The reason why there is no value.
pub enum Failure {
    Libbpf(libbpf_rs::Error),
    Status(Status),
}

impl From<libbpf_rs::Error> for Failure {
    fn from(error: libbpf_rs::Error) -> Self {
        Self::Libbpf(error)
    }
}
