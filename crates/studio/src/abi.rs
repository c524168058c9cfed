//! The functions that a page calls. All numbers are addresses and lengths in the module's memory.
//!
//! 1. `request(length)` returns where the page writes a request.
//! 2. `answer()` serves it and returns the answer's address; `answer_length()` is its length. The
//!    answer is valid until the next `request`.

use std::cell::RefCell;

use anabranch::Progress;

use crate::Studio;

#[derive(Default)]
struct Room {
    studio: Studio,
    request: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Receives the completed share of a run; the run stops if the answer is not 0.
    fn progress(share: f64) -> u32;
}

/// Makes room for a request of `length` octets.
#[unsafe(no_mangle)]
pub extern "C" fn request(length: usize) -> *mut u8 {
    ROOM.with_borrow_mut(|room| {
        room.answer = Vec::new();
        room.request.clear();
        room.request.resize(length, 0);
        room.request.as_mut_ptr()
    })
}

/// Serves the request.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ROOM.with_borrow_mut(|room| {
        let mut report = |share| {
            // SAFETY: the page's function takes a number and touches no memory of the module.
            if unsafe { progress(share) } == 0 {
                Progress::Continue
            } else {
                Progress::Stop
            }
        };
        room.answer = room.studio.answer(&room.request, &mut report);
        room.answer.as_ptr()
    })
}

/// Octets of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    ROOM.with_borrow(|room| room.answer.len())
}
