//! How the IP identifications of a sender's packets go on.

/// The last identification, and the steps up to it.
#[derive(Debug, Default)]
pub(crate) struct Identifications {
    last: Option<u16>,
    steps: u32,
    jumps: u32,
    /// Steps of exactly one.
    ones: u32,
    /// Packets of this connection that the last step left out.
    missing: u16,
}

impl Identifications {
    pub(crate) fn see(&mut self, id: u16) {
        if let Some(last) = self.last {
            let step = id.wrapping_sub(last);
            self.missing = if self.count_each() {
                Some(step.wrapping_sub(1))
                    .filter(|skipped| *skipped < 64)
                    .unwrap_or_default()
            } else {
                0
            };
            match step {
                1..=64 => self.steps += 1,
                _ => self.jumps += 1,
            }
            self.ones += u32::from(step == 1);
        }
        self.last = Some(id);
    }

    pub(crate) fn grow(&self) -> bool {
        self.steps >= 4 && self.steps > 4 * self.jumps
    }

    /// The sender counts packets by connection, so that it leaves out none.
    fn count_each(&self) -> bool {
        self.grow() && self.ones > 9 * (self.steps + self.jumps - self.ones)
    }

    /// Packets of this connection that the last packet shows to be missing before it.
    pub(crate) fn missing(&self) -> u16 {
        self.missing
    }
}
