//! Packets that this end sent on a path and whose outcome is unknown.

use anabranch_core::units::Duration;
use std::collections::VecDeque;

use crate::{
    pool::Pool,
    time::Instant,
    wire::{Kind, Place, Report},
};

/// The largest number of entries: 1 Gbit/s for 100 ms.
const ENTRIES: usize = 8_192;
/// Packets are stored for retransmission for this time and up to this many octets.
const KEEP: Duration = Duration::from_secs(1);
const KEEP_OCTETS: usize = 4 << 20;
/// A packet is presumed lost after a number this much higher arrived (RFC 9002 §6.1.1), if it was
/// also sent long enough before.
const PACKET_THRESHOLD: u64 = 3;
/// A packet presumed lost may still arrive for this time.
const REMEMBER: Duration = Duration::from_secs(1);
/// Upper bound of the measured reordering.
const REORDERING_MOST: Duration = Duration::from_millis(300);
/// The reordering threshold exceeds the widest reordering by a quarter (`1 / MARGIN`), and decays
/// by `1 / FORGET` per report.
const MARGIN: u64 = 4;
const FORGET: u64 = 256;

/// A packet that may be retransmitted.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its place in its flow.
    pub place: Place,
    /// Its octets.
    pub packet: Vec<u8>,
    /// The time at which it entered the gateway.
    pub since: Instant,
    /// The number of retransmissions.
    pub attempts: u8,
    /// The lane in which it waits.
    pub lane: u8,
    /// Its block and its index in the block, if repair packets protect it.
    pub part: Option<(u16, u8)>,
}

impl Kept {
    /// The kind of the message that carries it.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        let place = self.place;
        match self.part {
            None => Kind::Packet(place),
            Some((block, index)) => Kind::Protected {
                place,
                block,
                index,
            },
        }
    }
}

/// A sent datagram.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// The time of sending.
    pub at: Instant,
    /// Octets of the datagram.
    pub octets: usize,
    /// Octets in flight on the path at that time.
    pub in_flight: usize,
    /// Whether its arrival is reported soon: false for control messages, and for probes of the path
    /// MTU.
    pub expects_report: bool,
    /// The packet, if it can be retransmitted.
    pub kept: Option<Kept>,
    /// The lane and the block of a repair packet.
    pub repairs: Option<(u8, u16)>,
}

/// The result of a report.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Datagrams that arrived, oldest first.
    pub arrived: Vec<Sent>,
    /// Octets of datagrams that arrived after they were presumed lost.
    pub spurious: usize,
    /// Datagrams that are now presumed lost, oldest first.
    pub lost: Vec<Sent>,
    /// The sending time of the highest number and the octets in flight at that time, if the number
    /// is a new maximum.
    pub advanced: Option<(Instant, usize)>,
}

impl Outcome {
    fn clear(&mut self) {
        self.arrived.clear();
        self.lost.clear();
        (self.spurious, self.advanced) = (0, None);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Arrived,
    Lost,
}

/// The outstanding packets of a path, by number.
///
/// Losses are detected by the order of arrivals, as in RACK (RFC 8985 §6.2): the ledger measures
/// the path's reordering, and presumes a packet lost if a packet sent that much later arrived.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Consecutive numbers.
    sent: VecDeque<(Sent, Fate)>,
    kept_octets: usize,
    outstanding: usize,
    /// The number of oldest entries without a stored packet.
    bare: usize,
    /// The outcomes of all lower numbers are decided.
    undecided: u64,
    /// The highest reported number, and its sending time.
    reported: Option<(u64, Instant)>,
    reordering: Duration,
}

impl Ledger {
    /// Adds a sent datagram. Returns the octets of outstanding entries that were dropped for lack
    /// of room.
    pub fn add(&mut self, sent: Sent, pool: &mut Pool) -> usize {
        let mut dropped = 0;
        // Numbers that were never sent have no outcome.
        if self.end().is_some_and(|end| end != sent.number) {
            while let Some((oldest, fate)) = self.pop() {
                dropped += uncounted(&oldest, fate);
                if let Some(kept) = oldest.kept {
                    pool.put(kept.packet);
                }
            }
        }
        self.kept_octets += kept_octets(&sent);
        self.outstanding += 1;
        if self.sent.is_empty() {
            self.undecided = sent.number;
        }
        self.sent.push_back((sent, Fate::Outstanding));
        while self.sent.len() > ENTRIES {
            if let Some((oldest, fate)) = self.pop() {
                dropped += uncounted(&oldest, fate);
                if let Some(kept) = oldest.kept {
                    pool.put(kept.packet);
                }
            }
        }
        self.limit(pool);
        dropped
    }

    fn first(&self) -> Option<u64> {
        self.sent.front().map(|(sent, _)| sent.number)
    }

    fn end(&self) -> Option<u64> {
        self.sent.back().map(|(sent, _)| sent.number + 1)
    }

    fn index(&self, number: u64) -> Option<usize> {
        let index = usize::try_from(number.checked_sub(self.first()?)?).ok()?;
        (index < self.sent.len()).then_some(index)
    }

    fn pop(&mut self) -> Option<(Sent, Fate)> {
        let (oldest, fate) = self.sent.pop_front()?;
        self.kept_octets -= kept_octets(&oldest);
        self.outstanding -= usize::from(fate == Fate::Outstanding);
        self.bare = self.bare.saturating_sub(1);
        self.undecided = self.undecided.max(oldest.number + 1);
        Some((oldest, fate))
    }

    /// Drops the oldest stored packets while they exceed the limit of octets.
    fn limit(&mut self, pool: &mut Pool) {
        while self.kept_octets > KEEP_OCTETS
            && let Some((sent, _)) = self.sent.get_mut(self.bare)
        {
            self.kept_octets -= kept_octets(sent);
            self.bare += 1;
            if let Some(kept) = sent.kept.take() {
                pool.put(kept.packet);
            }
        }
    }

    /// Octets of stored packets.
    #[must_use]
    pub const fn kept_octets(&self) -> usize {
        self.kept_octets
    }

    /// Outstanding packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.outstanding
    }

    /// Whether nothing is outstanding.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    /// Processes a report and stores the result in `outcome`. An arrival sent at least `window`
    /// later suffices to presume a loss.
    pub fn on_report(&mut self, report: &Report, window: Duration, outcome: &mut Outcome) {
        outcome.clear();
        self.reordering = self.reordering.saturating_sub(self.reordering / FORGET);
        let before = self.reported;
        if let Some(index) = self.index(report.highest)
            && before.is_none_or(|(before, _)| report.highest > before)
        {
            let Sent { at, in_flight, .. } = self.sent[index].0;
            outcome.advanced = Some((at, in_flight));
            self.reported = Some((report.highest, at));
        }
        for number in report.arrivals.numbers(report.highest) {
            self.on_arrived(number, before, outcome);
        }
        if let Some((highest, at)) = self.reported {
            self.presume(highest, at, window, outcome);
            self.settle(at);
        }
    }

    fn on_arrived(&mut self, number: u64, before: Option<(u64, Instant)>, outcome: &mut Outcome) {
        let Some((sent, fate)) = self
            .index(number)
            .and_then(|index| self.sent.get_mut(index))
        else {
            return;
        };
        let was = std::mem::replace(fate, Fate::Arrived);
        if was == Fate::Arrived {
            return;
        }
        if let Some((_, at)) = before.filter(|&(highest, _)| number < highest) {
            let overtaken = at.saturating_since(sent.at);
            let wide = (overtaken + overtaken / MARGIN).min(REORDERING_MOST);
            self.reordering = self.reordering.max(wide);
        }
        if was == Fate::Lost {
            outcome.spurious += sent.octets;
            return;
        }
        self.outstanding -= 1;
        self.kept_octets -= kept_octets(sent);
        outcome.arrived.push(Sent {
            kept: sent.kept.take(),
            ..*sent
        });
    }

    fn presume(&mut self, highest: u64, at: Instant, window: Duration, outcome: &mut Outcome) {
        while self.undecided < highest
            && let Some(index) = self.index(self.undecided)
            && let Some((sent, fate)) = self.sent.get_mut(index)
        {
            if *fate == Fate::Outstanding {
                let overtaken = at.saturating_since(sent.at);
                let is_far = self.undecided + PACKET_THRESHOLD <= highest || overtaken >= window;
                if overtaken < self.reordering || !is_far {
                    return;
                }
                *fate = Fate::Lost;
                self.outstanding -= 1;
                self.kept_octets -= kept_octets(sent);
                outcome.lost.push(Sent {
                    kept: sent.kept.take(),
                    ..*sent
                });
            }
            self.undecided += 1;
        }
    }

    /// Removes the oldest entries whose outcome is final.
    fn settle(&mut self, at: Instant) {
        while let Some((sent, fate)) = self.sent.front()
            && match fate {
                Fate::Arrived => true,
                Fate::Lost => at.saturating_since(sent.at) > REMEMBER,
                Fate::Outstanding => false,
            }
        {
            self.pop();
        }
    }

    /// The sending time of the oldest packet whose number exceeds all reported ones.
    #[must_use]
    pub fn waiting(&self) -> Option<Instant> {
        let newer = match self.reported {
            Some((highest, _)) => self.index(highest).map_or(0, |index| index + 1),
            None => 0,
        };
        let mut newer = self.sent.iter().skip(newer).map(|(sent, _)| sent);
        newer.find(|sent| sent.expects_report).map(|sent| sent.at)
    }

    /// Takes the stored packets sent within the last second, for another path.
    pub fn take_kept(&mut self, now: Instant) -> Vec<Kept> {
        self.kept_octets = 0;
        let recent = |sent: &Sent| now.saturating_since(sent.at) < KEEP;
        self.sent
            .iter_mut()
            .filter_map(|(sent, _)| sent.kept.take().filter(|_| recent(sent)))
            .collect()
    }

    /// Discards all outstanding packets.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

fn uncounted(sent: &Sent, fate: Fate) -> usize {
    if fate == Fate::Outstanding {
        sent.octets
    } else {
        0
    }
}

fn kept_octets(sent: &Sent) -> usize {
    sent.kept.as_ref().map_or(0, |kept| kept.packet.len())
}
