//! The size of datagrams that a path delivers, found by probes (RFC 8899), with ICMP blocked.
//!
//! # Differs from the RFC
//! - The search is binary, and its first probe is the ceiling: most paths deliver it.
//! - A black hole is suspected from packets that are lost while smaller ones arrive (§4.3), and
//!   confirmed by probes of the present size: a full queue also drops several packets in a row.

use anabranch_core::units::Duration;

use crate::time::Instant;

/// UDP payload that every path delivers (RFC 8899 §5.1.2, `BASE_PLPMTU`).
pub const BASE: usize = 1_200;
/// The largest size that is probed: 1,500 without IPv4 and UDP headers.
pub const CEILING: usize = 1_472;
/// The search ends at this distance between the bounds.
const STEP: usize = 8;
/// Probes of a size that must be lost (RFC 8899 §5.1.2, `MAX_PROBES`).
const MAX_PROBES: u32 = 3;
/// A search is repeated after this time (RFC 8899 §5.1.1, `PMTU_RAISE_TIMER`).
const RAISE: Duration = Duration::from_secs(600);
/// Consecutive losses of large packets that indicate a smaller path MTU.
const BLACK_HOLE: u32 = 6;

/// The search.
#[derive(Debug, Clone)]
pub struct Mtu {
    works: usize,
    /// The smallest size known to fail.
    fails: usize,
    tries: u32,
    outstanding: Option<(u64, usize)>,
    at: Instant,
    losses: u32,
    /// The highest number of a packet of about the present size that arrived.
    proven: u64,
    /// Whether probes of the present size are to confirm it.
    is_doubted: bool,
}

impl Default for Mtu {
    fn default() -> Self {
        Self {
            works: BASE,
            fails: CEILING + 1,
            tries: 0,
            outstanding: None,
            at: Instant::START,
            losses: 0,
            proven: 0,
            is_doubted: false,
        }
    }
}

impl Mtu {
    /// The largest datagram to send.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.works
    }

    fn candidate(&self) -> usize {
        if self.is_doubted {
            self.works
        } else if self.fails > CEILING {
            CEILING
        } else {
            usize::midpoint(self.works, self.fails)
        }
    }

    /// Whether the search has ended.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        !self.is_doubted && (self.works == CEILING || self.fails - self.works <= STEP)
    }

    /// The size of a probe that is due.
    #[must_use]
    pub fn probe(&self, now: Instant) -> Option<usize> {
        (now >= self.at && !self.is_complete()).then(|| self.candidate())
    }

    /// The time at which the next probe is due.
    #[must_use]
    pub fn probe_at(&self) -> Option<Instant> {
        (!self.is_complete() || self.works < CEILING).then_some(self.at)
    }

    /// Records a probe, which counts as lost after `timeout`.
    pub fn on_probe(&mut self, number: u64, size: usize, now: Instant, timeout: Duration) {
        self.outstanding = Some((number, size));
        self.tries += 1;
        self.at = now + timeout;
    }

    /// Handles the passage of time: a probe may be lost, or a search may be due again.
    pub fn advance(&mut self, now: Instant) {
        if now < self.at {
            return;
        }
        if self.is_complete() && self.works < CEILING {
            self.fails = CEILING + 1;
        } else if self.outstanding.is_some() && self.tries >= MAX_PROBES && self.is_doubted {
            *self = Self {
                at: now,
                ..Self::default()
            };
        } else if self.outstanding.is_some() && self.tries >= MAX_PROBES {
            self.fails = self.candidate();
            self.settle(now);
        }
    }

    /// Handles a restart of the other end: numbers begin again. Probes continue.
    pub const fn restart(&mut self) {
        (self.tries, self.outstanding) = (0, None);
        (self.losses, self.proven) = (0, 0);
    }

    fn settle(&mut self, now: Instant) {
        (self.tries, self.outstanding) = (0, None);
        self.at = if self.is_complete() { now + RAISE } else { now };
    }

    /// Records the arrival of a packet of this size.
    pub fn on_arrived(&mut self, number: u64, octets: usize, now: Instant) {
        if octets + STEP >= self.works {
            self.losses = 0;
            self.proven = self.proven.max(number);
            if self.is_doubted {
                self.is_doubted = false;
                self.settle(now);
            }
        }
        if octets > self.works
            && self
                .outstanding
                .is_some_and(|(probe, size)| probe == number && size == octets)
        {
            self.works = octets;
            self.settle(now);
        }
    }

    /// Records a packet of this size that was lost while later ones arrived. If one of the later
    /// ones had about the present size, the size is not the reason.
    pub fn on_lost(&mut self, number: u64, octets: usize, now: Instant) {
        if octets <= BASE || octets > self.works || number < self.proven {
            return;
        }
        self.losses += 1;
        if self.losses >= BLACK_HOLE && !self.is_doubted {
            self.is_doubted = true;
            (self.tries, self.outstanding, self.at) = (0, None, now);
        }
    }
}
