//! The functions that a page calls. All numbers are addresses and lengths in the module's memory.
//!
//! 1. `request(length)` returns where the page writes a request.
//! 2. `answer()` serves it and returns the answer's address; `answer_length()` is its length. The
//!    answer is valid until the next `request`.

use std::cell::RefCell;

use crate::{
    Studio,
    page::{Demand, Page},
};

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
    /// Receives the completed share of a request. Answers 0 to continue, 2 to receive the samples of
    /// the run until now, and another number to stop.
    fn progress(share: f64) -> u32;
    /// Receives the message of a run under way.
    fn part(address: *const u8, length: usize);
    /// Octets of the page's capture; 0 without one.
    fn capture_length() -> f64;
    /// Copies octets of the capture from `at` on to an address. Returns their number, or a negative
    /// one if they cannot be read.
    fn read_capture(at: f64, address: *mut u8, length: usize) -> i32;
}

/// The page that the imports reach.
struct Imported;

impl Page for Imported {
    fn progress(&mut self, share: f64) -> Demand {
        // SAFETY: the page's function takes a number and touches no memory of the module.
        match unsafe { progress(share) } {
            0 => Demand::Continue,
            2 => Demand::Part,
            _ => Demand::Stop,
        }
    }

    fn part(&mut self, message: &[u8]) {
        // SAFETY: the page reads `length` octets from the address on.
        unsafe { part(message.as_ptr(), message.len()) };
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lengths of files are below 2^53"
    )]
    fn capture_length(&mut self) -> u64 {
        // SAFETY: the page's function returns a number and touches no memory of the module.
        unsafe { capture_length() as u64 }
    }

    fn read_capture(&mut self, at: u64, into: &mut [u8]) -> Option<usize> {
        // SAFETY: the page writes at most `length` octets from the address on.
        let count = unsafe { read_capture(at as f64, into.as_mut_ptr(), into.len()) };
        usize::try_from(count).ok().filter(|&n| n <= into.len())
    }
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
        room.answer = room.studio.answer(&room.request, &mut Imported);
        room.answer.as_ptr()
    })
}

/// Octets of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    ROOM.with_borrow(|room| room.answer.len())
}
