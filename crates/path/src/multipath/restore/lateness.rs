//! Lateness of overtaken packets and share of missing packets that never arrive. Both can be
//! measured whether or not the restorer waits.

use std::collections::VecDeque;

use anabranch_core::units::{Duration, Instant};

/// Maximum number of gaps of one flow that are tracked at once.
const MOST_GAPS: usize = 64;
/// Number of observations after which old ones are halved.
const MEMORY: u32 = 512;
/// Four buckets per octave of microseconds, up to 16.8 s.
const BUCKETS: usize = 96;

/// Maximum number of packets that may pass a gap. Each of them elicits a duplicate acknowledgment,
/// and this is one fewer than TCP interprets as a loss (RFC 5681 §3.2).
pub const FEW: usize = 2;

/// Numbers of a flow that are missing below a higher one that has arrived.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: u64,
    to: u64,
    noticed: Instant,
    /// Number of packets of the flow that had arrived when the gap was noticed.
    arrived: u64,
    /// Departure of the packet that revealed the gap, in microseconds of the sender's clock.
    departed: u64,
    /// The missing packets can be requested again.
    kept: bool,
}

/// Position of an arrived packet in its flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: u64,
    /// Departure in microseconds of the sender's clock.
    pub(super) departed: u64,
    /// See [`Header::kept`](anabranch_core::tunnel::Header::kept).
    pub(super) kept: bool,
}

/// Reason why a packet is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Late {
    /// It was overtaken by others.
    Overtaken,
    /// It was retransmitted: it left after the packets that overtook it. In the counts of losses:
    /// it could be requested again.
    Resent,
}

/// Gaps of one flow.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// One past the highest number that has arrived.
    top: u64,
    /// Number of packets that have arrived.
    arrived: u64,
    open: VecDeque<Gap>,
}

/// Recent observations of all flows.
#[derive(Debug)]
pub(super) struct Lateness {
    /// Histograms of lateness by reason.
    buckets: Box<[[u32; BUCKETS]; 2]>,
    late: [u32; 2],
    /// Number of overtaken packets with at most [`FEW`] overtaking packets of their flow.
    by_few: u32,
    /// Number of packets that never arrived, by the reason for which they would have been late.
    lost: [u32; 2],
    /// Time for which a gap is tracked.
    horizon: Duration,
}

impl Lateness {
    pub(super) fn new(horizon: Duration) -> Self {
        Self {
            buckets: Box::new([[0; BUCKETS]; 2]),
            late: [0; 2],
            by_few: 0,
            lost: [0; 2],
            horizon,
        }
    }

    /// A packet of a flow has arrived. `first` is the extended number 0.
    pub(super) fn arrive(&mut self, now: Instant, gaps: &mut Gaps, place: Place, first: u64) {
        let Place { at, departed, kept } = place;
        while let Some(oldest) = gaps.open.front()
            && (now.saturating_since(oldest.noticed) > self.horizon || gaps.open.len() > MOST_GAPS)
        {
            let missing = oldest.to - oldest.from;
            self.lost[usize::from(oldest.kept)] +=
                u32::try_from(missing).unwrap_or(MEMORY).min(MEMORY);
            gaps.open.pop_front();
        }
        gaps.top = gaps.top.max(first);
        gaps.arrived += 1;
        if at >= gaps.top {
            if at > gaps.top {
                let from = gaps.top;
                gaps.open.push_back(Gap {
                    from,
                    to: at,
                    noticed: now,
                    arrived: gaps.arrived,
                    departed,
                    kept,
                });
            }
            gaps.top = at + 1;
        } else if let Some(gap) = gaps
            .open
            .iter()
            .rposition(|gap| (gap.from..gap.to).contains(&at))
        {
            let (place, gap) = (gap, gaps.open[gap]);
            let why = if departed > gap.departed {
                Late::Resent
            } else {
                Late::Overtaken
            };
            self.count(why, now.saturating_since(gap.noticed));
            let overtook = gaps.arrived - gap.arrived;
            if why == Late::Overtaken && overtook <= FEW as u64 {
                self.by_few += 1;
            }
            gaps.open[place].to = at;
            if at + 1 < gap.to {
                let rest = Gap {
                    from: at + 1,
                    ..gap
                };
                gaps.open.insert(place + 1, rest);
            }
            if gap.from == at {
                gaps.open.remove(place);
            }
        }
        if self.late.iter().chain(&self.lost).sum::<u32>() >= MEMORY {
            self.fade();
        }
    }

    fn count(&mut self, why: Late, late: Duration) {
        self.buckets[why as usize][bucket(late)] += 1;
        self.late[why as usize] += 1;
    }

    fn fade(&mut self) {
        for (buckets, late) in self.buckets.iter_mut().zip(&mut self.late) {
            for count in buckets.iter_mut() {
                *count /= 2;
            }
            *late = buckets.iter().sum();
        }
        self.lost = self.lost.map(|lost| lost / 2);
        self.by_few /= 2;
    }

    /// Share of overtaken packets that at most [`FEW`] packets of their flow overtook, 0 to 1; 0
    /// without observations.
    pub(super) fn by_few(&self) -> f64 {
        match self.late[Late::Overtaken as usize] {
            0 => 0.0,
            late => f64::from(self.by_few) / f64::from(late),
        }
    }

    /// Number of packets that were late for this reason or never arrived.
    pub(super) const fn known(&self, why: Late) -> u32 {
        self.late[why as usize] + self.lost[why as usize]
    }
    /// Share of these packets that arrived, 0 to 1; 1 without observations.
    pub(super) fn filled(&self, why: Late) -> f64 {
        match self.known(why) {
            0 => 1.0,
            known => f64::from(self.late[why as usize]) / f64::from(known),
        }
    }
    /// Lateness that this share of the packets late for this reason does not exceed; `None` without
    /// observations.
    pub(super) fn quantile(&self, why: Late, share: f64) -> Option<Duration> {
        let wanted = f64::from(self.late[why as usize]) * share;
        let mut sum = 0;
        for (bucket, count) in self.buckets[why as usize].iter().enumerate() {
            sum += count;
            if sum > 0 && f64::from(sum) >= wanted {
                return Some(end(bucket));
            }
        }
        None
    }
}

/// Bucket: the octave and the two bits after the leading one.
fn bucket(late: Duration) -> usize {
    let micros = (late.as_picos() / 1_000_000).max(4);
    let octave = micros.ilog2();
    let quarter = (micros >> (octave - 2)) & 3;
    (4 * (octave as usize - 2) + usize::try_from(quarter).unwrap_or(0)).min(BUCKETS - 1)
}

/// Upper bound of the values in a bucket.
fn end(bucket: usize) -> Duration {
    let (octave, quarter) = (bucket / 4 + 2, bucket as u64 % 4);
    Duration::from_micros((5 + quarter) << (octave - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_below_the_end_of_their_bucket() {
        for micros in (0..100_000).chain([1_000_000, 3_999_999]) {
            let late = Duration::from_micros(micros);
            let end = end(bucket(late));
            assert!(late < end, "{late} {end}");
            assert!(micros < 4 || end.as_picos() <= late.as_picos() / 4 * 5 + 1_000_000);
        }
    }

    #[test]
    fn late_packets_are_distinguished_from_lost_ones() {
        let ms = Instant::from_millis;
        let mut all = Lateness::new(Duration::from_millis(100));
        let mut gaps = Gaps::default();
        let of = |at| Place {
            at,
            departed: at,
            kept: false,
        };
        // 1 comes 8 ms after 2; 3 and 4 never come.
        for (at, place) in [(0, 0), (1, 2), (9, 1), (10, 5), (11, 6), (200, 7)] {
            all.arrive(ms(at), &mut gaps, of(place), 0);
        }
        assert_eq!((all.late, all.lost), ([1, 0], [2, 0]));
        let quantile = all.quantile(Late::Overtaken, 0.99).expect("one was late");
        assert!(quantile >= Duration::from_millis(8) && quantile <= Duration::from_millis(10));
    }
}
