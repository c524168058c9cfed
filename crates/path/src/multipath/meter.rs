//! Longest time without a delivery in one direction of a gateway.
//!
//! A silence begins with a packet that enters while none is in flight, or with a delivery while
//! others are in flight; it ends with the next delivery. Packets are in flight until the packet
//! that entered last is delivered. A silence at the end of the run ends with the last packet that
//! entered, because nothing was sent after that.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use anabranch_core::{
    packet::ConnectionId,
    units::{Duration, Instant},
};

use crate::link::Window;

/// No silence is in progress.
const NONE: u64 = u64::MAX;

#[derive(Debug)]
struct Shared {
    /// The packet that entered last, by connection and index, and its time.
    newest: AtomicU64,
    entered: AtomicU64,
    /// Begin of the current silence.
    since: AtomicU64,
    /// Longest silence that has ended, in picoseconds.
    longest: AtomicU64,
}

/// Shared by the two ends of one direction; clones refer to the same meter. Only one thread at a
/// time uses it.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Shared>);

impl Default for Meter {
    fn default() -> Self {
        Self(Arc::new(Shared {
            newest: AtomicU64::new(NONE),
            entered: AtomicU64::new(0),
            since: AtomicU64::new(NONE),
            longest: AtomicU64::new(0),
        }))
    }
}

const fn name(connection: ConnectionId, index: u32) -> u64 {
    (connection.0 as u64) << 32 | index as u64
}

impl Meter {
    /// A packet enters.
    pub fn entered(&self, now: Instant, connection: ConnectionId, index: u32) {
        let Shared {
            newest,
            entered,
            since,
            ..
        } = &*self.0;
        newest.store(name(connection, index), Relaxed);
        entered.store(now.as_picos(), Relaxed);
        if since.load(Relaxed) == NONE {
            since.store(now.as_picos(), Relaxed);
        }
    }

    /// A packet is delivered.
    pub fn delivered(
        &self,
        now: Instant,
        (connection, index): (ConnectionId, u32),
        window: Window,
    ) {
        let shared = &*self.0;
        self.ends(now, window);
        let is_newest = shared.newest.load(Relaxed) == name(connection, index);
        let next = if is_newest { NONE } else { now.as_picos() };
        shared.since.store(next, Relaxed);
    }

    /// Packets wait at the exit after a delivery, so a silence begins.
    pub fn waits(&self, now: Instant) {
        if self.0.since.load(Relaxed) == NONE {
            self.0.since.store(now.as_picos(), Relaxed);
        }
    }

    fn ends(&self, now: Instant, window: Window) {
        let since = self.0.since.load(Relaxed);
        if since != NONE {
            let silent = window.overlap(Instant::from_picos(since), now).as_picos();
            if silent > self.0.longest.load(Relaxed) {
                self.0.longest.store(silent, Relaxed);
            }
        }
    }

    /// Returns the longest silence in the measured time.
    #[must_use]
    pub fn longest(&self, window: Window) -> Duration {
        let ended = Duration::from_picos(self.0.longest.load(Relaxed));
        let since = self.0.since.load(Relaxed);
        if since == NONE {
            return ended;
        }
        let entered = Instant::from_picos(self.0.entered.load(Relaxed));
        ended.max(window.overlap(Instant::from_picos(since), entered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window::new(Instant::START, Instant::from_millis(10_000));

    fn silence(events: &[(u64, &str, u32)]) -> Duration {
        let meter = Meter::default();
        for &(ms, what, index) in events {
            let now = Instant::from_millis(ms);
            match what {
                "enters" => meter.entered(now, ConnectionId(0), index),
                _ => meter.delivered(now, (ConnectionId(0), index), WINDOW),
            }
        }
        meter.longest(WINDOW)
    }

    #[test]
    fn silence_counts_while_packets_are_on_their_way() {
        let ms = Duration::from_millis;
        // Nothing is sent from 30 to 5,000 ms.
        let paused = [
            (0, "enters", 0),
            (20, "leaves", 0),
            (5_000, "enters", 1),
            (5_030, "leaves", 1),
        ];
        assert_eq!(silence(&paused), ms(30));
        // 1 is lost; 2 was in flight.
        let lost = [
            (0, "enters", 0),
            (10, "enters", 1),
            (20, "leaves", 0),
            (30, "enters", 2),
            (330, "leaves", 2),
        ];
        assert_eq!(silence(&lost), ms(310));
        // The run ends without another delivery.
        assert_eq!(
            silence(&[&lost[..3], &[(700, "enters", 2)]].concat()),
            ms(680)
        );
        // The last packet is lost, and nothing follows.
        assert_eq!(silence(&lost[..3]), ms(20));
    }
}
