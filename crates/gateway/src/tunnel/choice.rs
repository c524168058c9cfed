//! The choice of a packet's path.

use anabranch_core::units::Duration;
use std::cmp::Ordering;

use super::{Tunnel, protection::DETECTION};
use crate::{
    path::{Path, Usable},
    policy::Class,
    time::Instant,
    wire::{PATHS, PathId},
};

/// Interactive traffic up to this share of a path's rate is small: it is not paced, and copies of
/// it are cheap.
const SMALL: f64 = 0.1;
/// A slower path is used after the faster ones have been busy for this multiple of the difference
/// of the delays.
const PATIENCE: f64 = 2.0;
/// The greatest acceptable additional delay, in seconds, of a path with the same rate as all faster
/// ones together. It is proportional to the path's rate.
const HORIZON_S: f64 = 2.0;
/// A flow in order waits for its last packet, so a path is rated by its delay plus this multiple of
/// its jitter (as `K` in RFC 6298 §2).
const DEVIATIONS: f64 = 4.0;
/// CoDel's target must cover one packet (RFC 8290 §5.2.2). With fewer than three after a lost one,
/// a TCP sender does not notice the loss before its timer expires (RFC 5681 §3.2).
const FEW: f64 = 3.0;
/// Octets of a flow by which paths are compared: a page of the web.
const FLOW: f64 = 65_536.0;
/// A path has the rate for a load up to this part of it.
const FULL: f64 = 0.7;
/// Beyond, a path with a higher rate leads if it gains more than its delay in this time.
const OVERLOAD_S: f64 = 0.5;
/// The load is the highest rate of the last one to two windows of this length.
const LOAD_WINDOW: Duration = Duration::from_secs(2);
const LOAD_INTERVAL: Duration = Duration::from_millis(200);
/// A wait of this part of a round trip is less than the delay that ends a TCP sender's slow start
/// (RFC 9406 §4.2).
const HARMLESS: f64 = 0.125;
/// Upper bound of the loss in [`repair_s`].
const LOSS_MOST: f64 = 0.9;
/// The greatest additional delay of a path: the receiver waits little longer for late packets.
const LATER_MOST_S: f64 = 0.340;

/// The least backlog of the last one to two windows: octets that keep the leading path busy even if
/// the inner senders send nothing for a while.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    since: Instant,
    before: u64,
    now: u64,
}

impl Standing {
    fn observe(&mut self, backlog: u64, window: Duration, now: Instant) {
        let past = now.saturating_since(self.since);
        if past >= window {
            self.before = if past < window * 2 { self.now } else { backlog };
            (self.since, self.now) = (now, backlog);
        }
        self.now = self.now.min(backlog);
    }

    /// The least backlog in octets.
    fn least(&self) -> u64 {
        self.now.min(self.before)
    }
}

/// The rate at which bulk packets leave: the highest of recent intervals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    since: Instant,
    octets: usize,
    window: Instant,
    before: f64,
    now: f64,
}

impl Load {
    fn add(&mut self, octets: usize, now: Instant) {
        let past = now.saturating_since(self.since);
        if past >= LOAD_INTERVAL {
            let past_window = now.saturating_since(self.window);
            if past_window >= LOAD_WINDOW {
                self.before = if past_window < LOAD_WINDOW * 2 {
                    self.now
                } else {
                    0.0
                };
                (self.window, self.now) = (now, 0.0);
            }
            self.now = self.now.max(self.octets as f64 / past.as_secs_f64());
            (self.since, self.octets) = (now, 0);
        }
        self.octets += octets;
    }

    /// Octets per second.
    const fn rate(&self) -> f64 {
        self.before.max(self.now)
    }
}

impl Tunnel {
    /// The best kind of paths that accept datagrams of this size.
    pub(super) fn tier(&self, octets: usize) -> Option<Usable> {
        self.candidates(octets)
            .filter_map(|(_, path)| path.liveness.usable())
            .min()
    }

    fn candidates(&self, octets: usize) -> impl Iterator<Item = (PathId, &Path)> {
        let paths = self.paths.iter();
        paths.filter(move |(_, path)| path.route.is_some() && path.mtu.size() >= octets)
    }

    pub(super) fn of_tier(
        &self,
        octets: usize,
        tier: Usable,
    ) -> impl Iterator<Item = (PathId, &Path)> {
        self.candidates(octets)
            .filter(move |(_, path)| path.liveness.usable() == Some(tier))
    }

    /// The overflow paths that carry what full paths of a kind cannot.
    pub(super) fn relieving(
        &self,
        octets: usize,
        tier: Usable,
    ) -> impl Iterator<Item = (PathId, &Path)> {
        let overflow = self.overflows(tier).then_some(Usable::Overflow);
        self.candidates(octets)
            .filter(move |(_, path)| overflow.is_some() && path.liveness.usable() == overflow)
    }

    /// The path to which a lane's packets are pinned, while it delivers them.
    pub(super) fn pinned(&self, number: u8, octets: usize) -> Option<(PathId, &Path)> {
        let Class::Pinned(id) = self.lanes.get(number)?.class else {
            return None;
        };
        self.candidates(octets)
            .find(|&(candidate, path)| candidate == id && path.liveness.is_well())
    }

    /// Whether a lane's traffic is small relative to a path's rate.
    fn is_small(&self, number: u8, path: &Path) -> bool {
        self.lanes
            .get(number)
            .is_some_and(|lane| lane.meter.rate() <= SMALL * path.rate.rate())
    }

    pub(super) fn is_interactive(&self, number: u8) -> bool {
        self.lanes
            .get(number)
            .is_some_and(|lane| lane.class == Class::Interactive)
    }

    /// The path of a kind on which the packet should leave now, if one is ready. Bulk packets take
    /// the leading path, and another one if that is busy and the other one helps; all others take
    /// the path on which they arrive first.
    pub(super) fn choose(&self, number: u8, octets: usize, tier: Usable) -> Option<PathId> {
        if let Some((id, path)) = self.pinned(number, octets) {
            return self.is_ready(path).then_some(id);
        }
        if self.is_interactive(number) {
            let (id, fastest) = self.of_tier(octets, tier).min_by(by_arrival)?;
            if self.is_small(number, fastest) {
                return Some(id);
            }
        } else if !self.is_protected(number) {
            let (id, lead) = self.lead(octets, tier)?;
            if self.is_ready(lead) {
                return Some(id);
            }
        }
        let is_gain = |path: &Path| {
            self.is_gain(path, octets, tier) || self.is_spread(number, path, octets, tier)
        };
        let helps = |path: &Path| self.is_ready(path) && is_gain(path);
        let best = self.of_tier(octets, tier).filter(|(_, path)| helps(path));
        let best = best.min_by(by_arrival).or_else(|| {
            let others = self.relieving(octets, tier);
            others.filter(|(_, path)| helps(path)).min_by(by_arrival)
        });
        best.map(|(id, _)| id)
    }

    /// Whether packets of a lane are spread over this path, too, because a block is open.
    fn is_spread(&self, number: u8, path: &Path, octets: usize, tier: Usable) -> bool {
        let later_s = |lead: &Path| expected_delay(path) - expected_delay(lead);
        self.is_protected(number)
            && self
                .lead(octets, tier)
                .is_some_and(|(_, lead)| later_s(lead) <= harmless_s(lead))
    }

    /// Whether a block of a lane is open, or has repair packets that wait. A burst of losses must
    /// not affect many packets of a block, so these are spread over the paths.
    pub(super) fn is_protected(&self, number: u8) -> bool {
        let lane = self.lanes.get(number);
        let protector = lane.map(|lane| &lane.protector);
        protector.is_some_and(|block| !block.is_empty() || block.next_octets().is_some())
    }

    /// The path for a packet that is retransmitted, if it is ready. Packets wait for it at the
    /// receiver, so it takes the path on which it arrives first, and waits for the pace of that.
    pub(super) fn choose_for_repair(
        &self,
        number: u8,
        octets: usize,
        tier: Usable,
    ) -> Option<PathId> {
        if let Some((id, path)) = self.pinned(number, octets) {
            return self.is_ready(path).then_some(id);
        }
        let able = self
            .of_tier(octets, tier)
            .filter(|(_, path)| self.is_soon(path));
        let (id, path) = able.min_by(by_arrival)?;
        self.is_ready(path).then_some(id)
    }

    /// The path of a kind that alone would carry bulk packets best: the one on which a flow of
    /// [`FLOW`] octets arrives first, among paths with the rate for the present load. If none has,
    /// the one on which the octets of [`OVERLOAD_S`] arrive first.
    pub(super) fn lead(&self, octets: usize, tier: Usable) -> Option<(PathId, &Path)> {
        let load = self.load.rate();
        let time = |path: &Path, octets: f64| {
            let delay_s = path.rate.target_delay_s().unwrap_or(0.0) + repair_s(path);
            delay_s + octets / path.rate.capacity()
        };
        let first = |a: &Path, b: &Path, octets| time(a, octets).total_cmp(&time(b, octets));
        let able = self
            .of_tier(octets, tier)
            .filter(|(_, path)| path.rate.capacity() * FULL >= load);
        able.min_by(|a, b| first(a.1, b.1, FLOW)).or_else(|| {
            self.of_tier(octets, tier)
                .min_by(|a, b| first(a.1, b.1, load * OVERLOAD_S))
        })
    }

    /// Whether a path helps the leading one: a packet on it delays no other, or the path raises the
    /// throughput.
    pub(super) fn is_gain(&self, path: &Path, octets: usize, tier: Usable) -> bool {
        self.is_free(path, octets, tier) || self.is_worth(path, octets, tier)
    }

    /// Whether a packet on this path delays no other packet: it arrives there before the leading
    /// path runs empty, even if the inner senders send nothing until then.
    pub(super) fn is_free(&self, path: &Path, octets: usize, tier: Usable) -> bool {
        let Some((_, lead)) = self.lead(octets, tier) else {
            return false;
        };
        let rate = lead.rate.rate();
        let backlog_s = (self.lanes.backlog() as f64 + octets as f64) / rate;
        let standing_s = self.standing.least() as f64 / rate;
        let bound_s = standing_s.max(backlog_s.min(harmless_s(lead)));
        expected_delay(path) - expected_delay(lead) <= bound_s
    }

    /// The time in which the path with the highest rate sends the packets that CoDel's target must
    /// at least cover.
    pub(super) fn few_packets(&self, tier: Usable) -> Duration {
        let times = self.of_tier(0, tier);
        let times = times.map(|(_, path)| FEW * path.mtu.size() as f64 / path.rate.rate());
        let least_s = times.fold(f64::INFINITY, f64::min);
        Duration::from_secs_f64(if least_s.is_finite() { least_s } else { 0.0 })
    }

    /// The greatest additional delay of a slower path that is worth it. A queue of bulk packets may
    /// last as long: shorter, it would be drained before the slower path is used.
    pub(super) fn reach(&self, number: u8, tier: Usable) -> Duration {
        if self
            .lanes
            .get(number)
            .is_none_or(|lane| lane.class != Class::Bulk)
        {
            return Duration::ZERO;
        }
        // A path without a sample has no delay to compare.
        let measured = || {
            let paths = self.of_tier(0, tier);
            paths.filter_map(|(_, path)| Some((path.rate.target_delay_s()?, path.rate.rate())))
        };
        let least = measured()
            .map(|(delay, _)| delay)
            .fold(f64::INFINITY, f64::min);
        let later = measured().map(|(delay, rate)| {
            let faster = measured().filter(|&(other, _)| other < delay);
            let faster: f64 = faster.map(|(_, rate)| rate).sum();
            let later_s = delay - least;
            let is_worth = later_s < LATER_MOST_S.min(HORIZON_S * rate / faster);
            if is_worth { later_s } else { 0.0 }
        });
        Duration::from_secs_f64(later.fold(0.0, f64::max))
    }

    /// Whether a slower path may raise the throughput by enough: all faster ones have been used to
    /// their rates for a while, the additional rate outweighs the delay, and no trial has failed
    /// recently.
    fn is_worth(&self, path: &Path, octets: usize, tier: Usable) -> bool {
        if !path.worth.may_try(self.now) {
            return false;
        }
        let Some((_, lead)) = self.lead(octets, tier) else {
            return false;
        };
        let later_s = delay(path) - delay(lead);
        let mut faster = 0.0;
        for other in self.faster(path, lead, octets, tier) {
            let busy = other
                .rate
                .busy_since()
                .map(|since| self.now.saturating_since(since));
            if busy.is_none_or(|busy| busy.as_secs_f64() < PATIENCE * later_s) {
                return false;
            }
            faster += other.rate.rate();
        }
        later_s < LATER_MOST_S.min(HORIZON_S * path.rate.rate() / faster)
    }

    /// The leading path, and the other paths that are faster than this one.
    fn faster<'a>(
        &'a self,
        path: &'a Path,
        lead: &'a Path,
        octets: usize,
        tier: Usable,
    ) -> impl Iterator<Item = &'a Path> {
        let others = self.of_tier(octets, tier).map(|(_, other)| other);
        others.filter(move |&other| std::ptr::eq(other, lead) || delay(other) < delay(path))
    }

    /// Records that a bulk packet takes a path, which may be a trial of the path.
    pub(super) fn on_choice(&mut self, number: u8, id: PathId, octets: usize, tier: Usable) {
        if self.is_interactive(number) {
            return;
        }
        self.load.add(octets, self.now);
        if self.lead(octets, tier).is_none_or(|(lead, _)| lead == id) {
            return;
        }
        let now = self.now;
        let is_free = self.paths.get(id).is_some_and(|path| {
            self.is_free(path, octets, tier) || self.is_spread(number, path, octets, tier)
        });
        if !is_free && let Some(path) = self.paths.get_mut(id) {
            path.worth.on_used(now);
        }
    }

    /// Judges the trials of paths.
    pub(super) fn judge_trials(&mut self) {
        if !self.paths.values().any(|path| path.worth.is_on_trial()) {
            return;
        }
        let now = self.now;
        let delivered = self.paths.values().map(|path| path.rate.total()).sum();
        for number in 0..PATHS {
            let Some(id) = u8::try_from(number).ok().and_then(PathId::new) else {
                return;
            };
            let Some(path) = self.paths.get(id).filter(|path| path.worth.is_on_trial()) else {
                continue;
            };
            let faster = self.tier(0).and_then(|tier| {
                let (_, lead) = self.lead(0, tier)?;
                let faster = self.faster(path, lead, 0, tier);
                Some(faster.map(|other| other.rate.delivery()).sum())
            });
            let round_trip = path.round_trip.srtt().unwrap_or(Duration::ZERO);
            if let Some(path) = self.paths.get_mut(id) {
                path.worth
                    .judge(delivered, faster.unwrap_or(0.0), round_trip, now);
            }
        }
    }

    /// Records the backlog before a packet leaves.
    pub(super) fn observe_backlog(&mut self) {
        let paths = self.paths.values().filter(|path| path.liveness.is_well());
        let longest = paths.filter_map(|path| path.round_trip.srtt()).max();
        let window = longest.unwrap_or(Duration::ZERO);
        self.standing
            .observe(self.lanes.backlog(), window, self.now);
    }

    /// The path for a copy of a packet that leaves on `first`: another active path for whose rate
    /// the lane's traffic is small, with the lowest delay.
    pub(super) fn second_path(&self, number: u8, first: PathId, octets: usize) -> Option<PathId> {
        if !self.is_interactive(number) {
            return None;
        }
        self.of_tier(octets, Usable::Active)
            .filter(|&(id, path)| id != first && self.is_small(number, path))
            .min_by(|a, b| delay(a.1).total_cmp(&delay(b.1)))
            .map(|(id, _)| id)
    }
}

pub(super) fn by_arrival(a: &(PathId, &Path), b: &(PathId, &Path)) -> Ordering {
    expected_delay(a.1).total_cmp(&expected_delay(b.1))
}

/// A likely upper bound of the one-way delay in seconds of a packet sent now, with an offset that
/// all paths share.
fn expected_delay(path: &Path) -> f64 {
    let feedback = path.round_trip.feedback();
    let delay_s = path.rate.expected_delay_s(feedback).unwrap_or(0.0);
    delay_s + DEVIATIONS * path.rate.jitter_s() + repair_s(path)
}

/// The mean time in seconds that retransmissions add to a packet's delay on a path with losses.
fn repair_s(path: &Path) -> f64 {
    let loss = path.rate.usual_loss().min(LOSS_MOST);
    let round_trip = path.round_trip.srtt().unwrap_or(Duration::ZERO);
    loss / (1.0 - loss) * (round_trip + DETECTION).as_secs_f64()
}

/// A wait in seconds that does not slow senders down that use this path.
fn harmless_s(path: &Path) -> f64 {
    HARMLESS * path.round_trip.srtt().map_or(0.0, Duration::as_secs_f64)
}

/// The one-way delay in seconds, with an offset that all paths share.
fn delay(path: &Path) -> f64 {
    path.rate.delay_s().unwrap_or(0.0)
}
