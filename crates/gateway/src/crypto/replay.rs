//! The replay window: a record of which of the last 65,472 numbers arrived (RFC 6479).

const WORDS: usize = 1_024;
const BITS: u64 = 64;
/// Numbers below the highest that the window distinguishes. The word with the highest number is
/// partly filled.
const SPAN: u64 = (WORDS as u64 - 1) * BITS;

/// A replay window, initially empty.
#[derive(Debug)]
pub struct Window {
    highest: Option<u64>,
    words: Box<[u64]>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            highest: None,
            words: vec![0; WORDS].into_boxed_slice(),
        }
    }
}

impl Window {
    /// The highest marked number.
    #[must_use]
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Whether `number` is unmarked and not too old.
    #[must_use]
    pub fn is_new(&self, number: u64) -> bool {
        match self.highest {
            Some(highest) if number <= highest => {
                highest - number < SPAN && self.words[slot(number)] & bit(number) == 0
            }
            _ => true,
        }
    }

    /// Marks `number` after its message was authenticated. Returns whether it is new.
    pub fn mark(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        let first = self.highest.map_or(0, |highest| highest / BITS + 1);
        let last = number / BITS;
        // Words that enter the window are stale.
        for word in first.max(last.saturating_sub(WORDS as u64 - 1))..=last {
            self.words[slot(word * BITS)] = 0;
        }
        self.highest = self.highest.max(Some(number));
        self.words[slot(number)] |= bit(number);
        true
    }
}

fn slot(number: u64) -> usize {
    usize::try_from(number / BITS % WORDS as u64).unwrap_or(0)
}

const fn bit(number: u64) -> u64 {
    1 << (number % BITS)
}
