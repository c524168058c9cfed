//! Transfers that arrive as a Poisson process: when each begins, and how large it is.

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant},
};

use super::{Level, Profile, Sizes};

/// The transfers of a flow, in order of time, without an end.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// Transfers per second in the mean.
    pub rate: f64,
    /// How large they are.
    pub sizes: Sizes,
    /// How the rate varies.
    pub level: Option<Level>,
    /// Draws times and sizes.
    pub stream: Stream,
    /// When the next begins; at first, when the flow starts.
    pub due: Instant,
    /// How many there have been.
    pub count: u64,
}

/// One transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When it begins.
    pub at: Instant,
    /// Its bytes, 1 or more.
    pub size: u64,
}

impl Arrivals {
    /// Those of a flow of this name in a run with this seed: so many per second in the mean, of these sizes, with this
    /// profile, from `start` on.
    #[must_use]
    pub fn of_flow(
        (rate, sizes, profile): (f64, Sizes, Option<Profile>),
        seed: u64,
        flow: &str,
        start: Instant,
    ) -> Self {
        Self {
            rate,
            sizes,
            level: Level::of_flow(profile, seed, flow),
            stream: Stream::new(seed, &format!("flow.{flow}.workload")),
            due: start,
            count: 0,
        }
    }

    /// The next transfer. [`Self::due`] is then when the one after it begins.
    pub fn draw(&mut self) -> Transfer {
        let at = self.due;
        let mut draw = self.stream.at(self.count);
        self.count += 1;
        let size = match &mut self.level {
            None => {
                let pause = Duration::from_secs_f64(draw.exponential(1.0 / self.rate));
                self.due = at.saturating_add(pause);
                self.sizes.draw(&mut draw)
            }
            Some(level) => {
                let size = self.sizes.draw(&mut draw);
                self.due = level.next_point(at, self.rate, &mut draw);
                size
            }
        };
        Transfer { at, size }
    }
}
