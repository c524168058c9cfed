//! Transfers that arrive as a Poisson process: start time and size of each.

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant},
};

use super::{Level, Profile, Sizes};

/// The transfers of a flow, in order of time, without an end.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// Mean number of transfers per second.
    pub rate: f64,
    /// The distribution of their sizes.
    pub sizes: Sizes,
    /// The variation of the rate.
    pub level: Option<Level>,
    /// The random stream of times and sizes.
    pub stream: Stream,
    /// The start of the next transfer; initially the start of the flow.
    pub due: Instant,
    /// The number of transfers drawn.
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
    /// Creates the transfers of a flow with this name and seed: mean number per second, sizes and
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

    /// Returns the next transfer, and advances [`Self::due`] to the start of the one after it.
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
