//! Groups of peers that serve the same prefixes: the best one that is up carries the traffic.
//!
//! A server that goes down is replaced at once. Traffic returns to a better one after it has been
//! up for a hold time, which doubles each time that the server goes down soon after it came up.

use anabranch_core::units::Duration;
use anabranch_gateway::time::Instant;

/// The time for which a better server must be up before traffic returns to it: initial value and
/// maximum.
const HOLD: Duration = Duration::from_secs(10);
const HOLD_MAX: Duration = Duration::from_secs(320);
/// A server that goes down within this time flaps.
const FLAP: Duration = Duration::from_secs(600);

/// Whether a server is up, and since when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Health {
    up: Option<Instant>,
    /// The time for which it must be up before traffic returns; 0 before its first failure.
    hold: Option<Duration>,
}

impl Health {
    /// Records whether the server is up now.
    pub fn note(&mut self, is_up: bool, now: Instant) {
        match (self.up, is_up) {
            (None, true) => self.up = Some(now),
            (Some(since), false) => {
                self.up = None;
                let flaps = now.saturating_since(since) < FLAP;
                self.hold = Some(match self.hold {
                    Some(hold) if flaps => (hold * 2).min(HOLD_MAX),
                    _ => HOLD,
                });
            }
            _ => {}
        }
    }

    /// Whether it is up.
    pub const fn is_up(&self) -> bool {
        self.up.is_some()
    }

    /// The time from which traffic may return to it.
    fn usable(&self) -> Option<Instant> {
        Some(self.up? + self.hold.unwrap_or(Duration::ZERO))
    }
}

/// The servers of some prefixes, and the current one, which carries the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The numbers of the peers, the best first.
    candidates: Vec<u32>,
    current: u32,
}

impl Choice {
    /// A choice among peers by number, the best first; `None` without any.
    pub fn new(candidates: Vec<u32>) -> Option<Self> {
        let current = *candidates.first()?;
        Some(Self {
            candidates,
            current,
        })
    }

    /// The peers.
    pub fn candidates(&self) -> &[u32] {
        &self.candidates
    }

    /// The peer that carries the traffic.
    pub const fn current(&self) -> u32 {
        self.current
    }

    /// Continues with a peer that carried the traffic before a reload.
    pub fn resume(&mut self, number: u32) {
        if self.candidates.contains(&number) {
            self.current = number;
        }
    }

    /// Chooses again. Returns the earlier peer if the traffic moves.
    pub fn follow(&mut self, health: impl Fn(u32) -> Health, now: Instant) -> Option<u32> {
        let is_usable = |number: &&u32| {
            let health = health(**number);
            health.usable().is_some_and(|usable| usable <= now)
        };
        let place = |number: u32| self.candidates.iter().position(|&other| other == number);
        let next = if health(self.current).is_up() {
            let better = &self.candidates[..place(self.current).unwrap_or(0)];
            better.iter().find(is_usable)
        } else {
            // A flapping server is better than none.
            let mut all = self.candidates.iter();
            let up = |number: &&u32| health(**number).is_up();
            self.candidates.iter().find(is_usable).or(all.find(up))
        };
        let next = *next?;
        (next != self.current).then(|| std::mem::replace(&mut self.current, next))
    }

    /// The time at which a better server becomes usable.
    pub fn timeout(&self, health: impl Fn(u32) -> Health) -> Option<Instant> {
        let place = self.candidates.iter().position(|&n| n == self.current)?;
        let better = self.candidates[..place].iter();
        better.filter_map(|&number| health(number).usable()).min()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::units::Duration;
    use anabranch_gateway::time::Instant;

    use super::{Choice, HOLD, HOLD_MAX, Health};

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    /// Two servers, the first the better one, and the choice between them.
    struct Pair(Choice, [Health; 2]);

    impl Pair {
        fn new() -> Self {
            let choice = Choice::new(vec![0, 1]).expect("there are two");
            Self(choice, [Health::default(); 2])
        }

        fn set(&mut self, server: usize, is_up: bool, seconds: u64) -> u32 {
            self.1[server].note(is_up, at(seconds));
            self.at(seconds)
        }

        fn at(&mut self, seconds: u64) -> u32 {
            let health = self.1;
            self.0.follow(|number| health[number as usize], at(seconds));
            self.0.current()
        }

        fn timeout(&self) -> Option<Instant> {
            self.0.timeout(|number| self.1[number as usize])
        }
    }

    #[test]
    fn the_first_server_that_is_up_carries_and_a_better_one_takes_over_at_the_start() {
        let mut pair = Pair::new();
        assert_eq!(pair.set(1, true, 1), 1);
        assert_eq!(pair.set(0, true, 2), 0);
        assert_eq!(pair.timeout(), None);
    }

    #[test]
    fn traffic_moves_at_once_and_returns_after_the_hold_time() {
        let mut pair = Pair::new();
        pair.set(0, true, 0);
        pair.set(1, true, 0);
        assert_eq!(pair.set(0, false, 100), 1);
        assert_eq!(pair.set(0, true, 105), 1);
        assert_eq!(pair.timeout(), Some(at(105) + HOLD));
        assert_eq!(pair.at(114), 1);
        assert_eq!(pair.at(115), 0);
    }

    #[test]
    fn a_server_that_flaps_waits_longer_each_time() {
        let mut pair = Pair::new();
        pair.set(1, true, 0);
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..8 {
            pair.set(0, true, now);
            let since = now;
            while pair.at(now) != 0 {
                now += 1;
            }
            waits.push(now - since);
            now += 5;
            assert_eq!(pair.set(0, false, now), 1);
            now += 1;
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 320, 320]);
        assert_eq!(HOLD_MAX, super::Duration::from_secs(320));
        // A long time without a failure clears the record.
        pair.set(0, true, now);
        assert_eq!(pair.at(now + 2_000), 0);
        pair.set(0, false, now + 2_000);
        pair.set(0, true, now + 2_001);
        assert_eq!(pair.at(now + 2_011), 0);
    }

    #[test]
    fn a_flapping_server_carries_if_no_other_is_up() {
        let mut pair = Pair::new();
        pair.set(0, true, 0);
        pair.set(0, false, 1);
        assert_eq!(pair.set(0, true, 2), 0);
        pair.set(1, true, 3);
        assert_eq!(pair.set(0, false, 4), 1);
        pair.set(1, false, 5);
        assert_eq!(pair.set(0, true, 6), 0);
    }

    #[test]
    fn a_choice_goes_on_with_its_server_after_a_reload() {
        let mut choice = Choice::new(vec![3, 1]).expect("there are two");
        choice.resume(1);
        assert_eq!(choice.current(), 1);
        choice.resume(7);
        assert_eq!(choice.current(), 1);
        assert_eq!(Choice::new(Vec::new()), None);
    }
}
