//! The size of datagrams that a path delivers, found by probes (RFC 8899), with ICMP blocked.
//!
//! # Differs from the RFC
//! - The search is binary, and its first probe is the ceiling: most paths deliver it.
//! - A black hole is suspected from packets that are lost while smaller ones arrive (§4.3), and
//!   confirmed by probes of the present size: a full queue also drops several packets in a row.
//! - Some large packets may arrive although the path's MTU has shrunk: one of several parallel links
//!   has a smaller MTU, or a virtual link carries batches that its MTU would not permit. Probes check
//!   the present size if many large packets are lost, whether others arrive or not, and at intervals
//!   if none was sent (§5.1.1, `CONFIRMATION_TIMER`). Only a probe ends such a check.

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
/// Losses of large packets within [`WINDOW`] after which the present size is checked.
const OFTEN: u32 = 12;
/// The window of these losses, and the least time between two such checks.
const WINDOW: Duration = Duration::from_secs(5);
/// Consecutive probes that a check must lose if other large packets arrive. On a path that loses 3 of
/// 10 packets of any size, one check in 1,400 does.
const CHECKS: u32 = 6;
/// The present size is checked after this time without an arrival of about that size.
const CONFIRM: Duration = Duration::from_secs(30);

/// The search.
#[derive(Debug, Clone)]
pub struct Mtu {
    works: usize,
    /// The smallest size known to fail.
    fails: usize,
    tries: u32,
    outstanding: Option<(u64, usize)>,
    at: Instant,
    /// The time at which the search is repeated.
    raise: Instant,
    /// The time at which the present size is checked if no packet of about that size arrives.
    confirm: Instant,
    losses: u32,
    /// Losses of large packets since `counted`, and the time from which the next check may begin.
    lost: u32,
    counted: Instant,
    /// Whether probes check the present size although packets of that size may arrive.
    is_checked: bool,
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
            raise: Instant::START,
            confirm: Instant::START,
            losses: 0,
            lost: 0,
            counted: Instant::START,
            is_checked: false,
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
        if self.is_doubted || self.is_checked {
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
        (now >= self.at && self.is_probing()).then(|| self.candidate())
    }

    const fn is_probing(&self) -> bool {
        self.is_checked || !self.is_complete()
    }

    /// The time at which the next probe is due, or may be.
    #[must_use]
    pub fn probe_at(&self) -> Option<Instant> {
        if self.is_probing() {
            return Some(self.at);
        }
        let raise = (self.works < CEILING).then_some(self.raise);
        let confirm = (self.works > BASE).then_some(self.confirm);
        raise.into_iter().chain(confirm).min()
    }

    /// Records a probe, which counts as lost after `timeout`.
    pub fn on_probe(&mut self, number: u64, size: usize, now: Instant, timeout: Duration) {
        self.outstanding = Some((number, size));
        self.tries += 1;
        self.at = now + timeout;
    }

    /// Handles the passage of time: a probe may be lost, or a search or a check may be due.
    pub fn advance(&mut self, now: Instant) {
        if !self.is_probing() {
            if self.works < CEILING && now >= self.raise {
                self.fails = CEILING + 1;
                self.at = now;
            } else if self.works > BASE && now >= self.confirm {
                self.check(now);
            }
            return;
        }
        if now < self.at || self.outstanding.is_none() {
            return;
        }
        let few = self.is_checked && self.losses < BLACK_HOLE;
        if self.tries < if few { CHECKS } else { MAX_PROBES } {
            return;
        }
        if self.is_doubted || self.is_checked {
            *self = Self {
                at: now,
                counted: now,
                ..Self::default()
            };
        } else {
            self.fails = self.candidate();
            self.settle(now);
        }
    }

    /// Begins a check of the present size.
    const fn check(&mut self, now: Instant) {
        self.is_checked = true;
        (self.tries, self.outstanding, self.at) = (0, None, now);
    }

    /// Handles a restart of the other end: numbers begin again. Probes continue.
    pub const fn restart(&mut self) {
        (self.tries, self.outstanding) = (0, None);
        (self.losses, self.proven) = (0, 0);
    }

    fn settle(&mut self, now: Instant) {
        (self.tries, self.outstanding, self.at) = (0, None, now);
        if self.is_complete() {
            self.raise = now + RAISE;
        }
    }

    /// Records the arrival of a packet of this size.
    pub fn on_arrived(&mut self, number: u64, octets: usize, now: Instant) {
        let is_probe = self.outstanding == Some((number, octets));
        if octets + STEP >= self.works {
            self.losses = 0;
            self.proven = self.proven.max(number);
            self.confirm = now + CONFIRM;
            if self.is_doubted {
                self.is_doubted = false;
                self.settle(now);
            }
        }
        if is_probe && self.is_checked {
            self.is_checked = false;
            (self.lost, self.counted) = (0, now + WINDOW);
            (self.tries, self.outstanding) = (0, None);
        } else if is_probe && octets > self.works {
            self.works = octets;
            self.settle(now);
        }
    }

    /// Records a packet of this size that was lost while later ones arrived. If one of the later
    /// ones had about the present size, the size is not the reason, unless many are lost.
    pub fn on_lost(&mut self, number: u64, octets: usize, now: Instant) {
        if octets <= BASE || octets > self.works {
            return;
        }
        if now.saturating_since(self.counted) > WINDOW {
            (self.lost, self.counted) = (0, now);
        }
        self.lost += 1;
        if self.lost >= OFTEN && now >= self.counted && !self.is_probing() {
            self.check(now);
        }
        if number < self.proven {
            return;
        }
        self.losses += 1;
        if self.losses >= BLACK_HOLE && !self.is_doubted && !self.is_checked {
            self.is_doubted = true;
            (self.tries, self.outstanding, self.at) = (0, None, now);
        }
    }
}
