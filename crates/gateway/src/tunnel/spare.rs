//! Paths that are held back, by their roles: spare paths carry only rare probes, and overflow paths
//! relieve active ones that are full.

use anabranch_core::units::Duration;

use super::Tunnel;
use crate::{
    path::{Path, Usable},
    policy::Role,
    time::Instant,
};

/// All active paths are full if each has been used to its rate for this time.
const FULL: Duration = Duration::from_millis(300);
/// Overflow paths stay in use for this time after the active ones were last full.
const OVERFLOW: Duration = Duration::from_secs(1);

impl Tunnel {
    /// Determines which paths are spare: a path of a better role delivers, and is not full. None is
    /// spare without a session, because nothing shows then which path delivers.
    pub(super) fn spare_paths(&mut self) {
        let now = self.now;
        let is_up = self.handshakes.is_up();
        if is_up && self.is_full() {
            self.overflow = Some(now + OVERFLOW);
        }
        self.overflow = self.overflow.filter(|&until| until > now);
        let well = self.paths.values().filter(|path| path.liveness.is_well());
        let best = well.map(|path| path.liveness.role()).min();
        let overflows = self.overflow.is_some();
        for path in self.paths.values_mut() {
            let role = path.liveness.role();
            let relieves = role == Role::Overflow && overflows;
            let is_spare = is_up && best.is_some_and(|best| best < role) && !relieves;
            path.liveness.set_spare(is_spare, now);
        }
    }

    /// The time at which overflow paths become spare again.
    pub(super) const fn spare_timeout(&self) -> Option<Instant> {
        self.overflow
    }

    /// Whether packets wait and every active path has been used to its rate for a while.
    fn is_full(&self) -> bool {
        if !self.is_held_back {
            return false;
        }
        let is_active = |path: &&Path| path.liveness.usable() == Some(Usable::Active);
        let mut active = self.paths.values().filter(is_active).peekable();
        let is_full = |path: &Path| {
            let busy = path.rate.busy_since();
            busy.is_some_and(|since| self.now.saturating_since(since) >= FULL)
        };
        active.peek().is_some() && active.all(is_full)
    }

    /// Whether overflow paths relieve the paths of a kind.
    pub(super) fn overflows(&self, tier: Usable) -> bool {
        tier == Usable::Active && self.overflow.is_some_and(|until| until > self.now)
    }
}
