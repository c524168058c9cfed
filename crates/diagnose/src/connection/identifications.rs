//! How the IP identifications of a sender's packets go on.

/// The last identification, and the steps up to it.
#[derive(Debug, Default)]
pub(crate) struct Identifications {
    last: Option<u16>,
    steps: u32,
    jumps: u32,
    /// Steps of exactly one.
    ones: u32,
    /// How many numbers the last step left out.
    skipped: u16,
}

impl Identifications {
    pub(crate) fn see(&mut self, id: u16) {
        if let Some(last) = self.last {
            let step = id.wrapping_sub(last);
            match step {
                1..=64 => self.steps += 1,
                _ => self.jumps += 1,
            }
            self.ones += u32::from(step == 1);
            self.skipped = step.wrapping_sub(1);
        }
        self.last = Some(id);
    }

    pub(crate) fn grow(&self) -> bool {
        self.steps >= 4 && self.steps > 4 * self.jumps
    }

    /// Packets of this connection that the last packet shows to be missing before it: a sender that counts packets by
    /// connection leaves out none.
    pub(crate) fn missing(&self) -> u16 {
        let counts_each = self.grow() && self.ones > 9 * (self.steps + self.jumps - self.ones);
        if counts_each && self.skipped < 64 {
            self.skipped
        } else {
            0
        }
    }
}
