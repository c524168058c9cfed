//! Sets of numbers that arrived, as words of 64 bits.

/// The largest number of words.
pub const WORDS: usize = 15;

/// The numbers that arrived, up to a highest one. Word 0 contains the highest number: number `n` is
/// bit `n % 64` of word `highest / 64 - n / 64`. Trailing zero words are not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrivals {
    words: [u64; WORDS],
}

impl Arrivals {
    /// Creates a set from words, newest first; words beyond [`WORDS`] are omitted.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = u64>) -> Self {
        let mut arrivals = Self::default();
        for (word, from) in arrivals.words.iter_mut().zip(words) {
            *word = from;
        }
        arrivals
    }

    /// The words up to the last that is not zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        let after = self.words.iter().rposition(|&word| word != 0);
        &self.words[..after.map_or(0, |last| last + 1)]
    }

    /// The set without words beyond a count.
    #[must_use]
    pub fn cut(mut self, words: usize) -> Self {
        if let Some(rest) = self.words.get_mut(words..) {
            rest.fill(0);
        }
        self
    }

    /// Whether the words are valid: the highest number is set, no higher one is, and none would be
    /// below 0.
    pub(super) fn fit(&self, highest: u64) -> bool {
        self.words[0] >> (highest % 64) == 1 && self.words().len() as u64 <= highest / 64 + 1
    }

    /// The numbers that arrived, in ascending order.
    pub fn numbers(&self, highest: u64) -> impl Iterator<Item = u64> {
        let words = self.words();
        let newest = highest / 64;
        words
            .iter()
            .enumerate()
            .rev()
            .flat_map(move |(back, &word)| {
                let first = newest.checked_sub(back as u64).map(|word| word * 64);
                let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
                bits.filter_map(move |bit| Some(first? + bit))
            })
    }
}
