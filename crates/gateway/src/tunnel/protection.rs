//! The choice of protected packets, and of the number of repair packets.
//!
//! A retransmission costs only the lost packet. Therefore repair packets protect only packets for
//! which a retransmission would be too late: if the round trip of every path in use is longer than
//! the lane's traffic can wait, or if a flow would always wait for a retransmission. Losses beyond
//! the repair packets of a block are retransmitted. Packets that are sent in duplicate need no
//! protection.

use anabranch_core::units::Duration;

use super::{Tunnel, lanes::Lanes};
use crate::{
    blocks::SOURCES,
    inner::FLOWS,
    path::{Kept, Pattern, Usable},
    policy::Class,
    time::Instant,
    wire::Place,
};

/// The loss below which there are no repair packets.
const LEAST: f64 = 0.002;
/// The share of packets that may stay lost.
const RESIDUAL: f64 = 0.0005;
/// There is at most one repair packet for this many packets.
const PACKETS_PER_REPAIR: usize = 4;
/// A retransmission arrives a round trip and this time later than the packet would have: three
/// later packets must arrive, and reports wait.
pub(super) const DETECTION: Duration = Duration::from_millis(30);
/// The acceptable wait of bulk packets (the receiver's longest wait for a gap), and the longest
/// duration of their blocks.
const BULK: [Duration; 2] = [Duration::from_millis(350), Duration::from_millis(250)];
/// The same for interactive packets (ITU-T G.114 has 150 ms for the whole path).
const INTERACTIVE: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(60)];

/// A flow with this many loss bursts per retransmission time waits permanently, and its delay grows
/// by a round trip.
const GAPS: f64 = 0.25;
/// Its blocks take a quarter of a round trip, or this.
const BLOCK_LEAST: Duration = Duration::from_millis(10);
/// The window of [`Paces`].
const PACE: Duration = Duration::from_millis(200);

/// Packets per second of each flow, over the last window or the elapsed part of the present one,
/// whichever is greater.
#[derive(Debug, Default)]
pub(super) struct Paces(Vec<Pace>);

#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    since: Instant,
    number: u32,
    per_s: f64,
}

impl Paces {
    /// Records a packet's place; returns its flow's packets per second.
    fn add(&mut self, place: Place, now: Instant) -> f64 {
        if self.0.is_empty() {
            // Most tunnels protect nothing.
            self.0.resize(usize::from(FLOWS), Pace::default());
        }
        let Some(flow) = self.0.get_mut(usize::from(place.flow)) else {
            return 0.0;
        };
        let past = now.saturating_since(flow.since);
        let packets = f64::from(place.number.wrapping_sub(flow.number));
        if past < PACE {
            return flow.per_s.max(packets / PACE.as_secs_f64());
        }
        *flow = Pace {
            since: now,
            number: place.number,
            per_s: packets / past.as_secs_f64(),
        };
        flow.per_s
    }
}

/// The acceptable wait of a class, and the longest duration of its blocks.
const fn times(class: Class) -> [Duration; 2] {
    match class {
        Class::Bulk | Class::Pinned(_) => BULK,
        Class::Interactive => INTERACTIVE,
    }
}

impl Tunnel {
    /// Adds a packet that leaves for the first time to a block, if it is to be protected.
    pub(super) fn protect(&mut self, kept: &mut Kept, octets: usize) {
        let per_s = self.paces.add(kept.place, self.now);
        let Some(closes) = self.block_end(kept.lane, octets, per_s) else {
            return;
        };
        kept.part = self.lanes.protect(kept, closes, &mut self.pool);
        let Some((_, index)) = kept.part else { return };
        self.counters.protected += 1;
        if usize::from(index) + 1 == SOURCES {
            self.close_block(kept.lane);
        }
    }

    /// The end of a block that begins now. `None` if a flow at `per_s` packets per second needs no
    /// repair packets.
    fn block_end(&self, lane: u8, octets: usize, per_s: f64) -> Option<Instant> {
        let [deadline, length] = times(self.lanes.get(lane)?.class);
        let tier = self.tier(octets)?;
        let pattern = self.pattern(octets, tier)?;
        let first = self.of_tier(octets, tier);
        let shortest = first.filter_map(|(_, path)| path.round_trip.srtt()).min()?;
        if self.copy.is_some() || pattern.share() < LEAST {
            return None;
        }
        let retransmitted = shortest + DETECTION;
        if retransmitted > deadline {
            return Some(self.now + length);
        }
        // There would always be a gap for which the receiver waits.
        let gaps = pattern.begins * per_s * retransmitted.as_secs_f64();
        (gaps > GAPS).then(|| self.now + (shortest / 4).clamp(BLOCK_LEAST, length))
    }

    /// The combined loss pattern of the paths of a kind, weighted by rate. `None` while one of them
    /// loses by congestion, which the inner sender must notice.
    fn pattern(&self, octets: usize, tier: Usable) -> Option<Pattern> {
        let (mut rates, mut losses, mut begins) = (0.0, 0.0, 0.0);
        for (_, path) in self.of_tier(octets, tier) {
            if path.loss.is_by_congestion() {
                return None;
            }
            let rate = path.rate.rate();
            rates += rate;
            if let Some(pattern) = path.loss.pattern() {
                losses += rate * pattern.share();
                begins += rate * pattern.begins;
            }
        }
        (begins > 0.0).then(|| Pattern {
            begins: begins / rates,
            burst: losses / begins,
        })
    }

    /// Closes the blocks that are due.
    pub(super) fn close_blocks(&mut self) {
        for lane in 0..Lanes::MOST {
            let Ok(lane) = u8::try_from(lane) else { return };
            let closes = self
                .lanes
                .get(lane)
                .and_then(|lane| lane.protector.closes());
            if super::is_due(closes, self.now) {
                self.close_block(lane);
            }
        }
    }

    fn close_block(&mut self, lane: u8) {
        let tier = self.tier(0);
        let pattern = tier.and_then(|tier| self.pattern(0, tier));
        let Some(lane) = self.lanes.get_mut(lane) else {
            return;
        };
        let repairs = pattern.map_or(0, |pattern| repairs(lane.protector.len(), &pattern));
        lane.protector.close(repairs, &mut self.pool);
        lane.take_excess(&mut self.pool);
    }
}

/// The smallest number of repair packets for a block of `packets` that leaves no more than
/// [`RESIDUAL`], or else the largest permitted number.
fn repairs(packets: usize, pattern: &Pattern) -> usize {
    let most = packets.div_ceil(PACKETS_PER_REPAIR);
    let is_enough = |&repairs: &usize| pattern.residual(packets + repairs, repairs) <= RESIDUAL;
    (1..most).find(is_enough).unwrap_or(most)
}
