//! Overload: milliseconds in which more arrives than the active members carry.
//!
//! Time is divided into milliseconds from the start of the measured time. A millisecond is
//! overloaded if more bytes arrive before the queue in the forward direction than the distributing
//! members can carry: the integral of their number over the millisecond, times the rate of one
//! member. The backlog does not count: only arrivals are judged, so that a controller gains nothing
//! by letting packets wait.

use anabranch_core::units::{Duration, Instant, Rate};

/// Length of a slot.
const SLOT: Duration = Duration::from_millis(1);

/// Counts overloaded milliseconds.
#[derive(Debug, Clone)]
pub struct Overload {
    /// Rate of one member, in bits per second.
    rate: u64,
    /// Start of the slot; before the measured time, the start of that.
    begin: Instant,
    end: Instant,
    bytes: u64,
    /// Member-picoseconds of this slot up to `since`.
    carried: u64,
    members: u32,
    since: Instant,
    overloaded: u64,
    slots: u64,
}

impl Overload {
    /// Creates a counter with `members` active members from `start` on, when the measured time
    /// begins.
    #[must_use]
    pub fn new(rate: Rate, members: u32, start: Instant) -> Self {
        Self {
            rate: rate.bits_per_s(),
            begin: start,
            end: start + SLOT,
            bytes: 0,
            carried: 0,
            members,
            since: start,
            overloaded: 0,
            slots: 0,
        }
    }

    /// Counts bytes that arrive.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, bytes: u32) {
        if now >= self.end {
            self.close(now);
        }
        if now >= self.begin {
            self.bytes += u64::from(bytes);
        }
    }

    /// Sets the number of active members from `now` on.
    pub fn set_members(&mut self, now: Instant, members: u32) {
        self.close(now);
        self.account(now);
        self.members = members;
    }

    fn account(&mut self, until: Instant) {
        let time = until.saturating_since(self.since);
        self.carried += u64::from(self.members) * time.as_picos();
        self.since = self.since.max(until);
    }

    /// Closes the slots that have ended by `now`.
    #[inline(never)]
    fn close(&mut self, now: Instant) {
        if self.end > now {
            return;
        }
        self.account(self.end);
        let arrived = u128::from(std::mem::take(&mut self.bytes)) * 8 * 1_000_000_000_000;
        let carried = u128::from(std::mem::take(&mut self.carried)) * u128::from(self.rate);
        self.overloaded += u64::from(arrived > carried);
        // The following slots that have ended had no arrivals.
        let passed = now.saturating_since(self.begin).as_picos() / SLOT.as_picos();
        self.slots += passed;
        self.begin = self.begin + SLOT * passed;
        self.end = self.begin + SLOT;
        self.since = self.begin;
    }

    /// Overloaded share of the milliseconds that have ended by `now`; `None` if none has.
    pub fn share(&mut self, now: Instant) -> Option<f64> {
        self.close(now);
        (self.slots > 0).then(|| self.overloaded as f64 / self.slots as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member of 8 Mbit/s carries 1,000 bytes in a millisecond. By hand, from 2 ms on: two
    /// members and 2,000 bytes; then 2,001 bytes. In the third, one of the two leaves at 0.5 ms:
    /// 1,500 bytes. In the fourth, one member becomes two at 0.5 ms: 1,501 bytes. Then two empty
    /// milliseconds, and one that has not ended.
    #[test]
    fn overloaded_milliseconds_by_hand() {
        let at = |us: u64| Instant::START + Duration::from_micros(us);
        let mut overload = Overload::new(Rate::from_mbit_per_s(8), 2, at(2_000));
        assert_eq!(overload.share(at(2_999)), None);
        overload.on_arrival(at(1_999), 60_000); // Before the measured time.
        overload.on_arrival(at(2_000), 2_000);
        overload.on_arrival(at(3_000), 2_001);
        overload.set_members(at(4_500), 1);
        overload.on_arrival(at(4_999), 1_500);
        overload.set_members(at(5_500), 2);
        overload.on_arrival(at(5_600), 1_501);
        overload.on_arrival(at(8_000), 60_000);
        // The second and the fourth of six.
        assert_eq!(overload.share(at(8_999)), Some(2.0 / 6.0));
        assert_eq!(overload.share(at(9_000)), Some(3.0 / 7.0));
    }
}
